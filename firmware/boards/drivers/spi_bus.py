"""An SPI as an entry of config.json names it: spi, baud, and sck, mosi, miso where the port lets them be chosen.

Several sensors may share one, each with a select pin of its own; it then has the speed of the one that is made last.
"""

from machine import SPI, Pin

from drivers.configuration import item, whole


def spi_bus(config, name, sensor):
    """The bus under config[name], set up as a sensor's BAUD, FASTEST_BAUD, POLARITY and PHASE say."""
    bus, baud = item(config, name, "spi"), whole(config, name + ".baud", 100000, sensor.FASTEST_BAUD, sensor.BAUD)
    if "sck" not in config[name]:
        return SPI(bus, baud, polarity=sensor.POLARITY, phase=sensor.PHASE)
    sck, mosi, miso = (Pin(item(config, name, pin)) for pin in ("sck", "mosi", "miso"))
    return SPI(bus, baud, polarity=sensor.POLARITY, phase=sensor.PHASE, sck=sck, mosi=mosi, miso=miso)
