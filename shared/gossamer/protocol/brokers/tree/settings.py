"""Settings of a broker: which covering, the figures of both papers; statistics of publications.

The covering modes are configurations of the same rules (`COVERINGS`). "Selective paper" and
"incremental paper" are Chen et al., *Congestion avoidance with selective filter aggregation* and
*... with incremental filter aggregation in content-based routing networks*. Times are integer
microseconds; a default either cites a paper or says that it is a guess.
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import Final

from attrs import field, frozen

from gossamer.protocol.brokers.core.messages import Id
from gossamer.protocol.kernel.errors import ConfigError

SECOND: Final = 1_000_000


class Pruning(Enum):
    """How much of a subscription's tree an unsubscription takes down."""

    NONE = "none"
    SELECTIVE = "selective"
    INCREMENTAL = "incremental"
    PACED = "paced"


@frozen
class Covering:
    """What covering does.

    Attributes:
        quench: a subscription is not sent where one that covers it was.
        clean: what was sent is taken back when one that covers it is sent.
        pack: subscriptions and unsubscriptions of one step share a message.
        pruning: whether unsubscriptions leave a part of the tree standing.
    """

    quench: bool
    clean: bool = False
    pack: bool = False
    pruning: Pruning = Pruning.NONE


COVERINGS: Final = {
    "off": Covering(quench=False),
    "lazy": Covering(quench=True),
    "active": Covering(quench=True, clean=True),
    "packed": Covering(quench=True, clean=True, pack=True),
    "selective": Covering(quench=True, clean=True, pruning=Pruning.SELECTIVE),
    "incremental": Covering(quench=True, clean=True, pruning=Pruning.INCREMENTAL),
    "paced": Covering(quench=True, clean=True, pruning=Pruning.PACED),
}
"""Off; the algorithms of selective paper, Sec. V-A; those of both papers' Sec. IV; and one that
goes beyond them (`covering`)."""

BELOW, AT_MOST = "below", "at_most"
CRITICAL_RULES: Final = (BELOW, AT_MOST)
"""How far away the critical broker of selective pruning is, see `TreeSettings.critical_rule`."""

TRIGGERED, QUENCHED = "triggered", "quenched"
DISPLACED: Final = (TRIGGERED, QUENCHED)
"""What the incremental algorithm counts at a broker, see `TreeSettings.displaced`."""


_FROM_ONE_ON: Final = (
    *("statistics_window", "statistics_entries", "release_interval", "release_batch"),
    *("release_delay", "review_interval", "acknowledge_every", "acknowledge_interval"),
)


@frozen(kw_only=True)
class TreeSettings:
    """What a broker is told.

    Attributes:
        covering: a key of `COVERINGS`.
        similarity: threshold of selective pruning; 90 % (selective paper, Sec. V-A).
        critical_rule: the critical distance of selective pruning. "below": "if the distance value
            of more than 85 percent of the publications from A is less than 7, then the critical
            broker of A is 7 hops away" (selective paper, Sec. IV-B). "at_most": the share "less
            than or equal to x" (incremental paper, Sec. IV-B), a hop nearer. The default is
            "at_most": by the successor's equation 3 that share is the similarity at the broker x
            hops away, so the threshold is kept there and fewer subscriptions are triggered.
        displaced: what the incremental algorithm counts when a subscription S goes, S-bar.
            "triggered": "we use S-bar to denote subscriptions that are triggered by S"
            (incremental paper, Sec. I). "quenched": "the subscriptions quenched by S, denoted as
            S-bar" (Sec. III-B). The default is "quenched": these are what the broker has to
            examine again if S goes, and where interests overlap they are many although few of
            them are triggered, so that counting the latter would hardly ever prune. It also
            decides what `drop_unpaid` takes for needless: what would displace nothing.
        small_count: largest *count* that still means that nothing will be triggered, so that an
            unsubscription goes everywhere; the paper says "a small value" (Sec. IV-B), this is a
            guess.
        many_similarity, many_triggered: threshold where at least that many subscriptions are
            triggered; 60 % from lg M = 3.7 (incremental paper, Sec. IV-C).
        some_similarity, some_triggered: the same from lg M = 1, 90 %; below, nothing is preserved.
        statistics_window: for how long a publication counts in statistics; the papers say
            "configurable", this is a guess.
        statistics_entries: most publications in a broker's statistics; the papers' largest
            database had about 28,000 (incremental paper, Sec. V-A2).
        congested_queue: input queue, in messages, above which a broker is congested and holds
            unsubscriptions back (incremental paper, Sec. IV); a guess.
        release_interval: between two of them when it no longer is; a guess. Paced pruning also
            looks that often whether it may go on.
        release_batch: subscriptions that paced pruning sends a neighbour at first before that has
            acknowledged them; a guess.
        release_delay: how long they may take until they are acknowledged. Batches grow and shrink
            by it, so that publications wait about as long behind those of a link. A guess.
        drop_unpaid: beyond the papers: give up aggregates that are kept for nobody, or that bring
            more false positives than the thresholds allow.
        review_interval: between two looks at the aggregates kept; a guess.
        review_arrivals: publications that an aggregate has to bring before it may be given up; a
            guess.
        retained_publications: publications for a neighbour that are kept until it acknowledges
            them, so that none is lost when a link or a broker fails; 0: none, and no
            acknowledgements.
        acknowledge_every: publications after which a neighbour gets an acknowledgement.
        acknowledge_interval: longest time until it gets one.
    """

    covering: str = "active"
    similarity: float = 0.9
    critical_rule: str = AT_MOST
    displaced: str = QUENCHED
    small_count: int = 0
    many_similarity: float = 0.6
    many_triggered: int = 5012
    some_similarity: float = 0.9
    some_triggered: int = 10
    statistics_window: int = 600 * SECOND
    statistics_entries: int = 28_000
    congested_queue: int = 100
    release_interval: int = SECOND // 10
    release_batch: int = 4
    release_delay: int = SECOND // 10
    drop_unpaid: bool = True
    review_interval: int = 10 * SECOND
    review_arrivals: int = 20
    retained_publications: int = 0
    acknowledge_every: int = 32
    acknowledge_interval: int = SECOND
    rules: Covering = field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        if self.covering not in COVERINGS:
            choices = ", ".join(COVERINGS)
            raise ConfigError("broker.covering", self.covering, f"one of {choices}")
        self._check_one_of("critical_rule", CRITICAL_RULES)
        self._check_one_of("displaced", DISPLACED)
        for name in ("similarity", "many_similarity", "some_similarity"):
            self._check(name, 0.0, 1.0)
        self._check("small_count", 0, None)
        self._check("some_triggered", 1, None)
        self._check("many_triggered", self.some_triggered, None)
        for name in ("congested_queue", "retained_publications", "review_arrivals"):
            self._check(name, 0, None)
        for name in _FROM_ONE_ON:
            self._check(name, 1, None)
        object.__setattr__(self, "rules", COVERINGS[self.covering])

    def _check_one_of(self, name: str, choices: tuple[str, ...]) -> None:
        value = getattr(self, name)
        if value not in choices:
            raise ConfigError(f"broker.{name}", value, f"one of {', '.join(choices)}")

    def _check(self, name: str, low: float, high: float | None) -> None:
        value = getattr(self, name)
        whole = isinstance(low, int)
        fits = isinstance(value, int) if whole else isinstance(value, int | float)
        if (
            fits
            and not isinstance(value, bool)
            and low <= value
            and (high is None or value <= high)
        ):
            return
        sort = "a whole number" if whole else "a number"
        expected = f"{sort} of at least {low}" if high is None else f"{sort} from {low} to {high}"
        raise ConfigError(f"broker.{name}", value, expected)


# Statistics of publications at the subscriber host broker (both papers, Sec. IV-A).
#
# Departs from the papers: the publication's identifier is not stored, since no rule asks for it.


@frozen
class Record:
    """A row of Table I: a publication that matched a subscription, and its header on arrival."""

    time: int
    advertisement: Id
    distance: int
    count: int


class Statistics:
    """A sliding window of records, bounded in time (microseconds) and in number."""

    def __init__(self, window: int, most: int) -> None:
        self._window = window
        self._most = most
        self._records: dict[Id, deque[Record]] = {}
        self._size = 0
        # Times and subscriptions of all records, and of some that are purged.
        self._order: deque[tuple[int, Id]] = deque()

    def __len__(self) -> int:
        return self._size

    def record(self, subscription: Id, row: Record) -> None:
        """Remember a publication; the oldest makes room where the window is full."""
        self._records.setdefault(subscription, deque()).append(row)
        self._order.append((row.time, subscription))
        self._size += 1
        self.expire(row.time)

    def expire(self, now: int) -> None:
        """Forget what is older than the window, and the oldest of what is too many."""
        while self._order and (self._order[0][0] < now - self._window or self._size > self._most):
            _, subscription = self._order.popleft()
            records = self._records.get(subscription)
            if records is not None:  # else purged
                records.popleft()
                self._size -= 1
                if not records:
                    del self._records[subscription]

    def purge(self, subscription: Id) -> None:
        """Forget a subscription that is unsubscribed; its identifier never comes again."""
        self._size -= len(self._records.pop(subscription, ()))
        if len(self._order) > 2 * self._most:
            self._order = deque(pair for pair in self._order if pair[1] in self._records)

    def distances(self, subscription: Id) -> dict[Id, list[int]]:
        """The distances of a subscription's publications, by advertisement."""
        found: dict[Id, list[int]] = {}
        for record in self._records.get(subscription, ()):
            found.setdefault(record.advertisement, []).append(record.distance)
        return found

    def largest_count(self, subscription: Id) -> int:
        """The largest count among a subscription's publications, 0 without any."""
        return max((record.count for record in self._records.get(subscription, ())), default=0)

    def rows(self) -> list[tuple[Id, Record]]:
        """Every record with its subscription, the oldest first."""
        places = {subscription: iter(rows) for subscription, rows in self._records.items()}
        return [
            (subscription, next(places[subscription]))
            for _, subscription in self._order
            if subscription in places
        ]
