"""Structs: many arrays under one name, passed to compiled rules by reference.

The compiler passes tuples by value, which for the few dozen arrays of a peer costs hundreds of
machine words a call. A `Struct` reaches compiled code as one pointer to a block of memory that
holds the address and shape of every array; interpreted code sees an ordinary object. Fields never
change which array they hold, only the arrays' contents change.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class Struct:
    """Base class; a subclass annotates its fields, which are given by name.

    Fields are C-contiguous arrays, Python integers, tuples (also named ones) of such, or structs.
    """

    _block: np.ndarray[Any, np.dtype[np.int64]] | None = None
    _compiled_type: Any = None

    def __init__(self, **fields: Any) -> None:
        expected = set(self.__annotations__)
        if set(fields) != expected:
            raise TypeError(f"fields are {sorted(fields)}, expected {sorted(expected)}")
        self.__dict__.update(fields)

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):
            raise AttributeError(f"{name} cannot be set: a struct keeps its arrays")
        super().__setattr__(name, value)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}

    def __setstate__(self, fields: dict[str, Any]) -> None:
        self.__dict__.update(fields)

    def block_address(self) -> int:
        """Address of the block that compiled code reads; the block lives as long as the struct."""
        if self._block is None:
            words: list[int] = []
            for name in self.__annotations__:
                _pack(getattr(self, name), words)
            self._block = np.array(words, np.int64)
        return int(self._block.ctypes.data)


def _pack(value: Any, words: list[int]) -> None:
    if isinstance(value, np.ndarray):
        if not value.flags.c_contiguous:
            raise ValueError(f"a struct's arrays are C-contiguous, not of strides {value.strides}")
        words.append(value.ctypes.data)
        words.extend(value.shape)
    elif isinstance(value, Struct):
        words.append(value.block_address())
    elif isinstance(value, tuple):
        for item in value:
            _pack(item, words)
    else:
        words.append(int(value))
