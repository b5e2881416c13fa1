"""What a run of protocols of one's own leaves in memory, and the measures that all of them have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

import attrs
import numpy as np

from gossamer.sim.study.records import Measure, RunRecord, Table, by_message, measures_of
from gossamer.sim.study.watching import Course, Curve, Floats, ratio

# Before the names of logs, where they are tables.
LOG: Final = "log_"
MEASURES: Final = measures_of("""
    messages: messages | count | - | brief
        Messages that nodes took.
    size_bytes: bytes | count | - | brief
        Bytes of these messages, as declared.
    messages_per_node_and_round: messages a node and round | fine | - | brief
        Messages taken, for each node that was up in each round.
    bytes_per_node_and_second: bytes a node and second | fine | - | brief
        Bytes taken, for each second that a node was up.
    rounds_run: rounds | count | -
        Rounds that were run.
    population_final: nodes up at the end | count | -
        Nodes up at the end.
""")


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
        yield "rounds", self.rounds
        yield "messages", self.messages
        yield "nodes", self.nodes
        yield from ((f"{LOG}{name}", self.logs[name]) for name in sorted(self.logs))


CustomRunRecord: TypeAlias = RunRecord[CustomRecord]


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
        "by_message": by_message(record.messages, "count"),
        "bytes_by_message": by_message(record.messages, "size_bytes"),
        "stopped": record.stopped,
        "totals": dict(record.totals),
        "settings": dict(record.settings),
    }


OF_ALL: Final = ("round", "time_s", "population", "messages", "size_bytes")


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else float("nan")


# What a run of protocols of one's own was like, round by round, for whoever looks at it.


_RATES: Final = measures_of("""
    messages: messages a node and round | fine | -
        Taken, for each node up.
    size_bytes: bytes a node and round | fine | -
        Taken, for each node up.
""")


def course_of(rounds: Table, measures: Mapping[str, Any]) -> Course:
    """The course of a run, from its table of rounds.

    ``measures`` are those of protocols, by name, as the scenario in ``summary.json`` has them.
    """
    return Course(
        rounds=rounds["round"].astype(np.int64),
        time_s=rounds["time_s"].astype(np.float64),
        population=rounds["population"].astype(np.float64),
        curves=tuple(_curves(rounds, measures)),
    )


def _curves(rounds: Table, measures: Mapping[str, Any]) -> Iterator[Curve]:
    for name, column in rounds.items():
        if name not in OF_ALL:
            yield Curve(Measure(name, **measures[name]), column.astype(np.float64))
    for about in _RATES:
        yield Curve(about, _rate(rounds[about.key], rounds["population"]))


def _rate(sums: Any, population: Any) -> Floats:
    """What each round added for each node that was up when it began; NaN before the first."""
    return np.concatenate([[np.nan], ratio(np.diff(sums), population[:-1])])
