"""P9 and I5: mobile clients (selective paper, Sec. V-F, Fig. 12; incremental, Sec. V-B, Fig. 9).

mobile.parquet          one row a run
mobile_times.parquet    queues, tables and delays over time
mobile_brokers.parquet  one row a broker of a run
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gossamer.sim.figures.common.claims import Claim
from gossamer.sim.figures.common.experiments import Experiment
from gossamer.sim.figures.common.readings import ALTERNATIVE, LITERAL, side_by_side
from gossamer.sim.figures.covering.readings.readings import READINGS
from gossamer.sim.figures.covering.scenes.mobile_claims import check_i5, check_p9
from gossamer.sim.figures.covering.scenes.mobile_studies import plan_mobile
from gossamer.sim.figures.covering.scenes.scene_plots import draw_mobile
from gossamer.sim.figures.covering.scenes.scenes import SceneResult, Scenes


def _check(outcomes: Sequence[Sequence[SceneResult]]) -> list[Claim]:
    literal, alternative = (
        [check_p9(found), check_i5(found)]
        for found in (Scenes.of(outcomes, LITERAL), Scenes.of(outcomes, ALTERNATIVE))
    )
    return side_by_side(literal, alternative, READINGS)


MOBILE: Final = Experiment(
    claims=("P9", "I5"),
    tasks=plan_mobile,
    check=_check,
    tables=lambda outcomes: Scenes.of(outcomes).tables("mobile"),
    draw=lambda outcomes: draw_mobile(Scenes.of(outcomes, LITERAL)),
)
