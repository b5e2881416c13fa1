"""What runs gave before: `golden/measures.json`, to which it is compared.

A change that is meant to change what is computed writes the file anew: run the tests concerned with
``--all --write-golden``, on one process, and read the difference before it is committed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

MEASURES: Final = Path(__file__).parents[1] / "golden" / "measures.json"
# How the names of those checks begin that compare processor times.
TIMED: Final = ("planning time", "covering over matching", "publication, ")


def check_golden(section: str, found: Mapping[str, Any], write: bool) -> None:
    """Fail unless ``found`` is what the file has in ``section``, or else ``write`` it there."""
    golden: dict[str, Any] = json.loads(MEASURES.read_text(encoding="utf-8"))
    if write:
        golden[section] = dict(found)
        text = json.dumps(golden, indent=1, sort_keys=True, ensure_ascii=False)
        MEASURES.write_text(text + "\n", encoding="utf-8")
        return
    expected = golden[section]
    changed = [
        f"{name}: was {expected.get(name)}, is {found.get(name)}"
        for name in sorted({*expected, *found})
        if expected.get(name) != found.get(name)
    ]
    if changed:
        pytest.fail(f"{section} in {MEASURES.name}:\n" + "\n".join(changed))


def measured_by_checks(folder: Path) -> dict[str, float]:
    """Every value behind the claims of a folder of figures that is no processor time."""
    checks = json.loads((folder / "checks.json").read_text(encoding="utf-8"))
    return {
        f"{check['claim']}{_reading_of(check)}, {check['name']}": check["value"]
        for check in checks
        if not check["name"].startswith(TIMED)
    }


def _reading_of(check: Mapping[str, Any]) -> str:
    return " read otherwise" if "reading" in check else ""
