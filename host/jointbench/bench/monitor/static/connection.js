// The web socket to the monitor: comes back by itself, however often the other end goes away.

const RETRY_MS = 500;

export class Connection {
  // `onLine` gets each line of the monitor, `onChange` whether there is a connection.
  constructor(onLine, onChange) {
    this.onLine = onLine;
    this.onChange = onChange;
    this.open();
  }

  open() {
    const url = new URL("live", location.href);
    url.protocol = "ws:";
    this.socket = new WebSocket(url);
    this.socket.addEventListener("open", () => this.onChange(true));
    this.socket.addEventListener("message", (event) => this.onLine(JSON.parse(event.data)));
    this.socket.addEventListener("close", () => {
      this.onChange(false);
      setTimeout(() => this.open(), RETRY_MS);
    });
  }

  // Whether it could be handed over.
  ask(what) {
    if (this.socket.readyState !== WebSocket.OPEN) return false;
    this.socket.send(JSON.stringify({ ask: what }));
    return true;
  }
}
