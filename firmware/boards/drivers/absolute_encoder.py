"""An absolute encoder as config.json names it: kind as5047p, as5048 or mt6701 with spi and select, as5600 with i2c.

Pins may be given (sck, mosi, miso; sda, scl) where the port lets them be chosen; the STM32 port fixes them by the bus.
"""

from machine import I2C, Pin

from drivers.configuration import choice, item, whole

KINDS = ("as5047p", "as5048", "mt6701", "as5600")
MOTOR_KINDS = ("quadrature",) + KINDS


def absolute_encoder(config, name):
    """The sensor described under config[name], None where nothing is."""
    if name not in config:
        return None
    chosen = config[name]
    kind = choice(config, name + ".kind", KINDS)
    if kind != "as5600":
        from drivers.spi_bus import spi_bus

        if kind == "as5047p":
            from drivers import as5047p as sensor
            from drivers.as5047p import As5047p as Encoder
        elif kind == "as5048":
            from drivers import as5048 as sensor
            from drivers.as5048 import As5048 as Encoder
        else:
            from drivers import mt6701 as sensor
            from drivers.mt6701 import Mt6701 as Encoder
        spi = spi_bus(config, name, sensor)
        return Encoder(spi, Pin(item(config, name, "select"), Pin.OUT, value=1))
    from drivers import as5600

    bus, frequency = item(config, name, "i2c"), whole(config, name + ".frequency", 100000, 1000000, 400000)
    if "scl" in chosen:
        return as5600.As5600(I2C(bus, scl=Pin(chosen["scl"]), sda=Pin(item(config, name, "sda")), freq=frequency))
    return as5600.As5600(I2C(bus, freq=frequency))
