"""A run that can be looked at and never happens: an overlay and a course made from a seed."""

from __future__ import annotations

import attrs
import numpy as np

from gossamer.sim.study.records import Measure
from gossamer.sim.study.watching import NODE, Course, Curve, Overlay, links_table

KINDS = ("ring", "friend & foe")


def made_up_overlay(nodes: int, degree: int = 8, seed: int = 1) -> Overlay:
    """An overlay of every second node of twice as many, with links of two kinds."""
    draw = np.random.default_rng(seed)
    numbers = np.arange(0, 2 * nodes, 2)
    rows = np.repeat(np.arange(nodes), degree)
    near = (rows + draw.integers(1, 40, len(rows))) % nodes
    return Overlay(
        nodes={NODE: numbers.astype(np.int32), "place": draw.random(nodes)},
        links=links_table(numbers[rows], numbers[near], draw.integers(0, 2, len(rows))),
        kinds=KINDS,
    )


def made_up_course(rounds: int, nodes: int = 100) -> Course:
    """A course with one curve, which is not known before round 10."""
    number = np.arange(1, rounds + 1)
    values = np.where(number < 10, np.nan, 1.0 / number)
    about = Measure("doubt", "doubt", "ratio", "lower", "What is left of it.")
    up = np.full(rounds, nodes, np.float64)
    return Course(number, number.astype(np.float64) * 60.0, up, (Curve(about, values),))


@attrs.define
class WatchedRun:
    """One system after some of its rounds."""

    name: str
    round: int
    rounds: int
    size: int
    looks: int = 0  # how often it was looked at

    @property
    def is_finished(self) -> bool:
        return self.round >= self.rounds

    def course(self) -> Course:
        self.looks += 1
        return made_up_course(self.round, self.size)

    def overlay(self) -> Overlay | None:
        return made_up_overlay(self.size, seed=self.round)
