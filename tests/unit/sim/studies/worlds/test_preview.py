"""What a world comes to, in words."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer.sim.engine import latency as engine_latency
from gossamer.sim.studies.worlds.network import Link
from gossamer.sim.studies.worlds.preview import latency_words, network_words


@pytest.mark.parametrize(
    ("latency", "words"),
    [
        (engine_latency.constant_latency(5), "5 ms"),
        (engine_latency.uniform_latency(5, 1500), "5 to 1,500 ms"),
        (
            engine_latency.matrix_latency(np.array([[1, 2000], [2000, 1]]), 50, 1),
            "2 sites, 1 to 2,000 ms, half of the pairs up to",
        ),
        (
            engine_latency.coordinate_latency(np.array([[0.0], [30.0]]), 4, 50, 1),
            "2 sites, 4 to 34 ms, half of the pairs up to",
        ),
    ],
)
def test_a_wrong_unit_is_seen_at_a_glance(latency: engine_latency.Latency, words: str) -> None:
    assert latency_words(latency, 50, 1).startswith(words)


def test_what_links_do_is_told() -> None:
    link = Link(
        loss=0.01,
        up_rate=[1000, 20_000],
        up_queue=5000,
        partition=[{"begin_s": 1, "end_s": 2, "shares": [0.5]}],  # type: ignore[arg-type]
        loss_period=[{"begin_s": 3, "end_s": 4, "loss": 0.5}],  # type: ignore[arg-type]
    )
    assert network_words(link) == (
        "loss 0.01, up rate 1,000 or 20,000, up queue 5,000, loss 0.5 from 3 to 4 s, "
        "parted from 1 to 2 s"
    )
    assert network_words(Link()) == "nothing is lost"
