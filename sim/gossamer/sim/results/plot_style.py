"""How plots look and are saved: palette, line styles, and files that are the same for every run.

A figure is as wide as a page of text or as one of its two columns, and saved as SVG and PNG,
or as those of them that `gossamer.sim.study.plot` asks for. Text stays text in PDF and SVG.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backend_bases import get_registered_canvas_class
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gossamer.sim.study.plot import COLUMN, Drawing, Plot, present_options

# Okabe and Ito's palette, which people with any colour vision tell apart.
BLUE, VERMILION, GREEN = "#0072B2", "#D55E00", "#009E73"
ORANGE, SKY, PURPLE, GREY, INK = "#E69F00", "#56B4E9", "#CC79A7", "#8A8F98", "#2B2F36"

# Of figures as wide as a page, and of those as wide as one of two columns.
WIDTH_IN, HEIGHT_IN = 7.0, 3.9
COLUMN_WIDTH_IN, _COLUMN_HEIGHT = 3.4, 0.62
PNG_DPI = 150
_FEW_POINTS: Final = 40
_MARGIN: Final = 0.05

# What Matplotlib writes into files besides the figure: nothing that changes from run to run. PNG
# files are as small as at its usual level of 6, and sooner made.
_OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "pdf": {"metadata": {"CreationDate": None}},
    "svg": {"metadata": {"Date": None}},
    "png": {"metadata": {"Software": None}, "pil_kwargs": {"compress_level": 3}},
}

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
    # Drawn in the first, which Matplotlib brings; an SVG names the others for where it is missing.
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "Helvetica"],
    "font.size": 9,
    "grid.color": "#E3E6EA",
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "lines.linewidth": 1.7,
    "pdf.fonttype": 42,  # whole glyphs of TrueType, which readers search and copy
    "svg.fonttype": "none",
    "svg.hashsalt": "gossamer",  # else element names in an SVG are random
    "xtick.color": INK,
    "ytick.color": INK,
}
_COLUMN_STYLE: dict[Any, Any] = {
    "axes.titlesize": 8.5,
    "font.size": 7.5,
    "lines.linewidth": 1.3,
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
    "kindred": SystemStyle(BLUE, "-", "kindred"),
    "baseline": SystemStyle(VERMILION, "--", "baseline"),
}
# Of all other systems: five colours, and four ways to dash a line, which come together in twenty.
_SPARE_COLOURS = (GREEN, PURPLE, ORANGE, SKY, INK)
_SPARE_DASHES = ("-.", ":", "-", "--")
_HATCHES = ("", "////", "....", "xxxx")
# Longer names are drawn without their middle.
LONGEST_LABEL = 40


def system_styles(names: Iterable[str]) -> dict[str, SystemStyle]:
    """A style for each of ``names``; `kindred` and the baseline always have the same.

    Up to twenty others differ from each other; more of them begin again.
    """
    styles: dict[str, SystemStyle] = {}
    others = 0
    names = list(names)
    for name in names:
        if name in _KNOWN:
            styles[name] = _KNOWN[name]
            continue
        colour = _SPARE_COLOURS[others % len(_SPARE_COLOURS)]
        # Alone, it is not told apart from anything.
        dashes = "-" if len(names) == 1 else _SPARE_DASHES[others % len(_SPARE_DASHES)]
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


def looks(style: SystemStyle) -> dict[str, Any]:
    """How a line of a system is drawn, as `Axes.plot` takes it."""
    return {"color": style.colour, "linestyle": style.dashes, "label": style.label}


# Pruning in solid lines, what it is compared with dashed.
_COVERINGS = {
    "off": SystemStyle(GREY, ":", "off"),
    "lazy": SystemStyle(ORANGE, "-.", "lazy"),
    "active": SystemStyle(VERMILION, "--", "active"),
    "packed": SystemStyle(PURPLE, ":", "packed"),
    "selective": SystemStyle(BLUE, "-", "selective"),
    "incremental": SystemStyle(GREEN, "-", "incremental"),
    "paced": SystemStyle(INK, "-", "paced"),
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
        if in_a_column():
            mpl.rcParams.update(_COLUMN_STYLE)
        yield


def in_a_column() -> bool:
    """Whether figures are made as wide as one of two columns."""
    return present_options().width == COLUMN


def new_figure(height_in: float = HEIGHT_IN) -> Figure:
    """A figure as wide as a page or a column; in a column it is lower as well.

    Args:
        height_in: of one as wide as a page.
    """
    if in_a_column():
        return Figure(figsize=(COLUMN_WIDTH_IN, height_in * _COLUMN_HEIGHT))
    return Figure(figsize=(WIDTH_IN, height_in))


def beside(figure: Figure, count: int, **options: Any) -> npt.NDArray[Any]:
    """So many axes side by side; in a column one below another, in a figure that is higher.

    Args:
        figure: of `new_figure`.
        count: of axes.
        options: of `Figure.subplots`.
    """
    rows, columns = (count, 1) if in_a_column() else (1, count)
    if rows > 1:
        width, height = figure.get_size_inches()
        figure.set_size_inches(width, 0.85 * rows * height)
        options |= {"sharex": False} if options.get("sharex") else {}
    axes = figure.subplots(rows, columns, squeeze=False, **options)
    return np.asarray(axes).ravel()


def draw_line(
    axes: Axes, x: npt.ArrayLike, y: npt.ArrayLike, style: SystemStyle, **options: Any
) -> None:
    """Draw ``y`` over ``x``, with a gap wherever nothing is known (NaN).

    What stands alone between gaps is a dot, and so is everything where there are few points.

    Args:
        axes: to draw on.
        x, y: float[points].
        style: of the system.
        options: of `Axes.plot`, in place of what follows from the style.
    """
    values = np.asarray(y, np.float64)
    known = np.isfinite(values)
    around = np.concatenate(([False], known, [False]))
    alone = known & ~around[:-2] & ~around[2:]
    dotted = known if known.sum() <= _FEW_POINTS else alone
    looks: dict[str, Any] = {
        "color": style.colour,
        "linestyle": style.dashes,
        "label": style.label,
        # Dashed ones above, where lines coincide.
        "zorder": 2 if style.dashes == "-" else 3,
    }
    if dotted.any():
        every = np.flatnonzero(dotted).tolist()
        looks |= {"marker": "o", "markersize": 3, "markevery": every}
    axes.plot(np.asarray(x), values, **(looks | options))


def draw_intervals(
    axes: Axes, x: npt.ArrayLike, y: npt.ArrayLike, half: npt.ArrayLike, **options: Any
) -> None:
    """Draw a line with bars as long as the intervals of its points, where there are any (not NaN).

    Args:
        axes: to draw on.
        x, y: float[points].
        half: float[points], half the length of each interval.
        options: of `Axes.errorbar`.
    """
    lengths = np.asarray(half, np.float64)
    bars = lengths if np.isfinite(lengths).any() else None
    axes.errorbar(np.asarray(x), np.asarray(y), yerr=bars, capsize=2.5, **options)


def draw_band(
    axes: Axes, x: npt.ArrayLike, y: npt.ArrayLike, half: npt.ArrayLike, colour: str
) -> None:
    """Shade the intervals of the points of a line, see `draw_intervals`."""
    middle, lengths = np.asarray(y, np.float64), np.asarray(half, np.float64)
    if np.isfinite(lengths).any():
        ends = (middle - lengths, middle + lengths)
        axes.fill_between(np.asarray(x), *ends, color=colour, alpha=0.18, linewidth=0)


def per_cent(axis: Axis) -> None:
    """Label ``axis``, which shows ratios from 0 to 1, in per cent."""
    axis.set_major_formatter(lambda value, _: f"{100 * value:.6g} %")


def from_zero(axes: Axes) -> None:
    """Let the vertical axis, all that shares it drawn, begin at 0 and end beyond all lines."""
    low, high = axes.get_ylim()
    # Matplotlib's margin is a part of what is between the least and the greatest value.
    greatest = high - (high - low) * _MARGIN / (1 + 2 * _MARGIN)
    axes.set_ylim(0, max(high, (1 + _MARGIN) * greatest))


def draw_population(
    axes: Axes, hours: npt.ArrayLike, population: npt.ArrayLike, room: float, width: float = 1.0
) -> None:
    """Draw the nodes online on an axis of its own on the right.

    Args:
        axes: to draw on.
        hours, population: float[hours].
        room: how high the axis is, in parts of the most of them.
        width: of the line.
    """
    right = axes.twinx()
    right.plot(np.asarray(hours), np.asarray(population), color=GREY, linewidth=width)
    most = max(1.0, float(np.max(population)))
    right.set(ylabel="nodes online", ylim=(0, room * most))
    right.grid(visible=False)
    right.spines["right"].set_visible(True)


def population_handle() -> Line2D:
    """The entry of a legend for the nodes online, on an axis of their own."""
    return Line2D([], [], color=GREY, linewidth=1.0, label="nodes online (right axis)")


# Of legends: what a character and the line before an entry take at most, and what a row takes.
_CHARACTER_IN = 0.085
_HANDLE_IN = 0.55
_ROW_IN = 0.2


def legend_below(
    figure: Figure, axes: Axes, handles: Sequence[Artist] | None = None, note: str = ""
) -> None:
    """One legend for the figure, of what ``axes`` shows or of ``handles``, below everything.

    It has as many columns as fit into the figure, which grows by its rows: the plots keep their
    size, however many entries there are. Above them stands a note, if any.
    """
    shown = axes.get_legend_handles_labels()[0] if handles is None else list(handles)
    if not shown:
        return
    labels = [str(handle.get_label()) for handle in shown]
    width, height = figure.get_size_inches()
    scale = mpl.rcParams["font.size"] / _STYLE["font.size"]
    entry = _HANDLE_IN + _CHARACTER_IN * max(map(len, labels))
    columns = min(len(labels), max(1, int(width / (scale * entry))))
    rows = -(-len(labels) // columns) + bool(note)
    figure.set_size_inches(width, height + rows * _ROW_IN * scale)
    size = 0.9 * mpl.rcParams["font.size"]
    title = {"title": note, "title_fontsize": size} if note else {}
    figure.legend(shown, labels, loc="outside lower center", ncols=columns, **title)


def save_all(drawings: Iterable[Drawing], folder: Path) -> list[Plot]:
    """Draw into the new folder ``folder`` whatever there is to see."""
    folder.mkdir()
    plots = []
    with plot_style():
        for one in drawings:
            figure = one.draw()
            if figure is not None:
                saved = save(figure, folder, one.name)
                plots.append(Plot(one.name, one.title, one.caption, *saved))
    return plots


def save(figure: Figure, folder: Path, name: str) -> tuple[bytes, tuple[Path, ...]]:
    """Write ``figure`` into ``folder`` in every format that is asked for.

    It is laid out once, which takes as long as drawing it, and keeps its layout. The bytes depend
    on the figure, the formats and Matplotlib's version only.

    Returns:
        The figure as SVG, for reports, and the files ``name.svg``, ``name.png`` and others.
    """
    if in_a_column():
        _wrap_titles(figure)
    figure.set_dpi(PNG_DPI)
    layout = figure.get_layout_engine()
    if layout is not None:
        layout.execute(figure)
        figure.set_layout_engine("none")
    formats = present_options().formats
    files = tuple(folder / f"{name}.{one}" for one in formats)
    for one, file in zip(formats, files, strict=True):
        if one != "svg":
            _print(figure, file, one)
    drawn = io.BytesIO()
    _print(figure, drawn, "svg")
    if "svg" in formats:
        (folder / f"{name}.svg").write_bytes(drawn.getvalue())
    return drawn.getvalue(), files


def _print(figure: Figure, file: Path | io.BytesIO, one: str) -> None:
    """Draw the figure once; `savefig` does so twice, first for its extent alone."""
    canvas = get_registered_canvas_class(one)(figure)
    figure.set_dpi(PNG_DPI)  # vector formats leave it changed
    getattr(canvas, f"print_{one}")(file, **_OPTIONS[one])


def _wrap_titles(figure: Figure) -> None:
    """Break titles that reach beyond the figure into lines."""
    figure.draw_without_rendering()
    for axes in figure.axes:
        # Setting a text gives the artist, whose extent is asked for.
        title = axes.get_title(loc="left")
        box = axes.set_title(title, loc="left").get_window_extent()
        room = figure.bbox.x1 - box.x0
        if title and box.width > room:
            axes.set_title(textwrap.fill(title, int(0.95 * len(title) * room / box.width)))
