// The core's usual instructions, chosen by one switch: rp2040js compares an instruction with some eighty patterns in
// turn, looks each address up among its peripherals, and asks its clock for an alarm after each. Here are the
// instructions that take nearly all of a program's time, and only where program and data lie in memory or in the flash's
// image; all else is left to rp2040js. Registers, flags, memory, cycles and time are the same after each
// (hil_tests/test_rp2040_core.py). The start of a board, 3.4 s of its time, takes 3.4 s of a processor with it and 8.3 s
// without.
import { CYCLE_NS } from './core.mjs';

const RAM = 0x20000000, FLASH = 0x10000000;

// Returns a function that executes instructions and lets the clock go on with each, until its next alarm, a time, or an
// instruction of rp2040js is over: what else there is can only have changed then. `flashEnd`: by offset, where flash
// ends that may be read without anybody being told (flash.mjs notes what is read of files).
export function quickCore({ core, clock, sram, flash }, flashEnd) {
  const r = core.registers;
  const ram8 = sram, ram16 = new Uint16Array(sram.buffer), ram32 = new Uint32Array(sram.buffer), ramSize = sram.length;
  const flash8 = flash, flash16 = new Uint16Array(flash.buffer), flash32 = new Uint32Array(flash.buffer);

  function add(a, b) {
    const sum = a + b, result = sum | 0;
    core.N = result < 0;
    core.Z = result === 0;
    core.C = sum > 0xffffffff;
    core.V = result !== (a | 0) + (b | 0);
    return result;
  }

  function subtract(a, b) {
    const result = (a - b) | 0;
    core.N = result < 0;
    core.Z = result === 0;
    core.C = a >= b;
    core.V = ((a ^ b) & (a ^ result)) < 0;
    return result;
  }

  function logic(result) {
    core.N = result < 0;
    core.Z = result === 0;
    return result;
  }

  function holds(condition) {
    switch (condition) {
      case 0: return core.Z;
      case 1: return !core.Z;
      case 2: return core.C;
      case 3: return !core.C;
      case 4: return core.N;
      case 5: return !core.N;
      case 6: return core.V;
      case 7: return !core.V;
      case 8: return core.C && !core.Z;
      case 9: return !core.C || core.Z;
      case 10: return core.N === core.V;
      case 11: return core.N !== core.V;
      case 12: return core.N === core.V && !core.Z;
      default: return core.N !== core.V || core.Z;
    }
  }

  function quickly(until) {
    let pc = r[15], now = clock.nanos, total = 0;
    run: for (;;) {
      const inFlash = pc - FLASH, inRam = pc - RAM;
      let opcode, next = pc + 2, cycles = 1;
      if (inFlash >= 0 && inFlash < flashEnd - 2) opcode = flash16[inFlash >>> 1];
      else if (inRam >= 0 && inRam < ramSize - 2) opcode = ram16[inRam >>> 1];
      else break;

      const low = opcode & 7, second = (opcode >> 3) & 7, third = (opcode >> 6) & 7, high = (opcode >> 8) & 7;
      const five = (opcode >> 6) & 31, eight = opcode & 255;
      let address = 0, isStore = false, size = 0, target = low, signed = false;
      switch (opcode >> 11) {
        case 0: { // LSLS
          const input = r[second];
          if (five) core.C = !!(input & (1 << (32 - five)));
          r[low] = logic(input << five);
          break;
        }
        case 1: { // LSRS
          const input = r[second];
          core.C = !!((input >>> (five ? five - 1 : 31)) & 1);
          r[low] = logic(five ? (input >>> five) | 0 : 0);
          break;
        }
        case 2: { // ASRS
          const input = r[second], shift = five || 32;
          core.C = !!(input & (1 << (shift - 1)));
          r[low] = logic(shift < 32 ? input >> shift : (input & 0x80000000) >> 31);
          break;
        }
        case 3: { // ADDS and SUBS of a register or three bits
          const operand = opcode & 0x400 ? third : r[third];
          r[low] = opcode & 0x200 ? subtract(r[second], operand) : add(r[second], operand);
          break;
        }
        case 4: r[high] = logic(eight); break; // MOVS
        case 5: subtract(r[high], eight); break; // CMP
        case 6: r[high] = add(r[high], eight); break; // ADDS
        case 7: r[high] = subtract(r[high], eight); break; // SUBS
        case 8:
          switch ((opcode >> 6) & 31) {
            case 0: r[low] = logic(r[low] & r[second]); break; // ANDS
            case 1: r[low] = logic(r[low] ^ r[second]); break; // EORS
            case 8: logic(r[low] & r[second]); break; // TST
            case 9: r[low] = subtract(0, r[second]); break; // RSBS
            case 10: subtract(r[low], r[second]); break; // CMP
            case 12: r[low] = logic(r[low] | r[second]); break; // ORRS
            case 13: r[low] = logic(Math.imul(r[low], r[second])); break; // MULS
            case 14: r[low] = logic(r[low] & ~r[second]); break; // BICS
            case 15: r[low] = logic(~r[second]); break; // MVNS
            case 24: case 25: case 26: case 27: { // MOV
              const to = ((opcode >> 4) & 8) | low, from = (opcode >> 3) & 15;
              if (to >= 13 || from === 15) break run;
              r[to] = r[from];
              break;
            }
            case 28: case 29: { // BX
              if (low || opcode >> 3 === 0x8ef || core.currentMode) break run;
              next = r[(opcode >> 3) & 15] & ~1;
              cycles = 2;
              break;
            }
            default: break run;
          }
          break;
        case 9: address = ((pc + 4) & ~3) + (eight << 2); size = 4; target = high; break; // LDR (literal)
        case 10: case 11: // loads and stores at the sum of two registers
          address = r[third] + r[second];
          switch ((opcode >> 9) & 7) {
            case 0: size = 4; isStore = true; break;
            case 1: size = 2; isStore = true; break;
            case 2: size = 1; isStore = true; break;
            case 3: size = 1; signed = true; break;
            case 4: size = 4; break;
            case 5: size = 2; break;
            case 6: size = 1; break;
            default: size = 2; signed = true;
          }
          break;
        case 12: address = r[second] + (five << 2); size = 4; isStore = true; break; // STR
        case 13: address = r[second] + (five << 2); size = 4; break; // LDR
        case 14: address = r[second] + five; size = 1; isStore = true; break; // STRB
        case 15: address = r[second] + five; size = 1; break; // LDRB
        case 16: address = r[second] + (five << 1); size = 2; isStore = true; break; // STRH
        case 17: address = r[second] + (five << 1); size = 2; break; // LDRH
        case 18: address = r[13] + (eight << 2); size = 4; isStore = true; target = high; break; // STR (stack)
        case 19: address = r[13] + (eight << 2); size = 4; target = high; break; // LDR (stack)
        case 20: r[high] = (pc & ~3) + 4 + (eight << 2); break; // ADR
        case 21: r[high] = r[13] + (eight << 2); break; // ADD (stack)
        case 22:
          switch ((opcode >> 6) & 31) {
            case 0: case 1: r[13] = (r[13] + ((opcode & 127) << 2)) & ~3; break; // ADD to the stack
            case 2: case 3: r[13] = (r[13] - ((opcode & 127) << 2)) & ~3; break; // SUB
            case 8: r[low] = (r[second] << 16) >> 16; break; // SXTH
            case 9: r[low] = (r[second] << 24) >> 24; break; // SXTB
            case 10: r[low] = r[second] & 0xffff; break; // UXTH
            case 11: r[low] = r[second] & 0xff; break; // UXTB
            case 16: case 17: case 18: case 19: case 20: case 21: case 22: case 23: { // PUSH
              let count = 0;
              for (let bits = opcode & 511; bits; bits &= bits - 1) count++;
              let place = r[13] - 4 * count - RAM;
              if (place < 0 || place + 4 * count > ramSize || place & 3) break run;
              for (let k = 0; k < 8; k++) {
                if (opcode & (1 << k)) { ram32[place >>> 2] = r[k]; place += 4; cycles++; }
              }
              if (opcode & 256) ram32[place >>> 2] = r[14];
              r[13] = (r[13] - 4 * count) & ~3;
              break;
            }
            default: break run;
          }
          break;
        case 23: { // POP
          if (opcode >> 9 !== 0b1011110) break run;
          let place = r[13] - RAM;
          if (place < 0 || place + 36 > ramSize || place & 3 || (opcode & 256 && core.currentMode)) {
            break run;
          }
          for (let k = 0; k < 8; k++) if (opcode & (1 << k)) { r[k] = ram32[place >>> 2]; place += 4; cycles++; }
          if (opcode & 256) {
            r[13] = RAM + place + 4;
            next = ram32[place >>> 2] & ~1;
            cycles += 2;
          } else r[13] = RAM + place;
          break;
        }
        case 24: case 25: { // STMIA and LDMIA
          const isLoad = opcode & 0x800;
          let place = r[high] - RAM;
          if (place < 0 || place + 32 > ramSize || place & 3) break run;
          for (let k = 0; k < 8; k++) {
            if (!(eight & (1 << k))) continue;
            if (isLoad) r[k] = ram32[place >>> 2];
            else ram32[place >>> 2] = r[k];
            place += 4;
            cycles++;
          }
          if (!(eight & (1 << high))) r[high] = RAM + place;
          break;
        }
        case 26: case 27: { // B (conditional)
          const condition = (opcode >> 8) & 15;
          if (condition >= 14) break run;
          if (!holds(condition)) break;
          next = pc + 4 + ((eight << 24) >> 23);
          cycles = 2;
          break;
        }
        case 28: next = pc + 4 + (((opcode & 0x7ff) << 21) >> 20); cycles = 2; break; // B
        case 30: { // BL
          const more = inFlash >= 0 && inFlash < flashEnd - 4 ? flash16[(inFlash >>> 1) + 1]
            : inRam >= 0 && inRam < ramSize - 4 ? ram16[(inRam >>> 1) + 1] : 0;
          if (more >> 14 !== 3 || !(more & 0x1000)) break run;
          const sign = (opcode >> 10) & 1, one = 1 - (sign ^ (more >> 13 & 1)), two = 1 - (sign ^ (more >> 11 & 1));
          r[14] = (pc + 4) | 1;
          const upper = (sign ? 255 << 24 : 0) | one << 23 | two << 22 | (opcode & 0x3ff) << 12;
          next = pc + 4 + (upper | (more & 0x7ff) << 1);
          cycles = 3;
          break;
        }
        default: break run;
      }
      if (size) { // memory, and loads of flash
        const offset = address - RAM;
        if (offset >= 0 && offset + size <= ramSize) {
          if (offset & (size - 1)) break run;
          if (size === 4) isStore ? ram32[offset >>> 2] = r[target] : r[target] = ram32[offset >>> 2];
          else if (size === 1) {
            if (isStore) ram8[offset] = r[target];
            else r[target] = signed ? (ram8[offset] << 24) >> 24 : ram8[offset];
          } else if (isStore) ram16[offset >>> 1] = r[target];
          else r[target] = signed ? (ram16[offset >>> 1] << 16) >> 16 : ram16[offset >>> 1];
        } else {
          const place = address - FLASH;
          if (isStore || !(place >= 0 && place + size <= flashEnd) || place & (size - 1)) break run;
          if (size === 4) r[target] = flash32[place >>> 2];
          else if (size === 1) r[target] = signed ? (flash8[place] << 24) >> 24 : flash8[place];
          else r[target] = signed ? (flash16[place >>> 1] << 16) >> 16 : flash16[place >>> 1];
        }
        cycles = 2;
      }
      const before = now;
      pc = next;
      total += cycles;
      now += cycles * CYCLE_NS;
      if (now >= until) {
        r[15] = pc;
        core.cycles += total;
        clock.nanosCounter = before;
        clock.tick(now - before);
        return true;
      }
    }
    r[15] = pc;
    core.cycles += total;
    clock.nanosCounter = now;
    return false;
  }

  return (end) => {
    const alarm = clock.nextAlarm, until = alarm ? Math.min(alarm.nanos, end) : end;
    if (!core.interruptsUpdated && !(r[15] & 1) && quickly(until)) return;
    clock.tick(core.executeInstruction() * CYCLE_NS);
  };
}
