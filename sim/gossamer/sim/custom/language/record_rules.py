"""Rules made of a message's fields: what sends, delays or logs one, and what hands it to a handler.

Generated rules write a record (`gossamer.protocol.kernel.records`): its body has a word a field,
and for `Items` a word that says how many, and the items.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import attrs
import numpy as np

from gossamer.protocol.kernel.debugging.checked_arrays import RuleFault
from gossamer.protocol.kernel.draws import float_to_word, word_to_float
from gossamer.protocol.kernel.records import BODY, Outbox, close_record, open_record
from gossamer.protocol.kernel.rules import Rule, inline_rule
from gossamer.sim.custom.language.context import (
    DELAYS,
    LATER_WORDS,
    LOGGED,
    delay_ticks,
    new_handle,
)
from gossamer.sim.engine.link_conditions import DELAY_BITS, LATER


@attrs.frozen
class Items:
    """A field that holds several numbers.

    Attributes:
        most: how many at most, or the name of a setting of the class that handles the message.
        kind: int or float.
    """

    most: int | str
    kind: type = int


@attrs.frozen
class Field:
    """A field of a message: its kind is int, float, bool, `Items`, or None for any object."""

    name: str
    kind: Any

    @property
    def local(self) -> str:
        """What generated rules call it, which have names of their own beside."""
        return f"field_{self.name}"


def sending_rule(message: Any) -> Rule:
    """The rule by which handlers send a message: ``send(net, to, *fields)``."""
    words = [f"{len(message.fields)}", *(f"len({field.local})" for field in _lists(message))]
    body = [f"    kind, words = {message.kind}, {' + '.join(words)}"]
    return _writing_rule(message, "send", "to", body, [], [])


def delaying_rule(message: Any) -> Rule:
    """The rule by which a node lets itself have a message: ``after(net, delay_s, *fields)``.

    Of messages that are declared so it returns the handle by which this one can be cancelled.
    """
    words = [f"{len(message.fields) + LATER_WORDS}", *(f"len({x.local})" for x in _lists(message))]
    body = [
        f"    kind, words = {LATER}, {' + '.join(words)}",
        "    delay, to = delay_ticks(delay_s, net.rate), net.me",
    ]
    heads = [f"(net.life << {DELAY_BITS}) | delay", str(message.kind), "0", "to"]
    if not message.cancellable:
        return _writing_rule(message, "after", "delay_s", body, ["delay"], heads)
    body += ["    handle = new_handle(net)"]
    heads[2] = "handle"
    return _writing_rule(message, "after", "delay_s", body, ["delay", "handle"], heads)


def logging_rule(message: Any) -> Rule:
    """The rule by which a node writes a message to the log of the run: ``log(net, *fields)``."""
    body = [f"    kind, to, words = {LOGGED}, net.me, {len(message.fields) + LATER_WORDS}"]
    heads = ["0", str(message.kind), "to", "to"]
    return _writing_rule(message, "log", None, body, [], heads)


def _lists(message: Any) -> list[Field]:
    return [field for field in message.fields if isinstance(field.kind, Items)]


def _writing_rule(
    message: Any,
    name: str,
    second: str | None,
    body: list[str],
    positive: list[str],
    heads: list[str],
) -> Rule:
    """The rule that writes a record of a message.

    Args:
        message: its class.
        name: of the rule.
        second: what it is given behind ``net``, before the fields.
        body: the lines that find the record's ``kind``, ``to`` and ``words``.
        positive: what is below 0 of a record that is not to be.
        heads: words of the body before the fields.
    """
    lists = _lists(message)
    bounded = [field for field in lists if isinstance(field.kind.most, int)]
    faults = [f"len({field.local}) > {field.kind.most}" for field in bounded]
    faults += [f"{each} < 0" for each in positive]
    if faults:
        # No record has such a kind: the engine ends the run at once, and says why.
        body += [f"    if {' or '.join(faults)}:", f"        kind, words = {-message.kind}, 0"]
    body += [
        "    at = open_record(net.out, kind, to, net.me, words)",
        "    if at >= 0 and kind > 0:",
        f"        body, at_field = net.out.words, at + {BODY + len(heads)}",
    ]
    body += [f"        body[at + {BODY + i}] = {head}" for i, head in enumerate(heads)]
    body += list(_writing(message.fields))
    body += ["    if at >= 0:", "        close_record(net.out, at, words)"]
    if "handle" in positive:
        body += ["    return handle"]
    given = ["net", *([second] if second else []), *(field.local for field in message.fields)]
    source = make_function(name, given, body, _NAMES)
    return _SendingRule(source, message, bounded)


_NAMES: Final = {
    "open_record": open_record,
    "close_record": close_record,
    "delay_ticks": delay_ticks,
    "float_to_word": float_to_word,
    "new_handle": new_handle,
}


class _SendingRule(Rule):
    """A rule that writes a message; interpreted it says at once what is wrong with one."""

    def __init__(self, source: Callable[..., Any], message: Any, bounded: list[Field]) -> None:
        super().__init__(source, source, inline=True)
        self._message = message
        self._bounded = bounded
        self._width = source.__code__.co_argcount

    def __call__(self, *args: Any, **named: Any) -> Any:
        fault = self._fault(args, named)
        if fault:
            caller = sys._getframe(1)
            place = caller.f_code.co_name, caller.f_code.co_filename, caller.f_lineno
            raise RuleFault(fault, place)
        return super().__call__(*args)

    def _fault(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> str | None:
        name = self._message.__name__
        fields = [field.name for field in self._message.fields]
        if named:
            return (
                f"it sends a {name} with {', '.join(f'{each}=' for each in named)}, expected its "
                f"fields {', '.join(fields)} in this order, without names"
            )
        if len(args) != self._width:
            return None
        given = dict(zip(fields, args[-len(fields) :], strict=False))
        for field in self._bounded:
            if len(given[field.name]) > field.kind.most:
                return (
                    f"it sends a {name} with {len(given[field.name])} items in {field.name}, "
                    f"expected at most {field.kind.most}, as is declared"
                )
        if self.source.__name__ != "after":
            return None
        net = args[0]
        if delay_ticks.interpreted(args[1], net.rate) < 0:
            return f"it asks for a {name} after {args[1]!r} s, expected a delay {DELAYS}"
        pending = net.handles[net.me, 1:] if self._message.cancellable else ()
        if len(pending) and min(pending) > 0:
            return (
                f"it asks for a {name} while {len(pending)} are pending that can be cancelled, "
                "expected no more than are declared"
            )
        return None


def _writing(fields: tuple[Field, ...]) -> Iterator[str]:
    """The lines that write fields from the word ``at_field`` on."""
    for field in fields:
        name = field.local
        if isinstance(field.kind, Items):
            yield f"        body[at_field] = len({name})"
            yield f"        for i in range(len({name})):"
            item = _to_word(f"{name}[i]", field.kind.kind)
            yield f"            body[at_field + 1 + i] = {item}"
            yield f"        at_field += 1 + len({name})"
        else:
            yield f"        body[at_field] = {_to_word(name, field.kind)}"
            yield "        at_field += 1"


def _to_word(name: str, kind: Any) -> str:
    return f"float_to_word({name})" if kind is float else name


def _refusing_rule(message: Any) -> Rule:
    """The rule by which node p ends the run, as it is to take more items than a setting allows."""
    kind = message.kind

    def interpreted(out: Any, p: int, count: int, most: int) -> None:
        if not isinstance(out, Outbox):  # a checked run, which says it at once
            name = message.__name__
            fault = f"a {name} has {count} items in a field, expected at most {most}, as a setting"
            raise RuleFault(f"{fault} of its taker says", (name, *message.place))
        at = open_record.interpreted(out, -kind, p, p, 0)
        close_record.interpreted(out, at, 0)

    def refuse(out: Any, p: int, _count: int, _most: int) -> None:
        at = open_record(out, -kind, p, p, 0)
        if at >= 0:
            close_record(out, at, 0)

    return Rule(interpreted, refuse, inline=True)


def taking_rule(handler: Rule, message: Any, path: str, names: Mapping[str, Any]) -> Rule:
    """The rule that hands a record of a message to its handler, field by field.

    Args:
        handler: takes state, row, `Net`, sender and fields.
        message: its class.
        path: of the handler's state in that of the stack.
        names: that of ``net_of``, by which a `Net` is made.
    """
    lines, given, at = [], [], [f"at + {BODY}"]
    for field in message.fields:
        begin = " + ".join(at)
        if isinstance(field.kind, Items):
            count = f"count_of_{field.local}"
            lines.append(f"    {count} = words[{begin}]")
            if isinstance(most := field.kind.most, str):
                lines.append(f"    if {count} > s{path}.{most}:")
                lines.append(f"        refuse(out, p, {count}, s{path}.{most})")
                lines.append("        return")
            as_floats = ".view(float64)" if field.kind.kind is float else ""
            part = f"words[{begin} + 1 : {begin} + 1 + {count}]{as_floats}"
            lines.append(f"    {field.local} = {part}")
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
            {
                "handle": handler,
                "word_to_float": word_to_float,
                "float64": np.float64,
                "refuse": _refusing_rule(message),
                **names,
            },
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
