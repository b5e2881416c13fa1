"""Explorations find a fault that is planted in a protocol of the cookbook, and none as it ships.

Each case is the text of the protocol, made small, with what it promises; the fault is one line of
it that is changed. Samplers are not explored: a layer of views that stay takes their place.
"""

# ruff: noqa: ARG001 (promises take who is up, as those of classes do)

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

import gossamer.sim as gs
from gossamer.protocol.kernel.rules import use_compiled
from support.own_protocols import COOKBOOK

MOST_ACTIONS = 8
BITS, LEAVES = 8, 1  # of T-Chord, made small
FEW, MANY = 200, 3_000  # states that are explored of what ships at least, if there are so many
VIEWS = """
class Everybody(gs.Protocol):
    view_size: int = {known}
    views = gs.column(int, "view_size", initial=-1)

    @gs.initialiser
    def know_those_behind(self, run):
        rows = np.arange(self.nodes)[:, None]
        self.views[:] = (rows + 1 + np.arange(self.view_size)) % self.nodes
"""


# What protocols promise: in every state, or once nothing is under way any more.


def mass_is_kept(self: Any, alive: Any) -> Any:
    """Weights add up to one a node."""
    return abs(self.weight.sum() - self.nodes) < 1e-9


def mean_is_kept(self: Any, alive: Any) -> Any:
    """The mean is what it was at first."""
    return abs(self.value.mean() - (self.nodes - 1) / 2) < 1e-9


def nobody_goes_on_in_vain(self: Any, alive: Any) -> Any:
    """Who still pushes had fewer than k useless pushes in a row."""
    return (self.useless[self.hot] < self.k).all()


def one_is_infected(self: Any, alive: Any) -> Any:
    """Who infects another one recovers, where beta and gamma are 1."""
    return (self.health == 1).sum() <= 1


def failures_are_known(self: Any, alive: Any) -> Any:
    """Everybody who is up knows who has failed."""
    return all((self.failed[alive] == row).any(axis=1).all() for row in np.flatnonzero(~alive))


def nobody_is_slandered(self: Any, alive: Any) -> Any:
    """Nobody who is up is taken for failed; that needs time-outs, which have no order here."""
    for node in range(self.nodes):
        for place in range(len(self.failed[node])):
            failed = self.failed[node, place]
            if failed >= 0 and alive[failed]:
                return False
    return True


def neighbours_are_mutual(self: Any, alive: Any) -> Any:
    """Who is a neighbour has the other one for a neighbour."""
    holds = (self.active[:, :, None] == np.arange(self.nodes)).any(axis=1)
    return (holds == holds.T).all()


def news_go_once_around(self: Any, alive: Any) -> Any:
    """What is heard has come by a way without loops."""
    return (self.hops < self.nodes).all()


def knowing_is_mutual(self: Any, alive: Any) -> Any:
    """Whom a node knows, and who is thus asked, knows the node, where buckets have room."""
    holds = (self.table[:, :, None] == np.arange(self.nodes)).any(axis=1)
    return (holds == holds.T).all()


def fingers_are_as_far(self: Any, alive: Any) -> Any:
    """Finger j is from 2^j to 2^(j + 1) ahead."""
    places = gs.mix_many(0, np.arange(self.nodes), 0) >> 62 - BITS
    for node, finger in np.ndindex(self.nodes, BITS):
        other = self.table[node, LEAVES + finger]
        if other >= 0 and (places[other] - places[node]) % (1 << BITS) >> finger != 1:
            return False
    return True


def lookups_take_hops(self: Any, alive: Any) -> Any:
    """A lookup for another node takes a hop at least."""
    return (self.hops >= self.found).all()


def nearest_come_first(self: Any, alive: Any) -> Any:
    """Nodes are sorted by how far they are on the torus."""
    side = round(self.nodes**0.5)
    for node, row in enumerate(self.near):
        known = row[row >= 0]
        across, down = abs(node % side - known % side), abs(node // side - known // side)
        far = np.minimum(across, side - across) + np.minimum(down, side - down)
        if (np.diff(far * self.nodes + known) < 0).any():
            return False
    return True


@attrs.frozen
class Planted:
    """A protocol, what it promises, and a fault.

    Attributes:
        files: of the cookbook, those of layers and helpers first, and of the last one
        protocol: the class.
        nodes: how many.
        promise: what holds, in every state or
        eventual: once nothing is under way.
        fault: a piece of the text, and what is written instead.
        smaller: what is written instead of other pieces, so that there are fewer states.
        settings: of the class.
        bounds: of the exploration.
        assumed: without what nothing is promised.
        known: how many others stay in the view of a node, in place of a sampler.
    """

    files: tuple[str, ...]
    protocol: str
    nodes: int
    promise: Callable[[Any, Any], Any]
    eventual: bool
    fault: tuple[str, str]
    smaller: Mapping[str, str] = {}
    settings: Mapping[str, Any] = {}
    bounds: Mapping[str, Any] = {}
    assumed: Callable[[Any, Any], Any] | None = None
    known: int = 1

    def write(self, folder: Path, *, faulty: bool) -> str:
        """Write the protocol to a folder; what names it."""
        text = "\n".join((COOKBOOK / f"{name}.py").read_text("utf-8") for name in self.files)
        imports = tuple(f"from {name} import" for name in self.files)
        lines = [line for line in text.splitlines() if not line.startswith(imports)]
        text = "import numpy as np\nimport gossamer.sim as gs\n" + VIEWS + "\n".join(lines) + "\n"
        fault = dict([self.fault]) if faulty else {}
        for old, new in {**self.smaller, **fault}.items():
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        kind = "eventually" if self.eventual else "invariant"
        declared = {self.promise: f"gs.{kind}"}
        if self.assumed is not None:
            declared[self.assumed] = "gs.assumption"
        own = ""
        for function, decorator in declared.items():
            source = inspect.getsource(function).replace(": Any", "").replace(" -> Any", "")
            rule = "@gs.rule\n" * (decorator == "gs.assumption")
            own += _indented(f"\n@{decorator}\n{rule}{source}")
        text = re.sub(rf"^class {self.protocol}\(.*:\n", rf"\g<0>{own}", text, flags=re.M)
        # A module of each name is loaded once.
        file = folder / f"{self.files[-1]}_{folder.name}{'_faulty' * faulty}.py"
        file.write_text(text.replace("{known}", str(self.known)), encoding="utf-8")
        return f"{file}:{self.protocol}"


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


NEWSCAST = {'gs.Sampler("newscast", view_size=20)': "gs.layer(Everybody)"}
SMALL_RING = f"BITS, LEAVES, PSI = {BITS}, {LEAVES}, 1"
CASES = [
    Planted(
        files=("push_sum",), protocol="PushSum", nodes=2,
        promise=mass_is_kept, eventual=True,
        fault=("        self.weight[me] /= 2\n", ""),
        bounds={"in_flight": 2, "depth": 9},
    ),
    Planted(
        files=("averaging",), protocol="Averaging", nodes=3,
        promise=mean_is_kept, eventual=True,
        fault=("Pull.send(net, sender, self.value[me])", "Pull.send(net, sender, value)"),
        smaller={'Sampler("newscast", view_size=20)': "gs.layer(Everybody)"}, known=2,
        bounds={"in_flight": 1, "depth": 15},
    ),
    Planted(
        files=("rumor",), protocol="Rumor", nodes=3,
        promise=nobody_goes_on_in_vain, eventual=False,
        fault=("self.useless[me] >= self.k", "self.useless[me] > self.k"),
        settings={"k": 1},
        bounds={"in_flight": 2, "rounds": 2},
    ),
    Planted(
        files=("sir",), protocol="Epidemic", nodes=3,
        promise=one_is_infected, eventual=False,
        fault=("gs.draw_float(self, me) < self.gamma", "gs.draw_float(self, me) > self.gamma"),
        settings={"beta": 1.0, "gamma": 1.0, "cases": 1},
    ),
    Planted(
        files=("membership", "swim"), protocol="Swim", nodes=4,
        promise=failures_are_known, eventual=True, assumed=nobody_is_slandered,
        fault=("        if self.target[me] >= 0:", "        if self.target[me] > 0:"),
        smaller={"KNOWN, NEWS = 100, 6": "KNOWN, NEWS = 3, 1", "gs.setting(50,": "gs.setting(0,"},
        settings={"proxies": 0, "repeats": 2},
        bounds={"in_flight": 2, "crashes": 1, "depth": 7},
    ),
    Planted(
        files=("hyparview",), protocol="HyParView", nodes=3,
        promise=neighbours_are_mutual, eventual=True,
        fault=("            Neighbour.send(net, sender, True)\n", ""),
        smaller={"column(int, 30": "column(int, 2"},
        bounds={"in_flight": 1, "depth": 9},
    ),
    Planted(
        files=("hyparview", "broadcast"), protocol="Broadcast", nodes=3,
        promise=news_go_once_around, eventual=False,
        fault=("    self.heard[me] = number\n", ""),
        smaller={
            "column(int, 30": "column(int, 2",
            "if known != me:": "if known >= 0:",
            "Join.send(net, known, me, 7)": "gs.add_to(self.active[me], (me + 1) % self.nodes)",
            "begins = gs.column(bool)": "begins = gs.column(bool, initial=True)",
        },
        bounds={"in_flight": 1, "rounds": 1, "depth": 9},
    ),
    Planted(
        files=("buckets", "kademlia"), protocol="Kademlia", nodes=3,
        promise=knowing_is_mutual, eventual=True,
        fault=("        learn(self.table[me], self.k, me, sender)\n        fill", "        fill"),
        smaller={"BUCKETS = 20": "BUCKETS = 4"},
        settings={"k": 2, "alpha": 1, "settled": False},
        bounds={"in_flight": 2, "depth": 7},
    ),
    Planted(
        files=("tchord",), protocol="TChord", nodes=4,
        promise=fingers_are_as_far, eventual=False,
        fault=("learn(self.table[me], me, node)", "learn(self.table[me], sender, node)"),
        smaller={**NEWSCAST, "BITS, LEAVES, PSI = 32, 20, 10": SMALL_RING},
        known=3, bounds={"in_flight": 1, "depth": 7},
    ),
    Planted(
        files=("tchord", "lookup"), protocol="Lookups", nodes=3,
        promise=lookups_take_hops, eventual=False,
        fault=("Lookup.send(net, nearest, target, hops + 1)",
               "Lookup.send(net, nearest, target, hops)"),
        smaller={**NEWSCAST, "BITS, LEAVES, PSI = 32, 20, 10": SMALL_RING},
        settings={"begin": 0}, known=2,
        bounds={"in_flight": 1, "depth": 8},
    ),
    Planted(
        files=("tman",), protocol="Torus", nodes=4,
        promise=nearest_come_first, eventual=False,
        fault=("new < rank(nodes", "new > rank(nodes"),
        smaller={
            **NEWSCAST, "M, PSI = 20, 10": "M, PSI = 3, 2", "column(int, 100": "column(int, 3",
        },
        bounds={"in_flight": 2, "depth": 7},
    ),
]  # fmt: skip


def explored(case: Planted, folder: Path, *, faulty: bool, **bounds: Any) -> gs.Exploration:
    given = {"draws": case.nodes - 1, **case.bounds, **bounds}
    scenario = {"settings": dict(case.settings)}
    return gs.explore(case.write(folder, faulty=faulty), case.nodes, scenario=scenario, **given)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.protocol)
def test_a_planted_fault_is_found_by_a_short_story(case: Planted, tmp_path: Path) -> None:
    with use_compiled(False):
        found = explored(case, tmp_path, faulty=True)
        whole = explored(case, tmp_path, faulty=False, states=FEW)
    assert whole.story is None, whole.story
    assert found.story is not None
    assert found.story.property == case.promise.__name__
    assert 1 <= len(found.story.steps) <= MOST_ACTIONS, found.story


@pytest.mark.campaign
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.protocol)
def test_what_ships_keeps_its_promise_far_beyond_the_fault(case: Planted, tmp_path: Path) -> None:
    with use_compiled(False):
        whole = explored(case, tmp_path, faulty=False, states=MANY)
    assert whole.story is None, whole.story
