"""The table [network] of a scenario: latency, loss, partitions and bandwidth."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

import attrs
import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.draws import mix_many
from gossamer.sim.engine.latency import (
    FASTEST,
    LARGEST_QUEUE,
    Bandwidth,
    Latency,
    Sizes,
    constant_latency,
    lognormal_latency,
    make_bandwidth,
    no_latency,
    uniform_latency,
)
from gossamer.sim.engine.latency_files.matrices import FORMS
from gossamer.sim.engine.latency_files.site_latency import (
    DRAWN,
    MODELS,
    PLACINGS,
    SiteFile,
    site_latency,
)
from gossamer.sim.engine.link_conditions import LossPeriod, Partition
from gossamer.sim.errors import ScenarioError
from gossamer.sim.study.scenario_format import require_table, section_of
from gossamer.sim.study.scenarios import (
    check,
    number_field,
    of_type,
    one_of,
    share_field,
    to_float,
    to_path,
    whole_field,
)

LATENCIES: Final = ("none", "constant", "uniform", "lognormal", *MODELS)
USUAL_SIGMA: Final = 0.5
# Keys of [network] that are paths.
FILES: Final = MODELS
_LONGEST_S: Final = 1e9


def _seconds() -> Any:
    expected = f"a time from 0 to {_LONGEST_S:.0f} s"
    return number_field(expected, lambda time_s: 0 <= time_s <= _LONGEST_S, default=attrs.NOTHING)


def _to_shares(value: Any) -> Any:
    return tuple(to_float(share) for share in value) if isinstance(value, list | tuple) else value


@attrs.frozen(kw_only=True)
class PartitionPeriod:
    """A time during which messages between groups of nodes do not arrive.

    Attributes:
        begin_s, end_s: from when to when, the end excluded.
        shares: of the nodes in each group but the last, which has the rest.
        by: the attribute whose values are the groups, in place of shares.
    """

    section: ClassVar[str] = "network.partition."

    begin_s: float = _seconds()
    end_s: float = _seconds()
    shares: tuple[float, ...] = attrs.field(default=(), converter=_to_shares)
    by: str | None = attrs.field(
        default=None, validator=of_type(str, "the name of an attribute", optional=True)
    )

    def __attrs_post_init__(self) -> None:
        _check_period(self)
        shares = self.shares
        fits = isinstance(shares, tuple) and all(type(x) is float and 0 < x < 1 for x in shares)
        expected = "a list of shares above 0, of which at most 1 in all"
        check(fits and sum(shares) <= 1, f"{self.section}shares", shares, expected)
        expected = 'either shares, such as [0.5], or "by" with the name of an attribute'
        one = (self.by is None) == bool(shares)
        check(one, f"{self.section}shares", list(shares), expected)


@attrs.frozen(kw_only=True)
class LossSchedule:
    """A time during which another share of messages is lost.

    Attributes:
        begin_s, end_s: from when to when, the end excluded.
        loss: share of the messages that are sent meanwhile.
    """

    section: ClassVar[str] = "network.loss_period."

    begin_s: float = _seconds()
    end_s: float = _seconds()
    loss: float = number_field(
        "a share from 0 to 1", lambda share: 0 <= share <= 1, default=attrs.NOTHING
    )

    def __attrs_post_init__(self) -> None:
        _check_period(self)


def _check_period(period: PartitionPeriod | LossSchedule) -> None:
    expected = f"a time after begin_s, which is {period.begin_s!r}"
    check(period.begin_s < period.end_s, f"{period.section}end_s", period.end_s, expected)


def _periods(name: str, kind: type) -> Any:
    """A field of several tables [[network.<name>]]."""

    def convert(given: Any) -> Any:
        if not isinstance(given, list | tuple):
            expected = f"one [[network.{name}]] table per period"
            raise ScenarioError(None, f"network.{name}", given, expected)
        return tuple(_period(name, kind, entry) for entry in given)

    return attrs.field(default=(), converter=convert)


def _period(name: str, kind: type, entry: Any) -> Any:
    if not isinstance(entry, kind):
        require_table(entry, f"[network.{name}]")
    return section_of(f"network.{name}", kind, entry)


Rate = float | str | tuple[float, ...] | None


def _to_rate(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(to_float(rate) for rate in value)
    return to_float(value)


def _check_rate(_instance: Any, attribute: Any, value: Any) -> None:
    rates = value if isinstance(value, tuple) else (value,)
    fits = all(type(rate) is float and 1 <= rate <= FASTEST for rate in rates)
    fits = (fits and len(rates) > 0) or isinstance(value, str) or value is None
    shown = list(value) if isinstance(value, tuple) else value
    expected = (
        f"bytes a second from 1 to {FASTEST}, a list of such to draw from, "
        "or the name of an attribute"
    )
    check(fits, f"network.{attribute.name}", shown, expected)


def _queue() -> Any:
    return whole_field(0, LARGEST_QUEUE, optional=True, default=None)


def _a_file(what: str) -> Any:
    return of_type(Path, f"the path of {what}, as text", optional=True)


@attrs.frozen(kw_only=True)
class Link:
    """What the network does to messages; the cycle engine knows only capacity and failures.

    Attributes:
        latency: one of LATENCIES.
        latency_s: the constant, the mean of the uniform (from half of it to one and a half), or the
            median of the log-normal.
        latency_sigma: standard deviation of the logarithm of the log-normal; None for USUAL_SIGMA.
        matrix: path of a matrix of latencies, see `latency_files.matrices`.
        matrix_form: "full", "triangular" or "pairs"; None tells it by the lines.
        topology: path of a BRITE, GT-ITM, GraphML or GML file, see `latency_files.topologies`.
        edge_latency: the field of its links, of GraphML and GML files, that is their latency.
        coordinates: path of coordinates of sites, see `latency_files.coordinates`.
        unit_s: seconds that 1 in any of these files stands for.
        access_s: seconds between a node and its site, at either end.
        placing: of nodes at the sites of these files, "drawn" or "in order".
        loss: share of messages lost.
        loss_period: when another share is.
        duplication: share of messages that arrive twice.
        partition: when groups of nodes are parted.
        up_rate, down_rate: bytes a second that a node sends and takes; a list of such to draw each
            node's from, or the name of an attribute; None no limit.
        up_queue, down_queue: bytes that wait for it at most, the rest is lost; None no bound.
        event_capacity: events that a node takes in a round, the rest is dropped; None no limit.
        reports_unreachable: whether a sender learns that a peer is gone, as over TCP.
    """

    section: ClassVar[str] = "network."

    latency: str = attrs.field(default="none", validator=one_of(*LATENCIES))
    latency_s: float = number_field(
        "a time from 0 to 1000000 s", lambda time_s: 0 <= time_s <= 1e6, default=0.0
    )
    latency_sigma: float | None = number_field(
        "a number from 0 to 5", lambda sigma: 0 <= sigma <= 5, default=None, optional=True
    )
    matrix: Path | None = attrs.field(
        default=None, converter=to_path, validator=_a_file("a latency matrix")
    )
    matrix_form: str | None = attrs.field(
        default=None, validator=attrs.validators.optional(one_of(*FORMS))
    )
    topology: Path | None = attrs.field(
        default=None, converter=to_path, validator=_a_file("a topology")
    )
    edge_latency: str | None = attrs.field(
        default=None, validator=of_type(str, "the name of a field of links", optional=True)
    )
    coordinates: Path | None = attrs.field(
        default=None, converter=to_path, validator=_a_file("coordinates of sites")
    )
    unit_s: float = number_field(
        "a time above 0, at most 1000 s", lambda time_s: 0 < time_s <= 1e3, default=0.001
    )
    access_s: float = number_field(
        "a time from 0 to 1000 s", lambda time_s: 0 <= time_s <= 1e3, default=0.0
    )
    placing: str = attrs.field(default=DRAWN, validator=one_of(*PLACINGS))
    loss: float = number_field("a share from 0, below 1", lambda share: 0 <= share < 1, default=0.0)
    loss_period: tuple[LossSchedule, ...] = _periods("loss_period", LossSchedule)
    duplication: float = share_field(0.0)
    partition: tuple[PartitionPeriod, ...] = _periods("partition", PartitionPeriod)
    up_rate: Rate = attrs.field(default=None, converter=_to_rate, validator=_check_rate)
    down_rate: Rate = attrs.field(default=None, converter=_to_rate, validator=_check_rate)
    up_queue: int | None = _queue()
    down_queue: int | None = _queue()
    event_capacity: int | None = whole_field(1, 1_000_000_000, optional=True, default=None)
    reports_unreachable: bool = attrs.field(default=True, validator=of_type(bool, "true or false"))

    def __attrs_post_init__(self) -> None:
        for model in MODELS:
            check(
                (self.latency == model) == (getattr(self, model) is not None),
                f"network.{model}",
                getattr(self, model),
                f'a file exactly if network.latency is "{model}"',
            )
        for name, model in (
            ("latency_sigma", "lognormal"),
            ("matrix_form", "matrix"),
            ("edge_latency", "topology"),
        ):
            value = getattr(self, name)
            expected = f'left out, as network.latency is not "{model}"'
            check(value is None or self.latency == model, f"network.{name}", value, expected)
        for name in ("up", "down"):
            queue = getattr(self, f"{name}_queue")
            expected = f"left out, as there is no network.{name}_rate"
            limited = getattr(self, f"{name}_rate") is not None
            check(queue is None or limited, f"network.{name}_queue", queue, expected)

    @property
    def attributes(self) -> Mapping[str, str]:
        """By field, the attributes of nodes that it names."""
        named = {f"network.{way}": getattr(self, way) for way in ("up_rate", "down_rate")}
        parted = next((part.by for part in self.partition if part.by), None)
        named["network.partition.by"] = parted
        return {field: name for field, name in named.items() if isinstance(name, str)}

    @property
    def takes_time(self) -> bool:
        """Whether bandwidth is limited."""
        return self.up_rate is not None or self.down_rate is not None


# What an engine in cycles does not know, and what each field then has to be.
ABSENT_IN_PHASES: Final[Mapping[str, object]] = {"latency": "none"} | dict.fromkeys(
    ("up_rate", "down_rate")
)
ABSENT_IN_CYCLES: Final[Mapping[str, object]] = {
    **ABSENT_IN_PHASES,
    "loss": 0.0,
    "duplication": 0.0,
    "loss_period": (),
    "partition": (),
}


def check_absent(link: Link, engine: str, absent: Mapping[str, object]) -> None:
    """Refuse what an engine would pass over in silence; raises `ScenarioError`."""
    for field, expected in absent.items():
        value = getattr(link, field)
        shown = f"{len(value)} periods" if isinstance(value, tuple) else None
        told = "left out" if expected in (None, ()) else repr(expected)
        if value != expected:
            told += f' in the {engine} engine (engine = "event" knows more)'
            raise ScenarioError(None, f"network.{field}", value, told, shown)


# The engines' links, made of the table [network] of a scenario.


TICKS_A_SECOND: Final = 1000
Attributes = Mapping[str, npt.NDArray[Any]]

_PARTED, _UP, _DOWN = 0x7061727465, 0x7570, 0x646F776E
_ONE: Final = float(1 << 62)


def make_latency(link: Link, nodes: int, seed: int) -> Latency:
    """The model of latency of a scenario, in ticks of a millisecond; raises `ScenarioError`."""
    ticks = round(link.latency_s * TICKS_A_SECOND)
    if link.latency == "constant":
        return constant_latency(ticks)
    if link.latency == "uniform":
        return uniform_latency(ticks - ticks // 2, ticks + ticks // 2)
    if link.latency == "lognormal":
        sigma = USUAL_SIGMA if link.latency_sigma is None else link.latency_sigma
        return lognormal_latency(ticks, sigma)
    if link.latency in MODELS:
        file = SiteFile(
            model=link.latency,
            path=Path(getattr(link, link.latency)),
            unit_s=link.unit_s,
            access_s=link.access_s,
            placing=link.placing,
            form=link.matrix_form,
            edge_latency=link.edge_latency,
        )
        return site_latency(file, nodes, seed)
    return no_latency()


def loss_periods(link: Link) -> list[LossPeriod]:
    """When another share of messages is lost."""
    return [
        LossPeriod(_tick(one.begin_s), _tick(one.end_s), one.loss)
        for one in link.loss_period
        if _tick(one.begin_s) < _tick(one.end_s)
    ]


def partitions(link: Link, nodes: int, seed: int, attributes: Attributes) -> list[Partition]:
    """When nodes are parted, and into which groups.

    Raises:
        ScenarioError: an attribute is named that there is not.
    """
    found = []
    for place, one in enumerate(link.partition):
        if one.by is not None:
            values = _attribute("network.partition.by", one.by, attributes)
            groups = np.unique(values, return_inverse=True)[1]
        else:
            drawn = mix_many(seed, np.arange(nodes), _PARTED + place) / _ONE
            groups = np.searchsorted(np.cumsum(one.shares), drawn, "right")
        if _tick(one.begin_s) < _tick(one.end_s):
            found.append(Partition(_tick(one.begin_s), _tick(one.end_s), groups))
    return found


def bandwidth(link: Link, nodes: int, seed: int, sizes: Sizes, attributes: Attributes) -> Bandwidth:
    """The nodes' links into the network.

    Raises:
        ScenarioError: an attribute is named that there is not, or a node's is no possible rate.
    """
    return make_bandwidth(
        nodes,
        sizes,
        up=_rates("network.up_rate", link.up_rate, nodes, seed, _UP, attributes),
        down=_rates("network.down_rate", link.down_rate, nodes, seed, _DOWN, attributes),
        up_queue=link.up_queue,
        down_queue=link.down_queue,
    )


def _rates(
    field: str, rate: Rate, nodes: int, seed: int, stream: int, attributes: Attributes
) -> npt.NDArray[np.int64] | None:
    if rate is None:
        return None
    if isinstance(rate, str):
        values = np.asarray(_attribute(field, rate, attributes), np.float64)
        wrong = values[~((values >= 1) & (values <= FASTEST))]
        if wrong.size:
            expected = f"bytes a second from 1 to {FASTEST} at every node"
            found = f"an attribute with the value {wrong[0]:g}"
            raise ScenarioError(None, f"{field}, {rate}", rate, expected, found)
    elif isinstance(rate, tuple):
        drawn = mix_many(seed, np.arange(nodes), stream) / _ONE
        values = np.array(rate)[np.minimum((drawn * len(rate)).astype(np.int64), len(rate) - 1)]
    else:
        values = np.full(nodes, rate)
    return np.floor(values).astype(np.int64)


def _attribute(field: str, name: str, attributes: Attributes) -> npt.NDArray[Any]:
    if name not in attributes:
        known = ", ".join(attributes) or "none, as the scenario has no [attributes]"
        raise ScenarioError(None, field, name, f"one of {known}", found=f"no attribute ({name})")
    return attributes[name]


def _tick(time_s: float) -> int:
    return int(np.floor(time_s * TICKS_A_SECOND))
