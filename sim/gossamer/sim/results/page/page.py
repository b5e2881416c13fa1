"""The page of a run as one HTML file that refers to nothing outside itself."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gossamer.sim.errors import ResultsError
from gossamer.sim.results.overlay_files import read_snapshot, snapshot_rounds
from gossamer.sim.results.results import Results, new_file
from gossamer.sim.study.scenarios import study_of_values
from gossamer.sim.study.watching import KIND, NODE, SOURCE, TARGET, Course, Floats, Overlay

# Nodes and links of an overlay that are drawn; more cannot be told apart.
MOST_NODES: Final = 240
MOST_LINKS: Final = 4_000
# Of a larger overlay, so many nodes with those near them.
_STARTS: Final = 8
# Points of a curve: as many as a screen has places for.
MOST_POINTS: Final = 600
_DIGITS: Final = 5


def drawn_course(course: Course) -> dict[str, Any]:
    """A course as plain values; of more rounds than `MOST_POINTS`, means over several each."""
    count = len(course.rounds)
    size = max(1, -(-count // MOST_POINTS))
    last = np.minimum(np.arange(size - 1, count + size - 1, size), max(count - 1, 0))
    return {
        "rounds_a_point": size,
        "rounds": course.rounds[last].tolist() if count else [],
        "time_s": plain(course.time_s[last]) if count else [],
        "population": plain(_means(course.population, size)),
        "curves": [
            {
                "key": curve.about.key,
                "label": curve.about.label,
                "kind": curve.about.kind,
                "meaning": curve.about.meaning,
                "values": plain(_means(curve.values, size)),
            }
            for curve in course.curves
        ],
    }


def drawn_overlay(overlay: Overlay, places: Mapping[str, Floats], now: int) -> dict[str, Any]:
    """An overlay as plain values; of a large one some nodes with those near them.

    Args:
        overlay: what is drawn.
        places: where its nodes lie, see `gossamer.sim.study.contract.Study.places`.
        now: rounds run when it was so.
    """
    nodes = overlay.nodes[NODE]
    source, target = (np.searchsorted(nodes, overlay.links[end]) for end in (SOURCE, TARGET))
    shown = _near_each_other(nodes, source, target)
    row_of = np.full(len(nodes), -1, np.int64)
    row_of[shown] = np.arange(len(shown))
    drawn = np.flatnonzero((row_of[source] >= 0) & (row_of[target] >= 0))
    step = max(1, -(-len(drawn) // MOST_LINKS))
    drawn = drawn[::step]
    ends = (row_of[source[drawn]], row_of[target[drawn]], overlay.links[KIND][drawn])
    return {
        "round": now,
        "nodes_in_all": len(nodes),
        "links_in_all": len(source),
        "kinds": list(overlay.kinds),
        "nodes": nodes[shown].tolist(),
        "places": {name: plain(values[shown]) for name, values in places.items()},
        "links": np.column_stack(ends).ravel().tolist(),
    }


def _near_each_other(
    nodes: npt.NDArray[Any], source: npt.NDArray[np.int64], target: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Rows of the nodes that are drawn, in order: all, or some and those that they know.

    The same whenever the overlay is, and much the same from one round to the next: it begins with
    nodes of evenly spread numbers and goes on breadth first.
    """
    if len(nodes) <= MOST_NODES:
        return np.arange(len(nodes))
    order = np.argsort(source, kind="stable")
    begins = np.searchsorted(source[order], np.arange(len(nodes) + 1))
    wanted = np.linspace(0, int(nodes[-1]), _STARTS, endpoint=False)
    chosen: dict[int, None] = {}
    for start in dict.fromkeys(np.searchsorted(nodes, wanted).tolist()):
        most = len(chosen) + MOST_NODES // _STARTS
        waiting = [start]
        for row in waiting:
            if len(chosen) >= most:
                break
            chosen[row] = None
            if len(waiting) < MOST_NODES:
                waiting += target[order[begins[row] : begins[row + 1]]].tolist()
    return np.array(sorted(chosen), np.int64)


def _means(values: Floats, size: int) -> Floats:
    """Means of so many values each, of those that are known."""
    if size == 1 or not len(values):
        return values
    starts = np.arange(0, len(values), size)
    known = np.isfinite(values)
    sums = np.add.reduceat(np.where(known, values, 0.0), starts)
    counts = np.add.reduceat(known.astype(np.float64), starts)
    found = np.full(len(starts), np.nan)
    np.divide(sums, counts, out=found, where=counts > 0)
    return found


def plain(values: Iterable[float]) -> list[float | None]:
    """Numbers as JSON has them, of some digits; None where nothing is known."""
    return [_short(value) for value in np.asarray(values, np.float64).tolist()]


def _short(value: float) -> float | None:
    if not math.isfinite(value):
        return None
    short = float(f"{value:.{_DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


# Overlays of a system that a page holds: as many as a slider tells apart.
MOST_OVERLAYS: Final = 100
_SCRIPTS: Final = ("charts.js", "overlay.js", "page.js")


def page_html(run: Mapping[str, Any], *, connects: bool = False) -> str:
    """The page, which shows ``run`` and asks its server for more if that is live.

    Args:
        run: ``title``, ``facts``, ``live``, ``ended``, and of each of its ``systems`` its ``name``,
            ``course`` and ``overlays`` as drawn, ``round`` and ``rounds``.
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
        shown = {"course": drawn_course(course), "overlays": overlays}
        systems.append({"name": system, **shown, "round": last, "rounds": last})
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
    with new_file(file, "the page") as aside:
        aside.write_text(page_html(replay_of(results)), encoding="utf-8")


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
