"""What reaches a broker of a general graph: from clients, from neighbours, from its host.

What clients send is what they send to any broker (`gossamer.protocol.brokers.core.messages`).
Between brokers there are four kinds of messages: the link state of one broker, which floods to all,
directives of the coordinator that flood to all, what one broker reports to the coordinator by the
shortest path, and documents with their confirmations, which go along trees.

Documents and subscriptions by keywords are said with attributes and filters:

    >>> from gossamer.protocol.content import filters
    >>> from gossamer.protocol.brokers.graph.messages import by_keywords, keyword_filter
    >>> filters.to_text(keyword_filter("nokia"))
    'nokia == true'
    >>> by_keywords(["nokia", "motorola"], price=80)
    {'price': 80, 'nokia': True, 'motorola': True}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from attrs import frozen

from gossamer.protocol.brokers.core import messages as core
from gossamer.protocol.brokers.core.messages import Id
from gossamer.protocol.content import filters
from gossamer.protocol.content.filters import Filter
from gossamer.protocol.content.filters import Publication as Values
from gossamer.protocol.content.grammar import Comparison, Operator


class Term(NamedTuple):
    """A coordinator's time in office; of two, the greater one is obeyed."""

    number: int
    broker: str


class Version(NamedTuple):
    """Names a set of trees: the term and the broker that it was made by, and a counter."""

    term: int
    broker: str
    number: int


NO_TERM: Final = Term(0, "")
NO_VERSION: Final = Version(0, "", 0)
"""What is used before there are any trees; less than all others."""


@frozen
class Plan:
    """The trees of one version, and the subscriptions that each serves (the paper's R).

    Attributes:
        version: never used for anything else.
        brokers: those that the trees join.
        trees: of each tree, by broker, the number of the broker above it; -1 at the root.
        groups: the tree of each subscription.
    """

    version: Version
    brokers: tuple[str, ...]
    trees: tuple[tuple[int, ...], ...]
    groups: Mapping[Id, int]


@frozen
class Directive:
    """What the coordinator wants of all brokers (Sec. VI), or a neighbour's account of it.

    Attributes:
        term: of the coordinator.
        number: of the directive in the term, from 1; those of one term are heard in order.
        using: the version that documents are published in from now on.
        oldest: earlier versions may be forgotten.
        plans: versions to hold from now on.
        assigned: subscriptions that are new: the version, the subscription, its tree.
        answer: whether all are to report how far they are.
        whole: whether this says all that holds, and not only what is new.
    """

    term: Term
    number: int
    using: Version
    oldest: Version
    plans: tuple[Plan, ...] = ()
    assigned: tuple[tuple[Version, Id, int], ...] = ()
    answer: bool = False
    whole: bool = False


@frozen
class Record:
    """All that there is to know of a broker: its links, and what its clients ask for.

    Attributes:
        broker: whose record this is.
        number: greater than of all earlier updates of this broker.
        links: neighbours that it can reach, with what a document costs there.
        interests: subscriptions, each a disjunction of filters.
    """

    broker: str
    number: int
    links: Mapping[str, float]
    interests: Mapping[Id, tuple[Filter, ...]]


@frozen
class LinksChanged:
    """The links of a broker, when they have changed; the number follows on the last one."""

    broker: str
    number: int
    links: Mapping[str, float]


@frozen
class InterestChanged:
    """Filters of a subscription that are new, and those that are gone; without any it is gone."""

    broker: str
    number: int
    interest: Id
    added: tuple[Filter, ...]
    removed: tuple[Filter, ...]


@frozen
class Summary:
    """Tells a neighbour how much is known here, so that it can tell the rest.

    Attributes:
        numbers: of the last update of each broker.
        term, number: of the last directive.
    """

    numbers: Mapping[str, int]
    term: Term
    number: int


@frozen
class Report:
    """Tells the coordinator how far a broker is.

    Attributes:
        to: the coordinator's term.
        broker: who reports.
        held: the latest version held.
        using: the version that documents are published in.
        oldest: of the versions in which documents are under way from here.
        hops: how many brokers passed this on.
    """

    to: Term
    broker: str
    held: Version
    using: Version
    oldest: Version
    hops: int = 0


@frozen
class Sampled:
    """A document of the sample: when it was published, in microseconds, and what it says."""

    at: int
    id: Id
    values: Values


@frozen
class Samples:
    """Documents that a broker has sampled, for the coordinator."""

    to: Term
    broker: str
    documents: tuple[Sampled, ...]
    hops: int = 0


@frozen
class Document:
    """A document on a tree.

    Attributes:
        id: its publisher's broker and a counter.
        issue: the same where it was published; another one where it sets out anew.
        version, group: the tree that it is on.
        values: what was published.
        only: brokers that it is still to reach; None for all that match.
    """

    id: Id
    issue: Id
    version: Version
    group: int
    values: Values
    only: frozenset[str] | None = None


@frozen
class Confirm:
    """All behind a link that wanted a document on this tree have it."""

    issue: Id
    group: int


@frozen
class Return:
    """A document came on a tree that is not known any more; its sender sees to it."""

    issue: Id
    group: int


LinkStateUpdate = Record | LinksChanged | InterestChanged
ToCoordinator = Report | Samples
BetweenBrokers = LinkStateUpdate | Directive | Summary | ToCoordinator | Document | Confirm | Return

# From the host; their source is None.


@frozen
class NeighbourUp:
    """The link to a neighbour works; a document of size 1 costs so much there."""

    name: str
    cost: float = 1.0


@frozen
class Planned:
    """The trees that `coordinator.MakePlan` asked for.

    Attributes:
        number: of the question.
        plan: the trees and groups.
        cost: of the sample on them (Eq. 1).
        before: of the sample on the present trees.
    """

    number: int
    plan: Plan
    cost: float
    before: float


FromHost = (
    NeighbourUp
    | core.NeighbourDown
    | core.NeighbourGone
    | Planned
    | core.TimerFired
    | core.Restarted
)
Message = core.FromClient | BetweenBrokers | FromHost


# Documents and subscriptions by keywords (Sec. VII-A), said with attributes and filters.
#
# A keyword is an attribute that is true. A subscription to some keywords is a filter for each, as a
# document matches it with any of them; keywords and other attributes go together.


def keyword_filter(keyword: str) -> Filter:
    """A filter that matches the documents with a keyword."""
    return filters.Filter.of([Comparison(keyword, Operator.EQUAL, True)])


def by_keywords(keywords: Iterable[str], **values: object) -> dict[str, object]:
    """What a document with these keywords, and perhaps other attributes, says."""
    return {**values, **dict.fromkeys(keywords, True)}
