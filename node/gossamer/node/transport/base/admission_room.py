"""Room for those who come in and have not shown yet who they are.

Anybody may open connections and say nothing. There is room for a number of them, and for a smaller
number from one address: where it is full the one that has been there longest makes room, of the
address with most of them. So nobody is kept out by others who are silent, and whoever shows at once
who it is gets in from a crowded address, too. Who is admitted is no stranger any more and takes no
room, however many come from behind one address.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import trio

from gossamer.node.monitoring.logs import log

# Strangers of whom some were turned out and are still taking their leave, in parts of the room.
LEAVING: Final = 3


class Guest:
    """A stranger.

    Attributes:
        group: the address that it counts as.
        scope: for what it is waited for; cancelled once it has to make room.
        is_turned_out: whether it had to.
        stays: whether it makes room only where nobody else can.
    """

    def __init__(self, doors: Doors, group: str) -> None:
        self.group = group
        self.scope = trio.CancelScope()
        self.is_turned_out = False
        self._doors = doors
        self.stays = False

    def let_stay(self, most: int) -> bool:
        """Let others make room first, if fewer than ``most`` of its address are let; whether."""
        self.stays = self._doors.staying(self.group) < most
        return self.stays

    def turn_out(self) -> None:
        """Let it make room for another."""
        self.is_turned_out = True
        self.scope.cancel()


class Doors:
    """Strangers at one port, or at several that share their room.

    Args:
        room: for how many.
        per_address: for how many of one IPv4 address, or of one IPv6 network (/64).
        on_crowd: told an address from which somebody had to make room.
    """

    def __init__(
        self, room: int, per_address: int, on_crowd: Callable[[str], None] = lambda _: None
    ) -> None:
        self._room = room
        self._per_address = per_address
        self._on_crowd = on_crowd
        self._groups: dict[str, dict[Guest, None]] = {}
        self._entered = 0

    def __len__(self) -> int:
        """How many are there."""
        return sum(map(len, self._groups.values()))

    @contextmanager
    def enter(self, group: str) -> Iterator[Guest | None]:
        """A guest until the end of the block, by which it is gone, or no stranger any more.

        None where too many that had to make room are not gone yet.
        """
        if self._entered >= (1 + LEAVING) * self._room:
            self._on_crowd(group)
            yield None
            return
        self._make_room(group)
        guest = Guest(self, group)
        self._groups.setdefault(group, {})[guest] = None
        self._entered += 1
        try:
            yield guest
        finally:
            self._take_out(guest)
            self._entered -= 1

    def staying(self, group: str) -> int:
        """How many of an address others make room for."""
        return sum(guest.stays for guest in self._groups.get(group, ()))

    def has_room_for(self, group: str) -> bool:
        """Whether one more of ``group`` gets in at the cost of no other of that address."""
        there = len(self._groups.get(group, ()))
        if there >= self._per_address:
            return False
        return len(self) < self._room or there < max(map(len, self._groups.values()))

    def _make_room(self, group: str) -> None:
        """Turn somebody out if there is no room for one of ``group``."""
        own = self._groups.get(group, {})
        if len(own) >= self._per_address:
            self._turn_out_oldest(group)
        elif len(self) >= self._room:
            # Of several with as many, one of the others.
            crowds = {one: (len(there), one != group) for one, there in self._groups.items()}
            self._turn_out_oldest(max(crowds, key=crowds.__getitem__))

    def _turn_out_oldest(self, group: str) -> None:
        guests = self._groups[group]
        oldest = next((guest for guest in guests if not guest.stays), next(iter(guests)))
        self._take_out(oldest)
        oldest.turn_out()
        self._on_crowd(group)

    def _take_out(self, guest: Guest) -> None:
        guests = self._groups.get(guest.group, {})
        guests.pop(guest, None)
        if not guests:
            self._groups.pop(guest.group, None)


def warn_of_crowd(group: str) -> None:
    """Have it in the log that somebody had to make room."""
    log.warning("too many strangers: the oldest made room", peer=group)


def address_group(host: str) -> str:
    """As which address ``host`` counts: its own, or its IPv6 network (/64).

    A name that is no IP address, such as that of a socket in the file system, counts as itself.
    """
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if address.version == 4:
        return str(address)
    mapped = address.ipv4_mapped
    return str(mapped or ipaddress.ip_network((address.packed, 64), strict=False))
