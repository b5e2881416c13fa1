"""What events, names and requests may measure: the one table that all who check it read.

Clients of a node check by it what they send, the schema what is published, the command line what it
is given, and the wire what comes. Whatever is larger is refused by itself, with its name and its
limit, and costs nothing else. Nothing is imported here: clients load no more of the protocol layer.
"""

from __future__ import annotations

from typing import Final

# Of events
MAX_EVENT_BYTES: Final = 1 << 16
"""Most bytes of an event, its values and payload together; its seal comes on top of it."""
MAX_PAYLOAD_BYTES: Final = 48 << 10
"""Most bytes of a payload."""
MAX_CONTENT_TYPE: Final = 127
"""Most characters of a content type."""
MAX_STRING: Final = 4096
"""Most characters of a string: longer data are a payload."""
MAX_DIGITS: Final = 1000
"""Most digits of a number, and of numerator and denominator each, as of a product of two floats."""
MAX_LITERAL: Final = 2 * MAX_DIGITS + 2
"""Most characters of a number as text: a sign, numerator, slash and denominator."""
MAX_ATTRIBUTES: Final = 16
"""Most attributes of a schema in use."""
MAX_KNOWN_ATTRIBUTES: Final = 31
"""Most attributes of a schema together with those that were removed from it."""
MAX_ANY_ATTRIBUTES: Final = 256
"""Most attributes of an event at a broker that has no schema."""
MAX_ANY_NAME: Final = 4096
"""Most characters of the name of such an attribute."""

# Of requests
MAX_NAME: Final = 64
"""Most characters of the name of a client, a label, a queue group or an attribute of a schema."""
MAX_EXPRESSION: Final = 8192
"""Most characters of an expression."""
MAX_EVENTS: Final = 256
"""Most events of one request to publish; their values are within `FRAME_ITEMS`."""
FRAME_BYTES: Final = 1 << 20
"""Most bytes of a frame that every node takes."""
FRAME_ITEMS: Final = 16_384
"""Most values in a frame that every node takes."""
