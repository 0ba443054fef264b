"""Fetch a file over a network that may fail: try again after a pause, go on where it stopped, ask another mirror."""

import hashlib
import http.client
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.setup.errors import DownloadFailed, Gone

PAUSES_S = (1.0, 3.0, 9.0)  # between four tries
pause = time.sleep
TIMEOUT_S = 30.0  # without a byte
BLOCK = 1 << 18
PROGRESS_S = 5.0

NO_NETWORK = (urllib.error.URLError, TimeoutError, ConnectionError, http.client.HTTPException)
GONE = (403, 404, 410)  # some mirrors say 403 for what they do not hold


@dataclass(frozen=True)
class RemoteFile:
    """A file on a mirror, as a lock names it: path below the mirror's address, size in bytes, SHA-256."""

    path: str
    size: int
    sha256: str

    @property
    def name(self) -> str:
        """The file's own name."""
        return self.path.rpartition("/")[2]


def download(file: RemoteFile, mirrors: Sequence[str], folder: Path, proxies: dict[str, str] | None = None) -> Path:
    """Fetch a file into a folder, unless it is there already.

    A part that an earlier call left is gone on with. Each mirror is tried four times, but only once when it says that
    it does not hold the file.

    Args:
        file: what to fetch.
        mirrors: their addresses, the first is asked first.
        folder: where to; it must exist.
        proxies: of each scheme, e.g. {"http": "http://proxy:3128"}, besides those of the environment.

    Returns:
        The whole file, its hash checked.

    Raises:
        Gone: no mirror holds the file.
        DownloadFailed: none gave it whole; names the file, the last mirror and what to do.
    """
    place = folder / file.name
    if place.exists() and place.stat().st_size == file.size and sha256_of(place) == file.sha256:
        return place
    opener = urllib.request.build_opener(urllib.request.ProxyHandler((proxies or {}) | urllib.request.getproxies()))
    failures: list[DownloadFailed] = []
    for mirror in mirrors:
        try:
            return _from_mirror(opener, file, mirror, place)
        except DownloadFailed as failure:
            failures.append(failure)
    if all(isinstance(failure, Gone) for failure in failures):
        raise Gone(file.name, ", ".join(mirrors), "it is not there (any more)")
    raise next(failure for failure in failures if not isinstance(failure, Gone))


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _from_mirror(opener: urllib.request.OpenerDirector, file: RemoteFile, mirror: str, place: Path) -> Path:
    url = f"{mirror.rstrip('/')}/{file.path}"
    part = place.with_name(f"{place.name}.part")
    reason = ""
    for seconds in (0.0, *PAUSES_S):
        if seconds:
            print(f"  {file.name}: {reason}; trying again in {seconds:.0f} s", file=sys.stderr, flush=True)
            pause(seconds)
        try:
            _append(opener, url, file, part)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code in GONE:
                raise Gone(file.name, mirror, f"the mirror answered {error.code}") from error
            reason = f"the mirror answered {error.code} {error.reason}"
        except NO_NETWORK as error:
            reason = f"no answer ({getattr(error, 'reason', None) or error or type(error).__name__})"
        else:
            size = part.stat().st_size
            if size < file.size:
                reason = f"the connection ended after {size} of {file.size} bytes"
            elif size == file.size and sha256_of(part) == file.sha256:
                return part.replace(place)
            else:
                part.unlink()
                reason = "what came differs from its hash in the lock: something on its way here changes files"
    raise DownloadFailed(file.name, mirror, reason)


def _append(opener: urllib.request.OpenerDirector, url: str, file: RemoteFile, part: Path) -> None:
    """Ask for what is missing of a file, and add it to the part that is there."""
    there = part.stat().st_size if part.exists() else 0
    if there >= file.size:
        part.unlink()
        there = 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={there}-"} if there else {})
    with opener.open(request, timeout=TIMEOUT_S) as answer:
        goes_on = answer.status == http.client.PARTIAL_CONTENT
        told = time.monotonic()
        with part.open("ab" if goes_on else "wb") as out:
            while block := answer.read1(BLOCK):
                out.write(block)
                if out.tell() > file.size:
                    return
                if time.monotonic() - told > PROGRESS_S:
                    told = time.monotonic()
                    done = f"{out.tell() / 1e6:.0f} of {file.size / 1e6:.0f} MB"
                    print(f"  {file.name}: {done}", file=sys.stderr, flush=True)
