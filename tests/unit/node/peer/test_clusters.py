"""A peer and its cluster: the schema, reports of members, through whom it joins, how it stands."""

from __future__ import annotations

import logging
import random
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
import trio
import trio.testing
from attrs import define, field

from gossamer.node import errors
from gossamer.node.config.node import Identity, Listen, NodeConfig
from gossamer.node.discovery.sources import MULTICAST, DiscoveredPeer
from gossamer.node.errors import InterfaceError, PeerRevoked
from gossamer.node.monitoring.members import FIGURES, SECTORS, Member, MemberTable, Report
from gossamer.node.monitoring.metrics import TROUBLES, Counters
from gossamer.node.peer.bootstrap import Bootstrap
from gossamer.node.peer.cluster_info import (
    DEFAULT_SCHEMA,
    SCHEMA_LIMIT,
    ClusterInfo,
    cluster_schema,
    parse_schema,
    peer_config,
    read_cluster_info,
    read_schema_file,
    schema_fingerprint,
    write_cluster_info,
)
from gossamer.node.peer.frames.address_book import AddressBook
from gossamer.node.peer.membership import cluster_reports
from gossamer.node.peer.membership.admission import MembershipStatus
from gossamer.node.peer.peer import advertised
from gossamer.node.security.cluster import ClusterFolder
from gossamer.node.transport.base import Address
from gossamer.node.transport.frames import FrameReader
from gossamer.node.transport.limits import Limits
from gossamer.protocol.content.schema import Schema
from support.checkout import ROOT
from support.memory_peers import address_of, memory_peers
from support.transport_peers import on_jumping_clock
from support.waiting import running

# The schema

QUOTES = parse_schema(DEFAULT_SCHEMA, "default")


def config_of(folder: Path, schema: Schema | None = None, plain: bool = False) -> NodeConfig:
    listen = Listen(addresses=("127.0.0.1:0",), plain_text=plain)
    return NodeConfig(identity=Identity(folder=folder), schema=schema, listen=listen)


@pytest.fixture
def kept(tmp_path: Path) -> ClusterInfo:
    cluster_info = ClusterInfo(DEFAULT_SCHEMA, ("10.0.0.1:7710",))
    write_cluster_info(ClusterFolder(tmp_path), cluster_info)
    return cluster_info


def test_a_schema_comes_back_as_it_was_kept(tmp_path: Path, kept: ClusterInfo) -> None:
    file = tmp_path / "schema.toml"
    assert read_cluster_info(ClusterFolder(tmp_path)) == kept
    assert cluster_schema(config_of(tmp_path)) == QUOTES
    assert file.read_text() == DEFAULT_SCHEMA
    assert QUOTES.names == ("symbol", "price", "volume")
    file.write_text(DEFAULT_SCHEMA + "# mine\n")
    assert cluster_schema(config_of(tmp_path)) == QUOTES
    file.unlink()
    assert cluster_schema(config_of(tmp_path)) == QUOTES


@pytest.mark.usefixtures("kept")
def test_another_schema_in_its_file_or_the_configuration_is_refused(tmp_path: Path) -> None:
    assert cluster_schema(config_of(tmp_path, QUOTES)) == QUOTES
    with pytest.raises(errors.ClusterFolderError, match="the configuration"):
        cluster_schema(config_of(tmp_path, Schema(QUOTES.attributes[:2])))
    changed = DEFAULT_SCHEMA.replace("maximum = 100000\n", "maximum = 99\n")
    (tmp_path / "schema.toml").write_text(changed)
    found = schema_fingerprint(parse_schema(changed, "changed"))
    words = rf"schema\.toml describes schema {found}, expected {schema_fingerprint(QUOTES)}, with"
    with pytest.raises(errors.ClusterFolderError, match=words):
        cluster_schema(config_of(tmp_path))


@pytest.mark.usefixtures("kept")
def test_the_folder_of_a_peer_is_all_that_opening_it_takes(tmp_path: Path) -> None:
    config = peer_config(str(tmp_path), ["page.enabled=false"])
    assert config.identity.folder == tmp_path
    assert config.schema == QUOTES
    assert not config.page.enabled
    (tmp_path / "node.toml").write_text(
        f'[identity]\nfolder = "{tmp_path}"\n[node]\nrole = "broker"\n', encoding="utf-8"
    )
    with pytest.raises(errors.ConfigurationError) as caught:
        peer_config(tmp_path)
    sentence = "node.role is 'broker', expected 'peer', as this opens no broker"
    assert str(caught.value) == f"{tmp_path / 'node.toml'}: {sentence}"


def test_the_configuration_has_the_schema_and_notes_are_checked(tmp_path: Path) -> None:
    assert cluster_schema(config_of(tmp_path, QUOTES, plain=True)) == QUOTES
    with pytest.raises(errors.ClusterFolderError, match=r"cluster\.json"):
        cluster_schema(config_of(tmp_path, plain=True))
    for content in ("", "{}", "[]", '{"schema": 1, "peers": []}', '{"schema": "", "peers": [1]}'):
        (tmp_path / "cluster.json").write_text(content)
        with pytest.raises(errors.ClusterFolderError, match=r"cluster\.json"):
            read_cluster_info(ClusterFolder(tmp_path))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = ", "no TOML"),
        ("", "tables \\[attributes.NAME\\]"),
        ("[attributes.a]\ntype = 'string'\n[more]\n", "and nothing else"),
        ("[attributes.a]\ntype = 'colour'\n", r"attributes\.a\.type is 'colour'"),
        ("[attributes.a]\ntype = 'integer'\nminimum = 3\nmaximum = 2\n", r"a\.maximum is 2"),
        ("#" * (SCHEMA_LIMIT + 1), "longer than that"),
        (b"\xff\xfe", "not UTF-8 but UTF-16, expected text in UTF-8"),
        (b"# \xe9", "not UTF-8 at byte 3, expected text in UTF-8"),
        (None, "unreadable"),
    ],
)
def test_files_of_no_schema_are_named(tmp_path: Path, text: str | bytes | None, words: str) -> None:
    path = tmp_path / "mine.toml"
    if text is not None:
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(errors.ConfigurationError, match=words) as caught:
        read_schema_file(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_a_schema_file_may_have_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("\ufeff[attributes.a]\ntype = 'string'\n", encoding="utf-8")
    assert read_schema_file(path).startswith("[attributes.a]")


def test_equal_schemas_have_equal_fingerprints() -> None:
    tables = QUOTES.to_mapping().items()
    again = Schema.from_mapping({name: dict(reversed(table.items())) for name, table in tables})
    assert schema_fingerprint(again) == schema_fingerprint(QUOTES)
    other_order = Schema(tuple(reversed(QUOTES.attributes)))
    assert schema_fingerprint(other_order) != schema_fingerprint(QUOTES)


# Reports are asked for while somebody looks, and answered now and then only

OWN = Report(figures=dict.fromkeys(FIGURES, 1.0), wanted=[0] * SECTORS)


@define
class FakePool:
    """Connections to some peers, by their keys, and those to whom there could be one."""

    connected: set[int]
    reachable: set[int] = field(factory=set)
    sent: list[tuple[int, dict[str, Any]]] = field(factory=list)
    dialled: list[int] = field(factory=list)

    def __iter__(self) -> Any:
        identities = [SimpleNamespace(key=key) for key in sorted(self.connected)]
        return iter([SimpleNamespace(identity=identity) for identity in identities])

    def try_send(self, key: int, frame: bytes) -> bool:
        if key not in self.connected:
            return False
        reader = FrameReader(Limits(), 1 << 20)
        reader.feed(frame)
        (read,) = reader
        self.sent.append((key, read))
        return True

    async def connect(self, key: int) -> None:
        await trio.lowlevel.checkpoint()
        self.dialled.append(key)
        if key not in self.reachable:
            raise errors.PeerUnreachable(key, [("127.0.0.1:1", "nobody listens")])
        self.connected.add(key)


@asynccontextmanager
async def running_with(pool: FakePool, known: int) -> AsyncIterator[cluster_reports.ClusterReports]:
    """The service of peer 0, which has met so many others."""
    members = MemberTable(Member(0, "own"), Counters(), lambda: 1000.0)
    for key in range(1, known + 1):
        members.connected(key, f"peer{key}", ("127.0.0.1:1",), "0.1.0", None)
    reports = cluster_reports.ClusterReports(members, pool, lambda: OWN)  # type: ignore[arg-type]
    async with running(reports.run):
        yield reports


def answer(number: int, **figures: float) -> dict[str, Any]:
    report = {"figures": figures, "wanted": [1] * SECTORS, "troubles": []}
    return {"type": "report", "number": number, **report}


async def looked(reports: cluster_reports.ClusterReports, nursery: trio.Nursery) -> list[Any]:
    found: list[Any] = []

    async def look() -> None:
        found.append(await reports.fresh_view())

    nursery.start_soon(look)
    await trio.testing.wait_all_tasks_blocked()
    return found


async def test_those_who_answer_are_in_the_view(nursery: trio.Nursery) -> None:
    pool = FakePool({1, 2})
    async with running_with(pool, known=2) as reports:
        found = await looked(reports, nursery)
        number = pool.sent[0][1]["number"]
        reports.receive(1, answer(number, delivered=7.0, unknown=3.0))
        reports.receive(9, answer(number))  # nobody asked it
        reports.receive(2, answer(number + 1))  # for another question
        await trio.sleep(cluster_reports.ANSWER_S + 1)
        (view,) = found
        assert (view["known"], view["asked"], view["answered"]) == (3, 3, 2)
        assert view["wanted"] == [1] * SECTORS
        by_key = {one["key"]: one["report"] for one in view["members"]}
        assert by_key[f"{1:016x}"]["delivered"] == 7.0
        assert by_key[f"{2:016x}"] is None
        await trio.sleep(cluster_reports.STALE_S + 1)
        assert reports.view()["answered"] == 1, "what was said long ago does not count"


async def test_nobody_is_asked_while_nobody_looks_and_answered_now_and_then() -> None:
    pool = FakePool({1, 2})
    async with running_with(pool, known=2) as reports:
        await trio.sleep(60)
        assert pool.sent == []
        for _ in range(100):
            reports.view()
            await trio.sleep(0.1)
        assert sum(key == 1 for key, _ in pool.sent) <= 6, "ten seconds of looking"
        pool.sent.clear()
        for number in range(1000):
            reports.receive(1, {"type": "report wanted", "number": number})
            await trio.sleep(0.001)
        reports.receive(2, {"type": "report wanted", "number": 5})
    said = [(key, sent) for key, sent in pool.sent if sent["type"] == "report"]
    assert [key for key, _ in said] in ([1, 2], [1, 1, 2])
    assert said[-1][1]["number"] == 5
    assert len(said[-1][1]["wanted"]) == SECTORS


async def test_a_bounded_number_of_others_is_connected_to(nursery: trio.Nursery) -> None:
    pool = FakePool({1}, reachable={2})
    async with running_with(pool, known=300) as reports:
        found = await looked(reports, nursery)
        await trio.sleep(cluster_reports.ANSWER_S + 1)
        assert len(pool.dialled) == cluster_reports.MOST_DIALLED
        assert {key for key, _ in pool.sent} == {1, 2}
        assert (found[0]["known"], found[0]["asked"]) == (301, 3)


@pytest.mark.parametrize("forgotten", [True, False])
async def test_members_that_leave_are_not_awaited(nursery: trio.Nursery, forgotten: bool) -> None:
    pool = FakePool({1})
    async with running_with(pool, known=1) as reports:
        found = await looked(reports, nursery)
        if forgotten:
            reports.forget(1)
        await trio.testing.wait_all_tasks_blocked()
        assert bool(found) == forgotten


# Joining and standing


@on_jumping_clock
async def test_troubles_are_told_when_they_come_each_minute_and_at_their_end(
    caplog: pytest.LogCaptureFixture, nursery: trio.Nursery
) -> None:
    caplog.set_level(logging.INFO)
    alone = False
    standing = MembershipStatus(reaches_nobody=lambda: alone)
    nursery.start_soon(standing.tell)
    await trio.sleep(600)
    assert caplog.messages == []
    alone = True
    await trio.sleep(10)
    assert caplog.messages == ["trouble"]
    await trio.sleep(180)
    assert len(caplog.messages) == 4
    alone = False
    await trio.sleep(10)
    assert caplog.messages[4:] == ["trouble is over"]
    nursery.cancel_scope.cancel()


def test_every_kind_of_trouble_has_a_rule_that_warns_of_it() -> None:
    rules = (ROOT / "deploy" / "alerts.yaml").read_text(encoding="utf-8")
    assert re.findall(r'expr: gossamer_trouble\{kind="(\w+)"\} == 1', rules) == list(TROUBLES)
    assert rules.count("- alert: ") == rules.count("severity: ") == len(TROUBLES)
    standing = MembershipStatus(key=1)
    assert standing.counts() == dict.fromkeys(TROUBLES, 0)
    standing.ask("disk", lambda: "")
    standing.ask("disk", lambda: "the disk is full")
    assert standing.counts() == {**dict.fromkeys(TROUBLES, 0), "disk": 1}
    assert standing.troubles() == ("the disk is full",)
    standing.revoked = True
    assert standing.troubles() == (str(PeerRevoked(1)), "the disk is full"), "the worst first"


@on_jumping_clock
async def test_a_peer_whose_address_is_gone_says_so_until_it_is_back(tmp_path: Path) -> None:
    async with memory_peers(tmp_path, 1) as crowd:
        peer = crowd.peers[1]
        crowd.lost = InterfaceError("192.0.2.7")
        await trio.sleep(10)
        assert peer.standing.by_kind() == {"address": str(crowd.lost)}
        assert str(address_of(1)) in map(str, peer.addresses)
        crowd.lost = None
        await trio.sleep(10)
        assert peer.standing.by_kind() == {}


def test_an_address_that_no_interface_has_is_named() -> None:
    loopback = Address("127.0.0.1", 1)
    assert list(advertised(NodeConfig(), [loopback])) == [loopback]
    with pytest.raises(InterfaceError, match=r"does not have the address '192\.0\.2\.7' any more"):
        advertised(NodeConfig(), [loopback, Address("192.0.2.7", 1)])


def test_news_of_a_known_peer_is_tried_first_and_at_once() -> None:
    book, tried = AddressBook(500, 16, map(float, count()).__next__), list[int]()
    asks: dict[str, Any] = {"draws": random.Random(1), "round_s": 1.0}
    bootstrap = Bootstrap(Mock(), book, Mock(try_anew=tried.append), Mock(), **asks)
    old, new = ("10.0.0.7", 7710), ("10.0.1.7", 7710)
    for addresses in ((old,), (old,), (new, old), (new,)):
        bootstrap.add(DiscoveredPeer(7, addresses, MULTICAST))
    assert book.addresses_of(7) == (Address(*new), Address(*old))
    assert tried == [7, 7], "once for each that is new"
