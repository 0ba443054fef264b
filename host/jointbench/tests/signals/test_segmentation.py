import numpy as np
import pytest

from jointbench.signals import moving_mask, rest_threshold, valid_spans


def test_spans_are_the_stretches_without_gaps():
    valid = np.array([0, 1, 1, 1, 0, 1, 0, 1, 1], dtype=np.bool_)
    assert list(valid_spans(valid)) == [slice(1, 4), slice(5, 6), slice(7, 9)]
    assert list(valid_spans(valid, min_length=2)) == [slice(1, 4), slice(7, 9)]
    assert list(valid_spans(np.zeros(4, dtype=np.bool_))) == []


def test_threshold_is_a_share_of_each_joints_largest_speed():
    velocity = np.array([[0.1, -2.0], [-1.0, 0.5]])
    assert rest_threshold(velocity) == pytest.approx([0.03, 0.06])


def test_guard_widens_rest_on_both_sides():
    velocity = np.ones((9, 2))
    velocity[4, 0] = 0.0
    threshold = np.array([0.5, 0.5])
    assert moving_mask(velocity, threshold)[:, 0].tolist() == [True] * 4 + [False] + [True] * 4
    assert moving_mask(velocity, threshold, guard=2)[:, 0].tolist() == [True] * 2 + [False] * 5 + [True] * 2
    assert moving_mask(velocity, threshold, guard=2)[:, 1].all()


def test_guard_at_the_ends():
    velocity = np.ones((6, 1))
    velocity[0] = velocity[5] = 0.0
    assert moving_mask(velocity, np.array([0.5]), guard=1)[:, 0].tolist() == [False, False, True, True, False, False]


def test_guard_longer_than_the_motion():
    velocity = np.ones((4, 1))
    velocity[1] = 0.0
    assert not moving_mask(velocity, np.array([0.5]), guard=10).any()
