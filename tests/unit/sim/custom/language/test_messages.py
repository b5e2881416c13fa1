"""Messages arrive as they were sent, whatever their fields are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.protocol.kernel.rules import use_compiled
from gossamer.sim.custom import items, message
from gossamer.sim.studies.custom.agreement import scenario_of
from gossamer.sim.studies.custom.simulation import simulate_custom

# Names that generated rules have for something of their own.
NUMBERS = (
    "at",
    "body",
    "to",
    "length",
    "i",
    "s",
    "p",
    "now",
    "out",
    "delay",
    "at_field",
    "len",
    "begin",
)
PROTOCOL = f"""
from gossamer.sim.custom import Protocol, Timer, column, items, measure, message

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


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.campaign)])
def test_fields_may_be_called_as_anything_in_generated_rules(
    tmp_path: Path, compiled: bool
) -> None:
    # A module of each name is loaded once.
    name = f"fields_{'compiled' if compiled else 'interpreted'}.py"
    (tmp_path / name).write_text(PROTOCOL)
    with use_compiled(compiled):
        run = simulate_custom(scenario_of(f"{name}:Own", folder=tmp_path, nodes=5, rounds=4))
    (system,) = run.systems.values()
    assert system.rounds["all_right"][-1] == system.rounds["all_got"][-1] > 30


def test_messages_of_plain_nodes_may_have_such_fields() -> None:
    made = message("Made", len=int, refuse=items(2))
    assert made(3, [1, 2]).len == 3
    with pytest.raises(ValueError, match="3 items in refuse, expected at most 2"):
        made(3, [1, 2, 3])
    with pytest.raises(ValueError, match=r"0\.5 in len, expected a whole number"):
        made(0.5, [])
