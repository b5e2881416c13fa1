"""A way from the beginning to a state: in words, as a file, and taken again step by step."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np

from gossamer.protocol.kernel.records import BODY, FROM, KIND, LENGTH, TO, UNREACHABLE
from gossamer.sim.custom.language.context import LATER_WORDS
from gossamer.sim.custom.language.record_rules import Items
from gossamer.sim.engine.latency import Int64s
from gossamer.sim.engine.link_conditions import LATER
from gossamer.sim.errors import ResultsError
from gossamer.sim.exploration.loops import (
    ADVANCE,
    BEGIN,
    CRASH,
    DELIVER,
    DEPART,
    DUPLICATE,
    FIRE,
    LOSE,
    action_at,
    count_slots,
)
from gossamer.sim.exploration.model import Model
from gossamer.sim.exploration.packed import COLUMNS, DOWN, NEVER, STATUS, UP, find_records

# What an action is called in files, by its number.
ACTIONS: Final = ("deliver", "duplicate", "lose", "fire", "crash", "leave", "start", "advance")
_FORMAT: Final = "gossamer story 1"


@attrs.frozen
class Sent:
    """A message in flight.

    Attributes:
        name: of its class.
        sender, to: nodes.
        fields: by name.
        way: "there", "back" where it could not be delivered, or "later" of one to oneself.
    """

    name: str
    sender: int
    to: int
    fields: dict[str, Any]
    way: str = "there"

    @property
    def taker(self) -> int:
        """The node that takes it."""
        return self.sender if self.way == "back" else self.to

    def __str__(self) -> str:
        fields = ", ".join(f"{name}={_shown(value)}" for name, value in self.fields.items())
        return f"{self.name}({fields})" if fields else self.name


@attrs.frozen
class Step:
    """One action of a story, and what it changed.

    Attributes:
        action: one of `ACTIONS`.
        code: kind, place, timer or contact, and choice of draws, as an exploration has them.
        node: where it happens, -1 of the clock.
        subject: the message, or the name of the timer, or the contact; None of others.
        changes: by column, node and values before and after.
        sent: messages that are in flight since.
        gone: messages that are in flight no more.
        text: in words.
    """

    action: str
    code: tuple[int, int, int, int]
    node: int
    subject: Any
    changes: list[tuple[str, int, Any, Any]]
    sent: list[Sent]
    gone: list[Sent]
    text: str


@attrs.frozen
class Story:
    """The shortest way to a state in which a property does not hold.

    Attributes:
        about: what is needed to take it again: protocol, nodes, keys of the scenario, bounds.
        property: the name of the property.
        ending: what does not hold, in words.
        begins: who is up at first, in words.
        nodes: how many there are.
        up: who is up at first.
        steps: from the beginning on.
    """

    about: dict[str, Any]
    property: str
    ending: str
    begins: str
    nodes: int
    up: list[int]
    steps: list[Step]

    def __str__(self) -> str:
        width = len(str(len(self.steps)))
        lines = [f"{'':{width}}  {self.begins}"]
        lines += [f"{n:{width}}  {step.text}" for n, step in enumerate(self.steps, start=1)]
        return "\n".join([*lines, f"{'':{width}}  {self.ending}"])

    def save(self, file: Path) -> None:
        """Write it as JSON, for ``gossamer sim explore --replay``; the file appears whole."""
        held = {"format": _FORMAT, **attrs.asdict(self)}
        held["about"] = {**self.about, "protocol": _seen_from(file, self.about["protocol"])}
        beside = file.with_name(f"{file.name}.part")
        beside.write_text(json.dumps(held, indent=1) + "\n", encoding="utf-8")
        os.replace(beside, file)

    def plot(self) -> Any:
        """A space-time diagram: a Matplotlib figure."""
        from gossamer.sim.exploration.diagram import space_time_diagram
        from gossamer.sim.results.plot_style import plot_style

        with plot_style():
            return space_time_diagram(self)


def read_story(file: Path) -> dict[str, Any]:
    """What `Story.save` has written; paths in it are as from here.

    Raises:
        ResultsError: it is no such file.
    """
    try:
        held: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        if held["format"] != _FORMAT:
            raise ValueError(held["format"])
        path, colon, name = held["about"]["protocol"].rpartition(":")
    except FileNotFoundError as error:
        expected = "expected a story.json that an exploration has left"
        raise ResultsError(file, f"does not exist, {expected}") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ResultsError(file, "is no story of an exploration") from error
    held["about"]["protocol"] = f"{file.parent / path}{colon}{name}"
    return held


def _seen_from(file: Path, protocol: str) -> str:
    path, colon, name = protocol.rpartition(":")
    return f"{os.path.relpath(path, file.resolve().parent)}{colon}{name}"


def steps_of(model: Model, actions: Iterable[tuple[int, ...]]) -> Iterator[tuple[Step, Int64s]]:
    """Take actions one after another, from the beginning on: steps, each with the state behind it.

    Raises:
        ResultsError: an action is none of the state that it is taken in.
        RuleError: in a checked model, a rule did what rules may not.
    """
    words = model.first
    for number, given in enumerate(actions, start=1):
        kind, a, b, choice = given
        action = (kind, a, b, choice)
        if action[:3] not in set(_possible(model, words)):
            name = model.declared.place[0]
            raise ResultsError(Path(name), f"has no step {number} of the story any more")
        model.step_number = number
        after = model.after(words, *action)
        yield _step(model, words, after, action), after
        words = after


def _possible(model: Model, words: Int64s) -> Iterator[tuple[int, int, int]]:
    w = model.workspace
    records = find_records(w, words, 0)
    for slot in range(count_slots(w, records)):
        kind, a, b = (int(x) for x in action_at(w, words, 0, records, slot))
        if kind >= 0:
            yield kind, a, b


def _step(model: Model, words: Int64s, after: Int64s, action: tuple[int, int, int, int]) -> Step:
    kind, a, b, _ = action
    before, now = messages_in(model, words), messages_in(model, after)
    node: int = a
    subject: Any = None
    if kind <= LOSE:
        subject = before[a]
        node = subject.taker
    elif kind == FIRE:
        subject = model.timers[b].name
    elif kind == BEGIN:
        subject = b - 1
    elif kind == ADVANCE:
        node = -1
    sent, gone = _more(now, before), _more(before, now)
    if kind == DELIVER and subject not in gone:
        # It was sent again as it was taken, and the same is in flight as before.
        sent, gone = [subject, *sent], [subject, *gone]
    changes = list(_changes(model, words, after))
    text = _describe_values(words, kind, node, subject)
    text += "".join(_describe_changes(changes, node))
    text += "".join(f"; {_sending(one)}" for one in sent)
    text += "".join(f"; {_way(one)} is gone" for one in gone if one != subject)
    return Step(ACTIONS[kind], action, node, subject, changes, sent, gone, text)


def messages_in(model: Model, words: Int64s) -> list[Sent]:
    """The messages in flight in a state, in their order."""
    offset, found = COLUMNS + model.workspace.width, []
    known = {m.kind: m for part in model.parts for m in part.declared.messages.values()}
    while offset < words[LENGTH]:
        record = words[offset : offset + words[offset + LENGTH]]
        kind, body, way = int(record[KIND]), record[BODY:], "there"
        if kind >= UNREACHABLE:
            kind, way = kind - UNREACHABLE, "back"
        elif kind == LATER:
            kind, body, way = int(record[BODY + 1]), record[LATER_WORDS + BODY :], "later"
        message = known.get(kind)
        fields = _fields_of(message, body) if message else {}
        name = message.__name__ if message else f"kind {kind}"
        found.append(Sent(name, int(record[FROM]), int(record[TO]), fields, way))
        offset += len(record)
    return found


def _fields_of(message: Any, body: Int64s) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for field in message.fields:
        if isinstance(field.kind, Items):
            count, words = int(body[0]), body[1:]
            fields[field.name] = _values(words[:count], field.kind.kind)
            body = words[count:]
        else:
            (fields[field.name],) = _values(body[:1], field.kind)
            body = body[1:]
    return fields


def _values(words: Int64s, kind: type) -> list[Any]:
    if kind is float:
        return [float(value) for value in words.copy().view(np.float64)]
    return [bool(word) if kind is bool else int(word) for word in words]


def _more(some: list[Sent], others: list[Sent]) -> list[Sent]:
    """What is more often in some messages than in others."""
    left, found = Counter(map(_key, others)), []
    for one in some:
        left[_key(one)] -= 1
        if left[_key(one)] < 0:
            found.append(one)
    return found


def _key(one: Sent) -> str:
    return repr(one)


def columns_in(model: Model, words: Int64s) -> dict[str, list[Any]]:
    """The columns of a state by name: a value a node, or a list of such."""
    found = {}
    for name, (begin, shape, dtype) in model.columns.items():
        if name == "handles":  # of what can be cancelled: it shows in what is in flight
            continue
        part = words[COLUMNS + begin : COLUMNS + begin + int(np.prod(shape))]
        typed = part.view(np.float64) if dtype == np.float64 else part.astype(dtype)
        found[name] = typed.reshape(shape).tolist()
    return found


def _changes(model: Model, words: Int64s, after: Int64s) -> Iterator[tuple[str, int, Any, Any]]:
    new = columns_in(model, after)
    for name, values in columns_in(model, words).items():
        for node, value in enumerate(values):
            if repr(value) != repr(new[name][node]):
                yield name, node, value, new[name][node]


def _describe_changes(changes: list[tuple[str, int, Any, Any]], node: int) -> Iterator[str]:
    for name, at, before, after in changes:
        whose = "" if at == node else f"{at}."
        yield f"; {whose}{name} {_shown(before)} -> {_shown(after)}"


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _describe_values(words: Int64s, kind: int, node: int, subject: Any) -> str:
    """An action in words."""
    if kind == FIRE:
        return f"timer {subject} of {node}"
    if kind == BEGIN:
        return f"start {node}, " + ("alone" if subject < 0 else f"by {subject}")
    if kind in (CRASH, DEPART):
        return f"{ACTIONS[kind]} {node}"
    if kind == ADVANCE:
        return "the clock goes on by a round"
    way = _way(subject)
    if subject.way == "later":
        return f"time for {way}"
    if subject.way == "back":
        return f"return {way}, which cannot be reached"
    if kind == DELIVER and status_in(words, subject.to) != UP:
        return f"deliver {way}, which is down"
    if kind == DUPLICATE:
        return f"deliver {way}, a duplicate of which stays in flight"
    return f"{ACTIONS[kind]} {way}"


def _way(one: Sent) -> str:
    return f"{one} of {one.to}" if one.way == "later" else f"{one} from {one.sender} to {one.to}"


def _sending(one: Sent) -> str:
    if one.way == "later":
        return f"{one} to itself, later"
    if one.way == "back":
        return f"{one} to {one.to} comes back"
    return f"{one} to {one.to}"


def status_in(words: Int64s, node: int) -> int:
    """Whether a node has never been up, is up or down."""
    return int(words[STATUS]) >> (2 * node) & 3


def beginning_of(model: Model) -> tuple[str, list[int]]:
    """Who is up at first: in words, and their rows."""
    by = {
        status: [p for p in range(model.nodes) if status_in(model.first, p) == status]
        for status in (UP, NEVER, DOWN)
    }
    said = f"at first {_listed(by[UP])} up" if by[UP] else "at first nobody is up"
    if by[NEVER]:
        said += f", {_listed(by[NEVER])} not yet"
    columns = columns_in(model, model.first)
    held = "; ".join(f"{name} {_shown(values)}" for name, values in columns.items())
    flight = "".join(f"; {_way(one)}" for one in messages_in(model, model.first))
    return f"{said}: {held}{flight}", by[UP]


def _listed(rows: list[int]) -> str:
    verb = "are" if len(rows) > 1 else "is"
    return f"{', '.join(map(str, rows))} {verb}"
