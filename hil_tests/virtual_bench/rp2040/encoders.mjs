// Absolute encoders on the buses of the chip, as their data sheets (ams, MagnTek) have them, with a magnet that is as it should
// be. angle() gives the count now, null when the sensor's own wire of the bus is cut off; a bus takes its time.
import { CYCLE_NS } from './core.mjs';
import { attachSpi } from './spi.mjs';

const BYTE_BITS = 8, ACKNOWLEDGED_BITS = 9;

// AS5047P and AS5048A on SPI: frames of 16 bits, each answering the one before. 10 MHz, 350 ns from select to the first
// edge, and 350 ns of select high between frames.
export const AS5047P_COUNTS = 16384;
const ERRFL = 0x0001, DIAAGC = { as5047p: 0x3ffc, as5048: 0x3ffd }, ANGLE = 0x3fff, ADDRESS = 0x3fff;
const SETTLED = 0x0180; // the offset loop has settled, the gain is in its middle
const FRAMES = { hz: 10e6, setupNs: 350, highNs: 350 };

export function attachAs5047p(chip, wiring, angle, complain) {
  let answer = 0, request = 0;
  const registers = new Map([[ERRFL, () => 0], [DIAAGC[wiring.kind], () => SETTLED], [ANGLE, angle]]);
  attachSpi(chip, wiring, wiring.kind.toUpperCase(), FRAMES, {
    begin() { request = 0; },
    exchange(byte, number) {
      request = (request << BYTE_BITS) | byte;
      return number < 2 && angle() !== null ? (answer >> (BYTE_BITS * (1 - number))) & 255 : 255;
    },
    end(bytes) { if (bytes === 2) answer = withParity(registers.get(request & ADDRESS)?.() ?? 0); },
  }, complain);
}

// MT6701 on its SSI: 14 bits of angle, four of status, CRC-6; 15.6 MHz. status() is Mg[3:0].
const SSI = { hz: 15.6e6 }, ANGLE_BITS = 14, STATUS_BITS = 4, CRC_BITS = 6, POLYNOMIAL = 0x43;

export function attachMt6701(chip, wiring, angle, complain, status = () => 0) {
  let frame = 0;
  attachSpi(chip, wiring, 'MT6701', SSI, {
    begin() {
      const count = angle(), told = count << STATUS_BITS | status();
      let rest = told << CRC_BITS;
      for (let bit = ANGLE_BITS + STATUS_BITS + CRC_BITS - 1; bit >= CRC_BITS; bit--) {
        if (rest >> bit & 1) rest ^= POLYNOMIAL << (bit - CRC_BITS);
      }
      frame = count === null ? 0xffffff : told << CRC_BITS | rest;
    },
    exchange(byte, number) { return number < 3 ? frame >> (BYTE_BITS * (2 - number)) & 255 : 255; },
  }, complain);
}

function withParity(value) {
  let ones = 0;
  for (let rest = value; rest; rest >>= 1) ones += rest & 1;
  return value | ((ones & 1) << 15);
}

// AS5600 on I2C: a pointer to its registers, which goes on by itself, but stays at the angle.
export const AS5600_COUNTS = 4096;
const TARGET = 0x36, STATUS = 0x0b, RAW_ANGLE = 0x0c, MAGNET = 0x20;

export function attachAs5600(chip, { i2c }, angle) {
  const bus = chip.rp2040.i2c[i2c];
  let pointer = 0, first = true, held = 0, next = () => {};
  const byteNs = () => ACKNOWLEDGED_BITS * (bus.sclHighPeriod + bus.sclLowPeriod) * CYCLE_NS;
  const alarm = chip.clock.createAlarm(() => next());
  const after = (nanos, action) => { next = action; alarm.schedule(nanos); };
  bus.onStart = () => { first = true; after(byteNs() / ACKNOWLEDGED_BITS, () => bus.completeStart()); };
  bus.onStop = () => after(byteNs() / ACKNOWLEDGED_BITS, () => bus.completeStop());
  bus.onConnect = (address) => after(byteNs(), () => bus.completeConnect(address === TARGET && angle() !== null));
  bus.onWriteByte = (value) => after(byteNs(), () => {
    if (first) pointer = value;
    first = false;
    bus.completeWrite(true);
  });
  bus.onReadByte = () => after(byteNs(), () => {
    let value = 0;
    if (pointer === STATUS) value = MAGNET;
    if (pointer === RAW_ANGLE) { held = angle(); value = held >> 8; }
    if (pointer === RAW_ANGLE + 1) value = held & 255;
    pointer = pointer === RAW_ANGLE + 1 ? RAW_ANGLE : pointer + 1;
    bus.completeRead(value);
  });
}
