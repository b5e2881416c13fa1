"""Words of 64 bits within bytes, little endian, at any place."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.protocol.kernel.rules import rule_with_interpreted_form
from gossamer.protocol.kernel.struct import WORD_BYTES

BITS = 8


def _read_at_once(data: Any, at: int) -> int:
    return int.from_bytes(data[at : at + WORD_BYTES], "little", signed=True)


@rule_with_interpreted_form(_read_at_once)
def read_word(data: Any, at: int) -> Any:
    """The word in ``data[at : at + 8]``."""
    word = np.int64(0)
    for i in range(WORD_BYTES):
        word |= np.int64(data[at + i]) << np.int64(BITS * i)
    return word


def _write_at_once(data: Any, at: int, word: int) -> None:
    data[at : at + WORD_BYTES] = int(word).to_bytes(WORD_BYTES, "little", signed=True)


@rule_with_interpreted_form(_write_at_once)
def write_word(data: Any, at: int, word: int) -> None:
    """Put a word into ``data[at : at + 8]``."""
    for i in range(WORD_BYTES):
        data[at + i] = (word >> (BITS * i)) & 0xFF


def _copy_at_once(data: Any, at: int, size: int, target: Any, to: int) -> None:
    target[to : to + size] = data[at : at + size]


@rule_with_interpreted_form(_copy_at_once)
def copy_bytes(data: Any, at: int, size: int, target: Any, to: int) -> None:
    """Copy ``data[at:at + size]`` to ``target[to:]``, another array."""
    for i in range(size):
        target[to + i] = data[at + i]
