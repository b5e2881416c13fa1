"""What configuration, interfaces and discovery raise."""

from __future__ import annotations

from gossamer.node.errors.base import NodeError, brief
from gossamer.protocol.kernel.errors import expectation


class ConfigurationError(NodeError):
    """A node's configuration is impossible; nothing was built from it.

    Attributes:
        place: the file, environment variable or flag at fault, "" where there is none.
        field: dotted name of the setting, or what else is wrong.
        value: what was given.
        expected: what would have been accepted, in words.
        found: words printed in place of the value, such as "missing".
    """

    def __init__(
        self, place: str, field: str, value: object, expected: str, found: str | None = None
    ) -> None:
        self.place = place
        self.field = field
        self.value = value
        self.expected = expected
        self.found = found
        prefix = f"{place}: " if place else ""
        named = field if field.isprintable() else brief(field)
        super().__init__(f"{prefix}{named} is {found or brief(value)}, {expectation(expected)}")


class AddressGone(NodeError):
    """This machine has lost an address that a peer listens at; nothing changed.

    Attributes:
        host: the address.
    """

    def __init__(self, host: str) -> None:
        self.host = host
        super().__init__(
            f"this machine does not have the address {brief(host)} any more, at which this peer "
            "listens: nobody reaches it there"
        )


class InterfaceError(NodeError):
    """This machine has no such network interface; nothing was opened.

    Attributes:
        name: what was asked for.
        known: names of the interfaces that there are.
    """

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        self.name = name
        self.known = known
        super().__init__(f"interface is {brief(name)}, expected one of {', '.join(known)}")


class DiscoveryError(NodeError):
    """Peers cannot be looked for on the local network; nothing was announced.

    Attributes:
        reason: why not, in words.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"multicast DNS does not work here ({reason}), "
            "expected a network that carries it, or discovery.multicast = false"
        )


class BackupError(NodeError):
    """A peer's folder cannot be backed up or restored; nothing was written.

    Attributes:
        place: the folder, the backup, or a file in it.
        reason: what is wrong with it, and what was expected.
    """

    def __init__(self, place: object, reason: str) -> None:
        self.place = place
        self.reason = reason
        super().__init__(f"{place} {reason}")


class ServiceError(NodeError):
    """A unit for the service manager cannot be made or installed; nothing was written.

    Attributes:
        place: the unit, its name, or the folder of the node.
        reason: what is wrong with it, and what was expected.
    """

    def __init__(self, place: object, reason: str) -> None:
        self.place = place
        self.reason = reason
        super().__init__(f"{place} {reason}")
