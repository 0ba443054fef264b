"""An absolute encoder as config.json names it: kind as5047p with spi and select, or kind as5600 with i2c.

Pins may be given (sck, mosi, miso; sda, scl) where the port lets them be chosen; the STM32 port fixes them by the bus.
"""

from machine import I2C, SPI, Pin

from drivers.configuration import choice, item, whole


def absolute_encoder(config, name):
    """The sensor described under config[name], None where nothing is."""
    if name not in config:
        return None
    chosen = config[name]
    if choice(config, name + ".kind", ("as5047p", "as5600")) == "as5047p":
        from drivers import as5047p

        bus, baud = item(config, name, "spi"), whole(config, name + ".baud", 100000, 10000000, as5047p.BAUD)
        if "sck" in chosen:
            sck, mosi, miso = (Pin(item(config, name, pin)) for pin in ("sck", "mosi", "miso"))
            spi = SPI(bus, baud, polarity=as5047p.POLARITY, phase=as5047p.PHASE, sck=sck, mosi=mosi, miso=miso)
        else:
            spi = SPI(bus, baud, polarity=as5047p.POLARITY, phase=as5047p.PHASE)
        return as5047p.As5047p(spi, Pin(item(config, name, "select"), Pin.OUT, value=1))
    from drivers import as5600

    bus, frequency = item(config, name, "i2c"), whole(config, name + ".frequency", 100000, 1000000, 400000)
    if "scl" in chosen:
        return as5600.As5600(I2C(bus, scl=Pin(chosen["scl"]), sda=Pin(item(config, name, "sda")), freq=frequency))
    return as5600.As5600(I2C(bus, freq=frequency))
