"""Subscriptions and documents from the tables of a workload of kind "keywords"."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from gossamer.sim.errors import ScenarioError
from gossamer.sim.results.storage.workloads import workload_folder
from gossamer.sim.studies.dissemination.workload.workload import Workload

KIND: Final = "keywords"


def read_tables(path: Path, brokers: int) -> Workload:
    """The workload of a folder; a broker subscribes once, to all the keywords that it wants.

    Args:
        path: the folder.
        brokers: how many the topology has.

    Raises:
        PlaceError: it holds no workload.
        ScenarioError: its kind is another, its brokers are not those of the topology, or its
            tables are damaged.
    """
    found = workload_folder(path)
    if found.kind != KIND:
        raise ScenarioError(None, "kind", found.kind, f"{KIND!r}, for dissemination trees")
    wanted = found.columns("subscriptions", ["brokers"])["brokers"].to_pylist()
    documents = found.columns("events", ["host", "keywords", "size"])
    hosts = documents["host"].to_pylist()
    largest = max((broker for row in (hosts, *wanted) for broker in row), default=-1)
    if largest >= brokers:
        expected = f"at most {brokers - 1}, the last broker of the topology"
        raise ScenarioError(None, "broker", largest, expected)
    interests: list[list[int]] = [[] for _ in range(brokers)]
    for keyword, subscribers in enumerate(wanted):
        for broker in subscribers:
            interests[broker].append(keyword)
    places = tuple(broker for broker, keywords in enumerate(interests) if keywords)
    return Workload(
        places=places,
        subscriptions=tuple(tuple(interests[broker]) for broker in places),
        hosts=tuple(hosts),
        documents=tuple(map(tuple, documents["keywords"].to_pylist())),
        sizes=tuple(documents["size"].to_pylist()),
    )
