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


def no_broker(what: str, host: int, nodes: int) -> TreesError:
    """The error of what names a broker that is not there, such as "host of document 3"."""
    return TreesError(f"{what} is {host}, expected a broker from 0 to {nodes - 1}")


def no_weight(what: str, value: object) -> TreesError:
    """The error of a size, a cost or a capacity that is no number above zero."""
    return TreesError(f"{what} is {value}, expected a finite number above 0")


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
