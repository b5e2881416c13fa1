"""What must hold of the states of a protocol, as its class or file says it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, Final

import attrs

from gossamer.protocol.kernel.errors import choice
from gossamer.protocol.kernel.rules import Rule
from gossamer.sim.custom.language.places import check_arguments
from gossamer.sim.errors import ScenarioError

_ARGUMENTS: Final = ("self", "alive")


@attrs.frozen
class Property:
    """What `invariant`, `eventually` and `assumption` declare.

    Attributes:
        check: function ``(self, alive)`` that returns whether it holds; a rule is compiled.
        kind: the name of the decorator.
    """

    check: Callable[[Any, Any], Any]
    kind: str = "invariant"

    @property
    def name(self) -> str:
        """The name of the function."""
        name: str = self.source.__name__
        return name

    @property
    def source(self) -> Any:
        """The function as it is written."""
        return self.check.source if isinstance(self.check, Rule) else self.check

    @property
    def meaning(self) -> str:
        """The first sentence of its docstring, or its name in words."""
        said = inspect.getdoc(self.source) or self.name.replace("_", " ")
        return " ".join(said.split("\n\n")[0].split())

    def __call__(self, state: Any, alive: Any) -> bool:
        """Whether it holds of a state; for measures, and other properties."""
        return bool(self.check(state, alive))


def invariant(function: Any) -> Any:
    """Mark a function ``(self, alive)`` that returns True in every state that can be reached.

    ``self`` is the state of a `Protocol`, its columns and settings, and ``alive`` bool[n] says who
    is up. A rule (``@invariant`` above ``@rule``) is compiled, and costs an exploration little;
    any other function may use NumPy and Python as it likes, and costs some microseconds a state.
    """
    return _marked(function, "invariant")


def eventually(function: Any) -> Any:
    """Mark a function ``(self, alive)`` that comes to be True where nothing goes wrong any more.

    Asked of every state that can be reached in which no message is in flight: from there timers
    fire in turn, and all that follows from each is delivered, until states come again. It has to
    hold at the end of some lap of timers. Without timers it has to hold at once.
    """
    return _marked(function, "eventually")


def assumption(function: Any) -> Any:
    """Mark a rule ``(self, alive)`` without which nothing is promised.

    A state in which it returns False is left out, with all that only follows from such states:
    ``@assumption`` above ``@rule``, as each state is asked.
    """
    return _marked(function, "assumption")


def _marked(function: Any, kind: str) -> Property:
    made = Property(function, kind)
    check_arguments(made.source, made.name, _ARGUMENTS)
    return made


def properties_of(owner: type, names: Iterable[str] = ()) -> list[Property]:
    """The properties of a class: assumptions, invariants, and what is eventual.

    Args:
        owner: the class of the protocol.
        names: of properties of the class or functions of its file; all that it declares if none.
            What it assumes holds of any.

    Raises:
        ScenarioError: there is none of a name, or none at all, or an assumption is no rule.
    """
    declared = {
        name: value
        for each in reversed(owner.__mro__)
        for name, value in vars(each).items()
        if isinstance(value, Property)
    }
    of_file = _functions_of(inspect.getmodule(owner))
    known = {**of_file, **declared}
    for name in names:
        if name not in known:
            expected = choice(name, known) if known else "a function (self, alive) of the file"
            raise ScenarioError(None, "invariant", name, expected)
    assumed = [one for one in declared.values() if one.kind == "assumption"]
    for one in assumed:
        if not isinstance(one.check, Rule):
            raise ScenarioError(None, "assumption", one.name, "a rule: @assumption above @rule")
    chosen = [known[name] for name in dict.fromkeys(names)] or list(declared.values())
    chosen = [one for one in chosen if one.kind != "assumption"]
    if not chosen:
        expected = "a function (self, alive) of the class below @invariant or @eventually"
        raise ScenarioError(None, "invariant", None, expected, found="none that is declared")
    return [*assumed, *sorted(chosen, key=lambda one: one.kind == "eventually")]


def _functions_of(module: Any) -> dict[str, Property]:
    found = {}
    for name, value in vars(module).items() if module else ():
        if isinstance(value, Property):
            found[name] = value
        elif isinstance(value, Rule) or inspect.isfunction(value):
            plain = value.source if isinstance(value, Rule) else value
            if tuple(inspect.signature(plain).parameters) == _ARGUMENTS:
                found[name] = Property(value)
    return found
