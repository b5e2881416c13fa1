"""What is wrong with a protocol's file is one sentence with file and line, and exit code 2."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from gossamer.protocol.kernel.rules import use_compiled
from gossamer.sim.custom import Protocol, Sampler, column
from support.own_protocols import protocol_file, scenario_file
from support.sim_commands import sim

RULES = "class Own(Protocol):\n    tick = Timer(rounds=1)\n    seen = column(int)\n"
TICK = "    def on_tick(self, me, net):\n"
SEND = TICK + "        Word.send(net, draw_other(self, me), me)\n"

CRASH = "    @control(once=1)\n    def c(self, run):\n        run.crash({})\n"
WORD = "    def on_word(self, me, net, sender, number):\n"
PASS = "        pass\n"
NODE = "class Own(Node):\n    tick = Timer(rounds=1)\n    def on_tick(self):\n"
TAKE = "    def on_word(self, sender, message):\n        pass\n"
# A protocol up to what it does in its turn, and up to what it does with a word.
ON_TICK, ON_WORD = RULES + TICK, RULES + SEND + WORD
MEASURE = "    @measure()\n    def m(self, run):\n"

# What stands in the file, the line that is named (None: none), and what is said.
WRONG = {
    "a_message_of_none": (
        RULES + SEND + "    def on_wrod(self, me, net, sender, number):\n        pass\n",
        13,
        "Own.on_wrod is a handler of no message or timer of this file, expected one of",
    ),
    "too_few_arguments": (
        RULES + SEND + "    def on_word(self, me, net, sender):\n        pass\n",
        13,
        "expected (self, me, net, sender, number)",
    ),
    "a_timer_of_none": (RULES, 8, "Own.tick is a timer without a handler, expected a method"),
    "two_periods": (
        "class Own(Protocol):\n    tick = Timer(rounds=1, seconds=2)\n" + SEND,
        8,
        "expected either rounds or seconds",
    ),
    "a_setting_out_of_bounds": (
        "class Own(Protocol):\n    k: int = setting(0, low=1)\n" + RULES[21:] + SEND,
        8,
        "Own.k is 0, expected a whole number from 1",
    ),
    "a_sampler_of_none": (
        "class Own(Protocol):\n    peers = Sampler('newcast')\n",
        9,
        "Sampler is 'newcast', expected one of cyclon, newscast",
    ),
    "an_object_in_a_rule": (
        "class Box(Message):\n    what: dict\n\n"
        + RULES
        + SEND
        + "    def on_box(self, me, net, sender, what):\n        pass\n",
        8,
        "Box.what is a field of another type, expected int, float, bool or items",
    ),
    "no_python": ("class Own(Protocol:\n", 8, "is no Python"),
    "an_error_of_its_own": ("1 / 0\n", 8, "raised ZeroDivisionError"),
    "another_row": (
        ON_TICK + "        self.seen[(me + 1) % self.nodes] += 1\n",
        12,
        "of seen, expected its own row",
    ),
    "an_index_outside": (ON_TICK + "        self.seen[me] = self.seen[-1]\n", 12, "index"),
    "a_message_too_large": (
        "class Many(Message):\n    some: list = items(2)\n\nclass Own(Protocol):\n"
        "    tick = Timer(rounds=1)\n    some = column(int, 3)\n"
        "    def on_tick(self, me, net):\n        Many.send(net, 0, self.some[me])\n"
        "    def on_many(self, me, net, sender, some):\n        pass\n",
        15,
        "sends a Many with 3 items in some, expected at most 2",
    ),
    "a_delay_below_zero": (
        ON_TICK + "        Word.after(net, -1.0, 1)\n" + WORD + PASS,
        12,
        "asks for a Word after -1.0 s, expected a delay from 0 s",
    ),
    "no_class": ("class Other(Protocol):\n    pass\n", None, "is 'Own', expected one of Other"),
    "nothing_to_import": ("import no_such_module\n", 8, "raised ModuleNotFoundError"),
    "no_such_name": ("from gossamer.sim.custom import nosuch\n", 8, "raised ImportError"),
    "it_exits": ("import sys\nsys.exit(3)\n", 9, "raised SystemExit: 3"),
    "a_field_misspelt": (
        ON_WORD + "        self.sen[me] += 1\n",
        14,
        "taking word of node 3: it reads field sen of OwnState, which has no such field",
    ),
    "a_setting_misspelt": (
        ON_WORD + "        self.seen[me] += self.kk\n",
        14,
        "it reads field kk of OwnState",
    ),
    "a_text_to_send": (
        ON_TICK + "        Word.send(net, 0, 'a')\n" + WORD + PASS,
        12,
        "on_tick raised ValueError",
    ),
    "nobody_to_send_to": (
        ON_TICK + "        Word.send(net, -1, 1)\n" + WORD + PASS,
        12,
        "it writes a word whose TO is -1, expected a peer from 0 to 11",
    ),
    "an_error_in_a_rule": (
        ON_WORD + "        self.seen[me] = None\n",
        14,
        "on_word raised TypeError",
    ),
    "no_period": (RULES.replace("rounds=1", "rounds=0") + SEND, 8, "tick is 0, expected a period"),
    "a_list_for_a_period": (
        RULES.replace("rounds=1", "rounds=[1]") + SEND,
        8,
        "Own.tick is [1], expected a period above 0",
    ),
    "a_setting_that_is_no_period": (
        RULES.replace("rounds=1", "seconds='s'") + "    s: float = 0.0\n" + SEND,
        8,
        "Own.s is 0.0, expected above 0, as timer tick has that period",
    ),
    "a_column_of_texts": (RULES.replace("int", "str") + SEND, 8, "expected a column of bool, int"),
    "a_setting_of_a_wrong_type": (RULES + "    k: int = 'a'\n" + SEND, 8, "Own.k is 'a', expected"),
    "a_setting_of_another_type": (
        RULES + "    k: list = []\n" + SEND,
        8,
        "Own.k is of another type, expected a setting: bool, int or float",
    ),
    "a_setting_without_a_value": (RULES + "    k: int\n" + SEND, 8, "Own.k is without a value"),
    "two_samplers": (
        RULES + "    a = Sampler('cyclon')\n    b = Sampler('newscast')\n" + SEND,
        8,
        "a stack of samplers a and b, expected one for a node",
    ),
    "a_view_size_of_none": (
        RULES + "    a = Sampler('cyclon', view_size='big')\n" + SEND,
        8,
        "Own.a is 'big', expected a view size",
    ),
    "a_view_size_in_parts": (
        RULES + "    a = Sampler('cyclon', view_size=5.5)\n" + SEND,
        11,
        "view_size is 5.5, expected 1 to 256",
    ),
    "a_shuffle_too_long": (
        RULES + "    a = Sampler('cyclon', view_size=5, shuffle_length=9)\n" + SEND,
        11,
        "shuffle_length is 9, expected 1 to the view size, 5",
    ),
    "a_layer_of_a_number": (
        RULES + "    a = layer(3)\n" + SEND,
        11,
        "layer is 3, expected a class",
    ),
    "a_layer_of_the_other_kind": (
        "class Low(Node):\n    pass\n" + RULES + "    a = layer(Low)\n" + SEND,
        10,
        "Own.a is 'Low', expected a layer derived from Protocol",
    ),
    "a_layer_without_the_setting": (
        "class Low(Protocol):\n    k: int = 1\n" + RULES + "    a = layer(Low, kk=2)\n" + SEND,
        10,
        "a.kk is no setting, expected one of k",
    ),
    "a_measure_that_is_a_text": (
        RULES + SEND + MEASURE + "        return 'a'\n" + WORD + PASS,
        13,
        "measure m is 'a', expected a number",
    ),
    "a_measure_of_one_argument": (
        RULES + SEND + "    @measure()\n    def m(self):\n        return 1\n",
        13,
        "m is a function of (self), expected (self, run)",
    ),
    "a_measure_whose_name_is_taken": (
        RULES + SEND + "    @measure()\n    def messages(self, run):\n        return 1\n",
        8,
        "Own.messages is a measure that all protocols have",
    ),
    "a_message_that_nobody_takes": (
        RULES + SEND,
        12,
        "rule on_tick is one that sends a Word, which nobody takes, expected a handler on_word",
    ),
    "a_fraction_where_there_are_whole_numbers": (
        ON_WORD + "        self.seen[me] += 0.25\n",
        14,
        "it writes the float 0.25 to seen, of int64, where fractions are cut off",
    ),
    "a_crash_of_nobody": (
        ON_WORD + PASS + CRASH.format("[3, -1]"),
        17,
        "c raised ValueError: run.crash is given -1, expected a list or array of rows from 0 to",
    ),
    "a_crash_of_a_share": (
        ON_WORD + PASS + CRASH.format("0.5"),
        17,
        "c raised ValueError: run.crash is given 0.5, expected a list or array of rows from",
    ),
    "a_list_from_outside": (
        "D = [1, 2]\n" + ON_WORD + "        self.seen[me] = D[1]\n",
        15,
        "rule on_word is one that uses D, a list, expected rules, numbers, tuples or arrays",
    ),
    "a_global_name": (
        "D = 1\n" + ON_WORD + "        global D\n        D = 2\n",
        16,
        "rule on_word is one that writes the global name D",
    ),
    "a_draw_without_the_seed": (
        "import numpy as np\n" + ON_WORD + "        np.random.randint(5)\n",
        15,
        "one that uses random, expected draw, draw_below or draw_float",
    ),
    "a_rule_within_itself": (
        "from gossamer.sim.custom import rule\n"
        + ON_WORD
        + "        f(3)\n\n@rule\ndef f(n):\n    return f(n - 1)\n",
        19,
        "rule f is one that uses f within itself, expected a loop",
    ),
    "a_generator": (ON_WORD + "        yield 1\n", 13, "rule on_word is a generator"),
    "a_timer_called_as_a_message": (
        "class Tick(Message):\n    n: int\n" + RULES + SEND,
        10,
        "Own.tick is a timer that has the name of a message",
    ),
    "a_width_of_nothing": (
        RULES + "    w: int = 0\n    more = column(int, 'w')\n" + SEND,
        8,
        "Own.w is 0, expected a whole number from 1, as column more has that width",
    ),
    "a_measure_of_no_kind": (
        RULES + SEND + "    @measure(kind='x')\n    def m(self, run):\n        return 1\n",
        13,
        "measure kind is 'x', expected one of 'ratio'",
    ),
    "a_node_that_sends_to_nobody": (
        NODE + "        self.send(-1, Word(1))\n" + TAKE,
        11,
        "a message to node -1, expected a row from 0 to 19",
    ),
    "a_node_that_sends_beyond": (NODE + "        self.send(99, Word(1))\n" + TAKE, 11, "node 99"),
    "a_node_with_another_handler": (
        NODE.replace("on_tick(self)", "on_tick(self, me)") + "        pass\n",
        10,
        "Own.on_tick is a function of (self, me), expected (self)",
    ),
    "a_node_that_cannot_be_made": (
        NODE + "        pass\n    def __init__(self, x):\n        pass\n",
        12,
        "Own.__init__ is a function of (self, x), expected (self)",
    ),
    "a_node_with_a_message_too_large": (
        "class Many(Message):\n    some: list = items(2)\n\n"
        + NODE
        + "        self.send(1, Many([1, 2, 3]))\n    def on_many(self, sender, message):\n"
        + "        pass\n",
        14,
        "3 items in some, expected at most 2, as is declared",
    ),
    "a_measure_at_fault": (
        RULES + SEND + MEASURE + "        return self.none.mean()\n" + WORD + PASS,
        15,
        "raised AttributeError",
    ),
    # Rules that only the compiler refuses; nothing is compiled before it does.
    "an_unknown_name": (
        ON_WORD + "        self.seen[me] = nosuch + 1\n",
        14,
        "name 'nosuch' is not defined",
    ),
    "a_dictionary": (
        ON_WORD + "        x = {}\n        x[me] = number\n",
        14,
        "rules allocate nothing",
    ),
    "a_fraction_cut_off_later": (
        ON_WORD + "        if net.round > 9:\n            self.seen[me] = self.seen[me] / 2\n",
        15,
        "it writes a float to an array of int64, where fractions are cut off",
    ),
    "a_helper_that_is_no_rule": (
        ON_WORD + "        helper(number)\n\ndef helper(x):\n    return x\n",
        14,
        "it uses helper",
    ),
}


# Found only when a run has begun, for which nothing has to be compiled.
BEGUN = ("a_crash_of_nobody", "a_crash_of_a_share")


def refused(capsys: pytest.CaptureFixture[str], *line: object) -> str:
    """The last line of what `gossamer sim` says when it ends with exit code 2."""
    capsys.readouterr()
    assert sim(*line) == 2
    error = capsys.readouterr().err
    assert "Traceback" not in error
    return error.strip().splitlines()[-1]


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_file_is_one_sentence_with_its_line(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text, line, said = WRONG[what]
    monkeypatch.chdir(tmp_path)
    file = scenario_file(tmp_path, protocol_file(tmp_path, f"own_{what}", text))
    with use_compiled(False) if what in BEGUN else nullcontext():
        last = refused(capsys, "run", file, "--out", "r")
    assert said in last
    assert f"own_{what}.py" + ("" if line is None else f", line {line}") in last, last
    assert not (tmp_path / "r").exists()


ENDLESS = {
    "a_loop": ("        while True:\n            self.seen[me] += 1\n", ""),
    "an_answer_to_oneself": ("        Word.send(net, me, 1)\n", "        Word.send(net, me, 1)\n"),
}


@pytest.mark.parametrize("what", ENDLESS)
def test_what_never_ends_is_found_before_the_run(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begin, answer = ENDLESS[what]
    text = ON_TICK + begin + WORD + (answer or PASS)
    monkeypatch.setattr("gossamer.sim.studies.custom.rehearsal._REHEARSED_S", 0.5)
    file = scenario_file(tmp_path, protocol_file(tmp_path, f"endless_{what}", text))
    said = refused(capsys, "check", file)
    assert f"endless_{what}.py, line " in said
    assert "is running after 0.5 s of a rehearsal" in said


@pytest.mark.parametrize("engine", ["event", "windows", "cycle"])
def test_a_chain_of_messages_without_an_end_is_named(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of plain classes, which are not rehearsed, whenever it begins."""
    monkeypatch.setattr("gossamer.sim.custom.plain.driver._MOST_AT_A_TICK", 5_000)
    handler = "    def on_word(self, sender, message):\n        self.send(self.me, Word(1))\n"
    text = NODE + "        if self.round == 2:\n            self.send(0, Word(1))\n" + handler
    protocol = protocol_file(tmp_path, f"chain_{engine}", text)
    keys = f'nodes = 20\nrounds = 4\nengine = "{engine}"\n'
    keys += "" if engine == "cycle" else '[network]\nlatency = "constant"\nlatency_s = 0.05\n'
    file = scenario_file(tmp_path, protocol, keys)
    said = refused(capsys, "run", file, "--out", tmp_path / "r")
    assert f"chain_{engine}.py, line 13: node 0 is to take word of node 0 as one of more" in said
    assert "expected no message without delay that is answered for ever" in said
    assert not (tmp_path / "r").exists()


KEYS = {
    "no_class": ("nodes = 9\n", ":Onw", "the class of the protocol is 'Onw', expected one of Own"),
    "no_file": ("nodes = 9\n", "x.py:Own", "is of no file"),
    "no_name": ("nodes = 9\n", "own", "expected a file and a class in it"),
    "wrong_type": ("[settings]\nk = 1.5\n", ":Own", "settings.k is 1.5, expected a whole number"),
    "out_of_bounds": ("[settings]\nk = 0\n", ":Own", "settings.k is 0, expected a whole number"),
    "no_period": ("[settings]\ns = 0.0\n", ":Own", "settings.s is 0.0, expected above 0"),
    "no_setting": (
        "[settings]\nkk = 1\n",
        ":Own",
        "settings.kk is no setting, expected one of k, s",
    ),
    "unknown_key": ("node = 9\n", ":Own", "expected 'nodes'"),
    "no_capacity": ("[network]\nevent_capacity = 3\n", ":Own", "network.event_capacity is an unk"),
    "lossy_cycles": ('engine = "cycle"\n[network]\nloss = 0.5\n', ":Own", "in the cycle engine"),
}


@pytest.mark.parametrize("what", KEYS)
def test_a_wrong_scenario_is_one_sentence(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keys, protocol, said = KEYS[what]
    monkeypatch.chdir(tmp_path)
    settings = "k: int = setting(2, low=1)\n    s: float = 1.0\n    seen"
    text = RULES.replace("seen", settings).replace("rounds=1", "seconds='s'")
    known = protocol_file(tmp_path, f"good_{what}", text + SEND + WORD + PASS).partition(":")[0]
    given = known + protocol if protocol.startswith(":") else protocol
    assert said in refused(capsys, "check", scenario_file(tmp_path, given, keys))


def test_delays_are_refused_in_cycles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = ON_TICK + "        Word.after(net, 1.0, 1)\n" + WORD + PASS
    file = scenario_file(
        tmp_path, protocol_file(tmp_path, "own_delays", text), 'engine = "cycle"\n'
    )
    assert "knows no delays" in refused(capsys, "check", file)


def test_what_is_declared_may_have_an_annotation() -> None:
    class Own(Protocol):
        seen: Any = column(int)
        peers: Any = Sampler("cyclon", view_size=8)
        k: int = 3

    assert list(Own.declared.columns) == ["seen"]
    assert list(Own.declared.samplers) == ["peers"]
    assert list(Own.declared.settings) == ["k"]
