"""A fourth family of brokers, plugged into the core outside the package, as a study of its own."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import cbor2
import pyarrow.parquet as pq
import pytest

from gossamer.command.main import main
from gossamer.protocol.brokers.core.effects import Deliver, Refuse, Send
from gossamer.protocol.brokers.core.errors import (
    DumpError,
    LabelTakenError,
    MalformedMessageError,
    MisplacedMessageError,
    UnknownNeighbourError,
)
from gossamer.protocol.brokers.core.identifiers import Id, client, neighbour
from gossamer.protocol.brokers.core.messages import (
    Attach,
    Move,
    NeighbourUp,
    Publish,
    Restarted,
    Subscribe,
)
from gossamer.protocol.content.filters import parse
from gossamer.sim.results.results import read_results
from gossamer.sim.study.registry import NAMED
from gossamer.spark.sweep.plan import read_sweep
from support.flooding import Flooded, Flooding, FloodingBroker
from support.installed_command import install
from support.spark_processes import run_spark_command

STUDY = "support.flooding_study:FLOODS"
SCENARIO = 'kind = "flooding"\nname = "flood"\nseed = 3\nbrokers = 6\n'
SWEEP = 'scenario = "s.toml"\nseeds = [1, 2]\n[grid]\nbrokers = [3, 6]\n'
TESTS = str(Path(__file__).parents[1])
ADA = client("ada")


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a scenario and a sweep, and the study named."""
    install(tmp_path / "site", monkeypatch)
    monkeypatch.setenv(NAMED, STUDY)
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "s.toml").write_text(SCENARIO)
    (folder / "sweep.toml").write_text(SWEEP)
    return folder


def sim(line: str) -> int:
    """The exit code of `gossamer sim` with the arguments in ``line``."""
    return main(["sim", *line.split()])


def test_a_run_leaves_results_and_a_report(work: Path) -> None:
    assert sim("run s.toml --out out") == 0
    found = read_results(work / "out")
    line, star = (found.summary["systems"][name] for name in ("line", "star"))
    # Each of 20 publications crosses each of five links once, on either overlay.
    assert (line["messages"], star["messages"]) == (100, 100)
    assert line["deliveries"] == star["deliveries"] > 0
    assert found.table("line", "floods")["hops"].max() == 5
    assert found.table("star", "floods")["hops"].max() == 1
    page = (work / "out" / "report.html").read_text()
    assert "6 flooding brokers, seed 3" in page
    assert "Sent between brokers." in page


@pytest.mark.usefixtures("work")
def test_runs_are_checked_and_compared(capsys: pytest.CaptureFixture[str]) -> None:
    assert sim("check s.toml --set brokers=1") == 2
    assert "brokers is 1" in capsys.readouterr().err
    assert sim("run s.toml --out a --no-plots") == 0
    assert sim("run s.toml --out b --no-plots --set brokers=9") == 0
    capsys.readouterr()
    assert sim("compare a b") == 0
    assert "messages" in capsys.readouterr().out


def test_it_is_swept(work: Path) -> None:
    plan = read_sweep(work / "sweep.toml")
    assert [point.memory_bytes for point in plan.points] == [6_000, 6_000, 12_000, 12_000]


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("pyspark") is None, reason="needs Spark")
def test_a_sweep_runs_and_is_crunched(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", TESTS)
    done = run_spark_command("sweep", "sweep.toml", "--out", "swept")
    assert done.returncode == 0, done.stderr
    rows = pq.read_table(work / "swept" / "points.parquet").to_pylist()
    assert [row["messages"] for row in rows if row["system"] == "star"] == [40, 40, 100, 100]
    done = run_spark_command("crunch", "swept", "--out", "crunched")
    assert done.returncode == 0, done.stderr
    assert "deliveries" in (work / "crunched" / "report.html").read_text()


# What the core does for it


def broker() -> FloodingBroker:
    """One with a neighbour and a client."""
    made = FloodingBroker("B")
    assert made.handle(0, None, NeighbourUp("C")) == []
    assert made.handle(0, ADA, Attach((("low", parse("number < 5")),))) == []
    return made


def test_clients_are_served() -> None:
    made = broker()
    delivered, sent = made.handle(1, ADA, Publish({"number": 3}))
    assert delivered == Deliver("ada", Flooded(Id("B", 1), {"number": 3}), ("low",))
    assert sent == Send("C", Flooded(Id("B", 1), {"number": 3}))
    (moved,) = made.handle(2, ADA, Move())
    assert moved.subscriptions == (("low", parse("number < 5")),)  # type: ignore[union-attr]
    (sent,) = made.handle(3, neighbour("C"), Flooded(Id("C", 1), {"number": 3})) or [None]
    assert sent is None
    assert made.counters.received == {"Flooded": 1}


@pytest.mark.parametrize(
    ("source", "message", "error"),
    [
        (ADA, Subscribe("low", parse("number > 5")), LabelTakenError),
        (ADA, Flooded(Id("B", 1), {}), MisplacedMessageError),
        (None, Publish({"number": 3}), MisplacedMessageError),
        (neighbour("D"), Flooded(Id("D", 1), {}), UnknownNeighbourError),
        (neighbour("C"), Flooded(Id("C", 1), {5: 1}), MalformedMessageError),  # type: ignore[dict-item]
        (ADA, Subscribe("", parse("number > 5")), MalformedMessageError),
    ],
)
def test_what_cannot_be_is_refused(source: object, message: object, error: type) -> None:
    made = broker()
    before = made.dump()
    (effect,) = made.handle(1, source, message)  # type: ignore[arg-type]
    assert isinstance(effect, Refuse)
    assert isinstance(effect.error, error)
    assert made.counters.refused == 1
    made.counters.refused = 0
    assert made.dump() == before


def test_a_loaded_broker_goes_on_as_the_one_that_was_dumped() -> None:
    made = broker()
    again = FloodingBroker.load(cbor2.loads(cbor2.dumps(made.dump())))
    for one in (made, again):
        one.handle(1, None, Restarted())
        one.handle(2, None, NeighbourUp("C"))
    publish = Publish({"number": 3})
    assert again.handle(3, ADA, publish) == made.handle(3, ADA, publish)
    assert again.dump() == made.dump()


@pytest.mark.parametrize(
    "change",
    [
        {"format": 1},
        {"name": 5},
        {"next_number": -1},
        {"next_number": "many"},
        {"clients": [["ada"]]},
        {"clients": [["ada", {"low": "number <"}, {}]]},
        {"clients": [["ada", [], {}]]},
        {"timers": [[1]]},
        {"counters": {"unknown": 1}},
        {"neighbours": 5},
    ],
)
def test_what_is_no_dump_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(DumpError):
        FloodingBroker.load({**broker().dump(), **change})


def test_messages_travel_as_plain_data() -> None:
    message = Flooded(Id("B", 1), {"number": 3}, 2)
    data = Flooding.codec.plain_between(message)
    assert json.loads(json.dumps(data)) == ["flooded", ["B", 1], {"number": 3}, 2]
    assert Flooding.codec.read_between(data) == message
