"""The fourth family as nodes register it: its settings, and where everything else is."""

from __future__ import annotations

from typing import ClassVar, Final

from attrs import field, frozen

from gossamer.node.config import checks
from gossamer.node.config.broker import BrokerFamily


@frozen(kw_only=True)
class FloodingSection:
    SECTION: ClassVar = "flooding"
    motto: str = field(default="everywhere", validator=checks.short_text(20))


FLOODING: Final = BrokerFamily(
    name="flooding",
    schema="that of flooding brokers",
    host="support.flooding:host_of",
    section=FloodingSection,
)
