"""What of a changed configuration a running node takes up, and what needs a restart.

Taken up are settings that nothing else was built from: how it logs, what its clients may cost, and
peers to look for. The certificate, the list of revoked peers and the schema are not settings: the
node follows their files by itself.
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from gossamer.node.config.node import FAMILY_SECTIONS, SECTIONS, NodeConfig

# By section, the settings that a running node takes up.
LIVE: Final = {
    "logging": ("level", "format", "repeat_s", "name", "event_lines"),
    "local": (
        "clients",
        "subscriptions",
        "requests_per_s",
        "queue_bytes",
        "window",
        "publishing",
    ),
    "discovery": ("peers",),
}
LIVE_NAMES: Final = frozenset(
    f"{section}.{name}" for section, names in LIVE.items() for name in names
)


@attrs.frozen
class Reloaded:
    """What became of a changed configuration.

    Attributes:
        changed: names of the settings that are in force now.
        restart: names of those that the node keeps as they were until it starts anew.
    """

    changed: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {"changed": list(self.changed), "restart": list(self.restart)}


def compare(before: NodeConfig, found: NodeConfig) -> tuple[Reloaded, NodeConfig]:
    """What differs in ``found``, and the configuration with what of it can be taken up."""
    old, new = settings_of(before), settings_of(found)
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    told = Reloaded(
        tuple(name for name in names if name in LIVE_NAMES),
        tuple(name for name in names if name not in LIVE_NAMES),
    )
    sections = {
        section: attrs.evolve(
            getattr(before, section), **{name: new[f"{section}.{name}"] for name in names_of}
        )
        for section, names_of in LIVE.items()
    }
    return told, attrs.evolve(before, **sections)


def settings_of(config: NodeConfig) -> dict[str, object]:
    """Every setting by its dotted name; what a preset decides is in the settings that it sets."""
    found: dict[str, object] = {}
    for section in (*SECTIONS, *FAMILY_SECTIONS):
        part = config.section(section.SECTION)
        for name, value in attrs.asdict(part, recurse=False).items():
            if name == "settings":
                found |= {f"{section.SECTION}.{key}": one for key, one in value.items()}
            else:
                found[f"{section.SECTION}.{name}"] = value
    found |= {f"limits.{name}": value for name, value in config.limits.items()}
    found["attributes"] = config.schema
    return found
