"""One error instead of a group of one, so that callers can catch what the docstrings name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def unwrapped() -> Iterator[None]:
    """Raise the only error of a nursery as itself; several stay a group."""
    try:
        yield
    except BaseExceptionGroup as group:
        error = only_error(group)
        if error is None:
            raise
        raise error from error.__cause__


def only_error(group: BaseException) -> BaseException | None:
    """The only error in nested groups, None where there are several."""
    while isinstance(group, BaseExceptionGroup):
        if len(group.exceptions) != 1:
            return None
        (group,) = group.exceptions
    return group
