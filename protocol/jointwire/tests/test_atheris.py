"""Coverage-guided fuzzing of the decoder where atheris is installed; elsewhere test_decoder.py's cases are all."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest

PROGRAM = """
import sys
import atheris
from jointwire import decode_stream, schema_hash
from jointwire.tests import reference_decoder

def one(data):
    whole = decode_stream(data)
    expected, rest = reference_decoder.decode_stream(data, schema_hash())
    assert [chunk.encoded for chunk in whole] == [encoded for encoded, _ in expected]
    assert whole.is_frame.tolist() == [fields is not None for _, fields in expected]
    assert whole.pending == rest

atheris.Setup(sys.argv, atheris.instrument_func(one))
atheris.Fuzz()
"""


@pytest.mark.skipif(find_spec("atheris") is None, reason="atheris is not installed")
def test_what_atheris_finds() -> None:
    arguments = ["-runs=20000", "-seed=1", "-max_len=3000", "-timeout=60"]
    run = subprocess.run([sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr[-3000:]
