"""The subcommand `gossamer completion`: shells complete commands, options and their values by it.

The candidates come from the Typer apps that the subcommands are, each of which is imported once one
of its words is to be completed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import EntryPoint
from types import MappingProxyType
from typing import Annotated, Any, Final

import typer
from attrs import define

from gossamer.command.main import HELP, find_commands
from gossamer.command.options import SETTINGS
from gossamer.command.screens import description

# What the shells are told so that they complete the words of `gossamer`.
#
# Each script asks `gossamer completion --answer -- WORD...` whenever a word is to be completed, and
# gets a line for each candidate: the word, a tab, and what it means; or one of the lines `FOLDERS`
# and `FILES`, where the shell completes names of its own.


FOLDERS: Final = ":folder"
FILES: Final = ":file"

_BASH: Final = r"""# Completion of gossamer for bash 4 and newer. In ~/.bashrc:
#     eval "$(gossamer completion bash)"
_gossamer_complete() {
    local word=${COMP_WORDS[COMP_CWORD]} line name
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
            :folder)
                compopt -o filenames 2>/dev/null
                while IFS= read -r name; do COMPREPLY+=("$name"); done < <(compgen -d -- "$word")
                ;;
            :file)
                compopt -o filenames 2>/dev/null
                while IFS= read -r name; do COMPREPLY+=("$name"); done < <(compgen -f -- "$word")
                ;;
            ?*) COMPREPLY+=("${line%%$'\t'*}") ;;
        esac
    done < <("${COMP_WORDS[0]}" completion --answer -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _gossamer_complete gossamer
"""

_ZSH: Final = r"""#compdef gossamer
# Completion of gossamer for zsh. In ~/.zshrc, after compinit:
#     eval "$(gossamer completion zsh)"
_gossamer() {
    local -a found
    local line
    for line in "${(@f)$(gossamer completion --answer -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        case $line in
            :folder) _files -/ ;;
            :file) _files ;;
            ?*) found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
        esac
    done
    (( ${#found} )) && _describe gossamer found
}
if [[ ${funcstack[1]} == _gossamer ]]; then
    _gossamer "$@"
else
    compdef _gossamer gossamer
fi
"""

_FISH: Final = r"""# Completion of gossamer for fish. Once:
#     gossamer completion fish > ~/.config/fish/completions/gossamer.fish
function __gossamer_complete
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    set -e words[1]
    for line in (gossamer completion --answer -- $words "$word" 2>/dev/null)
        switch $line
            case :folder
                __fish_complete_directories "$word"
            case :file
                __fish_complete_path "$word"
            case '*'
                echo $line
        end
    end
end
complete -c gossamer -f -a '(__gossamer_complete)'
"""

SCRIPTS: Final[Mapping[str, str]] = MappingProxyType({"bash": _BASH, "zsh": _ZSH, "fish": _FISH})


app: Final = typer.Typer(**SETTINGS)

SHELL: Final = "SHELL"
# What the help of commands calls a folder, and a file.
_FOLDERS_ARE: Final = ("FOLDER", "RESULTS")
_FILES_ARE: Final = ("FILE", "TRACE", "SCENARIO", "SWEEP")
_MAIN_WORDS: Final = (
    (HELP, "explain a command"),
    ("--help", "list the commands"),
    ("--version", "print the version"),
)


@app.command()
def completion(
    words: Annotated[
        list[str] | None, typer.Argument(metavar=SHELL, help=f"{', '.join(SCRIPTS)}.")
    ] = None,
    answer: Annotated[bool, typer.Option("--answer", hidden=True)] = False,
) -> None:
    """Print a script by which a shell completes the words of gossamer; it says where to put it."""
    given = words or []
    if answer:
        for line in candidates(given):
            print(line)
        return
    if len(given) != 1 or given[0] not in SCRIPTS:
        found = " ".join(given) or "none"
        raise typer.BadParameter(f"{found!r} is no shell, expected one of {', '.join(SCRIPTS)}")
    sys.stdout.write(SCRIPTS[given[0]])


def candidates(words: Sequence[str]) -> list[str]:
    """What may stand in place of the last word, which may be empty, in lines as shells read them.

    Args:
        words: of the command line behind ``gossamer``.
    """
    *before, word = words or [""]
    commands = find_commands()
    if before[:1] == [HELP]:
        return candidates(words[1:])
    if not before:
        named = [(name, description(point)) for name, point in commands.items()]
        return _matching(word, [*named, *_MAIN_WORDS])
    if before[0] not in commands:
        return []
    command = _command_of(commands[before[0]])
    return [] if command is None else _completed(command, before[1:], word)


def _command_of(point: EntryPoint) -> Any:
    """The command behind an entry point as Typer has it, None where it is of another make."""
    found = point.load()
    found = getattr(found, "typer_app", found)
    if not isinstance(found, typer.Typer):
        return None
    return typer.main.get_command(found)


def _completed(command: Any, before: Sequence[str], word: str) -> list[str]:
    """Candidates for a word behind those ``before``, which are the command's."""
    rest: Iterator[str] = iter(before)
    place = _Place(command)
    for one in rest:
        if not place.take(one):
            return []
    return place.candidates(word)


@define
class _Place:
    """Where in a command line a word is.

    Attributes:
        command: whose words they are.
        option: the one whose value comes next, None for none.
        arguments: how many have come.
        only_arguments: whether ``--`` was among them.
    """

    command: Any
    option: Any = None
    arguments: int = 0
    only_arguments: bool = False

    def take(self, word: str) -> bool:
        """Go past a word; False where there is nothing that it could be."""
        if self.option is not None:
            self.option = None
        elif word == "--" and not self.only_arguments:
            self.only_arguments = True
        elif word.startswith("-") and len(word) > 1 and not self.only_arguments:
            name, equals, _ = word.partition("=")
            found = self._option_named(name)
            if found is not None and not equals and not found.is_flag:
                self.option = found
        elif self._subcommands():
            self.command = self._subcommands().get(word)
            return self.command is not None
        else:
            self.arguments += 1
        return True

    def candidates(self, word: str) -> list[str]:
        """What may come next and begins with ``word``."""
        if self.option is not None:
            return _values(self.option, word)
        if word.startswith("-") and not self.only_arguments:
            return _matching(word, self._options())
        subcommands = self._subcommands()
        if subcommands:
            named = [(name, _help(one)) for name, one in subcommands.items() if not one.hidden]
            return _matching(word, named)
        argument = self._argument()
        return [] if argument is None else _values(argument, word)

    def _subcommands(self) -> dict[str, Any]:
        return getattr(self.command, "commands", {})

    def _options(self) -> list[tuple[str, str]]:
        found = [("--help", "explain the command")]
        for one in self.command.params:
            if one.param_type_name == "option" and not one.hidden:
                found += [(name, _help(one)) for name in (*one.opts, *one.secondary_opts)]
        return found

    def _option_named(self, name: str) -> Any:
        for one in self.command.params:
            if one.param_type_name == "option" and name in (*one.opts, *one.secondary_opts):
                return one
        return None

    def _argument(self) -> Any:
        """The argument that comes next; the last may take any number of words."""
        arguments = [one for one in self.command.params if one.param_type_name == "argument"]
        if self.arguments < len(arguments):
            return arguments[self.arguments]
        return arguments[-1] if arguments and arguments[-1].nargs == -1 else None


def _values(parameter: Any, word: str) -> list[str]:
    """The values that an option or an argument may have, by what its help calls them."""
    metavar = parameter.metavar or ""
    if metavar == SHELL:
        return _matching(word, [(shell, "") for shell in SCRIPTS])
    if any(name in metavar for name in _FOLDERS_ARE):
        return [FOLDERS]
    return [FILES] if any(name in metavar for name in _FILES_ARE) else []


def _matching(word: str, named: Sequence[tuple[str, str]]) -> list[str]:
    return [f"{name}\t{about}" for name, about in named if name.startswith(word)]


def _help(part: Any) -> str:
    """The first line of what a command or an option says of itself."""
    lines = (part.help or "").strip().splitlines()
    return lines[0] if lines else ""
