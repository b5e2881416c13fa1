"""The command's frame: what it imports, how errors end, and what shells complete."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from gossamer.command.completion import FILES, FOLDERS, SCRIPTS, candidates
from gossamer.command.main import find_commands, is_user_error, main
from gossamer.command.screens import HEADINGS, help_text
from gossamer.protocol.kernel.errors import ConfigError, InvariantError
from gossamer.sim.errors import SimulationError
from support.checkout import ROOT
from support.installed_command import install

PROBE = """
import errno
import os
import typer
from gossamer.protocol.kernel.errors import ConfigError, InvariantError
from gossamer.sim.errors import SimulationError

app = typer.Typer(pretty_exceptions_enable=False)

class OwnError(SimulationError):
    pass

RAISES = {
    "config": lambda: ConfigError("links", 0, "at least 2"),
    "own": lambda: OwnError("trace.avt is empty, expected sessions"),
    "full": lambda: OSError(errno.ENOSPC, "No space left on device", "out/summary.json"),
    "bare": lambda: OSError("the disk said no"),
    "defect": lambda: InvariantError("rows do not add up"),
    "interrupt": KeyboardInterrupt,
    "tasks": lambda: BaseExceptionGroup(
        "a nursery", [StopAsyncIteration(), BaseExceptionGroup("another", [KeyboardInterrupt()])]
    ),
    "broken tasks": lambda: BaseExceptionGroup("a nursery", [InvariantError("no")]),
    "exit": lambda: SystemExit("that will not do"),
}

@app.command()
def greet(name: str = "world"):
    print(f"hello {name}")

@app.command()
def threads():
    import numpy
    print(os.environ["OPENBLAS_NUM_THREADS"], len(os.listdir("/proc/self/task")))

@app.command()
def fail(how: str):
    raise RAISES[how]()
"""

HEAVY = ("numba", "numpy", "matplotlib", "pyarrow", "scipy", "typer", "rich", "gossamer.sim")


def make_distribution(folder: Path, name: str, version: str) -> Path:
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    return info


@pytest.fixture(autouse=True)
def probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the import path that holds an installed distribution with one subcommand."""
    info = make_distribution(tmp_path, "probe-host", "1.0")
    (info / "entry_points.txt").write_text("[gossamer.commands]\nprobe = probe_host:app\n")
    (tmp_path / "probe_host.py").write_text(PROBE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)  # which typer replaces
    monkeypatch.delitem(sys.modules, "probe_host", raising=False)
    return tmp_path


COMMAND = "import sys; from gossamer.command.main import main; code = main();"


def run_apart(folder: Path, then: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", COMMAND + then, *arguments],
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], [], ["--nonsense"]])
def test_frame_alone_imports_no_host_or_heavy_library(probe: Path, arguments: list[str]) -> None:
    heavy = f"print([name for name in {(*HEAVY, 'probe_host')!r} if name in sys.modules])"
    done = run_apart(probe, heavy, *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert main(arguments) == code
    told = capsys.readouterr()
    assert told.err == ""
    return told.out


def test_help_names_commands_under_headings(capsys: pytest.CaptureFixture[str]) -> None:
    shown = printed(capsys, "help")
    assert printed(capsys, "--help") == printed(capsys, "-h") == shown
    assert max(map(len, shown.splitlines())) <= 80
    sections = shown.split("\n\n")
    headings = [one.partition("\n") for one in sections if one.partition("\n")[0].endswith(":")]
    found = {head: re.findall(r"^  (\S+)", rest, re.MULTILINE) for head, _, rest in headings}
    assert found["Events, through a node of this machine:"][:4] == [
        "sub",
        "pub",
        "request",
        "reply",
    ]
    assert found["Named clients of a broker:"] == ["advertise", "unsub", "batch"]
    assert found["Installed beside it:"] == ["probe"]
    assert re.search(r"^  probe +from probe-host$", shown, re.MULTILINE)
    assert sorted(itertools.chain(*found.values())) == sorted(["help", *find_commands()])
    assert "Installed" not in help_text({})


def test_every_command_is_installed_and_described() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    installed = set(project["entry-points"]["gossamer.commands"])
    assert {name for known in HEADINGS.values() for name in known} == {"help", *installed}


def test_help_explains_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["probe"], ["probe", "greet"]):
        shown = printed(capsys, "help", *words)
        assert f"Usage: gossamer {' '.join(words)}" in shown
        assert printed(capsys, *words, "--help") == shown
    assert main(["help", "prob"]) == 2
    assert capsys.readouterr().err == "gossamer: no command 'prob'; did you mean 'probe'?\n"
    assert main(["help", "probe", "gret"]) == 2
    assert capsys.readouterr().err == "gossamer: no command 'gret'; did you mean 'greet'?\n"


@pytest.mark.parametrize(
    "command", ["sim run", "node init", "node schema add", "sub", "spark crunch"]
)
def test_every_command_knows_the_short_help(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
) -> None:
    install(tmp_path / "installed", monkeypatch)
    shown = printed(capsys, *command.split(), "-h")
    assert f"Usage: gossamer {command} " in shown
    assert printed(capsys, "help", *command.split()) == shown


def test_the_first_screen_shows_what_people_do(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path / "installed", monkeypatch)
    shown = printed(capsys, code=2)
    assert max(map(len, shown.splitlines())) <= 80
    assert len(shown.splitlines()) < 24
    commands = [line for line in shown.splitlines() if line.startswith("  gossamer ")]
    assert [line.split()[1] for line in commands] == [
        *("node", "node", "sub", "pub", "sim", "sim", "spark"),
    ]
    for line in commands:
        words = [word for word in line.split()[1:3] if word.isalpha()]
        assert "Usage: " in printed(capsys, "help", *words), line


def test_the_first_screen_names_a_trace_that_is_there(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    replayed = re.search(r"sim replay (\S+)", printed(capsys, code=2))
    assert replayed is not None
    assert Path(replayed[1]).is_file()
    monkeypatch.chdir(tmp_path)
    assert "gossamer sim replay TRACE\n" in printed(capsys, code=2)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a POSIX system")
def test_a_reader_that_goes_away_ends_the_output_silently() -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "gossamer.command.main", "help"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_subcommand_gets_its_arguments(probe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["probe", "greet", "--name", "Ada"]) == 0
    assert capsys.readouterr().out == "hello Ada\n"
    assert main(["probe", "greet", "--colour", "red"]) == 2
    told = "gossamer: no option '--colour'; see 'gossamer probe greet --help'\n"
    assert capsys.readouterr().err == told
    assert main(["probe", "greet", "--nam", "Ada"]) == 2
    assert capsys.readouterr().err == "gossamer: no option '--nam'; did you mean '--name'?\n"
    assert main(["probe", "greet", "Ada"]) == 2
    told = "gossamer: unexpected argument 'Ada'; see 'gossamer probe greet --help'\n"
    assert capsys.readouterr().err == told
    assert main(["probe", "greet", "--name"]) == 2
    told = "gossamer: option '--name' requires an argument; see 'gossamer probe"
    assert capsys.readouterr().err.startswith(told)
    assert main(["sim"]) == 2
    shown = capsys.readouterr()
    assert "Usage: gossamer sim" in shown.out
    assert shown.err == ""
    make_distribution(probe, "gossamer", "9.8.7")
    assert printed(capsys, "--version") == printed(capsys, "-V") == "gossamer 9.8.7\n"


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("config", "links is 0, expected at least 2"),
        ("own", "trace.avt is empty, expected sessions"),
        ("full", "out/summary.json: No space left on device"),
        ("bare", "the disk said no"),
        ("exit", "that will not do"),
    ],
)
def test_user_errors_are_sentences(capsys: pytest.CaptureFixture[str], how: str, said: str) -> None:
    assert main(["probe", "fail", how]) == 2
    assert capsys.readouterr().err == f"gossamer: {said}\n"


def test_interrupt_exits_as_shells_expect(probe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["probe", "fail", "interrupt"]) == 130
    capsys.readouterr()
    assert main(["probe", "fail", "tasks"]) == 130, "while other tasks fail"
    assert capsys.readouterr().err == "gossamer: interrupted\n"
    with pytest.raises(BaseExceptionGroup, match="a nursery"):
        main(["probe", "fail", "broken tasks"])
    (probe / "probe_host.py").write_text("raise KeyboardInterrupt\n")
    del sys.modules["probe_host"]
    assert main(["probe"]) == 130, "while it is imported"
    assert capsys.readouterr().err == "gossamer: interrupted\n"


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs a /proc file system")
@pytest.mark.parametrize(("asked", "told"), [(None, "1 1"), ("2", "2 ")])
def test_numpy_starts_no_threads_unless_asked(
    probe: Path, monkeypatch: pytest.MonkeyPatch, asked: str | None, told: str
) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    if asked is not None:
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", asked)
    done = run_apart(probe, "sys.exit(code)", "probe", "threads")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(told)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
def test_what_is_only_said_may_be_lost_and_nothing_else() -> None:
    """A log on a full disk, or a reader that went away, ends no command and changes no code."""
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "gossamer.command.main"]
        done = subprocess.run([*command, "nothing"], stderr=full, check=False)
        assert done.returncode == 2
        written = "import sys; print('lost', file=sys.stderr); print('kept')"
        begun = f"from gossamer.command.main import keep_saying; keep_saying(); {written}"
        kept = subprocess.run(
            [sys.executable, "-c", begun], stderr=full, stdout=subprocess.PIPE, check=True
        )
        assert kept.stdout == b"kept\n"


def test_defects_keep_their_traceback(probe: Path) -> None:
    done = run_apart(probe, "sys.exit(code)", "probe", "fail", "defect")
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "rows do not add up" in done.stderr


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("prob", "no command 'prob'; did you mean 'probe'?"),
        ("xyz", "no command 'xyz'; expected one of: "),
        ("hlep", "no command 'hlep'; did you mean 'help'?"),
        ("--fast", "no option '--fast', expected --help, --version or a command"),
        ("--verson", "no option '--verson'; did you mean '--version'?"),
    ],
)
def test_the_unknown_is_answered(capsys: pytest.CaptureFixture[str], given: str, said: str) -> None:
    assert main([given]) == 2
    assert capsys.readouterr().err.startswith(f"gossamer: {said}")


def test_user_errors_are_told_from_defects() -> None:
    assert is_user_error(ConfigError("k", 1, "2"))
    assert is_user_error(SimulationError("no"))
    assert not is_user_error(InvariantError("no"))
    assert not is_user_error(ValueError("no"))


# Shells complete commands, options and folders


def words(*given: str) -> list[str]:
    return [line.partition("\t")[0] for line in candidates(given)]


@pytest.mark.parametrize(
    ("given", "offered"),
    [
        ("no", ["node"]),
        ("--v", ["--version"]),
        ("wrong ", []),
        ("node schema wi", ["widen"]),
        ("help node schema wi", ["widen"]),
        ("hel", ["help"]),
        ("node wrong ", []),
        ("node run --set ", []),
        ("node run --set a=b ", [FOLDERS]),
        ("node run --set=a=b one ", [FOLDERS]),
        ("sub --folder ", [FOLDERS]),
        ("sub --retained --fol", ["--folder"]),
        ("pub --jsonl ", [FILES]),
        ("node stop -- --f", [FOLDERS]),
        ("node stop one ", []),
        ("completion z", ["zsh"]),
    ],
)
def test_words_are_completed(given: str, offered: list[str]) -> None:
    assert words(*given.split(" ")) == offered


def test_commands_are_explained_and_options_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert candidates(["node", "rel"]) == [
        "reload\tHave a running node read its configuration anew; say what is in force, and what "
        "is not."
    ]
    assert words("") == [*find_commands(), "help", "--help", "--version"]
    assert "--overlay" in words("node", "run", "--ov")
    assert "--answer" not in words("completion", "--")
    assert main(["completion", "tcsh"]) == 2
    said = capsys.readouterr().err
    assert "'tcsh'" in said
    assert "bash, zsh, fish" in said


def in_bash(folder: Path, *given: str) -> list[str]:
    quoted = " ".join(f"'{one}'" for one in given)
    script = f"""
gossamer() {{ "{sys.executable}" -m gossamer.command.main "$@"; }}
{SCRIPTS["bash"]}
cd '{folder}'
COMP_WORDS=(gossamer {quoted}); COMP_CWORD={len(given)}
_gossamer_complete
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes(tmp_path: Path) -> None:
    (tmp_path / "my desk").mkdir()
    (tmp_path / "notes.txt").touch()
    assert in_bash(tmp_path, "node", "st") == ["status", "stop"]
    assert in_bash(tmp_path, "node", "run", "my") == ["my desk"]
    assert in_bash(tmp_path, "pub", "--jsonl", "n") == ["notes.txt"]


@pytest.mark.parametrize("shell", SCRIPTS)
def test_each_script_is_one_of_its_shell(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    subprocess.run([shell, "-n"], input=SCRIPTS[shell], text=True, check=True)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
@pytest.mark.parametrize("words", [[], ["help"], ["help", "sim"], ["-V"], ["sim", "--help"]])
def test_what_is_printed_on_a_full_disk_is_refused_in_one_sentence(words: list[str]) -> None:
    command = [sys.executable, "-m", "gossamer.command.main", *words]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "gossamer: No space left on device\n")
