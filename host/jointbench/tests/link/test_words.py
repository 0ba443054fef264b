"""Codes of boards in words."""

import pytest

from jointbench.link.conversation import refusal_text
from jointwire import MessageType, Refusal


@pytest.mark.parametrize("refusal", list(Refusal))
def test_every_refusal_has_words(refusal: Refusal) -> None:
    text = refusal_text(refusal, 3)
    assert "does not know (value" not in text
    assert "{" not in text


def test_words_follow_the_request_where_a_code_means_two_things() -> None:
    assert refusal_text(Refusal.INCOMPLETE, 3, request=MessageType.KNOTS).startswith("it has only 3 knots so far")
    assert refusal_text(Refusal.INCOMPLETE, 3, request=MessageType.ARM).startswith("knot 3 is outside the limits")


def test_a_changed_configuration_names_its_checksum_as_people_compare_it() -> None:
    assert "CRC-32 is ffffffff" in refusal_text(Refusal.BAD_CONFIG, -1)


def test_a_code_of_a_later_release_is_told_as_it_is() -> None:
    assert refusal_text(200, 7) == "refusal 200, which this release does not know (value 7)"
