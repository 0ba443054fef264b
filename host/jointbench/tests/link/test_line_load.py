"""A shared line must carry what its boards stream."""

import pytest

from jointbench.errors import BenchFileError
from jointbench.link.bench_file import BoardEntry
from jointbench.link.identity import Facts
from jointbench.link.settings import stream_registers
from jointbench.link.shared_line import bytes_per_second, check_load
from jointbench.tests.link.wire import DEFAULTS


def line(count: int, baud: int = 921600) -> tuple[list[BoardEntry], list[Facts]]:
    return [BoardEntry(node, f"j{node}", "/dev/A", baud) for node in range(1, count + 1)], [Facts(DEFAULTS)] * count


def test_a_joints_stream_by_hand() -> None:
    # 64 ticks of 2 + 4 + 4 + 2 + 2 bytes and two slow channels of 2; a frame has 12 + 18 + 4 of head and CRC, the
    # COBS code and the delimiter, and a byte more for each 254. A turn: PING, PONG and YIELD of 22 + 26 + 18 bytes.
    block = 64 * 14 + 4 + 34 + 2 + (64 * 14 + 4 + 34) // 254
    # The zeros of head and CRC shift where COBS puts its bytes: two more or less.
    assert bytes_per_second(Facts(DEFAULTS)) == pytest.approx(block / 0.064 + 66 / 0.09, abs=2 / 0.064 + 3 / 0.09)


def test_dividers_and_channels_count() -> None:
    half = {**DEFAULTS, "stream.every_motor_encoder": 1}
    assert bytes_per_second(Facts(DEFAULTS)) - bytes_per_second(Facts(half)) == pytest.approx(2000, abs=20)
    without = {**DEFAULTS, "stream.channels": DEFAULTS["stream.channels"] & ~2}
    assert bytes_per_second(Facts(DEFAULTS)) - bytes_per_second(Facts(without)) == pytest.approx(4000, abs=20)


def test_fourteen_boards_fit_two_lines_with_a_sample_each_eighth_tick() -> None:
    foot = Facts({**DEFAULTS, "board.channels": 0b11110100000})
    leg = [Facts({**DEFAULTS, **stream_registers(facts, 8)}) for facts in (*[Facts(DEFAULTS)] * 6, foot)]
    entries = [BoardEntry(node, f"j{node}", "/dev/A", 921600) for node in range(1, 8)]
    check_load(entries, leg)
    assert sum(map(bytes_per_second, leg)) < 92160 / 3
    with pytest.raises(BenchFileError, match="its boards stream 10"):
        check_load(entries, [Facts({**each.registers, **stream_registers(each, 1)}) for each in leg])


def test_five_fit_and_six_do_not() -> None:
    check_load(*line(5))
    message = r"line '/dev/A' of j1, .*, j6: its boards stream 9\d\.\d kB/s, 921600 baud carry 92\.2 kB/s, of which 90%"
    with pytest.raises(BenchFileError, match=message):
        check_load(*line(6))
    check_load(*line(6, 2_000_000))
