"""What a world comes to, for people who check a scenario before they run it."""

from __future__ import annotations

from typing import Final

import numpy as np

from gossamer.sim.engine.latency import Int64s, Latency, trip_ticks
from gossamer.sim.studies.worlds.network import Link

# Pairs of nodes that a mean is taken over.
_PAIRS: Final = 20_000


def latency_words(latency: Latency, nodes: int, seed: int) -> str:
    """Least, median and greatest latency between random nodes, with how many sites there are.

    A wrong unit of a file is seen at a glance.
    """
    sites = max(len(latency.matrix), len(latency.places))
    if sites == 0:
        if len(latency.quantiles):
            shortest, median, longest = (
                latency.shortest + int(np.percentile(latency.quantiles, part, method="higher"))
                for part in (0, 50, 100)
            )
            return f"{shortest:,} to {longest:,} ms, half of the messages up to {median:,} ms"
        shortest, longest = latency.shortest, latency.shortest + latency.spread
        return f"{shortest:,} ms" if shortest == longest else f"{shortest:,} to {longest:,} ms"
    draws = np.random.Generator(np.random.Philox(key=seed))
    one, other = draws.integers(0, nodes, (2, min(_PAIRS, 10 * nodes)))
    apart = one != other
    found = np.sort(_between(latency, one[apart], other[apart]))
    if len(found) == 0:
        return f"{sites:,} sites"
    least, median, most = (int(found[int(share * (len(found) - 1))]) for share in (0, 0.5, 1))
    return f"{sites:,} sites, {least:,} to {most:,} ms, half of the pairs up to {median:,} ms"


def _between(latency: Latency, one: Int64s, other: Int64s) -> Int64s:
    pairs = zip(one.tolist(), other.tolist(), strict=True)
    if len(latency.matrix):
        return latency.matrix[latency.site[one], latency.site[other]].astype(np.int64)
    return np.array([trip_ticks.interpreted(latency, a, b, 0, 0) for a, b in pairs])


def network_words(link: Link) -> str:
    """What else links do."""
    told = [
        f"{name.replace('_', ' ')} {value if isinstance(value, str) else _number(value)}"
        for name in ("loss", "duplication", "up_rate", "down_rate", "up_queue", "down_queue")
        if (value := getattr(link, name))
    ]
    told += [
        f"loss {one.loss:g} from {one.begin_s:g} to {one.end_s:g} s" for one in link.loss_period
    ]
    told += [f"parted from {one.begin_s:g} to {one.end_s:g} s" for one in link.partition]
    return ", ".join(told) or "nothing is lost"


def _number(value: float | tuple[float, ...]) -> str:
    return " or ".join(f"{one:,g}" for one in (value if isinstance(value, tuple) else (value,)))
