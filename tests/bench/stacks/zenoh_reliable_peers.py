"""Peers of Zenoh whose publishers keep what subscribers may have missed, and are asked for it."""

# Installed in an environment of its own only.
# mypy: disable-error-code="import-not-found"

from __future__ import annotations

from typing import Any

from zenoh import ext

from bench.stacks.application import run_on_asyncio
from bench.stacks.zenoh_peers import WAITS, ZenohApplications

KEPT = 10_000  # events of a topic at each of its publishers: all
# What was published last is said once more, as long as it has changed since.
MISSES = ext.MissDetectionConfig(heartbeat=None, sporadic_heartbeat=0.5)
RECOVERY = ext.RecoveryConfig(periodic_queries=None, heartbeat=True)


class ReliableZenohApplications(ZenohApplications):
    """As those, with advanced publishers and subscribers that recover what they have not got."""

    def publisher(self, number: int, topic: str) -> Any:
        return ext.declare_advanced_publisher(
            self.sessions[number],
            topic,
            congestion_control=WAITS,
            cache=ext.CacheConfig(max_samples=KEPT),
            sample_miss_detection=MISSES,
            publisher_detection=True,
        )

    def subscriber(self, number: int, topic: str) -> Any:
        return ext.declare_advanced_subscriber(
            self.sessions[number],
            topic,
            self.taker(number),
            recovery=RECOVERY,
            subscriber_detection=True,
        )


if __name__ == "__main__":
    run_on_asyncio(ReliableZenohApplications)
