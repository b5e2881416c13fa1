"""A story as a space-time diagram: a line a node, time to the right, messages as arrows."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gossamer.sim.results.plot_style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PURPLE,
    VERMILION,
    in_a_column,
    new_figure,
    shortened,
)

if TYPE_CHECKING:
    from gossamer.sim.exploration.story import Sent, Step, Story

# Of names on arrows: longer ones are drawn without their middle.
_LONGEST_NAME: Final = 18
_NODE_IN: Final = 0.8
_COLOURS: Final = {"there": BLUE, "back": ORANGE, "later": PURPLE}


def space_time_diagram(story: Story) -> Figure:
    """Draw the steps of a story, after Lamport (CACM 1978): nodes downwards, steps to the right."""
    figure = new_figure(1.5 + _NODE_IN * story.nodes)
    axes = figure.subplots()
    _draw_lines(axes, story)
    _draw_messages(axes, story)
    for number, step in enumerate(story.steps, start=1):
        _draw_event(axes, number, step)
    end = len(story.steps) + 1
    axes.set_title(f"{story.property.replace('_', ' ')} does not hold")
    axes.set(xlabel="step", xlim=(-0.4, end + 0.4), ylim=(story.nodes - 0.45, -0.6))
    every = max(1, end // (12 if in_a_column() else 25))
    axes.set_xticks(range(every, end, every))
    axes.set_yticks(range(story.nodes), [f"node {p}" for p in range(story.nodes)])
    axes.grid(visible=False)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    return figure


def _draw_lines(axes: Axes, story: Story) -> None:
    """A line where a node is up, dotted where it is not."""
    end = len(story.steps) + 1
    since: dict[int, float] = dict.fromkeys(story.up, 0.0)
    for p in range(story.nodes):
        axes.plot([0, end], [p, p], color=GREY, linewidth=0.6, linestyle=":", zorder=1)
    for number, step in enumerate(story.steps, start=1):
        if step.action == "start":
            since[step.node] = number
        elif step.action in ("crash", "leave"):
            _draw_life(axes, step.node, since.pop(step.node), number)
    for p, begin in since.items():
        _draw_life(axes, p, begin, end)


def _draw_life(axes: Axes, p: int, begin: float, end: float) -> None:
    axes.plot([begin, end], [p, p], color=INK, linewidth=1.2, solid_capstyle="butt", zorder=2)


def _draw_messages(axes: Axes, story: Story) -> None:
    """An arrow for each message, from the step that sent it to that which took it."""
    waiting: dict[str, list[tuple[float, Sent]]] = defaultdict(list)
    for number, step in enumerate(story.steps, start=1):
        for one in step.gone:
            begin, sent = waiting[repr(one)].pop(0) if waiting[repr(one)] else (0.0, one)
            _draw_arrow(axes, begin, number, sent, lost=not _takes(step, one))
        if step.action == "duplicate":
            held = waiting[repr(step.subject)]
            _draw_arrow(axes, held[0][0] if held else 0.0, number, step.subject, lost=False)
        for one in step.sent:
            waiting[repr(one)].append((number, one))
    end = len(story.steps) + 0.8
    for held in waiting.values():
        for begin, one in held:
            if one.way != "later":
                _draw_arrow(axes, begin, end, one, lost=False, arrives=False)


def _takes(step: Step, one: Sent) -> bool:
    return step.action == "deliver" and step.subject == one and step.node == one.taker


def _draw_arrow(
    axes: Axes, begin: float, end: float, one: Sent, *, lost: bool, arrives: bool = True
) -> None:
    first, last = (one.to, one.sender) if one.way == "back" else (one.sender, one.to)
    colour = VERMILION if lost else _COLOURS[one.way]
    bent = 0.0 if first != last else -0.35
    share = 1.0 if arrives and not lost else 0.55
    tip = (begin + share * (end - begin), first + share * (last - first))
    axes.annotate(
        "",
        xy=tip,
        xytext=(begin, first),
        zorder=3,
        arrowprops={
            "arrowstyle": "-|>" if arrives and not lost else "-",
            "connectionstyle": f"arc3,rad={bent}",
            "color": colour,
            "linewidth": 1.0,
            "linestyle": "-" if arrives else (0, (3, 2)),
            "shrinkA": 0,
            "shrinkB": 2.5 if arrives and not lost else 0,
            "mutation_scale": 8,
        },
    )
    if lost:
        axes.plot(*tip, marker="x", color=VERMILION, markersize=5, zorder=4)
    middle = (begin + 0.5 * (tip[0] - begin), first + 0.5 * (tip[1] - first))
    lift = -0.16 if first == last else 0.0
    axes.text(
        middle[0],
        middle[1] + lift,
        shortened(one.name, _LONGEST_NAME),
        color=colour,
        fontsize="x-small",
        ha="center",
        va="center",
        zorder=5,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.85},
    )


_MARKS: Final[dict[str, tuple[str, str]]] = {
    "fire": ("o", INK),
    "deliver": (".", INK),
    "duplicate": (".", INK),
    "crash": ("X", VERMILION),
    "leave": ("s", ORANGE),
    "start": (">", GREEN),
}


def _draw_event(axes: Axes, number: int, step: Step) -> None:
    if step.action == "advance":
        axes.axvline(number, color=GREY, linewidth=0.8, linestyle="--", zorder=0)
        return
    if step.action not in _MARKS:
        return
    marker, colour = _MARKS[step.action]
    shape: dict[str, Any] = {"marker": marker, "color": colour, "markersize": 5}
    axes.plot(number, step.node, zorder=6, linestyle="none", **shape)
    said = step.subject if step.action == "fire" else step.action
    if step.action not in ("deliver", "duplicate"):
        axes.text(
            number,
            step.node - 0.13,
            shortened(str(said), _LONGEST_NAME),
            color=colour,
            fontsize="x-small",
            ha="center",
            va="bottom",
            zorder=6,
        )
