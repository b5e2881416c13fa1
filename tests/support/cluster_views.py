"""Views of clusters, whose members have answered or not."""

from __future__ import annotations

from typing import Any

from gossamer.node.monitoring.cluster import FIGURES, SECTORS, Report, cluster_view


def member(number: int, state: str = "alive", version: str = "0.1.0") -> dict[str, Any]:
    return {
        "key": f"{number:016x}",
        "name": f"peer{number}",
        "addresses": ["hub:1"],
        "version": version,
        "state": state,
        "since": 0.0,
        "certificate_expires": None,
    }


def report(wanted: int = 0, **figures: float) -> tuple[Report, float]:
    return Report(figures=dict.fromkeys(FIGURES, 0.0) | figures, wanted=[wanted] * SECTORS), 1.0


def view(count: int, answered: int) -> dict[str, Any]:
    members = [member(number) for number in range(count)]
    figures = dict.fromkeys(FIGURES, 1.5) | {"position": 0.25, "overloading": 0, "late_rounds": 0}
    told = {one["key"]: report(wanted=2, **figures) for one in members[:answered]}
    return cluster_view(members, told, count - 1)
