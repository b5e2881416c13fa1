"""What the trees refuse, and why; nothing was built when one of these is raised."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer.protocol.kernel.errors import LocalProtocolError

_SHOWN_NODES = 4
_SHOWN_COMPONENTS = 4


class TreesError(LocalProtocolError):
    """A graph or a sample of documents is impossible; nothing was built from it."""


class DisconnectedError(TreesError):
    """Some brokers cannot reach each other; nothing was built.

    Attributes:
        components: the brokers of each component, the largest component first.
    """

    def __init__(self, components: Sequence[Sequence[object]]) -> None:
        self.components = [list(component) for component in components]
        super().__init__(
            f"the graph is in {in_brief(self.components)}, "
            "expected brokers that all reach each other"
        )


class UnknownHostError(TreesError):
    """A document, a subscription or a link names a broker that is not there; nothing was built.

    Attributes:
        what: what names it, such as "host of document 3".
        host: the broker named.
        nodes: how many brokers there are.
    """

    def __init__(self, what: str, host: int, nodes: int) -> None:
        self.what = what
        self.host = host
        self.nodes = nodes
        super().__init__(f"{what} is {host}, expected a broker from 0 to {nodes - 1}")


class WeightError(TreesError):
    """A size of a document or a cost of a link is no number above zero; nothing was built.

    Attributes:
        what: what weighs so, such as "cost of link 2 between 0 and 7".
        value: the weight.
    """

    def __init__(self, what: str, value: object) -> None:
        self.what = what
        self.value = value
        super().__init__(f"{what} is {value}, expected a finite number above 0")


class LinkError(TreesError):
    """A link joins a broker to itself, or two brokers that are joined already; nothing was built.

    Attributes:
        link: its place among the links.
        ends: the brokers it joins.
    """

    def __init__(self, link: int, ends: tuple[int, int], fault: str) -> None:
        self.link = link
        self.ends = ends
        super().__init__(f"link {link} between {ends[0]} and {ends[1]} {fault}")


class SubscriptionError(TreesError):
    """A document is said to match a subscription that is not there; nothing was built.

    Attributes:
        document: the document.
        subscription: what it is said to match.
        subscriptions: how many there are.
    """

    def __init__(self, document: int, subscription: int, subscriptions: int) -> None:
        self.document = document
        self.subscription = subscription
        self.subscriptions = subscriptions
        super().__init__(
            f"document {document} matches subscription {subscription}, "
            f"expected one from 0 to {subscriptions - 1}"
        )


def in_brief(components: Sequence[Sequence[object]]) -> str:
    """How many components there are, and some brokers of some."""
    shown = "; ".join(_brief(part) for part in components[:_SHOWN_COMPONENTS])
    more = len(components) - _SHOWN_COMPONENTS
    rest = f"; and {more} more" if more > 0 else ""
    return f"{len(components)} components ({shown}{rest})"


def _brief(component: Sequence[object]) -> str:
    names = ", ".join(str(node) for node in component[:_SHOWN_NODES])
    more = len(component) - _SHOWN_NODES
    return f"{names} and {more} more" if more > 0 else names
