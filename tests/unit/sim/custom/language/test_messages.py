"""Messages arrive as they were sent, whatever their fields are called; widths of columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gossamer.protocol.kernel.rules import use_compiled
from gossamer.sim import items, message
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.custom.rehearsal import first_difference, scenario_of
from gossamer.sim.studies.custom.simulation import simulate_custom

# Names that generated rules have for something of their own.
NUMBERS = (
    *("at", "body", "to", "length", "i", "s", "p", "now", "out", "delay"),
    *("at_field", "len", "begin"),
)
PROTOCOL = f"""
from gossamer.sim import Protocol, Timer, column, items, measure, message

M = message("M", {", ".join(f"{name}=int" for name in NUMBERS)}, words=items(3), field_at=float)


class Own(Protocol):
    got = column(int)
    right = column(int)
    row = column(int, 3, initial=5)
    push = Timer(rounds=1)

    def on_push(self, me, net):
        M.send(net, me, {", ".join(map(str, range(len(NUMBERS))))}, self.row[me], 0.5)
        M.after(net, 0.1, {", ".join(map(str, range(len(NUMBERS))))}, self.row[me], 0.5)

    def on_m(self, me, net, sender, {", ".join(NUMBERS)}, words, field_at):
        self.got[me] += 1
        if {" and ".join(f"{name} == {i}" for i, name in enumerate(NUMBERS))}:
            if words[0] == 5 and words[2] == 5 and field_at == 0.5:
                self.right[me] += 1

    @measure("got")
    def all_got(self, run):
        return self.got.sum()

    @measure("right")
    def all_right(self, run):
        return self.right.sum()
"""


FLOATS = """
from gossamer.sim import Node, Protocol, Timer, column, items, measure, message

M = message("M", few=items("most"), shares=items("most", float), more=items(2, float))


class Own(Protocol):
    most: int = 4
    total, first = column(float), column(float)
    got = column(int)
    share, few = column(float, "most", initial=0.1), column(int, "most")
    push = Timer(rounds=1)

    def on_push(self, me, net):
        self.share[me, 0] = -0.0 if me == 0 else self.share[me, 0] / 3 + me
        M.send(net, (me + 1) % self.nodes, self.few[me, :1], self.share[me, : net.round % 5],
               self.share[me, 2:])
        M.after(net, 0.3, self.few[me], self.share[me], self.share[me, :0])

    def on_m(self, me, net, sender, few, shares, more):
        self.got[me] += len(few) + len(more)
        for share in shares:
            self.total[me] += share
        if len(shares) > 0:
            self.first[me] = shares[0]

    @measure
    def everything(self, run):
        return self.total.sum() + self.first.sum() + self.got.sum()


class OwnNodes(Node):
    most: int = 4
    push = Timer(rounds=1)

    def __init__(self):
        self.total = self.first = 0.0
        self.got, self.share = 0, [0.1] * 4

    def on_push(self):
        self.share[0] = -0.0 if self.me == 0 else self.share[0] / 3 + self.me
        to, share = (self.me + 1) % self.nodes, list(self.share)
        self.send(to, M([0], share[: self.round % 5], share[2:]))
        self.after(0.3, M([0] * 4, share, []))

    def on_m(self, sender, message):
        self.got += len(message.few) + len(message.more)
        for share in message.shares:
            self.total += share
        if message.shares:
            self.first = message.shares[0]

    @measure
    def everything(cls, run):
        nodes = run.nodes
        return (sum(x.total for x in nodes) + sum(x.first for x in nodes)
                + sum(x.got for x in nodes))
"""


@pytest.mark.parametrize("form", ["interpreted", "checked", "compiled"])
def test_items_of_floats_arrive_bit_for_bit_in_every_form(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as a setting says; a node of rules takes the words that a plain one does."""
    monkeypatch.setenv("GOSSAMER_DEBUG", str(int(form == "checked")))
    (tmp_path / f"floats_{form}.py").write_text(FLOATS)
    both = (f"floats_{form}.py:Own", f"floats_{form}.py:OwnNodes")
    scenario = scenario_of(*both, folder=tmp_path, nodes=5, rounds=8)
    assert first_difference(scenario, interpreted=form == "interpreted") is None
    with use_compiled(form == "compiled"):
        rules, nodes = simulate_custom(scenario).systems.values()
    assert rules.rounds["everything"].tolist() == pytest.approx(nodes.rounds["everything"].tolist())
    assert rules.rounds["everything"][-1] > 100


# A module of each name is loaded once.
COMPILED = [False, pytest.param(True, marks=pytest.mark.campaign)]


@pytest.mark.parametrize("which", ["Own", "OwnNodes"])
@pytest.mark.parametrize("compiled", COMPILED)
def test_more_items_than_set_end_the_run(tmp_path: Path, which: str, compiled: bool) -> None:
    name = f"too_many_{which}_{compiled}.py"
    (tmp_path / name).write_text(FLOATS.replace('column(int, "most")', "column(int, 4)"))
    scenario = scenario_of(f"{name}:{which}", folder=tmp_path, nodes=5, settings={"most": 3})
    said = "M is sent with too many items, expected at most most items in few and most items in"
    with use_compiled(compiled), pytest.raises(ScenarioError, match=said):
        simulate_custom(scenario)


@pytest.mark.parametrize("compiled", COMPILED)
def test_fields_of_rules_may_be_called_as_anything(tmp_path: Path, compiled: bool) -> None:
    name = f"fields_{compiled}.py"
    (tmp_path / name).write_text(PROTOCOL)
    with use_compiled(compiled):
        run = simulate_custom(scenario_of(f"{name}:Own", folder=tmp_path, nodes=5, rounds=4))
    (system,) = run.systems.values()
    assert system.rounds["all_right"][-1] == system.rounds["all_got"][-1] > 30


def test_fields_of_plain_nodes_may_be_called_as_anything() -> None:
    made = message("Made", len=int, refuse=items(2))
    assert made(3, [1, 2]).len == 3
    with pytest.raises(ValueError, match="3 items in refuse, expected at most 2"):
        made(3, [1, 2, 3])
    with pytest.raises(ValueError, match=r"0\.5 in len, expected a whole number"):
        made(0.5, [])


WIDTHS = """
from gossamer.sim import Protocol, Timer, column, measure


class Own(Protocol):
    k: int = 2
    levels: int = 3
    table = column(int, lambda own: own.k * own.levels)
    tick = Timer(rounds=1)

    def on_tick(self, me, net):
        self.table[me, self.k * self.levels - 1] += 1

    @measure("width")
    def width(self, run):
        return self.table.shape[1]
"""


def test_a_column_is_as_wide_as_a_function_of_the_settings(tmp_path: Path) -> None:
    (tmp_path / "widths.py").write_text(WIDTHS)
    size: dict[str, Any] = {"folder": tmp_path, "nodes": 4, "rounds": 2}
    for k, width in ((2, 6), (5, 15)):
        with use_compiled(False):
            run = simulate_custom(scenario_of("widths.py:Own", settings={"k": k}, **size))
        (system,) = run.systems.values()
        assert system.rounds["width"][-1] == width
    with pytest.raises(ScenarioError, match="width of column table is 0, expected settings by"):
        scenario_of("widths.py:Own", settings={"k": 0}, **size)
