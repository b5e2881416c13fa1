"""Every error that the protocol layer raises, in one place.

Each class says in its docstring whether protocol state may have changed when it is raised.
Messages are one sentence that names the field, its value and what was expected.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

# What is said in place of what is expected, where one name alone can be meant.
NEAR: Final = "did you mean"
# Of more names, the one that is meant would be hidden by all of them.
_MANY: Final = 15


class ProtocolError(Exception):
    """Base of all errors of the protocol layer; abstract, never raised itself."""

    def __reduce__(self) -> Any:
        # By its parts: their text alone would not make an error again in another process.
        return _make_again, (type(self), str(self), self.__dict__)


def _make_again(kind: type[ProtocolError], text: str, parts: dict[str, Any]) -> ProtocolError:
    error = kind.__new__(kind, text)
    error.args = (text,)
    error.__dict__.update(parts)
    return error


class LocalProtocolError(ProtocolError):
    """The caller asked for something the protocol does not allow; state is untouched."""


class RemoteProtocolError(ProtocolError):
    """A remote peer sent something the protocol does not allow; state is untouched."""


class MalformedRecordError(RemoteProtocolError):
    """A record between peers holds what its kind does not allow; nothing of it was used.

    Attributes:
        kind: kind of the record.
        field: name of the field at fault, or "length".
        value: what was found there.
        expected: what would have been accepted, in words.
    """

    def __init__(self, kind: int, field: str, value: int, expected: str) -> None:
        self.kind = kind
        self.field = field
        self.value = value
        self.expected = expected
        super().__init__(f"record of kind {kind}: {field} is {value}, expected {expected}")


class CapacityError(ProtocolError):
    """A bounded table or buffer is full; the operation that needed room was not carried out.

    Attributes:
        table: which table is full.
        capacity: how many entries it holds.
    """

    def __init__(self, table: str, capacity: int, advice: str = "") -> None:
        self.table = table
        self.capacity = capacity
        text = f"{table} is full at {capacity} entries"
        super().__init__(f"{text}; {advice}" if advice else text)


class ConfigError(ProtocolError):
    """A setting is impossible; nothing was built from it.

    Attributes:
        field: dotted name of the setting.
        value: the value that was given.
        expected: what would have been accepted, in words.
    """

    def __init__(self, field: str, value: object, expected: str) -> None:
        self.field = field
        self.value = value
        self.expected = expected
        super().__init__(f"{field} is {value!r}, {expectation(expected)}")


class ExpressionError(LocalProtocolError):
    """A subscription or event text does not parse or does not fit the schema; state is untouched.

    Attributes:
        text: the whole text.
        column: 1-based column of the first character at fault.
        reason: what is wrong there, in words.
    """

    def __init__(self, text: str, column: int, reason: str) -> None:
        self.text = text
        self.column = column
        self.reason = reason
        super().__init__(f"{reason} at column {column}\n  {text}\n  {' ' * (column - 1)}^")


class StructError(LocalProtocolError):
    """A struct of arrays cannot be defined or built as asked; nothing was built.

    Attributes:
        struct: name of its class.
        field: name of the field at fault.
        fault: what is wrong with it, in words.
        expected: what would have been accepted, in words.
    """

    def __init__(self, struct: str, field: str, fault: str, expected: str) -> None:
        self.struct = struct
        self.field = field
        self.fault = fault
        self.expected = expected
        super().__init__(f"field {field} of struct {struct}: {fault}, expected {expected}")


class RuleError(ProtocolError):
    """A rule did in a checked run what rules may not; state is as the rule left it.

    Attributes:
        rule: its name.
        file, line: where in its source it happened.
        row: whose turn it was, -1 for an observer or hint.
        when: the time in words, such as "cycle 3".
        record: kind, sender and addressee of the record in hand, None where there was none.
        fault: what it did, and what was expected, in words.
    """

    def __init__(
        self,
        rule: str,
        file: str,
        line: int,
        row: int,
        when: str,
        record: tuple[int, ...] | None,
        fault: str,
    ) -> None:
        self.rule = rule
        self.file = file
        self.line = line
        self.row = row
        self.when = when
        self.record = record
        self.fault = fault
        place = f"rule {rule} ({file}, line {line}), " + (f"row {row}, " if row >= 0 else "")
        taken = "record of kind {} from {} to {}: ".format(*record) if record else ""
        super().__init__(f"{place}{when}{', ' if taken else ': '}{taken}{fault}")


class RecordError(ProtocolError):
    """A record cannot be passed on; it was not, and state is as the rule that wrote it left it.

    Attributes:
        kind, sender, to: what its header says.
        population: how many peers there are.
        fault: what is wrong with it, and what was expected, in words.
    """

    def __init__(self, kind: int, sender: int, to: int, population: int, fault: str) -> None:
        self.kind = kind
        self.sender = sender
        self.to = to
        self.population = population
        self.fault = fault
        super().__init__(
            f"record of kind {kind} from peer {sender} to peer {to} among {population} peers: "
            f"{fault}"
        )


class RuleCompilationError(LocalProtocolError):
    """A rule cannot be compiled; nothing of it ran. The compiler's own error is the cause.

    Attributes:
        rule: its name.
        file, line: where in its source the fault is.
        reason: what is wrong there, in words.
    """

    def __init__(self, rule: str, file: str, line: int, reason: str) -> None:
        self.rule = rule
        self.file = file
        self.line = line
        self.reason = reason
        super().__init__(f"rule {rule} ({file}, line {line}) cannot be compiled: {reason}")


class InvariantError(ProtocolError):
    """A defect of this software, never of its input; state is not to be trusted, do not catch."""


def choice(given: object, known: Iterable[str]) -> str:
    """What is expected in place of ``given``: one of some names, and which it is most like."""
    import difflib  # of no use where nothing is wrong

    known = list(known)
    near = difflib.get_close_matches(given, known, n=1) if isinstance(given, str) else []
    if near and len(known) > _MANY:
        return f"{NEAR} {near[0]!r}?"
    listed = f"one of {', '.join(known)}" if known else "nothing, as there is none"
    return f"{listed}; {NEAR} {near[0]!r}?" if near else listed


def expectation(expected: str) -> str:
    """The end of a sentence about a value in whose place something else was expected."""
    return expected if expected.startswith(NEAR) else f"expected {expected}"


# What the content layer refuses, and why; state is untouched by every one of these errors.


class ContentError(LocalProtocolError):
    """An event or a subscription does not fit the schema; state is untouched.

    Attributes:
        attribute: the name of the attribute concerned.
    """

    def __init__(self, attribute: str, reason: str) -> None:
        self.attribute = attribute
        super().__init__(reason)


class UnknownAttributeError(ContentError):
    """The schema has no attribute of that name; state is untouched.

    Attributes:
        suggestion: the nearest name of the schema, or None if none is near.
    """

    def __init__(self, attribute: str, suggestion: str | None) -> None:
        self.suggestion = suggestion
        hint = "" if suggestion is None else f", did you mean {suggestion!r}?"
        super().__init__(attribute, f"there is no attribute {attribute!r}{hint}")


class WrongValueError(ContentError):
    """A value has the wrong type for its attribute or lies outside its domain; state is untouched.

    Attributes:
        value: the value that was given, in words that include its type.
        expected: what would have been accepted, in words.
    """

    def __init__(self, attribute: str, value: str, expected: str) -> None:
        self.value = value
        self.expected = expected
        super().__init__(attribute, f"attribute {attribute!r} takes {expected}, not {value}")


class ContradictionError(ContentError):
    """No event of the schema can match the constraints on one attribute; state is untouched."""
