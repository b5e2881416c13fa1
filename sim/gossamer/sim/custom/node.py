"""Protocols of plain classes: an object a node, with anything in it, for thousands of nodes.

A `Node` is one node. Its methods are Python as any other, may hold dictionaries and sets, call
libraries and print. They draw by `draw` and its like, as rules do, so that a protocol written both
ways does the same, record by record.

    __init__(self)                         once, before anything happens
    on_start(self, contact)                when the node comes up; contact is -1 or a row
    on_leave(self)                         when it is about to leave; not when it crashes
    on_<timer>(self)                       or on_timer(self, name) for all without one
    on_<message>(self, sender, message)    or on_message(self, sender, message)
    on_unreachable(self, to, message)      a message came back, as over TCP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gossamer.sim.custom.language.context import TICKS_A_SECOND
from gossamer.sim.custom.language.declarations import (
    ProtocolType,
    check_declared,
    check_node,
    declarations_of,
)
from gossamer.sim.custom.library import View

_MASK: Final = (1 << 64) - 1
_SPECIAL: Final = ("start", "leave", "unreachable", "timer", "message")


def first_half(seed: int, key: int) -> int:
    """The part of `kernel.draws.mix` that depends on seed and key alone."""
    z = (seed ^ (key * 0x9E3779B97F4A7C15)) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


class Node(metaclass=ProtocolType):
    """Base class of protocols that are written as plain classes; see the module.

    A call of a class, such as ``Rumor(fanout=2)``, is the protocol with these settings.

    Attributes:
        me: the row of this node, from 0 on.
        nodes: how many there are, up or not.
    """

    me: int
    nodes: int
    _host: Any
    _base: int
    _draws: int

    if TYPE_CHECKING:  # that classes take their settings is not seen in their type

        def __init__(self, **settings: Any) -> None: ...

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._declarations = declarations_of(cls, Node, _SPECIAL)
        if cls.declared.columns:
            name = next(iter(cls.declared.columns))
            raise cls.declared.error(name, None, "an attribute set in __init__", "a column")
        check_declared(cls.declared, Node)
        check_node(cls)

    def __getstate__(self) -> dict[str, Any]:
        held = self.__dict__.items()
        return {
            name: value for name, value in held if name != "_host" and not isinstance(value, View)
        }

    @property
    def now(self) -> int:
        """The tick it is; there are 1000 in a second."""
        tick: int = self._host.tick
        return tick

    @property
    def now_s(self) -> float:
        """The time in seconds since the run began."""
        return self.now / TICKS_A_SECOND

    @property
    def round(self) -> int:
        """The round it is."""
        return self.now // int(self._host.conditions.round_ticks)

    @property
    def starts(self) -> int:
        """How often this node has come up."""
        return int(self._host.starts_of(self.me))

    def send(self, to: int, message: Any) -> None:
        """Send a message to a node; to oneself it arrives at once."""
        self._host.send(self.me, to, message)

    def after(self, delay_s: float, message: Any) -> Any:
        """Let this node have a message after a delay by its clock, unless it goes down before.

        Returns:
            A handle for `cancel`.

        Raises:
            ValueError: the delay is below 0 s or beyond what an engine can wait.
        """
        return self._host.send_later(self.me, delay_s, message)

    def cancel(self, handle: Any) -> bool:
        """Cancel a message that this node has set for later, by what `after` returned, or None.

        Returns:
            Whether it was pending. If it has come, or was cancelled, or the node has gone down
            since then, nothing happens.
        """
        return handle is not None and bool(handle.cancel(self.starts))

    def log(self, message: Any) -> None:
        """Write a message to the log of the run, which measures read by ``run.log(Share)``.

        Raises:
            ValueError: it is no message.
            ScenarioError: it has fields that cannot be logged.
        """
        self._host.write(self.me, message)

    def draw(self) -> int:
        """The node's next uniform draw from [0, 2^62)."""
        self._draws = counter = self._draws + 1
        z = (self._base + counter * 0xD1B54A32D192ED03) & _MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return (z ^ (z >> 31)) >> 2

    def draw_below(self, bound: int) -> int:
        """A uniform draw from 0 to ``bound - 1``; bound is from 1 to 2^31 - 1."""
        return ((self.draw() >> 31) * bound) >> 31

    def draw_float(self) -> float:
        """A uniform draw from [0, 1)."""
        return (self.draw() >> 9) / 9007199254740992.0

    def draw_other(self) -> int:
        """The row of any node but this one, whether it is up or not; there are at least two."""
        other = ((self.draw() >> 31) * (self.nodes - 1)) >> 31
        return other + 1 if other >= self.me else other

    def draw_from(self, nodes: list[int], but: int = -1) -> int:
        """A node of a list other than ``but``, by the next draw; -1, and no draw, without such."""
        others = [node for node in nodes if node != but]
        return others[self.draw_below(len(others))] if others else -1

    def put_into(self, nodes: list[int], node: int, most: int) -> int:
        """Append another node to a list of at most so many; a random one makes room if it is full.

        Returns:
            The node that made room; -1 where none had to, or nothing changed, as ``node`` is
            nobody, this node itself, or there already.
        """
        if node < 0 or node == self.me or node in nodes:
            return -1
        gone = -1
        if len(nodes) == most:
            gone = self.draw_from(nodes)
            nodes.remove(gone)
        nodes.append(node)
        return gone
