"""Scenario files: read strictly, written so that they read back, every fault one sentence."""

from __future__ import annotations

import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.peer.settings.config import SAMPLERS
from gossamer.protocol.peer.settings.presets import PRESETS
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.peers.inputs import scenario as inputs
from gossamer.sim.studies.peers.inputs import scenario_file as files
from gossamer.sim.studies.peers.inputs.changes import Drift, Turnover
from gossamer.sim.studies.peers.inputs.scenario import Churn, Events, Scenario, System
from gossamer.sim.studies.worlds.network import Link
from gossamer.sim.study.scenario_format import parse_override
from gossamer.sim.study.scenarios import read_scenario
from support.checkout import ROOT
from support.refusals import fault_of, read_as, write

Patch = pytest.MonkeyPatch
REFERENCE = ROOT / "docs" / "scenario.md"

FULL = """
name = "all of it"
nodes = 200
rounds = 50
round_s = 30
seed = 7
engine = "event"
measure_every = 5

[subscriptions]
kind = "random"
attributes = 3
width = 1

[events]
per_round = 2.5

[network]
latency = "constant"
latency_s = 0.05

[[system]]
name = "deep"
preset = "resilient"
ring_links = 4
load_shifting = false
shift_threshold = 2
sampler = "newscast"
"""


def test_every_key_reaches_its_field(tmp_path: Path) -> None:
    scenario, text = read_scenario(write(tmp_path, FULL))
    settings: dict[str, Any] = {"ring_links": 4, "load_shifting": False}
    settings |= {"shift_threshold": 2, "sampler": "newscast"}
    assert scenario == Scenario(
        name="all of it",
        nodes=200,
        rounds=50,
        round_s=30.0,
        seed=7,
        engine="event",
        measure_every=5,
        subscriptions=inputs.Subscriptions(kind="random", attributes=3, width=1.0),
        events=Events(per_round=2.5),
        network=Link(latency="constant", latency_s=0.05),
        systems=(System(name="deep", preset="resilient", settings=settings),),
    )
    assert text == FULL


def test_what_is_not_given_has_its_default_with_churn_all_of_the_trace(tmp_path: Path) -> None:
    assert read_scenario(write(tmp_path, ""))[0] == Scenario()
    scenario = read_as(Scenario, tmp_path, '[churn]\ntrace = "a.avt"\n')
    assert (scenario.nodes, scenario.rounds) == (None, None)


def test_paths_are_of_the_file_and_absolute_as_saved(tmp_path: Path, monkeypatch: Patch) -> None:
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path)
    write(Path("deep"), '[churn]\ntrace = "../a.avt"\n')
    scenario, text = read_scenario("deep/scenario.toml")
    assert isinstance(scenario, Scenario)
    assert scenario.churn == Churn(trace=tmp_path.resolve() / "a.avt")
    assert read_scenario(write(tmp_path, text)) == (scenario, text)


def test_overrides_replace_values_and_are_saved(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.chdir(tmp_path)
    overrides = {"seed": 3, "events.per_round": 9, "system.deep.ring_links": 2, "churn.trace": "t"}
    scenario, text = read_scenario(write(tmp_path, FULL), overrides)
    assert isinstance(scenario, Scenario)
    assert (scenario.seed, scenario.events.per_round) == (3, 9.0)
    assert scenario.systems[0].settings["ring_links"] == 2
    assert scenario.churn == Churn(trace=tmp_path.resolve() / "t")
    assert files.FORMAT.read(tomllib.loads(text), {}) == scenario
    unnamed = read_as(Scenario, tmp_path, "", {"system.baseline.view_size": 30})
    assert [system.settings for system in unnamed.systems] == [{}, {"view_size": 30}]


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("seed", -1, "seed is -1, expected a whole number from 0"),
        ("sede", 1, "sede is an unknown key, did you mean 'seed'?"),
        ("events.per_rounds", 1, "is an unknown key, did you mean 'events.per_round'?"),
        ("event.per_round", 1, "is an unknown key, did you mean 'events.per_round'?"),
        ("system.shallow.ring_links", 1, "is of no system, expected a setting of system.deep"),
        ("system.deep.seed", 1, "system.deep.seed is 1, expected seed in its place"),
    ],
)
def test_bad_overrides_blame_no_file(tmp_path: Path, key: str, value: object, words: str) -> None:
    with pytest.raises(ScenarioError, match=re.escape(words)) as caught:
        read_scenario(write(tmp_path, FULL), {key: value})
    assert caught.value.file is None


def test_override_values_are_toml_or_else_text() -> None:
    for text, parsed in {
        "rounds=5": ("rounds", 5),
        "events.per_round = 0.5": ("events.per_round", 0.5),
        "engine=event": ("engine", "event"),
        'name="a = b"': ("name", "a = b"),
        "system.v.cascade=false": ("system.v.cascade", False),
        "name=1\nseed=2": ("name", "1\nseed=2"),
        "name=": ("name", ""),
    }.items():
        assert parse_override(text) == parsed
    for text in ("rounds", "=5", ""):
        with pytest.raises(ScenarioError, match=r"--set is .*, expected key=value"):
            parse_override(text)


SYSTEM, MEAN = "[[system]]\nname = ", "did you mean"


@pytest.mark.parametrize(
    ("text", "field", "words"),
    [
        ("sede = 1", "sede", "did you mean 'seed'?"),
        ("xyzzy = 1", "xyzzy", "expected one of kind, name, nodes"),
        ("subscriptions.widht = 1", "subscriptions.widht", "did you mean 'subscriptions.width'?"),
        ("[churns]\nx = 1", "churns", "did you mean 'churn'?"),
        ("systems = 1", "systems", "did you mean 'system'?"),
        (f"{SYSTEM}'v'\nring_link = 1", *("system.v.ring_link", f"{MEAN} 'system.v.ring_links'?")),
        ("[churn]\ntime_scale = 2.0", "churn.trace", "missing"),
        ('[[system]]\npreset = "paper"', "system.name", "missing from [[system]] 1"),
        ("subscriptions = 5", "subscriptions", "expected a table"),
        ("[system]\nname = 'v'", "system", "one [[system]] table per system"),
    ],
)
def test_unknown_and_missing_keys_named(tmp_path: Path, text: str, field: str, words: str) -> None:
    error = fault_of(tmp_path, text)
    assert error.field == field
    assert words in str(error)


# What fields refuse, as TOML.
REFUSED = {
    "nodes": ["1000.5", "true", '"many"', "1", "20_000_000"],
    "rounds": ["0", "-1"],
    "round_s": ["0", "nan", "inf", '"60"', str(10**400)],
    "seed": ["1.5", str(1 << 62)],
    "name": ["5", '""', '"a\\nb"', "2020-01-01"],
    "engine": ['"Cycle"', "[]"],
    "measure_every": ["0"],
    "system": ["[]"],
    "subscriptions.attributes": ["17"],
    "subscriptions.width": ["0", "true"],
    "subscriptions.places": ["1_000_000_000_000"],
    "subscriptions.subscribers": ["1.1"],
    "subscriptions.width_decades": ["10"],
    "subscriptions.kind": ["'topic'"],
    "events.per_round": ["-0.5"],
    "events.warm_up_rounds": ["1.5"],
    "events.publishers": ["0"],
    "events.publisher_exponent": ["-1"],
    "churn.trace": ["5"],
    "drift.replaced": ["1.5"],
    "drift.every_s": ["0"],
    "turnover.share": ["0", "1\n[churn]\ntrace = 'a.avt'"],
    "network.reports_unreachable": ["1"],
    "network.loss": ["0.1", "1.0\nengine = 'event'"],
}
CHURN = "[churn]\ntrace = 'a.avt'\n"


@pytest.mark.parametrize(
    ("field", "text"),
    [
        *((field, f"{field} = {value}") for field, values in REFUSED.items() for value in values),
        ("churn.time_scale", f"{CHURN}time_scale = 0"),
        ("churn.end_s", f"{CHURN}start_s = 9\nend_s = 8"),
        ("churn.repeat", f"{CHURN}repeat = 0"),
        ("churn.backwards", f"{CHURN}backwards = 1"),
        ("drift.shifted", "subscriptions.kind = 'topics'\ndrift.shifted = 0.1"),
        ("network.matrix", "engine = 'event'\nnetwork.latency = 'matrix'"),
        *(("system.name", f"{SYSTEM}{name}") for name in ("'../v'", "'plots'", "['v']")),
        ("system.name", f"{SYSTEM}'v'\n{SYSTEM}'V'"),
        ("system.preset", f"{SYSTEM}'v'\npreset = 'best'"),
        ("system.baseline.preset", f"{SYSTEM}'baseline'\npreset = 'kindred'"),
        ("system.v.cascade", f"{SYSTEM}'v'\ncascade = 'no'"),
        *(("system.v.view_size", f"{SYSTEM}'v'\nview_size = {size}") for size in (20.5, 1)),
        ("system.v.shift_threshold", f"{SYSTEM}'v'\nshift_threshold = 'x'"),
        ("system.v.attributes", f"{SYSTEM}'v'\nattributes = 2"),
    ],
)
def test_wrong_types_and_values_name_their_field(tmp_path: Path, field: str, text: str) -> None:
    assert fault_of(tmp_path, text).field == field


def test_toml_faults_are_located_and_what_no_parser_takes_is_a_sentence(tmp_path: Path) -> None:
    for text, place in (
        ("nodes = 5\nrounds == 6", "line 2, column 9"),
        ("nodes = 5\nrounds =", "line 2, column 9"),
        ("nodes = 5\nnodes = 6\n", "line 2"),
    ):
        assert re.search(f"{place}.* is no TOML \\(", str(fault_of(tmp_path, text)))
    for unread in (b"name = '\xff'", "a = " + "[" * 5000, "a = " + "9" * 9999):
        assert len(str(fault_of(tmp_path, unread))) < 400


def test_a_file_that_is_none_or_may_not_be_read(tmp_path: Path) -> None:
    for path, kind in ((tmp_path / "x.toml", "missing"), (tmp_path, "folder")):
        with pytest.raises(ScenarioError, match=f"the scenario file is .*{kind}, expected"):
            read_scenario(path)
    path = write(tmp_path, "")
    path.chmod(0)
    if os.geteuid() != 0:  # the superuser may read every file
        with pytest.raises(ScenarioError, match="unreadable"):
            read_scenario(path)


SHARES = st.floats(0.0, 1.0)
NAMES = st.from_regex(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,8}", fullmatch=True)


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Possible scenarios with every kind of value in them."""
    paths = st.text(st.characters(exclude_characters="\0", codec="utf-8")).map(Path("/").joinpath)
    churn = draw(
        st.none()
        | st.builds(
            Churn,
            trace=paths,
            time_scale=st.floats(1e-3, 1e3),
            end_s=st.none() | st.floats(0.5, 1e9),
            repeat=st.integers(1, 9),
            backwards=st.booleans(),
        )
    )
    turnover = st.builds(Turnover, share=st.floats(0.01, 60)) if churn is None else st.nothing()
    drift = st.builds(Drift, every_s=st.floats(1, 1e6), replaced=SHARES, event_shift=SHARES)
    open_end = st.none() if churn is not None else st.nothing()
    printable = st.text(min_size=1).filter(lambda text: text.isprintable() and text.strip())
    links, samplers = st.integers(1, 4), st.sampled_from(SAMPLERS)
    some = {"ring_links": links, "sampler": samplers, "cascade": st.booleans()}
    settings = st.fixed_dictionaries({}, optional={**some, "shift_threshold": st.floats(0, 9)})
    names = draw(st.lists(NAMES.map("a{}".format), min_size=1, max_size=3, unique_by=str.casefold))
    systems = [
        System(name=name, preset=draw(st.sampled_from(list(PRESETS))), settings=draw(settings))
        for name in names
    ]
    return Scenario(
        name=draw(printable),
        nodes=draw(st.integers(2, 9999) | open_end),
        rounds=draw(st.integers(1, 9999) | open_end),
        seed=draw(st.integers(0, (1 << 62) - 1)),
        subscriptions=inputs.Subscriptions(spread=draw(SHARES), attributes=draw(st.integers(1, 3))),
        network=Link(event_capacity=draw(st.none() | st.integers(1, 99))),
        churn=churn,
        turnover=draw(st.none() | turnover),
        drift=draw(st.none() | drift),
        systems=tuple(systems),
    )


@given(scenarios())
def test_what_is_written_reads_back_as_the_same(scenario: Scenario) -> None:
    assert files.FORMAT.read(tomllib.loads(files.FORMAT.write(scenario)), {}) == scenario


def test_a_path_that_toml_cannot_express_is_refused() -> None:
    scenario = Scenario(churn=Churn(trace=Path("/\udcff.avt")))
    with pytest.raises(ScenarioError, match=r"churn\.trace is .*, expected text that UTF-8"):
        files.FORMAT.write(scenario)


def test_parts_of_the_wrong_class_are_refused_in_python_too() -> None:
    wrong: Any
    for wrong in ({"events": {"per_round": 1.0}}, {"systems": (3,)}, {"churn": "trace.avt"}):
        with pytest.raises(ScenarioError, match=r"expected an? .* object"):
            Scenario(**wrong)


def test_the_example_compares_both_systems_on_all_of_the_bundled_trace() -> None:
    scenario, _ = read_scenario(ROOT / "examples" / "vinifera" / "scenario.toml")
    assert isinstance(scenario, Scenario)
    presets = {system.name: system.preset for system in scenario.systems}
    assert presets == {"kindred": "kindred", "baseline": "baseline"}
    assert scenario.churn is not None
    assert scenario.churn.trace == ROOT / "traces" / "flash_crowd.avt.gz"
    assert (scenario.nodes, scenario.rounds) == (None, None)


def reference_tables() -> dict[str, list[list[str]]]:
    """The tables of the reference: cells of each row, by the heading above."""
    tables: dict[str, list[list[str]]] = {}
    heading = ""
    for line in REFERENCE.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ").strip("`")
        elif line.startswith("| `"):
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            tables.setdefault(heading, []).append(cells)
    return tables


def as_cell(default: object) -> str:
    if default is attrs.NOTHING:
        return "required"
    return "none" if default is None else f"`{json.dumps(default)}`"


def default_of(kind: type, field: Any) -> object:
    """The default of a field; that without churn, or of a name of one's own, where these decide."""
    factory: Any = attrs.Factory  # a class, though its stub calls it a function
    decided = isinstance(field.default, factory) and field.default.takes_self
    owner = System(name="mine") if kind is System else Scenario()
    return getattr(owner, field.name) if decided else field.default


def test_the_reference_lists_every_field_with_its_default_and_a_source() -> None:
    parts, tables = {*files.FORMAT.sections, "systems", "settings"}, reference_tables()
    sections = {f"[{name}]": kind for name, kind in files.FORMAT.sections.items()}
    for heading, kind in {"Top level": Scenario, "[[system]]": System, **sections}.items():
        assert {cells[0]: cells[1] for cells in tables[heading] if len(cells) == 4} == {
            f"`{field.name}`": as_cell(default_of(kind, field))
            for field in attrs.fields(kind)
            if field.name not in parts or kind is files.FORMAT.sections["workload"]
        }, heading
    sources = [cells[-1] for rows in tables.values() for cells in rows]
    assert len(sources) > 40
    known = re.compile(r"Sec\. |guess$|ours$|Cyclon paper$")
    assert [source for source in sources if not known.match(source)] == []


def test_the_reference_lists_every_setting_with_the_values_of_the_presets() -> None:
    _, *others = PRESETS
    rows = {
        cells[0]: cells
        for cells in reference_tables()["[[system]]"]
        if len(cells) == len(others) + 4
    }
    assert set(rows) == {
        f"`{name}`" for name in set(inputs.SETTING_TYPES) - set(inputs.SHARED_SETTINGS)
    }
    values = {name: attrs.asdict(preset(1000)) for name, preset in PRESETS.items()}
    for key, cells in rows.items():
        name = key.strip("`")
        paper = values["paper"][name]
        assert cells[1] == as_cell(paper)
        for cell, preset in zip(cells[2:-2], others, strict=True):
            changed = values[preset][name]
            assert cell == ("-" if changed == paper else as_cell(changed)), (name, preset)
