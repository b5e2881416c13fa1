"""A broker's memory as plain data (see `plain`), and back: what is the same in every family.

What follows from the rest is worked out again. A loaded broker goes on exactly as the one that was
dumped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gossamer.protocol.brokers.core.errors import DumpError, MalformedMessageError
from gossamer.protocol.brokers.core.plain_data import read_name, read_whole
from gossamer.protocol.brokers.core.routing import Routing
from gossamer.protocol.brokers.core.state import BrokerState, Timer
from gossamer.protocol.kernel.errors import LocalProtocolError

FORMAT: Final = 2

_NO_DUMP: Final = (
    *(ArithmeticError, AttributeError, LookupError, TypeError, ValueError),
    *(LocalProtocolError, MalformedMessageError),
)
_read_number: Final = read_whole()


def dump(routing: Routing[Any, Any], state: BrokerState) -> dict[str, object]:
    """Everything that a broker remembers for good, as plain data."""
    return {
        "format": FORMAT,
        "name": state.name,
        "next_number": state.next_number,
        "clients": [routing.session_data(one) for one in state.clients.values()],
        "timers": [[name, timer.token, timer.at] for name, timer in state.timers.items()],
        "counters": state.counters.plain(),
        **routing.dump(state),
    }


def name_in(data: Mapping[str, Any]) -> str:
    """The name of the broker that was dumped; raises `DumpError` for what is no dump."""
    try:
        if data["format"] != FORMAT:
            raise DumpError(f"its format is {data['format']!r}, expected {FORMAT}")
        return str(read_name(data["name"], "name"))
    except _NO_DUMP as error:
        raise _no_dump(error) from error


def load(routing: Routing[Any, Any], state: BrokerState, data: Mapping[str, Any]) -> None:
    """Take up a dump in a state that is empty; raises `DumpError` for what is none."""
    try:
        state.next_number = _read_number(data["next_number"], "next_number")
        state.timers = {name: Timer(token, at) for name, token, at in data["timers"]}
        state.counters = type(state.counters).read(data["counters"])
        for plain in data["clients"]:
            session = routing.read_session(plain)
            state.clients[session.name] = session
        routing.load(state, data)
    except _NO_DUMP as error:
        raise _no_dump(error) from error


def _no_dump(error: Exception) -> DumpError:
    return error if isinstance(error, DumpError) else DumpError(f"{type(error).__name__}: {error}")
