"""Boards: one file for each kind, with a class `Board` that app.run() drives. This is all the firmware asks of
hardware.

Attributes
    kind             name of this kind of board, at most 16 ASCII characters
    node             1..254, this board's number on its bus
    uid              at most 12 bytes that no other board has
    facts            {register name: raw value} of the "ro" and "persist" registers (jointwire/registers.py): wiring,
                     sensors, calibration as delivered
    reset_cause      RESET_CAUSE_* (wire.py): 0 unknown, 1 power on, 2 reset pin, 3 watchdog, 4 wake-up, 5 soft reset
    clock_Hz         of the processor; 0 where that means nothing
    adc              (samples a second of each input, bits, reference in mV)
    encoder_source   ENCODER_SOURCE_* (wire.py): 0 none, 1 timer, 2 PIO, 3 software, 4 emulated
    receive_buffer   bytes the line keeps until wait_tick() fetches them
    budget           optional: bytes of frames to encode in a turn, a multiple of 4: as many as the line takes meanwhile
    clock_at         address of the time that now_us() tells, as it was when wait_tick() returned, or later
    sync_input       True when `inputs` tells the edges of a SYNC line
    inputs           bytearray(120) or longer; what wait_tick() fills, little-endian:
                       8 int32: tick, time in us, SYNC edges since boot, time of the last edge in us,
                       motor counter 0..65535, link encoder, supply, motor temperature
                       16 uint16 motor current, then 16 uint16 joint torque: 12-bit, spread over the window ending now
                       4 int32: forces at the corners of a foot; of a joint whose torque sensor has a converter with a
                       clock of its own, its count and for how many ticks that has been held. For how many the forces
                       have stands in place of a motor's temperature
                       int32: time of the motor encoder's newest edge, in counts of the fact encoder.capture_clock that
                       wrap at 2^32
                       int32: pins that keep the motor off, as bits, until the next tick also where they did so for a
                       moment only: 1 stop, 2 fault, 4 limit_low, 8 limit_high
                     The link encoder's count is absolute within a turn: 0 … encoder.link_counts - 1. Supply,
                     temperature and forces are counts within int16; registers say what one is. Times are of one clock
                     that wraps at 2^32 us; what a board does not measure stays 0
    outputs          bytearray(12) or longer; what the tick computes: 3 int32: tick; 0 motor off, 1 power, 3 power and
                     its brake opened, of a motor that has one (facts brake.engage_time and brake.release_time); current
                     command in mA
    incoming, INCOMING_AT    where received bytes stand after wait_tick(), and from which index on
    outgoing, OUTGOING_AT    where bytes to be sent are put, and from which index on
    partner          of a board with two motors only: the second one's node, facts, inputs and outputs, as attributes of
                     an object. wait_tick() fills its `inputs` too, with the same tick, times and edges; apply() and
                     disable() are for both. Both have the fact board.shared_line = 1: they are two nodes of one line

A board may do its part of a turn by kernels. It then has the attributes `budget` and `kernels` (a function in place of
wait_tick() and one in place of apply(), viper both, and their argument), and the methods join(line), which is given the
cells of framing.py, whose rings it reads and writes itself, and complain(found), called with what the first function
gives beyond 0xFFFF: raises what is wrong with a sensor. 0x40000 of it means that the tick's sample was late, by LATE_BY
of the line's cells. Of two motors, whose ticks the same two functions do, partner has a join(line) of its own, and
speaking[0] is the address of those cells of the line whose frames are sent now.

Methods; only now_us(), stopwatch_us(), watchdog() and before_erasing() may allocate
    disable()        motors off at once, on the pins and in `outputs`; called first at boot, on STOP, after an error and
                     before the program ends
    wait_tick()      returns at the next tick with `inputs` filled; gives the number of received bytes (at most 512).
                     Raises EOFError when there will be no more ticks
    watchdog(timeout_ms)  called at each ARM, and for a new image's trial: from now on reset the board when wait_tick()
                     is not called for so long; a watchdog that cannot be stopped runs on until the reset
    before_erasing() the flash is about to be written, which may stop the processor for as long as an erasure takes: a
                     watchdog that runs waits that long, until the next watchdog()
    now_us()         the clock of `inputs` as it is now; an emulated board's may stand still within a tick
    stopwatch_us()   the same for measuring the board's own work; an emulated board may know how long that takes where
                     the time of its bench stands still, and where it does not know this stands still as well
    apply()          put `outputs` to the motor: ENABLE, current and brake
    room()           bytes the line can take now without waiting; asked only when there are bytes to be sent
    send(count)      give it that many bytes of `outgoing`
    flush()          wait until what was sent is on the line: the program is about to end for the REPL, and the line is
                     the interpreter's console from now on, unless other boards share it

The addresses of `inputs`, `outputs` and `outgoing` must not change; the first two must be 4-byte aligned. Outputs are
off before the first line of Python runs: the driver's ENABLE has a pull-down. With "sim_joint" in config.json a model
stands in place of motor and sensors (jointboard/sim_joint.py): of the board only its line and its time are used.
"""
