"""Stories: the shortest way to a violation, in words and as a file, taken again step by step."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gossamer.sim as gs
from gossamer.protocol.kernel.rules import use_compiled
from gossamer.sim.exploration.exploration import replay
from support.checkout import ROOT
from support.own_protocols import PROTOCOLS

FILE = f"{PROTOCOLS}/explored.py"


@pytest.fixture(autouse=True)
def interpreted() -> Iterator[None]:
    with use_compiled(False):
        yield


def story_of(protocol: str, nodes: int, **asked: Any) -> gs.Story:
    found = gs.explore(protocol, nodes, **asked)
    assert found.story is not None
    assert found.story.property in str(found)
    return found.story


def test_a_story_says_what_happens_and_what_changes() -> None:
    story = story_of(f"{FILE}:Watch", 2, invariants=["nobody_waits"], in_flight=2)
    assert str(story).splitlines() == [
        "   at first 0, 1 are up: peer [1, 0]; asked [False, False]; late [0, 0]",
        "1  timer ask of 0; asked False -> True; Ping(number=0.5) to 1; "
        "Late(about=1) to itself, later",
        "   nobody_waits does not hold: No node that is up waits for an answer: false as soon as "
        "one asks.",
    ]


def test_what_is_eventual_fails_where_nothing_more_can_bring_it() -> None:
    """With node 0 the rumor is gone, and no timer brings it back."""
    story = story_of(f"{FILE}:Flood", 3, crashes=1, in_flight=2, draws=2)
    assert [step.text for step in story.steps] == ["crash 0"]
    assert story.ending.startswith("from here on all_heard does not hold: Every node")


def test_a_timer_that_was_cancelled_does_not_ring() -> None:
    story = story_of(f"{FILE}:Alarm", 2)
    assert story.property == "all_have_rung"
    texts = [step.text for step in story.steps]
    assert texts == [
        "deliver Stop from 0 to 1; Ring of 1 is gone",
        "time for Ring of 0; rings 0 -> 1",
    ]


CASES: list[tuple[str, int, dict[str, Any]]] = [
    ("Flood", 3, {"crashes": 1, "in_flight": 2, "draws": 2}),
    ("Watch", 3, {"invariants": ["nobody_waits"], "in_flight": 2}),
    ("Alarm", 2, {}),
]


@pytest.mark.parametrize(("name", "nodes", "asked"), CASES)
@pytest.mark.parametrize("debug", [False, True])
def test_a_story_goes_again_as_it_went(
    name: str, nodes: int, asked: dict[str, Any], debug: bool, tmp_path: Path
) -> None:
    story = story_of(f"{FILE}:{name}", nodes, **asked)
    story.save(tmp_path / "story.json")
    again, fails = replay(tmp_path / "story.json", debug=debug)
    assert (str(again), fails) == (str(story), True)


def test_a_story_of_rules_that_are_mended_ends_well_or_is_refused(tmp_path: Path) -> None:
    text = Path(FILE).read_text(encoding="utf-8")
    file = tmp_path / "mended.py"
    file.write_text(text, encoding="utf-8")
    asked: dict[str, Any] = {"invariants": ["nobody_waits"], "in_flight": 2}
    story_of(f"{file}:Watch", 2, **asked).save(tmp_path / "story.json")
    file.write_text(text.replace("self.asked[me] = True", "self.asked[me] = False"))
    again, fails = replay(tmp_path / "story.json")
    assert not fails
    assert "asked" not in again.steps[0].text
    file.write_text(
        text.replace(
            "    ask = gs.Timer(rounds=1)\n\n    @gs.initialiser\n    def first",
            "    @gs.initialiser\n    def first",
        ).replace("on_ask", "ask")
    )
    with pytest.raises(gs.ResultsError, match="has no step 1 of the story any more"):
        replay(tmp_path / "story.json")
    (tmp_path / "story.json").write_text("{}")
    with pytest.raises(gs.ResultsError, match="is no story of an exploration"):
        replay(tmp_path / "story.json")


def test_chord_as_published_loses_who_joins_and_repaired_nobody() -> None:
    """Who joins has one successor, which may have failed (Zave, CCR 2012)."""
    file = ROOT / "examples" / "exploration" / "chord.py"
    story = story_of(f"{file}:Chord", 3, crashes=1, in_flight=2, draws=1)
    assert story.property == "one_ring"
    assert [step.action for step in story.steps] == ["crash", "start", "deliver", "deliver"]
    repaired = gs.explore(f"{file}:Repaired", 4, crashes=1, in_flight=1, draws=1)
    assert (repaired.story, repaired.exhausted) == (None, True)


def test_a_diagram_has_every_node_and_message() -> None:
    story = story_of(f"{FILE}:Alarm", 2)
    figure = story.plot()
    (axes,) = figure.axes
    texts = {text.get_text() for text in axes.texts}
    assert {"Ring", "Stop"} <= texts
    assert [label.get_text() for label in axes.get_yticklabels()] == ["node 0", "node 1"]


# What an exploration refuses, in one sentence.


def test_names_that_there_are_not_are_refused() -> None:
    with pytest.raises(gs.ScenarioError, match="never_oneself"):
        gs.explore(f"{FILE}:Watch", invariants=["never_onself"])
    with pytest.raises(gs.ScenarioError, match="losses is -1, expected a whole number from 0"):
        gs.explore(f"{FILE}:Watch", losses=-1)
    with pytest.raises(gs.ScenarioError, match="nodes is 40, expected 1 to 31"):
        gs.explore(f"{FILE}:Watch", 40)
    with pytest.raises(gs.ScenarioError, match="alike"):
        gs.explore(f"{FILE}:Watch", symmetric=True)
    with pytest.raises(gs.ScenarioError, match="protocol"):
        gs.explore(f"{PROTOCOLS}/errands_nodes.py:Errands")


class Silent(gs.Protocol):
    """A protocol that promises nothing."""

    tick = gs.Timer(rounds=1)

    def on_tick(self, me: int, net: gs.Net) -> None:
        pass


class Assuming(Silent):
    @gs.assumption
    def nobody_fails(self, alive: Any) -> bool:
        return bool(alive.all())


class Sampling(Silent):
    peers = gs.Sampler("newscast", view_size=2)

    @gs.invariant
    def anybody(self, alive: Any) -> bool:
        return bool(alive.any())


def test_what_cannot_be_explored_is_refused() -> None:
    with pytest.raises(gs.ScenarioError, match="none that is declared"):
        gs.explore(Silent)
    with pytest.raises(gs.ScenarioError, match="@assumption above @rule"):
        gs.explore(Assuming)
    with pytest.raises(gs.ScenarioError, match="samplers are not explored"):
        gs.explore(Sampling)
