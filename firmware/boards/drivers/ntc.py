"""Temperature of a motor by an NTC thermistor in a divider with a resistor, both at the ADC's reference.

    1 / T = 1 / T25 + ln(R / R25) / beta,  T25 = 298.15 K

The equation is the makers' beta model, which they give beta for between two temperatures, mostly 25 and 85 degC (TDK,
"NTC thermistors, general technical information"). It is put at boot into a table of int16 in steps of 0.01 K from 0
degC; the tick looks up two places and goes on linearly between: 0.15 K from the equation at most, 0.02 K on average,
between -20 and 120 degC with a divider of 10 or 2.2 kOhm for 10 kOhm. 514 bytes.

An open or short circuit is no temperature: it is told as HOTTEST, which is above every limit, so the motor trips
TEMPERATURE instead of going on unwatched.
"""

from array import array
from math import log

import micropython
from micropython import const

from drivers.configuration import choice, number

STEP = const(16)  # counts from one place of the table to the next
PLACES = const(257)
FULL = const(4096)
LEAST = const(32)  # counts from either end of the range: an open or a short circuit
HOTTEST = const(32767)  # 327.67 degC
COLDEST = const(-10000)
ZERO_K = const(-27315)  # in steps of 0.01 K from 0 degC: the register temperature.zero
SCALE = const(10000)  # the register temperature.scale, in uK


class Ntc:
    """to_centidegrees(count) of a 12-bit ADC; `table` for kernels that look up themselves.

    Args: config.json, whose "ntc" has ohm_25 and beta_K of the thermistor, resistor_ohm, and side: "low" when the
    thermistor is the one at ground, else "high".
    """

    def __init__(self, config):
        ohm_25 = number(config, "ntc.ohm_25", 100, 1000000)
        beta = number(config, "ntc.beta_K", 1000, 10000)
        resistor = number(config, "ntc.resistor_ohm", 100, 1000000)
        low = choice(config, "ntc.side", ("low", "high")) == "low"
        self.table = array("h", [HOTTEST] * PLACES)
        for place in range(1, PLACES - 1):
            part = place * STEP / FULL
            if not low:
                part = 1 - part
            ohm = resistor * part / (1 - part)
            kelvin = 1 / (1 / 298.15 + log(ohm / ohm_25) / beta)
            self.table[place] = max(COLDEST, min(int(100 * kelvin + 0.5) + ZERO_K, HOTTEST))

    def facts(self):
        """What one count means from now on."""
        return {"temperature.scale": SCALE, "temperature.zero": ZERO_K}

    def to_centidegrees(self, count):
        return look_up(self.table, count)


@micropython.viper
def look_up(_table, count: int) -> int:
    if count < LEAST or count >= FULL - LEAST:
        return HOTTEST
    table = ptr16(_table)
    place = count >> 4
    first = ((table[place] ^ 0x8000) & 0xFFFF) - 0x8000
    second = ((table[place + 1] ^ 0x8000) & 0xFFFF) - 0x8000
    return first + (((second - first) * (count & 15)) >> 4)
