"""`fault://`: a transport that damages what passes through it, by a seed and on purpose (docs/faults.md).

Importing this package makes the URL known to pyserial: ``serial.serial_for_url("fault://seed=1&rx.drop=0.001;/dev/…")``.
"""

import serial

from jointbench.bench.fault.faults import Faults, is_fault_url, parse_fault_url

if __name__ not in serial.protocol_handler_packages:
    serial.protocol_handler_packages.append(__name__)

__all__ = ["Faults", "is_fault_url", "parse_fault_url"]
