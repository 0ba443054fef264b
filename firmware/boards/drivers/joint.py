"""What every board with real hardware does alike; boards/{rp2,stm32,esp32}.py add the hardware itself.

The Hal is described in boards/__init__.py. Here: the two blocks of memory, the order of things in a tick, ENABLE and
the drive, the line, the watchdog. A tick allocates nothing unless a sensor fails.
"""

from time import ticks_diff, ticks_us

import micropython
from micropython import const

from drivers.charge_pump import ChargePump
from drivers.clock import Clock
from drivers.configuration import enable_low, whole
from drivers.current_sense import block_sum, zero_offset
from drivers.errors import WiringError
from jointboard import rooms

LINE = const(512)  # received bytes in a tick, at most
INPUTS = const(120)
OUTPUTS = const(12)
SOFTWARE = const(3)  # encoder_source
TRIES = const(8)
# With sensors and a current loop of their own: the least baud of their bus, for a tick's packets in 0.7 ms.
SMART_DRIVES = {"dynamixel": 1000000, "vesc": 460800}
VOLTAGE_DRIVES = ("pwm_direction", "half_bridges")
MOST_MISSED = const(5)  # ticks for which a voltage may stand: what current it drives nobody looks at meanwhile


class NoDrive:
    """Of a board that simulates its joint."""

    def command(self, current_mA):
        pass

    def off(self):
        pass


class Joint:
    """A board without its hardware. A subclass's constructor calls this one, begin() and, last, complete().

    Args: the port's Pin, and a watchdog's class, started by `watchdog(timeout_ms)`.
    """

    INCOMING_AT = INPUTS
    OUTGOING_AT = OUTPUTS
    sync_input = False
    lead_us = 0  # how long before the tick measuring begins
    shortest_watchdog_ms = 1
    longest_watchdog_ms = 30000
    bridges = ntc = None
    safety = None  # pins that keep the motor off (safety_pins.py)
    brake = None  # value(1) opens it
    _adc = None  # measure(inputs)
    slow_sensors = False
    clock_Hz = 0

    def __init__(self, pin_class, dog_class):
        self._enable, self.config = enable_low(pin_class)
        if self.config.get("charge_pump"):
            self._enable = ChargePump(self._enable)
        self.inputs = self.incoming = rooms.buffer(INPUTS + LINE)
        self.outputs = self.outgoing = rooms.buffer(OUTPUTS + LINE)
        self._received = memoryview(self.incoming)[INPUTS:]
        self._sent = memoryview(self.outgoing)[OUTPUTS:]
        self.node = whole(self.config, "node", 1, 254)
        self.facts = dict(self.config.get("facts", {}))
        self.period_us = self.facts.get("board.tick_period", 1000)
        self._dog_class, self._dog, self._dog_ms = dog_class, None, 0
        self._pin_class = pin_class

    def begin(self, line, motor_encoder, link_encoder, sync_pin, **irq):
        """Start the clock. A SYNC pin gives its rising edges; `irq` as the port's Pin.irq has it. None: none."""
        if "sim_joint" in self.config:  # a bare board: nothing answers on its pins
            motor_encoder = link_encoder = self.bridges = self.ntc = None
        self.slow_sensors = bool(self.bridges or self.ntc)
        self.line, self.motor_encoder, self.link_encoder = line, motor_encoder, link_encoder
        self.receive_buffer, self.budget = line.receive_buffer, line.budget
        if link_encoder:
            self.facts.setdefault("encoder.link_counts", link_encoder.COUNTS)
        self._clock = Clock(self.period_us)
        self.clock_at = self._clock.address
        if sync_pin:
            sync_pin.irq(self._clock.edge, sync_pin.IRQ_RISING, **irq)
            self.sync_input = True

    def begin_at_a_foot(self, line, registers, sync_pin, **irq):
        """A foot's board has no motor, and reads nothing but the cells of add_sensors(): all of its start."""
        self.adc, self.encoder_source = (0, 0, 0), 0
        self.add_sensors(registers)
        self.begin(line, None, None, sync_pin, **irq)
        self.drive = NoDrive()

    def begin_at_a_smart_drive(self, bus, line, sync_pin, **irq):
        """Of a board whose motor is a smart drive at this bus, which measures all there is: all of its start."""
        from drivers.smart_drive import smart_drive

        self.adc, self.encoder_source = (0, 0, 0), SOFTWARE
        self._adc = self.drive = drive = smart_drive(bus, self.config)
        self.facts.update(drive.facts)
        self.begin(line, None, None, sync_pin, **irq)

    def add_sensors(self, registers):
        """What any port reads alike: "torque", "foot" and "ntc" of config.json; registers() as hx711.py has it.

        To be called before begin().
        """
        config, facts = self.config, self.facts
        if "sim_joint" in config:
            return
        if "torque" in config or "foot" in config:
            from drivers import bridges

            if "foot" in config:
                self.bridges = bridges.foot_bridges(config, registers, self.clock_Hz, self.period_us)
                facts["board.channels"] = bridges.FOOT_CHANNELS
            else:
                self.bridges = bridges.torque_bridge(config, registers, self.clock_Hz, self.period_us)
                channels = facts.get("board.channels", bridges.JOINT_CHANNELS) & ~bridges.ANALOG_TORQUE
                facts["board.channels"] = channels | bridges.TORQUE_CHANNELS
            self.bridges.start()
        if "ntc" in config:
            from drivers.ntc import Ntc

            if "temperature" not in config.get("analog", {}):
                raise WiringError("config.json: ntc is given, but no analog.temperature, the pin of its divider")
            self.ntc = Ntc(config)
            facts.update(self.ntc.facts())

    def watch_pins(self, pulls_down=True, make_brake=None):
        """The pins of config.json that keep the motor off, and its brake's; a bare board has none.

        make_brake(pin, level that opens it): in place of a pin that is a level.
        """
        if "sim_joint" not in self.config:
            self.safety = safety_pins(self.config, pulls_down)
            self.brake = holding_brake(self.config, self.facts, make_brake or self._level_brake)

    def _level_brake(self, number, level):
        from drivers.brake import LevelBrake

        return LevelBrake(self._pin_class, number, level)

    def complete(self, make_drive):
        """Give the board its drive: make_drive(the count that the current sensor reads at no current)."""
        if "sim_joint" in self.config:
            self.drive = NoDrive()
            return
        self.facts["current.zero"] = zero = zero_offset(self._block, self._motor_count)  # a saved one replaces it
        self.drive = make_drive(zero)
        if self.config["drive"]["kind"] in VOLTAGE_DRIVES:
            most = self.facts.get("hard.missed_ticks", MOST_MISSED)
            self.facts["hard.missed_ticks"] = min(most, MOST_MISSED)

    def measure(self, inputs):
        """Fill in the ADC's blocks, supply and temperature as of now."""
        if self._adc:
            self._adc.measure(inputs)

    def time_measuring(self):
        """How long measuring takes here, in us: the longest of some tries. It is begun that long before the tick."""
        longest = 0
        for _ in range(TRIES):
            start = ticks_us()
            self.measure(self.inputs)
            longest = max(longest, ticks_diff(ticks_us(), start))
        if 2 * longest > self.period_us:
            raise WiringError(
                "measuring takes %d of a tick's %d us, more than half: take fewer samples (analog_samples, "
                "analog), or a longer tick (fact board.tick_period)" % (longest, self.period_us)
            )
        return longest

    def disable(self):
        self._enable.value(0)
        if self.brake:
            self.brake.value(0)
        outputs = self.outputs
        for k in range(4, OUTPUTS):
            outputs[k] = 0
        try:
            self.drive.off()
        except Exception:  # a bus that is stuck: the power stage is off already
            pass

    def wait_tick(self):
        clock, inputs = self._clock, self.inputs
        if self._dog:
            self._dog.feed()
        clock.wait(self.lead_us)
        self.measure(inputs)
        if self.motor_encoder:
            put(inputs, 4, self.motor_encoder.read())
        if self.link_encoder:
            put(inputs, 5, self.link_encoder.read())
        if self.slow_sensors:
            self._read_slow_sensors(inputs)
        if self.safety:
            put(inputs, 29, self.safety.read())
        clock.tick(inputs)
        received = self.line.receive(self._received, LINE)
        clock.look()
        return received

    def _read_slow_sensors(self, inputs):
        if self.bridges:
            self.bridges.read(inputs)
        if self.ntc:
            put(inputs, 7, self.ntc.to_centidegrees(get(inputs, 7)))

    def now_us(self):
        return self._clock.now_us()

    def stopwatch_us(self):
        return self._clock.now_us()

    def apply(self):
        outputs = self.outputs
        power = get(outputs, 1)
        if power:
            self.drive.command(get(outputs, 2))
            self._enable.value(1)  # after the command: the power stage never acts on an old one
        else:
            self._enable.value(0)
            self.drive.off()
        if self.brake:
            self.brake.value(power >> 1)

    def room(self):
        return min(self.line.room(), LINE)

    def send(self, count):
        if count:
            self.line.send(self._sent, count)

    def flush(self):
        self.line.flush()
        if not self.facts.get("board.shared_line"):  # what is said to other boards is not typed at this one
            self.line.become_console()
        if self._dog:
            self.calm(self._dog_class)

    def watchdog(self, timeout_ms):
        """From now on the board resets when wait_tick() does not come in time."""
        timeout_ms = max(self.shortest_watchdog_ms, min(timeout_ms, self.longest_watchdog_ms))
        if timeout_ms != self._dog_ms:
            self._dog, self._dog_ms = self._dog_class(timeout=timeout_ms), timeout_ms

    def before_erasing(self):
        if self._dog:
            self.watchdog(self.longest_watchdog_ms)

    def calm(self, dog_class):
        """The program ends with the motor off: give what comes after it as long as this watchdog can."""
        dog_class(timeout=self.longest_watchdog_ms).feed()

    def _block(self):
        self._clock.wait(self.lead_us)
        self.measure(self.inputs)
        self._clock.tick(self.inputs)
        return block_sum(self.inputs)

    def _motor_count(self):
        return self.motor_encoder.read() if self.motor_encoder else 0


def safety_pins(config, pulls_down=True):
    """A motor's pins that keep it off; None, and nothing loaded, where its part of config.json names none."""
    for name, number in config["pins"].items():
        if number is not None and name in ("stop", "fault", "limit_low", "limit_high"):
            from drivers.safety_pins import SafetyPins

            return SafetyPins(config, pulls_down)


def holding_brake(config, facts, make):
    """What make(its pin, the level that opens it) gives; None, and nothing loaded, where a motor has no brake."""
    if "brake" in config or config["pins"].get("brake") is not None:
        from drivers import brake

        return make(brake.brake_pin(config, facts), brake.open_level(config))


@micropython.viper
def put(_block, index: int, value: int):
    block = ptr32(_block)
    block[index] = value


@micropython.viper
def get(_block, index: int) -> int:
    block = ptr32(_block)
    return block[index]
