// The flash: a file that outlives resets and power cuts. rp2040js cannot write flash, so the two routines of the
// bootrom that erase and program become breakpoints, and the flash does it: as long as a Pico's W25Q16JV typically
// takes, with the processor standing. What it did lies beside its file, sector by sector and page by page: FILE.log has
// lines of "erase OFFSET" and "program OFFSET BYTES", bytes in hexadecimal.
import fs from 'node:fs';
import { Lockup } from './core.mjs';

const SECTOR = 4096, SECTOR_NS = 45e6, PAGE = 256, PAGE_NS = 4e5;
const XIP = 4, MIRROR = 0xffffff; // upper 6 bits of flash's addresses, and where it is there four times
export const FILES = 0xa0000; // where its files begin
const FUNCTIONS = 0x14; // where the bootrom keeps the address of its table of functions: codes and entries
const ERASE = code('RE'), PROGRAM = code('RP');
const SSI = 0x18000, DATA = 0x60, READ_ID = 0x4b, BEFORE_ID = 5, ID = 8; // a command and four bytes without meaning
const BREAKPOINT = 0xbe00, BREAK_ERASE = 1, BREAK_PROGRAM = 2;

function code(letters) { return letters.charCodeAt(0) | (letters.charCodeAt(1) << 8); }

export class Flash {
  constructor(path) {
    this.file = fs.openSync(path, 'r+');
    this.log = fs.openSync(`${path}.log`, 'a');
    this.content = fs.readFileSync(path);
  }

  load(memory) {
    this.memory = memory;
    memory.set(this.content);
  }

  erase(at, count) {
    this.write(at, Buffer.alloc(count, 0xff));
    for (let k = at; k < at + count; k += SECTOR) fs.writeSync(this.log, `erase ${k}\n`);
  }

  // Programming clears bits, and sets none.
  program(at, data) {
    this.write(at, data.map((byte, k) => byte & this.content[at + k]));
    for (let k = 0; k < data.length; k += PAGE) {
      fs.writeSync(this.log, `program ${at + k} ${data.subarray(k, k + PAGE).toString('hex')}\n`);
    }
  }

  write(at, data) {
    const { length } = this.content;
    if (at + data.length > length) throw new Lockup(`flash is written at 0x${at.toString(16)}, behind its end`);
    this.content.set(data, at);
    this.memory.set(data, at);
    fs.writeSync(this.file, data, 0, data.length, at);
  }
}

// Let the flash tell its number, which is the board's uid; rp2040js has the same for all.
export function identify(chip, uid) {
  const ssi = chip.rp2040.peripherals[SSI], bytes = Buffer.from(uid, 'hex').subarray(0, ID);
  const read = ssi.readUint32.bind(ssi), write = ssi.writeUint32.bind(ssi);
  let place = BEFORE_ID + ID; // of the next byte of an answer; behind it there is none under way
  ssi.writeUint32 = (offset, value) => {
    if (offset === DATA && value === READ_ID && place >= BEFORE_ID + ID) place = 0;
    else write(offset, value);
  };
  ssi.readUint32 = (offset) => {
    if (offset !== DATA || place >= BEFORE_ID + ID) return read(offset);
    return bytes[place++ - BEFORE_ID] ?? 0;
  };
}

// Add to a set the numbers of pages behind the image that are read from now on, until the chip starts anew.
export function noteReads({ rp2040 }, pages) {
  for (const name of ['readUint8', 'readUint16', 'readUint32']) {
    const read = rp2040[name].bind(rp2040);
    rp2040[name] = (address) => {
      const place = address & MIRROR; // flash is there four times, cached or not
      if (address >>> 26 === XIP && place >= FILES) pages.add(place / PAGE | 0);
      return read(address);
    };
  }
}

export function trapBootrom(chip) {
  const { rp2040, flash } = chip, { core } = rp2040, rom = new DataView(rp2040.bootrom.buffer);
  for (let at = rom.getUint16(FUNCTIONS, true); rom.getUint16(at, true); at += 4) {
    const name = rom.getUint16(at, true), entry = rom.getUint16(at + 2, true) & ~1;
    if (name === ERASE) rom.setUint16(entry, BREAKPOINT | BREAK_ERASE, true);
    if (name === PROGRAM) rom.setUint16(entry, BREAKPOINT | BREAK_PROGRAM, true);
  }
  rp2040.onBreak = (number) => {
    const [at, second, third] = core.registers;
    if (number === BREAK_ERASE) { // (offset, count, …)
      flash.erase(at, second);
      chip.stall(second / SECTOR * SECTOR_NS);
    } else if (number === BREAK_PROGRAM) { // (offset, data, count)
      flash.program(at, Buffer.from(Array.from({ length: third }, (_, k) => rp2040.readUint8(second + k))));
      chip.stall(third / PAGE * PAGE_NS);
    } else throw new Lockup(`breakpoint ${number}`); // the SDK's panic and its fault handlers
    core.PC = core.LR & ~1;
  };
}
