"""A protocol's state as rules take it in a checked run."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.protocol.kernel.debugging.checked_arrays import OwnRow, RuleFault, checked_array
from gossamer.protocol.kernel.struct import Struct


class CheckedStruct:
    """A struct's fields, its arrays checked."""

    def __init__(self, name: str, fields: dict[str, Any]) -> None:
        self.__dict__.update(fields)
        self.__dict__["_name"] = name

    def __getattr__(self, name: str) -> Any:
        raise RuleFault(f"it reads field {name} of {self._name}, which has no such field")

    def __setattr__(self, name: str, _value: Any) -> None:
        raise RuleFault(f"it sets field {name} of {self._name}, expected writes into arrays only")


def checked(value: Any, name: str, own: OwnRow, population: int, has_rows: bool = True) -> Any:
    """What rules take instead of ``value``, over the same memory.

    Args:
        value: a struct, an array, a tuple of such; anything else is taken as it is.
        name: what errors call it.
        own: which row may be written.
        population: how many peers there are: an array whose first axis is as long has a row a
            peer, unless its struct declares it as shared.
        has_rows: whether there can be such arrays in it.
    """
    if isinstance(value, Struct):
        prefix = f"{name}." if name else ""
        return CheckedStruct(
            type(value).__name__,
            {
                field: checked(
                    getattr(value, field),
                    prefix + field,
                    own,
                    population,
                    has_rows and not value.is_shared(field),
                )
                for field in value.field_names()
            },
        )
    if isinstance(value, np.ndarray):
        rows = has_rows and value.ndim > 0 and value.shape[0] == population
        return checked_array(value, name or "the state", own if rows else None)
    if isinstance(value, tuple):
        names = getattr(value, "_fields", range(len(value)))
        items = [
            checked(
                item,
                f"{name}.{at}" if isinstance(at, str) else f"{name}[{at}]",
                own,
                population,
                has_rows,
            )
            for at, item in zip(names, value, strict=True)
        ]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value
