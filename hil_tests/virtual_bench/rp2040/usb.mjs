// A host at a chip's USB port, which opens the serial port (CDC) with the firmware's name for it, and of the console
// fetches what it says. rp2040js has the controller; here is the bus: a packet takes its time, one that nobody fetches
// stays where it is, and of two buffers the first goes first.
const NAME = 'Jointbench line'; // usb_line.py
const SETUP_BYTES = 8, PACKET = 64;
const PACKET_NS = 50e3, POLL_NS = 125e3; // of a full packet on the bus with its handshake; of a host that has to send
const GET_DESCRIPTOR = 6, SET_ADDRESS = 5, SET_CONFIGURATION = 9, LINE_CODING = 0x20, LINE_STATE = 0x22;
const CONFIGURATION = 2, STRING = 3, INTERFACE = 4, ENDPOINT = 5, CDC_CONTROL = 2, CDC_DATA = 10; // in descriptors
const FIRST_CONTROL = 0x80, LAST_CONTROL = 0xfc; // of the buffers' control words; IN first, then OUT
const PULL_UP = 1 << 16; // of the controller: the chip wants to be seen
const AVAILABLE = 1 << 10, FULL = 1 << 15, LENGTH = 0x3ff, SECOND = 16, DOUBLE = 1 << 30;

export class UsbHost {
  // heard(bytes): called with what the port has sent.
  constructor(heard) {
    this.heard = heard;
    this.reads = true; // or what the port has to say stays there
    this.wired = true;
    this.plugged = false; // seen by the host, which has reset the bus
    this.names = []; // of the serial ports' interfaces, once they are known
  }

  attach(chip) {
    const usb = chip.rp2040.usbCtrl, { clock } = chip;
    Object.assign(this, { chip, usb, waiting: [], packets: [], control: [], ready: {}, asked: null, port: null });
    Object.assign(this, { fetching: null, offered: false, isAnswered: false, canReturn: false });
    this.view = chip.rp2040.usbDPRAMView;
    const original = usb.DPRAMUpdated.bind(usb);
    usb.DPRAMUpdated = (offset, value) => {
      const isIn = offset >= FIRST_CONTROL && offset <= LAST_CONTROL && !(offset & 4);
      if (!isIn || offset === FIRST_CONTROL) original(offset, value);
      else if (value & AVAILABLE) { this.packets.push(offset); this.fetch(); }
    };
    this.fetched = clock.createAlarm(() => this.finishFetch());
    this.sent = clock.createAlarm(() => this.finishSend());
    this.gap = clock.createAlarm(() => { if (!this.asked) this.next(); });
    const control = usb.handleSieCtrlWrite.bind(usb);
    usb.handleSieCtrlWrite = (value) => {
      const was = usb.sieCtrl & PULL_UP;
      control(value);
      if (was && !(value & PULL_UP)) { this.plugged = false; this.port = null; }
      if (!was && value & PULL_UP && this.wired) usb.resetDevice();
    };
    usb.onResetReceived = () => this.enumerate();
    usb.onEndpointWrite = (endpoint, bytes) => { if (endpoint === 0) this.controlIn(bytes); };
    usb.onEndpointRead = (endpoint, size) => {
      if (endpoint === 0) this.controlOut(size);
      else { this.ready[endpoint] = size; this.offer(); }
    };
  }

  // 'read' and 'ignore': whether what the port has to say is fetched; 'unplug' and 'plug'.
  tell(order) {
    if (order === 'unplug') { this.wired = this.plugged = false; this.port = null; this.waiting = []; }
    if (order === 'plug') { this.wired = true; this.usb.resetDevice(); }
    if (order === 'read' || order === 'ignore') this.reads = order === 'read';
    this.fetch();
  }

  feedByte(value) { if (this.port) { this.waiting.push(value); this.offer(); } }

  offer() {
    if (this.offered || !this.waiting.length || !this.ready[this.port?.out]) return;
    this.offered = true;
    this.sent.schedule(POLL_NS);
  }

  finishSend() {
    const { port, ready, waiting } = this, size = ready[port?.out];
    this.offered = false;
    if (!size) return;
    ready[port.out] = 0;
    this.usb.endpointReadDone(port.out, Uint8Array.from(waiting.splice(0, Math.min(size, PACKET))), PACKET_NS / 1e3);
  }

  fetch() {
    if (this.fetching || !this.plugged) return;
    this.fetching = this.packets.find((offset) => !this.isOurs(offset) || this.reads) ?? null;
    if (this.fetching) this.fetched.schedule(PACKET_NS);
  }

  isOurs(offset) { return (offset - FIRST_CONTROL) >> 3 === this.port?.in; }

  finishFetch() {
    if (this.fetching === null) return; // the bus was reset meanwhile
    const offset = this.fetching, endpoint = (offset - FIRST_CONTROL) >> 3, { view } = this;
    this.fetching = null;
    this.packets.splice(this.packets.indexOf(offset), 1);
    const settings = view.getUint32(8 * endpoint, true), place = settings & 0xffc0;
    let value = view.getUint32(offset, true);
    for (const second of settings & DOUBLE ? [0, 1] : [0]) {
      const word = value >>> (SECOND * second);
      if (!(word & AVAILABLE)) continue;
      const begin = place + PACKET * second;
      if (this.isOurs(offset)) this.heard(this.chip.rp2040.usbDPRAM.slice(begin, begin + (word & LENGTH)));
      value &= ~((AVAILABLE | FULL) << (SECOND * second));
    }
    view.setUint32(offset, value, true);
    this.usb.indicateBufferReady(endpoint, false);
    this.fetch();
  }

  // Requests at endpoint 0, one after the other: [type, request, value, index, length or bytes to send, what then].
  enumerate() {
    this.plugged = true;
    Object.assign(this, { control: [], asked: null, packets: [], fetching: null, port: null, ready: {}, names: [] });
    this.isAnswered = this.canReturn = false;
    this.ask(0, SET_ADDRESS, 1, 0, 0);
    this.ask(0x80, GET_DESCRIPTOR, CONFIGURATION << 8, 0, 9, (head) => {
      this.ask(0x80, GET_DESCRIPTOR, CONFIGURATION << 8, 0, head[2] | head[3] << 8, (all) => this.configure(all));
    });
  }

  configure(descriptors) {
    const ports = [];
    let ends = null;
    for (let at = 0; at < descriptors.length; at += descriptors[at]) {
      const [, type, second, , , kind, , , name] = descriptors.slice(at, at + descriptors[at]);
      if (type === INTERFACE && kind === CDC_CONTROL) ports.push({ number: second, name, ends: {} });
      if (type === INTERFACE) ends = kind === CDC_DATA ? ports.at(-1).ends : null;
      if (type === ENDPOINT && ends) ends[second & 0x80 ? 'in' : 'out'] = second & 15;
    }
    this.ask(0, SET_CONFIGURATION, 1, 0, 0);
    for (const { number, name, ends: its } of ports) {
      this.ask(0x80, GET_DESCRIPTOR, STRING << 8 | name, 0x409, 255, (answer) => {
        const text = Buffer.from(answer.slice(2)).toString('utf16le');
        this.names.push(text);
        if (text === NAME) this.open(number, its);
      });
    }
  }

  open(number, ends) {
    this.ask(0x21, LINE_CODING, 0, number, Uint8Array.of(0, 16, 14, 0, 0, 0, 8));
    this.ask(0x21, LINE_STATE, 3, number, 0, () => { this.port = ends; this.offer(); });
  }

  ask(...request) { this.control.push(request); this.gap.schedule(POLL_NS); }

  next() {
    this.asked = this.control.shift() ?? null;
    if (!this.asked) return;
    const [type, request, value, index, data] = this.asked, length = data.length ?? data;
    const bytes = new DataView(new ArrayBuffer(SETUP_BYTES));
    bytes.setUint8(0, type);
    bytes.setUint8(1, request);
    [value, index, length].forEach((word, k) => bytes.setUint16(2 + 2 * k, word, true));
    this.answer = [];
    this.usb.sendSetupPacket(new Uint8Array(bytes.buffer));
  }

  controlIn(bytes) {
    if (!this.asked) return;
    const [type, , , , length] = this.asked;
    this.answer.push(...bytes);
    if (!(type & 0x80) && !bytes.length) this.finish();
    // An answer's end: all of it, or a packet that is not full. The board waits for an empty one in return.
    else if (type & 0x80 && (this.answer.length >= length || bytes.length < PACKET)) this.isAnswered = true;
    if (this.isAnswered && this.canReturn) this.finish();
  }

  controlOut(size) {
    const data = this.asked?.[4];
    if (size && data?.length) this.usb.endpointReadDone(0, data);
    else if (!size && this.asked && this.asked[0] & 0x80) {
      this.usb.endpointReadDone(0, new Uint8Array());
      this.canReturn = true;
      if (this.isAnswered) this.finish();
    }
  }

  finish() {
    const then = this.asked[5], { answer } = this;
    this.isAnswered = this.canReturn = false;
    this.asked = null;
    then?.(answer);
    this.gap.schedule(POLL_NS);
  }
}
