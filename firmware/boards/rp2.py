"""Joint board on an RP2040 or RP2350 (Raspberry Pi Pico, Pico 2 and the like); MicroPython 1.25 or newer.

ADC and line by DMA, motor encoder by PIO with edge times, drive by PWM, ENABLE a heartbeat in a PIO: the processor only
reads what they left in memory. Where each part of the tick has a kernel (rp2_fused.py) a turn of the main loop takes
about 0.1 ms, with drivers in Python 0.4 ms; with a thermistor or a torque bridge, which Python reads between the
kernels, 0.2 to 0.4 ms. Wiring and an example of config.json: docs/boards.md. Not yet run on
hardware.
"""

from time import sleep_us

# First what needs a large piece of the heap: what is loaded after it leaves only small ones.
from jointboard import rooms, crc_tables  # noqa: F401

import machine
from machine import PWM, UART, WDT, Pin

from drivers import rp2_chip
from drivers.absolute_encoder import MOTOR_KINDS, absolute_encoder
from drivers.analog import check_window
from drivers.configuration import choice, item, whole
from drivers.errors import WiringError
from drivers.joint import SMART_DRIVES, VOLTAGE_DRIVES, Joint
from drivers.rp2_adc import RoundRobinAdc
from drivers.rp2_heartbeat import Heartbeat, brake_machine

WATCHDOG_ON = 1 << 30
LOST_SAMPLE = 0x10000  # as rp2_turn.py tells it
TRIES = 40  # looks at a SYNC line, PULL_US apart: 20 ms, longer than a pulse on it
PULL_US = 500
ERRATUM_E5 = 15  # the pin that its work-around in the SDK uses
FAST = ("as5047p", "as5048", "as5600")  # link encoders whose angle is there before it is needed, or soon after
FAST_SPI = 4000000
FAST_I2C = 400000
CAUSES = {machine.PWRON_RESET: 1, machine.WDT_RESET: 3}


class Board(Joint):
    """The chip as a joint's Hal (boards/__init__.py says what each part means)."""

    kind = "rp2"
    longest_watchdog_ms = 8388
    _fused = _guard = None
    _motors = ()
    _driver = None
    _beats_in = 1  # PIO of what holds a pin only while it is kicked

    def __init__(self):
        super().__init__(Pin, WDT)  # ENABLE low
        config = self.config
        self.uid = machine.unique_id()[:12]
        self.reset_cause = CAUSES.get(machine.reset_cause(), 0)
        self.clock_Hz = machine.freq()
        sync = config["pins"].get("sync")
        sync_pin = None if sync is None else held_low(sync)
        if "foot" in config:
            self.begin_at_a_foot(self._make_line(), registers, sync_pin, hard=True)
            return
        if item(config, "drive", "kind") in SMART_DRIVES:
            self._enable = Heartbeat(config["pins"]["enable"], self._beats_in, self.period_us)
            self.watch_pins(not rp2_chip.IS_RP2350, self._beating_brake)
            self.begin_at_a_smart_drive(self._make_bus(), self._make_line(), sync_pin, hard=True)
            return
        motors = (config, item(config, "partner")) if "partner" in config else (config,)
        self._adc = RoundRobinAdc([item(motor, "analog") for motor in motors], self.period_us)
        self.adc = (self._adc.rate_Hz, 12, 3300)
        pio = whole(config, "motor_encoder.pio", 0, 2, 0)
        if ERRATUM_E5 in [item(motor, "pins", "enable") for motor in motors] and not rp2_chip.IS_RP2350:
            raise WiringError(
                "config.json: pins.enable is 15, of which an RP2040 lets go for 1 ms while USB comes up (erratum "
                "RP2040-E5); take another pin"
            )
        if config.get("charge_pump"):
            raise WiringError("config.json: charge_pump: ENABLE of an RP2 is a heartbeat by itself; wire it directly")
        # From now on whoever lets the motor go by not turning does so. In the other PIO: the counter fills its own.
        self._beats_in = 1 - min(pio, 1)
        self._enable = Heartbeat(config["pins"]["enable"], self._beats_in, self.period_us)
        self.watch_pins(not rp2_chip.IS_RP2350, self._beating_brake)
        if self.safety and len(motors) == 1:  # two leave the PIO no state machine
            from drivers.rp2_guard import Guard

            numbers = list(self.safety.numbers)
            if self.brake and "index" in config.get("motor_encoder", {}):
                numbers[1] = None  # the brake has its state machine: the tick alone looks at fault
            self._guard = Guard(numbers, config, self._beats_in)
            self.safety.latched = self._guard.take
        motor_encoder = self._make_motor_encoder(pio)
        line = self._make_line()
        self.add_sensors(registers)
        self.begin(line, motor_encoder, absolute_encoder(config, "link_encoder"), sync_pin, hard=True)
        self.complete(self._make_drive)
        self._fuse(sync_pin, pio)

    def _beating_brake(self, number, level):
        return Heartbeat(number, self._beats_in, self.period_us, brake_machine(self.config), level)

    def disable(self):
        super().disable()
        if hasattr(self, "partner"):
            self.partner.disable()

    def calm(self, dog_class):
        machine.mem32[rp2_chip.WATCHDOG + rp2_chip.CLEAR] = WATCHDOG_ON

    def _fuse(self, sync_pin, pio):
        """Let kernels do the ticks, where there are some for all parts."""
        config = self.config
        known = self.encoder_source == 2 and self.motor_encoder and config["line"]["kind"] == "uart"
        known = known and config["drive"]["kind"] in VOLTAGE_DRIVES
        for motor in (config, config.get("partner", {})):
            link = motor.get("link_encoder", {"kind": "as5047p"})
            known = known and link["kind"] in FAST and link.get("baud", FAST_SPI) >= FAST_SPI
            known = known and link.get("frequency", FAST_I2C) >= FAST_I2C
            slow = "torque" in motor or "ntc" in motor
            known = known and not (slow and "partner" in config)
            known = known and ("spi" not in link or motor.get("torque", {}).get("spi") != link["spi"])
        if not known:
            if "partner" in config:
                raise WiringError(
                    "config.json: with a partner both motors need motor_encoder.kind quadrature, drive.kind "
                    "pwm_direction or half_bridges, line.kind uart, as link_encoder one of %s at %d baud or "
                    "%d Hz or more, or none, and neither torque nor ntc" % (", ".join(FAST), FAST_SPI, FAST_I2C)
                )
            return
        from drivers.rp2_fused import FusedLine
        from drivers.rp2_turn import SPEAKER, after, before

        self._motors = motors = [self._fuse_motor(self, 0, self._loop, self._enable)]
        if "partner" in config:
            from drivers.rp2_partner import SecondMotor

            self.partner = second = SecondMotor(
                config, pio, self.period_us, self._adc, self._pass_a_tick, lambda line: self.join(line, 1), power_stage
            )
            motors.append(self._fuse_motor(second, 1, second.loop, second.enable))
            self.speaking = memoryview(motors[0].t)[SPEAKER:]
        self._fused = FusedLine(motors, self.period_us, config["line"]["uart"], self._driver)
        look = and_slow_sensors(before, self._read_slow_sensors, self.inputs) if self.slow_sensors else before
        self.kernels = look, after, motors[0].address
        self.clock_at = rp2_chip.TIMER
        self._sync_pin = sync_pin

    def _pass_a_tick(self):
        self._clock.wait(self.lead_us)
        self._clock.tick(self.inputs)

    def _fuse_motor(self, motor, place, loop, enable):
        from drivers.rp2_fused import Fused

        link, drive = motor.config.get("link_encoder"), motor.config["drive"]
        fused = Fused(motor.inputs, motor.outputs, self._adc.cells(place), motor.motor_encoder, loop, enable, drive)
        if motor.brake:
            fused.add_brake(motor.brake)
        if motor.link_encoder:
            fused.add_link_encoder(motor.link_encoder, link)
        if motor.safety:
            fused.watch_pins(motor.safety.numbers, self._guard.address if self._guard else 0)
        return fused

    def join(self, line, place=0):
        """The firmware's cells of a motor's line, of which DMA reads and writes the rings."""
        fused = self._fused
        if not fused:
            return
        fused.join(place, line)
        before, after, address = self.kernels
        self.wait_tick, self.apply = lambda: before(address), lambda: after(address)
        self.now_us = self.stopwatch_us = lambda: machine.mem32[rp2_chip.TIMER]
        self.room, self.send = lambda: 0, lambda count: None  # DMA takes what is encoded
        if self._sync_pin:
            self._sync_pin.irq(fused.edge, self._sync_pin.IRQ_RISING, hard=True)

    def complain(self, found):
        """Raise what the kernels have found of sensors."""
        for fused in self._motors:
            fused.complain(found)
        if found & LOST_SAMPLE and self._adc:
            self._adc.complain()

    def watchdog(self, timeout_ms):
        if timeout_ms == self._dog_ms:  # as at each ARM but the first, which waits for it
            return
        self._dog, self._dog_ms = self._dog_class(timeout=timeout_ms), timeout_ms  # as Joint does, in half the time
        if self._fused:
            self._fused.watch(timeout_ms)

    def flush(self):
        if self._fused:
            self._fused.flush()
        super().flush()

    def _make_driver(self):
        """The enable of an RS-485 driver, by a state machine that no other part has."""
        from drivers.rp2_driver_enable import driver_enable

        config, taken = self.config, []
        motors = (config, config["partner"]) if "partner" in config else (config,)
        if "partner" in config:
            taken.append(2)
        for place, motor in enumerate(motors):
            if "index" in motor.get("motor_encoder", {}):
                taken.append(1 - place)
            if "brake" in motor:
                taken.append(brake_machine(config, place))
        if self._guard:
            taken += self._guard.machines
        return driver_enable(config, taken, self._beats_in)

    def _make_motor_encoder(self, pio):
        config = self.config
        if choice(config, "motor_encoder.kind", MOTOR_KINDS) != "quadrature":
            from drivers.turns import Turns

            self.encoder_source = 3  # software
            return Turns(absolute_encoder(config, "motor_encoder"))
        from drivers.rp2_quadrature import Quadrature

        self.encoder_source = 2  # PIO
        encoder = Quadrature(item(config, "motor_encoder", "a"), pio, self.inputs)
        self.facts["encoder.capture_clock"] = encoder.clock_Hz
        encoder.watch_index(config, self.facts, pio)
        return encoder

    def _make_line(self):
        if choice(self.config, "line.kind", ("uart", "usb")) == "usb":
            from drivers.rp2_usb_line import UsbLine

            if self.config["line"].get("de") is not None:
                raise WiringError("config.json: line.de is a UART's, line.kind is usb")
            return UsbLine()
        from drivers.uart_line import BUFFER, UartLine

        baud = whole(self.config, "line.baud", 57600, 3000000, 921600)
        uart = self._make_uart("line", baud, BUFFER)
        if self.config["line"].get("de") is not None:
            self._driver = self._make_driver()
        return UartLine(uart, baud, self.period_us, driver=self._driver)

    def _make_bus(self):
        """The bus of a smart drive; where it is half duplex, with the pin that turns its transceiver round."""
        slowest = SMART_DRIVES[self.config["drive"]["kind"]]
        baud = whole(self.config, "drive.baud", slowest, 4000000, slowest)
        uart = self._make_uart("drive", baud, 256)
        if self.config["drive"].get("de") is None:
            return uart
        from drivers.rp2_driver_enable import HalfDuplex, driver_enable

        taken = [brake_machine(self.config)] if self.brake else []
        return HalfDuplex(uart, driver_enable(self.config, taken, self._beats_in, "drive", baud))

    def _make_uart(self, name, baud, buffer):
        tx, rx = (Pin(item(self.config, name, pin)) for pin in ("tx", "rx"))
        return UART(item(self.config, name, "uart"), baudrate=baud, tx=tx, rx=rx, txbuf=buffer, rxbuf=buffer)

    def _make_drive(self, zero):
        config = self.config
        kind = choice(config, "drive.kind", ("pwm_direction", "half_bridges", "analog", "uart") + tuple(SMART_DRIVES))
        frequency = whole(config, "drive.frequency_Hz", 5000, 100000, rp2_chip.FREQUENCY_HZ)
        if kind == "uart":
            from drivers.uart_drive import UartDrive

            return UartDrive(self._make_uart("drive", whole(config, "drive.baud", 57600, 3000000, 460800), 256))
        if kind == "analog":
            from drivers.analog_current import AnalogCurrent

            pwm = PWM(Pin(item(config, "drive", "pwm")), freq=frequency, duty_u16=32768)
            return AnalogCurrent(pwm.duty_u16, 65535, item(config, "drive", "full_current_mA"))
        from drivers.current_loop import CurrentLoop

        check_window(frequency, self.period_us, 1000000)
        scale = self.facts.get("current.scale", 305176)
        self._loop = loop = CurrentLoop(config, self.inputs, self.period_us, scale, zero)
        return power_stage(config, frequency, loop)


def and_slow_sensors(before, read, inputs):
    """before() of rp2_turn.py, and behind it a bridge's converter and a thermistor, which have no kernels."""

    def look(hal):
        found = before(hal)
        read(inputs)
        return found

    return look


def power_stage(config, frequency, loop):
    """The drive of a motor that is given a voltage, by its part of config.json."""
    if config["drive"]["kind"] == "half_bridges":
        from drivers.rp2_half_bridges import HalfBridges

        dead_ns = whole(config, "drive.dead_time_ns", 50, 5000)
        return HalfBridges(item(config, "drive", "high"), frequency, dead_ns, loop)
    from drivers.pwm_direction import PwmDirection

    pwm = PWM(Pin(item(config, "drive", "pwm")), freq=frequency, duty_u16=0)
    return PwmDirection(pwm, Pin(item(config, "drive", "direction"), Pin.OUT, value=0), loop)


def held_low(sync):
    """The pin of the SYNC line. On an RP2350 a resistor outside, or whoever drives the line, must hold it low.

    Erratum RP2350-E9: an input between the levels leaks up to 120 uA and stays at 2.2 V; the chip's own pull-down is
    weaker. A resistor of 4.7 kOhm (0.56 V then; 8.2 kOhm is the most) is stronger. Whether there is one: with the
    chip's pull-up on, which is ten times as weak, the line must still read low.
    """
    if rp2_chip.IS_RP2350:
        pin = Pin(sync, Pin.IN, Pin.PULL_UP)
        for _ in range(TRIES):
            sleep_us(PULL_US)
            if not pin.value():
                break
        else:
            raise WiringError(
                "config.json: pins.sync %d: nothing outside the chip holds it low, and an RP2350 does not by itself "
                "(erratum RP2350-E9); put 4.7 kOhm from it to ground, or leave pins.sync out" % sync
            )
    return Pin(sync, Pin.IN, Pin.PULL_DOWN)


def registers(_pin, number):
    """Addresses and bits that set, clear and read a pin."""
    bit = 1 << number
    return rp2_chip.PIN_SET, bit, rp2_chip.PIN_CLEAR, bit, rp2_chip.PIN_LOOK, bit
