"""Structs: many arrays under one name, passed to compiled rules by reference.

The compiler passes tuples by value, which for the few dozen arrays of a peer costs hundreds of
machine words a call. A `Struct` reaches compiled code as one pointer to a block of memory that
holds the address and shape of every array; interpreted code sees an ordinary object. Fields never
change which array they hold, only the arrays' contents change.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from gossamer.protocol.kernel.errors import StructError

CACHE_LINE_WORDS = 8
WORD_BYTES = 8

# Names of attributes that the compiler takes for a method of arrays, whatever has them.
_TAKEN_BY_COMPILER = frozenset({"view"})
_LARGEST = (1 << 63) - 1
_READABLE = "a NumPy array, a number, a struct, or a tuple of such"


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

    Fields are C-contiguous arrays of booleans, integers or floats, columns of ``rows``, numbers
    (bool, int of 64 bits, float), tuples (also named ones) of such, or structs. Numbers are read
    when the struct is built; what may change stands in an array.

    ``class Work(Struct, shared=True)`` or ``shared=("spare",)`` names the fields that all peers may
    write, such as scratch space; checked runs take every other array that is as long as there are
    peers to have a row a peer.

    Raises:
        StructError: on defining a class, a field's name is one that structs or the compiler use
            themselves; on building a struct, a value is of a kind that compiled rules cannot read.
    """

    # The block that compiled code reads, and its address; set once, by `block_address`.
    _block: tuple[np.ndarray[Any, np.dtype[np.int64]], int] | None = None
    _compiled_type: Any = None
    _rows: Rows | None = None
    _tells_sizes: bool = False
    # Integers that are no sizes: there is no point in code for each of them.
    _varying: ClassVar[frozenset[str]] = frozenset()
    _shared: ClassVar[frozenset[str]] = frozenset()
    # Names of fields in their order; an instance has no annotations from Python 3.14 on.
    _fields: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, shared: bool | tuple[str, ...] = False) -> None:
        super().__init_subclass__()
        names = tuple(inspect.get_annotations(cls))
        cls._fields = names or cls._fields
        cls._shared = frozenset(names if shared is True else shared or ())
        if unknown := sorted(cls._shared - set(names)):
            raise StructError(cls.__name__, unknown[0], "there is no such field", "one to share")
        for name in names:
            if name.startswith("_") or name in _TAKEN_BY_COMPILER or hasattr(Struct, name):
                raise StructError(cls.__name__, name, "the name is taken", "another name")

    def __init__(self, rows: Rows | None = None, /, **fields: Any) -> None:
        expected = set(self._fields)
        columns = {} if rows is None else self._columns_of(rows)
        for name in sorted(({*fields, *columns} ^ expected) | (fields.keys() & columns.keys())):
            fault = "it is missing" if name in expected else "there is no such field"
            if name in columns:
                fault = "it is a column of the rows and given as well"
            names = f"each once of {', '.join(sorted(expected))}"
            raise StructError(type(self).__name__, name, fault, names)
        for name, value in fields.items():
            if wrong := _fault(value):
                raise StructError(type(self).__name__, name, *wrong)
        fields |= columns
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
        return {name: view for name, view in rows.views().items() if name in self._fields}

    def with_scratch_of_its_own(self) -> Self:
        """This struct for another thread: the same arrays, but for shared fields copies.

        No word of a copy lies in a cache line with anything else.
        """
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.__dict__.pop("_block", None)
        for name in self._fields:
            value = getattr(self, name)
            if isinstance(value, Struct):
                other.__dict__[name] = value.with_scratch_of_its_own()
            elif self.is_shared(name):
                other.__dict__[name] = _copy_apart(value)
        return other

    def unboxed(self) -> Any:
        """This struct as interpreted rules take it: its arrays as memoryviews of the same memory.

        What they hold are Python's own integers there. NumPy's take an interpreter twice as long
        to get at, and to reckon with.
        """
        view = _Unboxed()
        for name in self._fields:
            value = getattr(self, name)
            if isinstance(value, Struct):
                value = value.unboxed()
            elif isinstance(value, np.ndarray):
                value = value.data
            setattr(view, name, value)
        return view

    def field_names(self) -> tuple[str, ...]:
        """Names of its fields, in the order of their declaration."""
        return self._fields

    def is_shared(self, name: str) -> bool:
        """Whether a field is declared to have no row a peer, whatever its length."""
        return name in self._shared

    def is_column(self, name: str) -> bool:
        """Whether a field is a column of the rows, which is not contiguous."""
        return self._rows is not None and name in self._rows.columns

    def block_address(self) -> int:
        """Address of the block that compiled code reads; the block lives as long as the struct.

        Threads that ask at once may each make one; they agree in one step on whose it is.
        """
        made = self._block
        if made is None:
            block = np.array([word.value for word in self._words()], np.int64)
            made = self.__dict__.setdefault("_block", (block, int(block.ctypes.data)))
        return made[1]

    def specialise_for_sizes(self) -> None:
        """Let rules be compiled for structs of exactly these sizes, those inside this one as well.

        Such code is up to a third faster, but serves no other settings. To be called before the
        first rule takes the struct.
        """
        self._tells_sizes = True
        for name in self._fields:
            if isinstance(value := getattr(self, name), Struct):
                value.specialise_for_sizes()

    def constant_words(self) -> list[int | None]:
        """The words of the block that code may be made for, None for others; [] for any sizes."""
        if not self._tells_sizes:
            return []
        return [word.value if word.is_size else None for word in self._words()]

    def _words(self) -> Iterator[_Word]:
        for name in self._fields:
            value = getattr(self, name)
            if self.is_column(name):
                yield from _words_of_array(value)
                yield _Word(value.strides[0], is_size=True)
            else:
                yield from _words_of(value, is_size=name not in self._varying)


def _copy_apart(value: Any) -> Any:
    """A copy of an array with a cache line before and after it that nobody uses; numbers as is."""
    if isinstance(value, tuple):
        copies = [_copy_apart(item) for item in value]
        return type(value)(*copies) if hasattr(value, "_fields") else tuple(copies)
    if not isinstance(value, np.ndarray):
        return value
    line = CACHE_LINE_WORDS * WORD_BYTES
    spare = np.zeros(value.nbytes + 3 * line, np.uint8)
    begin = line + -spare.ctypes.data % line
    copy = spare[begin : begin + value.nbytes].view(value.dtype).reshape(value.shape)
    copy[...] = value
    return copy


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
        yield from _words_of_array(value)
    elif isinstance(value, Struct):
        yield _Word(value.block_address(), is_size=False)
    elif isinstance(value, tuple):
        for item in value:
            yield from _words_of(item, is_size)
    elif isinstance(value, float | np.floating):
        yield _Word(_bits_of(value), is_size=False)
    else:
        yield _Word(int(value), is_size)


def _bits_of(number: float | np.floating[Any]) -> int:
    """The bits of a float64, or of a float32 in the low half, as an integer."""
    if isinstance(number, np.float32):
        return int(number.view(np.int32))
    return int(np.float64(number).view(np.int64))


def _fault(value: Any) -> tuple[str, str] | None:
    """What keeps compiled rules from reading a field, and what they can read."""
    if isinstance(value, Struct):
        return None
    if isinstance(value, tuple):
        return next((wrong for item in value if (wrong := _fault(item))), None)
    if isinstance(value, np.ndarray):
        return _fault_of_array(value)
    if isinstance(value, float | np.float32 | np.integer | np.bool_):
        number = value if isinstance(value, np.unsignedinteger) else 0
    elif isinstance(value, int):
        number = value
    else:
        return f"it is of type {type(value).__name__}", _READABLE
    if not -_LARGEST - 1 <= number <= _LARGEST:
        return f"it is {value}", "an integer of 64 bits with a sign"
    return None


def _fault_of_array(array: np.ndarray[Any, Any]) -> tuple[str, str] | None:
    if type(array) not in (np.ndarray, np.memmap):
        return f"it is of type {type(array).__name__}", _READABLE
    if array.ndim == 0:
        return "it is an array of no dimension", "an array of one dimension or more, or a number"
    if array.dtype.kind not in "biufc" or array.dtype.char in "egG":
        return f"it is an array of {array.dtype}", "an array of bool, int64, float64 or the like"
    if not array.dtype.isnative:
        return f"it is an array of byte-swapped {array.dtype}", "the bytes in this machine's order"
    if not array.flags.aligned:
        return "its items are not aligned", "a copy of the array"
    if not array.flags.c_contiguous:
        return f"it is an array of strides {array.strides}", "a C-contiguous array"
    return None


def _words_of_array(array: np.ndarray[Any, Any]) -> Iterator[_Word]:
    yield _Word(array.ctypes.data, is_size=False)
    # The number of rows says nothing of how a row is laid out.
    yield from (_Word(extent, is_size=axis > 0) for axis, extent in enumerate(array.shape))
