"""The workloads by name: from what a user asks for to tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import attrs

from gossamer.sim.errors import ScenarioError
from gossamer.sim.row_tables.table import RowTable
from gossamer.sim.studies.peers.inputs.scenario import Subscriptions
from gossamer.sim.study.scenario_format import check_keys
from gossamer.sim.study.scenarios import matches_type, to_whole

SECTION = "workload."
# Kinds that can be made from a file.
FROM_FILES = ("keywords", "quotes", "churn")
# Brokers of keywords, and microseconds of commuters, where nothing else is asked for.
BROKERS = 500
SPAN = 120 * 60 * 1_000_000
# Settings that seed and rows decide, by kind.
_DECIDED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "siena": ("seed",),
        "commuters": ("seed", "subscribers"),
        "keywords": ("keywords", "documents"),
    }
)


class RowWorkload(Protocol):
    """A workload that is made of row tables."""

    def tables(self) -> tuple[RowTable, ...]:
        """Its tables."""
        ...


@attrs.frozen(kw_only=True)
class WorkloadRequest:
    """What a user asks for.

    Attributes:
        seed: of all draws.
        subscriptions, events: rows; a kind that has its own numbers ignores them.
        source: a file that the workload is made from, where a kind needs one.
        settings: any others, by name.
    """

    seed: int = 1
    subscriptions: int = 100_000
    events: int = 100_000
    source: Path | None = None
    settings: Mapping[str, object] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        for name, least in (("seed", 0), ("subscriptions", 0), ("events", 0)):
            value = getattr(self, name)
            if not least <= value < 1 << 53:
                raise ScenarioError(None, f"--{name}", value, f"from {least} to 2^53")


def make_workload(kind: str, request: WorkloadRequest) -> RowWorkload:
    """The workload of a kind.

    Raises:
        ScenarioError: there is no such kind, or a setting is impossible.
        TraceError: the trace that churn is to be fitted to is impossible.
    """
    if kind not in KINDS:
        raise ScenarioError(None, "the kind of workload", kind, f"one of {', '.join(KINDS)}")
    if request.source is not None and kind not in FROM_FILES:
        expected = f"no file, which only {', '.join(FROM_FILES)} are made from"
        raise ScenarioError(None, "--from", str(request.source), expected)
    with _by_key(request):
        return KINDS[kind](request)


@contextmanager
def _by_key(request: WorkloadRequest, **keys: str) -> Iterator[None]:
    """Name what is impossible by its key and value among the settings, where it is one of them.

    Args:
        request: with the settings.
        keys: of settings, by the names that whoever refuses them has for them.
    """
    try:
        yield
    except ScenarioError as error:
        key = keys.get(error.field, error.field)
        if key == error.field and key not in request.settings:
            raise
        value = request.settings.get(key, error.value)
        raise ScenarioError(None, SECTION + key, value, error.expected) from error


def effective_settings(kind: str, request: WorkloadRequest) -> dict[str, Any]:
    """All settings of a workload by name: those asked for, and of the others the defaults.

    Of churn that is fitted to a trace, the trace decides all but the distribution.
    """
    return _defaults(kind, request) | dict(request.settings)


def _defaults(kind: str, request: WorkloadRequest) -> dict[str, Any]:
    """The settings of a kind but those that are decided otherwise, as they are by default."""
    from gossamer.sim.row_tables.quotes import QuoteRows
    from gossamer.sim.studies.dissemination.workload import Locality
    from gossamer.sim.studies.tree_brokers.commuters import Commuters
    from gossamer.sim.studies.tree_brokers.siena import Siena

    known: dict[str, type] = {
        "vinifera": Subscriptions,
        "siena": Siena,
        "covering": _Covering,
        "keywords": Locality,
        "commuters": Commuters,
        "quotes": QuoteRows,
        "churn": _Churn,
    }
    found = _settings_of(known[kind])
    if kind == "keywords" and request.source is None:
        found["brokers"] = BROKERS
    elif kind == "commuters":
        found["span"] = SPAN
    elif kind == "churn" and request.source is not None:
        found = {"distribution": found["distribution"]}
    return {name: value for name, value in found.items() if name not in _DECIDED.get(kind, ())}


def _settings_of(kind: type) -> dict[str, Any]:
    """The fields of an attrs class that are settings, with their defaults."""
    return {
        field.name: field.default
        for field in attrs.fields(kind)
        if isinstance(field.default, bool | int | float | str | tuple)
    }


def typed(
    kind: type, settings: Mapping[str, object], known: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The settings that are fields of an attrs class, checked against the types of its defaults.

    Args:
        kind: the class; fields without a default are not settings.
        settings: by name.
        known: further names that may be among the settings.

    Raises:
        ScenarioError: a setting is neither, or of another type than its default.
    """
    defaults = _settings_of(kind)
    check_keys(SECTION, settings, (*defaults, *known))
    found = {}
    for name, value in settings.items():
        if name not in defaults:
            continue
        default = defaults[name]
        given = tuple(value) if isinstance(value, list) else value
        given = to_whole(given) if type(default) is int else given
        if not matches_type(given, type(default)) or not _alike(given, default):
            expected = f"of the type of {default!r}"
            raise ScenarioError(None, SECTION + name, value, expected)
        found[name] = given
    return found


def _alike(given: object, default: object) -> bool:
    """Whether a list has as many numbers as its default; anything else passes."""
    if not isinstance(given, tuple) or not isinstance(default, tuple):
        return True
    numbers = all(isinstance(one, int | float) for one in given)
    return numbers and len(given) == len(default)


def _vinifera(request: WorkloadRequest) -> RowWorkload:
    from gossamer.sim.row_tables.vinifera import ViniferaRows

    check_keys(SECTION, request.settings, [field.name for field in attrs.fields(Subscriptions)])
    return ViniferaRows(
        seed=request.seed,
        subscriptions=request.subscriptions,
        events=request.events,
        spec=Subscriptions(**request.settings),  # type: ignore[arg-type]
    )


def _siena(request: WorkloadRequest) -> RowWorkload:
    from gossamer.sim.row_tables.subscriptions import SienaRows
    from gossamer.sim.studies.tree_brokers.siena import Siena

    spec = Siena(**(typed(Siena, request.settings) | {"seed": request.seed}))
    return SienaRows(subscriptions=request.subscriptions, events=request.events, spec=spec)


@attrs.frozen(kw_only=True)
class _Covering:
    """Settings of covering-degree workloads, see `row_tables.covering`."""

    degree: int = 30
    reach: float = 6.0


def _covering(request: WorkloadRequest) -> RowWorkload:
    from gossamer.sim.row_tables.subscriptions import CoveringRows
    from gossamer.sim.studies.tree_brokers.covering_workload import CoveringWorkload

    chosen = _Covering(**typed(_Covering, request.settings))
    roots = max(1, request.subscriptions // (chosen.degree + 1)) if chosen.degree >= 0 else 1
    spec = CoveringWorkload(roots=roots, degree=chosen.degree, seed=request.seed)
    return CoveringRows(spec=spec, events=request.events, reach=float(chosen.reach))


def _keywords(request: WorkloadRequest) -> RowWorkload:
    from gossamer.sim.row_tables.keywords import MOST_BROKERS, KeywordTables, make_keyword_rows
    from gossamer.sim.studies.dissemination.topologies import barabasi_albert
    from gossamer.sim.studies.dissemination.topology_files import read_topology
    from gossamer.sim.studies.dissemination.workload import Locality

    own = ("brokers",)
    chosen = typed(Locality, request.settings, own)
    brokers = request.settings.get("brokers", BROKERS)
    if type(brokers) is not int or not 3 <= brokers <= MOST_BROKERS:
        expected = f"a whole number from 3 to {MOST_BROKERS}"
        raise ScenarioError(None, SECTION + "brokers", brokers, expected)
    if request.source is not None:
        topology = read_topology(request.source)
    else:
        topology = barabasi_albert(brokers, seed=request.seed)
    locality = Locality(
        **({"keywords": request.subscriptions, "documents": request.events} | chosen)
    )
    return KeywordTables(spec=make_keyword_rows(topology.graph, locality, request.seed))


def _commuters(request: WorkloadRequest) -> RowWorkload:
    from gossamer.sim.row_tables.subscriptions import CommuterRows
    from gossamer.sim.studies.tree_brokers.commuters import Commuters
    from gossamer.sim.studies.tree_brokers.siena import Siena

    span = request.settings.get("span", SPAN)
    if type(span) is not int or span < 1:
        expected = "a whole number of microseconds above 0"
        raise ScenarioError(None, SECTION + "span", span, expected)
    chosen = typed(Commuters, request.settings, ("span",))
    chosen |= {"subscribers": max(request.subscriptions, 1), "seed": request.seed}
    spec = Commuters(content=Siena(seed=request.seed), **chosen)
    return CommuterRows(spec=spec, events=request.events, span=span)


def _quotes(request: WorkloadRequest) -> RowWorkload:
    from gossamer.sim.row_tables.quotes import QuoteRows, QuoteTables, source_of
    from gossamer.sim.studies.stock_quotes import make_quotes, read_quotes

    file = request.source
    quotes = make_quotes(10_000, request.seed) if file is None else read_quotes(file)
    source = source_of(quotes)
    spec = QuoteRows(source=source, seed=request.seed, **typed(QuoteRows, request.settings))
    return QuoteTables(subscriptions=request.subscriptions, events=request.events, spec=spec)


@attrs.frozen(kw_only=True)
class _Churn:
    """Settings of churn that is not fitted to a trace; guesses, see `churn.by_row`."""

    distribution: str = "weibull"
    days: float = 7.0
    session_s: float = 14_400.0
    absence_s: float = 28_800.0
    session_shape: float = 0.6
    absence_shape: float = 0.6
    rhythm: float = 0.0
    peak_s: float = 0.0
    crowd_nodes: int = 0
    crowd_at_s: float = 86_400.0
    crowd_within_s: float = 3_600.0


def _churn(request: WorkloadRequest) -> RowWorkload:
    from gossamer.sim.churn import FlashCrowd, Pareto, Weibull, read_trace
    from gossamer.sim.churn.by_row import ChurnByRow, fit_churn
    from gossamer.sim.row_tables.vinifera import ChurnRows

    chosen = _Churn(**typed(_Churn, request.settings))
    if request.source is not None:
        check_keys(SECTION, request.settings, ["distribution"])  # the trace tells the others
        spec = fit_churn(read_trace(request.source), request.seed, chosen.distribution)
        return ChurnRows(spec=spec)
    if chosen.distribution not in ("weibull", "pareto"):
        expected = "weibull or pareto"
        raise ScenarioError(None, SECTION + "distribution", chosen.distribution, expected)
    kind = Weibull if chosen.distribution == "weibull" else Pareto
    with _by_key(request, mean_s="session_s", shape="session_shape"):
        sessions = kind(chosen.session_s, chosen.session_shape)
    with _by_key(request, mean_s="absence_s", shape="absence_shape"):
        absences = kind(chosen.absence_s, chosen.absence_shape)
    with _by_key(request, nodes="crowd_nodes", at_s="crowd_at_s", within_s="crowd_within_s"):
        crowd = (
            FlashCrowd(
                nodes=max(chosen.crowd_nodes, 1),
                at_s=chosen.crowd_at_s,
                within_s=chosen.crowd_within_s,
                stay=sessions,
            ),
        )
    with _by_key(request, duration_s="days"):
        spec = ChurnByRow(
            seed=request.seed,
            nodes=request.subscriptions,
            duration_s=chosen.days * 86_400.0,
            sessions=sessions,
            absences=absences,
            rhythm=chosen.rhythm,
            peak_s=chosen.peak_s,
            crowds=crowd if chosen.crowd_nodes else (),
        )
    return ChurnRows(spec=spec)


KINDS: Mapping[str, Callable[[WorkloadRequest], RowWorkload]] = MappingProxyType(
    {
        "vinifera": _vinifera,
        "siena": _siena,
        "covering": _covering,
        "keywords": _keywords,
        "commuters": _commuters,
        "quotes": _quotes,
        "churn": _churn,
    }
)
