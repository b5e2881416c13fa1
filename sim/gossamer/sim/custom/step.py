"""The one door of a stack of protocols, made of their handlers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from gossamer.protocol.kernel.records import (
    BODY,
    KIND,
    LENGTH,
    TO,
    UNREACHABLE,
    Outbox,
    Words,
    close_record,
    dispatch,
    open_record,
)
from gossamer.protocol.kernel.rules import Rule, inline_rule, rule
from gossamer.protocol.peer.sampling.sampler import FAMILY, sample_step, sample_unreachable
from gossamer.protocol.peer.settings.config import SAMPLERS
from gossamer.sim.custom.language.context import (
    LATER_WORDS,
    LEAVE,
    LIVES,
    START,
    Net,
    delay_ticks,
    drop_handle,
    handle_of,
    is_due,
)
from gossamer.sim.custom.language.declarations import Declarations
from gossamer.sim.custom.language.members import Timer
from gossamer.sim.custom.language.places import declaration_error
from gossamer.sim.custom.language.record_rules import make_function, taking_rule
from gossamer.sim.custom.library import draw_float
from gossamer.sim.custom.protocol import Part, handler_rule, parts_of
from gossamer.sim.engine.cycle_engine import join_via
from gossamer.sim.engine.link_conditions import DELAY_BITS, LATER


@inline_rule
def net_of(s: Any, p: int, now: int, out: Outbox) -> Any:
    """What handlers of row p are given."""
    tick = now * s.ticks_a_now
    rate = s.rates[p] if s.drifting else 1.0
    return Net(out, p, tick, tick // s.round_ticks, s.life[p], rate, s.handles)


@inline_rule
def arm(net: Net, kind: int, delay_s: float, least: int) -> None:
    """Let a timer fire after a delay of at least so many ticks."""
    delay = delay_ticks(delay_s, net.rate)
    known = LATER if delay >= 0 else -kind
    at = open_record(net.out, known, net.me, net.me, 2)
    if at >= 0:
        net.out.words[at + BODY] = (net.life << DELAY_BITS) | max(delay, least)
        net.out.words[at + BODY + 1] = kind
        close_record(net.out, at, 2)


@functools.cache
def step_of(declared: Declarations) -> Rule:
    """The rule that takes every record of a stack of protocols."""
    parts = list(parts_of(declared))
    take = dispatch(_takers(parts))
    rearm = dispatch(_rearming(parts))
    start, leave, come_back = _starting(parts), _leaving(parts), _coming_back(parts)

    @rule
    def step(s: Any, p: int, now: int, words: Words, at: int, out: Outbox) -> None:
        kind = words[at + KIND]
        if kind == LATER:
            if s.in_cycles:
                s.refused[0] += 1
            elif is_due(s, p, words, at):
                drop_handle(s.handles, p, handle_of(words, at))
                inside = at + LATER_WORDS
                take(words[inside + KIND], s, p, now, words, inside, out)
                rearm(words[inside + KIND], s, p, now, words, inside, out)
        elif kind == START:
            s.life[p] = (s.life[p] + 1) % LIVES
            for place in range(1, s.handles.shape[1]):
                s.handles[p, place] = 0
            start(s, p, now, words, at, out)
        elif kind == LEAVE:
            leave(s, p, now, words, at, out)
        elif kind >= UNREACHABLE:
            come_back(s, p, now, words, at, out)
        else:
            take(kind, s, p, now, words, at, out)

    return step


def cycle_timers(declared: Declarations) -> tuple[int, ...]:
    """The kinds of all timers of a stack, in the order in which they fire in a turn."""
    return tuple(
        timer.kind for part in parts_of(declared) for timer in part.declared.timers.values()
    )


def _takers(parts: list[Part]) -> dict[int, Rule]:
    """By kind, the rule that takes its records, those that are declared last first."""
    takers: dict[int, Rule] = {}
    names: dict[int, str] = {}
    for part in reversed(parts):
        for name, kind, taker in _takers_of(part):
            if kind in takers:
                _refuse_two(parts[-1], names[kind], name)
            takers[kind], names[kind] = taker, name
    return takers


def _takers_of(part: Part) -> Iterator[tuple[str, int, Rule]]:
    if part.sampler is not None:
        rules = FAMILY[SAMPLERS.index(part.sampler.name)].rules
        sample = _rule_of(
            "sample",
            [f"    sample_step(s{part.path}, p, net_of(s, p, now, out).round, words, at, out)"],
            {"sample_step": sample_step},
        )
        yield from ((f"the sampler{part.path}", kind, sample) for kind in rules)
        return
    declared = part.declared
    for name, message in declared.messages.items():
        handler = handler_rule(declared.handlers[name])
        where = f"{declared.owner.__name__}.on_{name}"
        yield where, message.kind, taking_rule(handler, message, part.path, {"net_of": net_of})
    for name, timer in declared.timers.items():
        call = [f"    handle(s{part.path}, p, net_of(s, p, now, out))"]
        handler = handler_rule(declared.handlers[name])
        where = f"{declared.owner.__name__}.on_{name}"
        yield where, timer.kind, _rule_of(f"fire_{name}", call, {"handle": handler})


def _refuse_two(top: Part, one: str, other: str) -> None:
    raise declaration_error(
        top.declared.place,
        top.declared.owner.__name__,
        None,
        "another name of one message, or a kind of its own: class Share(Message, kind=200)",
        found=f"a stack in which {one} and {other} take records of one kind",
    )


def _rearming(parts: list[Part]) -> dict[int, Rule]:
    """By kind of a timer, the rule that lets it fire again."""
    rules: dict[int, Rule] = {}
    for part in parts:
        path = _path_of_draws(part)
        for timer in part.declared.timers.values():
            period = _period(path, timer)
            if timer.jitter > 0:
                spread = f"{timer.jitter!r} * (2.0 * draw_float(s{path}, p) - 1.0)"
                period = f"{period} * (1.0 + {spread})"
            line = f"    arm(net_of(s, p, now, out), {timer.kind}, {period}, 1)"
            rules[timer.kind] = _rule_of(f"rearm_{timer.name}", [line], {})
    return rules


def _path_of_draws(part: Part) -> str:
    """The path of the state by which timers of a part draw: a sampler's by that of the stack."""
    return part.path if part.sampler is None else ""


def _period(path: str, timer: Timer) -> str:
    """The code of a timer's period in seconds."""
    given = timer.period
    period = f"s{path}.{given}" if isinstance(given, str) else repr(float(given or 0))
    return period if timer.rounds is None else f"({period} * s.round_s)"


def _starting(parts: list[Part]) -> Rule:
    """The rule that starts a node: its timers and handlers, those below first."""
    contact = f"    contact = words[at + {BODY}] if words[at + {LENGTH}] > {BODY} else -1"

    def before(part: Part) -> Iterator[str]:
        if part.sampler is not None:
            yield "    if contact >= 0:"
            yield f"        join_via(s{part.path}, p, net.round, contact)"
        if part.declared.timers:
            yield "    if not s.in_cycles:"
        for timer in part.declared.timers.values():
            path = _path_of_draws(part)
            share = f"draw_float(s{path}, p)" if timer.phase is None else repr(float(timer.phase))
            yield f"        arm(net, {timer.kind}, {_period(path, timer)} * {share}, 0)"

    return _calling("start", parts, [contact], before, ", contact")


def _leaving(parts: list[Part]) -> Rule:
    """The rule by which a node says that it leaves: handlers, those above first."""
    return _calling("leave", parts[::-1], [], lambda _part: (), "")


def _coming_back(parts: list[Part]) -> Rule:
    """The rule that takes records that came back to their sender."""

    def before(part: Part) -> Iterator[str]:
        if part.sampler is not None:
            yield f"    sample_unreachable(s{part.path}, p, net.round, words, at, out)"

    given = f", words[at + {TO}], words[at + {KIND}] - {UNREACHABLE}"
    return _calling("unreachable", parts, [], before, given)


def _calling(
    name: str,
    parts: list[Part],
    first: list[str],
    before: Callable[[Part], Iterable[str]],
    given: str,
) -> Rule:
    """The rule that calls the handlers of a name, with what is done ahead of that of each part."""
    lines = ["    net = net_of(s, p, now, out)", *first]
    handlers: dict[str, Rule] = {"join_via": join_via, "sample_unreachable": sample_unreachable}
    for number, part in enumerate(parts):
        lines += before(part)
        if name in part.declared.handlers:
            handlers[f"{name}_{number}"] = handler_rule(part.declared.handlers[name])
            lines.append(f"    {name}_{number}(s{part.path}, p, net{given})")
    return _rule_of(name, lines, handlers)


def _rule_of(name: str, lines: list[str], names: Mapping[str, Any]) -> Rule:
    arguments = ["s", "p", "now", "words", "at", "out"]
    known = {"net_of": net_of, "arm": arm, "draw_float": draw_float, **names}
    made: Callable[..., Any] = make_function(name, arguments, lines, known)
    return inline_rule(made)
