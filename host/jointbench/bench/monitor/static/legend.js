// One legend for all plots: a button a joint, which hides and shows its line everywhere.

const HUES = 6;
const DASHES = [[], [7, 4], [2, 3]];

// Colour (a custom property of the page) and dashes of the joint at a place.
export function stroke(index) {
  return { colour: `--line-${(index % HUES) + 1}`, dash: DASHES[Math.floor(index / HUES) % DASHES.length] };
}

export function buildLegend(element, joints, hidden, onChange) {
  element.replaceChildren(
    ...joints.map((joint, index) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(sample(index), joint);
      const show = () => button.setAttribute("aria-pressed", String(!hidden.has(joint)));
      button.addEventListener("click", () => {
        if (!hidden.delete(joint)) hidden.add(joint);
        show();
        onChange();
      });
      show();
      return button;
    }),
  );
}

function sample(index) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const line = svg.appendChild(document.createElementNS(svg.namespaceURI, "line"));
  const { colour, dash } = stroke(index);
  svg.setAttribute("viewBox", "0 0 26 8");
  svg.setAttribute("aria-hidden", "true");
  for (const [name, value] of Object.entries({ x1: 0, y1: 4, x2: 26, y2: 4, "stroke-width": 2.5, "stroke-dasharray": dash.join(" ") })) {
    line.setAttribute(name, value);
  }
  line.style.stroke = `var(${colour})`;
  return svg;
}
