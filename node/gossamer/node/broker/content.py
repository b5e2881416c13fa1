"""What clients of a broker write, read: filters and publications, with or without a schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from gossamer.node.errors import ClientRequestError
from gossamer.protocol.brokers.core.errors import MalformedMessageError
from gossamer.protocol.brokers.core.plain import plain_filter, plain_values, read_values
from gossamer.protocol.content import filters
from gossamer.protocol.content.filters import Filter, Publication, exact_publication
from gossamer.protocol.content.filters.composite import Composite, is_composite, parse_composite
from gossamer.protocol.content.limits import MAX_NAME
from gossamer.protocol.content.schema import Schema


@frozen
class Content:
    """What filters and publications may be about.

    Attributes:
        schema: names and types that they have to fit; None: anything.
    """

    schema: Schema | None = None

    def filter(self, text: str) -> Filter:
        """The filter that a client wrote, in gossamer's language or PADRES'.

        Raises:
            ExpressionError: it is none; its column says where.
            ContentError: it is too long for others to read.
        """
        found = filters.parse(text, self.schema)
        plain_filter(found)
        return found

    def composite(self, text: str) -> Composite:
        """The composite subscription that a client wrote; raises `ExpressionError`."""
        return parse_composite(text, self.schema)

    def publication(self, data: Mapping[str, Any]) -> Publication:
        """The publication that travelled from a client as plain data.

        Raises:
            ClientRequestError: a value is none.
            ContentError: the values do not fit the schema, or are too long for others to read.
        """
        try:
            values = exact_publication(read_values(data, "values"), self.schema)
        except MalformedMessageError as error:
            reason = f"{error.field} holds {error.value}, expected {error.expected}"
            raise ClientRequestError(reason) from None
        plain_values(values)
        return values


def check_label(label: str) -> None:
    """Refuse what is no label; raises `ClientRequestError`."""
    if not 0 < len(label) <= MAX_NAME or not label.isprintable():
        reason = f"a label has 1 to {MAX_NAME} printable characters, expected other than {label!r}"
        raise ClientRequestError(reason)


def check_window(text: str, within_s: float | None) -> None:
    """Refuse a composite subscription without a window, and a window without that.

    Args:
        text: of a subscription; a composite one begins with a brace.
        within_s: seconds, None for no window.

    Raises:
        ClientRequestError: it has only one of the two.
    """
    if is_composite(text) and within_s is None:
        reason = "a composite subscription ('{...}') needs a window in seconds, as of --within 10"
        raise ClientRequestError(reason)
    if within_s is not None and not is_composite(text):
        reason = (
            "only a composite subscription has a window (--within), such as '{a > 1} & {b > 1}'"
        )
        raise ClientRequestError(reason)
