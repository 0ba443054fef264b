// The quick core (virtual_bench/rp2040/quick_core.mjs) beside the one of rp2040js, on two chips that are the same:
// node compare_cores.mjs RP2040JS BOOTROM FLASH COPY COUNT MS, FLASH and COPY two files that are the same. First COUNT
// random instructions, each from a random state, then the program in the flash for MS milliseconds, compared after each.
// Prints, as JSON, what was the same and the first difference.
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { Chip } from './virtual_bench/rp2040/chip.mjs';
import { CYCLE_NS, Lockup } from './virtual_bench/rp2040/core.mjs';

const [folder, rom, ...files] = process.argv.slice(2, 6), [count, milliseconds] = process.argv.slice(6).map(Number);
const library = await import(pathToFileURL(path.resolve(folder, 'dist/esm/index.js')));
const bootrom = fs.readFileSync(rom);
const chips = files.map((file) => new Chip({ library, bootrom, path: file, uid: '0123456789abcdef', attach() {} }));
const [plain, quick] = chips;
const byRp2040js = () => plain.clock.tick(plain.rp2040.core.executeInstruction() * CYCLE_NS);
const RAM = 0x20000000, CODE = RAM + 0x8000, SPAN = 0x200;
const EDGES = [0, 1, 2, 31, 32, 33, 255, 256, 0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe, 0xffffffff];

let seed = 1;
const below = (limit) => { // xorshift32
  seed ^= seed << 13; seed ^= seed >>> 17; seed ^= seed << 5;
  return (seed >>> 0) % limit;
};

const state = ({ clock, rp2040: { core } }) => [...core.registers, core.N, core.Z, core.C, core.V, core.cycles, core.PM,
  core.IPSR, core.waiting, core.pendingInterrupts, clock.nanos].join();
const memory = ({ rp2040: { sram } }) => crypto.createHash('sha1').update(sram).digest('hex');

function setOut(opcodes, registers, flags) {
  for (const { rp2040: { core, sramView } } of chips) {
    opcodes.forEach((opcode, k) => sramView.setUint16(CODE - RAM + 2 * k, opcode, true));
    core.registers.set(registers);
    [core.N, core.Z, core.C, core.V] = [1, 2, 4, 8].map((bit) => !!(flags & bit));
    core.waiting = core.PM = core.interruptsUpdated = false;
    core.pendingSVCall = false;
  }
}

function outcome(chip, step) {
  try {
    step();
  } catch (error) {
    if (!(error instanceof Lockup)) throw error;
    return error.message;
  }
  return state(chip);
}

function randomOnes() {
  for (let number = 0; number < count; number++) {
    const registers = Array.from({ length: 16 }, () => (below(3) ? RAM + 0x10000 + below(SPAN) * (below(4) ? 4 : 1)
      : below(2) ? EDGES[below(EDGES.length)] : below(0x100)));
    registers[13] = RAM + 0x20000 + 4 * below(SPAN);
    registers[15] = CODE;
    const opcodes = [below(8) ? below(0xe800) : 0xf000 + below(0x800), below(4) ? 0xd000 + below(0x1000) : below(0x10000)];
    if (opcodes[0] >> 8 === 0xbe || opcodes[0] >> 8 === 0xde) continue; // breakpoints are the SDK's panics
    setOut(opcodes, registers, below(16));
    const expected = outcome(plain, byRp2040js), got = outcome(quick, () => quick.executeSome(quick.clock.nanos + 1));
    if (expected !== got) return { number, opcodes, expected, got };
    if (number % 1000 === 0 && memory(plain) !== memory(quick)) return { number, opcodes, memory: true };
  }
  return memory(plain) === memory(quick) ? null : { memory: true };
}

function program() {
  chips.forEach((chip) => chip.start(0));
  plain.executeSome = byRp2040js;
  for (let end = 1; end <= milliseconds; end++) {
    chips.forEach((chip) => chip.runTo(1e6 * end));
    if (state(plain) !== state(quick) || memory(plain) !== memory(quick)) return { milliseconds: end };
  }
  return null;
}

const difference = randomOnes() ?? program();
console.log(JSON.stringify({ difference, cycles: quick.rp2040.core.cycles }));
