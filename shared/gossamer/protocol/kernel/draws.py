"""Random draws of (seed, permanent key, counter) alone; floats in the words of records.

The generator is a counter through two rounds of the SplitMix64 finaliser (Steele, Lea, Flood,
OOPSLA 2014): no state but the counter, so a draw is the same on any thread, host or visiting
order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.rules import inline_rule, rule_with_interpreted_form

_MASK = (1 << 64) - 1


def _mix_interpreted(seed: int, key: int, counter: int) -> int:
    z = (int(seed) ^ (int(key) * 0x9E3779B97F4A7C15)) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    z = ((z ^ (z >> 31)) + int(counter) * 0xD1B54A32D192ED03) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return (z ^ (z >> 31)) >> 2


@rule_with_interpreted_form(_mix_interpreted)
def mix(seed: int, key: int, counter: int) -> Any:
    """A uniform draw from [0, 2^62) for (seed, key, counter), all signed 64-bit."""
    z = np.uint64(seed) ^ (np.uint64(key) * np.uint64(0x9E3779B97F4A7C15))
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = (z ^ (z >> np.uint64(31))) + np.uint64(counter) * np.uint64(0xD1B54A32D192ED03)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64((z ^ (z >> np.uint64(31))) >> np.uint64(2))


@inline_rule
def below(draw: int, bound: int) -> int:
    """Map a draw from [0, 2^62) to [0, bound) by its 31 high bits; bound below 2^31."""
    return ((draw >> 31) * bound) >> 31


def mix_many(seed: int, keys: npt.NDArray[np.int64], counter: int) -> npt.NDArray[np.int64]:
    """`mix` for an array of keys at once: int64, same shape, same values."""
    odd = np.uint64(0x9E3779B97F4A7C15)
    first, second = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
    z = np.uint64(int(seed) & _MASK) ^ (keys.astype(np.uint64) * odd)
    z = (z ^ (z >> np.uint64(30))) * first
    z = (z ^ (z >> np.uint64(27))) * second
    z = (z ^ (z >> np.uint64(31))) + np.uint64(counter * 0xD1B54A32D192ED03 & _MASK)
    z = (z ^ (z >> np.uint64(30))) * first
    z = (z ^ (z >> np.uint64(27))) * second
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(2)).astype(np.int64)


# Floating-point numbers in the 64-bit words of records, bit for bit.


@inline_rule
def float_to_word(number: float) -> Any:
    """The int64 that has the bits of a float64 (IEEE 754), also of NaN and signed zero."""
    return np.float64(number).view(np.int64)


@inline_rule
def word_to_float(word: int) -> Any:
    """The float64 that has the bits of an int64; undoes `float_to_word`."""
    return np.int64(word).view(np.float64)
