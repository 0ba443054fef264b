// The table of boards: a row each, cells written only where their text changes.

import { COLUMNS, DRIVING, age, clock, loss, number } from "./quantities.js";

export class Table {
  constructor(element) {
    this.element = element;
    this.rows = new Map();
  }

  // Rows for the boards of a bench.
  build(boards) {
    this.rows.clear();
    const heads = [
      ["Joint", ""], ["State", ""], ...COLUMNS.map((column) => [column.label, column.unit]),
      ["Samples lost", ""], ["Clock offset, drift", ""], ["Age", ""], ["Fault", ""],
    ];
    const head = make("thead", "rowgroup");
    const top = head.appendChild(make("tr", "row"));
    for (const [label, unit] of heads) {
      const cell = top.appendChild(make("th", "columnheader"));
      cell.scope = "col";
      cell.textContent = unit ? `${label} [${unit}]` : label;
      if (label === "State" || label === "Fault") cell.classList.add("text");
    }
    const body = make("tbody", "rowgroup");
    for (const board of boards) body.appendChild(this.row(board, heads));
    this.element.replaceChildren(head, body);
  }

  row(board, heads) {
    const row = make("tr", "row");
    row.dataset.joint = board.joint;
    const joint = row.appendChild(make("th", "rowheader"));
    joint.scope = "row";
    joint.textContent = board.joint;
    const cells = heads.slice(1).map(([label, unit]) => {
      const cell = row.appendChild(make("td", "cell"));
      cell.dataset.label = unit ? `${label} [${unit}]` : label;
      return cell;
    });
    this.rows.set(board.joint, { row, cells });
    return row;
  }

  // A line of state, heard so many seconds ago: while none comes, all that it says grows old.
  show(line, heard_s = 0) {
    for (const board of line.boards) {
      const found = this.rows.get(board.joint);
      if (!found) continue;
      const old_s = typeof board.age_s === "number" ? board.age_s + heard_s : NaN;
      const texts = [
        board.state ?? "–", ...COLUMNS.map((column) => number(board[column.name], column.digits)),
        loss(board), clock(board), age(old_s), board.fault ?? "",
      ];
      texts.forEach((text, index) => write(found.cells[index], text));
      const { cells } = found;
      cells[0].className = board.state === "FAULT" ? "text fault" : DRIVING.has(board.state) ? "text driving" : "text";
      cells.at(-4).className = board.samples_lost || board.frames_bad ? "lossy" : "";
      cells.at(-1).className = board.fault ? "text fault" : "text none";
      found.row.classList.toggle("stale", old_s > 1);
    }
  }
}

function make(tag, role) {
  const element = document.createElement(tag);
  element.setAttribute("role", role); // as cards, on a narrow screen, they would lose it
  return element;
}

function write(cell, text) {
  if (cell.textContent !== text) cell.textContent = text;
}
