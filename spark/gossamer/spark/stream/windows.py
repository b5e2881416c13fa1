"""Windows of time: what was due and delivered in each, how fast, how late.

An event belongs to the window in which it was published, whenever its deliveries come. Windows are
told anew as long as deliveries come for them; those that come later than the watermark allows are
left out of them, and are among the deliveries all the same.
"""

from __future__ import annotations

from typing import Any, Final

import attrs

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
