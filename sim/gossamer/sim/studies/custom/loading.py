"""Loads the class of a protocol from its file; whatever is wrong with it is one sentence."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import linecache
import sys
from pathlib import Path
from typing import Any, Final

from gossamer.sim.custom import Node, Protocol
from gossamer.sim.custom.faults import explained_faults
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.custom.code_checks import check_code
from gossamer.sim.study.registry import module_of_file

EXAMPLE: Final = "a file and a class in it, such as rumor.py:Rumor"
_READ: Final[dict[str, str]] = {}


def split_name(given: object) -> tuple[Path, str]:
    """The file and the class that ``file.py:Class`` names; raises `ScenarioError`."""
    if isinstance(given, str):
        file, colon, name = given.rpartition(":")
        if colon and file.endswith(".py") and name.isidentifier():
            return Path(file), name
    raise ScenarioError(None, "protocol", given, EXAMPLE)


def load_class(file: Path, name: str) -> Any:
    """The class of a protocol.

    Raises:
        ScenarioError: there is no such file or class, or what it declares is impossible.
        SimulationError: executing the file raised something; names file and line.
    """
    if not file.is_file():
        raise ScenarioError(None, "protocol", f"{file}:{name}", EXAMPLE, found=f"of no file {file}")
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
