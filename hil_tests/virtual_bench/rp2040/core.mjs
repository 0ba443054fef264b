// The core's clock, and what it does when it cannot go on.
export const CYCLE_NS = 8; // 125 MHz

// Where a core stands from then on, until a watchdog resets it: MicroPython has no other answer to a HardFault.
export class Lockup extends Error {}

// rp2040js lets pass what a Cortex-M0+ takes for a fault, but for words that are read. This mends all cores at once.
export function faultOnUnaligned(core) {
  const methods = Object.getPrototypeOf(core);
  const fault = (access, address) => { throw new Lockup(`HardFault, ${access} 0x${(address >>> 0).toString(16)}`); };
  methods.readUint16 = function readUint16(address) {
    if (address & 1) fault('half a word is read at', address);
    return this.rp2040.readUint16(address);
  };
  methods.readUint32 = function readUint32(address) {
    if (address & 3) fault('a word is read at', address);
    return this.rp2040.readUint32(address);
  };
  methods.writeUint16 = function writeUint16(address, value) {
    if (address & 1) fault('half a word is written at', address);
    this.rp2040.writeUint16(address, value);
  };
  methods.writeUint32 = function writeUint32(address, value) {
    if (address & 3) fault('a word is written at', address);
    this.rp2040.writeUint32(address, value);
  };
}
