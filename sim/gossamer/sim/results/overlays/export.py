"""Overlays for other programs: GraphML, GEXF, and edge lists.

Files are written line by line: a graph of millions of links needs no more memory than its tables.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, TextIO
from xml.sax.saxutils import quoteattr

import numpy as np

from gossamer.sim.errors import ResultsError, ScenarioError
from gossamer.sim.study.records import Column
from gossamer.sim.study.watching import KIND, NODE, SOURCE, TARGET, Overlay

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
    if os.path.lexists(file):
        raise ResultsError(file, "exists, expected a new file")
    if not file.absolute().parent.is_dir():
        raise ResultsError(file.absolute().parent, "is no folder, expected one for the file")
    aside = file.with_name(f".{file.name}.tmp")
    try:
        with aside.open("w", encoding="utf-8", newline="\n") as stream:
            _WRITERS[chosen](overlay, stream)
        os.replace(aside, file)
    finally:
        aside.unlink(missing_ok=True)


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
