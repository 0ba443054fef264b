"""Golden vectors: for each message, fields and the bytes they are on the wire, written down once and never computed.

Both halves are held to them: construct (test_messages.py) and the board's generated codec
(firmware/tests/test_wire.py).
"""

from typing import Any

from jointwire.messages import MessageType

M = MessageType

# Message, fields by name, body in hex. Repeated items follow the head.
BODY_VECTORS: list[tuple[MessageType, dict[str, Any], str]] = [
    (M.HELLO, {"major": 1, "minor": 0}, "0100"),
    (M.READ, {"first": 0x1234, "count": 7}, "34120700"),
    (M.WRITE, {"register": 33, "value": -2}, "2100feffffff"),
    (M.WRITE, {"register": 65535, "value": 2**31 - 1}, "ffffffffff7f"),
    (M.KNOTS, {"offset": 3, "count": 0, "knots": []}, "03000000"),
    (
        M.KNOTS,
        {"offset": 1, "count": 2, "knots": [{"position": 1, "velocity": -1}, {"position": -(2**31), "velocity": 256}]},
        "0100020001000000ffffffff0000008000010000",
    ),
    (M.LOAD, {"count": 626, "repeats": 2, "crc32": 0xCBF43926}, "720202002639f4cb"),
    (M.ARM, {"token": 0xFEDCBA98}, "98badcfe"),
    (M.START, {"at_tick": 0x80000001}, "01000080"),
    (M.STOP, {}, ""),
    (M.CLEAR, {}, ""),
    (M.PING, {"nonce": 0xFFFFFFFF}, "ffffffff"),
    (
        M.DATA,
        {"first_tick": 0xFFFFFFF0, "count": 64, "channels": 31, "missed": 513, "play_tick": -1},
        "f0ffffff401f0102ffffffff",
    ),
    (
        M.STATUS,
        {
            "state": 6, "trip": 5, "reserved": 0, "tick": 1000, "samples_taken": 0x80000000, "samples_dropped": 1,
            "frames_sent": 2, "frames_dropped": 3, "ticks_missed": 4, "bad_frames": 0xFFFFFFFF, "heap_free": 131072,
        },
        "06050000e80300000000008001000000020000000300000004000000ffffffff00000200",
    ),
    (
        M.FAULT,
        {"trip": 2, "state": 6, "reserved": 0, "tick": 77, "value": -(2**30) - 1, "limit": -(2**30)},
        "020600004d000000ffffffbf000000c0",
    ),
    (M.ACK, {"request": 6, "refusal": 7, "request_seq": 0xABCD, "value": -1}, "0607cdabffffffff"),
    (
        M.HELLO_ACK,
        {
            "major": 1, "minor": 0, "state": 1, "reset_cause": 3, "schema_hash": 0xDEADBEEF,
            "firmware_version": 0x00010203, "uid": bytes(range(8)), "image_sha256": bytes(range(224, 256)),
            "token": 0x80000000, "tick": 5, "max_knots": 2048, "max_block": 64,
        },
        "01000103efbeadde030201000001020304050607"
        "e0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"
        "000000800500000000084000",
    ),
    (M.VALUES, {"first": 5, "count": 2, "values": [-5, 1]}, "05000200fbffffff01000000"),
    (M.PONG, {"nonce": 0x01020304, "tick": 0xF0000000}, "04030201000000f0"),
]  # fmt: skip

# HELLO and HELLO_ACK keep their layout and a CRC that starts from zero for ever: whole frames, as they are on the line.
FRAME_VECTORS: list[tuple[MessageType, dict[str, int], bytes, str]] = [
    (M.HELLO, {"node": 255, "seq": 1, "time_us": 0}, b"\x01\x00", "040101ff0201020201010101020105536dc71300"),
    (
        M.HELLO_ACK,
        {"node": 7, "seq": 0x0102, "time_us": 0x80000000},
        bytes.fromhex(BODY_VECTORS[-3][2]),
        "04014107040201400101010380010a0103efbeadde030201012801020304050607e0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6"
        "f7f8f9fafbfcfdfeff010103800501010103084005dc202e4100",
    ),
]
