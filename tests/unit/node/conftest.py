"""Asynchronous tests of the node run on a clock that jumps, unless they are marked `trio`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from inspect import iscoroutinefunction
from pathlib import Path

import pytest

from support.clusters import MadeCluster, made_cluster
from support.transport_peers import on_jumping_clock
from support.wire_sides import Sides, made_sides


def pytest_itemcollected(item: pytest.Item) -> None:
    """Those with threads, files or sockets are marked, since such a clock does not wait for them.

    The mark is one of the test itself: pytest-trio would have another precede that of a module.
    """
    test = getattr(item, "obj", None)
    if iscoroutinefunction(test) and item.get_closest_marker("trio") is None:
        item.add_marker(on_jumping_clock)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[MadeCluster]:
    with made_cluster(tmp_path / "first") as made:
        yield made


@pytest.fixture
def sides(cluster: MadeCluster) -> Sides:
    """Alice and Bob, who have met, and Carol, whom only Alice has heard."""
    return made_sides(cluster)


@pytest.fixture
def no_umask() -> Iterator[None]:
    """Nothing is taken from the modes of files that are made."""
    before = os.umask(0)
    yield
    os.umask(before)
