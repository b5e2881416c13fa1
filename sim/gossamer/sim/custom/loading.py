"""Loads the class of a protocol from its file, and checks its rules before any of them runs."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import linecache
import sys
from collections.abc import Callable, Set
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import attrs

from gossamer.protocol.kernel.debugging.checked_run import is_wanted
from gossamer.protocol.kernel.rules import Rule
from gossamer.sim.custom.faults import explained_faults
from gossamer.sim.custom.language.code import Use, outside, steps
from gossamer.sim.custom.language.declarations import Declarations, ProtocolType
from gossamer.sim.custom.language.messages import MessageClass
from gossamer.sim.custom.language.places import declaration_error
from gossamer.sim.custom.node import Node
from gossamer.sim.custom.protocol import Protocol, parts_of
from gossamer.sim.errors import ScenarioError
from gossamer.sim.study.scenarios import module_of_file

# What rules of a user's file do that no compiled rule may, found before any of them runs.


_OURS: Final = "gossamer."
_DRAWS: Final = "draw, draw_below or draw_float, which depend on the seed"
_CONSTANTS: Final = "rules, numbers, tuples or arrays, or a column of the state"
_NOTHING_NEW: Final = "room for it in a column, as rules allocate nothing"
_AT_TOP: Final = "that at the top of the file"
_CHECKED_ONLY: Final = "a run with GOSSAMER_DEBUG=1, where it works"
_INTERPRETED: Final = frozenset({"print", "breakpoint", "input", "open"})

# Instructions that no compiled rule has: what they do, in words, and what is expected instead.
_MADE: Final = {
    **dict.fromkeys(("BUILD_LIST", "LIST_APPEND"), ("makes a list", _NOTHING_NEW)),
    **dict.fromkeys(("BUILD_MAP", "BUILD_CONST_KEY_MAP"), ("makes a dict", _NOTHING_NEW)),
    **dict.fromkeys(("MAP_ADD", "DICT_UPDATE"), ("makes a dict", _NOTHING_NEW)),
    **dict.fromkeys(("BUILD_SET", "SET_ADD"), ("makes a set", _NOTHING_NEW)),
    **dict.fromkeys(("BUILD_STRING", "FORMAT_VALUE"), ("makes a text", _NOTHING_NEW)),
    "FORMAT_SIMPLE": ("makes a text", _NOTHING_NEW),
    "IMPORT_NAME": ("imports {}", _AT_TOP),
    "LOAD_BUILD_CLASS": ("defines a class", _AT_TOP),
    **dict.fromkeys(("BEFORE_WITH", "LOAD_SPECIAL"), ("has a with block", "plain statements")),
    "UNPACK_EX": ("unpacks with a star", "an index for each"),
}


def check_code(declared: Declarations) -> None:
    """Check the handlers of a stack of rules, and the rules that they call.

    Raises:
        ScenarioError: one of them writes a global name, uses a list or the like from outside or
            makes one, calls itself, draws without the seed, sends a message that no handler of the
            stack takes, is a generator, imports, or prints; names file and line. In checked runs,
            which are interpreted, rules may make what they like, import and print.
    """
    parts = [part.declared for part in parts_of(declared)]
    taken = {message for each in parts for message in each.messages.values()}
    for each in parts:
        for handler in each.handlers.values():
            _check_function(handler, taken, ())


def _check_function(
    function: Callable[..., Any], taken: Set[MessageClass], calling: tuple[Any, ...]
) -> None:
    if (function.__module__ or "").startswith(_OURS):
        return
    name, code = f"rule {function.__name__}", function.__code__
    place = code.co_filename, code.co_firstlineno
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        kind = "a generator" if inspect.isgeneratorfunction(function) else "asynchronous"
        raise declaration_error(place, name, None, "a plain function", found=kind)
    if not is_wanted(None):
        _check_statements(function)
    for line, what, value in outside(function):
        at = code.co_filename, line
        if isinstance(value, Use) and value.sends and value.message not in taken:
            expected = f"a handler on_{value.message.name} in a class of the stack"
            fault = f"one that sends a {value.message.__name__}, which nobody takes"
            raise declaration_error(at, name, None, expected, found=fault)
        if what.startswith("writes "):
            expected = "a column of the state, as what a rule refers to is constant"
            raise declaration_error(at, name, None, expected, found=f"one that {what}")
        if isinstance(value, list | dict | set):
            kind = type(value).__name__
            raise declaration_error(at, name, None, _CONSTANTS, found=f"one that {what}, a {kind}")
        if isinstance(value, ModuleType) and value.__name__ in ("random", "numpy.random"):
            raise declaration_error(at, name, None, _DRAWS, found=f"one that {what}")
        if isinstance(value, Rule) and value in calling:
            expected = "a loop, as rules cannot call themselves"
            raise declaration_error(
                at, name, None, expected, found=f"one that {what} within itself"
            )
        if isinstance(value, Rule):
            _check_function(value.source, taken, (*calling, value))


def _check_statements(function: Callable[..., Any]) -> None:
    """Refuse what a rule does that the compiler would refuse as well, after longer."""
    name, code = f"rule {function.__name__}", function.__code__
    for line, step in steps(code):
        what, expected = _MADE.get(step.opname, ("", ""))
        asks = step.opname == "LOAD_GLOBAL" and step.argval in _INTERPRETED
        if asks and step.argval not in function.__globals__:
            what, expected = f"uses {step.argval}", _CHECKED_ONLY
        if what:
            found = f"one that {what.format(step.argval)}"
            raise declaration_error((code.co_filename, line), name, None, expected, found)


# The key of scenarios that names a protocol.
PROTOCOL: Final = "protocol"
EXAMPLE: Final = "a file and a class in it, such as rumor.py:Rumor"
_READ: Final[dict[str, str]] = {}


def split_name(given: object) -> tuple[Path, str]:
    """The file and the class that ``file.py:Class`` names; raises `ScenarioError`."""
    if isinstance(given, str):
        file, colon, name = given.rpartition(":")
        if colon and file.endswith(".py") and name.isidentifier():
            return Path(file), name
    raise ScenarioError(None, PROTOCOL, given, EXAMPLE)


def load_class(file: Path, name: str) -> Any:
    """The class of a protocol.

    Raises:
        ScenarioError: there is no such file or class, or what it declares is impossible.
        SimulationError: executing the file raised something; names file and line.
    """
    if not file.is_file():
        given = f"{file}:{name}"
        raise ScenarioError(None, PROTOCOL, given, EXAMPLE, found=f"of no file {file}")
    held = _load_module(file)
    found = getattr(held, name, None)
    known = [
        each
        for each, value in vars(held).items()
        if inspect.isclass(value)
        and issubclass(value, Protocol | Node)
        and value.__module__ == held.__name__
    ]
    if not (inspect.isclass(found) and issubclass(found, Protocol | Node)):
        expected = (
            f"one of {', '.join(known)}" if known else "a class derived from Protocol or Node"
        )
        raise ScenarioError(str(file), "the class of the protocol", name, expected)
    return checked_class(found)


def checked_class(found: Any) -> Any:
    """The class of a protocol; raises `ScenarioError` if its rules do what none may."""
    if issubclass(found, Protocol):
        check_code(found.declared)
    return found


def sources_of(file: Path) -> str:
    """A hash of a file and of the modules beside it that are loaded, once it is."""
    folder = file.resolve().parent
    digest = hashlib.sha256()
    beside = {
        Path(str(held.__file__)).resolve()
        for held in list(sys.modules.values())
        if getattr(held, "__file__", None)
    }
    for path in sorted(path for path in beside if path.parent == folder and path.suffix == ".py"):
        digest.update(path.name.encode() + path.read_bytes())
    if not file.is_file():  # a cell of a notebook
        digest.update("".join(linecache.getlines(str(file))).encode())
    return digest.hexdigest()


@attrs.frozen
class ProtocolClass:
    """A protocol, found and loaded.

    Attributes:
        file: where it is written.
        name: of the class.
        sources: a hash of the file and those beside it that it loads.
        declared: what the class declares.
    """

    file: Path
    name: str
    sources: str
    declared: Declarations = attrs.field(eq=False, repr=False)

    def __reduce__(self) -> Any:
        # What the class declares holds functions, which are found by loading it again.
        return _loaded_again, (self.file, self.name, self.sources)

    @property
    def label(self) -> str:
        """How results call it."""
        return f"{self.file.name}:{self.name}"


def protocol_of_class(owner: ProtocolType) -> ProtocolClass:
    """The protocol of a class of this process; raises `ScenarioError` about what rules may not."""
    checked_class(owner)
    file = Path(owner.declared.place[0])
    return ProtocolClass(file, owner.__name__, sources_of(file), owner.declared)


def protocol_named(given: object) -> ProtocolClass:
    """The protocol of a class, or of ``file.py:Class``; raises as `load_class`."""
    if isinstance(given, ProtocolType):
        return protocol_of_class(given)
    file, name = split_name(given)
    found = load_class(file, name)
    return ProtocolClass(file, name, sources_of(file), found.declared)


def resolve_protocol(table: Any, folder: Path) -> bool:
    """Let the file that ``protocol`` of a table names begin at a folder; whether that changes it.

    Raises:
        ScenarioError: the text names no file and class.
    """
    if not isinstance(table, dict) or not isinstance(table.get(PROTOCOL), str):
        return False
    file, name = split_name(table[PROTOCOL])
    table[PROTOCOL] = f"{(folder / file).resolve()}:{name}"
    return not file.is_absolute()


def _loaded_again(file: Path, name: str, sources: str) -> ProtocolClass:
    return ProtocolClass(file, name, sources, load_class(file, name).declared)


def _load_module(file: Path) -> Any:
    text = file.read_bytes()
    key, now = str(file.resolve()), hashlib.sha256(text).hexdigest()
    try:
        with explained_faults():
            held = module_of_file(file)
            if _READ.setdefault(key, now) != now:
                importlib.reload(held)
                _READ[key] = now
            return held
    except SyntaxError as error:
        place = f"{error.filename or file}, line {error.lineno or 1}"
        raise ScenarioError(
            place, "the protocol", None, "valid Python", found=f"no Python ({error.msg})"
        ) from None
    except ImportError as error:
        expected = "a file whose name is that of no other module"
        raise ScenarioError(
            str(file), "the protocol", str(file), expected, f"not importable ({error})"
        ) from error
