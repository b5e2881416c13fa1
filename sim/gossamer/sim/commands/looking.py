"""Looking at runs from the command line: live, by snapshots, kept tables, pages and exports."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import attrs

from gossamer.sim.errors import ResultsError, ScenarioError
from gossamer.sim.results.overlay_files import (
    SUFFIXES,
    SnapshotWriter,
    export_overlay,
    format_of,
    read_snapshot,
    snapshot_rounds,
)
from gossamer.sim.results.results import Results, read_results
from gossamer.sim.study.contract import AnyScenario
from gossamer.sim.study.scenarios import study_of
from gossamer.sim.study.watching import Watch, watched_by

# In the folder of an unfinished run: how it is looked at.
_REMEMBERED = "look.json"


@attrs.frozen(kw_only=True)
class Look:
    """How a run is looked at; nothing of this changes what comes out.

    Attributes:
        live: whether to serve a page of it while it goes on.
        port: of that page; a free one if 0.
        snapshots: rounds between snapshots of its overlays; at the end only if None.
        keep: further tables for its results, by name.
    """

    live: bool = False
    port: int = 0
    snapshots: int | None = None
    keep: tuple[str, ...] = ()


def look_of(live: bool, port: int | None, snapshots: int | None, keep: str | None) -> Look:
    """What options ask for.

    Raises:
        ScenarioError: a port without the page; a period below a round.
    """
    if port is not None and not live:
        raise ScenarioError(None, "--live-port", port, "--live with it")
    if snapshots is not None and snapshots < 1:
        raise ScenarioError(None, "--snapshots", snapshots, "a number of rounds from 1")
    names = () if keep is None else tuple(dict.fromkeys(one.strip() for one in keep.split(",")))
    return Look(live=live, port=port or 0, snapshots=snapshots, keep=names)


def check_look(look: Look, scenario: AnyScenario) -> None:
    """Refuse what cannot be had of a scenario.

    Raises:
        ScenarioError: runs of its kind cannot be looked at, or have no such tables to keep.
    """
    study = study_of(scenario)
    asked: dict[str, object] = {"--live": look.live or None, "--snapshots": look.snapshots}
    for option, value in asked.items():
        if value is not None and not study.watched:
            expected = "no such option, as runs of this kind have no rounds to look at"
            raise ScenarioError(None, option, value, f"{expected} (kind {study.kind!r})")
    for name in look.keep:
        if name not in study.keepable:
            known = ", ".join(study.keepable)
            expected = f"some of {known}" if known else "nothing"
            raise ScenarioError(None, "--keep", name, f"{expected} in a scenario of {study.kind!r}")


def remembered(look: Look, folder: Path, *, resume: bool) -> Look:
    """How a run is looked at to its end: as it was begun, where a resumed one does not say.

    Raises:
        ResultsError: what the ``folder`` of the unfinished run remembers is damaged.
        OSError: it cannot be written or read.
    """
    file = folder / _REMEMBERED
    if not resume:
        told = {"snapshots": look.snapshots, "keep": list(look.keep)}
        file.write_text(json.dumps(told) + "\n", encoding="utf-8")
        return look
    if not file.exists():
        return look
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
        every = None if told["snapshots"] is None else int(told["snapshots"])
        keep = tuple(map(str, told["keep"]))
    except (ValueError, TypeError, KeyError) as error:
        raise ResultsError(file, f"is damaged, expected what the run left ({error})") from error
    return attrs.evolve(look, snapshots=look.snapshots or every, keep=look.keep or keep)


@contextmanager
def looked_at(scenario: AnyScenario, look: Look, snapshots: Path) -> Iterator[Watch | None]:
    """A watch for a run, which writes ``snapshots`` and feeds the page if there is one.

    Raises:
        SimulationError: the port of the page is taken.
    """
    study = study_of(scenario)
    if not study.watched:
        yield None
        return
    watches: list[Watch] = [SnapshotWriter(snapshots, look.snapshots)]
    with ExitStack() as stack:
        if look.live:
            from gossamer.sim.results.page.live import LivePage, served

            page = LivePage(scenario.name, f"seed {scenario.seed}", study.places)
            address = stack.enter_context(served(page, look.port))
            print(f"gossamer: look at the run at {address}", file=sys.stderr, flush=True)
            watches.append(page)
        yield watched_by(watches)


def write_page_of(folder: Path, out: Path | None) -> Path:
    """Write the page that replays the run in a result folder; returns where it is.

    Raises:
        ResultsError, ScenarioError: see `gossamer.sim.results.page.page.write_page`.
    """
    from gossamer.sim.results.page.page import write_page

    file = folder.absolute().with_name(f"{folder.absolute().name}.html") if out is None else out
    with written(file):
        write_page(read_results(folder), file)
    return file


def export_from(
    folder: Path, system: str | None, now: int | None, chosen: str | None, out: Path | None
) -> tuple[Path, str]:
    """Export an overlay of a result folder; returns the file, and what is in it in words.

    What is None is the only system, the last snapshot, the format of the file's name, and a new
    file named after the results in the working directory.

    Raises:
        ScenarioError: there is no such system, round or format.
        ResultsError: there are no snapshots, or the file exists.
    """
    results = read_results(folder)
    name = _system_of(results, system)
    found = format_of(chosen, out)
    overlay = read_snapshot(results, name, now)
    at = snapshot_rounds(results, name)[-1] if now is None else now
    default = Path(f"{folder.absolute().name}-{name}-{at}{SUFFIXES[found]}")
    file = default if out is None else out
    with written(file):
        export_overlay(overlay, found, file)
    links, nodes = len(overlay.links["source"]), len(overlay.nodes["node"])
    return file, f"{nodes:,} nodes and {links:,} links of {name} after round {at}"


def _system_of(results: Results, system: str | None) -> str:
    if system is None and len(results.systems) == 1:
        return results.systems[0]
    if system not in results.systems:
        known = ", ".join(results.systems)
        found = "missing" if system is None else None
        raise ScenarioError(None, "--system", system, f"one of {known}", found=found)
    return system


@contextmanager
def written(file: Path) -> Iterator[None]:
    """Let failures of the disk within be `ResultsError` about a file or folder."""
    try:
        yield
    except OSError as error:
        reason = f"could not be written ({error.strerror or error})"
        raise ResultsError(file, reason) from error
