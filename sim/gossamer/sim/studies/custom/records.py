"""What a run of protocols of one's own leaves in memory, and the measures that all of them have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs
import numpy as np
import numpy.typing as npt

from gossamer.sim.study.records import Measure, Table
from gossamer.sim.study.watching import NODE, Course, Curve, Floats, Overlay, links_table, ratio

# Before the names of logs, where they are tables.
LOG: Final = "log_"
MEASURES: Final = (
    Measure("messages", "messages", "count", None, "Messages that nodes took.", brief=True),
    Measure(
        "size_bytes", "bytes", "count", None, "Bytes of these messages, as declared.", brief=True
    ),
    Measure(
        "messages_per_node_and_round",
        "messages a node and round",
        "fine",
        None,
        "Messages taken, for each node that was up in each round.",
        brief=True,
    ),
    Measure(
        "bytes_per_node_and_second",
        "bytes a node and second",
        "fine",
        None,
        "Bytes taken, for each second that a node was up.",
        brief=True,
    ),
    Measure("rounds_run", "rounds", "count", None, "Rounds that were run."),
    Measure("population_final", "nodes up at the end", "count", None, "Nodes up at the end."),
)


@attrs.frozen(kw_only=True, eq=False)
class CustomRecord:
    """What one system of a run leaves.

    Attributes:
        name: of the system.
        settings: of its protocol, with the protocol's name.
        rounds: a row before the first round and after each: round, time_s, population, messages
            and size_bytes so far, and a column for each measure.
        messages: a row for each message: its name, how many were taken, and their bytes.
        nodes: a row for each node: whether it is up, and the bytes that it sent and received.
        logs: by message that nodes logged, a row for each entry: round, time_s, node, and its
            fields.
        totals: what became of messages.
        stopped: why an observer ended the run, if one did.
    """

    name: str
    settings: Mapping[str, Any]
    rounds: Table
    messages: Table
    nodes: Table
    logs: Mapping[str, Table]
    totals: Mapping[str, int | float]
    stopped: str | None

    def tables(self) -> Iterator[tuple[str, Table]]:
        """Every table with its name, always in the same order."""
        yield "rounds", self.rounds
        yield "messages", self.messages
        yield "nodes", self.nodes
        yield from ((f"{LOG}{name}", self.logs[name]) for name in sorted(self.logs))


@attrs.frozen(kw_only=True, eq=False)
class CustomRunRecord:
    """A finished run, see `gossamer.sim.study.contract.RunRecord`."""

    scenario: Mapping[str, Any]
    scenario_text: str
    seed: int
    versions: Mapping[str, str]
    wall_s: float
    peak_rss_bytes: int
    systems: Mapping[str, CustomRecord]


def summarise_system(record: CustomRecord) -> dict[str, Any]:
    """The entry of ``summary.json``: measures after the last round."""
    rounds = record.rounds
    run = len(rounds["round"]) - 1
    up = float(rounds["population"][:-1].sum())
    round_s = float(rounds["time_s"][-1]) / run if run else float("nan")
    messages, size = int(rounds["messages"][-1]), int(rounds["size_bytes"][-1])
    known = {
        "messages": messages,
        "size_bytes": size,
        "messages_per_node_and_round": _ratio(messages, up),
        "bytes_per_node_and_second": _ratio(size, up * round_s),
        "rounds_run": run,
        "population_final": int(rounds["population"][-1]),
    }
    own = [name for name in rounds if name not in OF_ALL]
    return {
        **{name: float(rounds[name][-1]) for name in own},
        **known,
        "by_message": dict(
            zip(record.messages["message"].tolist(), record.messages["count"].tolist(), strict=True)
        ),
        "bytes_by_message": sizes_by_message(record),
        "stopped": record.stopped,
        "totals": dict(record.totals),
        "settings": dict(record.settings),
    }


def sizes_by_message(record: CustomRecord) -> dict[str, int]:
    """By message, the bytes that were taken of it."""
    table = record.messages
    return dict(zip(table["message"].tolist(), table["size_bytes"].tolist(), strict=True))


OF_ALL: Final = ("round", "time_s", "population", "messages", "size_bytes")


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else float("nan")


def message_table(messages: Mapping[str, int], size_bytes: Mapping[str, int]) -> Table:
    """The table of messages."""
    names = sorted(messages)
    return {
        "message": np.array(names, dtype=f"<U{max([1, *map(len, names)])}"),
        "count": np.array([messages[name] for name in names], np.int64),
        "size_bytes": np.array([size_bytes[name] for name in names], np.int64),
    }


# What a run of protocols of one's own was like, round by round, for whoever looks at it.


_RATES: Final = {
    "messages": Measure(
        "messages", "messages a node and round", "fine", None, "Taken, for each node up."
    ),
    "size_bytes": Measure(
        "size_bytes", "bytes a node and round", "fine", None, "Taken, for each node up."
    ),
}


def course_of(rounds: Table, measures: Mapping[str, Any]) -> Course:
    """The course of a run, from its table of rounds.

    Args:
        rounds: see `CustomRecord`.
        measures: of protocols, by name, as the scenario in ``summary.json`` has them.
    """
    return Course(
        rounds=rounds["round"].astype(np.int64),
        time_s=rounds["time_s"].astype(np.float64),
        population=rounds["population"].astype(np.float64),
        curves=tuple(_curves(rounds, measures)),
    )


def overlay_of(
    links: Mapping[str, npt.NDArray[np.int64]], alive: npt.NDArray[np.bool_]
) -> Overlay | None:
    """The overlay of the nodes that are up; None where nobody says what a link is.

    Args:
        links: pairs of rows by kind, int64[m, 2].
        alive: bool[n].
    """
    if not links:
        return None
    kinds = np.repeat(np.arange(len(links)), [len(pairs) for pairs in links.values()])
    pairs = np.concatenate(list(links.values()))
    up = alive[pairs].all(axis=1)
    return Overlay(
        nodes={NODE: np.flatnonzero(alive).astype(np.int32)},
        links=links_table(pairs[up, 0], pairs[up, 1], kinds[up]),
        kinds=tuple(links),
    )


def _curves(rounds: Table, measures: Mapping[str, Any]) -> Iterator[Curve]:
    for name, column in rounds.items():
        if name not in OF_ALL:
            yield Curve(Measure(name, **measures[name]), column.astype(np.float64))
    for name, about in _RATES.items():
        yield Curve(about, _rate(rounds[name], rounds["population"]))


def _rate(sums: Any, population: Any) -> Floats:
    """What each round added for each node that was up when it began; NaN before the first."""
    return np.concatenate([[np.nan], ratio(np.diff(sums), population[:-1])])
