// The plots: one a quantity, all joints in each, all of them on one stretch of time.

import { columnName } from "./history.js";
import { stroke } from "./legend.js";
import { PLOTTED } from "./quantities.js";

/* global uPlot */

const HEIGHT = 220;

export class Plots {
  constructor(element, view) {
    this.element = element;
    this.view = view;
    this.hidden = new Set(); // joints
    this.plots = [];
    this.origin = 0;
    this.resized = new ResizeObserver(() => this.fit());
    this.resized.observe(element);
  }

  // Plots of what the boards of a bench have.
  build(boards) {
    for (const { plot } of this.plots) plot.destroy();
    this.element.replaceChildren();
    this.plots = PLOTTED.flatMap((quantity) => {
      const with_it = boards.map((board, index) => ({ ...board, index })).filter((board) => board.has.includes(quantity.name));
      return with_it.length ? [this.make(quantity, with_it)] : [];
    });
    this.fit();
  }

  make(quantity, boards) {
    const figure = this.element.appendChild(document.createElement("figure"));
    const caption = figure.appendChild(document.createElement("figcaption"));
    caption.textContent = `${quantity.title} [${quantity.unit}]`;
    const canvas = figure.appendChild(document.createElement("div"));
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `${quantity.title} of each joint over time; its present value is in the table`);
    const lines = boards.flatMap((board) =>
      Array.from({ length: quantity.parts ?? 1 }, (_, part) => ({
        joint: board.joint,
        key: columnName(board.joint, quantity.name, quantity.parts ? part : undefined),
        look: stroke(quantity.parts ? part : board.index),
      })),
    );
    const plot = new uPlot(this.options(lines), lines.length ? [[], ...lines.map(() => [])] : [[]], canvas);
    return { plot, lines, canvas };
  }

  options(lines) {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const axis = { stroke: colour("--muted"), grid: { stroke: colour("--hair"), width: 1 }, ticks: { show: false } };
    const seconds = (_, values) => values.map((value) => `${+value.toFixed(3)} s`);
    return {
      width: 480, height: HEIGHT, legend: { show: false },
      scales: { x: { time: false, range: () => this.view.range() } },
      axes: [{ ...axis, values: seconds, size: 32 }, { ...axis, size: 56 }],
      series: [
        {},
        ...lines.map(({ look }) => ({
          stroke: colour(look.colour), dash: look.dash, width: 1.5, points: { show: false },
        })),
      ],
      cursor: {
        sync: { key: "time" }, points: { show: false }, y: false,
        drag: { x: true, y: false, setScale: false },
        bind: { dblclick: () => () => this.view.reset() },
      },
      hooks: { setSelect: [(plot) => this.zoom(plot)] },
    };
  }

  zoom(plot) {
    const { left, width } = plot.select;
    if (width < 4) return;
    const [from, to] = [plot.posToVal(left, "x"), plot.posToVal(left + width, "x")];
    for (const each of this.plots) each.plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.view.zoom(from, to, this.origin);
  }

  show(history) {
    this.origin = this.view.origin(history.newest);
    const [from] = this.view.range();
    for (const { plot, lines } of this.plots) {
      lines.forEach(({ joint }, index) => {
        const show = !this.hidden.has(joint);
        if (plot.series[index + 1].show !== show) plot.setSeries(index + 1, { show });
      });
      plot.setData(history.since(from, this.origin, lines.map((line) => line.key)));
    }
  }

  fit() {
    for (const { plot, canvas } of this.plots) {
      const width = Math.floor(canvas.clientWidth);
      if (width && width !== plot.width) plot.setSize({ width, height: HEIGHT });
    }
  }
}
