"""Nothing changes in what is computed: example scenarios, beside the figures, give what they gave.

`golden/measures.json` has the `result_hash` of every example scenario, made smaller and as it is,
and the values behind the claims of all ``figures --quick`` (`test_figures.py`). That hosts, engines
and forms of a rule agree is guarded by `GUARDS`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gossamer.command.main import main
from support.checkout import ROOT
from support.golden import check_golden

EXAMPLES = ROOT / "examples"

# Of each scenario, what makes it small.
SCENARIOS = {
    "brokers/scenario.toml": (
        'coverings=["active", "selective"]',
        "workload.roots=6",
        "workload.degree=8",
        "workload.unsubscriptions=3",
        "timing.calm_s=20",
        "timing.aftermath_s=20",
    ),
    "scale/scenario.toml": ("nodes=300",),
    "scot/scenario.toml": (
        'routings=["static", "dynamic"]',
        "workload.subscribers=30",
        "burst.notifications=1000",
    ),
    "spark/peers.toml": ("nodes=60", "rounds=60"),
    "trees/scenario.toml": ("topology.brokers=60", "workload.documents=200", "planning.states=3"),
    "vinifera/scenario.toml": ("churn.end_s=1800",),
}

# Those that take long even so, and whose studies other tests run.
DEAR = ("scale/scenario.toml", "trees/scenario.toml")

# The tests by which hosts, engines and forms of a rule are held equal.
GUARDS = {
    "equivalence/test_node_and_event_engine.py": "event engine and real peers, message for message",
    "simulation/test_engines_agree.py": "cycle engine and event engine",
    "simulation/test_compiled_peer.py": "compiled and interpreted rules",
    "simulation/test_windows_equal_wheel.py": "windows on any number of threads and event engine",
}


def test_every_example_scenario_is_listed_and_the_guards_of_equality_are_there() -> None:
    found = {path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("scenario.toml")}
    assert found == set(SCENARIOS) - {"spark/peers.toml"}
    for name in GUARDS:
        assert "def test_" in (ROOT / "tests" / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "size"),
    [
        pytest.param(name, size, marks=[pytest.mark.campaign] * (size == "whole" or name in DEAR))
        for name in SCENARIOS
        for size in ("small", "whole")
    ],
)
def test_examples_are_as_before(name: str, size: str, tmp_path: Path, write_golden: bool) -> None:
    settings = SCENARIOS[name] if size == "small" else ()
    options = [word for setting in settings for word in ("--set", setting)]
    out = tmp_path / "out"
    assert (
        main(["sim", "run", str(EXAMPLES / name), *options, "--no-plots", "--out", str(out)]) == 0
    )
    found = json.loads((out / "summary.json").read_text(encoding="utf-8"))["result_hash"]
    check_golden(f"example {name}, {size}", {"result_hash": found}, write_golden)
