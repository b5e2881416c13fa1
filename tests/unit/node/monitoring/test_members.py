"""Members of a cluster, the view of all that a node shows, and its metrics."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import attrs
import pytest
import trio
import trio.testing
from attrs import define, field
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console

from gossamer.node.commands.cluster.listing import short_text, span_text
from gossamer.node.commands.cluster.watching import cluster_picture
from gossamer.node.monitoring import members, metrics
from gossamer.node.monitoring.members import FIGURES, LISTED, SECTORS, cluster_view
from gossamer.node.monitoring.metrics import Counters
from support.clusters import member, report, view


@define
class Cluster:
    heard: dict[int, float] = field(factory=dict)
    revoked: set[int] = field(factory=set)
    counters: Counters = field(factory=Counters)
    table: members.MemberTable = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.table = members.MemberTable(
            members.Member(1, "desk", version="9"),
            self.counters,
            lambda: 1000.0 + trio.current_time(),
            self.heard.get,
            lambda: self.revoked,
        )

    def up(self, key: int = 2) -> None:
        self.table.connected(key, "kitchen", ("host:7710",), "9", 5000.0)

    def down(self, key: int = 2, *, left: bool = False, broken: bool = False) -> None:
        self.table.disconnected(key, left=left, broken=broken, cause="why")

    def state(self, key: int = 2) -> str:
        found = {one["key"]: one["state"] for one in self.table.to_json()["members"]}
        return str(found[f"{key:016x}"])

    def changes(self) -> list[str]:
        return [one["change"] for one in self.table.to_json()["changes"]]


@pytest.fixture
async def cluster() -> Cluster:
    return Cluster()


async def test_members_come_and_go(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    cluster.up()
    cluster.down()  # an idle connection that was closed in order
    assert cluster.state() == "alive"
    cluster.up()
    cluster.down(left=True)
    assert cluster.state() == "gone"
    cluster.up()
    assert cluster.changes() == ["joined", "left", "returned"]
    said = ["a member has joined", "a member has left", "a member has returned"]
    assert caplog.messages == said
    assert cluster.counters.member_changes["joined"] == 1
    own, other = cluster.table.to_json()["members"]
    assert (own["name"], own["state"], own["version"]) == ("desk", "alive", "9")
    assert other["addresses"] == ["host:7710"]
    assert other["certificate_expires"] == 5000.0


async def test_a_broken_connection_makes_suspect_and_then_gone(cluster: Cluster) -> None:
    cluster.up()
    cluster.down(broken=True)
    assert cluster.state() == "suspect"
    cluster.up()
    assert cluster.state() == "alive"
    assert cluster.changes() == ["joined"]
    cluster.down(broken=True)
    await trio.sleep(members.SUSPECT_S / 2)
    assert cluster.state() == "suspect"
    await trio.sleep(members.SUSPECT_S)
    assert cluster.state() == "gone"
    assert cluster.changes() == ["joined", "failed"]
    assert cluster.table.counts() == {"alive": 1, "suspect": 0, "gone": 1, "revoked": 0}
    for key in (2, 3, 4):
        cluster.up(key)
        cluster.down(key, broken=True)
    await trio.sleep(2 * members.SUSPECT_S)
    assert [cluster.state(key) for key in (2, 3, 4)] == ["gone"] * 3
    changes = ["joined", "failed", "returned", "joined", "joined", *["failed"] * 3]
    assert cluster.changes() == changes


async def test_who_is_unreachable_has_failed_and_silence_makes_suspect(cluster: Cluster) -> None:
    cluster.up()
    cluster.table.unreachable(2, "nobody answers")
    assert cluster.state() == "alive"  # it is connected
    cluster.down(broken=True)
    cluster.table.unreachable(2, "nobody answers")
    assert cluster.state() == "gone"
    assert cluster.table.recent()[-1]["cause"] == "nobody answers"
    cluster.up(3)
    cluster.heard[3] = members.QUIET_S + 1
    assert cluster.state(3) == "alive"
    cluster.down(3)
    assert cluster.state(3) == "suspect"


async def test_the_revoked_stay_revoked_and_need_not_have_been_met(cluster: Cluster) -> None:
    cluster.up()
    cluster.revoked |= {2, 3}
    assert [cluster.state(2), cluster.state(3)] == ["revoked", "revoked"]
    cluster.down(left=True)
    assert cluster.state() == "revoked"
    assert cluster.changes() == ["joined", "revoked", "revoked"]


async def test_the_table_is_bounded(cluster: Cluster) -> None:
    for key in range(2, members.MAX_MEMBERS + 12):
        cluster.up(key)
        cluster.down(key, left=True)
    said = cluster.table.to_json()
    assert len(said["members"]) == members.MAX_MEMBERS + 1
    assert said["changes"][-1]["number"] == 2 * (members.MAX_MEMBERS + 10)


# The view


def drawn(view: dict[str, Any]) -> str:
    console = Console(width=80, force_terminal=False)
    with console.capture() as said:
        console.print(cluster_picture(view))
    return said.get()


def test_who_did_not_answer_is_counted_and_listed_last() -> None:
    members = [member(0), member(1), member(2, "gone"), member(3, "suspect"), member(4)]
    told = {one["key"]: report(wanted=2) for one in (members[0], members[4])}
    view = cluster_view(members, told, asked=3)
    assert (view["known"], view["asked"], view["answered"]) == (4, 4, 2)
    assert view["states"] == {"alive": 3, "gone": 1, "suspect": 1}
    assert view["wanted"] == [4] * SECTORS
    assert [one["name"] for one in view["members"]][:3] == ["peer0", "peer4", "peer1"]
    said = drawn(view)
    assert "2 of 4 members answered (4 were asked)" in said
    assert said.count("no answer") == 1, "of one that is suspect or gone none is expected"


def test_who_is_overloaded_is_named() -> None:
    here, there = (member(0), member(1))
    for figure, value, words in (
        ("overloading", 1.0, "a flood of events"),
        ("late_rounds", 0.5, "late rounds"),
        ("queued_bytes", 4e6, "long queues"),
    ):
        figures: dict[str, Any] = {figure: value}
        told = {here["key"]: report(), there["key"]: report(**figures)}
        seen = cluster_view([here, there], told, asked=1)
        assert seen["overloaded"] == ["peer1"]
        assert "overloaded: peer1" in drawn(seen)
        assert words in drawn(seen)


def test_a_view_is_bounded_and_of_eighty_columns_one_for_versions_if_there_are_several() -> None:
    members = [member(0), member(1, version="0.2.0")]
    told = {one["key"]: report() for one in members}
    assert "0.2.0" in drawn(cluster_view(members, told, 1)).splitlines()[-1]
    assert "0.1.0" not in drawn(view(2, answered=2)).splitlines()[-1]
    figures = dict.fromkeys(FIGURES, 123_456.0)
    figures |= {"position": 0.99, "late_rounds": 0.0, "overloading": 0.0}
    members = [member(number) for number in range(40)]
    told = {one["key"]: report(wanted=9, **figures) for one in members}
    said = drawn(cluster_view(members, told, 39))
    assert "\u2026" not in said
    assert "+" in said, "forty members at one place of the ring"
    seen = view(1000, answered=1000)
    assert len(seen["members"]) == LISTED
    assert seen["known"] == seen["answered"] == 1000
    assert "and 216 more" in drawn(seen)


def test_numbers_are_short() -> None:
    short = [short_text(one) for one in (0, 0.148, 999, 12_700, 4e6)]
    assert short == ["0", "0.148", "999", "12.7k", "4M"]
    assert [span_text(one) for one in (7, 150, 8000, 200_000)] == ["7 s", "2 min", "2 h", "2 d"]


NUMBERS: dict[str, float] = {"connections": 3, "known_peers": 40, "subscriptions": 5}
NUMBERS |= {"routing_entries": 6, "clients": 1, "queued_bytes": 700, "queued_frames": 7}
NUMBERS |= {"overloading": 1, "stored_events": 8, "load": 1.5, "position": 0.25}
GAUGES = metrics.Gauges(links=dict.fromkeys(metrics.LINKS, 2), **NUMBERS)  # type: ignore[arg-type]


def families(counters: metrics.Counters, gauges: metrics.Gauges = GAUGES) -> dict[str, Family]:
    text = metrics.metrics_text(counters, gauges, "0.1.0").decode()
    return {family.name: family for family in text_string_to_metric_families(text)}


def value(family: Family, suffix: str = "", **labels: str) -> float:
    asked = (family.name + suffix, labels)
    (sample,) = [one for one in family.samples if (one.name, one.labels) == asked]
    return float(sample.value)


def test_every_documented_metric_is_there_with_its_help_and_nothing_else_of_ours() -> None:
    found = families(metrics.Counters(), attrs.evolve(GAUGES, certificate_expires_s=2e9))
    for metric in metrics.METRICS:
        family = found[f"gossamer_{metric.name}"]
        assert family.documentation == metric.help
        assert family.type == metric.kind
    ours = {name for name in found if name.startswith("gossamer_")}
    named = {f"gossamer_{metric.name}" for metric in metrics.METRICS}
    assert ours == named | {"gossamer_build_info"}
    assert value(found["gossamer_build_info"], version="0.1.0") == 1
    assert any(name.startswith("process_") for name in found)
    kinds = (metrics.Counters, metrics.Gauges)
    fields = {field.name for kind in kinds for field in attrs.fields(kind)}
    assert fields == {metric.field for metric in metrics.METRICS}
    assert len(named) == len(metrics.METRICS)
    without = families(metrics.Counters())
    assert "gossamer_certificate_expiry_timestamp_seconds" not in without, "it has no value"


def test_what_was_counted_is_told_and_nothing_of_other_causes() -> None:
    counters = metrics.Counters()
    counters.frames_sent += 12
    counters.drop("flood")
    counters.repeat("duplicate")
    counters.refuse("revoked")
    counters.close("stalled")
    found = families(counters)
    assert value(found["gossamer_frames_sent"], "_total") == 12
    for name, cause, count in (
        ("dropped", "flood", 1),
        ("dropped", "forged", 0),
        ("redundant", "duplicate", 1),
        ("peers_refused", "revoked", 1),
        ("connections_closed", "stalled", 1),
    ):
        assert value(found[f"gossamer_{name}"], "_total", cause=cause) == count
    assert value(found["gossamer_links"], type="small-world") == 2
    assert value(found["gossamer_load"]) == 1.5
    for add in (counters.drop, counters.repeat, counters.refuse, counters.close):
        with pytest.raises(KeyError):
            add("made up")
    assert counters.dropped == dict.fromkeys(metrics.DROP_CAUSES, 0) | {"flood": 1}
    assert sum((counters.refused | counters.closed).values()) == 2, "a defect counts nothing"


def test_latencies_fall_into_the_bucket_of_the_next_bound() -> None:
    counters = metrics.Counters()
    for latency in (-3.0, 0.0005, 0.001, 0.0011, 1e9):
        counters.delivery_latency.observe(latency)
    family = families(counters)["gossamer_delivery_latency_seconds"]
    assert value(family, "_bucket", le="0.001") == 3
    assert value(family, "_bucket", le="0.002") == 4
    assert value(family, "_bucket", le="60.0") == 4
    assert value(family, "_bucket", le="+Inf") == value(family, "_count") == 5


@given(st.lists(st.floats(0, 100, allow_subnormal=False)))
def test_buckets_are_cumulative_and_exact(latencies: list[float]) -> None:
    histogram = metrics.Histogram()
    for latency in latencies:
        histogram.observe(latency)
    buckets = histogram.buckets()
    assert all(low[1] <= high[1] for low, high in pairwise(buckets))
    for (_, count), bound in zip(buckets, metrics.LATENCY_BOUNDS_S, strict=False):
        assert count == sum(latency <= bound for latency in latencies)
    assert buckets[-1] == ("+Inf", len(latencies))
    assert histogram.total == pytest.approx(sum(latencies))


def test_rates_are_per_second_of_the_given_clock() -> None:
    times: Iterator[float] = iter([10.0, 12.0, 12.0, 13.0])
    meter = metrics.RateMeter(lambda: next(times))
    assert [meter.rate(count) for count in (6, 9, 9)] == [3.0, 3.0, 3.0]
