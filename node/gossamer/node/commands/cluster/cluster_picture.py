"""The cluster on a terminal: who answered, what they do, and who is where on the ring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from gossamer.client.frames import BROKER
from gossamer.node.commands.cluster.tables import short_text, slim_table, span_text
from gossamer.node.doctor.failures import printable

# Members that are shown; the rest is counted.
SHOWN: Final = 40
_BARS: Final = " \u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
_FIGURES: Final = ("delivered", "published", "dropped", "sent_bytes", "queued_bytes")
_COLUMNS: Final = ("member", "state", "up", "deliv/s", "pub/s", "drop/s", "B/s", "queued", "subs")


def cluster_picture(view: Mapping[str, Any]) -> Group:
    """A view of the cluster, as `monitoring.cluster.cluster_view` gives it, as tables."""
    own = view["members"][0]
    title = f"{view.get('cluster_name') or 'the cluster'}, as {own['name'] or own['key']} sees it"
    if view["role"] == BROKER:
        return Group(Panel(_headline(view), title=Text(printable(title))), _states_table(view))
    overloaded = view["overloaded"]
    alarm = f"overloaded: {printable(', '.join(overloaded))}"
    return Group(
        Panel(_headline(view), title=Text(printable(title))),
        *([Text(alarm, "bold red")] if overloaded else []),
        *([_ring(view)] if any(view["wanted"]) or _places(view) else []),
        _table(view),
    )


def _headline(view: Mapping[str, Any]) -> Text:
    versions = ", ".join(f"{count} of {name}" for name, count in view["versions"].items())
    states = ", ".join(f"{count} {state}" for state, count in view["states"].items())
    answers = f"{view['answered']} of {view['known']} members answered ({view['asked']} were asked)"
    if view["role"] == BROKER:
        answers = f"{view['known']} members met; brokers tell each other no figures"
    return Text(f"{answers}\n{states}   versions: {printable(versions)}")


def _places(view: Mapping[str, Any]) -> list[float]:
    """Where those members stand on the ring who said so; brokers have no ring."""
    if not view["wanted"]:
        return []
    return [one["report"]["position"] for one in view["members"] if one["report"]]


def _ring(view: Mapping[str, Any]) -> Text:
    """The ring from 0 to 1 in two lines: what is wanted, and how many members stand there."""
    wanted: Sequence[int] = view["wanted"]
    highest = max(wanted, default=0)
    scale = max(highest, 1)
    bars = "".join(_BARS[-(-count * (len(_BARS) - 1) // scale)] for count in wanted)
    standing = [0] * len(wanted)
    for place in _places(view):
        standing[int(place * len(wanted)) % len(wanted)] += 1
    marks = "".join("\u00b7" if not one else str(one) if one < 10 else "+" for one in standing)
    return Text(
        f"the ring from 0 to 1; wanted: by at most {highest} subscriptions at one place\n"
        f"wanted   {bars}\nmembers  {marks}"
    )


def _table(view: Mapping[str, Any]) -> Table:
    members = view["members"]
    left = len(members) - SHOWN
    more = f", and {left} more" if left > 0 else ""
    table = slim_table(*_COLUMNS, title=f"members{more}")
    table.columns[1].justify = "left"
    # Columns that mostly have one and the same to say are there when they are needed.
    mixed = len(view["versions"]) > 1
    if mixed:
        table.add_column("version")
    troubled = any(map(_trouble, members))
    if troubled:
        table.add_column("trouble")
    for one in members[:SHOWN]:
        parts = [*_row(one), *([one["version"]] if mixed else [])]
        parts += [_trouble(one)] if troubled else []
        row = [Text(printable(part)) for part in parts]
        table.add_row(*row, style="" if one["report"] else "dim")
    return table


def _states_table(view: Mapping[str, Any]) -> Table:
    """The members that a broker has met, of which it knows no figures."""
    table = slim_table("member", "state", "version", "addresses", title="members")
    for column in table.columns:
        column.justify = "left"
    for one in view["members"][:SHOWN]:
        addresses = " ".join(one["addresses"])
        parts = (one["name"] or one["key"], one["state"], one["version"], addresses)
        table.add_row(*(Text(printable(part)) for part in parts))
    return table


def _trouble(one: Mapping[str, Any]) -> str:
    report = one["report"]
    return "" if report is None else ", ".join([*report["overload"], *report["troubles"]])


def _row(one: Mapping[str, Any]) -> list[str]:
    report = one["report"]
    silent = report is None and one["state"] == "alive"
    who = [one["name"] or one["key"], "no answer" if silent else one["state"]]
    if report is None:
        return [*who, *[""] * (len(_COLUMNS) - len(who))]
    return [
        *who,
        span_text(report["uptime_s"]),
        *(short_text(report[name]) for name in (*_FIGURES, "subscriptions")),
    ]
