"""Loading object code into this process by what the compiler of rules makes of it.

Objects for x86-64 need little: code and constants, and absolute addresses in them. A linker for
all that there may be, as llvmlite's, takes 70 MB, half of what a busy node has; here it takes none.
What holds anything else is refused, and left to that one.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

# Of the file's head: where sections are described, and how many there are.
_SECTIONS_AT: Final = struct.Struct("<40xQ")
_SECTION_COUNT: Final = struct.Struct("<58xHHH")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_RELOCATION: Final = struct.Struct("<QQq")
_SYMBOLS, _RELOCATIONS, _PLAIN, _NO_BITS, _UNWINDING = 2, 4, 1, 8, 0x7000_0001
_WRITABLE, _IN_MEMORY = 1, 2
_ABSOLUTE_64: Final = 1  # R_X86_64_64: eight bytes are the address of a symbol and an addend
_UNDEFINED: Final = 0
_PAGE: Final = mmap.PAGESIZE


class _Section(NamedTuple):
    kind: int
    flags: int
    offset: int
    size: int
    link: int  # the section with the names, or the symbols
    target: int  # the one that relocations are of
    alignment: int


class LoadedObject:
    """Object code in memory that may be executed and not written, for as long as this lives.

    Args:
        content: an object file of 64 bits for this machine.
        address_of: of what the code calls, by name; raises KeyError.

    Raises:
        ValueError: it holds what is not known here, or is damaged.
    """

    def __init__(self, content: bytes, address_of: Callable[[str], int]) -> None:
        try:
            self._load(content, address_of)
        except (struct.error, IndexError) as error:
            raise ValueError(f"no object code: {error}") from error

    def address(self, name: str) -> int:
        """The address of a symbol that is defined in it; 0 where there is none."""
        return self._addresses.get(name, 0)

    def _load(self, content: bytes, address_of: Callable[[str], int]) -> None:
        sections = list(_sections(content))
        places, size = _layout(sections)
        self._memory = mmap.mmap(-1, max(size, _PAGE))
        base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        for section, place in places.items():
            one = sections[section]
            if one.kind == _PLAIN:
                if one.offset + one.size > len(content):
                    raise ValueError("a section ends behind the file")
                part = content[one.offset : one.offset + one.size]
                self._memory[place : place + one.size] = part
        names = dict[int, str]()
        values = dict[int, int]()
        self._addresses = dict[str, int]()
        for number, (name, section, value) in enumerate(_symbols(content, sections)):
            names[number] = name
            if section in places:
                values[number] = base + places[section] + value
                self._addresses[name] = values[number]
        for section, at, symbol, addend in _relocations(content, sections, places):
            target = values[symbol] if symbol in values else address_of(names[symbol])
            if at + 8 > sections[section].size:
                raise ValueError("a relocation is of no place in its section")
            struct.pack_into(
                "<Q", self._memory, places[section] + at, (target + addend) % (1 << 64)
            )
        _let_execute(base, len(self._memory))


def address_in_process(name: str) -> int:
    """Where a function of the C library is; raises KeyError."""
    try:
        function = getattr(ctypes.CDLL(None), name)
    except AttributeError:
        raise KeyError(name) from None
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _sections(content: bytes) -> Iterator[_Section]:
    (at,) = _SECTIONS_AT.unpack_from(content)
    _, count, _ = _SECTION_COUNT.unpack_from(content)
    for number in range(count):
        _, kind, flags, _, offset, size, link, info, alignment, _ = _SECTION.unpack_from(
            content, at + number * _SECTION.size
        )
        yield _Section(kind, flags, offset, size, link, info, max(1, alignment))


def _layout(sections: list[_Section]) -> tuple[dict[int, int], int]:
    """Where each section that is wanted in memory goes, and how much that is."""
    places, size = dict[int, int](), 0
    for number, one in enumerate(sections):
        if not one.flags & _IN_MEMORY or one.size == 0 or one.kind == _UNWINDING:
            continue
        if one.flags & _WRITABLE or one.kind not in (_PLAIN, _NO_BITS):
            raise ValueError("object code with data that changes is not known here")
        size = -(-size // one.alignment) * one.alignment
        places[number] = size
        size += one.size
    return places, size


def _symbols(content: bytes, sections: list[_Section]) -> Iterator[tuple[str, int, int]]:
    for one in sections:
        if one.kind == _SYMBOLS:
            names = sections[one.link]
            for at in range(one.offset, one.offset + one.size, _SYMBOL.size):
                name, _, _, section, value, _ = _SYMBOL.unpack_from(content, at)
                begin = names.offset + name
                end = content.index(b"\0", begin)
                yield content[begin:end].decode(), section, value


def _relocations(
    content: bytes, sections: list[_Section], places: dict[int, int]
) -> Iterator[tuple[int, int, int, int]]:
    for one in sections:
        if one.kind == _RELOCATIONS and one.target in places:
            for at in range(one.offset, one.offset + one.size, _RELOCATION.size):
                offset, info, addend = _RELOCATION.unpack_from(content, at)
                if info & 0xFFFF_FFFF != _ABSOLUTE_64:
                    raise ValueError(f"relocations of type {info & 0xFFFF_FFFF} are not known here")
                yield one.target, offset, info >> 32, addend


def _let_execute(base: int, size: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    reads_and_executes = mmap.PROT_READ | mmap.PROT_EXEC
    if library.mprotect(ctypes.c_void_p(base), ctypes.c_size_t(size), reads_and_executes) != 0:
        raise ValueError(f"memory may not be executed here (errno {ctypes.get_errno()})")
