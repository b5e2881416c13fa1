"""States that are one but for the names of nodes: the least fingerprint of all namings."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, Any, Final

import attrs
import numpy as np

from gossamer.protocol.kernel.records import (
    BODY,
    FROM,
    KIND,
    LENGTH,
    TO,
    UNREACHABLE,
    Words,
)
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.sim.custom.language.context import LATER_WORDS
from gossamer.sim.custom.language.messages import MessageClass
from gossamer.sim.custom.language.record_rules import Items
from gossamer.sim.engine.link_conditions import LATER
from gossamer.sim.errors import ScenarioError
from gossamer.sim.exploration.packed import (
    BUDGETS,
    COLUMNS,
    POOLED,
    RECORDS,
    STATUS,
    Workspace,
    find_records,
    fingerprint,
    sort_records,
    status_of,
    with_status,
)

if TYPE_CHECKING:
    from gossamer.sim.exploration.model import Model

_MOST_NODES: Final = 6
# What a field of a message is, 2 bits each: a number, a node, several numbers, several nodes.
_NODE, _ITEMS = 1, 2


@attrs.frozen
class Symmetry:
    """What `symmetric_nodes` declares."""

    names: tuple[str, ...]
    rotations: bool


def symmetric_nodes(*names: str, rotations: bool = False) -> Any:
    """Say that the nodes of a class can change places: ``alike = symmetric_nodes("near")``.

    Args:
        names: what holds nodes, of columns and of messages that the class handles, as "near" and
            "Share.known"; values below 0 there are nobody.
        rotations: whether only all can move on by as many rows, as where rows are places on a ring.

    Everything else has to be the same at all nodes but for who they are: initialisers may set
    nodes up as they like, but no rule may tell one row from another, and a draw of a node has to
    come to every row alike.
    """
    return Symmetry(names, rotations)


def naming_tables(model: Model, width: int) -> dict[str, Any]:
    """The tables of a `Workspace` by which nodes change places; one of nobody where none do.

    Raises:
        ScenarioError: a class of the stack does not say that its nodes are alike, or says so of
            something that there is not, or there are too many nodes.
    """
    nodes = model.nodes
    refers, fields, rotations = np.zeros(width, np.bool_), [0, 0], False
    if model.bounds.symmetric:
        if nodes > _MOST_NODES:
            raise ScenarioError(None, "nodes", nodes, f"at most {_MOST_NODES} that are symmetric")
        for part in model.parts:
            declared = part.declared
            said = [v for v in vars(declared.owner).values() if isinstance(v, Symmetry)]
            if not said:
                expected = "alike = symmetric_nodes(...), as symmetric is asked for"
                raise declared.error("alike", None, expected, found="nothing about its nodes")
            rotations = rotations or said[0].rotations
            of_messages = {name for name in said[0].names if "." in name}
            for name in said[0].names:
                path = f"{part.path}.{name}".removeprefix(".")
                if name not in of_messages and path not in model.columns:
                    raise declared.error("alike", name, "a column of the class")
                if name not in of_messages:
                    begin, shape, _ = model.columns[path]
                    refers[begin : begin + int(np.prod(shape))] = True
            for message in declared.messages.values():
                fields += [message.kind, _shape_of(message, of_messages)]
            if of_messages:
                raise declared.error(
                    "alike", min(of_messages), "fields of messages that it handles"
                )
    ways = [tuple(range(nodes))]
    if model.bounds.symmetric and rotations:
        ways = [tuple((p + by) % nodes for p in range(nodes)) for by in range(nodes)]
    elif model.bounds.symmetric:
        ways = list(permutations(range(nodes)))
    moved = np.zeros((len(ways), width), np.int64)
    for begin, shape, _ in model.columns.values():
        of_node = np.arange(begin, begin + int(np.prod(shape))).reshape(nodes, -1)
        for way, names in enumerate(ways):
            moved[way, of_node] = of_node[list(names)]
    return {
        "moved": moved,
        "renamed": np.array(ways, np.int64),
        "refers": refers,
        "fields": np.array(fields, np.int64),
    }


def _shape_of(message: MessageClass, names: set[str]) -> int:
    """What the fields of a message are, 2 bits each; takes those that hold nodes out of names."""
    shape = 0
    for place, field in enumerate(message.fields):
        name = f"{message.__name__}.{field.name}"
        code = _ITEMS * isinstance(field.kind, Items) + _NODE * (name in names)
        names.discard(name)
        shape |= code << (2 * place)
    return shape


@inline_rule
def _name_of(w: Workspace, way: int, node: int) -> Any:
    return w.renamed[way, node] if 0 <= node < w.nodes else node


@rule
def _rename_record(w: Workspace, way: int, words: Words, at: int) -> None:
    """Give the nodes of a record other names."""
    words[at + TO], words[at + FROM] = (
        w.renamed[way, words[at + TO]],
        w.renamed[way, words[at + FROM]],
    )
    kind, begin = words[at + KIND], at + BODY
    if kind == LATER:
        kind, begin = words[at + BODY + 1], at + LATER_WORDS + BODY
        words[at + LATER_WORDS + FROM] = w.renamed[way, words[at + LATER_WORDS + FROM]]
    elif kind >= UNREACHABLE:
        kind -= UNREACHABLE
    shape = 0
    for i in range(0, len(w.fields), 2):
        if w.fields[i] == kind:
            shape = w.fields[i + 1]
    while begin < at + words[at + LENGTH]:
        count = 1
        if shape & _ITEMS:
            count = words[begin]
            begin += 1
        if shape & _NODE:
            for i in range(count):
                words[begin + i] = _name_of(w, way, words[begin + i])
        begin += count
        shape >>= 2


@rule
def _rename_state(w: Workspace, way: int, into: Words) -> None:
    """Write the new state of the workspace with other names of the nodes."""
    made, status = w.made, 0
    for p in range(w.nodes):
        status = with_status(status, w.renamed[way, p], status_of(made[STATUS], p))
    into[BUDGETS], into[STATUS] = made[BUDGETS], status
    for i in range(w.width):
        word = made[COLUMNS + i]
        into[COLUMNS + w.moved[way, i]] = _name_of(w, way, word) if w.refers[i] else word
    end, begin = COLUMNS + w.width, COLUMNS + w.width
    count = find_records(w, made, 0)
    for i in range(begin, made[LENGTH]):
        w.pool[i - begin] = made[i]
    for i in range(count):
        w.order[i] = w.offsets[i] - begin
        _rename_record(w, way, w.pool, w.order[i])
    w.counts[RECORDS], w.counts[POOLED] = count, made[LENGTH] - begin
    sort_records(w)
    for i in range(count):
        for j in range(w.pool[w.order[i] + LENGTH]):
            into[end] = w.pool[w.order[i] + j]
            end += 1
    into[LENGTH] = end


@rule
def canonical_digest(w: Workspace) -> None:
    """Let the workspace's digest be that of its new state, the same under every naming."""
    fingerprint(w.made, w.made[LENGTH], w.digest)
    if len(w.renamed) > 1:
        first, second = w.digest[0], w.digest[1]
        for way in range(1, len(w.renamed)):
            _rename_state(w, way, w.other)
            fingerprint(w.other, w.other[LENGTH], w.digest)
            if w.digest[0] < first or (w.digest[0] == first and w.digest[1] < second):
                first, second = w.digest[0], w.digest[1]
        w.digest[0], w.digest[1] = first, second
