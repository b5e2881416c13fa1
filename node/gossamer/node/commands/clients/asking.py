"""`gossamer advertise`, `unsub` and `batch`: what clients of a broker ask for and announce."""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import methodcaller
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from gossamer.node.commands.folder import address_of, ask
from gossamer.node.errors import CommandError, ConfigurationError, NodeError, TransportBroken
from gossamer.node.local.client import LocalClient
from gossamer.protocol.content import filters
from gossamer.protocol.kernel.errors import ExpressionError, ProtocolError

# Batch files: one operation of a client a line, all of them read before any is carried out.
#
# # what follows a number sign at the beginning of a line is ignored
# advertise quotes present(symbol) and price > 0
# subscribe cheap symbol == "IBM" and price < 120.5
# publish symbol = "IBM", price = 81.5
# publish [symbol,'IBM'],[price,81.5]
# unsubscribe cheap
# unadvertise quotes

MAX_BYTES: Final = 64 << 20
_LINE: Final = re.compile(r"\s*(?P<word>\S+)(?:\s+(?P<rest>.*\S))?\s*")
_LABELLED: Final = re.compile(r"(?P<label>\S+)(?:\s+(?P<text>.*))?")


@frozen
class Operation:
    """An operation, and the line of the file, from 1, where it stands."""

    line: int
    carry_out: Callable[[LocalClient], Awaitable[object]]


@frozen
class _Part:
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
        arguments = _OPERATIONS[word](rest)
    except _LineError as error:
        raise _refused(path, number, error.column, error.reason) from None
    return methodcaller(word, *arguments)


def _refused(path: Path, line: int, column: int, reason: str) -> CommandError:
    return CommandError(f"{path}, line {line}, column {column}: {reason}; nothing was done")


class _LineError(Exception):
    def __init__(self, column: int, reason: str) -> None:
        self.column, self.reason = column, reason
        super().__init__(reason)


def _label(rest: _Part) -> tuple[str]:
    found = _LABELLED.fullmatch(rest.text)
    if found is None:
        raise _LineError(rest.column, "expected a label")
    if found["text"]:
        raise _LineError(rest.column + found.start("text"), "expected nothing after the label")
    return (found["label"],)


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


def _values(rest: _Part) -> tuple[dict[str, object]]:
    values = _checked(filters.parse_publication, rest.text, rest.column)
    assert isinstance(values, dict)
    return (values,)


# How the arguments of each are read.
_OPERATIONS: Final[Mapping[str, Callable[[_Part], tuple[Any, ...]]]] = {
    "advertise": _labelled_filter,
    "unadvertise": _label,
    "subscribe": _labelled_filter,
    "unsubscribe": _label,
    "publish": _values,
}


# Operations after which a bar is drawn anew.
SHOWN: Final = 100

# Of an operation that was under way when the connection or the command ended.
UNKNOWN: Final = "it is not known whether this was done"


def change(folder: Path | None, name: str, kind: str, label: str, *filter_text: str) -> None:
    """Have a client advertise, unadvertise or unsubscribe; returns once its broker has stored that.

    Args:
        folder: of the node.
        name: of the client.
        kind: which of the three.
        label: what the client calls what it announces or asks for.
        filter_text: of an advertisement.

    Raises:
        NodeError: no broker runs there, or it refuses.
    """
    work: Callable[[LocalClient], Awaitable[None]]
    work = methodcaller(kind, label, *filter_text)
    ask(address_of(folder), work, name, aside=True)


def run_batch(folder: Path | None, name: str | None, file: Path) -> str:
    """Carry out the operations of a file; returns what was done, in words.

    Raises:
        CommandError: a line is no operation, and nothing was done; or the broker refused one, or
            went away, and those before it were done.
        NodeError: no broker runs there.
    """
    operations = read_batch(file)
    begun: list[Operation] = []

    async def work(client: LocalClient) -> None:
        with _progress(len(operations)) as show:
            await _carry_out(client, operations, file, begun, show)

    try:
        ask(address_of(folder), work, name, aside=True)
    except KeyboardInterrupt:
        if begun:
            stopped = _stopped(file, begun[-1].line, UNKNOWN, len(begun) - 1)
            print(f"gossamer: {stopped}", file=sys.stderr)
        raise
    return f"done: {len(operations)} lines of {file}"


async def _carry_out(
    client: LocalClient,
    operations: Sequence[Operation],
    file: Path,
    begun: list[Operation],
    show: Callable[[int], None],
) -> None:
    """Carry out operations; each is added to ``begun`` before."""
    for done, one in enumerate(operations):
        begun.append(one)
        try:
            await one.carry_out(client)
        except TransportBroken as error:
            raise _stopped(file, one.line, f"{error}; {UNKNOWN}", done) from None
        except (NodeError, ProtocolError) as error:
            raise _stopped(file, one.line, str(error), done) from None
        if done % SHOWN == 0:
            show(done)


def _stopped(file: Path, line: int, reason: str, done: int) -> CommandError:
    """An operation was refused, or interrupted; so many before it were carried out."""
    words = {0: "nothing was done", 1: "the operation before it was done"}
    before = words.get(done, f"the {done} operations before it were done")
    return CommandError(f"{file}, line {line}: {reason}; {before}")


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None]]:
    if not sys.stderr.isatty() or total < SHOWN:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("operations", total=total)
        yield lambda done: progress.update(task, completed=done)
