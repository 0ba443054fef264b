// Absolute encoders on the buses of the chip, as their data sheets (ams) have them, with a magnet that is as it should
// be. angle() gives the count now; a bus takes its time.
import { CYCLE_NS } from './core.mjs';

const BYTE_BITS = 8, ACKNOWLEDGED_BITS = 9;

// AS5047P on SPI: frames of 16 bits, each answering the one before.
export const AS5047P_COUNTS = 16384;
const ERRFL = 0x0001, DIAAGC = 0x3ffc, ANGLECOM = 0x3fff, ADDRESS = 0x3fff;
const SETTLED = 0x0180; // DIAAGC: the offset loop has settled, the gain is in its middle

export function attachAs5047p(chip, { spi, select }, angle) {
  const bus = chip.rp2040.spi[spi], pin = chip.rp2040.gpio[select];
  let answer = 0, request = 0, bytes = 0, received = 0;
  const registers = new Map([[ERRFL, () => 0], [DIAAGC, () => SETTLED], [ANGLECOM, angle]]);
  const done = chip.clock.createAlarm(() => bus.completeTransmit(received));
  pin.addListener((state) => {
    if (state !== 0 && bytes === 2) answer = withParity(registers.get(request & ADDRESS)?.() ?? 0);
    bytes = request = 0;
  });
  bus.onTransmit = (value) => {
    const selected = pin.value === 0;
    received = selected && bytes < 2 ? (answer >> (BYTE_BITS * (1 - bytes))) & 255 : 255; // the pull-up's
    if (selected) { request = (request << BYTE_BITS) | value; bytes++; }
    done.schedule(1e9 * BYTE_BITS / bus.clockFrequency);
  };
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
  bus.onConnect = (address) => after(byteNs(), () => bus.completeConnect(address === TARGET));
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
