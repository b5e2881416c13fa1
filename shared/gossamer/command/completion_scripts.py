"""What the shells are told so that they complete the words of `gossamer`.

Each script asks `gossamer completion --answer -- WORD...` whenever a word is to be completed, and
gets a line for each candidate: the word, a tab, and what it means; or one of the lines `FOLDERS`
and `FILES`, where the shell completes names of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

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
