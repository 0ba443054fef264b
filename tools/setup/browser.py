"""Chromium without a window, for the tests of pages: the machine's own, else Debian's.

Debian's comes with all it needs but the C library, from the oldest Debian supported: so it runs with the C library of
every later one.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

from tools.setup import apt, debian
from tools.setup.checkout import Checkout
from tools.setup.command import SetupError, Unavailable

VARIABLE = "JOINTBENCH_CHROMIUM"
NAMES = ("chromium", "google-chrome")
OTHER_WAYS = (
    f"\n  Other ways: sudo apt-get install chromium; name a Debian mirror in {apt.MIRROR_VARIABLE}; "
    f"or name a Chromium of your own in {VARIABLE}"
)
C_LIBRARY = ("libc6_", "libc-bin_")

# Of the packages the browser, English, a font, and the libraries: without Mesa's compiler, because it draws by itself.
WANTED = re.compile(
    r"""usr/lib/chromium/(chromium-headless-shell|[^/]+\.(pak|dat|bin)|lib(EGL|GLESv2|vk_swiftshader|vulkan)\.so.*
          |vk_swiftshader_icd\.json|locales/en-US\.pak)
      | (usr/)?lib/[^/]+-linux-gnu/(|nss/|pulseaudio/)(?!libLLVM|libz3)[^/]+\.(so[.\d]*|chk)
      | usr/share/fonts/.+\.ttf""",
    re.VERBOSE,
)

LAUNCHER = """\
#!/bin/sh
root=$(cd -- "${0%/*}/.." && pwd)
for folder in "$root"/root/usr/lib/*-linux-gnu "$root"/root/lib/*-linux-gnu; do
    libraries=$folder:$folder/pulseaudio:${libraries-}
done
export LD_LIBRARY_PATH="$libraries" FONTCONFIG_FILE="$root/fonts.conf"
exec "$root/root/usr/lib/chromium/chromium-headless-shell" "$@"
"""
FONTS = """\
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
    <dir prefix="relative">root/usr/share/fonts</dir>
    <cachedir prefix="xdg">fontconfig</cachedir>
</fontconfig>
"""

# A page that computes, and writes with a font.
PROBE = "data:text/html,<b id=word>word</b><script>document.title = [6 * 7, word.offsetWidth > 9]</script>"
PROBE_ANSWER = "<title>42,true</title>"
PATIENCE_S = 60  # against a browser that hangs; a busy machine takes about 3 s


def program(checkout: Checkout) -> Path | None:
    """Return Chromium's program: the one the user named, else the machine's own, else the fetched one, if any."""
    named = os.environ.get(VARIABLE)
    found = [named] if named else [*map(shutil.which, NAMES), checkout.chromium / "bin" / "chromium"]
    return next((Path(path) for path in found if path and Path(path).exists()), None)


def is_ready(checkout: Checkout) -> bool:
    """Say whether there is a Chromium."""
    return program(checkout) is not None


def install(checkout: Checkout) -> None:
    """Fetch Chromium, check it by running it, and only then put it in its place.

    Raises:
        Unavailable: it cannot be had here.
        SetupError: it does not show a page, or the one the user named does not.
    """
    if os.environ.get(VARIABLE):
        check(Path(os.environ[VARIABLE]))
        return
    new = checkout.work / "chromium"
    try:
        architecture = apt.architecture_of(os.uname().machine)
        debs = debian.fetch("chromium", architecture, checkout)
    except SetupError as error:
        raise Unavailable(f"Chromium cannot be fetched: {error}{OTHER_WAYS}") from error
    for deb in debs:
        if not deb.name.startswith(C_LIBRARY):
            apt.unpack_part(deb, new / "root", WANTED)
    launcher = new / "bin" / "chromium"
    launcher.parent.mkdir()
    launcher.write_text(LAUNCHER)
    launcher.chmod(0o755)
    (new / "fonts.conf").write_text(FONTS)
    check(launcher)
    shutil.rmtree(checkout.chromium, ignore_errors=True)
    new.rename(checkout.chromium)


def check(chromium: Path) -> None:
    """Make sure that a Chromium shows a page.

    Raises:
        SetupError: it does not start, does not compute, or has no font to write with.
    """
    # Without the sandbox, which root has not: this page is our own.
    command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", PROBE]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", check=False, timeout=PATIENCE_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SetupError(f"{chromium} does not run as a Chromium ({error}){OTHER_WAYS}") from error
    if PROBE_ANSWER not in done.stdout:
        said = ((done.stderr or done.stdout).strip().splitlines() or ["nothing"])[-1]
        raise SetupError(f"{chromium} does not show a page (it said: {said}){OTHER_WAYS}")
