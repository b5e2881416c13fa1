"""The measures of runs of several kinds: what each study has of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gossamer.sim.study.records import Measure
from gossamer.sim.study.registry import known_kinds, study_of_kind, study_of_values


def all_measures(summaries: Iterable[Mapping[str, Any]]) -> list[Measure]:
    """The measures of the kinds of runs that ``summaries`` are of, each once.

    Where kinds share a measure, it keeps the place that the first kind gives it, and the words of
    the last.

    Raises:
        ScenarioError: there is no study of one of these kinds.
    """
    met: dict[str, dict[str, Measure]] = {}
    for summary in summaries:
        study = study_of_values(summary["scenario"])
        of_kind = met.setdefault(study.kind, {})
        of_kind |= {measure.key: measure for measure in study.measures_of(summary)}
    order = [kind for kind in known_kinds() if kind in met]
    found = {key: measure for kind in order for key, measure in met[kind].items()}
    return list(found.values())


def measures_by_key() -> dict[str, Measure]:
    """The measures of all studies that can be found; where they share one, that of the first."""
    studies = [study_of_kind(kind) for kind in reversed(known_kinds())]
    return {measure.key: measure for study in studies for measure in study.measures}
