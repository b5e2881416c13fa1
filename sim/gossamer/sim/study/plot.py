"""Plots of a run: as they lie in the result folder, and how they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs

from gossamer.sim.errors import ScenarioError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS: Final = ("svg", "png", "pdf")
USUAL: Final = ("svg", "png")  # the fonts of a PDF take as long as both
PAGE, COLUMN = "page", "column"
WIDTHS: Final = (PAGE, COLUMN)


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot, with the words that go with it in the report.

    Attributes:
        name: of its files, without what follows the dot.
        title, caption: in the report.
        svg: the plot as SVG.
        files: in the result folder, one a format.
    """

    name: str
    title: str
    caption: str
    svg: bytes
    files: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Drawing:
    """A plot that can be drawn.

    Attributes:
        name, title, caption: as those of a `Plot`.
        draw: makes the figure, in the style that is set; None where there is nothing to see.
    """

    name: str
    title: str
    caption: str
    draw: Callable[[], Figure | None]


@attrs.frozen
class PlotOptions:
    """What is asked for.

    Attributes:
        formats: of `FORMATS`.
        width: of `WIDTHS`: that of a page of text, or of one of two columns.
    """

    formats: tuple[str, ...] = USUAL
    width: str = PAGE


_DEFAULT: Final = PlotOptions()
_present: ContextVar[PlotOptions] = ContextVar("plot options", default=_DEFAULT)


@contextmanager
def plots_as(options: PlotOptions) -> Iterator[None]:
    """Have plots made and saved so."""
    token = _present.set(options)
    try:
        yield
    finally:
        _present.reset(token)


def present_options() -> PlotOptions:
    """How plots are made and saved now."""
    return _present.get()


def plot_options(formats: str | None, width: str | None) -> PlotOptions:
    """What words of a command line ask for; what is not said is as by default.

    Raises:
        ScenarioError: there is no such format or width.
    """
    found: tuple[str, ...] = USUAL
    if formats is not None:
        found = tuple(dict.fromkeys(one.strip().lower() for one in formats.split(",")))
        if not set(found) <= set(FORMATS):
            expected = f"some of {', '.join(FORMATS)}, with commas between them"
            raise ScenarioError(None, "--plots", formats, expected)
    if width is not None and width not in WIDTHS:
        raise ScenarioError(None, "--plot-width", width, f"one of {', '.join(WIDTHS)}")
    return PlotOptions(found, width or PAGE)
