"""The command ``gossamer``: finds a host's subcommand, runs it, and turns errors into sentences.

Subcommands are entry points of the group ``gossamer.commands`` that name a Typer app. An app is
imported only when its subcommand is used, so that the help text needs neither the compiler nor
any numerical library.
"""

from __future__ import annotations

import atexit
import difflib
import gc
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from typing import Any, TextIO, cast

from gossamer.command.screens import first_screen, help_text
from gossamer.command.signals import exit_code_of, interrupt_behind

COMMAND_GROUP = "gossamer.commands"

# Errors that the user can do something about, by full name: an error's class is imported by the
# time it is raised, so that the frame need not import it to recognise it.
USER_ERRORS = frozenset(
    {
        "gossamer.command.extras.MissingLibraryError",
        "gossamer.command.extras.UnsupportedSystemError",
        "gossamer.command.options.OptionError",
        "gossamer.command.paths.StorageError",
        "gossamer.client.errors.NodeError",
        "gossamer.protocol.kernel.errors.ProtocolError",
        "gossamer.sim.errors.SimulationError",
    }
)
DEFECTS = frozenset({"gossamer.protocol.kernel.errors.InvariantError"})

HELP = "help"
# How the parser of arguments words its errors, and how they are worded here.
_USAGE_WORDS = (
    (re.compile(r"^Invalid value: "), ""),
    (re.compile(r"^No such command"), "no command"),
    (re.compile(r"\. Did you mean ('[^']*').*$"), r"; did you mean \1?"),
    (re.compile(r"^Got unexpected extra argument\S* \((.*)\)$"), r"unexpected argument '\1'"),
)

EXIT_OK = 0
EXIT_USER_ERROR = 2
EXIT_READER_GONE = 128 + 13  # as shells have it where SIGPIPE ends a command


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with ``arguments`` (those of the process by default); return its exit code.

    Raises:
        Exception: whatever a subcommand raised that is not the user's to mend; a defect.
    """
    if arguments is None:
        keep_saying()
        keep_linear_algebra_to_one_thread()
        atexit.register(gc.freeze)  # else half a second of a run's end is a search for garbage
    given = list(sys.argv[1:] if arguments is None else arguments)
    for argument in given:
        if not is_text(argument):
            return _fail(f"the argument {argument!a:.80} is no text, expected UTF-8 (see 'locale')")
    try:
        code = _run(given, find_commands())
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except BrokenPipeError:
        _stop_printing()
        return EXIT_READER_GONE
    except OSError as error:  # of the last lines, which nothing could take
        _stop_printing()
        return _fail(_os_error_sentence(error))


def _stop_printing() -> None:
    """Lose what is still to be printed, of which Python would complain at its end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(given: Sequence[str], commands: Mapping[str, EntryPoint]) -> int:
    if not given:
        print(first_screen(installed_version()), end="")
        return EXIT_USER_ERROR
    if given[0] in ("-h", "--help", HELP):
        return _explain(given[1:], commands)
    if given[0] in ("-V", "--version"):
        print(f"gossamer {installed_version()}")
        return EXIT_OK
    if given[0] not in commands:
        return _fail(_unknown(given[0], commands))
    return run_command(commands[given[0]], given[1:])


def _explain(words: Sequence[str], commands: Mapping[str, EntryPoint]) -> int:
    """Print the help of the command that is named by words, or of all if there are none."""
    if not words:
        print(help_text(commands))
        return EXIT_OK
    if words[0] == HELP:
        return _explain(words[1:], commands)
    if words[0] not in commands:
        return _fail(_unknown(words[0], commands))
    return run_command(commands[words[0]], [*words[1:], "--help"])


class _Said:
    """A stream on which what cannot be written is lost, and does not end who writes."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def keep_saying() -> None:
    """Go on where standard error takes nothing: its disk is full, or its reader has gone.

    Progress and warnings are no results, and what a command makes is not lost with them.
    """
    if sys.stderr is not None:
        sys.stderr = cast(TextIO, _Said(sys.stderr))


def is_text(argument: str) -> bool:
    """Whether an argument is of the encoding that the process takes arguments for."""
    return not any("\ud800" <= character <= "\udfff" for character in argument)


def keep_linear_algebra_to_one_thread() -> None:
    """Let NumPy start no threads of its own, unless the user asks for some.

    It makes one for each core of the machine when it is imported. Nothing here multiplies large
    matrices; a node alone would spend a quarter of the processor time of its start on them.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def find_commands() -> dict[str, EntryPoint]:
    """The subcommands of every installed host by name, sorted; none of them imported."""
    points = entry_points(group=COMMAND_GROUP)
    return {point.name: point for point in sorted(points, key=lambda point: point.name)}


def run_command(command: EntryPoint, arguments: Sequence[str]) -> int:
    """Import ``command``, run it and return its exit code."""
    try:
        app: Callable[..., Any] = command.load()
        name = f"gossamer {command.name}"
        code = app(args=list(arguments), prog_name=name, standalone_mode=False)
    except SystemExit as end:
        return _exit_code(end)
    except (KeyboardInterrupt, BaseExceptionGroup) as error:
        interrupt = interrupt_behind(error)
        if interrupt is None:
            raise
        _fail("interrupted")
        return exit_code_of(interrupt)
    except BrokenPipeError:
        raise
    except OSError as error:
        return _fail(_os_error_sentence(error))
    except Exception as error:
        if is_user_error(error):
            return _fail(str(error))
        if _is_usage_error(error):
            sentence = _usage_sentence(error, command.name)
            # Whoever names no command of several has been shown them all.
            return _fail(sentence) if sentence else EXIT_USER_ERROR
        raise
    return code if isinstance(code, int) else EXIT_OK


def is_user_error(error: BaseException) -> bool:
    """Whether ``error`` says something to the user, rather than reveal a defect."""
    names = {f"{cls.__module__}.{cls.__qualname__}" for cls in type(error).__mro__}
    return not names.isdisjoint(USER_ERRORS) and names.isdisjoint(DEFECTS)


def _is_usage_error(error: Any) -> bool:
    """Whether the parser of arguments raised an error: Typer has had several classes for it."""
    return callable(getattr(error, "format_message", None))


def _usage_sentence(error: Any, name: str) -> str:
    """What a parser's error says, as this command words errors; nothing if it has shown help."""
    words = _usage_words(error)
    command = getattr(getattr(error, "ctx", None), "command_path", f"gossamer {name}")
    return words if not words or words.endswith("?") else f"{words}; see '{command} --help'"


def _usage_words(error: Any) -> str:
    if hasattr(error, "possibilities") and hasattr(error, "option_name"):
        return f"no option {error.option_name!r}" + _meant(error.possibilities or ())
    words = " ".join(error.format_message().split()).rstrip(".")
    for found, ours in _USAGE_WORDS:
        words = found.sub(ours, words)
    return f"{words[:1].lower()}{words[1:]}"


def _meant(near: Sequence[str]) -> str:
    return f"; did you mean {near[0]!r}?" if near else ""


def installed_version() -> str:
    """The version of the installed distribution, or a remark that there is none."""
    try:
        return version("gossamer")
    except PackageNotFoundError:
        return "(run from its sources, not installed)"


def _unknown(name: str, commands: Mapping[str, EntryPoint]) -> str:
    if name.startswith("-"):
        near = difflib.get_close_matches(name, ("--help", "--version"), n=1)
        expected = ", expected --help, --version or a command"
        return f"no option {name!r}{_meant(near) or expected}"
    near = difflib.get_close_matches(name, (HELP, *commands), n=1)
    expected = f"; expected one of: {', '.join(commands)}"
    return f"no command {name!r}{_meant(near) or expected}"


def _os_error_sentence(error: OSError) -> str:
    if error.strerror is None:
        return str(error) or type(error).__name__
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror


def _exit_code(end: SystemExit) -> int:
    if end.code is None or isinstance(end.code, int):
        return end.code or EXIT_OK
    return _fail(str(end.code))


def _fail(sentence: str) -> int:
    print(f"gossamer: {sentence}", file=sys.stderr)
    return EXIT_USER_ERROR


if __name__ == "__main__":
    sys.exit(main())
