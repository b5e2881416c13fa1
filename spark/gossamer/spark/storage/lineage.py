"""Lineage: what made a folder of results, kept within it, with that of what it was made from.

lineage.json    the command with its options, versions, seeds, inputs with digest and own lineage

Values of options whose names tell of credentials are left out.
"""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from gossamer.sim.errors import ResultsError
from gossamer.sim.results.storage.place import Place

LINEAGE_FILE: Final = "lineage.json"
_DISTRIBUTIONS: Final = ("gossamer", "pyspark", "pyarrow", "numpy", "numba", "scipy")
_CREDENTIAL: Final = re.compile(r"key|secret|token|password|credential", re.IGNORECASE)
_HIDDEN: Final = "(hidden)"


def lineage_of(
    session: Any, seeds: Iterable[int], inputs: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """What is kept of the making of a folder.

    Args:
        session: of Spark, that makes it.
        seeds: of all that is random in it.
        inputs: what it is made from, see `input_of`.
    """
    return {
        "command": running_command(),
        "versions": all_versions(session),
        "seeds": sorted(set(seeds)),
        "inputs": list(inputs),
    }


def all_versions(session: Any) -> dict[str, str]:
    """Versions of all that results may depend on; ``spark`` is that of the session's server."""
    found = {"python": platform.python_version(), "spark": str(session.version)}
    for name in _DISTRIBUTIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def running_command() -> dict[str, Any] | None:
    """The command of `gossamer` that runs, with its options; None in a script."""
    context = _current_context()
    if context is None:
        return None
    options = {name: _bare(value) for name, value in context.params.items() if value is not None}
    return {"name": context.command_path, "options": options}


def _current_context() -> Any:
    """Of the command that runs, None in a script; Typer has Click within it, or beside it."""
    import typer

    package = typer.Context.__mro__[1].__module__.rpartition(".")[0]
    return import_module(f"{package}.globals").get_current_context(silent=True)


def _bare(value: Any) -> Any:
    """An option as JSON has it, without credentials."""
    if isinstance(value, list | tuple):
        return [_bare(one) for one in value]
    if not isinstance(value, str):
        return value
    key, equals, _ = value.partition("=")
    return f"{key}={_HIDDEN}" if equals and _CREDENTIAL.search(key) else value


def input_of(place: Place, digest: str, **told: Any) -> dict[str, Any]:
    """One thing that a folder is made from.

    Args:
        place: its folder or file; a folder's own lineage is taken over where it has one.
        digest: SHA-256 of the file, or of that file of the folder which describes it.
        told: what else is known of it; values of None are left out.
    """
    own = read_lineage(place) if (place / LINEAGE_FILE).exists() else None
    found = {"place": place.shown(), "sha256": digest, **told, "lineage": own}
    return {name: value for name, value in found.items() if value is not None}


def lineage_after(before: Place | None, own: Mapping[str, Any]) -> dict[str, Any]:
    """The lineage of a folder that has grown: seeds and inputs of all, earlier commands in order.

    Args:
        before: the folder as it was; None where it is new.
        own: what has made it grow.
    """
    if before is None:
        return dict(own)
    told = read_lineage(before)
    earlier = [*told.get("earlier", []), {name: told.get(name) for name in ("command", "versions")}]
    return {
        **own,
        "seeds": sorted({*told["seeds"], *own["seeds"]}),
        "inputs": [*told["inputs"], *own["inputs"]],
        "earlier": earlier,
    }


def write_lineage(folder: Place, lineage: Mapping[str, Any]) -> None:
    """Write what made a folder into it."""
    (folder / LINEAGE_FILE).write_bytes(json.dumps(lineage, indent=2).encode() + b"\n")


def read_lineage(folder: Place) -> dict[str, Any]:
    """What made a folder.

    Raises:
        ResultsError: it says nothing of that, or the file is damaged.
    """
    file = folder / LINEAGE_FILE
    try:
        told = json.loads(file.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise ResultsError(folder, f"tells no lineage, expected {LINEAGE_FILE} in it") from None
    except ValueError as error:
        raise ResultsError(file, f"is not a lineage ({error})") from error
    for name, kind in (("versions", dict), ("seeds", list), ("inputs", list)):
        if not isinstance(told, dict) or not isinstance(told.get(name), kind):
            raise ResultsError(file, f"has no {name}, expected a lineage")
    return dict(told)
