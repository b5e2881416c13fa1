"""Options of the command line that Spark would misunderstand in its own words."""

from __future__ import annotations

import re
from typing import Final

from gossamer.sim.errors import ScenarioError

LOG_LEVELS: Final = ("off", "fatal", "error", "warn", "info", "debug")
_UNITS: Final = {"m": 2**20, "g": 2**30}
_LEAST_BYTES: Final = 512 * 2**20
# Options that are asked for in another way, or not at all.
_ELSEWHERE: Final = {
    "spark.master": "--master in its place",
    "spark.remote": "--master in its place",
    "spark.pyspark.driver.python": "spark.pyspark.python: the driver is this command itself",
}


def memory_of(text: str | None) -> int | None:
    """Bytes of a text such as 2g; raises `ScenarioError`."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,9})([mg])", text.strip().lower())
    if match is None or int(match[1]) * _UNITS[match[2]] < _LEAST_BYTES:
        raise ScenarioError(None, "--memory", text, "512m or more, such as 2g")
    return int(match[1]) * _UNITS[match[2]]


def log_level_of(text: str) -> str:
    """A level of Spark's log; raises `ScenarioError`."""
    if text.lower() not in LOG_LEVELS:
        raise ScenarioError(None, "--log-level", text, f"one of {', '.join(LOG_LEVELS)}")
    return text.lower()


def option_of(text: str) -> tuple[str, str]:
    """Key and value of an option of Spark; raises `ScenarioError`."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip().startswith("spark."):
        expected = "KEY=VALUE with a key that begins with spark."
        raise ScenarioError(None, "--conf", text, expected)
    if key.strip() in _ELSEWHERE:
        raise ScenarioError(None, "--conf", text, _ELSEWHERE[key.strip()])
    return key.strip(), value.strip()
