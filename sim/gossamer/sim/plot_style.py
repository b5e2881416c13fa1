"""How plots look and are saved: palette, line styles, and files that are the same for every run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure

# Okabe and Ito's palette, which people with any colour vision tell apart.
BLUE, VERMILION, GREEN = "#0072B2", "#D55E00", "#009E73"
ORANGE, SKY, PURPLE, GREY, INK = "#E69F00", "#56B4E9", "#CC79A7", "#8A8F98", "#2B2F36"

WIDTH_IN, HEIGHT_IN = 7.2, 3.9
PNG_DPI = 150

_STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": GREY,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.xmargin": 0.015,
    "figure.constrained_layout.use": True,
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "grid.color": "#E3E6EA",
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "lines.linewidth": 1.7,
    "svg.fonttype": "path",
    "svg.hashsalt": "gossamer",  # else element names in an SVG are random
    "xtick.color": INK,
    "ytick.color": INK,
}


@dataclass(frozen=True, slots=True)
class SystemStyle:
    """How one system is drawn in every plot; told apart by dashes where colour does not help."""

    colour: str
    dashes: str
    label: str


_KNOWN = {
    "vinifera": SystemStyle(BLUE, "-", "Vinifera"),
    "baseline": SystemStyle(VERMILION, "--", "baseline"),
}
_SPARE = ((GREEN, "-."), (PURPLE, ":"), (ORANGE, "-"), (SKY, "--"))


def system_styles(names: Iterable[str]) -> dict[str, SystemStyle]:
    """A style for each of ``names``; Vinifera and the baseline always have the same."""
    styles: dict[str, SystemStyle] = {}
    others = 0
    for name in names:
        if name in _KNOWN:
            styles[name] = _KNOWN[name]
        else:
            styles[name] = SystemStyle(*_SPARE[others % len(_SPARE)], name)
            others += 1
    return styles


# Pruning in solid lines, what it is compared with dashed.
_COVERINGS = {
    "off": SystemStyle(GREY, ":", "off"),
    "lazy": SystemStyle(ORANGE, "-.", "lazy"),
    "active": SystemStyle(VERMILION, "--", "active"),
    "packed": SystemStyle(PURPLE, ":", "packed"),
    "selective": SystemStyle(BLUE, "-", "selective"),
    "incremental": SystemStyle(GREEN, "-", "incremental"),
}


def covering_styles(names: Iterable[str]) -> dict[str, SystemStyle]:
    """A style for each covering of brokers, the same in every plot."""
    return {name: _COVERINGS[name] for name in names}


@contextmanager
def plot_style() -> Iterator[None]:
    """The settings under which figures must be both made and saved."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        yield


def per_cent(axis: Axis) -> None:
    """Label ``axis``, which shows ratios from 0 to 1, in per cent."""
    axis.set_major_formatter(lambda value, _: f"{100 * value:.6g} %")


def legend_below(figure: Figure, axes: Axes) -> None:
    """One legend for the figure, of what ``axes`` shows, below everything."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6)


def save(figure: Figure, folder: Path, name: str) -> tuple[Path, Path]:
    """Write ``figure`` as ``name.svg`` and ``name.png`` into ``folder``; return both paths.

    The bytes depend on the figure and on Matplotlib's version only.
    """
    svg, png = folder / f"{name}.svg", folder / f"{name}.png"
    figure.savefig(svg, metadata={"Date": None}, dpi=PNG_DPI)
    figure.savefig(png, metadata={"Software": None}, dpi=PNG_DPI)
    return svg, png
