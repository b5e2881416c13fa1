"""Bad input to the installed command: one sentence, exit code 2, nothing lost, nothing left."""

from __future__ import annotations

import errno
import gzip
import os
import resource
import shlex
import types
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

import gossamer.sim.results.results
from gossamer.command.main import main
from support.installed_command import MadeUpSimulation, content_of, replace_simulation, unchanged

Refused = Callable[[str], str]


@pytest.fixture
def simulation(monkeypatch: pytest.MonkeyPatch) -> MadeUpSimulation:
    return replace_simulation(monkeypatch)


@pytest.fixture
def sentence(capsys: pytest.CaptureFixture[str]) -> Refused:
    """What ``gossamer sim LINE`` says, which has to be one sentence on standard error."""

    def of(line: str) -> str:
        capsys.readouterr()
        assert main(["sim", *shlex.split(line)]) == 2
        shown = capsys.readouterr()
        assert shown.out == ""
        *progress, told = shown.err.splitlines(keepends=True)
        assert all(line.startswith("gossamer: kindred ") for line in progress)
        assert told.startswith("gossamer: ")
        assert "Traceback" not in told
        return told

    return of


@pytest.fixture
def refused(work: Path, simulation: MadeUpSimulation, sentence: Refused) -> Refused:
    """The same of a line by which nothing was run and no file changed."""

    def of(line: str) -> str:
        with unchanged(work):
            told = sentence(line)
        assert simulation.calls == []
        return told

    return of


# One fault of each kind: tests of traces, of lists and of scenarios have all others.
@pytest.mark.parametrize("command", ["check", "run", "replay"])
@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.avt", b"a 1 0 soon\n", "t.avt, line 1: end_s of session 1 is 'soon', expected a fin"),
        ("t.avt", b"a 0\n# duration_s 6000\n", "t.avt: churn is a trace with nobody online, ex"),
        ("t.avt", None, "the trace file is missing, expected a file"),
        ("t.csv", b"node,start,end\na,5,3\n", "t.csv, line 2: end of node 'a' is 3.0, expected"),
        ("t.zip", b"a,0,9\n", "the name of the trace file is 't.zip', expected a name that ends"),
        ("t.parquet", b"PAR1", "t.parquet"),
    ],
)
def test_what_is_no_trace(
    work: Path, refused: Refused, command: str, name: str, content: bytes | None, words: str
) -> None:
    (work / "s.toml").write_text(f'[churn]\ntrace = "{name}"\n')
    if content is not None:
        (work / name).write_bytes(content)
    assert words in refused(f"{command} {name if command == 'replay' else 's.toml'}")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[events]\nper_rond = 1\n", "events.per_rond is an unknown key, did you mean"),
        ("scenario = 's.toml'\nseeds = [1]\n", "scenario is 's.toml', expected a scenario itself"),
        ("nodes == 3\n", "line 1, column 8 is no TOML (Invalid value), expected valid TOML"),
    ],
)
@pytest.mark.parametrize("command", ["check", "run"])
def test_bad_scenarios(work: Path, refused: Refused, command: str, text: str, words: str) -> None:
    (work / "s.toml").write_text(text)
    assert f"gossamer: s.toml: {words}" in refused(f"{command} s.toml")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("run missing.toml", "missing.toml: the scenario file is missing, expected a TOML file"),
        ("check s.toml --nodes -5", "gossamer: nodes is -5, expected a whole number from 2"),
        ("run s.toml --set rounds", "--set is 'rounds', expected key=value"),
        ("run s.toml --set nodes=many", "gossamer: nodes is 'many', expected a whole number"),
        ("replay t.avt --round-s 0", "round_s is 0.0, expected a time above 0"),
        ("compare t.avt", "t.avt/summary.json does not exist, expected a folder with results"),
    ],
)
def test_impossible_arguments(work: Path, refused: Refused, line: str, words: str) -> None:
    (work / "s.toml").write_text("seed = 1\n")
    (work / "t.avt").write_text("a 1 0 600\nb 1 0 60\n")
    assert words in refused(line)


@pytest.mark.parametrize("command", ["check", "run"])
def test_more_nodes_than_fit_in_memory(
    work: Path, monkeypatch: pytest.MonkeyPatch, refused: Refused, command: str
) -> None:
    machine = types.SimpleNamespace(total=2 * 2**30)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: machine)
    (work / "s.toml").write_text("nodes = 1_000_000\n")
    told = refused(f"{command} s.toml")
    assert "nodes is 1000000, expected fewer: with 2 systems they need " in told
    assert "and this machine has 2.0 GiB" in told


def test_a_folder_taken_during_the_run_is_left_alone_and_the_run_kept(
    work: Path, simulation: MadeUpSimulation, sentence: Refused
) -> None:
    def take() -> None:
        (work / "o").mkdir()
        (work / "o/theirs").write_text("precious")

    (work / "s.toml").write_text("seed = 1\n")
    simulation.leaves_checkpoint = True
    simulation.meanwhile = take
    assert "o already holds results" in sentence("run s.toml --out o")
    kept = content_of(work)
    assert kept["o/theirs"] == b"precious"
    assert "o.unfinished/checkpoint/kindred.checkpoint" in kept

    (work / "o").rename(work / "elsewhere")
    simulation.meanwhile = lambda: None
    assert main(["sim", "run", "s.toml", "--no-plots", "--out", "o", "--resume"]) == 0
    assert "o/summary.json" in content_of(work)


def test_full_disk_keeps_the_checkpoint_and_nothing_half_written(
    work: Path,
    simulation: MadeUpSimulation,
    monkeypatch: pytest.MonkeyPatch,
    sentence: Refused,
) -> None:
    def no_space(_table: object, file: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(file))

    (work / "s.toml").write_text("seed = 1\n")
    simulation.leaves_checkpoint = True
    with monkeypatch.context() as full:
        full.setattr(gossamer.sim.results.results, "write_table", no_space)
        told = sentence("run s.toml --out o")
    assert told.startswith("gossamer: o could not be written (No space left on device); ")
    assert "the checkpoint in o.unfinished is kept, go on with it by 'gossamer sim run" in told
    assert sorted(os.listdir(work)) == ["o.unfinished", "s.toml"]
    assert main(["sim", "run", "s.toml", "--out", "o", "--resume", "--no-plots"]) == 0
    assert sorted(os.listdir(work)) == ["o", "s.toml"]


def test_a_file_too_large(work: Path, simulation: MadeUpSimulation, sentence: Refused) -> None:
    (work / "s.toml").write_text("seed = 1\n")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, hard))
    try:
        told = sentence("run s.toml --out o --no-plots")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert told.startswith("gossamer: o could not be written (File too large); ")
    assert told.endswith("there was no checkpoint yet, nothing is kept\n")
    assert set(content_of(work)) == {"s.toml"}
    assert len(simulation.calls) == 1


def test_memory_that_runs_out(work: Path, simulation: MadeUpSimulation, sentence: Refused) -> None:
    def exhaust() -> None:
        raise MemoryError

    (work / "s.toml").write_text("seed = 1\n")
    simulation.meanwhile = exhaust
    with unchanged(work):
        told = sentence("run s.toml --out o")
    assert told.startswith("gossamer: the memory of this machine does not suffice; ")


def quotes(close: str) -> bytes:
    head = "symbol,date,open,high,low,close,volume"
    return gzip.compress(f"{head}\nA,2000-01-01,1,2,0,{close},9\n".encode(), mtime=0)


MATRIX = 'engine = "event"\n[network]\nlatency = "matrix"\nmatrix = "m.txt"\n'
SCOT_QUOTES = 'kind = "scot"\n[workload]\nkind = "quotes"\nfile = "q.csv.gz"\n'
TREES_FILE = 'kind = "trees"\n[workload]\nfile = "w.json"\n'
GRAPH = 'kind = "trees"\n[topology]\nkind = "file"\nfile = "g.gml"\n'
FAR_CLOSE = "q.csv.gz, line 2: close is '1e300', expected a finite number from 0"
ONE_QUOTE = "q.csv.gz: workload.quotes is 100, expected at most 1"


@pytest.mark.parametrize(
    ("scenario", "file", "content", "words"),
    [
        (MATRIX, "m.txt", None, "m.txt: the latency matrix is No such file"),
        (MATRIX, "m.txt", b"1\n2 1e300\n", "m.txt, line 2, column 2: the latency is '1e300', expe"),
        (SCOT_QUOTES, "q.csv.gz", None, "workload.file is 'q.csv.gz', expected a file that"),
        (SCOT_QUOTES, "q.csv.gz", b"no gzip", "q.csv.gz: the file of quotes is unreadable"),
        (SCOT_QUOTES, "q.csv.gz", quotes("1e300"), FAR_CLOSE),
        (SCOT_QUOTES, "q.csv.gz", quotes("1"), ONE_QUOTE),
        (TREES_FILE, "w.json", None, "w.json: the workload is No such file or directory"),
        (GRAPH, "g.gml", None, "g.gml: the graph is No such file or directory"),
    ],
)
def test_a_check_sees_every_file_that_a_run_needs(
    work: Path, sentence: Refused, scenario: str, file: str, content: bytes | None, words: str
) -> None:
    (work / "s.toml").write_text(scenario)
    if content is not None:
        (work / file).write_bytes(content)
    with unchanged(work):
        told = sentence("check s.toml")
        assert words in told
        assert sentence("run s.toml") == told


@pytest.mark.parametrize("kind", ["", 'kind = "brokers"', 'kind = "scot"', 'kind = "trees"'])
@pytest.mark.parametrize(
    ("out", "words"),
    [
        ("s.toml", "s.toml is a file, expected a new folder for the results"),
        ("s.toml/o/p", "s.toml is a file, expected a folder to make the result folder in"),
        ("full", "full already holds results; choose another folder"),
        ("kept", "kept.unfinished holds an unfinished run; go on with it by"),
    ],
)
def test_check_and_run_see_where_no_results_can_go(
    work: Path, refused: Refused, kind: str, out: str, words: str
) -> None:
    (work / "s.toml").write_text(f"{kind}\n")
    (work / "full").mkdir()
    (work / "full/theirs").write_text("precious")
    (work / "kept.unfinished").mkdir()
    for command in ("check", "run"):
        assert words in refused(f"{command} s.toml --out {out}")
    with unchanged(work):
        assert main(["sim", "check", "s.toml", "--out", "fresh/deep"]) == 0


def test_check_and_run_see_a_place_that_may_not_be_written(
    work: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "s.toml").write_text("seed = 1\n")
    # The superuser may write everywhere, but for a disk that nobody may write to.
    access = os.access

    def locked(path: str | Path, *asked: int, **more: bool) -> bool:
        return Path(path) != work and access(path, *asked, **more)

    monkeypatch.setattr(os, "access", locked)
    for line in ("check s.toml --out o", "check s.toml --out deep/o", "run s.toml --out o"):
        assert "is not writable, expected to make the result folder in it" in refused(line)
