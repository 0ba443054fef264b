// Emulated RP2040s for the virtual bench: node main.mjs RP2040JS BOOTROM, the package's folder and the bootrom's file.
// Each line of standard input is a request in JSON, and each has a line of JSON as its answer:
//   {"flash": FILE, "config": config.json, "at": NS}
//       a chip gets power at that time; {"chip": number}
//   {"reads": number}
//       the pages of its files that a chip has read since it got power, in the order of their first reads; only where
//       "note" was in the request for that
//   {"chip": number, "to": NS, …}
//       a chip runs to a time; its "time", what pins.mjs tells, how many "resets" there were, "lockup" with the reason
//       where its core stands, and whether a "watchdog" will see to that
// Standard input's end is the end.
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { Chip } from './chip.mjs';
import { noteReads } from './flash.mjs';
import { Pins } from './pins.mjs';

const [folder, rom] = process.argv.slice(2);
const library = await import(pathToFileURL(path.resolve(folder, 'dist/esm/index.js')));
const bootrom = fs.readFileSync(rom);
const boards = [];

function answer(request) {
  if ('flash' in request) {
    const { flash: path, config, at: startNs, note } = request, pins = new Pins(config), reads = new Set();
    const attach = (chip) => {
      pins.attach(chip);
      if (note) noteReads(chip, reads);
    };
    const chip = new Chip({ library, bootrom, path, uid: config.uid, attach, startNs });
    return { chip: boards.push({ chip, pins, reads }) - 1 };
  }
  if ('reads' in request) return { reads: [...boards[request.reads].reads] };
  const { chip, pins } = boards[request.chip];
  pins.tell(request);
  chip.runTo(request.to);
  return { time: chip.nanos, ...pins.told(), resets: chip.resets, lockup: chip.lockup, watchdog: chip.hasWatchdog };
}

// Synchronous: there is nothing else to do meanwhile, and a turn of node's event loop takes longer than an answer.
const buffer = Buffer.alloc(1 << 16);
let pending = '';
for (let count; (count = fs.readSync(0, buffer)) > 0;) {
  const lines = (pending + buffer.toString('utf8', 0, count)).split('\n');
  pending = lines.pop();
  for (const line of lines) fs.writeSync(1, `${JSON.stringify(answer(JSON.parse(line)))}\n`);
}
