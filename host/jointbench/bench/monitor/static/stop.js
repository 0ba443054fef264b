// The STOP button, its key, and what came of it.

import { DRIVING } from "./quantities.js";

const PATIENCE_MS = 3000;

export class Stop {
  // `ask` hands the request over and tells whether it could.
  constructor(button, word, ask) {
    this.word = word;
    this.ask = ask;
    this.timer = 0;
    button.addEventListener("click", () => this.press());
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !event.repeat) this.press();
    });
  }

  press() {
    clearTimeout(this.timer);
    if (!this.ask("stop")) {
      this.say("not connected, nothing was sent: use the emergency stop", "no");
      return;
    }
    this.say("stopping…", "");
    this.timer = setTimeout(() => this.say("no answer yet: use the emergency stop", "no"), PATIENCE_MS);
  }

  // The monitor's or the holder's word on it.
  answer(line) {
    clearTimeout(this.timer);
    if (line.kind === "error") this.say(line.why, "no");
    else if (line.ok) this.say(`stopped at ${new Date().toLocaleTimeString()}: all motors are off`, "yes");
    else this.say(`${line.unconfirmed.join(", ")} did not confirm: switch the power off`, "no");
  }

  // "All motors are off" holds until one is on again.
  note_state(line) {
    if (this.word.className === "yes" && line.boards.some((board) => DRIVING.has(board.state))) this.say("", "");
  }

  say(text, look) {
    this.word.textContent = text;
    this.word.className = look;
  }
}
