"""Compiled loops over rules that are known only when a simulation is put together.

A factory closes a loop over the rules it is to call; the loop is a `Rule` whose code depends on
what it closes over.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from gossamer.compiled.store import keep_compiled_code
from gossamer.protocol.kernel.debugging.checked_run import CheckedRule
from gossamer.protocol.kernel.rules import Rule, teach_compiler

keep_compiled_code()

# Systems run side by side in threads, and factories call each other.
_making = threading.RLock()


class Loop(Rule):
    """A loop made for certain rules; call it, or let another loop close over it."""

    def __init__(
        self,
        loop: Callable[..., Any],
        make: Callable[..., Loop],
        rules: tuple[Rule, ...],
        inline: bool,
    ) -> None:
        super().__init__(loop, loop, inline)
        self._make = make
        self._rules = rules
        self._checked = any(isinstance(rule, CheckedRule) for rule in rules)

    def __reduce__(self) -> Any:
        return self._make, self._rules

    def __call__(self, *args: Any) -> Any:
        return self.interpreted(*args) if self._checked else self.run(*args)


def loop_factory(*, inline: bool) -> Callable[[Callable[..., Any]], Callable[..., Loop]]:
    """Mark a function of rules that returns a loop over them.

    Called again with the same rules, none of which refers to anything else than before, it returns
    the same `Loop`, compiled once.

    Args:
        inline: whether the compiler is to place the loop into loops that call it.
    """

    def mark(factory: Callable[..., Any]) -> Callable[..., Loop]:
        made: dict[tuple[Rule, ...], tuple[list[str | None], Loop]] = {}

        @functools.wraps(factory)
        def make(*rules: Rule) -> Loop:
            with _making:
                keys = _keys(rules)
                if rules not in made or made[rules][0] != keys or None in keys:
                    loop = factory(*rules)
                    made[rules] = keys, Loop(loop, make, rules, inline)
                return made[rules][1]

        return make

    return mark


def _keys(rules: tuple[Rule, ...]) -> list[str | None]:
    """What the code of each rule depends on now; that of checked ones is not compiled."""
    if any(isinstance(rule, CheckedRule) for rule in rules):
        return []
    teach_compiler()
    from gossamer.protocol.kernel.code_keys import code_key

    return [code_key(rule) for rule in rules]
