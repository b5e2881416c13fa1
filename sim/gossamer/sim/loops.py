"""Compiled loops over rules that are known only when a simulation is put together.

A factory closes a loop over the rules it is to call. The compiler's disk cache tells such loops
apart by a pickle of what they close over, which therefore has to be the same in every process
until the rules change. A `Loop` pickles as the call that made it and the sources of its rules;
the compiler's own functions would be different ones in every process.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gossamer.protocol.debugging.checked_run import CheckedRule
from gossamer.protocol.rules import Rule, teach_compiler


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

    def __call__(self, *args: Any) -> Any:
        return self.interpreted(*args) if self._checked else self.run(*args)

    def __reduce__(self) -> Any:
        sources = tuple(_fingerprint(rule) for rule in self._rules)
        return _make_again, (self._make, self._rules, sources)

    @property
    def compiled(self) -> Any:
        """The compiled loop. It counts no references to arrays: its engine holds them all."""
        if self._dispatcher is None:
            njit = teach_compiler().njit
            from gossamer.protocol.compiler import explain_failures

            dispatcher = njit(cache=True, nogil=True, error_model="numpy", _nrt=False)(self._source)
            self._dispatcher = explain_failures(dispatcher, self._source)
        return self._dispatcher


def loop_factory(*, inline: bool) -> Callable[[Callable[..., Any]], Callable[..., Loop]]:
    """Mark a function of rules that returns a loop over them.

    Called again with the same rules it returns the same `Loop`, compiled once.

    Args:
        inline: whether the compiler is to place the loop into loops that call it.
    """

    def mark(factory: Callable[..., Any]) -> Callable[..., Loop]:
        @functools.cache
        def make(*rules: Rule) -> Loop:
            return Loop(factory(*rules), made, rules, inline)

        made = functools.update_wrapper(make, factory)
        return made

    return mark


def _make_again(make: Callable[..., Loop], rules: tuple[Rule, ...], _sources: object) -> Loop:
    return make(*rules)


def _fingerprint(rule: Rule) -> str:
    """A hash of the file that a rule stands in, or of its code where there is no file."""
    code = rule._source.__code__
    path = Path(code.co_filename)
    source = path.read_bytes() if path.is_file() else code.co_code
    return hashlib.sha256(source).hexdigest()
