"""Snapshots of the overlays of a run, as Parquet edge lists.

`<system>/snapshot_links/<round>.parquet`   round, source, target, kind: a row a directed link
`<system>/snapshot_nodes/<round>.parquet`   round, node, ...: a row a node that was up

Ends of links and nodes are numbers of nodes, as in all tables of results. A snapshot is written
when it is taken, beside the checkpoints of the run; so it needs no memory, and is there when the
run was killed and is gone on with.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np

from gossamer.sim.errors import ResultsError, ScenarioError
from gossamer.sim.results.results import Results
from gossamer.sim.study.records import Column
from gossamer.sim.study.watching import KIND, NODE, SOURCE, TARGET, Overlay, Watched

LINKS, NODES = "snapshot_links", "snapshot_nodes"
ROUND: Final = "round"
# Of runs that nobody asked for snapshots of, the last overlay is kept up to so many nodes.
MOST_NODES: Final = 20_000


@attrs.frozen
class SnapshotWriter:
    """Watches a run, and writes its overlay every so many rounds and at the end.

    Attributes:
        folder: where a folder a system is made; it may not exist yet.
        every: rounds between snapshots, the first before any round; at the end only, and only of
            runs of at most `MOST_NODES`, if None.
    """

    folder: Path
    every: int | None

    def __call__(self, run: Watched) -> None:
        """Write a snapshot if it is time; raises OSError."""
        if self.every is None and run.size > MOST_NODES:
            return
        due = run.is_finished or (self.every is not None and run.round % self.every == 0)
        # A protocol that says wrongly who knows whom is found at the beginning, not at the end.
        overlay = run.overlay() if due or run.round == 0 else None
        if due and overlay is not None:
            write_snapshot(overlay, run.round, self.folder / run.name)


def write_snapshot(overlay: Overlay, now: int, folder: Path) -> None:
    """Write an overlay into the folder of its system, each file whole or not at all."""
    import pyarrow as pa

    # Names once, and a small number a link.
    kinds = pa.DictionaryArray.from_arrays(pa.array(overlay.links[KIND]), list(overlay.kinds))
    links = {SOURCE: overlay.links[SOURCE], TARGET: overlay.links[TARGET], KIND: kinds}
    for name, table in ((LINKS, links), (NODES, overlay.nodes)):
        length = len(table[NODE] if name == NODES else table[SOURCE])
        _write(
            {ROUND: np.full(length, now, np.int32), **table}, folder / name / f"{now:08}.parquet"
        )


def _write(table: Mapping[str, Any], file: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file.parent.mkdir(parents=True, exist_ok=True)
    aside = file.with_suffix(".tmp")
    try:
        pq.write_table(pa.table(dict(table)), aside, compression="zstd", write_page_checksum=True)
        os.replace(aside, file)
    finally:
        aside.unlink(missing_ok=True)


def snapshot_rounds(results: Results, system: str) -> list[int]:
    """The rounds that there are snapshots of, in order."""
    files = (results.path / system / LINKS).glob("*.parquet")
    return sorted(int(file.stem) for file in files if file.stem.isdigit())


def read_snapshot(results: Results, system: str, now: int | None = None) -> Overlay:
    """The overlay of a system after a round; the last that there is if None.

    Raises:
        ScenarioError: there is none of that round.
        ResultsError: there is none at all, or its file is damaged.
    """
    rounds = snapshot_rounds(results, system)
    if not rounds:
        missing = results.path / system / LINKS
        raise ResultsError(missing, "does not exist, expected a run with --snapshots")
    chosen = rounds[-1] if now is None else now
    if chosen not in rounds:
        shown = ", ".join(map(str, rounds[:20])) + (", ..." if len(rounds) > 20 else "")
        raise ScenarioError(None, "--round", now, f"a round with a snapshot: {shown}")
    links, kinds = _columns(results.path / system / LINKS / f"{chosen:08}.parquet")
    nodes, _ = _columns(results.path / system / NODES / f"{chosen:08}.parquet")
    return Overlay(
        nodes={name: column for name, column in nodes.items() if name != ROUND},
        links={name: links[name] for name in (SOURCE, TARGET, KIND)},
        kinds=kinds,
    )


def _columns(file: Path) -> tuple[dict[str, Column], tuple[str, ...]]:
    """The columns of a table, of a column of names their indices; and these names."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(file, page_checksum_verification=True).combine_chunks()
    except (FileNotFoundError, pa.ArrowInvalid, OSError) as error:
        raise ResultsError(file, f"is not a readable snapshot ({error})") from error
    columns: dict[str, Column] = {}
    names: tuple[str, ...] = ()
    for name in table.column_names:
        column = table[name]
        if pa.types.is_dictionary(column.type):
            whole = column.combine_chunks()
            chunk = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
            columns[name] = chunk.indices.to_numpy(zero_copy_only=False)
            names = tuple(chunk.dictionary.to_pylist())
        else:
            columns[name] = column.to_numpy()
    return columns, names
