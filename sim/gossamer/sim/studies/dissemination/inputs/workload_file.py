"""Subscriptions and documents from a JSON file, by the names of a topology's brokers.

    {"subscriptions": [{"broker": "B1", "keywords": ["news", "sport"]}, ...],
     "documents": [{"host": "B7", "keywords": ["sport"], "size": 2.5}, ...]}

A document matches the subscriptions that have a keyword in common with it; its size is 1 where
none is given. Nothing else is accepted. A folder is a workload of kind "keywords", whose brokers
have numbers (see `gossamer.sim.results.storage.workloads`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from gossamer.protocol.content.encodings import EncodingError, decoded
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.dissemination.inputs.topologies import Topology
from gossamer.sim.studies.dissemination.inputs.workload import Workload, read_tables
from gossamer.sim.study.toml_files import check_keys

_PARTS: Final = ("subscriptions", "documents")


def read_workload(path: Path, topology: Topology) -> Workload:
    """Read the workload of a topology, from a file or folder.

    Raises:
        ResultsError: the folder holds no workload.
        ScenarioError: the file is missing, not JSON, or names a broker that is not there, a
            keyword that is no text, or a size that is no number above zero.
    """
    try:
        if path.is_dir():
            return read_tables(path, topology.graph.nodes)
        return _Reader(topology).workload(_content(path))
    except ScenarioError as error:
        raise attrs.evolve(error, file=str(path)) from None


def _content(path: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(decoded(path.read_bytes()))
    except OSError as error:
        reason = error.strerror or "unreadable"
        raise ScenarioError(None, "the workload", None, "a readable file", reason) from None
    except EncodingError as error:
        raise ScenarioError(None, "the workload", None, "JSON in UTF-8", error.reason) from None
    except (ValueError, RecursionError) as error:
        found = f"unreadable ({str(error).rstrip('.')})"
        raise ScenarioError(None, "the workload", None, "JSON", found) from None
    if not isinstance(content, dict):
        expected = "an object with subscriptions and documents"
        raise ScenarioError(None, "the workload", content, expected)
    check_keys("", content, _PARTS)
    for part in _PARTS:
        entries = content.get(part)
        if not isinstance(entries, list) or not entries:
            raise ScenarioError(None, part, entries, "a list with an entry at least")
    return content


class _Reader:
    """Turns entries into a workload; keywords get numbers in the order in which they come."""

    def __init__(self, topology: Topology) -> None:
        self._brokers = {name: number for number, name in enumerate(topology.names)}
        self._keywords: dict[str, int] = {}

    def workload(self, content: Mapping[str, Any]) -> Workload:
        subscriptions = [
            self._entry(entry, f"subscription {place}", ("broker", "keywords"), "broker")
            for place, entry in enumerate(content["subscriptions"], start=1)
        ]
        documents = [
            self._entry(entry, f"document {place}", ("host", "keywords", "size"), "host")
            for place, entry in enumerate(content["documents"], start=1)
        ]
        sizes = [
            _size(entry, f"size of document {place}")
            for place, entry in enumerate(content["documents"], start=1)
        ]
        return Workload(
            places=tuple(broker for broker, _ in subscriptions),
            subscriptions=tuple(keywords for _, keywords in subscriptions),
            hosts=tuple(broker for broker, _ in documents),
            documents=tuple(keywords for _, keywords in documents),
            sizes=tuple(sizes),
        )

    def _entry(
        self, entry: object, what: str, keys: Sequence[str], broker: str
    ) -> tuple[int, tuple[int, ...]]:
        if not isinstance(entry, dict):
            raise ScenarioError(None, what, entry, f"an object with {' and '.join(keys[:2])}")
        check_keys(f"{what}, ", entry, keys)
        name = entry.get(broker)
        if not isinstance(name, str) or name not in self._brokers:
            expected = f"one of the {len(self._brokers)} brokers of the topology"
            raise ScenarioError(None, f"{broker} of {what}", name, expected)
        keywords = entry.get("keywords")
        if not isinstance(keywords, list):
            raise ScenarioError(None, f"keywords of {what}", keywords, "a list of texts")
        return self._brokers[name], tuple(self._numbers(keywords, what))

    def _numbers(self, keywords: Iterable[object], what: str) -> Iterable[int]:
        for keyword in keywords:
            if not isinstance(keyword, str):
                raise ScenarioError(None, f"keyword of {what}", keyword, "a text")
            yield self._keywords.setdefault(keyword, len(self._keywords))


def _size(entry: Mapping[str, Any], what: str) -> float:
    size = entry.get("size", 1)
    given = isinstance(size, int | float) and not isinstance(size, bool)
    if not (given and math.isfinite(size) and size > 0):
        raise ScenarioError(None, what, size, "a finite number above 0")
    return float(size)
