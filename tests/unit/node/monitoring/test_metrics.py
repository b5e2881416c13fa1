"""Metrics: documented names, counted cheaply, read back by Prometheus' own parser."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.parser import text_string_to_metric_families

from gossamer.node.monitoring import metrics

GAUGES = metrics.Gauges(
    links=dict.fromkeys(metrics.LINKS, 2),
    connections=3,
    known_peers=40,
    subscriptions=5,
    routing_entries=6,
    clients=1,
    queued_bytes=700,
    queued_frames=7,
    overloading=1,
    stored_events=8,
    load=1.5,
    position=0.25,
)


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
    counters.refuse("revoked")
    counters.close("stalled")
    found = families(counters)
    assert value(found["gossamer_frames_sent"], "_total") == 12
    assert value(found["gossamer_dropped"], "_total", cause="flood") == 1
    assert value(found["gossamer_dropped"], "_total", cause="forged") == 0
    assert value(found["gossamer_peers_refused"], "_total", cause="revoked") == 1
    assert value(found["gossamer_connections_closed"], "_total", cause="stalled") == 1
    assert value(found["gossamer_links"], type="small-world") == 2
    assert value(found["gossamer_load"]) == 1.5

    for count in (counters.drop, counters.refuse, counters.close):
        with pytest.raises(KeyError):
            count("made up")
    assert families(counters) == found, "a cause that nobody documented is a defect"


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
