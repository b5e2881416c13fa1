"""What the content layer refuses, and why; state is untouched by every one of these errors."""

from __future__ import annotations

from gossamer.protocol.kernel.errors import LocalProtocolError


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
