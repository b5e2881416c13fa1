"""`--workload`: what folders of workloads put in place of a scenario's values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from gossamer.sim.results.storage.workloads import workload_here
from gossamer.sim.study.registry import kind_of_document, study_of_kind
from gossamer.sim.study.toml_files import parse_document, read_text


def workload_overrides(
    scenario: Path | None, folders: Sequence[str], overrides: Mapping[str, object]
) -> dict[str, object]:
    """Values by dotted key, as `--set` has them, under those that are set.

    Args:
        scenario: the file, whose kind decides what is taken; that of peers without one.
        folders: paths or URLs of workloads; one elsewhere is copied to this machine.
        overrides: what is set, which comes before.

    Raises:
        StorageError, ResultsError: there is no workload, or its storage fails.
        ScenarioError: the file is no scenario, or one of a kind that takes no such workload.
    """
    found: dict[str, object] = {}
    if folders:
        document = {} if scenario is None else parse_document(read_text(scenario), str(scenario))
        kind = overrides.get("kind", kind_of_document({**document, **overrides}))
        for text in folders:
            workload = workload_here(text)
            found |= study_of_kind(kind).taken_from(workload.kind, workload.path)
    return {**found, **overrides}
