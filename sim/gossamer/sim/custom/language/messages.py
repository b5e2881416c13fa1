"""Messages: classes of typed fields, which nodes of either way of writing send each other.

A message is a class with annotated fields. Rules send one by ``Share.send(net, to, ...)``, or to
themselves after a delay by ``Share.after(net, delay_s, ...)``; plain nodes send an object of it. As
a record (`gossamer.protocol.kernel.records`) its body has a word a field, and for `items` a word
that says how many, and the items.
"""

from __future__ import annotations

import inspect
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sized
from typing import Any, Final, NoReturn, dataclass_transform

import attrs
import numpy as np

from gossamer.protocol.kernel.debugging.checked_arrays import RuleFault
from gossamer.protocol.kernel.float_bits import float_to_word, word_to_float
from gossamer.protocol.kernel.records import BODY, USER, close_record, open_record
from gossamer.protocol.kernel.rule_class import RuleClass
from gossamer.protocol.kernel.rules import Rule, inline_rule
from gossamer.sim.custom.language.context import DELAYS, delay_ticks
from gossamer.sim.custom.language.places import declaration_error, place_of_caller, snake_case
from gossamer.sim.engine.link_conditions import DELAY_BITS, LATER

# Kinds of messages and timers are hashes of their names, from USER on.
KINDS: Final = USER + (1 << 14)
MOST_WORDS: Final = 1 << 14
WORD_BYTES: Final = 8

# Words of a record to oneself before its fields: delay and life, the kind, and twice the node, so
# that from the first on it reads as a record.
LATER_WORDS: Final = 4

# What a field of whole numbers is given by mistake, and rules could not send.
_NO_WHOLE: Final = (float, str, type(None))

_SCALARS: Final[Mapping[Any, type]] = {kind: kind for kind in (int, float, bool)} | {
    kind.__name__: kind for kind in (int, float, bool)
}


def kind_of_name(name: str) -> int:
    """The kind of records of this name, the same in every process."""
    return USER + zlib.crc32(name.encode()) % (KINDS - USER)


@attrs.frozen
class Items:
    """A field that holds several whole numbers.

    Attributes:
        most: how many at most.
    """

    most: int


def items(most: int) -> Any:
    """A field of up to ``most`` whole numbers, as an array: ``view: Any = items(20)``."""
    return Items(most)


@attrs.frozen
class Field:
    """A field of a message: its kind is int, float, bool, `Items`, or None for any object."""

    name: str
    kind: Any

    @property
    def local(self) -> str:
        """What generated rules call it, which have names of their own beside."""
        return f"field_{self.name}"


@dataclass_transform()
class MessageClass(RuleClass):
    """The class of classes of messages."""

    name: str
    fields: tuple[Field, ...]
    kind: int
    size_bytes: int
    place: tuple[str, int]

    def __init__(
        cls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        size_bytes: int | None = None,
        kind: int | None = None,
    ) -> None:
        super().__init__(name, bases, namespace)
        cls.name = snake_case(name)
        cls.place = place_of_caller()
        cls.fields = tuple(cls._read_fields(namespace))
        cls.kind = kind_of_name(cls.name) if kind is None else kind
        cls.size_bytes = WORD_BYTES * len(cls._scalars()) if size_bytes is None else size_bytes
        cls._check()
        cls.__init__ = _constructor(cls.fields)  # type: ignore[misc]
        if cls.is_record:
            cls.send = _sending_rule(cls, later=False)
            cls.after = _sending_rule(cls, later=True)

    def __new__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **_options: Any
    ) -> Any:
        return super().__new__(cls, name, bases, namespace)

    @property
    def is_record(cls) -> bool:
        """Whether all fields are numbers, so that rules can send it."""
        return all(field.kind is not None for field in cls.fields)

    @property
    def most_words(cls) -> int:
        """Words of a body at most."""
        return sum(
            1 + field.kind.most if isinstance(field.kind, Items) else 1 for field in cls.fields
        )

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
        for field in cls.fields:
            if isinstance(field.kind, Items):
                expected = f"items of a whole number from 1 to {most}"
                held = field.kind.most
                check(type(held) is int and 1 <= held <= most, field.name, held, expected)
        check(cls.most_words <= most, "fields", cls.most_words, f"at most {most} words in all")


def size_of(message: Any) -> int:
    """Bytes of a message, its items included."""
    kind: Any = type(message)
    size: int = kind.size_bytes
    for field in kind.fields:
        if isinstance(field.kind, Items):
            size += WORD_BYTES * len(getattr(message, field.name))
    return size


def words_of(message: Any) -> list[int]:
    """The body of the record that a message is; fields that are no numbers are left out."""
    kind: Any = type(message)
    words: list[int] = []
    for field in kind.fields:
        value = getattr(message, field.name)
        if isinstance(field.kind, Items):
            words += [len(value), *map(int, value)]
        elif field.kind is float:
            words.append(int(np.float64(value).view(np.int64)))
        elif field.kind is not None:
            words.append(int(value))
    return words


def _constructor(fields: tuple[Field, ...]) -> Callable[..., None]:
    names = [field.name for field in fields]
    body = [f"    self.{name} = {name}" for name in names] or ["    pass"]
    for field in fields:
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


def _sending_rule(cls: MessageClass, *, later: bool) -> Rule:
    """The rule by which handlers send a message, or let themselves have it after a delay."""
    given = ["net", "delay_s" if later else "to", *(field.local for field in cls.fields)]
    lists = [field for field in cls.fields if isinstance(field.kind, Items)]
    length = " + ".join(
        [str(len(cls.fields) + (LATER_WORDS if later else 0)), *(f"len({x.local})" for x in lists)]
    )
    faults = [f"len({field.local}) > {field.kind.most}" for field in lists]
    body = [f"    kind, words = {LATER if later else cls.kind}, {length}"]
    if later:
        body += ["    delay, to = delay_ticks(delay_s, net.rate), net.me"]
        faults.append("delay < 0")
    if faults:
        # No record has such a kind: the engine ends the run at once, and says why.
        body += [f"    if {' or '.join(faults)}:", f"        kind, words = {-cls.kind}, 0"]
    body += [
        "    at = open_record(net.out, kind, to, net.me, words)",
        "    if at >= 0 and kind > 0:",
        f"        body, at_field = net.out.words, at + {BODY + (LATER_WORDS if later else 0)}",
    ]
    if later:
        heads = (f"(net.life << {DELAY_BITS}) | delay", str(cls.kind), "net.me", "net.me")
        body += [f"        body[at + {BODY + i}] = {head}" for i, head in enumerate(heads)]
    body += list(_writing(cls.fields))
    body += ["    if at >= 0:", "        close_record(net.out, at, words)"]
    names_of = {
        "open_record": open_record,
        "close_record": close_record,
        "delay_ticks": delay_ticks,
        "float_to_word": float_to_word,
    }
    source = make_function("after" if later else "send", given, body, names_of)
    return _SendingRule(source, cls, lists, later)


class _SendingRule(Rule):
    """A rule that sends; interpreted it says at once what is wrong with a message."""

    def __init__(
        self, source: Callable[..., Any], message: MessageClass, lists: list[Field], later: bool
    ) -> None:
        super().__init__(source, source, inline=True)
        self._message = message
        self._lists = lists
        self._later = later
        self._width = 2 + len(message.fields)

    def __call__(self, *args: Any, **named: Any) -> Any:
        if named:
            self._refuse_names(named)
        if len(args) == self._width:
            self._check(args)
        return super().__call__(*args)

    def _refuse_names(self, named: Mapping[str, Any]) -> NoReturn:
        fields = ", ".join(field.name for field in self._message.fields)
        caller = sys._getframe(2)
        raise RuleFault(
            f"it sends a {self._message.__name__} with {', '.join(f'{name}=' for name in named)}, "
            f"expected its fields {fields} in this order, without names",
            (caller.f_code.co_name, caller.f_code.co_filename, caller.f_lineno),
        )

    def _check(self, args: tuple[Any, ...]) -> None:
        given = dict(zip((field.name for field in self._message.fields), args[2:], strict=True))
        caller = sys._getframe(2)
        place = (caller.f_code.co_name, caller.f_code.co_filename, caller.f_lineno)
        name = self._message.__name__
        for field in self._lists:
            if len(given[field.name]) > field.kind.most:
                raise RuleFault(
                    f"it sends a {name} with {len(given[field.name])} items in {field.name}, "
                    f"expected at most {field.kind.most}, as is declared",
                    place,
                )
        if self._later and delay_ticks.interpreted(args[1], args[0].rate) < 0:
            raise RuleFault(
                f"it asks for a {name} after {args[1]!r} s, expected a delay {DELAYS}", place
            )


def _writing(fields: tuple[Field, ...]) -> Iterator[str]:
    """The lines that write fields from the word ``at_field`` on."""
    for field in fields:
        name = field.local
        if isinstance(field.kind, Items):
            yield f"        body[at_field] = len({name})"
            yield f"        for i in range(len({name})):"
            yield f"            body[at_field + 1 + i] = {name}[i]"
            yield f"        at_field += 1 + len({name})"
        else:
            yield f"        body[at_field] = {_to_word(name, field.kind)}"
            yield "        at_field += 1"


def _to_word(name: str, kind: Any) -> str:
    return f"float_to_word({name})" if kind is float else name


def taking_rule(handler: Rule, message: MessageClass, path: str, names: Mapping[str, Any]) -> Rule:
    """The rule that hands a record of a message to its handler, field by field."""
    lines, given, at = [], [], [f"at + {BODY}"]
    for field in message.fields:
        begin = " + ".join(at)
        if isinstance(field.kind, Items):
            count = f"count_of_{field.local}"
            lines.append(f"    {count} = words[{begin}]")
            lines.append(f"    {field.local} = words[{begin} + 1 : {begin} + 1 + {count}]")
            at += ["1", count]
            given.append(field.local)
        else:
            read = f"words[{begin}]"
            given.append(
                f"word_to_float({read})"
                if field.kind is float
                else f"{read} != 0"
                if field.kind is bool
                else read
            )
            at.append("1")
    call = ", ".join([f"s{path}", "p", "net", "words[at + 3]", *given])
    lines += ["    net = net_of(s, p, now, out)", f"    handle({call})"]
    return inline_rule(
        make_function(
            f"take_{message.name}",
            ["s", "p", "now", "words", "at", "out"],
            lines,
            {"handle": handler, "word_to_float": word_to_float, **names},
        )
    )


def make_function(
    name: str, arguments: list[str], body: list[str], names: Mapping[str, Any]
) -> Callable[..., Any]:
    """A function of the lines of its body, in which ``names`` are global."""
    text = "\n".join([f"def {name}({', '.join(arguments)}):", *body, ""])
    namespace: dict[str, Any] = {"__name__": __name__, **names}
    exec(compile(text, f"<{name}>", "exec"), namespace)
    made: Callable[..., Any] = namespace[name]
    return made


class Message(metaclass=MessageClass):
    """Base class of messages.

    ``class Share(Message, size_bytes=24)`` says how long a message is on the wire; without, a field
    is 8 bytes. Each of `items` is 8 bytes more. ``kind=`` settles that two names have one kind.

    Attributes:
        send: rule ``send(net, to, *fields)``; of messages whose fields are numbers.
        after: rule ``after(net, delay_s, *fields)``, to oneself, by the node's own clock; lost if
            the node goes down before.
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
    name: str, *, size_bytes: int | None = None, kind: int | None = None, **fields: Any
) -> Any:
    """A class of messages in one line: ``Walk = message("Walk", steps=int, seen=items(8))``.

    Args:
        name: of the class, under which its module has it.
        size_bytes, kind: as of a class statement.
        fields: int, float, bool or `items`, in the order in which they are sent.

    Raises:
        ScenarioError: as of a class statement.
    """
    lists = {field: given for field, given in fields.items() if isinstance(given, Items)}
    module = sys._getframe(1).f_globals.get("__name__", "__main__")
    body = {"__annotations__": fields, "__module__": module, "__qualname__": name, **lists}
    return MessageClass(name, (Message,), body, size_bytes=size_bytes, kind=kind)
