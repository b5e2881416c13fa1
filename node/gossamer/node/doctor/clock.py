"""Whether this machine's clock can be believed: certificates are judged by it.

A certificate that has expired and a clock that is ahead look the same. What tells them apart is
when this peer is known to have run: if the certificate was valid then, and nothing is known of the
time since, the clock may have jumped over its end.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import attrs

from gossamer.node.doctor.findings import Finding

# Peers are off for weekends and holidays; what is longer is suspicious where a certificate ended
# meanwhile, as a peer that runs renews it in time.
SUSPICIOUS: Final = timedelta(days=60)
# Clocks of file servers differ; an hour is more than they do.
AHEAD: Final = timedelta(hours=1)
ADVICE: Final = "Set this machine's clock (NTP) and look again, before anything else."


@attrs.frozen
class Signs:
    """When this peer is known to have run, or its files to have been written.

    Attributes:
        seen: moments, each with what tells of it.
        gap: the last long time of which nothing is known though the peer ran before and after it:
            its end is when it ran again, by the clock of then.
    """

    seen: tuple[tuple[str, datetime], ...] = ()
    gap: tuple[datetime, datetime] | None = None


def check_own_clock(now: datetime, start: datetime, end: datetime, signs: Signs) -> Finding:
    """Whether ``now`` fits what is known of this peer.

    Args:
        now: by this machine's clock.
        start, end: between which its certificate is valid.
        signs: of its life.
    """
    name, says = "clock", f"this machine's clock says {_text(now)}"
    what, newest = max(signs.seen, key=lambda sign: sign[1], default=("the certificate", start))
    if newest > now + AHEAD:
        reason = f"{says}, and {what} is of {_text(newest)}: it is behind, or was ahead then"
        return Finding(name, False, reason, ADVICE)
    for before, after in _gaps(now, what, newest, signs):
        if before[1] < end <= after and after - before[1] > SUSPICIOUS:
            days = (after - before[1]).days
            reason = (
                f"{says}; {before[0]} is of {_text(before[1])}, when the certificate was valid, "
                f"and nothing tells of the {days} days after it: unless this peer was off for so "
                "long, the clock is ahead"
            )
            return Finding(name, False, reason, ADVICE)
    return Finding(name, True, f"{says}; {what} is of {_text(newest)}")


def _gaps(
    now: datetime, what: str, newest: datetime, signs: Signs
) -> Iterable[tuple[tuple[str, datetime], datetime]]:
    """Times of which nothing is known: what tells of their beginning, and their end."""
    yield (what, newest), now
    if signs.gap is not None:
        yield ("the last run before the clock moved on", signs.gap[0]), signs.gap[1]


def signs_of_files(paths: Iterable[Path]) -> tuple[tuple[str, datetime], ...]:
    """When each of the files that are there was last written."""
    found = []
    for path in paths:
        try:
            found.append((path.name, datetime.fromtimestamp(path.stat().st_mtime, UTC)))
        except (OSError, OverflowError, ValueError):
            continue
    return tuple(found)


def _text(when: datetime) -> str:
    return f"{when:%Y-%m-%d %H:%M} UTC"
