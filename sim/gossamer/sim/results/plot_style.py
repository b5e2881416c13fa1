"""How plots look and are saved: palette, line styles, and files that are the same for every run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.artist import Artist
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
    """How one system is drawn in every plot.

    Told apart by dashes where colour does not help; areas by hatches where colours come again.
    """

    colour: str
    dashes: str
    label: str
    hatch: str = ""


_KNOWN = {
    "vinifera": SystemStyle(BLUE, "-", "Vinifera"),
    "baseline": SystemStyle(VERMILION, "--", "baseline"),
}
# Of all other systems: five colours, and four ways to dash a line, which come together in twenty.
_SPARE_COLOURS = (GREEN, PURPLE, ORANGE, SKY, INK)
_SPARE_DASHES = ("-.", ":", "-", "--")
_HATCHES = ("", "////", "....", "xxxx")
# Longer names are drawn without their middle.
LONGEST_LABEL = 40


def system_styles(names: Iterable[str]) -> dict[str, SystemStyle]:
    """A style for each of ``names``; Vinifera and the baseline always have the same.

    Up to twenty others differ from each other; more of them begin again.
    """
    styles: dict[str, SystemStyle] = {}
    others = 0
    for name in names:
        if name in _KNOWN:
            styles[name] = _KNOWN[name]
            continue
        colour = _SPARE_COLOURS[others % len(_SPARE_COLOURS)]
        dashes = _SPARE_DASHES[others % len(_SPARE_DASHES)]
        hatch = _HATCHES[others // len(_SPARE_COLOURS) % len(_HATCHES)]
        styles[name] = SystemStyle(colour, dashes, shortened(name), hatch)
        others += 1
    return styles


def shortened(name: str, longest: int = LONGEST_LABEL) -> str:
    """A name as plots have room for it: of long ones the beginning and the end."""
    if len(name) <= longest:
        return name
    end = longest // 2
    return f"{name[: longest - end - 1]}…{name[-end:]}"


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


def filled(style: SystemStyle) -> dict[str, Any]:
    """How bars of a system are drawn; nothing but the colour where it stands for it alone."""
    hatched = {"hatch": style.hatch, "edgecolor": "white", "linewidth": 0.0}
    return {"color": style.colour, **(hatched if style.hatch else {})}


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


# Of legends: what a character and the line before an entry take at most, and what a row takes.
_CHARACTER_IN = 0.085
_HANDLE_IN = 0.55
_ROW_IN = 0.2


def legend_below(figure: Figure, axes: Axes, handles: Sequence[Artist] | None = None) -> None:
    """One legend for the figure, of what ``axes`` shows or of ``handles``, below everything.

    It has as many columns as fit into the figure, which grows by its rows: the plots keep their
    size, however many entries there are.
    """
    shown = axes.get_legend_handles_labels()[0] if handles is None else list(handles)
    if not shown:
        return
    labels = [str(handle.get_label()) for handle in shown]
    width, height = figure.get_size_inches()
    entry = _HANDLE_IN + _CHARACTER_IN * max(map(len, labels))
    columns = min(len(labels), max(1, int(width / entry)))
    rows = -(-len(labels) // columns)
    figure.set_size_inches(width, height + rows * _ROW_IN)
    figure.legend(shown, labels, loc="outside lower center", ncols=columns)


def save(figure: Figure, folder: Path, name: str) -> tuple[Path, Path]:
    """Write ``figure`` as ``name.svg`` and ``name.png`` into ``folder``; return both paths.

    The bytes depend on the figure and on Matplotlib's version only.
    """
    svg, png = folder / f"{name}.svg", folder / f"{name}.png"
    figure.savefig(svg, metadata={"Date": None}, dpi=PNG_DPI)
    figure.savefig(png, metadata={"Software": None}, dpi=PNG_DPI)
    return svg, png
