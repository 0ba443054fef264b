// PIO in virtual time, in place of rp2040js's, which makes its steps whenever node has nothing to do, and knows neither
// dividers nor delays. A state machine with a divider of SLOW or more is stepped by the clock, but while it waits
// for a pin or a word. A faster one is stepped when something happens to it, a pin that changes or a word in its FIFO,
// until it has come around to where it was; for what its idle turns would have counted down meanwhile is made up. So the
// quadrature program of firmware/boards/drivers/rp2_quadrature_program.py costs time at edges only, and tells their times
// to a turn, 160 ns.
import { CYCLE_NS } from './core.mjs';

const SLOW = 16, IRQ_FORCE = 0x34;
const LONGEST = 256; // steps until a fast machine must have come around; one that never rests is not emulated

export function clockPio(chip) {
  for (const pio of chip.rp2040.pio) {
    pio.run = () => {};
    const write = pio.writeUint32.bind(pio); // IRQ_FORCE is missing
    pio.writeUint32 = (offset, value) => {
      if (offset !== IRQ_FORCE) { write(offset, value); return; }
      pio.irq |= value & 255;
      pio.irqUpdated();
    };
    for (const machine of pio.machines) clockMachine(chip, pio, machine);
  }
}

// Tell all machines that a pin has another level.
export function wakePio(chip) {
  for (const pio of chip.rp2040.pio) for (const machine of pio.machines) machine.wake();
}

function clockMachine(chip, pio, machine) {
  const { clock } = chip;
  let enabled = false, resting = false; // a slow one, until it is woken
  let idle = null; // where it rests, since when, and what a turn there costs and counts
  const isSlow = () => machine.clockDivInt >= SLOW;
  const cycleNs = () => (machine.clockDivInt + machine.clockDivFrac / 256) * CYCLE_NS;
  const alarm = clock.createAlarm(() => {
    if (!enabled) return;
    const before = machine.cycles;
    machine.step();
    pio.checkChangedPins();
    resting = machine.waiting;
    if (!resting) alarm.schedule(Math.max(machine.cycles - before, 1) * cycleNs());
  });
  const rest = (sinceNs) => {
    idle = null;
    let mark = null, steps = 0;
    const begin = machine.cycles;
    while (enabled && !machine.waiting && steps++ < LONGEST) {
      if (machine.pc === machine.wrapBottom) {
        const sleeping = mark && machine.y === mark.y && machine.rxFIFO.itemCount === mark.words
          && machine.outputShiftReg === mark.osr;
        if (sleeping) {
          idle = { ns: (machine.cycles - mark.cycles) * cycleNs(), counts: (mark.x - machine.x) >>> 0 };
          break;
        }
        mark = { cycles: machine.cycles, x: machine.x, y: machine.y, osr: machine.outputShiftReg,
          words: machine.rxFIFO.itemCount };
      }
      machine.step();
    }
    pio.checkChangedPins();
    if (idle) idle.sinceNs = sinceNs + (machine.cycles - begin) * cycleNs();
  };
  machine.wake = () => {
    if (!enabled) return;
    if (isSlow()) {
      if (resting) alarm.schedule(cycleNs());
      resting = false;
      return;
    }
    let sinceNs = clock.nanos;
    if (idle) {
      const turns = Math.max(0, Math.ceil((clock.nanos - idle.sinceNs) / idle.ns));
      machine.x = (machine.x - turns * idle.counts) >>> 0;
      sinceNs = idle.sinceNs + turns * idle.ns;
    }
    rest(sinceNs);
  };
  Object.defineProperty(machine, 'enabled', {
    get: () => enabled,
    set: (value) => {
      const begins = value && !enabled;
      enabled = value;
      if (!begins) return;
      resting = false;
      isSlow() ? alarm.schedule(cycleNs()) : rest(clock.nanos);
    },
  });
  const writeFifo = machine.writeFIFO.bind(machine);
  machine.writeFIFO = (value) => { writeFifo(value); machine.wake(); };
}
