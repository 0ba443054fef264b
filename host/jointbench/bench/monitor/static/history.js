// What boards said in the last minutes, in columns over one time axis.

const KEPT = 120 * 25;
const SLACK = 500; // so that the front is cut off now and then, not at every line
const GAP_S = 0.04;

export class History {
  constructor() {
    this.time = []; // [s], growing; the benches' clocks one after the other
    this.columns = new Map(); // of `columnName`, as long as `time`, null where there is nothing
    this.offset = null;
  }

  get newest() {
    return this.time.at(-1) ?? 0;
  }

  // A new holder has a clock of its own: its first line follows the last one, after a gap.
  part() {
    this.offset = null;
  }

  add(line) {
    const seconds = line.time_us * 1e-6;
    if (this.offset === null || seconds + this.offset < this.newest) {
      const now = Math.max(performance.now() / 1000, this.newest + 2 * GAP_S);
      this.offset = now - seconds;
      if (this.time.length) this.push(now - GAP_S, []);
    }
    if (seconds + this.offset > this.newest) this.push(seconds + this.offset, line.boards);
    if (this.time.length > KEPT + SLACK) this.drop(this.time.length - KEPT);
  }

  push(time, boards) {
    const length = this.time.length;
    this.time.push(time);
    for (const board of boards) {
      for (const [name, value] of Object.entries(board)) {
        if (typeof value === "number") this.column(board.joint, name, length).push(value);
        if (Array.isArray(value)) value.forEach((each, part) => this.column(board.joint, name, length, part).push(each));
      }
    }
    for (const column of this.columns.values()) if (column.length === length) column.push(null);
  }

  column(joint, name, length, part) {
    const key = columnName(joint, name, part);
    if (!this.columns.has(key)) this.columns.set(key, new Array(length).fill(null));
    return this.columns.get(key);
  }

  drop(count) {
    for (const column of [this.time, ...this.columns.values()]) column.splice(0, count);
  }

  copy() {
    const other = new History();
    other.time = this.time.slice();
    for (const [key, column] of this.columns) other.columns.set(key, column.slice());
    return other;
  }

  // The time axis, counted from `origin`, and the named columns, from just before `from` on.
  since(from, origin, keys) {
    let start = this.time.length;
    while (start > 0 && this.time[start - 1] - origin >= from) start -= 1;
    start = Math.max(0, start - 1);
    const length = this.time.length - start;
    const none = new Array(length).fill(null);
    return [this.time.slice(start).map((time) => time - origin), ...keys.map((key) => this.columns.get(key)?.slice(start) ?? none)];
  }
}

export function columnName(joint, name, part) {
  return part === undefined ? `${joint}/${name}` : `${joint}/${name}/${part}`;
}
