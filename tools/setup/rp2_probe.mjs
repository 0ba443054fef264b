// Runs a program at the raw REPL of an emulated RP2040, over USB, and prints what the board says until it has ended.
//   node rp2_probe.mjs RP2040JS BOOTROM FIRMWARE PROGRAM: the folder of the package, two files, and a text
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [library, bootrom, firmware, program] = process.argv.slice(2);
const { ConsoleLogger, LogLevel, Simulator, USBCDC } =
  await import(pathToFileURL(path.resolve(library, 'dist/esm/index.js')));
const { rp2040, clock } = new Simulator();
const CYCLE_NS = 8; // of the board: 125 MHz
const PATIENCE_NS = 5e9; // of the board, which answers after about 1 s

rp2040.logger = new ConsoleLogger(LogLevel.Error);
rp2040.loadBootrom(new Uint32Array(new Uint8Array(fs.readFileSync(bootrom)).buffer));
rp2040.flash.set(fs.readFileSync(firmware));
rp2040.core.PC = 0x10000000; // the second stage, which the boot ROM would copy to memory

let said = '', typed = false;
const usb = new USBCDC(rp2040.usbCtrl);
const type = (text) => { for (const byte of Buffer.from(text)) usb.sendSerialByte(byte); };
usb.onDeviceConnected = () => type('\r');
usb.onSerialData = (bytes) => {
  said += Buffer.from(bytes).toString('latin1');
  if (!typed && said.includes('>>> ')) {
    typed = true;
    type(`\x01${program}\x04`);
  }
};
while (!said.includes('\x04') && clock.nanos < PATIENCE_NS) {
  const idle = rp2040.core.waiting;
  clock.tick(idle ? clock.nanosToNextAlarm : rp2040.core.executeInstruction() * CYCLE_NS);
}
process.stdout.write(said);
