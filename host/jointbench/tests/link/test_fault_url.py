"""The fault:// URL: what it means, and what is said of one that is wrong."""

import pytest

from jointbench.errors import FaultUrlError
from jointbench.link.fault import is_fault_url, parse_fault_url
from jointbench.link.fault.kinds import KINDS


def test_the_port_behind_is_taken_as_it_is() -> None:
    assert parse_fault_url("fault://;/dev/ttyACM0")[1] == "/dev/ttyACM0"
    inner = "socket://bench.local:4000/;x?logging=debug&y=1"
    faults, url = parse_fault_url(f"fault://seed=0x10&rx.drop=1e-3&;{inner}")
    assert url == inner
    assert faults.counts == {"rx.drop": 0}


def test_a_fault_without_a_direction_is_in_both() -> None:
    assert parse_fault_url("fault://flip=0.5&tx.lose=0.1;x")[0].counts == {"tx.flip": 0, "tx.lose": 0, "rx.flip": 0}


@pytest.mark.parametrize("name", KINDS)
def test_every_fault_can_be_given_in_each_way(name: str) -> None:
    ways = ["every:1s", "at:1s,at:2.5s"] if KINDS[name].unit == "time" else ["0.5", "every:7", "at:.5s", "0,from:10ms"]
    own = "".join(f",{setting}:{value}" for setting, value in KINDS[name].defaults.items())
    for way in ways:
        assert parse_fault_url(f"fault://{name}={way}{own};x")[0].counts == {f"tx.{name}": 0, f"rx.{name}": 0}
        assert parse_fault_url(f"fault://rx.{name}={way};x")[0].counts == {f"rx.{name}": 0}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            "rx.dorp=0.1;x",
            r"there is no fault 'rx\.dorp'; there are drop, flip, baud, lose, .*, with rx\. \(boa",
        ),
        ("up.drop=0.1;x", r"there is no fault 'up\.drop'"),
        ("rx.drop=1.5;x", r"rx\.drop = '1\.5' must be a rate from 0 to 1, such as 0\.001"),
        ("rx.drop=-1;x", r"rx\.drop = '-1' must be a rate from 0 to 1"),
        ("rx.drop=nan;x", r"rx\.drop = 'nan' must be a rate from 0 to 1"),
        ("rx.drop=often;x", r"rx\.drop = 'often' must be a rate from 0 to 1"),
        ("rx.drop;x", r"'rx\.drop' has no value; a fault is written NAME=RATE or NAME=SETTING:VALUE"),
        ("rx.drop=from:1s;x", r"must say when by one of a rate for each byte, every:N or at:TIME"),
        ("rx.drop=0.1,every:3;x", r"must say when by one of"),
        ("rx.drop=0.1,for:1s;x", r"rx\.drop has no setting 'for:1s'; it has every, at, from, until\."),
        ("rx.drop=0.1,0.2;x", r"rx\.drop has rate twice"),
        ("rx.drop=0.1&drop=0.2;x", r"rx\.drop is given twice"),
        ("seed=1&seed=2;x", r"seed is given twice"),
        ("rx.drop=every:0;x", r"rx\.drop every = '0' must be a whole number from 1\."),
        ("rx.drop=at:2;x", r"rx\.drop at:2 is not a time; it is a number with s, ms or us, such as 0\.3s"),
        ("rx.stall=0.1;x", r"rx\.stall has no setting '0\.1'; it has every, at, for"),
        ("rx.stall=for:1s;x", r"must say when by one of every:TIME or at:TIME"),
        ("rx.stall=every:1s,for:1s;x", r"rx\.stall every 1s leaves no time between stalls of 1s; it must be longer"),
        ("rx.delay=1,for:2ms..1ms;x", r"rx\.delay for:2ms\.\.1ms must begin with its shorter time"),
        ("rx.reset=0.1,for:1s..2s;x", r"rx\.reset for:1s\.\.2s is a range, which only a delay can have"),
        ("rx.baud=0.1,ratio:0;x", r"rx\.baud ratio:0 must be a number from 0\.1 to 10"),
        ("rx.baud=0.1,bytes:none;x", r"rx\.baud bytes = 'none' must be a whole number from 1 to"),
        ("seed=one;x", r"seed = 'one' must be a whole number from 0"),
        ("delimiter=256;x", r"delimiter = '256' must be a whole number from 0 to 255"),
        ("rx.drop=0.1", r"there is no port: it comes last, after a semicolon"),
        ("rx.drop=0.1;", r"there is no port"),
        ("rx.drop=0.1;fault://rx.flip=1;x", r"its port is a fault:// itself; put all faults into one"),
    ],
)
def test_what_is_wrong_is_named_with_what_is_allowed(options: str, message: str) -> None:
    with pytest.raises(FaultUrlError, match=message) as caught:
        parse_fault_url(f"fault://{options}")
    assert str(caught.value).startswith(f"fault://{options}: ")
    assert "For example fault://seed=1&rx.drop=0.001&tx.stall=at:2s,for:0.3s;/dev/ttyACM0" in str(caught.value)


def test_the_example_of_the_errors_is_right() -> None:
    faults, url = parse_fault_url("fault://seed=1&rx.drop=0.001&tx.stall=at:2s,for:0.3s;/dev/ttyACM0")
    assert (faults.counts, url) == ({"tx.stall": 0, "rx.drop": 0}, "/dev/ttyACM0")
    assert is_fault_url("FAULT://seed=1;x")
    assert not is_fault_url("/dev/ttyACM0")
