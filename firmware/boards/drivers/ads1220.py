"""ADS1220 bridge converter on SPI: 24 bits, 20 to 2000 conversions a second, gain 1 to 128.

It converts on and on by its own clock; DRDY falls as a conversion ends, and its 24 bits are read without a command: 6
us on the line at 4 MHz, 0.15 ms of interpreter on an RP2040. Source: Texas Instruments ADS1220 data sheet SBAS501: "SPI
Timing Requirements" (mode 1, period 150 ns at least, select 50 ns before the first edge), "Commands", "Configuration
Registers", "Data Rate". Bridges are measured against their own supply: wire it to REFP0 and REFN0 ("reference":
"external"). MISO and DRDY need a pull-up: a cut line is then told.
"""

from time import sleep_ms

import micropython
from micropython import const

from drivers.configuration import choice, whole
from drivers.errors import SensorFault, WiringError
from drivers.failures import Failures

BAUD = const(4000000)
FASTEST_BAUD = const(6666666)
POLARITY = const(0)  # SPI mode 1
PHASE = const(1)

RESET = b"\x06"
START = b"\x08"
WRITE_ALL = const(0x43)  # WREG from 0, four registers
READ_ALL = const(0x23)
RATES = (20, 45, 90, 175, 330, 600, 1000)  # normal mode, by the bits DR
TURBO = 2000  # its fastest, and the only one used of turbo mode
INPUTS = ("01", "02", "03", "12", "13", "23", "10", "32")  # positive and negative AIN, by the bits MUX
REFERENCES = ("internal", "external", "external 1", "supply")  # by the bits VREF
BAD = const(0x1000000)  # no value of 24 bits


class Ads1220:
    """read() gives a conversion of 24 bits, signed, once ready() says that there is one.

    Args: config.json, and the path of the entry with gain, rate, inputs and reference; a bus with write(),
    write_readinto() and readinto(), set up as BAUD, POLARITY and PHASE say; the pins select and ready (DRDY).
    Raises SensorFault when it does not keep what is written to it.
    """

    fresh = True

    def __init__(self, config, common, spi, select, ready):
        self._spi, self._select, self._ready = spi, select, ready
        self._answer = bytearray(3)
        self._value = self.look_us = 0  # it keeps a conversion until the next is there, and so may wait
        self.failures = Failures("ADS1220")
        gain = whole(config, common + ".gain", 1, 128, 128)
        if gain & (gain - 1):
            raise WiringError("config.json: %s.gain is %d; 1, 2, 4 … 128 there are" % (common, gain))
        rate = whole(config, common + ".rate", 20, TURBO, 1000)
        if rate not in RATES and rate != TURBO:
            known = ", ".join(str(each) for each in RATES)
            raise WiringError("config.json: %s.rate is %d; an ADS1220 has %s, %d" % (common, rate, known, TURBO))
        entry = config[common]
        inputs = choice(config, common + ".inputs", INPUTS) if "inputs" in entry else "01"
        reference = choice(config, common + ".reference", REFERENCES) if "reference" in entry else "external"
        self.period_us = 1000000 // rate
        speed = 6 << 5 | 2 << 3 if rate == TURBO else RATES.index(rate) << 5
        bits = 0
        while 1 << bits < gain:
            bits += 1
        wanted = bytes([INPUTS.index(inputs) << 4 | bits << 1, speed | 4, REFERENCES.index(reference) << 6, 0])
        select.value(1)
        self._send(RESET)
        sleep_ms(1)  # 50 us and 32 of its clocks
        self._send(bytes([WRITE_ALL]) + wanted)
        kept = bytearray(5)
        select.value(0)
        spi.write_readinto(bytes([READ_ALL, 0, 0, 0, 0]), kept)
        select.value(1)
        if kept[1:] != wanted:
            raise SensorFault(
                "ADS1220: its registers read %s, not %s as written; check SCLK, DIN, DOUT, CS and its supply"
                % (_words(kept[1:]), _words(wanted))
            )
        self._send(START)

    def ready(self):
        return not self._ready.value()

    def read(self):
        """The newest conversion; the one before in place of a bad one. Allocates nothing."""
        answer = self._answer
        self._select.value(0)
        self._spi.readinto(answer)
        self._select.value(1)
        value = decode(answer)
        if value == BAD:
            self.failures.one("out of range, or cut", answer[0] << 16 | answer[1] << 8 | answer[2])
        else:
            self.failures.none()
            self._value = value
        return self._value

    def _send(self, command):
        self._select.value(0)
        self._spi.write(command)
        self._select.value(1)


@micropython.viper
def decode(_answer) -> int:
    """The value of three bytes; BAD for either end of the range, which is what an input out of range gives, and for all
    bits 1: MISO's pull-up, which no real input gives three times in a row."""
    answer = ptr8(_answer)
    value = answer[0] << 16 | answer[1] << 8 | answer[2]
    if value == 0x800000 or value == 0x7FFFFF or value == 0xFFFFFF:
        return BAD
    return (value ^ 0x800000) - 0x800000


def _words(data):
    return " ".join("%02x" % byte for byte in data)
