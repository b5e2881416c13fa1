"""Snapshots of the overlays of a run, as Parquet edge lists.

`<system>/snapshot_links/<round>.parquet`   round, source, target, kind: a row a directed link
`<system>/snapshot_nodes/<round>.parquet`   round, node, ...: a row a node that was up

Ends of links and nodes are numbers of nodes, as in all tables of results. A snapshot is written
when it is taken, beside the checkpoints of the run; so it needs no memory, and is there when the
run was killed and is gone on with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TextIO
from xml.sax.saxutils import quoteattr

import attrs
import numpy as np

from gossamer.sim.errors import ResultsError, ScenarioError
from gossamer.sim.results.results import Results, new_file, replaced
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
    with replaced(file, file.with_suffix(".tmp")) as aside:
        pq.write_table(pa.table(dict(table)), aside, compression="zstd", write_page_checksum=True)


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


# Overlays for other programs: GraphML, GEXF, and edge lists.
#
# Files are written line by line: a graph of millions of links needs no more memory than its tables.


GRAPHML, GEXF, EDGES = "graphml", "gexf", "edges"
SUFFIXES: Final[Mapping[str, str]] = MappingProxyType(
    {GRAPHML: ".graphml", GEXF: ".gexf", EDGES: ".csv"}
)
_BLOCK: Final = 65_536


def format_of(chosen: str | None, out: Path | None) -> str:
    """The format that is meant: the one chosen, or that of the file's name; GraphML if neither.

    Raises:
        ScenarioError: there is no such format.
    """
    if chosen is not None:
        if chosen not in SUFFIXES:
            raise ScenarioError(None, "--format", chosen, f"one of {', '.join(SUFFIXES)}")
        return chosen
    if out is None:
        return GRAPHML
    for name, suffix in SUFFIXES.items():
        if out.suffix.lower() == suffix:
            return name
    expected = f"a name that ends with one of {', '.join(SUFFIXES.values())}, or --format"
    raise ScenarioError(None, "--out", str(out), expected)


def export_overlay(overlay: Overlay, chosen: str, file: Path) -> None:
    """Write an overlay to a new file, whole or not at all.

    Raises:
        ResultsError: there is a file of that name, or no folder to make it in.
        OSError: it cannot be written.
    """
    with (
        new_file(file, "the file") as aside,
        aside.open("w", encoding="utf-8", newline="\n") as stream,
    ):
        _WRITERS[chosen](overlay, stream)


def _write_edges(overlay: Overlay, stream: TextIO) -> None:
    stream.write("source,target,kind\n")
    kinds = [one.replace('"', "'") for one in overlay.kinds]
    quoted = [f'"{one}"' if "," in one else one for one in kinds]
    for source, target, kind in _links(overlay):
        stream.write(f"{source},{target},{quoted[kind]}\n")


def _write_graphml(overlay: Overlay, stream: TextIO) -> None:
    columns = _further(overlay)
    stream.write(
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
        '<key id="kind" for="edge" attr.name="kind" attr.type="string"/>\n'
    )
    for name, column in columns.items():
        kind = "double" if column.dtype.kind == "f" else "long"
        quoted = quoteattr(name)
        stream.write(f'<key id={quoted} for="node" attr.name={quoted} attr.type="{kind}"/>\n')
    stream.write('<graph edgedefault="directed">\n')
    opened = [f"<data key={quoteattr(name)}>" for name in columns]
    for node, values in _nodes(overlay, columns):
        data = "".join(f"{key}{value}</data>" for key, value in zip(opened, values, strict=True))
        stream.write(f'<node id="{node}">{data}</node>\n' if data else f'<node id="{node}"/>\n')
    kinds = [_text(one) for one in overlay.kinds]
    for source, target, kind_at in _links(overlay):
        stream.write(
            f'<edge source="{source}" target="{target}">'
            f'<data key="kind">{kinds[kind_at]}</data></edge>\n'
        )
    stream.write("</graph>\n</graphml>\n")


def _write_gexf(overlay: Overlay, stream: TextIO) -> None:
    columns = _further(overlay)
    stream.write(
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<gexf xmlns="http://gexf.net/1.3" version="1.3">\n<graph defaultedgetype="directed">\n'
        '<attributes class="edge"><attribute id="0" title="link" type="string"/></attributes>\n'
        '<attributes class="node">'
    )
    for place, (name, column) in enumerate(columns.items()):
        kind = "double" if column.dtype.kind == "f" else "long"
        stream.write(f'<attribute id="{place}" title={quoteattr(name)} type="{kind}"/>')
    stream.write("</attributes>\n<nodes>\n")
    for node, values in _nodes(overlay, columns):
        data = "".join(
            f'<attvalue for="{place}" value="{value}"/>' for place, value in enumerate(values)
        )
        stream.write(f'<node id="{node}" label="{node}"><attvalues>{data}</attvalues></node>\n')
    stream.write("</nodes>\n<edges>\n")
    kinds = [quoteattr(one) for one in overlay.kinds]
    for place, (source, target, kind_at) in enumerate(_links(overlay)):
        stream.write(
            f'<edge id="{place}" source="{source}" target="{target}">'
            f'<attvalues><attvalue for="0" value={kinds[kind_at]}/></attvalues></edge>\n'
        )
    stream.write("</edges>\n</graph>\n</gexf>\n")


_WRITERS: Final[Mapping[str, Callable[[Overlay, TextIO], None]]] = MappingProxyType(
    {GRAPHML: _write_graphml, GEXF: _write_gexf, EDGES: _write_edges}
)


def _further(overlay: Overlay) -> dict[str, Column]:
    return {name: column for name, column in overlay.nodes.items() if name != NODE}


def _nodes(
    overlay: Overlay, columns: Mapping[str, Column]
) -> Iterator[tuple[int, tuple[float, ...]]]:
    for block in _blocks(len(overlay.nodes[NODE])):
        numbers = overlay.nodes[NODE][block].tolist()
        lists = [column[block].tolist() for column in columns.values()]
        values = zip(*lists, strict=True) if lists else iter([()] * len(numbers))
        yield from zip(numbers, values, strict=True)


def _links(overlay: Overlay) -> Iterator[tuple[int, int, int]]:
    for block in _blocks(len(overlay.links[SOURCE])):
        columns = (overlay.links[name][block].tolist() for name in (SOURCE, TARGET, KIND))
        yield from zip(*columns, strict=True)


def _blocks(length: int) -> Iterator[slice]:
    for first in np.arange(0, length, _BLOCK).tolist():
        yield slice(first, first + _BLOCK)


def _text(words: str) -> str:
    return words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
