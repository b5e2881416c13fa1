"""Linking object code of rules into this process without the compiler (`native_code`).

Objects for x86-64 are loaded by `elf_loading`. For other machines, and what that does not know, the
linker is the one of llvmlite: 70 MB of memory, 22 of which nobody else shares, and a few hundredths
of a second.
"""

from __future__ import annotations

import ctypes
import hashlib
import mmap
import platform
import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, Protocol

# Loading object code into this process by what the compiler of rules makes of it.
#
# Objects for x86-64 need little: code and constants, and absolute addresses in them. A linker for
# all that there may be, as llvmlite's, takes 70 MB, half of what a busy node has; here it takes
# none. What holds anything else is refused, and left to that one.


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


# What object files begin with: ELF of 64 bits, little endian, with the machine's number; Mach-O.
_ELF: Final = b"\x7fELF\x02\x01\x01"
_ELF_MACHINES: Final = {"x86_64": 62, "aarch64": 183, "arm64": 183}
_ELF_HEAD: Final = struct.Struct("<16xHH")
_RELOCATABLE: Final = 1
_MACH_O: Final = b"\xcf\xfa\xed\xfe"

# The linker of llvmlite, which a process has that compiles.
_BINDING: Final = "llvmlite.binding"

Function = Callable[..., int]


class LinkedCode:
    """Functions of object code, callable as long as this or one of them lives."""

    def __init__(
        self,
        content: bytes,
        symbols: Mapping[str, str],
        arguments: Mapping[str, int],
        called: Iterable[Standalone] = (),
    ) -> None:
        """Link ``content``, in which functions of so many arguments have these symbols.

        What it calls is linked before, in the order given.

        Raises:
            ValueError: it is no object code for this machine, or a symbol is missing.
        """
        if not _is_for_this_machine(content):
            raise ValueError("it is no object code for this machine")
        for one in called:
            one.link()
        self._loaded = _load(content)
        self._functions: dict[str, tuple[int, int]] = {}
        for name, symbol in symbols.items():
            address = self._loaded.address(symbol)
            if not address:
                raise ValueError(f"the object code has no function {name}")
            self._functions[name] = address, arguments[name]

    def function(self, name: str) -> Function:
        """One of the functions, for one thread: it takes blocks' addresses and numbers.

        What it returns, a number, goes through memory of its own.
        """
        address, arguments = self._functions[name]
        return _function(self, address, arguments)


class Standalone(NamedTuple):
    """Object code of one function that other code calls by a name.

    Attributes:
        name: the symbol that other code has for it.
        symbol: its own.
        content: an object file, linked for as long as the process lives.
        called: names of what it calls itself, each linked before.
    """

    name: str
    symbol: str
    content: bytes
    called: Sequence[str]

    def link(self) -> None:
        """Link it, or find it linked, and let its name stand for it from now on.

        Raises:
            ValueError: it is no object code for this machine, or there is no such function.
        """
        # What was linked to another version of what it calls, keeps that.
        bound = tuple(_addresses[name] for name in self.called)
        known = self.symbol, hashlib.sha256(self.content).digest(), bound
        if known not in _standalone:
            if not _is_for_this_machine(self.content):
                raise ValueError("it is no object code for this machine")
            loaded = _load(self.content)
            address = loaded.address(self.symbol)
            if not address:
                raise ValueError(f"the object code has no function {self.symbol}")
            _standalone[known] = address, loaded
        _addresses[self.name] = address = _standalone[known][0]
        if _BINDING in sys.modules:
            # What the compiler makes in this process calls it by its name, too.
            sys.modules[_BINDING].add_symbol(self.name, address)


# By what it is and what it calls, the address of linked code, and what keeps it there.
_standalone: Final[dict[tuple[str, bytes, tuple[int, ...]], tuple[int, Any]]] = {}
# By name, the address that it stands for now.
_addresses: Final[dict[str, int]] = {}


def _is_for_this_machine(content: bytes) -> bool:
    """Whether the linker may see it, which ends the process where it does not like what it sees."""
    if content.startswith(_MACH_O):
        return platform.system() == "Darwin"
    if not content.startswith(_ELF) or len(content) < _ELF_HEAD.size:
        return False
    kind, machine = _ELF_HEAD.unpack_from(content)
    return bool(kind == _RELOCATABLE and machine == _ELF_MACHINES.get(platform.machine()))


class Loaded(Protocol):
    """Object code in this process, for as long as this lives."""

    def address(self, name: str) -> int:
        """The address of a function of it; 0 where there is none."""
        ...


def _load(content: bytes) -> Loaded:
    if content.startswith(_ELF) and platform.machine() == "x86_64":
        with suppress(ValueError, KeyError):
            return LoadedObject(content, _address_of)
    return _LinkedByLlvm(content)


def _address_of(name: str) -> int:
    return _addresses[name] if name in _addresses else address_in_process(name)


class _LinkedByLlvm:
    def __init__(self, content: bytes) -> None:
        self._engine = _link(content)

    def address(self, name: str) -> int:
        return int(self._engine.get_function_address(name))


def _link(content: bytes) -> Any:
    # Here: what links takes memory that a node does without where it can.
    import llvmlite.binding as binding  # type: ignore[import-untyped]

    for name, address in _addresses.items():
        binding.add_symbol(name, address)
    try:
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
    except RuntimeError:
        # Later versions do it by themselves, and say so.
        pass
    machine = binding.Target.from_default_triple().create_target_machine()
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
    try:
        engine.add_object_file(binding.ObjectFileRef.from_data(content))
    except RuntimeError as error:
        raise ValueError(f"no object code: {error}") from error
    engine.finalize_object()
    return engine


def _function(code: LinkedCode, address: int, arguments: int) -> Function:
    result = ctypes.c_int64()
    unused = ctypes.c_void_p()
    out = ctypes.addressof(result)
    failure = ctypes.addressof(unused)
    # The interpreter's lock is kept: a call takes microseconds.
    kind = ctypes.PYFUNCTYPE(ctypes.c_int, *[ctypes.c_int64] * (2 + arguments))
    entry = kind(address)

    def call(*given: int) -> int:
        entry(out, failure, *given)
        return result.value

    call.__dict__["keeps"] = (code, result, unused)
    return call
