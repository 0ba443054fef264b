"""Packed samples to arrays: NumPy does the bodies that construct would be a hundred times slower at."""

import numpy as np
from numpy.typing import NDArray

from jointwire.channels import CHANNELS
from jointwire.errors import BodyError
from jointwire.framing import Frame
from jointwire.messages import BODIES, MessageType

_NUMPY_CODES = {"h": "<i2", "i": "<i4"}
_DATA_HEAD = BODIES[MessageType.DATA].sizeof()


def sample_dtype(channels: int) -> np.dtype[np.void]:
    """Dtype of one packed sample (little-endian, no padding) with the channels of the bit mask `channels`."""
    return np.dtype([(c.name, _NUMPY_CODES[c.format]) for c in CHANNELS if channels >> c.bit & 1])


def decode_samples(frame: Frame) -> NDArray[np.void]:
    """Samples of a DATA frame as a structured array, one record a tick.

    Raises:
        BodyError: the body's length is not that of `count` samples of these channels.
    """
    dtype = sample_dtype(frame.body.channels)
    expected = _DATA_HEAD + frame.body.count * dtype.itemsize
    if len(frame.payload) != expected:
        raise BodyError(
            f"DATA frame {frame.seq} of node {frame.node} says {frame.body.count} samples of {dtype.itemsize} bytes "
            f"({expected} bytes with the head) but carries {len(frame.payload)}"
        )
    return np.frombuffer(frame.payload, dtype, frame.body.count, _DATA_HEAD)
