"""Drawn cases: how many a campaign runs, `--draws N` and `--first-draw N` of pytest say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import attrs
import pytest
from hypothesis import settings

# Of each property: each time, and with `--all`.
QUICK_EXAMPLES: Final = 25
ALL_EXAMPLES: Final = 400

T = TypeVar("T")


@attrs.frozen
class Draws:
    """Cases drawn from numbers that follow each other, so that several processes share them."""

    count: int | None
    first: int

    def numbers(self, count: int) -> range:
        """The numbers to draw from, ``count`` of them where the command line does not say."""
        return range(self.first, self.first + (count if self.count is None else self.count))


def few_or_many(few: int, many: int) -> pytest.MarkDecorator:
    """Parametrise ``count``: a few drawn cases each time, and many as a campaign."""
    return pytest.mark.parametrize("count", [few, pytest.param(many, marks=pytest.mark.campaign)])


def with_campaigns(names: str, usual: Iterable[Any], more: Iterable[Any]) -> pytest.MarkDecorator:
    several = "," in names
    marked = [
        pytest.param(*(one if several else (one,)), marks=pytest.mark.campaign) for one in more
    ]
    return pytest.mark.parametrize(names, [*usual, *marked])


def larger(each_time: T, with_all: T) -> T:
    """A size that is larger with `--all`; which holds while modules of tests are imported, too."""
    return each_time if settings().max_examples == QUICK_EXAMPLES else with_all


def few_examples(count: int) -> settings:
    """So many examples each time, a hundred with `--all`: for properties that are the dearest."""
    return settings(max_examples=larger(count, 100))


def one_in(share: int) -> settings:
    """Hypothesis draws one example of so many that it would: for properties that are dear."""
    return settings(max_examples=max(1, settings().max_examples // share))


@contextmanager
def named(case: str) -> Iterator[None]:
    try:
        yield
    except AssertionError as error:
        raise AssertionError(f"{case}: {error}") from error
