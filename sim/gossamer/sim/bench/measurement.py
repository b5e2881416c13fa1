"""What a benchmark gives."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gossamer.protocol.kernel.struct import Struct


class Measurement(NamedTuple):
    """Seconds of every repetition, bytes of state a node, and anything worth a word."""

    seconds: list[float]
    bytes_a_node: float
    note: str = ""


def state_bytes(state: Struct) -> int:
    """Bytes of all arrays of a struct, those of structs inside it included."""
    total = 0
    for value in vars(state).values():
        if isinstance(value, np.ndarray):
            total += value.nbytes
        elif isinstance(value, Struct):
            total += state_bytes(value)
    return total
