// The page: lines come in at any time, and are drawn once a frame of the screen at most.

import { Connection } from "./connection.js";
import { History } from "./history.js";
import { buildLegend } from "./legend.js";
import { Plots } from "./plots.js";
import { Status } from "./status.js";
import { Stop } from "./stop.js";
import { Table } from "./table.js";
import { View, spanButtons } from "./view.js";

const find = (id) => document.getElementById(id);

const history = new History();
const view = new View(() => later());
const status = new Status(find);
const table = new Table(find("boards"));
const plots = new Plots(find("plots"), view);
const show_spans = spanButtons(find("spans"), view);
const stop = new Stop(find("stop"), find("stop-word"), (what) => connection.ask(what));

let boards = null; // of the bench, as in its "about" line
let newest = null; // line of state
let frozen = null; // {history, since}, while the view is paused
let due = false;

const KINDS = {
  about(line) {
    status.set_about(line);
    history.part();
    if (JSON.stringify(boards) === JSON.stringify(line.boards)) return;
    boards = line.boards;
    build();
  },
  state(line) {
    newest = line;
    history.add(line);
    status.note_state(line);
    stop.note_state(line);
    later();
  },
  link: (line) => status.set_link(line),
  stopped: (line) => stop.answer(line),
  error: (line) => stop.answer(line),
};

const connection = new Connection(
  (line) => KINDS[line.kind]?.(line),
  (connected) => status.set_connected(connected),
);

function build() {
  table.build(boards);
  plots.build(boards);
  buildLegend(find("legend"), boards.map((board) => board.joint), plots.hidden, later);
  later();
}

function later() {
  if (!due) requestAnimationFrame(draw);
  due = true;
}

function draw() {
  due = false;
  show_spans();
  plots.show(frozen?.history ?? history);
  if (frozen || !newest) return;
  table.show(newest);
  find("time").textContent = `bench time ${(newest.time_us * 1e-6).toFixed(6)} s,`;
  status.updates += 1;
}

// A bench that is dead sends nothing that could be drawn: its boards' ages count up all the same.
setInterval(() => {
  if (newest && !frozen && status.is_silent) table.show(newest, status.silent_s);
}, 250);

find("pause").addEventListener("click", () => {
  frozen = frozen ? null : { history: history.copy() };
  find("pause").setAttribute("aria-pressed", String(frozen !== null));
  find("pause").textContent = frozen ? "Go on" : "Pause";
  find("paused").textContent = frozen ? `view paused at ${new Date().toLocaleTimeString()}; the bench goes on` : "";
  later();
});

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => boards && build());
