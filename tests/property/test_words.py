"""Floats pass through words unchanged, compiled and interpreted."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.kernel.float_bits import float_to_word, word_to_float
from gossamer.protocol.kernel.rules import use_compiled


@pytest.mark.parametrize("compiled", [False, True])
@given(number=st.floats(allow_nan=True, allow_infinity=True, allow_subnormal=True))
def test_a_float_passes_through_a_word_bit_for_bit(compiled: bool, number: float) -> None:
    with use_compiled(compiled):
        word = int(float_to_word(number))
        back = float(word_to_float(word))
    assert struct.pack("<d", number) == struct.pack("<q", word)
    assert struct.pack("<d", back) == struct.pack("<d", number)


@pytest.mark.parametrize("compiled", [False, True])
@given(word=st.integers(-(1 << 63), (1 << 63) - 1))
def test_a_word_passes_through_a_float_bit_for_bit(compiled: bool, word: int) -> None:
    with use_compiled(compiled):
        assert int(float_to_word(word_to_float(word))) == word
