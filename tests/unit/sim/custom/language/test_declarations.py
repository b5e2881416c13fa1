"""What is wrong with a protocol's file is one sentence with file and line, and exit code 2."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from gossamer.protocol.kernel.rules import use_compiled
from gossamer.sim import Protocol, Sampler, column
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.worlds.network import Link
from gossamer.sim.study.scenarios import read_scenario
from support.own_protocols import protocol_file, scenario_file
from support.sim_commands import sim

RULES = "class Own(Protocol):\n    tick = Timer(rounds=1)\n    seen = column(int)\n"
TICK = "    def on_tick(self, me, net):\n"
SEND = TICK + "        Word.send(net, draw_other(self, me), me)\n"
WORD = "    def on_word(self, me, net, sender, number):\n"
PASS = "        pass\n"
NODE = "class Own(Node):\n    tick = Timer(rounds=1)\n    def on_tick(self):\n"
TAKE = "    def on_word(self, sender, message):\n        pass\n"


def method(*lines: str) -> str:
    return "".join(f"    {line}\n" for line in lines)


def body(*lines: str) -> str:
    return "".join(f"        {line}\n" for line in lines)


def on_tick(*lines: str) -> str:
    """A protocol that does this in its turn, from line 12 on."""
    return RULES + TICK + body(*lines) + WORD + PASS


def on_word(*lines: str) -> str:
    """A protocol that does this with a word, from line 14 on."""
    return RULES + SEND + WORD + body(*lines)


def declares(*lines: str) -> str:
    """A protocol that declares this as well, from line 11 on."""
    return RULES + method(*lines) + SEND


def handles(signature: str) -> str:
    """A protocol with such a handler, from line 13 on."""
    return RULES + SEND + method(f"def {signature}:") + PASS


def measures(line: str, head: str = "def m(self, run):", mark: str = "measure()") -> str:
    """A protocol with such a measure."""
    return RULES + SEND + method(f"@{mark}", head) + body(line)


def crash(who: str) -> str:
    """A protocol of which these nodes crash by line 17."""
    run = method("@control(once=1)", "def c(self, run):") + body(f"run.crash({who})")
    return on_word("pass") + run


def node(*lines: str, head: str = "def on_tick(self):") -> str:
    """A plain protocol that does this in its turn, from line 11 on."""
    return NODE.replace("def on_tick(self):", head) + body(*lines)


NO_ROWS = "c raised ValueError: run.crash is given {}, expected a list or array of rows from 0 to"
# What stands in the file; the line that is named, and what is said.
WRONG = {
    handles("on_wrod(self, me, net, sender, number)"): (
        "13: Own.on_wrod is a handler of no message or timer of this file, expected one of"
    ),
    handles("on_word(self, me, net, sender)"): "13: expected (self, me, net, sender, number)",
    RULES: "8: Own.tick is a timer without a handler, expected a method",
    "class Own(Protocol):\n" + method("tick = Timer(rounds=1, seconds=2)") + SEND: (
        "8: expected either rounds or seconds"
    ),
    "class Own(Protocol):\n    k: int = setting(0, low=1)\n" + RULES[21:] + SEND: (
        "8: Own.k is 0, expected a whole number from 1"
    ),
    "class Own(Protocol):\n    peers = Sampler('newcast')\n": (
        "9: Sampler is 'newcast', expected one of cyclon, newscast"
    ),
    "class Box(Message):\n    what: dict\n\n" + handles("on_box(self, me, net, sender, what)"): (
        "8: Box.what is a field of another type, expected int, float, bool or items"
    ),
    "class Own(Protocol:\n": "8: is no Python",
    "1 / 0\n": "8: raised ZeroDivisionError",
    RULES + TICK + body("self.seen[(me + 1) % self.nodes] += 1"): (
        "12: of seen, expected its own row"
    ),
    RULES + TICK + body("self.seen[me] = self.seen[-1]"): "12: index",
    "class Many(Message):\n    some: list = items(2)\n\nclass Own(Protocol):\n"
    "    tick = Timer(rounds=1)\n    some = column(int, 3)\n"
    "    def on_tick(self, me, net):\n        Many.send(net, 0, self.some[me])\n"
    "    def on_many(self, me, net, sender, some):\n        pass\n": (
        "15: sends a Many with 3 items in some, expected at most 2"
    ),
    on_tick("Word.after(net, -1.0, 1)"): (
        "12: asks for a Word after -1.0 s, expected a delay from 0 s"
    ),
    "import no_such_module\n": "8: raised ModuleNotFoundError",
    "from gossamer.sim import nosuch\n": "8: raised ImportError",
    "import sys\nsys.exit(3)\n": "9: raised SystemExit: 3",
    on_word("self.sen[me] += 1"): (
        "14: taking word of node 3: it reads field sen of OwnState, which has no such field"
    ),
    on_word("self.seen[me] += self.kk"): "14: reads field kk of OwnState",
    on_tick("Word.send(net, 0, 'a')"): "12: on_tick raised ValueError",
    on_tick("Word.send(net, -1, 1)"): (
        "12: it writes a word whose TO is -1, expected a peer from 0 to 19"
    ),
    on_word("self.seen[me] = len(5)"): "14: on_word raised TypeError",
    RULES.replace("rounds=1", "rounds=0") + SEND: "8: tick is 0, expected a period",
    RULES.replace("rounds=1", "rounds=[1]") + SEND: "8: Own.tick is [1], expected a period above 0",
    declares("s: float = 0.0").replace("rounds=1", "seconds='s'"): (
        "8: Own.s is 0.0, expected above 0, as timer tick has that period"
    ),
    RULES.replace("int", "str") + SEND: "8: expected a column of bool, int",
    declares("k: int = 'a'"): "8: Own.k is 'a', expected",
    declares("k: list = []"): "8: Own.k is of another type, expected a setting: bool, int or float",
    declares("k: int"): "8: Own.k is without a value",
    declares("a = Sampler('cyclon')", "b = Sampler('newscast')"): (
        "8: a stack of samplers a and b, expected one for a node"
    ),
    declares("a = Sampler('cyclon', view_size='big')"): "8: Own.a is 'big', expected a view size",
    declares("a = Sampler('cyclon', view_size=5.5)"): "11: view_size is 5.5, expected 1 to 256",
    declares("a = Sampler('cyclon', view_size=5, shuffle_length=9)"): (
        "11: shuffle_length is 9, expected 1 to the view size, 5"
    ),
    declares("a = layer(3)"): "11: layer is 3, expected a class",
    "class Low(Node):\n    pass\n" + declares("a = layer(Low)"): (
        "10: Own.a is 'Low', expected a layer derived from Protocol"
    ),
    "class Low(Protocol):\n    k: int = 1\n" + declares("a = layer(Low, kk=2)"): (
        "10: a.kk is no setting, expected one of k"
    ),
    measures("return 'a'") + WORD + PASS: "13: measure m is 'a', expected a number",
    measures("return 1", "def m(self):"): "13: m is a function of (self), expected (self, run)",
    measures("return 1", "def messages(self, run):"): (
        "8: Own.messages is a measure that all protocols have"
    ),
    RULES + SEND: (
        "12: rule on_tick is one that sends a Word, which nobody takes, expected a handler on_word"
    ),
    on_word("self.seen[me] += 0.25"): (
        "14: it writes the float 0.25 to seen, of int64, where fractions are cut off"
    ),
    crash("[3, -1]"): "17: " + NO_ROWS.format(-1),
    crash("0.5"): "17: " + NO_ROWS.format(0.5),
    "D = [1, 2]\n" + on_word("self.seen[me] = D[1]"): (
        "15: rule on_word is one that uses D, a list, expected rules, numbers, tuples or arrays"
    ),
    "D = 1\n" + on_word("global D", "D = 2"): (
        "16: rule on_word is one that writes the global name D"
    ),
    "import numpy as np\n" + on_word("np.random.randint(5)"): (
        "15: one that uses random, expected draw, draw_below or draw_float"
    ),
    "from gossamer.sim import rule\n"
    + (on_word("f(3)") + "\n@rule\ndef f(n):\n    return f(n - 1)\n"): (
        "19: rule f is one that uses f within itself, expected a loop"
    ),
    on_word("yield 1"): "13: rule on_word is a generator",
    "class Tick(Message):\n    n: int\n" + RULES + SEND: (
        "10: Own.tick is a timer that has the name of a message"
    ),
    declares("w: int = 0", "more = column(int, 'w')"): (
        "8: Own.w is 0, expected a whole number from 1, as column more has that width"
    ),
    declares("w: int = 1", "more = column(int, lambda own: own.w - 1)"): (
        "8: Own.more is 0, expected a width from 1 by the settings' defaults"
    ),
    declares("w: int = 1", "more = column(int, lambda own: own.v)"): (
        "8: Own.more is a width that cannot be computed ('types.SimpleNamespace' object has no"
    ),
    measures("return 1", mark="measure(kind='x')"): (
        "13: measure kind is 'x', expected one of 'ratio'"
    ),
    node("self.send(-1, Word(1))") + TAKE: "11: a message to node -1, expected a row from 0 to 19",
    node("self.send(99, Word(1))") + TAKE: "11: node 99",
    node("pass", head="def on_tick(self, me):"): (
        "10: Own.on_tick is a function of (self, me), expected (self)"
    ),
    node("pass") + method("def __init__(self, x):") + PASS: (
        "12: Own.__init__ is a function of (self, x), expected (self)"
    ),
    "class Many(Message):\n    some: list = items(2)\n\n"
    + (node("self.send(1, Many([1, 2, 3]))") + method("def on_many(self, sender, message):"))
    + PASS: "14: 3 items in some, expected at most 2, as is declared",
    measures("return self.none.mean()") + WORD + PASS: "15: raised AttributeError",
    # Rules that only the compiler refuses; nothing is compiled before it does.
    on_word("self.seen[me] = nosuch + 1"): "14: name 'nosuch' is not defined",
    on_word("x = {}", "x[me] = number"): "14: rules allocate nothing",
    on_word("if net.round > 9:", "    self.seen[me] = self.seen[me] / 2"): (
        "15: it writes a float to an array of int64, where fractions are cut off"
    ),
    on_word("helper(number)") + "\ndef helper(x):\n    return x\n": "14: it uses helper",
}

Refused = Callable[..., str]
Found = Callable[[str, str, str], None]


@pytest.mark.parametrize(("text", "told"), WRONG.items(), ids=WRONG.values())
def test_a_wrong_file_is_one_sentence_with_its_line(text: str, told: str, found: Found) -> None:
    # Crashes are found only when a run has begun, for which nothing has to be compiled.
    with use_compiled(False) if "run.crash" in text else nullcontext():
        found("run", text, told)


@pytest.mark.parametrize(
    "text",
    [
        RULES + TICK + body("while True:", "    self.seen[me] += 1") + WORD + PASS,
        RULES + TICK + body("Word.send(net, me, 1)") + WORD + body("Word.send(net, me, 1)"),
    ],
    ids=["a loop", "an answer to oneself"],
)
def test_what_never_ends_is_found_before_the_run(
    text: str, monkeypatch: pytest.MonkeyPatch, refused: Refused
) -> None:
    monkeypatch.setattr("gossamer.sim.studies.custom.rehearsal._REHEARSED_S", 0.5)
    said = refused("check", text)
    assert "case.py, line " in said
    assert "is running after 0.5 s of a rehearsal" in said


def test_a_row_that_only_the_run_has_is_no_fault(tmp_path: Path, refused: Refused) -> None:
    text = RULES + TICK + body("Word.send(net, 20, 1)") + WORD + PASS
    many = scenario_file(tmp_path, protocol_file(tmp_path, "fixed_row", text), "nodes = 50\n")
    assert sim("check", many) == 0
    few = refused("check", "fixed_row.py:Own", "nodes = 20\n")
    assert "whose TO is 20, expected a peer from 0 to 19" in few


@pytest.mark.parametrize("engine", ["event", "windows", "cycle"])
def test_a_chain_of_messages_without_an_end_is_named(
    engine: str, monkeypatch: pytest.MonkeyPatch, refused: Refused
) -> None:
    """Of plain classes, which are not rehearsed, whenever it begins."""
    monkeypatch.setattr("gossamer.sim.custom.plain_engine._MOST_AT_A_TICK", 5_000)
    text = node("if self.round == 2:", "    self.send(0, Word(1))")
    text += method("def on_word(self, sender, message):") + body("self.send(self.me, Word(1))")
    keys = f'nodes = 20\nrounds = 4\nengine = "{engine}"\n'
    keys += "" if engine == "cycle" else '[network]\nlatency = "constant"\nlatency_s = 0.05\n'
    said = refused("run", text, keys)
    assert "case.py, line 13: node 0 is to take word of node 0 as one of more" in said
    assert "expected no message without delay that is answered for ever" in said


KEYS = [
    ("nodes = 9\n", ":Onw", "the class of the protocol is 'Onw', expected one of Own"),
    ("nodes = 9\n", "x.py:Own", "is of no file"),
    ("nodes = 9\n", "own", "expected a file and a class in it"),
    ("[settings]\nk = 1.5\n", ":Own", "settings.k is 1.5, expected a whole number"),
    ("[settings]\nk = 0\n", ":Own", "settings.k is 0, expected a whole number"),
    ("[settings]\ns = 0.0\n", ":Own", "settings.s is 0.0, expected above 0"),
    ("[settings]\nkk = 1\n", ":Own", "kk is no setting, expected one of k, s"),
    ("node = 9\n", ":Own", "did you mean 'nodes'?"),
    ("[network]\nevent_capacity = 3\n", ":Own", "network.event_capacity is an unk"),
    ('engine = "cycle"\n[network]\nloss = 0.5\n', ":Own", "in the cycle engine"),
]


@pytest.mark.parametrize(("keys", "protocol", "said"), KEYS)
def test_a_wrong_scenario_is_one_sentence(
    keys: str, protocol: str, said: str, tmp_path: Path, refused: Refused
) -> None:
    settings = "k: int = setting(2, low=1)\n    s: float = 1.0\n    seen"
    text = on_word("pass").replace("seen", settings).replace("rounds=1", "seconds='s'")
    known = protocol_file(tmp_path, f"good_{KEYS.index((keys, protocol, said))}", text)
    given = known.partition(":")[0] + protocol if protocol.startswith(":") else protocol
    assert said in refused("check", given, keys)


@pytest.mark.parametrize(
    ("keys", "overrides", "said"),
    [
        ("system = 5\n", {"system.own.k": 1}, "system is 5, expected one [[system]] table per"),
        ("", {"system.own.k": 1}, "system.own.k is of no system, expected a setting of settings"),
        ("", {"attributes.site": {"file": 5}}, "attributes.site.file is 5, expected the path"),
        ("", {"network": Link(event_capacity=3)}, "network.event_capacity is an unknown key"),
    ],
)
def test_a_wrong_override_is_one_sentence(
    keys: str, overrides: dict[str, object], said: str, tmp_path: Path
) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(
        f'protocol = "{protocol_file(tmp_path, tmp_path.name, on_word("pass"))}"\n{keys}'
    )
    with pytest.raises(ScenarioError, match=re.escape(said)):
        read_scenario(file, overrides)


def test_what_is_declared_may_have_an_annotation() -> None:
    class Own(Protocol):
        seen: Any = column(int)
        peers: Any = Sampler("cyclon", view_size=8)
        k: int = 3

    declared = (Own.declared.columns, Own.declared.samplers, Own.declared.settings)
    assert [list(one) for one in declared] == [["seen"], ["peers"], ["k"]]


def test_what_a_class_declares_anew_is_not_what_the_one_above_declared() -> None:
    class Above(Protocol):
        declared = column(int)  # a name as any other
        known = Sampler("newscast", view_size=4)
        near = column(int, 3)

    class Below(Above):
        known = column(float)
        near = Sampler("cyclon", view_size=8)

    assert Above.declared.columns.keys() == {"declared", "near"}
    assert Below.declared.columns.keys() == {"declared", "known"}
    assert Below.declared.samplers.keys() == {"near"}
