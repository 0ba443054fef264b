"""The second motor of an RP2 board: its part of config.json under "partner", its sensors, ENABLE and drive.

Kernels do its ticks (rp2_fused.py), so it has what they know: quadrature, PWM and direction or half bridges, an
AS5047P, AS5048, AS5600 or no link encoder. The state machines are those beside the first motor's, in the same PIOs.
"""

from drivers import rp2_chip
from drivers.absolute_encoder import absolute_encoder
from drivers.analog import check_window
from drivers.configuration import choice, item, whole
from drivers.current_loop import CurrentLoop
from drivers.current_sense import block_sum, zero_offset
from drivers.errors import WiringError
from drivers.joint import INPUTS, MOST_MISSED, OUTPUTS, VOLTAGE_DRIVES, holding_brake, safety_pins
from drivers.rp2_heartbeat import MACHINE, Heartbeat, brake_machine
from drivers.rp2_quadrature import Quadrature
from jointboard import rooms


class SecondMotor:
    """What a Hal's `partner` has, ENABLE low.

    Args: config.json; the first motor's PIO; the tick in us; the board's RoundRobinAdc; what waits for a
    tick; the board's join(line) for this motor; what makes its drive.
    """

    def __init__(self, config, pio, period_us, adc, wait, join, power_stage):
        self._adc, self._wait, self.join = adc, wait, join
        whole_config, first, config = config, config["motor_encoder"], dict(config["partner"])
        if "index" in first and "index" in config.get("motor_encoder", {}) and not rp2_chip.IS_RP2350:
            raise WiringError(
                "config.json: motor_encoder.index is given for both motors; an RP2040 has DMA for one index pulse, so "
                "leave one of them out"
            )
        try:
            self._set_up(config, pio, period_us, power_stage, whole_config)
        except WiringError as error:
            raise WiringError("partner: %s" % error)

    def _set_up(self, config, pio, period_us, power_stage, of_board):
        self.config = config
        choice(config, "motor_encoder.kind", ("quadrature",))
        choice(config, "drive.kind", VOLTAGE_DRIVES)
        self.node = whole(config, "node", 1, 254)
        self.facts = facts = dict(config.get("facts", {}))
        self.inputs, self.outputs = rooms.buffer(INPUTS), rooms.buffer(OUTPUTS)
        beats_in = 1 - min(pio, 1)
        self.enable = Heartbeat(item(config, "pins", "enable"), beats_in, period_us, MACHINE - 1)
        self.safety = safety_pins(config, not rp2_chip.IS_RP2350)
        self.brake = holding_brake(
            config, facts, lambda pin, level: Heartbeat(pin, beats_in, period_us, brake_machine(of_board, 1), level)
        )
        self.motor_encoder = Quadrature(item(config, "motor_encoder", "a"), pio, self.inputs, 1)
        facts["encoder.capture_clock"] = self.motor_encoder.clock_Hz
        self.motor_encoder.watch_index(config, facts, pio)
        self.link_encoder = absolute_encoder(config, "link_encoder")
        if self.link_encoder:
            facts.setdefault("encoder.link_counts", self.link_encoder.COUNTS)
        frequency = whole(config, "drive.frequency_Hz", 5000, 100000, rp2_chip.FREQUENCY_HZ)
        check_window(frequency, period_us, 1000000)
        facts["current.zero"] = zero = zero_offset(self._block, self.motor_encoder.read)  # a saved one replaces it
        self.loop = CurrentLoop(config, self.inputs, period_us, facts.get("current.scale", 305176), zero)
        self.drive = power_stage(config, frequency, self.loop)
        facts["hard.missed_ticks"] = min(facts.get("hard.missed_ticks", MOST_MISSED), MOST_MISSED)

    def disable(self):
        """Off at once, on the pins and in `outputs`."""
        self.enable.value(0)
        if self.brake:
            self.brake.value(0)
        for k in range(4, OUTPUTS):
            self.outputs[k] = 0
        self.drive.off()

    def _block(self):
        self._wait()
        self._adc.measure(self.inputs, 1)
        return block_sum(self.inputs)
