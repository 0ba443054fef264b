// Converters for strain-gauge bridges, as their data sheets have them: HX711 (Avia) at two pins, ADS1220 (Texas
// Instruments, SBAS501) on SPI. value() gives the bridge now, in counts of 24 bits at the gain of 128.
import { attachSpi } from './spi.mjs';

const TOP = 0x7fffff, GAIN = 128, MS = 1e6;
const clip = (count) => Math.max(-TOP - 1, Math.min(TOP, Math.round(count)));

// HX711. Times in ns: T1 from DOUT's fall to the first pulse, T2 until a bit is there, T3 and T4 of pulses.
const T1 = 100, T2 = 100, SHORTEST = 200, LONGEST = 50e3, SLEEP = 60e3, BITS = 24;
const GAINS = new Map([[25, 128], [26, 32], [27, 64]]), SETTLING = new Map([[10, 400 * MS], [80, 50 * MS]]);

// level(high) drives DOUT. `drift` is how much its oscillator is fast, as a part of its rate.
export function attachHx711(chip, { clock, data, rate = 10, drift = 0 }, value, level, complain) {
  const sck = chip.rp2040.gpio[clock];
  const period = 1e9 / (rate * (1 + drift));
  let gain = GAIN, held = 0, pulses = 0, ready = false, asleep = false, high = false, at = -Infinity, fellNs = 0;
  let coming = true, early = false; // coming: DOUT's level T2 after an edge
  const note = (words) => complain(`HX711 at ${data}: ${words}`);
  const show = chip.clock.createAlarm(() => level(coming));
  const convert = chip.clock.createAlarm(() => {
    convert.schedule(period);
    held = clip(value() * gain / GAIN);
    pulses = 0;
    ready = true;
    fellNs = chip.nanos;
    level(false);
  });
  const sleep = chip.clock.createAlarm(() => {
    asleep = true;
    ready = false;
    convert.cancel();
    level(true);
  });
  const wake = () => {
    asleep = ready = false;
    gain = GAIN;
    pulses = 0;
    level(true);
    convert.schedule(SETTLING.get(rate));
  };
  sck.addListener((state) => {
    const rises = state === 1, now = chip.nanos;
    if (rises === high) return;
    high = rises;
    const lasted = now - at;
    at = now;
    if (!rises) {
      sleep.cancel();
      if (asleep) { wake(); return; }
      if (early) note('pulsed though DOUT is high');
      if (lasted < SHORTEST) note(`PD_SCK was high for ${Math.round(lasted)} ns, ${SHORTEST} it needs`);
      if (lasted > LONGEST) note(`PD_SCK was high for ${Math.round(lasted / 1e3)} us, 50 it bears`);
      return;
    }
    sleep.schedule(SLEEP);
    if (pulses > 0 && lasted < SHORTEST) note(`PD_SCK was low for ${Math.round(lasted)} ns, ${SHORTEST} it needs`);
    early = !ready && pulses === 0; // a reset, or somebody who does not look at DOUT and reads ones
    if (early) return;
    if (pulses === 0 && now - fellNs < T1) note(`the first pulse came ${now - fellNs} ns after DOUT's fall`);
    pulses++;
    ready = false;
    if (pulses <= BITS) coming = (held >> (BITS - pulses) & 1) === 1;
    else {
      coming = true;
      if (GAINS.has(pulses)) gain = GAINS.get(pulses);
      else note(`${pulses} pulses, 27 it knows`);
    }
    show.schedule(T2);
  });
  wake();
}

// ADS1220: what is on the line when it is not asked for anything is the newest conversion.
const RATES = [20, 45, 90, 175, 330, 600, 1000], TURBO = [40, 90, 180, 350, 660, 1200, 2000];
const RESET = 0x06, START = 0x08, READ_DATA = 0x10, READ = 0x20, WRITE = 0x40, RESET_NS = 50e3 + 32 * 3906;
const LIMITS = { hz: 1e9 / 150, setupNs: 50, highNs: 50 };

// level(high) drives DRDY.
export function attachAds1220(chip, { spi, select, ready, drift = 0 }, value, level, complain) {
  let registers = [0, 0, 0, 0], data = 0, drdy = true, running = false, resetNs = -Infinity, stream = null, wanted = false;
  const note = (words) => complain(`ADS1220 at ${select}: ${words}`);
  const period = () => {
    const rates = (registers[1] >> 3 & 3) === 2 ? TURBO : RATES;
    return 1e9 / (rates[registers[1] >> 5] * (1 + drift));
  };
  const pull = (isHigh) => { drdy = isHigh; level(isHigh); };
  const convert = chip.clock.createAlarm(() => {
    data = clip(value() * (1 << (registers[0] >> 1 & 7)) / GAIN);
    pull(false);
    if (registers[1] & 4) convert.schedule(period()); // continuous
  });
  const start = () => { running = true; pull(true); convert.schedule(period()); };
  attachSpi(chip, { spi, select }, `ADS1220 at ${select}`, LIMITS, {
    begin() {
      stream = [data >> 16 & 255, data >> 8 & 255, data & 255];
      wanted = false;
    },
    exchange(byte, number) {
      if (chip.nanos - resetNs < RESET_NS && number === 0) note('spoken to within 50 us and 32 clocks of its reset');
      const answer = stream.length ? stream.shift() : 0;
      if (wanted) { wanted = write(wanted, byte); return answer; }
      if (byte === 0 && number === 0) {
        if (drdy) note('read though DRDY is high');
        pull(true);
      } else if ((byte & 0xfe) === RESET) {
        registers = [0, 0, 0, 0];
        running = false;
        convert.cancel();
        pull(true);
        resetNs = chip.nanos;
      } else if ((byte & 0xfe) === START) start();
      else if ((byte & 0xf0) === READ_DATA) { stream = [data >> 16 & 255, data >> 8 & 255, data & 255]; pull(true); }
      else if ((byte & 0xf0) === READ) stream = registers.slice(byte >> 2 & 3, (byte >> 2 & 3) + (byte & 3) + 1);
      else if ((byte & 0xf0) === WRITE) wanted = { at: byte >> 2 & 3, left: (byte & 3) + 1 };
      return answer;
    },
  }, complain);
  function write(to, byte) {
    registers[to.at] = byte;
    const rest = { at: to.at + 1, left: to.left - 1 };
    if (rest.left > 0) return rest;
    if (running) start();
    return false;
  }
  pull(true);
}
