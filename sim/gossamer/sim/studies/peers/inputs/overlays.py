"""Overlays of one's own as systems of a scenario of peers: what they are given and cannot have."""

from __future__ import annotations

from typing import Any

import attrs

from gossamer.sim.custom.language.declarations import settings_with
from gossamer.sim.custom.loading import PROTOCOL, ProtocolClass, protocol_named
from gossamer.sim.custom.pubsub import overlay
from gossamer.sim.errors import ScenarioError
from gossamer.sim.study.scenarios import check


def protocol_of(system: str, given: object) -> ProtocolClass:
    """The protocol of a class, or of ``file.py:Class``; raises `ScenarioError` under the system."""
    if isinstance(given, ProtocolClass):
        return given
    try:
        return protocol_named(given)
    except ScenarioError as error:
        own = f"system.{system}.{PROTOCOL}"
        raise attrs.evolve(error, field=own if error.field == PROTOCOL else error.field) from None


def check_overlay(system: str, protocol: ProtocolClass, scenario: Any) -> None:
    """Refuse what a protocol lacks, and what of a scenario only the shipped systems know.

    Raises:
        ScenarioError: as of `overlay.check_overlay`, or about a key of the scenario.
    """
    drifts = scenario.drift is not None
    overlay.check_overlay(protocol, f"system.{system}.{PROTOCOL}", drifts=drifts)
    whose = f"beside {protocol.label}, an overlay of one's own"
    known = scenario.engine != "synchronous"
    check(known, "engine", scenario.engine, f'"cycle" or "event" {whose}')
    check(scenario.start == "joining", "start", scenario.start, f'"joining" {whose}')
    capacity = scenario.network.event_capacity
    check(capacity is None, "network.event_capacity", capacity, f"left out {whose}")


def overlay_settings(system: Any, subscriptions: Any) -> dict[str, Any]:
    """All settings of the protocol of a system in a run with these subscriptions."""
    shared = {"attributes": subscriptions.attributes, "subscriptions": subscriptions.per_node}
    return settings_with(system.protocol.declared, {**system.settings, **shared}, "")
