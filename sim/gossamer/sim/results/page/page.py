"""The page of a run as one HTML file that refers to nothing outside itself."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import partial
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import numpy as np

from gossamer.sim.errors import ResultsError
from gossamer.sim.results.overlays.snapshots import read_snapshot, snapshot_rounds
from gossamer.sim.results.page.drawn import drawn_course, drawn_overlay
from gossamer.sim.results.results import Results
from gossamer.sim.study.registry import study_of_values

# Overlays of a system that a page holds: as many as a slider tells apart.
MOST_OVERLAYS: Final = 100
_SCRIPTS: Final = ("charts.js", "overlay.js", "page.js")


def page_html(run: Mapping[str, Any], *, connects: bool = False) -> str:
    """The page, which shows ``run`` and asks its server for more if that is live.

    Args:
        run: ``title``, ``facts``, ``live``, ``ended``, and of each of its ``systems`` what
            `system_entry` gives.
        connects: whether it may ask its server for anything.
    """
    style = _part("page.css")
    script = "\n".join(_part(name) for name in _SCRIPTS)
    data = json.dumps(run, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    parts = {
        "policy": _policy(style, script, connects=connects),
        "title": escape(str(run["title"])),
        "style": style,
        "data": data,
        "script": script,
    }
    before, *others = _part("page.html").split("{{")
    filled = [before]
    for other in others:
        name, rest = other.split("}}", 1)
        filled += [parts[name], rest]
    return "".join(filled)


def system_entry(
    name: str, course: Mapping[str, Any], overlays: Sequence[Mapping[str, Any]], **how_far: Any
) -> dict[str, Any]:
    """What the page knows of a system.

    Args:
        name: of the system.
        course: of `drawn_course`.
        overlays: of `drawn_overlay`, in order of rounds.
        how_far: ``round`` and ``rounds``.
    """
    return {"name": name, "course": course, "overlays": overlays, **how_far}


def with_styles(systems: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The systems of a page with the colours and dashes that they have in plots."""
    from gossamer.sim.results.plot_style import system_styles

    styles = system_styles([one["name"] for one in systems])
    return [
        {**one, "colour": styles[one["name"]].colour, "dashes": styles[one["name"]].dashes}
        for one in systems
    ]


def replay_of(results: Results) -> dict[str, Any]:
    """What the page shows of a finished run, for `page_html`.

    Raises:
        ScenarioError: its study's runs cannot be looked at, or is not known.
        ResultsError: a table is missing or damaged.
    """
    summary = results.summary
    scenario = summary["scenario"]
    study = study_of_values(scenario)
    systems = []
    for system in results.systems:
        try:
            course = study.course(partial(results.table, system), scenario)
        except (KeyError, ValueError, TypeError) as error:
            reason = f"has tables that are not those of a run ({error})"
            raise ResultsError(results.path / system, reason) from error
        overlays = []
        for now in _evenly(snapshot_rounds(results, system)):
            overlay = read_snapshot(results, system, now)
            overlays.append(drawn_overlay(overlay, study.places(overlay.nodes), now))
        last = int(course.rounds[-1]) if len(course.rounds) else 0
        entry = system_entry(system, drawn_course(course), overlays, round=last, rounds=last)
        systems.append(entry)
    return {
        "title": str(scenario.get("name", "Simulation run")),
        "facts": f"seed {summary['seed']}, result hash {summary['result_hash'][:16]}",
        "live": False,
        "ended": True,
        "systems": with_styles(systems),
    }


def _evenly(rounds: Sequence[int]) -> list[int]:
    """All of some rounds, or `MOST_OVERLAYS` of them with the first and the last."""
    if len(rounds) <= MOST_OVERLAYS:
        return list(rounds)
    chosen = np.unique(np.linspace(0, len(rounds) - 1, MOST_OVERLAYS).astype(np.int64))
    return [rounds[place] for place in chosen.tolist()]


def write_page(results: Results, file: Path) -> None:
    """Write the page of a finished run to a new file, whole or not at all.

    Raises:
        ScenarioError, ResultsError: as `replay_of`; or there is a file of that name.
        OSError: it cannot be written.
    """
    if file.exists():
        raise ResultsError(file, "exists, expected a new file")
    if not file.absolute().parent.is_dir():
        raise ResultsError(file.absolute().parent, "is no folder, expected one for the page")
    text = page_html(replay_of(results))
    aside = file.with_name(f".{file.name}.tmp")
    try:
        aside.write_text(text, encoding="utf-8")
        aside.replace(file)
    finally:
        aside.unlink(missing_ok=True)


def _part(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _policy(style: str, script: str, *, connects: bool) -> str:
    """Nothing runs or is loaded but what the page consists of."""
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        f"img-src data:; connect-src {chr(39)}{'self' if connects else 'none'}{chr(39)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
