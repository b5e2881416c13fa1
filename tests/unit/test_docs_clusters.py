"""Clusters that documents and examples make are in nobody's way, and run as they are pasted."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path
from typing import Final

import pytest
from attrs import frozen

from support.checkout import ROOT

PAGES: Final = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]
PROGRAMS: Final = [
    *sorted(ROOT.glob("examples/*/node/*.py")),
    *sorted(ROOT.glob("examples/node/*.py")),
]
COMPOSE: Final = ROOT / "deploy/compose.yaml"
# Of `init --peers` where no port is named.
DEFAULT_PORT: Final = 7720
# A tutorial repeats the readme's first cluster; both say so.
SHARED: Final = {"README.md", "docs/first-cluster.md"}
MOST_PEERS: Final = 5


@frozen
class Cluster:
    """One that a text has its reader make: where, of how many, from which port on."""

    place: str
    folder: str
    peers: int
    port: int

    @property
    def ports(self) -> set[int]:
        return set(range(self.port, self.port + self.peers))


def clusters_of(path: Path) -> list[Cluster]:
    """Those of the commands that ``path`` shows."""
    place = path.relative_to(ROOT).as_posix()
    made = []
    for line in re.findall(r"(?m)^ {4}gossamer node init (.+)$", path.read_text(encoding="utf-8")):
        peers, port = (re.search(rf"--{name} (\d+)", line) for name in ("peers", "port"))
        if peers is not None:
            first = DEFAULT_PORT if port is None else int(port[1])
            made.append(Cluster(place, line.split()[0], int(peers[1]), first))
    return made


SHOWN: Final = [*chain.from_iterable(map(clusters_of, [*PAGES, *PROGRAMS]))]


def ports_of_programs() -> dict[str, set[int]]:
    """Of the programs that make a cluster by themselves, and of the pages of the containers."""
    taken = {}
    for path in PROGRAMS:
        found = re.search(r'"FIRST_PORT", "(\d+)"', path.read_text(encoding="utf-8"))
        if found is not None:
            taken[path.relative_to(ROOT).as_posix()] = set(
                range(int(found[1]), int(found[1]) + MOST_PEERS)
            )
    pages = re.findall(r"127\.0\.0\.1:(\d+):", COMPOSE.read_text(encoding="utf-8"))
    return taken | {"deploy/compose.yaml": set(map(int, pages))}


def test_clusters_have_folders_and_ports_of_their_own() -> None:
    kept = [one for one in SHOWN if one.place != "docs/first-cluster.md"]
    assert len(kept) >= 9
    folders = [one.folder for one in kept]
    assert len(set(folders)) == len(folders)
    ports = {one.place: one.ports for one in kept} | ports_of_programs()
    assert len(ports) >= 13
    owners: dict[int, str] = {}
    for place, numbers in ports.items():
        for number in numbers:
            assert number not in owners, f"{place} and {owners[number]} use port {number}"
            owners[number] = place


def test_the_tutorial_makes_the_cluster_of_the_readme() -> None:
    shared = {(one.folder, one.peers, one.port) for one in SHOWN if one.place in SHARED}
    assert len(shared) == 1


@pytest.mark.parametrize("cluster", SHOWN, ids=lambda one: f"{one.place}: {one.folder}")
def test_who_makes_a_cluster_is_told_how_to_run_all_of_it(cluster: Cluster) -> None:
    text = (ROOT / cluster.place).read_text(encoding="utf-8")
    commands = re.findall(r"(?m)^ {4}gossamer node run (.+)$", text)
    run = {word for command in commands for word in command.split()}
    assert {f"{cluster.folder}/peer{number + 1}" for number in range(cluster.peers)} <= run
