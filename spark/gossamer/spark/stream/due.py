"""Which deliveries are due, and windows of time: what was due and delivered in each.

An event is due at a subscriber whose expression it matches, if it was published after the
subscriber had begun. Matching is the protocol's own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
import pyarrow as pa

from gossamer.protocol.content.filters import parse
from gossamer.protocol.content.filters.expressions import parse_expression
from gossamer.protocol.content.schema import Schema
from gossamer.protocol.content.values import read_json, values_of_json
from gossamer.protocol.kernel.errors import ProtocolError
from gossamer.sim.errors import ResultsError
from gossamer.sim.results.storage.place import Place

SUBSCRIPTION_FILE: Final = "subscription.json"
DUE_COLUMNS: Final = "id string, subscriber string, published_at double"
_FIELDS: Final = (("subscriber", str), ("expression", str), ("since", float | int))
_DUE: Final = pa.schema(
    [("id", pa.string()), ("subscriber", pa.string()), ("published_at", pa.float64())]
)

Match = Callable[[Mapping[str, Any]], bool]


@attrs.frozen
class Subscriber:
    """A subscriber and what it asks for.

    Attributes:
        name: in the lines of its deliveries.
        expression: in the language of its node.
        schema: that of its peer, as plain tables; None at a broker.
        since: Unix seconds, by its machine's clock.
    """

    name: str
    expression: str
    schema: Mapping[str, Any] | None
    since: float

    def matcher(self) -> Match:
        """Whether values match, as a function.

        Raises:
            ProtocolError: expression or schema are none.
        """
        if self.schema is None:
            return parse(self.expression).matches
        schema = Schema.from_mapping(self.schema)
        expression = parse_expression(schema, self.expression)

        def matches(values: Mapping[str, Any]) -> bool:
            return expression.matches(schema.check_event(values))

        return matches


def subscribers_of(folder: Place) -> list[Subscriber]:
    """The subscribers below a folder, in the order of their names.

    Raises:
        ResultsError: there are none, or a description is damaged.
    """
    found = [
        _subscriber(folder / one.name)
        for one in folder.files()
        if one.name.rpartition("/")[2] == SUBSCRIPTION_FILE
    ]
    if not found:
        expected = f"expected folders with {SUBSCRIPTION_FILE}, as 'gossamer sub --into' makes them"
        raise ResultsError(folder, f"has no subscribers, {expected}")
    return found


def _subscriber(file: Place) -> Subscriber:
    try:
        told = json.loads(file.read_bytes())
        lacking = [name for name, kind in _FIELDS if not isinstance(told.get(name), kind)]
    except (ValueError, AttributeError) as error:
        raise ResultsError(file, f"is not the description of a subscription ({error})") from error
    if lacking:
        raise ResultsError(file, f"has no {lacking[0]}, expected the description of a subscription")
    fields = (told["subscriber"], told["expression"], told.get("schema"), float(told["since"]))
    subscriber = Subscriber(*fields)
    try:
        subscriber.matcher()
    except ProtocolError as error:
        raise ResultsError(file, f"has an impossible expression or schema ({error})") from error
    return subscriber


@attrs.frozen
class Due:
    """Makes of published events a row for each subscriber that is to get them."""

    subscribers: Sequence[Subscriber]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        matchers = [(one, one.matcher()) for one in self.subscribers]
        for batch in batches:
            rows = [
                {"id": row["id"], "subscriber": one.name, "published_at": row["published_at"]}
                for row in batch.to_pylist()
                for one, matches in matchers
                if row["published_at"] >= one.since and _matches(matches, row)
            ]
            yield pa.RecordBatch.from_pylist(rows, schema=_DUE)


def _matches(matches: Match, row: Mapping[str, Any]) -> bool:
    """Whether an event matches; one that is none of the subscriber's schema is due nowhere."""
    try:
        return matches(values_of_json(read_json(row["values"])))
    except (ValueError, RecursionError, ProtocolError):
        return False


# Windows of time: what was due and delivered in each, how fast, how late.
#
# An event belongs to the window in which it was published, whenever its deliveries come. Windows
# are told anew as long as deliveries come for them; those that come later than the watermark allows
# are left out of them, and are among the deliveries all the same.


PER_CENTS: Final = (50, 90, 99)
# Rank errors of percentiles are less than one in so many.
_ACCURACY: Final = 10_000


@attrs.frozen(kw_only=True)
class WindowSettings:
    """What windows there are.

    Attributes:
        window_s: length of a window.
        late_s: for how long after the newest event deliveries may come, and repeated ones are
            known as such.
    """

    window_s: int
    late_s: int


def windowed(deliveries: Any, due: Any | None, settings: WindowSettings) -> Any:
    """A row a window and subscriber, as a frame that grows; in update mode.

    Args:
        deliveries: sound lines.
        due: of `due.DUE_COLUMNS`; None where it is not known what was published.
        settings: what windows there are.
    """
    from pyspark.sql import functions as f

    at = "timestamp_seconds(published_at) as at"
    rows = deliveries.selectExpr(
        "id", "subscriber", at, "received_at - published_at as latency", "true as delivered"
    )
    if due is not None:
        rows = rows.unionByName(
            due.selectExpr("id", "subscriber", at, "null as latency", "false as delivered")
        )
    late = f"{settings.late_s} seconds"
    once = rows.withWatermark("at", late).dropDuplicatesWithinWatermark(
        ["id", "subscriber", "delivered"]
    )
    window = f.window("at", f"{settings.window_s} seconds")
    shares = [per_cent / 100 for per_cent in PER_CENTS]
    told = once.groupBy(window, "subscriber").agg(
        f.sum((~f.col("delivered")).cast("long")).alias("due"),
        f.sum(f.col("delivered").cast("long")).alias("delivered"),
        f.percentile_approx("latency", shares, _ACCURACY).alias("latencies"),
        f.avg("latency").alias("latency_mean_s"),
        f.max("latency").alias("latency_max_s"),
    )
    known = due is not None
    return told.selectExpr(
        "window.start as begin",
        "window.end as end",
        "subscriber",
        "due" if known else "cast(null as bigint) as due",
        "delivered",
        f"delivered / {settings.window_s}D as rate_per_s",
        f"{'delivered / nullif(due, 0)' if known else 'cast(null as double)'} as hit_ratio",
        "latency_mean_s",
        *(f"latencies[{place}] as latency_p{one}_s" for place, one in enumerate(PER_CENTS)),
        "latency_max_s",
    )
