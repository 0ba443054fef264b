// Devices on an SPI of the chip, each with a select pin of its own, at the times that their data sheets ask for. What a
// program does against them is noted, and the device answers wrongly, as a real one may.
const BYTE_BITS = 8, SHIFTING_ON_RISE = 1; // mode 1: every device here shifts on rising edges and is read on falling ones
const GARBLED = 0x24;

const buses = new WeakMap(); // by the chip's bus

// device: begin() as select falls; exchange(byte, number) gives the answer to a byte; end(bytes) as select rises.
// limits: hz of the clock at most, setupNs from select to the first edge, highNs of select between two frames.
export function attachSpi(chip, { spi, select }, part, { hz, setupNs = 0, highNs = 0 }, device, complain) {
  const bus = chip.rp2040.spi[spi], pin = chip.rp2040.gpio[select];
  if (!buses.has(bus)) buses.set(bus, listen(chip, bus));
  const slave = { pin, device, bytes: 0, wrong: false, fellNs: 0, roseNs: -Infinity };
  const note = (words) => { slave.wrong = true; complain(`${part}: ${words}`); };
  slave.check = () => {
    if (bus.clockFrequency > hz) note(`clocked at ${bus.clockFrequency} Hz, ${hz} it takes`);
    if (bus.spiMode !== SHIFTING_ON_RISE) note(`SPI mode ${bus.spiMode}, it speaks mode 1`);
    if (slave.bytes > 0) return;
    const setup = chip.nanos + 0.5e9 / bus.clockFrequency - slave.fellNs;
    if (setup < setupNs) note(`its first edge is ${Math.round(setup)} ns after select, ${setupNs} it needs`);
  };
  pin.addListener((state) => {
    if (state === 0) {
      if (chip.nanos - slave.roseNs < highNs) {
        note(`select was high for ${Math.round(chip.nanos - slave.roseNs)} ns, ${highNs} it needs`);
      }
      slave.fellNs = chip.nanos;
      slave.bytes = 0;
      slave.selected = true;
      device.begin();
    } else if (slave.selected) {
      slave.selected = false;
      slave.roseNs = chip.nanos;
      device.end?.(slave.bytes);
      slave.wrong = false;
    }
  });
  buses.get(bus).push(slave);
}

function listen(chip, bus) {
  const slaves = [];
  let received = 0;
  const done = chip.clock.createAlarm(() => bus.completeTransmit(received));
  bus.onTransmit = (value) => {
    received = 255; // the pull-up's
    for (const slave of slaves) {
      if (!slave.selected) continue;
      slave.check();
      received &= slave.device.exchange(value, slave.bytes++) ^ (slave.wrong ? GARBLED : 0);
    }
    done.schedule(1e9 * BYTE_BITS / bus.clockFrequency);
  };
  return slaves;
}
