"""Scenarios of kind "scot" as TOML: read strictly, written back.

Keys at the top are `kind`, `name`, `seed` and `routings`; the tables [overlay], [workload],
[burst], [links] and [service] hold the fields of the classes of `scenario`, and [scot] settings of
brokers. Nothing outside these is accepted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from gossamer.sim.studies.scot.scenario import KIND, SCOT_SETTINGS, SECTIONS, ScotScenario
from gossamer.sim.study.toml_files import (
    Document,
    check_keys,
    require_table,
    section_of,
    toml_line,
    unknown_key,
)

SCOT: Final = "scot"
_KIND: Final = "kind"
_TOP_KEYS: Final = ("name", "seed", "routings")


def scenario_from_document(document: Document, overrides: Mapping[str, object]) -> ScotScenario:
    """Build a scenario from the content of a TOML file.

    Args:
        document: the content; ``overrides`` are written into it.
        overrides: values by dotted key, such as ``burst.per_minute``.

    Raises:
        ScenarioError: a key is unknown, or a value impossible.
    """
    for key, value in overrides.items():
        _override(document, key, value)
    check_keys("", document, (_KIND, *_TOP_KEYS, *SECTIONS, SCOT))
    fields: Document = {key: document[key] for key in _TOP_KEYS if key in document}
    for name, kind in SECTIONS.items():
        if name in document:
            fields[name] = section_of(name, kind, document[name])
    if SCOT in document:
        settings = require_table(document[SCOT], SCOT)
        check_keys(f"{SCOT}.", settings, SCOT_SETTINGS)
        fields[SCOT] = settings
    return ScotScenario(**fields)


def scenario_to_toml(scenario: ScotScenario) -> str:
    """The text of a file that reads back as ``scenario``; every default is spelled out."""
    lines = [toml_line("", _KIND, KIND)]
    lines += [toml_line("", field, getattr(scenario, field)) for field in _TOP_KEYS]
    tables = {name: attrs.asdict(getattr(scenario, name)) for name in SECTIONS}
    for name, values in (tables | {SCOT: dict(scenario.scot)}).items():
        lines += ["", f"[{name}]", *(toml_line(f"{name}.", *item) for item in values.items())]
    return "".join(line + "\n" for line in lines if line is not None)


def _override(document: Document, dotted: str, value: object) -> None:
    """Put ``value`` in the place that ``dotted`` names; checked with everything else later."""
    section, _, key = dotted.rpartition(".")
    if not section:
        document[key] = value
    elif section in (*SECTIONS, SCOT):
        require_table(document.setdefault(section, {}), section)[key] = value
    else:
        known = (*_TOP_KEYS, *(f"{name}.{key}" for name in (*SECTIONS, SCOT)))
        raise unknown_key(dotted, value, dotted, known)
