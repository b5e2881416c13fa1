"""Lineage on the terminal: what a folder was made from stands below it, further to the right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

# Inputs that are listed; `--json` has all.
_LISTED: Final = 20
_SEEDS: Final = 10
_INDENT: Final = "    "


def lineage_lines(name: str, told: Mapping[str, Any]) -> Iterator[str]:
    """What made a folder, and what made that."""
    yield name
    for line in _made_by(told):
        yield _INDENT + line


def _made_by(told: Mapping[str, Any]) -> Iterator[str]:
    yield from _command(told)
    for one in reversed(told.get("earlier", [])):
        yield "appended to what was made by"
        for line in _command(one):
            yield _INDENT + line
    seeds = told["seeds"]
    if seeds:
        more = f" and {len(seeds) - _SEEDS} more" if len(seeds) > _SEEDS else ""
        yield f"seeds: {', '.join(map(str, seeds[:_SEEDS]))}{more}"
    for one in told["inputs"][:_LISTED]:
        seed = f", seed {one['seed']}" if "seed" in one else ""
        yield f"from {one['place']}{seed}, sha256 {one['sha256'][:12]}"
        if "versions" in one:
            yield _INDENT + _versions(one["versions"])
        if "lineage" in one:
            for line in _made_by(one["lineage"]):
                yield _INDENT + line
    left = len(told["inputs"]) - _LISTED
    if left > 0:
        yield f"and from {left:,} more (--json lists all)"


def _command(told: Mapping[str, Any]) -> Iterator[str]:
    command = told.get("command")
    if command:
        options = (f"{key}={value}" for key, value in command["options"].items())
        yield f"command: {command['name']} {' '.join(options)}"
    yield _versions(told["versions"])


def _versions(versions: Mapping[str, str]) -> str:
    return "versions: " + ", ".join(f"{key} {value}" for key, value in versions.items())
