"""Mistakes that are easily made, and would do something else in silence, or fail late and oddly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gossamer.sim import Protocol, control, initialiser, observer
from support.own_protocols import protocol_file, scenario_file
from support.sim_commands import sim

Refused = Callable[..., str]
Found = Callable[[str, str, str], None]
PAIR = "class Pair(Message):\n    hops: int\n    left: int\n\n"
OWN = "class Own(Protocol):\n    tick = Timer(rounds=1)\n    seen = column(int)\n"
TICK = "    def on_tick(self, me, net):\n"
TAKE = "    def on_pair(self, me, net, sender, hops, left):\n"
NODE = "class Own(Node):\n    tick = Timer(rounds=1)\n    def on_tick(self):\n"
TAKEN = "    def on_pair(self, sender, message):\n        pass\n"


def body(*lines: str) -> str:
    return "".join(f"        {line}\n" for line in lines)


def rules(*lines: str) -> str:
    """A protocol whose handler of `Pair` does this from line 18 on."""
    return (
        PAIR + OWN + TICK + body("Pair.send(net, draw_other(self, me), 1, 2)") + TAKE + body(*lines)
    )


def ticking(*lines: str, own: str = "", **fields: str) -> str:
    """A protocol whose timer does this from line 16 on; fields of `Pair` are declared otherwise."""
    pair = PAIR
    for name, declared in fields.items():
        pair = pair.replace(f"{name}: int", declared)
    return pair + OWN + own + TICK + body(*lines) + TAKE + body("pass")


def nodes(line: str) -> str:
    """A plain protocol whose timer does this in line 15."""
    return PAIR + NODE + body(line) + TAKEN


SENDS = "Pair.send(net, draw_other(self, me), 1, 2)"
NOT_DECLARED = "a setting that is a whole number from 1, as Pair names it"
# What stands in the file; the line that is named, and what is said.
CHECKED = {
    rules("pass").replace("hops, left):", "left, hops):"): (
        "17: of (self, me, net, sender, left, hops), expected (self, me, net, sender, hops,"
    ),
    rules("pass").replace("me, net, sender", "net, me, sender"): (
        "17: a handler of (self, net, me, sender, hops, left), expected (self, me, net,"
    ),
    nodes("pass").replace("sender, message", "message, sender"): (
        "16: is a function of (self, message, sender), expected (self, sender, message)"
    ),
    rules("x = [hops, left]", "x.append(3)"): "18: makes a list",
    rules("x = {hops: left}", "x[3] = 4"): "18: makes a dict",
    rules("self.seen[me] = len({hops, left})"): "18: makes a set",
    rules("self.seen[me] = sum([x for x in range(hops)])"): "18: makes a list",
    rules("self.seen[me] = len(f'{hops}')"): "18: makes a text",
    rules("import math", "math.sqrt(2.0)"): "18: imports math",
    rules("with me:", "    pass"): "18: has a with block",
    rules("print(hops)"): "18: uses print, expected a run with GOSSAMER_DE",
    ticking("Pair.after(net, 1e18, 1, 2)"): (
        "16: asks for a Pair after 1e+18 s, expected a delay from 0 s to 7e+10 s"
    ),
    ticking("self.seen[me] = Pair.after(net, 1.0, 1, 2)"): (
        "16: it writes None to seen, expected a number"
    ),
    ticking("for _ in range(3):", "    Pair.after(net, 1.0, 1, 2)").replace(
        "(Message)", "(Message, cancellable=2)"
    ): "17: asks for a Pair while 2 are pending that can be cancelled, expected no more than",
    ticking("Pair.log(net, 1)", left="left: int = items(3)"): (
        "8: Pair is a message with other fields, expected fields of int, float or bool, none ca"
    ),
    ticking("Pair.log(net, 1, 2)", left="node: int").replace("left):", "node):"): (
        "8: none called round, time_s, node, as it is logged"
    ),
    ticking(SENDS, left="left: int = items('k')"): (
        f"12: Own.k is no setting, expected {NOT_DECLARED}"
    ),
    ticking(SENDS, own="    k: float = 2.5\n", left="left: int = items('k')"): (
        f"12: Own.k is 2.5, expected {NOT_DECLARED}"
    ),
    ticking(
        SENDS.replace("2)", "self.row[me])"),
        own="    k: int = 2\n    row = column(int, 3)\n",
        left="left: int = items('k')",
    ): "8: a Pair has 3 items in a field, expected at most 2, as a setting of its taker says",
    ticking("pass", left="left: int = items(3, str)"): (
        "8: Pair.left is <class 'str'>, expected items of int or float"
    ),
    ticking(SENDS.replace("2)", "left=2)")): (
        "16: it sends a Pair with left=, expected its fields hops, left in this order, without"
    ),
}
NO_ROW = "expected a row from 0 to 19"


RUN = {
    nodes("self.send('x', Pair(1, 2))"): f"15: a message to node 'x', {NO_ROW}",
    nodes("self.send(self, Pair(1, 2))"): f"15: {NO_ROW}",
    nodes("self.send(Pair(1, 2), self.draw_other())"): (
        f"15: a message to node Pair(hops=1, left=2), {NO_ROW}"
    ),
    nodes("self.send(self.draw_other(), Pair)"): (
        "15: the class Pair is sent, expected an object of it, Pair(...)"
    ),
    nodes("self.send(self.draw_other(), Pair(1.5, 2))"): (
        "15: 1.5 in hops, expected a whole number, as is declared"
    ),
    nodes("self.after(1.0, Pair(1, 'a'))"): (
        "15: 'a' in left, expected a whole number, as is declared"
    ),
    nodes("raise ValueError('no\\n  way')"): "15: on_tick raised ValueError: no way",
    nodes("self.after(1e18, Pair(1, 2))"): (
        "15: a delay of 1e+18 s, expected one from 0 s to 7e+10 s"
    ),
    nodes("self.log('x')"): "15: a log of <class 'str'>, expected a class of messages",
    nodes("self.send(self.draw_other(), Pair(1, [1, 2, 3]))").replace(
        "left: int", "left: int = items('k')"
    )
    + "    k: int = 2\n": (
        "8: Pair is sent with too many items, expected at most k items in left, as is declared"
    ),
    ticking("pass")
    + "    @measure()\n    def m(self, run):\n        return self.seen.repeat(50)\n": (
        "19: measure m is array([0, 0, 0,"
    ),
}


def acting(mark: str, line: str) -> str:
    """A plain protocol whose function of a run begins in line 16, marked so."""
    act = f"    @{mark}\n    def act(self, run):\n"
    return PAIR + NODE + body("pass") + act + body(line) + TAKEN


NO_ROWS = "run.crash is given {}, expected a list or array of rows from 0 to 19, or of 20 bools"
RUN |= {
    acting("control()", "return run.round > 1"): (
        "16: what act returns is True, expected nothing: run.stop"
    ),
    acting("control(once=3, every=2)", "pass"): (
        "16: the schedule is {'begin': 0, 'end': None, 'every': 2, 'once': 3}, expected once alone"
    ),
    acting("control(5)", "pass"): "16: the schedule is 5, expected whole numbers of rounds by name",
    acting("control(once=1)", "run.grow('x')"): (
        "18: act raised ValueError: run.grow is asked for 'x' nodes, expected 0 to"
    ),
    acting("control(once=1)", "run.crash(3)"): "18: " + NO_ROWS.format("3"),
    acting("control(once=1)", "run.crash(run.alive[:5])"): "18: " + NO_ROWS.format("5 bools"),
}


@pytest.mark.parametrize(("text", "told"), CHECKED.items(), ids=CHECKED.values())
def test_a_check_finds_it(text: str, told: str, found: Found) -> None:
    found("check", text, told)


@pytest.mark.parametrize(("text", "told"), RUN.items(), ids=RUN.values())
def test_a_run_finds_it(text: str, told: str, found: Found) -> None:
    found("run", text, told)


def test_functions_of_a_run_are_marked_with_or_without_parentheses() -> None:
    class Own(Protocol):
        @initialiser()  # type: ignore[untyped-decorator]
        def begin(self, run: Any) -> None: ...

        @control
        def before(self, run: Any) -> None: ...

        @observer
        def after(self, run: Any) -> None: ...

    declared = {name: (one.begin, one.after) for name, one in Own.declared.controls.items()}
    assert declared == {"begin": (-1, False), "before": (0, False), "after": (0, True)}


@pytest.mark.parametrize("command", ["check", "run"])
def test_a_missing_attribute_is_said_of_the_scenario(refused: Refused, command: str) -> None:
    imported = "from gossamer.sim import attribute\n"
    text = imported + ticking(SENDS, own="    cap = attribute(float)\n")
    said = "attributes.cap is missing, expected a value, as Own declares it without a default"
    assert refused(command, text).endswith(f"own.toml: {said}")


def test_checked_runs_may_print_and_make_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GOSSAMER_DEBUG", "1")
    monkeypatch.chdir(tmp_path)
    text = rules("import math", "if me == 3:", "    print(f'{[math.pi]}')")
    file = scenario_file(tmp_path, protocol_file(tmp_path, "mistake_none", text))
    assert sim("run", file, "--no-plots") == 0
    assert "[3.14" in capfd.readouterr().out


CYCLES = 'nodes = 20\nengine = "cycle"\n'


def test_delays_in_cycles_are_refused_with_the_file(refused: Refused) -> None:
    error = refused("run", nodes("self.after(1.0, Pair(1, 2))"), CYCLES)
    assert "case.py, line " in error
    assert 'knows no delays and the protocol uses "after"' in error
    rules_too = ticking("Pair.after(net, 1.0, 1, 2)")
    assert "knows no delays" in refused("check", rules_too, CYCLES)
