"""The two serial ports of a board on USB: the interpreter's console, and the line, which has its interface named."""

from __future__ import annotations

import os

from serial.tools import list_ports

LINE_NAME = "Jointbench line"
"""The line's interface, as the firmware names it (boards/drivers/rp2_usb_line.py)."""


def line_beside(url: str) -> str | None:
    """Return the port that is the line of the board whose console is at another one.

    Args:
        url: the port, or a link to it, as a bench file names it.

    Returns:
        The line's port; None where `url` is no port on USB, or that of a line, or of a device without one.
    """
    ports = {os.path.realpath(port.device): port for port in list_ports.comports()}
    here = ports.get(os.path.realpath(url))
    if here is None or not here.location or here.interface == LINE_NAME:
        return None
    device = _device(here.location)
    named = (port for port in ports.values() if port.interface == LINE_NAME)
    return next((port.device for port in named if port.location and _device(port.location) == device), None)


def _device(location: str) -> str:
    """Where a port's device is plugged in, without the port's interface: 1-2 of 1-2:1.0."""
    return location.partition(":")[0]
