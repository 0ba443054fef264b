// What is wired to a chip's pins, as its config.json says (docs/boards.md): the plant's sensors, the line to the host,
// and the power stage. The plant tells a stretch of time at once; here it happens at the chip's pins at its times.
import { attachAds1220, attachHx711 } from './bridge_converters.mjs';
import { attachAs5047p, attachAs5600, attachMt6701 } from './encoders.mjs';
import { wakePio } from './pio.mjs';
import { UsbHost } from './usb.mjs';

const FIRST_ANALOG = 26, MIDDLE = 2048, CONVERSION_NS = 2000;
const PULSE_NS = 100e3; // of SYNC
const BITS = 10; // on the line for a byte
const USB_BYTE_NS = 1e3; // about what full speed leaves
const PWM = 4; // function of a pin
const ENCODERS = { as5047p: attachAs5047p, as5048: attachAs5047p, mt6701: attachMt6701, as5600: attachAs5600 };
const CONVERTERS = { hx711: attachHx711, ads1220: attachAds1220 };
const KEEPING_OFF = ['stop', 'fault', 'limit_low', 'limit_high']; // pins that keep a motor off, while they are low
const HIGH = 1; // what GPIOPin.value says of a pin that is driven so

// Things that happen at their times, whatever the chip's clock has begun with.
class Timetable {
  constructor(happen) { this.happen = happen; this.events = []; }

  attach(chip) {
    this.chip = chip;
    this.alarm = chip.clock.createAlarm(() => {
      this.happen(this.events.shift()[1]);
      this.arm();
    });
    this.arm();
  }

  add(nanos, value) { if (this.events.push([nanos, value]) === 1) this.arm(); }

  arm() { if (this.events.length) this.alarm.schedule(Math.max(0, this.events[0][0] - this.chip.nanos)); }
}

const DRIFTS = [0.02, -0.03, 0.05, -0.01]; // of converters' oscillators, of which none is like another
const isHighA = (count) => ((count + 1) & 2) !== 0; // forward is A before B
const wrapped = (count, turn) => ((Math.floor(count) % turn) + turn) % turn;

// What is wired to the chip of one of its motors, by that motor's part of config.json; of a foot's board the foot.
class Motor {
  constructor(pins, config) {
    this.pins = pins;
    this.config = config;
    this.told = { analog: {}, link: 0, bridges: [], slip: 0, cut: false, linkCut: false };
    this.count = null; // of the motor encoder at the end of what was told, with its fraction
    this.enable = false;
    this.changes = []; // of ENABLE: when, and to what
    this.opened = false; // what the brake's pin says
    this.brakeChanges = [];
    this.edges = new Timetable((count) => this.show(count));
  }

  attach(chip) {
    const { config, pins } = this, { link_encoder: link, motor_encoder: motor, foot } = config;
    chip.rp2040.gpio[config.pins.enable].addListener((state) => this.note(state === HIGH));
    this.note(false); // a chip's reset lets go of its pins, and ENABLE has a pull-down
    if (config.brake) {
      const opens = config.brake.open_level ?? 1;
      chip.rp2040.gpio[config.pins.brake].addListener((state) => this.noteBrake(state === opens));
      this.noteBrake(false);
    }
    const complain = (words) => pins.violations.push(words);
    if (link) ENCODERS[link.kind](chip, link, () => this.told.linkCut ? null : this.told.link, complain);
    if (motor?.kind in ENCODERS) {
      ENCODERS[motor.kind](chip, motor, () => wrapped(this.count ?? 0, config.facts['encoder.motor_counts']), complain);
    }
    const cells = foot ? foot.cells.map((cell) => ({ ...foot, ...cell })) : [config.torque ?? {}];
    cells.forEach((cell, number) => {
      const level = (high) => pins.drive(cell.data ?? cell.ready, high);
      const bridge = () => this.told.bridges[number] ?? 0;
      if (cell.kind) CONVERTERS[cell.kind](chip, { ...cell, drift: DRIFTS[number] }, bridge, level, complain);
    });
    this.edges.attach(chip);
  }

  tell({ analog = {}, count = 0, link = 0, bridges = [], slip = 0, cut = false, linkCut = false }, beginNs, endNs) {
    if (cut !== this.told.cut && this.count !== null) { // at a moment of its own: B does not change with it
      this.pins.drive(this.config.motor_encoder.a, cut || isHighA(Math.floor(this.count)));
      wakePio(this.pins.chip);
    }
    this.told = { analog, link, bridges, slip, cut, linkCut };
    if (this.config.motor_encoder?.kind === 'quadrature') {
      if (this.count === null) this.show(Math.floor(count));
      else this.turn(this.count, count, beginNs, endNs);
    }
    this.count = count;
  }

  answer() {
    const { changes, brakeChanges } = this;
    this.changes = [];
    this.brakeChanges = [];
    return {
      enable: this.enable, changes, duty: this.pins.duty(this.config.drive), brake: this.opened ? 2 : 0, brakeChanges,
    };
  }

  noteBrake(opened) {
    if (opened !== this.opened) this.brakeChanges.push([this.pins.chip.nanos, opened]);
    this.opened = opened;
  }

  note(enable) {
    if (enable !== this.enable) this.changes.push([this.pins.chip.nanos, enable]);
    this.enable = enable;
  }

  // The edges on the way from one count to another, which is linear in time.
  turn(from, to, beginNs, endNs) {
    const first = Math.floor(from), last = Math.floor(to);
    const at = (edge) => beginNs + (endNs - beginNs) * (edge - from) / (to - from);
    for (let count = first + 1; count <= last; count++) this.edges.add(at(count), count);
    for (let count = first; count > last; count--) this.edges.add(at(count), count - 1);
  }

  // A, B and the index pulse of a count.
  show(count) {
    const { a, index, index_width: width = 4 } = this.config.motor_encoder, levels = new Map();
    levels.set(a, this.told.cut || isHighA(count));
    levels.set(a + 1, (count & 2) !== 0);
    if (index !== undefined) {
      levels.set(index, wrapped(count + this.told.slip, this.config.facts['encoder.motor_counts']) < width);
    }
    for (const [pin, level] of levels) if (level !== !!(this.pins.levels >> pin & 1)) this.pins.drive(pin, level);
    wakePio(this.pins.chip);
  }
}

// The driver of an RS-485 line: its enable must cover every bit, and falls soon after the last.
class LineDriver {
  constructor() { this.enabled = false; this.beganNs = this.bitsEndNs = -Infinity; this.faults = []; this.held = []; this.leads = []; }

  attach(chip, { de, uart }) {
    this.enabled = false;
    this.bitsEndNs = -Infinity;
    chip.rp2040.gpio[de].addListener((state) => {
      const { clock: { nanos } } = chip, enabled = state === HIGH;
      if (enabled === this.enabled) return;
      this.enabled = enabled;
      if (enabled) this.beganNs = nanos;
      else if (nanos < this.bitsEndNs) this.faults.push(`line.de falls ${this.bitsEndNs - nanos} ns before the last bit ends`);
      else this.held.push(nanos - this.bitsEndNs);
    });
    chip.rp2040.uart[uart].onBits = (beginNs, endNs) => {
      if (!this.enabled) this.faults.push('line.de is low as a byte begins');
      else if (this.bitsEndNs < this.beganNs) this.leads.push(beginNs - this.beganNs);
      this.bitsEndNs = endNs;
    };
  }

  // Faults; for how long it was held after a last bit, and how long it was on before a first one [ns].
  told() {
    const { faults, held, leads } = this;
    Object.assign(this, { faults: [], held: [], leads: [] });
    return { faults, held, leads };
  }
}

export class Pins {
  constructor(config) {
    this.config = config;
    this.levels = 0; // of all pins that something outside drives
    this.beginNs = 0; // of what was told
    this.endNs = 1;
    this.motors = [config, config.partner].filter(Boolean).map((own) => new Motor(this, own));
    this.roles = new Map(this.motors.flatMap((motor) => Object.entries(motor.config.analog ?? {})
      .map(([role, pin]) => [pin - FIRST_ANALOG, [motor, role]])));
    this.usb = config.line.kind === 'usb' ? new UsbHost((bytes) => this.sent.push(...bytes)) : null;
    this.byteNs = this.usb ? USB_BYTE_NS : 1e9 * BITS / config.line.baud;
    this.lineFreeNs = 0;
    this.sent = [];
    this.violations = []; // of what sensors' data sheets ask for
    for (const { config: { link_encoder: link } } of this.motors) {
      for (const pulledUp of [link?.sda, link?.scl]) if (pulledUp !== undefined) this.levels |= 1 << pulledUp;
    }
    this.line = new Timetable((byte) => (this.usb ?? this.chip.rp2040.uart[config.line.uart]).feedByte(byte));
    for (const { config: { pins } } of this.motors) {
      for (const name of KEEPING_OFF) if (pins && name in pins) this.levels |= 1 << pins[name];
    }
    this.changing = new Timetable(([pin, level]) => {
      this.drive(pin, level);
      wakePio(this.chip);
    });
    this.driver = new LineDriver();
    this.sync = new Timetable((level) => this.drive(config.pins.sync, level));
  }

  // Wire a chip that has just started.
  attach(chip) {
    const { config } = this, { rp2040 } = chip;
    this.chip = chip;
    const { sio } = rp2040; // pins as they are read, those that the chip drives too; quicker than to ask all thirty
    Object.defineProperty(rp2040, 'gpioValues', {
      get: () => (this.levels & ~sio.gpioOutputEnable) | (sio.gpioValue & sio.gpioOutputEnable),
    });
    rp2040.gpio.forEach((pin, number) => { if (this.levels >> number & 1) pin.setInputValue(true); });
    if (this.usb) this.usb.attach(chip);
    else rp2040.uart[config.line.uart].onByte = (byte) => this.sent.push(byte);
    if (config.line.de !== undefined) this.driver.attach(chip, config.line);
    const { adc } = rp2040;
    adc.onADCRead = (input) => {
      adc.currentChannel = input;
      adc.channelValues[input] = this.sample(input);
      adc.sampleAlarm.schedule(CONVERSION_NS);
    };
    for (const part of [...this.motors, this.line, this.sync, this.changing]) part.attach(chip);
  }

  // What happens from the end of what was told before to `to`, in ns of the chip: `analog` has by role the counts of
  // equal parts of this time, `count` is the motor encoder's at its end and `link` the other's, `sync` are the times at
  // which pulses begin, `bridges` what strain gauges give, `slip` how many counts the motor encoder's A and B have lost,
  // `cut` whether the wire of its A is, whose pin is pulled up then, `linkCut` that of the other's answers, `line` the times at which bytes set out, with the
  // bytes in hexadecimal; `usb` is an order to the host at the chip's USB port. `partner` has what is a motor's of a
  // second motor. `levels` are the times at which pins get other levels, with their numbers and those levels.
  tell({ to, partner = {}, sync = [], line = [], usb = null, levels = [], ...first }) {
    this.beginNs = this.endNs > 1 ? this.endNs : this.chip.nanos;
    this.endNs = to;
    if (usb) this.usb.tell(usb);
    for (const nanos of sync) {
      this.sync.add(nanos, true);
      this.sync.add(nanos + PULSE_NS, false);
    }
    for (const [nanos, hex] of line) {
      this.lineFreeNs = Math.max(this.lineFreeNs, nanos);
      for (const byte of Buffer.from(hex, 'hex')) {
        this.lineFreeNs += this.byteNs;
        this.line.add(this.lineFreeNs, byte);
      }
    }
    for (const [nanos, pin, level] of levels) this.changing.add(nanos, [pin, level]);
    this.motors.forEach((motor, place) => motor.tell(place ? partner : first, this.beginNs, to));
  }

  // What the chip did since this was last asked; of a second motor in `partner`.
  told() {
    const { sent, violations } = this, [first, partner] = this.motors.map((motor) => motor.answer());
    this.sent = [];
    this.violations = [];
    return { sent: Buffer.from(sent).toString('hex'), ...first, partner, violations, ports: this.usb?.names,
      driver: this.driver.told() };
  }

  drive(number, level) {
    this.levels = level ? this.levels | (1 << number) : this.levels & ~(1 << number);
    this.chip.rp2040.gpio[number].setInputValue(level);
  }

  sample(input) {
    const { beginNs, endNs } = this, [motor, role] = this.roles.get(input) ?? [], values = motor?.told.analog[role];
    if (!values) return MIDDLE;
    const part = Math.floor((this.chip.nanos - beginNs) / (endNs - beginNs) * values.length);
    return values[Math.min(Math.max(part, 0), values.length - 1)];
  }

  // What a power stage makes of its pins: voltage by the supply's, -1 to 1; null where all switches are open.
  duty(drive) {
    if (!drive) return null;
    if (drive.kind === 'pwm_direction') {
      return this.high(drive.pwm) * (this.chip.rp2040.gpio[drive.direction].value === HIGH ? 1 : -1);
    }
    if (drive.kind !== 'half_bridges') return null;
    // In its dead times a leg is where the current takes it: half the time up, taken together.
    const [one, other] = drive.high.map((pin) => [this.high(pin), this.high(pin + 1)]);
    if (![...one, ...other].some((part) => part > 0)) return null;
    return (one[0] + 1 - one[1] - other[0] - 1 + other[1]) / 2;
  }

  // The part of the time in which a pin is high.
  high(number) {
    const { gpio, pwm } = this.chip.rp2040, pin = gpio[number];
    if (pin.functionSelect !== PWM) return pin.value === HIGH ? 1 : 0;
    const { csr, cc, top } = pwm.channels[(number >> 1) & 7], isB = number & 1;
    const part = Math.min((isB ? cc >>> 16 : cc & 0xffff) / (top + 1), 1);
    return csr & (isB ? 8 : 4) ? 1 - part : part;
  }
}
