"""Boards: one file for each kind, with a class `Board` that app.run() drives. This is all the firmware asks of
hardware.

Attributes
    node             1..254, this board's number on its bus
    uid              8 bytes that no other board has
    facts            {fact name: raw value} of the "ro" registers (jointwire/registers.py): wiring, sensors, calibration
    reset_cause      0 unknown, 1 power on, 2 reset pin, 3 watchdog, 4 wake-up, 5 soft reset
    inputs           bytearray(96) or longer; what wait_tick() fills, little-endian:
                       8 int32: tick, time in us, -, -, motor counter 0..65535, link encoder, supply in mV, -
                       16 uint16 motor current, then 16 uint16 joint torque: 12-bit, spread over the window ending now
    outputs          bytearray(12) or longer; what the tick computes: 3 int32: tick, enable 0/1, current command in mA
    incoming, INCOMING_AT    where received bytes stand after wait_tick(), and from which index on
    outgoing, OUTGOING_AT    where bytes to be sent are put, and from which index on

Methods, none of which may allocate
    disable()        motor off at once, on the pins and in `outputs`; called first at boot, on STOP and after an error
    wait_tick()      returns at the next tick with `inputs` filled; gives the number of received bytes (at most 512).
                     Raises EOFError when there will be no more ticks
    apply()          put `outputs` to the motor: ENABLE and current
    room()           bytes the line can take now without waiting
    send(count)      give it that many bytes of `outgoing`

The addresses of `inputs` and `outputs` must not change and both must be 4-byte aligned. Outputs are off before the
first line of Python runs: the driver's ENABLE has a pull-down.
"""
