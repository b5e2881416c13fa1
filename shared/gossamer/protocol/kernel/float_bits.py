"""Floating-point numbers in the 64-bit words of records, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.protocol.kernel.rules import inline_rule


@inline_rule
def float_to_word(number: float) -> Any:
    """The int64 that has the bits of a float64 (IEEE 754), also of NaN and signed zero."""
    return np.float64(number).view(np.int64)


@inline_rule
def word_to_float(word: int) -> Any:
    """The float64 that has the bits of an int64; undoes `float_to_word`."""
    return np.int64(word).view(np.float64)
