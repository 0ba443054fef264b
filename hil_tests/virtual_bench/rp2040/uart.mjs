// A PL011 as the RP2040 has it, around the one of rp2040js, which sends in no time and whose transmit interrupt never
// rests. Here: FIFOs of 32 and a shift register, interrupts at the levels of UARTIFLS, the receive timeout, DMA's
// requests, and a byte takes its ten bits by the UART's own divider.
const DR = 0x00, FR = 0x18, IFLS = 0x34, DMACR = 0x48;
const TX_EMPTY = 1 << 7, RX_FULL = 1 << 6, TX_FULL = 1 << 5, RX_EMPTY = 1 << 4, BUSY = 1 << 3;
const RX = 1 << 4, TX = 1 << 5, TIMEOUT = 1 << 6; // interrupts
const RX_DMA = 1, TX_DMA = 2;
const SIZE = 32, LEVELS = [4, 8, 16, 24, 28], BITS = 10, TIMEOUT_BITS = 32;

// Afterwards onByte(value) is called when a byte is sent, and feedByte(value) is for when one is received.
export function mendUart(chip, uart) {
  const { clock, rp2040 } = chip, { dma } = rp2040, waiting = [];
  let shifting = -1, levels = 0x12, requests = 0;
  const bit = () => 1e9 / (uart.baudDivider ? uart.baudRate : 115200);
  const sendLevel = () => LEVELS[levels & 7], receiveLevel = () => LEVELS[(levels >> 3) & 7];
  const request = (channel, wanted) => (wanted ? dma.setDREQ(channel) : dma.clearDREQ(channel));
  const update = () => {
    rp2040.setInterrupt(uart.irq, !!(uart.interruptStatus & uart.interruptMask));
    request(uart.dreq.tx, (requests & TX_DMA) && waiting.length < SIZE);
    request(uart.dreq.rx, (requests & RX_DMA) && !uart.rxFIFO.empty);
  };
  const shift = () => {
    shifting = waiting.shift();
    uart.onBits?.(clock.nanos, clock.nanos + BITS * bit());
    if (waiting.length === sendLevel()) uart.interruptStatus |= TX;
    sent.schedule(BITS * bit());
  };
  const sent = clock.createAlarm(() => {
    uart.onByte?.(shifting);
    shifting = -1;
    if (waiting.length) shift();
    update();
  });
  const quiet = clock.createAlarm(() => {
    if (!uart.rxFIFO.empty) uart.interruptStatus |= TIMEOUT;
    update();
  });
  const read = uart.readUint32.bind(uart), write = uart.writeUint32.bind(uart);
  uart.onByte = null;
  uart.onBits = null; // when a byte's first bit begins and its last ends
  uart.overruns = 0;
  uart.checkInterrupts = update;
  uart.feedByte = (value) => {
    if (uart.rxFIFO.full) { uart.overruns++; return; }
    uart.rxFIFO.push(value);
    if (uart.rxFIFO.itemCount >= receiveLevel()) uart.interruptStatus |= RX;
    quiet.schedule(TIMEOUT_BITS * bit());
    update();
  };
  uart.readUint32 = (offset) => {
    if (offset === FR) {
      return (waiting.length ? 0 : TX_EMPTY) | (waiting.length === SIZE ? TX_FULL : 0) | (shifting < 0 ? 0 : BUSY)
        | (uart.rxFIFO.empty ? RX_EMPTY : 0) | (uart.rxFIFO.full ? RX_FULL : 0);
    }
    if (offset === IFLS) return levels;
    if (offset === DMACR) return requests;
    if (offset !== DR) return read(offset);
    const value = uart.rxFIFO.pull();
    if (uart.rxFIFO.itemCount < receiveLevel()) uart.interruptStatus &= ~RX;
    if (uart.rxFIFO.empty) uart.interruptStatus &= ~TIMEOUT;
    update();
    return value;
  };
  uart.writeUint32 = (offset, value) => {
    if (offset === IFLS) levels = value;
    else if (offset === DMACR) { requests = value; update(); }
    else if (offset !== DR) write(offset, value);
    else if (waiting.length < SIZE) {
      waiting.push(value & 255);
      if (waiting.length > sendLevel()) uart.interruptStatus &= ~TX;
      if (shifting < 0) shift();
      update();
    }
  };
}
