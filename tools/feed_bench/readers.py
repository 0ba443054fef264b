"""`python -m tools.feed_bench.readers N`: N that look on, in a process of their own, until its input ends.

It says a line once it has started, and reads one: the path of the socket. At the end it says how many states a second
each has had, as JSON.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from jointbench.link.feed import FeedClient


@dataclass
class Reader:
    """One that looks on, and counts.

    Attributes:
        states: how many it has had, the first not counted.
        began_s, newest_s: when it had the first and the newest.
    """

    client: FeedClient
    states: int = -1
    began_s: float = 0.0
    newest_s: float = 0.0

    @property
    def rate(self) -> float:
        """States a second; 0 where it had one at most."""
        return self.states / (self.newest_s - self.began_s) if self.states > 0 else 0.0

    def read(self) -> None:
        """Count states until the feed ends or is hung up."""
        for line in self.client.lines():
            if line["kind"] == "state":
                self.states += 1
                self.newest_s = time.monotonic()
                if not self.states:
                    self.began_s = self.newest_s


def main() -> None:
    """Look on until standard input ends."""
    print("started", flush=True)
    path = Path(sys.stdin.readline().strip())
    readers = [Reader(FeedClient(path)) for _ in range(int(sys.argv[1]))]
    threads = [threading.Thread(target=reader.read) for reader in readers]
    for thread in threads:
        thread.start()
    sys.stdin.read()
    for reader, thread in zip(readers, threads, strict=True):
        reader.client.close()
        thread.join()
    print(json.dumps([reader.rate for reader in readers]))


if __name__ == "__main__":
    main()
