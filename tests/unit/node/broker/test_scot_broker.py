"""Parts of a node that is a broker of a SCOT: options and the journal."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.command.main import main
from gossamer.node.broker.engine.journal import Entry, StoredJournal, recall
from gossamer.node.broker.families.scot.host import ScotHost
from gossamer.node.broker.node import family_of
from gossamer.node.cli.starting import read_plain_run
from gossamer.node.config.file import load_config, parse_setting
from gossamer.node.errors import ConfigurationError
from gossamer.node.store.writer import open_writer
from gossamer.protocol.brokers import scot
from gossamer.protocol.brokers.core.identifiers import Id, client, neighbour
from gossamer.protocol.brokers.core.messages import Attach, Subscribe
from gossamer.protocol.brokers.scot.memory import messages as m
from gossamer.protocol.content.filters import parse
from gossamer.protocol.kernel.errors import ConfigError
from support.installed_command import install, refused
from support.plain_index import PlainIndex

SCOT = scot.Scot(scot.Factor.path("ab"), scot.Factor.complete(2))
HERE = SCOT.position(scot.BrokerLabel("a", 0))
SETTINGS = scot.ScotSettings(around_failures=True, take_over=True)
ADA = client("ada")
RUN = ("--role", "broker", "--overlay", "scot", "--clusters", "3")
TREE = ("--edge", "a-b", "--edge", "b-c")


# Options


def configured(*options: str) -> ScotHost:
    _, changes = read_plain_run(["run", "x", *RUN, *options]) or ([], [])
    config = load_config(None, flags=dict(map(parse_setting, changes)), environment={}).config
    found = family_of(config)
    assert isinstance(found, ScotHost)
    return found


def test_options_say_where_a_broker_is_and_what_goes_beyond_the_paper() -> None:
    kind = configured(*TREE, "--region", "b", "--cluster=2", "--set", "scot.routing=static")
    larger = scot.Scot(scot.Factor.path("abc"), scot.Factor.complete(3))
    assert kind.position == larger.position(scot.BrokerLabel("b", 2))
    assert kind.of == scot.ScotSettings(routing="static")
    assert kind.overlay == "3 clusters of a-b b-c, static or dynamic routing"
    # Overlays are the same however their edges are written.
    other = configured("--edge", "c-b", "--edge", "b-a", "--region", "a")
    assert other.overlay == configured(*TREE, "--region", "c", "--cluster", "1").overlay
    names = ("input_queues", "own_threshold", "around_failures", "take_over", "covering")
    chosen = [word for name in names for word in ("--set", f"scot.{name}=true")]
    kind = configured(*TREE, "--region", "b", *chosen)
    assert kind.of == scot.ScotSettings(**dict.fromkeys(names, True))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ("scot.routing=static", True),
        ("scot.around_failures=true", True),
        ("scot.routing=bid", False),
        ("scot.clusters=4", False),
    ],
)
def test_only_what_brokers_have_to_agree_on_makes_another_overlay(change: str, same: bool) -> None:
    here = (*TREE, "--region", "a")
    assert (configured(*here).overlay == configured(*here, "--set", change).overlay) is same


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((*TREE,), "scot.region is '', expected the region of this broker, one of a, b, c"),
        ((*TREE, "--region", "d"), "region of B(d,0) is 'd', expected one of a, b, c"),
        ((*TREE, "--region", "a", "--cluster", "3"), "is 3, expected a number from 0 to 2"),
        ((*TREE, "--edge", "a-c", "--region", "a"), "this edge closes a cycle"),
        (("--edge", "a-b", "--edge", "c-d", "--region", "a"), "no path leads there from 'a'"),
        (("--edge", "ab", "--region", "a"), "scot.edges is 'ab', expected two regions such as"),
        (("--region", "a", "--set", "scot.routing=fast"), "expected one of bid, static, dynamic"),
        (("--region", "a", "--set", "scot.take_over=true"), "around_failures with static or dyn"),
        (("--region", "a", "--set", "scot.threshold=-1"), "expected a number of at least 0"),
        (("--region", "a", "--set", "scot.window_s=0"), "expected a number of seconds"),
    ],
)
def test_what_has_no_place_is_said_in_a_sentence(options: tuple[str, ...], words: str) -> None:
    with pytest.raises((ConfigError, ConfigurationError)) as caught:
        configured(*options)
    assert words in str(caught.value)


def test_the_command_ends_with_that_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(tmp_path / "installed", monkeypatch)
    monkeypatch.chdir(tmp_path)
    assert main(["node", "init", "demo", "--peers", "1"]) == 0
    capsys.readouterr()
    told = refused(capsys, "node", "run", "demo", *RUN, *TREE, "--region", "a", "--cluster", "7")
    assert "cluster of B(a,7) is 7, expected a number from 0 to 2" in told


# The journal


@pytest.mark.trio
async def test_a_broker_is_recalled_with_its_tables(tmp_path: Path) -> None:
    kind = ScotHost(HERE, SETTINGS, "words")
    async with open_writer(tmp_path / "state.db") as writer:

        async def recalled(one: ScotHost) -> scot.ScotBroker:
            found = await recall(
                writer, "B", one, now=5, incarnation=7, new_index=PlainIndex, large_index=PlainIndex
            )
            assert isinstance(found.broker, scot.ScotBroker)
            return found.broker

        broker, journal = await recalled(kind), StoredJournal(writer, kind)
        await journal.dump(broker, 0)
        promised = m.Promised("bob", "s", Id("C", 1), parse("x > 1"))
        entries = [
            Entry(1, None, scot.NeighbourUp("C", scot.BrokerLabel("a", 1), synchronise=True)),
            Entry(2, ADA, Attach()),
            Entry(3, ADA, Subscribe("s", parse("present(x)"))),
            Entry(4, neighbour("C"), m.Numbered(9, promised)),
        ]
        for entry in entries:
            broker.handle(entry.now, entry.source, entry.message)
        await journal.keep(entries, [])
        again = await recalled(kind)
        assert again.dump() == broker.dump()
        assert [one.client for one in kind.clients(again)] == ["ada"]
        assert again.next_id == Id("B", (7 << 32) + 2)
        until_off = "take_over is False, expected True until covering is off"
        for changed, words in (
            (scot.ScotSettings(covering=True), until_off),
            (scot.ScotSettings(routing="bid"), "routing is 'bid', expected 'dynamic'"),
        ):
            with pytest.raises(ConfigurationError, match=words):
                await recalled(ScotHost(HERE, changed, "words"))
