"""Structs: many arrays under one name, passed to compiled rules by reference.

The compiler passes tuples by value, which for the few dozen arrays of a peer costs hundreds of
machine words a call. A `Struct` reaches compiled code as one pointer to a block of memory that
holds the address and shape of every array; interpreted code sees an ordinary object. Fields never
change which array they hold, only the arrays' contents change.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

CACHE_LINE_WORDS = 8
WORD_BYTES = 8


class Rows:
    """Columns of int64 that share one array, so that what belongs to a row lies together.

    A peer's dozen numbers and tables in a dozen arrays would cost a dozen cache misses, and as many
    looks into the tables of pages, whenever a record reaches it.

    Attributes:
        block: int64[n, words], zero at first; rows begin at cache lines.
        columns: by name, where the column begins and the shape of what it holds of a row.
    """

    def __init__(self, rows: int, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self.columns: dict[str, tuple[int, tuple[int, ...]]] = {}
        words = 0
        for name, shape in shapes.items():
            self.columns[name] = (words, shape)
            words += math.prod(shape)
        words += -words % CACHE_LINE_WORDS
        spare = np.zeros(rows * words + CACHE_LINE_WORDS, np.int64)
        skipped = -spare.ctypes.data // WORD_BYTES % CACHE_LINE_WORDS
        self.block = spare[skipped : skipped + rows * words].reshape(rows, words)

    def views(self) -> dict[str, np.ndarray[Any, np.dtype[np.int64]]]:
        """Every column: int64[n, *shape]."""
        rows, words = self.block.shape
        return {
            name: np.ndarray(
                (rows, *shape),
                np.int64,
                self.block,
                WORD_BYTES * at,
                (WORD_BYTES * words, *_strides(shape)),
            )
            for name, (at, shape) in self.columns.items()
        }


def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Bytes from one element to the next along every axis of a contiguous array of words."""
    return tuple(WORD_BYTES * math.prod(shape[i + 1 :]) for i in range(len(shape)))


class Struct:
    """Base class; a subclass annotates its fields, which are given by name.

    Fields are C-contiguous arrays, columns of ``rows``, Python integers, tuples (also named
    ones) of such, or structs.
    """

    _block: np.ndarray[Any, np.dtype[np.int64]] | None = None
    _address: int = 0
    _compiled_type: Any = None
    _rows: Rows | None = None
    _tells_sizes: bool = False
    # Integers that are no sizes: there is no point in code for each of them.
    _varying: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, rows: Rows | None = None, **fields: Any) -> None:
        expected = set(self.__annotations__)
        if rows is not None:
            fields |= self._columns_of(rows)
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
            self.__dict__.update(self._columns_of(self._rows))

    def _columns_of(self, rows: Rows) -> dict[str, Any]:
        """This struct's own among the columns of rows that it may share with others."""
        return {name: view for name, view in rows.views().items() if name in self.__annotations__}

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
            self._block = np.array([word.value for word in self._words()], np.int64)
            self._address = int(self._block.ctypes.data)
        return self._address

    def tell_sizes(self) -> None:
        """Let rules be compiled for structs of exactly these sizes, those inside this one as well.

        Such code is up to a third faster, but serves no other settings. To be called before the
        first rule takes the struct.
        """
        self._tells_sizes = True
        for name in self.__annotations__:
            if isinstance(value := getattr(self, name), Struct):
                value.tell_sizes()

    def known_words(self) -> list[int | None]:
        """The words of the block that code may be made for, None for others; [] for any sizes."""
        if not self._tells_sizes:
            return []
        return [word.value if word.is_size else None for word in self._words()]

    def _words(self) -> Iterator[_Word]:
        for name in self.__annotations__:
            value = getattr(self, name)
            if self.is_column(name):
                yield from _words_of_array(value)
                yield _Word(value.strides[0], is_size=True)
            else:
                yield from _words_of(value, is_size=name not in self._varying)


class _Unboxed:
    """A struct's fields, unboxed."""


def as_array(values: Any) -> Any:
    """The array behind a field of a struct, whether that is unboxed or not."""
    return values.obj if isinstance(values, memoryview) else values


class _Word(NamedTuple):
    """A word of a struct's block, and whether it says how large something is."""

    value: int
    is_size: bool


def _words_of(value: Any, is_size: bool) -> Iterator[_Word]:
    if isinstance(value, np.ndarray):
        if not value.flags.c_contiguous:
            raise ValueError(f"a struct's arrays are C-contiguous, not of strides {value.strides}")
        yield from _words_of_array(value)
    elif isinstance(value, Struct):
        yield _Word(value.block_address(), is_size=False)
    elif isinstance(value, tuple):
        for item in value:
            yield from _words_of(item, is_size)
    else:
        yield _Word(int(value), is_size)


def _words_of_array(array: np.ndarray[Any, Any]) -> Iterator[_Word]:
    yield _Word(array.ctypes.data, is_size=False)
    # The number of rows says nothing of how a row is laid out.
    yield from (_Word(extent, is_size=axis > 0) for axis, extent in enumerate(array.shape))
