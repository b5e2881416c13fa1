"""What clients of a broker write, read: filters and publications, with or without a schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from gossamer.node.errors import ClientRequestError
from gossamer.protocol.brokers.core.errors import MalformedMessageError
from gossamer.protocol.brokers.core.plain import MAX_NAME, plain_filter, plain_values, read_values
from gossamer.protocol.content import filters
from gossamer.protocol.content.filters import Filter, Publication, exact_publication
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
