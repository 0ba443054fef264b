// Who holds the bench, what it does, and whether what is shown is fresh.

const SILENT_S = 1.5;

export class Status {
  constructor(find) {
    this.find = find;
    this.about = null;
    this.connected = false; // to the monitor
    this.link = { up: false, why: "" }; // from the monitor to whoever holds the bench
    this.heard = null; // when the last state came [ms]
    this.lost = Date.now();
    this.updates = 0;
    setInterval(() => this.each_second(), 1000);
  }

  set_about(about) {
    this.about = about;
    this.find("bench").textContent = about.bench === about.robot ? about.bench : `${about.bench} · ${about.robot}`;
    document.title = `${about.bench} · Jointbench monitor`;
  }

  set_connected(connected) {
    if (this.connected && !connected) this.lost = Date.now();
    this.connected = connected;
    this.tell();
  }

  set_link(link) {
    if (this.link.up && !link.up) this.lost = Date.now();
    this.link = link;
    this.tell();
  }

  note_state(line) {
    const was_silent = this.is_silent;
    this.heard = Date.now();
    if (was_silent) this.tell();
    const time = line.duration_s > 0 ? ` ${line.elapsed_s.toFixed(1)} of ${line.duration_s.toFixed(1)} s` : "";
    write(this.find("doing"), `${line.doing}${time}${line.run ? `, into ${line.run}` : ""}`);
    const bar = this.find("progress");
    bar.hidden = !(line.duration_s > 0);
    if (!bar.hidden) Object.assign(bar, { max: line.duration_s, value: Math.min(line.elapsed_s, line.duration_s) });
  }

  get silent_s() {
    return this.heard === null ? Infinity : 1e-3 * (Date.now() - this.heard);
  }

  get is_silent() {
    return this.silent_s > SILENT_S;
  }

  tell() {
    const fresh = this.connected && this.link.up && !this.is_silent;
    const element = this.find("connection");
    write(element, fresh ? this.holder() : this.trouble());
    element.className = fresh ? "" : "no";
    document.body.classList.toggle("stale", !fresh);
  }

  holder() {
    if (this.link.own) return "live: watching, nobody else uses this bench";
    return `live: attached to ${this.about.program}, process ${this.about.pid}`;
  }

  trouble() {
    if (this.connected && this.link.up && this.heard === null) return "connected, waiting for the boards";
    const silent = this.connected && this.link.up;
    const since = new Date(silent ? this.heard : this.lost).toLocaleTimeString();
    if (!this.connected) return `connection to the monitor lost since ${since}; trying again`;
    if (silent) return `no word from the bench since ${since}`;
    return `connection to the bench lost since ${since}${this.link.why ? `: ${this.link.why}` : ""}; trying again`;
  }

  each_second() {
    write(this.find("rate"), `${this.updates} updates/s`);
    this.updates = 0;
    this.tell();
  }
}

function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
