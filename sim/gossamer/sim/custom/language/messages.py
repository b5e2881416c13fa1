"""Messages: classes of typed fields, which nodes of either way of writing send each other.

A message is a class with annotated fields. Rules send one by ``Share.send(net, to, ...)``, or to
themselves after a delay by ``Share.after(net, delay_s, ...)``, and write one to the log of the run
by ``Share.log(net, ...)``; plain nodes send and log an object of it. `record_rules` makes these
rules.
"""

from __future__ import annotations

import copyreg
import inspect
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sized
from importlib import import_module
from pickle import PicklingError
from typing import Any, Final, dataclass_transform

import numpy as np

from gossamer.protocol.kernel.records import USER
from gossamer.protocol.kernel.rules import RuleClass
from gossamer.sim.custom.language.places import declaration_error, place_of_caller, snake_case
from gossamer.sim.custom.language.record_rules import (
    Field,
    Items,
    delaying_rule,
    logging_rule,
    make_function,
    sending_rule,
)
from gossamer.sim.errors import ScenarioError

# Kinds of messages and timers are hashes of their names, from USER on.
KINDS: Final = USER + (1 << 14)
MOST_WORDS: Final = 1 << 14
WORD_BYTES: Final = 8
# What the table of a log has beside the fields of its message.
LOG_COLUMNS: Final = ("round", "time_s", "node")

# What a field of whole numbers is given by mistake, and rules could not send.
_NO_WHOLE: Final = (float, str, type(None))

_SCALARS: Final[Mapping[Any, type]] = {kind: kind for kind in (int, float, bool)} | {
    kind.__name__: kind for kind in (int, float, bool)
}


def kind_of_name(name: str) -> int:
    """The kind of records of this name, the same in every process."""
    return USER + zlib.crc32(name.encode()) % (KINDS - USER)


def items(most: int | str, kind: type = int) -> Any:
    """A field of several numbers, as an array: ``view: Any = items(20)``.

    Args:
        most: how many at most, or the name of a setting of the class that handles the message.
        kind: int or float.
    """
    return Items(most, kind)


@dataclass_transform()
class MessageClass(RuleClass):
    """The class of classes of messages."""

    name: str
    fields: tuple[Field, ...]
    kind: int
    size_bytes: int
    cancellable: int
    place: tuple[str, int]

    def __init__(
        cls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        size_bytes: int | None = None,
        kind: int | None = None,
        cancellable: int = 0,
    ) -> None:
        super().__init__(name, bases, namespace)
        cls.name = snake_case(name)
        cls.place = place_of_caller()
        cls.fields = tuple(cls._read_fields(namespace))
        cls.kind = kind_of_name(cls.name) if kind is None else kind
        cls.size_bytes = WORD_BYTES * len(cls._scalars()) if size_bytes is None else size_bytes
        cls.cancellable = cancellable
        cls._check()
        cls.__init__ = _constructor(cls.fields)  # type: ignore[misc]
        if cls.is_record:
            cls.send = sending_rule(cls)
            cls.after = delaying_rule(cls)
        if cls.is_loggable:
            cls.log = logging_rule(cls)

    def __new__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **_options: Any
    ) -> Any:
        return super().__new__(cls, name, bases, namespace)

    @property
    def is_record(cls) -> bool:
        """Whether all fields are numbers, so that rules can send it."""
        return all(field.kind is not None for field in cls.fields)

    @property
    def is_loggable(cls) -> bool:
        """Whether it can be logged: all fields are single numbers, and named as no other column."""
        single = all(field.kind in (int, float, bool) for field in cls.fields)
        return single and not any(field.name in LOG_COLUMNS for field in cls.fields)

    @property
    def most_words(cls) -> int:
        """Words of a body at most, as far as it is declared."""
        lists = [field.kind.most for field in cls.fields if isinstance(field.kind, Items)]
        return len(cls.fields) + sum(most for most in lists if isinstance(most, int))

    def _scalars(cls) -> list[Field]:
        return [field for field in cls.fields if not isinstance(field.kind, Items)]

    def _read_fields(cls, namespace: dict[str, Any]) -> Iterator[Field]:
        for name, annotation in inspect.get_annotations(cls).items():
            given = namespace.get(name)
            if isinstance(given, Items):
                yield Field(name, given)
            else:
                yield Field(name, _SCALARS.get(annotation))

    def _check(cls) -> None:
        def check(holds: bool, what: str, value: object, expected: str) -> None:
            if not holds:
                raise declaration_error(cls.place, f"{cls.__name__}.{what}", value, expected)

        size, most = cls.size_bytes, MOST_WORDS
        check(type(size) is int and size >= 0, "size_bytes", size, "a whole number of bytes from 0")
        check(
            type(cls.kind) is int and USER <= cls.kind < KINDS,
            "kind",
            cls.kind,
            f"a whole number from {USER} to {KINDS - 1}",
        )
        expected = f"a whole number from 0 to {most}"
        fits = type(cls.cancellable) is int and 0 <= cls.cancellable <= most
        check(fits, "cancellable", cls.cancellable, expected)
        for field in cls.fields:
            if isinstance(field.kind, Items):
                held, kind = field.kind.most, field.kind.kind
                expected = f"items of a whole number from 1 to {most}, or the name of a setting"
                fits = isinstance(held, str) or (type(held) is int and 1 <= held <= most)
                check(fits, field.name, held, expected)
                check(kind in (int, float), field.name, kind, "items of int or float")
        check(cls.most_words <= most, "fields", cls.most_words, f"at most {most} words in all")


def _message_of(module: str, name: str) -> MessageClass:
    """The message of this name in a module, which may have it under another one."""
    for held in vars(import_module(module)).values():
        if isinstance(held, MessageClass) and (held.__module__, held.__name__) == (module, name):
            return held
    raise PicklingError(f"module {module} has no message {name}")


def _reduced(message: MessageClass) -> tuple[Any, tuple[str, str]]:
    named = message.__module__, message.__name__
    _message_of(*named)
    return _message_of, named


# Checkpoints keep messages, and what was logged of them.
copyreg.pickle(MessageClass, _reduced)


def refuse_logging(given: object) -> None:
    """Refuse what cannot be logged.

    Raises:
        ValueError: it is no class of messages.
        ScenarioError: it is one with fields that cannot be logged.
    """
    if not isinstance(given, MessageClass):
        raise ValueError(f"a log of {given!r}, expected a class of messages")
    if not given.is_loggable:
        columns = ", ".join(LOG_COLUMNS)
        raise declaration_error(
            given.place,
            given.__name__,
            None,
            f"fields of int, float or bool, none called {columns}, as it is logged",
            found="a message with other fields",
        )


def misused(message: MessageClass) -> ScenarioError:
    """The error about a message that was sent, or set for later, as is not declared."""
    lists = [field for field in message.fields if isinstance(field.kind, Items)]
    bounds = " and ".join(f"{field.kind.most} items in {field.name}" for field in lists)
    expected = [f"at most {bounds}, as is declared"] if lists else []
    if message.cancellable:
        expected += [f"no more than {message.cancellable} pending at a node, as is declared"]
    return declaration_error(
        message.place,
        message.__name__,
        None,
        "; ".join([*expected, "and delays from 0 s" if expected else "delays from 0 s"]),
        found="sent with too many items"
        if lists
        else "pending too often, or sent with a wrong delay"
        if message.cancellable
        else "sent with a wrong delay",
    )


def size_of(message: object) -> int:
    """Bytes of a message, its items included."""
    kind: Any = type(message)
    size: int = kind.size_bytes
    for field in kind.fields:
        if isinstance(field.kind, Items):
            size += WORD_BYTES * len(getattr(message, field.name))
    return size


def words_of(message: object) -> list[int]:
    """The body of the record that a message is; fields that are no numbers are left out."""
    kind: Any = type(message)
    words: list[int] = []
    for field in kind.fields:
        value = getattr(message, field.name)
        if isinstance(field.kind, Items):
            part = (
                np.asarray(value, np.float64).view(np.int64) if field.kind.kind is float else value
            )
            words += [len(value), *map(int, part)]
        elif field.kind is float:
            words.append(int(np.float64(value).view(np.int64)))
        elif field.kind is not None:
            words.append(int(value))
    return words


def _constructor(fields: tuple[Field, ...]) -> Callable[..., None]:
    names = [field.name for field in fields]
    body = [f"    self.{name} = {name}" for name in names] or ["    pass"]
    for field in fields:
        if isinstance(field.kind, Items) and isinstance(field.kind.most, str):
            continue
        if isinstance(field.kind, Items):
            body.append(f"    __bound({field.name!r}, {field.name}, {field.kind.most})")
        elif field.kind is int:
            body.append(f"    if isinstance({field.name}, __no_whole):")
            body.append(f"        __refuse({field.name!r}, {field.name})")
    named = {"__bound": _check_bound, "__no_whole": _NO_WHOLE, "__refuse": _refuse_part}
    made: Callable[..., None] = make_function("__init__", ["self", *names], body, named)
    return made


def _check_bound(field: str, given: Sized, most: int) -> None:
    if len(given) > most:
        raise ValueError(f"{len(given)} items in {field}, expected at most {most}, as is declared")


def _refuse_part(field: str, given: object) -> None:
    raise ValueError(f"{given!r} in {field}, expected a whole number, as is declared")


class Message(metaclass=MessageClass):
    """Base class of messages.

    ``class Share(Message, size_bytes=24)`` says how long a message is on the wire; without, a field
    is 8 bytes. Each of `items` is 8 bytes more. ``kind=`` settles that two names have one kind, and
    ``cancellable=`` says how many of it a node may have pending that it can cancel.

    Attributes:
        send: rule ``send(net, to, *fields)``; of messages whose fields are numbers.
        after: rule ``after(net, delay_s, *fields)``, to oneself, by the node's own clock; lost if
            the node goes down before. Returns a handle for `cancel`, with ``cancellable=``.
        log: rule ``log(net, *fields)``, writes it to the log of the run, which measures read by
            ``run.log(Share)``; of messages whose fields are single numbers.
        kind: of its records.
        size_bytes: without its `items`.
    """

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        held = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({held})"


def message(
    name: str,
    *,
    size_bytes: int | None = None,
    kind: int | None = None,
    cancellable: int = 0,
    **fields: Any,
) -> Any:
    """A class of messages in one line: ``Walk = message("Walk", steps=int, seen=items(8))``.

    Args:
        name: of the class, under which its module has it.
        size_bytes: as of a class statement.
        kind: likewise.
        cancellable: likewise.
        fields: int, float, bool or `items`, in the order in which they are sent.

    Raises:
        ScenarioError: as of a class statement.
    """
    lists = {field: given for field, given in fields.items() if isinstance(given, Items)}
    module = sys._getframe(1).f_globals.get("__name__", "__main__")
    body = {"__annotations__": fields, "__module__": module, "__qualname__": name, **lists}
    return MessageClass(
        name, (Message,), body, size_bytes=size_bytes, kind=kind, cancellable=cancellable
    )
