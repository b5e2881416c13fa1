"""Batch files: one operation of a client a line, all of them read before any is carried out.

# what follows a number sign at the beginning of a line is ignored
advertise quotes present(symbol) and price > 0
subscribe cheap symbol == "IBM" and price < 120.5
publish symbol = "IBM", price = 81.5
publish [symbol,'IBM'],[price,81.5]
unsubscribe cheap
unadvertise quotes
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from attrs import frozen

from gossamer.node.errors import CommandError, ConfigurationError
from gossamer.node.local.client import LocalClient
from gossamer.protocol.content import filters
from gossamer.protocol.kernel.errors import ExpressionError

MAX_BYTES: Final = 64 << 20
_LINE: Final = re.compile(r"\s*(?P<word>\S+)(?:\s+(?P<rest>.*\S))?\s*")
_LABELLED: Final = re.compile(r"(?P<label>\S+)(?:\s+(?P<text>.*))?")


@frozen
class Operation:
    """An operation and where it stands.

    Attributes:
        line: of the file, from 1.
        carry_out: does it.
    """

    line: int
    carry_out: Callable[[LocalClient], Awaitable[object]]


@frozen
class _Part:
    """A part of a line and the column where it begins."""

    text: str
    column: int


def read_batch(path: Path) -> list[Operation]:
    """The operations of a file, none of which has been carried out.

    Raises:
        ConfigurationError: the file cannot be read.
        CommandError: a line is no operation.
    """
    try:
        raw = path.read_bytes()[: MAX_BYTES + 1]
    except OSError as error:
        found = f"unreadable ({error.strerror or error})"
        raise ConfigurationError("", "the batch file", path, "a file", found) from None
    if len(raw) > MAX_BYTES:
        expected = f"at most {MAX_BYTES} bytes"
        raise ConfigurationError("", "the batch file", path, expected, "longer than that")
    operations = []
    for number, line in enumerate(raw.removeprefix(codecs.BOM_UTF8).split(b"\n"), 1):
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            raise _refused(path, number, error.start + 1, "this is no UTF-8 text") from None
        if text.strip() and not text.lstrip().startswith("#"):
            operations.append(Operation(number, _read_line(path, number, text)))
    return operations


def _read_line(path: Path, number: int, line: str) -> Callable[[LocalClient], Awaitable[object]]:
    found = _LINE.fullmatch(line)
    assert found is not None, "it is not empty"
    word = found["word"]
    if word not in _OPERATIONS:
        expected = f"expected one of {', '.join(_OPERATIONS)}, found {word[:40]!r}"
        raise _refused(path, number, found.start("word") + 1, expected)
    start = found.start("rest") if found["rest"] else found.end("word")
    rest = _Part(found["rest"] or "", start + 1)
    try:
        return _OPERATIONS[word](rest)
    except _LineError as error:
        raise _refused(path, number, error.column, error.reason) from None


def _refused(path: Path, line: int, column: int, reason: str) -> CommandError:
    return CommandError(f"{path}, line {line}, column {column}: {reason}; nothing was done")


class _LineError(Exception):
    def __init__(self, column: int, reason: str) -> None:
        self.column, self.reason = column, reason
        super().__init__(reason)


def _label(rest: _Part) -> str:
    found = _LABELLED.fullmatch(rest.text)
    if found is None:
        raise _LineError(rest.column, "expected a label")
    if found["text"]:
        raise _LineError(rest.column + found.start("text"), "expected nothing after the label")
    return found["label"]


def _labelled_filter(rest: _Part) -> tuple[str, str]:
    found = _LABELLED.fullmatch(rest.text)
    if found is None or not found["text"]:
        column = rest.column + len(rest.text)
        raise _LineError(column, "expected a label and a filter, such as: cheap price < 120.5")
    _checked(filters.parse, found["text"], rest.column + found.start("text"))
    return found["label"], found["text"]


def _checked(
    parse: Callable[[str], dict[str, object] | filters.Filter], text: str, column: int
) -> dict[str, object] | filters.Filter:
    try:
        return parse(text)
    except ExpressionError as error:
        raise _LineError(column + error.column - 1, error.reason) from None
    except RecursionError:
        raise _LineError(column, "this is nested too deeply") from None


def _subscribe(rest: _Part) -> Callable[[LocalClient], Awaitable[object]]:
    label, text = _labelled_filter(rest)
    return lambda client: client.subscribe(label, text)


def _advertise(rest: _Part) -> Callable[[LocalClient], Awaitable[object]]:
    label, text = _labelled_filter(rest)
    return lambda client: client.advertise(label, text)


def _unsubscribe(rest: _Part) -> Callable[[LocalClient], Awaitable[object]]:
    label = _label(rest)
    return lambda client: client.unsubscribe(label)


def _unadvertise(rest: _Part) -> Callable[[LocalClient], Awaitable[object]]:
    label = _label(rest)
    return lambda client: client.unadvertise(label)


def _publish(rest: _Part) -> Callable[[LocalClient], Awaitable[object]]:
    values = _checked(filters.parse_publication, rest.text, rest.column)
    assert isinstance(values, dict)
    return lambda client: client.publish(values)


_OPERATIONS: Final = {
    "advertise": _advertise,
    "unadvertise": _unadvertise,
    "subscribe": _subscribe,
    "unsubscribe": _unsubscribe,
    "publish": _publish,
}
