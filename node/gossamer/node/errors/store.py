"""What the state file raises."""

from __future__ import annotations

from gossamer.node.errors.base import NodeError


class StoreError(NodeError):
    """The state file cannot be used; whether it changed is said by the subclass.

    Attributes:
        path: the file.
    """

    def __init__(self, path: object, reason: str) -> None:
        self.path = path
        super().__init__(f"{path} {reason}")


class StoreVersionError(StoreError):
    """The state file was written by a newer version; it was not changed.

    Attributes:
        found: version of the file.
        known: newest version that this software reads.
    """

    def __init__(self, path: object, found: int, known: int) -> None:
        self.found = found
        self.known = known
        super().__init__(
            path, f"has state of version {found}, expected at most {known}; upgrade gossamer"
        )


class StoreDamagedError(StoreError):
    """The file is no state file, or damaged; it was not changed."""


class StoreFullError(StoreError):
    """The disk is full; the write left no trace, and reading goes on."""

    def __init__(self, path: object) -> None:
        super().__init__(path, "cannot grow because the disk is full; free some space")


class StoreBusyError(StoreError):
    """Another process kept the file locked too long; nothing was written."""
