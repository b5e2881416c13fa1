"""Shells complete commands, options and folders, by what the commands say of themselves."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gossamer.command.completion import candidates
from gossamer.command.completion_scripts import FILES, FOLDERS, SCRIPTS
from gossamer.command.main import find_commands, main

COMMAND = f'"{sys.executable}" -m gossamer.command.main'


def words(*given: str) -> list[str]:
    return [line.partition("\t")[0] for line in candidates(given)]


def test_the_first_word_is_a_command() -> None:
    assert words("") == [*find_commands(), "--help", "--version"]
    assert words("no") == ["node"]
    assert words("--v") == ["--version"]
    assert words("wrong", "") == []


def test_commands_of_a_command_are_explained() -> None:
    lines = candidates(["node", "rel"])
    assert lines == [
        "reload\tHave a running node read its configuration anew; say what is in force, and what "
        "is not."
    ]
    assert words("node", "schema", "wi") == ["widen"]
    assert words("node", "wrong", "") == []


def test_options_are_known_and_their_values_are_not_arguments() -> None:
    assert "--overlay" in words("node", "run", "--ov")
    assert words("node", "run", "--set", "") == []
    assert words("node", "run", "--set", "a=b", "") == [FOLDERS]
    assert words("node", "run", "--set=a=b", "one", "") == [FOLDERS]
    assert words("sub", "--folder", "") == [FOLDERS]
    assert words("sub", "--retained", "--fol") == ["--folder"]
    assert words("pub", "--jsonl", "") == [FILES]
    assert words("node", "stop", "--", "--f") == [FOLDERS]


def test_a_command_takes_no_more_arguments_than_it_has() -> None:
    assert words("node", "stop", "one", "") == []


def test_shells_are_completed_too() -> None:
    assert words("completion", "z") == ["zsh"]
    assert "--answer" not in words("completion", "--")


def test_another_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "tcsh"]) == 2
    said = capsys.readouterr().err
    assert "'tcsh'" in said
    assert "bash, zsh, fish" in said


def in_bash(folder: Path, *given: str) -> list[str]:
    """What bash offers in place of the last word."""
    quoted = " ".join(f"'{one}'" for one in given)
    script = f"""
gossamer() {{ {COMMAND} "$@"; }}
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
