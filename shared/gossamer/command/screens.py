"""What `gossamer` prints of itself: its first screen, and the list of its commands."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint
from pathlib import Path
from types import MappingProxyType
from typing import Final

_ABOUT: Final = "content-based publish/subscribe overlays, simulated and real"

# Commands by heading, each with what it does; those of other distributions come last.
HEADINGS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "Nodes, simulations and results:": {
            "node": "make and run peers and brokers: init, run, join, status, ...",
            "sim": "simulate up to a million nodes: run, check, replay, compare, ...",
            "spark": "workloads, sweeps and results of any size (extra 'spark')",
        },
        "Events, through a node of this machine:": {
            "sub": "print the events that match an expression",
            "pub": "publish events",
            "request": "publish a request, and print the replies to it",
            "reply": "reply to requests that match an expression",
            "top": "watch a running node, or the whole cluster",
        },
        "Named clients of a broker:": {
            "advertise": "announce what a client will publish",
            "unsub": "take back a subscription",
            "batch": "carry out a file of operations",
        },
        "This command line:": {
            "help": "explain a command, such as 'gossamer help sim run'",
            "completion": "print a script by which bash, zsh or fish complete commands",
        },
    }
)
_OTHERS: Final = "Installed beside it:"
_DESCRIPTIONS: Final = {
    name: about for commands in HEADINGS.values() for name, about in commands.items()
}

_TRACE: Final = "traces/flash_crowd.avt.gz"
_FIRST_SCREEN: Final = """\
gossamer {version}: {about}.

Run a cluster of three peers on this machine:
  gossamer node init demo --peers 3
  gossamer node run demo/peer1 demo/peer2 demo/peer3

Subscribe at one peer and publish at another, each in a terminal of its own:
  gossamer sub --folder demo/peer2 'price > 80'
  gossamer pub --folder demo/peer3 symbol=IBM price=81.5 volume=100

Simulate 1,000 nodes; tables, plots and a report go to results/:
  gossamer sim run --nodes 1000

Replay a churn trace:
  gossamer sim replay {trace}

Crunch the results of many runs into measures with intervals, with Spark:
  gossamer spark crunch results --out measures

'gossamer help' lists all commands, 'gossamer help sim run' explains one.
"""


def first_screen(version: str) -> str:
    """What people do with it, each with a command to type."""
    trace = _TRACE if Path(_TRACE).is_file() else "TRACE"
    return _FIRST_SCREEN.format(version=version, about=_ABOUT, trace=trace)


def help_text(commands: Mapping[str, EntryPoint]) -> str:
    """The text of ``gossamer help``: what is installed, under headings."""
    installed = {name: description(point) for name, point in commands.items()}
    sections = {
        heading: {name: about for name, about in known.items() if name in ("help", *installed)}
        for heading, known in HEADINGS.items()
    }
    sections[_OTHERS] = {
        name: about for name, about in installed.items() if name not in _DESCRIPTIONS
    }
    width = max(map(len, ("help", *installed)))
    lines = [
        "Usage: gossamer COMMAND [ARGUMENTS]...",
        "       gossamer [help [COMMAND]... | --help | --version]",
        "",
        f"{_ABOUT[0].upper()}{_ABOUT[1:]}.",
    ]
    for heading, known in sections.items():
        if known:
            lines += ["", heading]
            lines += [f"  {name:<{width}}  {about}" for name, about in known.items()]
    return "\n".join([*lines, "", "'gossamer COMMAND --help' explains a command."])


def description(point: EntryPoint) -> str:
    """What a subcommand does, in a line."""
    if point.name in _DESCRIPTIONS:
        return _DESCRIPTIONS[point.name]
    return f"from {point.dist.name}" if point.dist is not None else ""
