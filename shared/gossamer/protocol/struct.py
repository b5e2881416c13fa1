"""Structs: many arrays under one name, passed to compiled rules by reference.

The compiler passes tuples by value, which for the few dozen arrays of a peer costs hundreds of
machine words a call. A `Struct` reaches compiled code as one pointer to a block of memory that
holds the address and shape of every array; interpreted code sees an ordinary object. Fields never
change which array they hold, only the arrays' contents change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

CACHE_LINE_WORDS = 8
WORD_BYTES = 8


class Rows:
    """Columns of int64 that share one array, so that what belongs to a row lies together.

    A peer's dozen numbers in a dozen arrays would cost a dozen cache misses whenever a record
    reaches it.

    Attributes:
        block: int64[n, words], zero at first; rows begin at cache lines.
        columns: by name, where the column begins and how wide it is, None for a plain vector.
    """

    def __init__(self, rows: int, widths: Mapping[str, int | None]) -> None:
        self.columns: dict[str, tuple[int, int | None]] = {}
        words = 0
        for name, width in widths.items():
            self.columns[name] = (words, width)
            words += 1 if width is None else width
        words += -words % CACHE_LINE_WORDS
        spare = np.zeros(rows * words + CACHE_LINE_WORDS, np.int64)
        skipped = -spare.ctypes.data // WORD_BYTES % CACHE_LINE_WORDS
        self.block = spare[skipped : skipped + rows * words].reshape(rows, words)

    def views(self) -> dict[str, np.ndarray[Any, np.dtype[np.int64]]]:
        """Every column: int64[n], or int64[n, width]."""
        return {
            name: self.block[:, at] if width is None else self.block[:, at : at + width]
            for name, (at, width) in self.columns.items()
        }


class Struct:
    """Base class; a subclass annotates its fields, which are given by name.

    Fields are C-contiguous arrays, the columns of ``rows``, Python integers, tuples (also named
    ones) of such, or structs.
    """

    _block: np.ndarray[Any, np.dtype[np.int64]] | None = None
    _address: int = 0
    _compiled_type: Any = None
    _rows: Rows | None = None

    def __init__(self, rows: Rows | None = None, **fields: Any) -> None:
        if rows is not None:
            fields |= rows.views()
        expected = set(self.__annotations__)
        if set(fields) != expected:
            raise TypeError(f"fields are {sorted(fields)}, expected {sorted(expected)}")
        self.__dict__.update(fields)
        self._rows = rows

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):
            raise AttributeError(f"{name} cannot be set: a struct keeps its arrays")
        super().__setattr__(name, value)

    def __getstate__(self) -> dict[str, Any]:
        fields = {name: value for name, value in self.__dict__.items() if name[0] != "_"}
        if self._rows is not None:
            fields = {name: fields[name] for name in fields if name not in self._rows.columns}
        return {"_rows": self._rows, **fields}

    def __setstate__(self, fields: dict[str, Any]) -> None:
        self.__dict__.update(fields)
        if self._rows is not None:
            self.__dict__.update(self._rows.views())

    def unboxed(self) -> Any:
        """This struct as interpreted rules take it: its arrays as memoryviews of the same memory.

        What they hold are Python's own integers there. NumPy's take an interpreter twice as long
        to get at, and to reckon with.
        """
        view = _Unboxed()
        for name in self.__annotations__:
            value = getattr(self, name)
            if isinstance(value, Struct):
                value = value.unboxed()
            elif isinstance(value, np.ndarray):
                value = value.data
            setattr(view, name, value)
        return view

    def is_column(self, name: str) -> bool:
        """Whether a field is a column of the rows, which is not contiguous."""
        return self._rows is not None and name in self._rows.columns

    def block_address(self) -> int:
        """Address of the block that compiled code reads; the block lives as long as the struct."""
        if self._block is None:
            words: list[int] = []
            for name in self.__annotations__:
                if self.is_column(name):
                    _pack_column(getattr(self, name), words)
                else:
                    _pack(getattr(self, name), words)
            self._block = np.array(words, np.int64)
            self._address = int(self._block.ctypes.data)
        return self._address


class _Unboxed:
    """A struct's fields, unboxed."""


def as_array(values: Any) -> Any:
    """The array behind a field of a struct, whether that is unboxed or not."""
    return values.obj if isinstance(values, memoryview) else values


def _pack_column(column: np.ndarray[Any, Any], words: list[int]) -> None:
    words.append(column.ctypes.data)
    words.extend(column.shape)
    words.extend(column.strides)


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
