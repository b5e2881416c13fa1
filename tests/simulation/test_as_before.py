"""Nothing changes in what is computed: example scenarios, beside the figures, give what they gave.

`golden/measures.json` has the `result_hash` of every example scenario, made smaller here; as they
are they take minutes and are compared with ``GOSSAMER_FULL_EXAMPLES=1``. The values behind the
claims of all ``figures --quick`` are compared where these run (`test_figures.py` and the tests of
figures beside it). That hosts, engines and forms of a rule agree is guarded by `GUARDS`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.golden import check_golden

TESTS = Path(__file__).parents[1]
EXAMPLES = TESTS.parent / "examples"

# Of each scenario, what makes it small.
SCENARIOS = {
    "brokers/scenario.toml": (
        "workload.roots=10",
        "workload.degree=20",
        "workload.unsubscriptions=5",
    ),
    "scale/scenario.toml": ("nodes=2000",),
    "scot/scenario.toml": ("workload.subscribers=100",),
    "spark/peers.toml": ("rounds=60",),
    "trees/scenario.toml": ("workload.documents=1000",),
    "vinifera/scenario.toml": ("churn.end_s=3600",),
}

# The tests by which hosts, engines and forms of a rule are held equal.
GUARDS = {
    "equivalence/test_node_and_event_engine.py": "event engine and real peers, message for message",
    "simulation/test_engines_agree.py": "cycle engine and event engine",
    "simulation/test_compiled_peer.py": "compiled and interpreted rules",
}


def hash_of(scenario: str, folder: Path, settings: tuple[str, ...] = ()) -> str:
    """The `result_hash` of an example, run as a user does."""
    options = [word for setting in settings for word in ("--set", setting)]
    command = [
        *(sys.executable, "-m", "gossamer.command.main", "sim", "run", str(EXAMPLES / scenario)),
        *(*options, "--no-plots", "--out", str(folder)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    return str(summary["result_hash"])


def test_every_example_scenario_is_listed() -> None:
    found = {path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("scenario.toml")}
    assert found == set(SCENARIOS) - {"spark/peers.toml"}


def test_the_guards_of_equality_are_there() -> None:
    for name in GUARDS:
        assert "def test_" in (TESTS / name).read_text(encoding="utf-8")


@pytest.mark.slow
def test_small_examples_give_what_they_gave(tmp_path: Path) -> None:
    found = {
        name: hash_of(name, tmp_path / str(number), settings)
        for number, (name, settings) in enumerate(SCENARIOS.items())
    }
    check_golden("small examples", found)


@pytest.mark.slow
@pytest.mark.skipif(
    "GOSSAMER_FULL_EXAMPLES" not in os.environ,
    reason="takes five minutes: set GOSSAMER_FULL_EXAMPLES",
)
def test_examples_give_what_they_gave(tmp_path: Path) -> None:
    found = {name: hash_of(name, tmp_path / str(n)) for n, name in enumerate(SCENARIOS)}
    check_golden("examples", found)
