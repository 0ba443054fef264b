// Which stretch of time the plots show: the last seconds, or a stretch that was zoomed to.

export const SPANS_S = [5, 10, 30, 120];

export class View {
  constructor(onChange) {
    this.span = 30;
    this.zoomed = null; // {from, to, origin}
    this.onChange = onChange;
  }

  // Where the time axis has its 0: now, or while zoomed what was now then. `newest` is the newest sample's time.
  origin(newest) {
    return this.zoomed?.origin ?? newest;
  }

  // What is shown, from the origin on.
  range() {
    return this.zoomed ? [this.zoomed.from, this.zoomed.to] : [-this.span, 0];
  }

  zoom(from, to, origin) {
    this.zoomed = { from, to, origin };
    this.onChange();
  }

  last(seconds) {
    this.span = seconds;
    this.zoomed = null;
    this.onChange();
  }

  reset() {
    this.last(this.span);
  }
}

// A button for each span, pressed while it is what is shown.
export function spanButtons(element, view) {
  const buttons = SPANS_S.map((seconds) => {
    const button = element.appendChild(document.createElement("button"));
    button.type = "button";
    button.textContent = `${seconds} s`;
    button.addEventListener("click", () => view.last(seconds));
    return [seconds, button];
  });
  return () => {
    for (const [seconds, button] of buttons) {
      button.setAttribute("aria-pressed", String(!view.zoomed && seconds === view.span));
    }
  };
}
