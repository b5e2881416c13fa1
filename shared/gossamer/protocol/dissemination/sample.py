"""A sample of published documents and the subscriptions they match (Sec. III-A).

How documents match is none of the trees' business: keywords, filters or anything else gives for
each document the subscriptions that it matches.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from gossamer.protocol.dissemination.graphs.graph import (
    Reals,
    TreesError,
    Words,
    no_broker,
    no_weight,
)
from gossamer.protocol.kernel.struct import Struct


class Sample(Struct):
    """D documents and S subscriptions, both at brokers of one graph.

    Attributes:
        hosts: int64[D], the broker where each document is published, host(d).
        sizes: float64[D], what each costs on a link of cost 1, w_j; above zero.
        first: int64[D + 1], where a document's subscriptions begin in ``matched``.
        matched: int64[...], subscriptions, rising within a document.
        places: int64[S], the broker of each subscription, host(s).
    """

    hosts: Words
    sizes: Reals
    first: Words
    matched: Words
    places: Words

    @property
    def documents(self) -> int:
        """How many documents there are."""
        return len(self.hosts)

    @property
    def subscriptions(self) -> int:
        """How many subscriptions there are."""
        return len(self.places)

    def matches(self, document: int) -> Words:
        """The subscriptions that a document matches."""
        return self.matched[self.first[document] : self.first[document + 1]]

    def chosen(self, documents: Words) -> Sample:
        """A sample of some of these documents."""
        return _assemble(
            self.hosts[documents],
            self.sizes[documents],
            [self.matches(document) for document in documents.tolist()],
            self.places,
        )


def make_sample(
    nodes: int,
    hosts: npt.ArrayLike,
    matches: Sequence[Iterable[int]],
    places: npt.ArrayLike,
    sizes: npt.ArrayLike = 1.0,
) -> Sample:
    """Documents and subscriptions at the brokers of a graph.

    Args:
        nodes: how many brokers there are.
        hosts: broker of each document.
        matches: the subscriptions that each document matches, in any order.
        places: broker of each subscription.
        sizes: size of each document, or one for all; any unit that costs of links go by.

    Raises:
        TreesError: a document or subscription is at a broker that is not there, a document matches
            a subscription that is not there, or a size is not a finite number above zero.
        ValueError: documents and what they match are not equally many.
    """
    where = _read_brokers(hosts, nodes, "document")
    subscribed = _read_brokers(places, nodes, "subscription")
    if len(matches) != len(where):
        raise ValueError(f"matches are given for {len(matches)} documents, expected {len(where)}")
    found = [np.unique(np.array(list(one), np.int64)) for one in matches]
    for document, one in enumerate(found):
        wrong = one[(one < 0) | (one >= len(subscribed))]
        if len(wrong):
            raise TreesError(
                f"document {document} matches subscription {int(wrong[0])}, "
                f"expected one from 0 to {len(subscribed) - 1}"
            )
    return _assemble(where, _read_sizes(sizes, len(where)), found, subscribed)


def matching_documents(sample: Sample) -> list[Words]:
    """For each subscription the documents that match it, rising."""
    documents = np.repeat(np.arange(sample.documents), np.diff(sample.first))
    order = np.argsort(sample.matched, kind="stable")
    counts = np.bincount(sample.matched, minlength=sample.subscriptions)
    return np.split(documents[order], np.cumsum(counts)[:-1])


def match_keywords(
    documents: Sequence[Iterable[int]], subscriptions: Sequence[Iterable[int]]
) -> list[Words]:
    """The subscriptions that have a keyword in common with each document (Sec. VII-A)."""
    holders: dict[int, list[int]] = {}
    for subscription, keywords in enumerate(subscriptions):
        for keyword in keywords:
            holders.setdefault(int(keyword), []).append(subscription)
    found = []
    for keywords in documents:
        lists = [holders.get(int(keyword), []) for keyword in keywords]
        found.append(np.unique(np.array([one for held in lists for one in held], np.int64)))
    return found


def _assemble(hosts: Words, sizes: Reals, matches: Sequence[Words], places: Words) -> Sample:
    first = np.zeros(len(hosts) + 1, np.int64)
    np.cumsum([len(one) for one in matches], out=first[1:])
    matched = np.concatenate([np.zeros(0, np.int64), *matches])
    return Sample(hosts=hosts, sizes=sizes, first=first, matched=matched, places=places)


def _read_brokers(brokers: npt.ArrayLike, nodes: int, what: str) -> Words:
    read = np.array(brokers, np.int64).reshape(-1)
    wrong = np.flatnonzero((read < 0) | (read >= nodes))
    if len(wrong):
        raise no_broker(f"host of {what} {wrong[0]}", int(read[wrong[0]]), nodes)
    return read


def _read_sizes(sizes: npt.ArrayLike, documents: int) -> Reals:
    try:
        read = np.array(np.broadcast_to(np.asarray(sizes, np.float64), documents))
    except (TypeError, ValueError):
        raise no_weight("size of documents", repr(sizes)) from None
    wrong = np.flatnonzero(~(np.isfinite(read) & (read > 0)))
    if len(wrong):
        raise no_weight(f"size of document {wrong[0]}", read[wrong[0]])
    return read
