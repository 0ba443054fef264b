// An RP2040 on a flash file, in virtual time: rp2040js 1.4.1 with what it lacks (uart.mjs, pio.mjs, flash.mjs, core.mjs
// and here). A reset, by watchdog or machine.reset(), starts the chip anew on what its flash holds.
//
// Times are nanoseconds of the chip's own crystal since its first start. The core runs at 125 MHz from its first
// instruction on, at the cycles that rp2040js counts: flash cache, wait states and DMA's share of the buses cost
// nothing.
import { Lockup, faultOnUnaligned } from './core.mjs';
import { FILES, Flash, identify, trapBootrom } from './flash.mjs';
import { clockPio } from './pio.mjs';
import { quickCore } from './quick_core.mjs';
import { mendUart } from './uart.mjs';

const SECOND_STAGE = 0x10000000; // the bootrom copies it to memory; it runs from the flash just as well
const WATCHDOG = 0x40058, ADC_INPUTS = 12;

export class Chip {
  // library: the module rp2040js. bootrom: its bytes. path: of the flash file. uid: of the flash, in hexadecimal.
  // attach(chip): called at each start.
  constructor({ library, bootrom, path, uid, attach, startNs = 0 }) {
    Object.assign(this, { library, bootrom, uid, attach, lockup: null, resets: 0 });
    this.flash = new Flash(path);
    this.start(startNs);
  }

  get nanos() { return this.startNs + this.clock.nanos; }

  get hasWatchdog() { return this.rp2040.peripherals[WATCHDOG].timer.enable; }

  // `cause` and `scratch` are what the watchdog's registers keep over a reset.
  start(startNs, cause = 0, scratch = null) {
    const simulator = new this.library.Simulator();
    this.startNs = startNs;
    this.clock = simulator.clock;
    this.rp2040 = simulator.rp2040;
    this.stalledUntil = 0; // by `clock`; the core fetches nothing before
    this.wantsReset = false;
    this.lockup = null;
    const { rp2040 } = this;
    const error = (part, words) => { throw new Lockup(`${part}: ${words}`); };
    rp2040.logger = { debug() {}, info() {}, warn() {}, error };
    rp2040.loadBootrom(new Uint32Array(this.bootrom.buffer.slice(
      this.bootrom.byteOffset, this.bootrom.byteOffset + this.bootrom.length)));
    this.flash.load(rp2040.flash);
    trapBootrom(this);
    identify(this, this.uid);
    clockPio(this);
    for (const uart of rp2040.uart) mendUart(this, uart);
    mendAdc(rp2040.adc);
    faultOnUnaligned(rp2040.core);
    const watchdog = rp2040.peripherals[WATCHDOG];
    watchdog.reason = cause;
    if (scratch) watchdog.scratchData.set(scratch);
    watchdog.onWatchdogTrigger = () => {
      watchdog.timer.enable = false; // at zero it would set itself off for ever
      this.wantsReset = true;
    };
    rp2040.core.PC = SECOND_STAGE;
    this.executeSome = quickCore(rp2040, FILES);
    this.attach(this);
  }

  // Let the core fetch nothing for so long, while the clock and everything else goes on.
  stall(nanos) { this.stalledUntil = this.clock.nanos + nanos; }

  // Run to a time; the last instruction may end some cycles after it.
  runTo(untilNs) {
    while (this.nanos < untilNs) {
      try {
        this.execute(untilNs - this.startNs);
      } catch (error) {
        if (!(error instanceof Lockup)) throw error;
        this.lockup = `${error.message}; the program is at 0x${this.rp2040.core.PC.toString(16)}`;
        this.stalledUntil = Infinity;
      }
      if (this.wantsReset) {
        const { reason, scratchData } = this.rp2040.peripherals[WATCHDOG];
        this.resets++;
        this.start(this.nanos, reason, scratchData);
      }
    }
  }

  execute(end) {
    const { clock, executeSome, rp2040: { core } } = this;
    while (clock.nanos < end && !this.wantsReset) {
      if (clock.nanos >= this.stalledUntil && !core.waiting) executeSome(end);
      else {
        const alarm = clock.nextAlarm, stalled = clock.nanos < this.stalledUntil ? this.stalledUntil : end;
        clock.tick(Math.min(alarm ? alarm.nanos : end, stalled, end) - clock.nanos);
      }
    }
  }
}

// The round robin of rp2040js masks the input's number by its place in the register, and so converts input 0 alone.
function mendAdc(adc) {
  Object.defineProperty(adc, 'activeChannel', {
    get() { return (this.cs >> ADC_INPUTS) & 7; },
    set(input) { this.cs = (this.cs & ~(7 << ADC_INPUTS)) | (input << ADC_INPUTS); },
  });
}
