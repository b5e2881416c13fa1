"""Names are the field's words: the list of words that readers stumbled over, and who may keep one.

Documents have their say in CONTRIBUTING.md, "The words we use".
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.checkout import ROOT
from support.folder_graph import modules, parsed

# What parses all sources runs in one process, which parses them once.
pytestmark = pytest.mark.xdist_group("sources")

# What no name has in it, and what is said in its place.
NOWHERE = {
    "caretaker": "connection maintenance",
    "conductor": "controller",
    "crew": "processes",
    "custody": "in flight",
    "desk": "service, server",
    "judge": "check",
    "judged": "checked",
    "judging": "candidate filter",
    "letter": "queued delivery",
    "letters": "queued deliveries",
    "linger": "graceful close",
    "mail": "queued deliveries",
    "notebook": "recorder",
    "outlet": "sender",
    "owed": "unacknowledged",
    "plays": "dynamics",
    "prompt": "non-blocking",
    "scans": "row search, row compare",
    "staircase": "covering workload",
    "stead": "proxy",
    "storm": "unsubscription burst",
    "storms": "unsubscription bursts",
    "stranded": "parked",
    "vouching": "authentication",
}
# What is no class and no module, as it says too little: other names may be that short, where their
# class says what is meant (`words` of a record, `rounds` of a run).
TOO_SHORT = {
    "absence": "catch-up",
    "book": "address book",
    "budgets": "rate limits",
    "causes": "disconnect reasons",
    "charge": "maintained connection",
    "chart": "topology map",
    "contacts": "bootstrap",
    "found": "run result",
    "gone": "client left",
    "hands": "effect handler",
    "interfaces": "network interfaces",
    "keeping": "persistence",
    "machine": "broker state machine",
    "news": "link changes",
    "notes": "cluster info",
    "office": "coordinator state",
    "part": "experiment",
    "parts": "dependencies",
    "recovery": "replay",
    "retention": "event log",
    "rounds": "gossip timer",
    "seen": "scene result",
    "spreading": "box aggregation",
    "told": "authenticated descriptor",
    "took": "client acknowledgement",
    "twice": "replayable",
    "unwrap": "exception groups",
    "words": "float bits",
}
# Names that are right where they are.
EXCEPTIONS = {
    "Part": "of a pattern, of a composite filter, of a layout: what the whole is made of",
    "_Part": "the same, of a line of a batch file",
}


def words_of(name: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def names_in(path: Path) -> Iterator[tuple[str, bool]]:
    """Names of a module, its classes, functions and attributes; whether of a class or module."""
    yield path.stem, True
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ClassDef):
            yield node.name, True
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, False
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, False
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, False


def better(name: str, *, is_type: bool) -> str | None:
    """What a name should say; None where it is good."""
    words = words_of(name)
    for word in words:
        if word in NOWHERE:
            return NOWHERE[word]
    return TOO_SHORT.get(words[0]) if is_type and len(words) == 1 else None


@pytest.mark.parametrize(
    "name", ["JoinDesk", "_send_letter", "mail_until", "Parts", "_Seen", "judge_all"]
)
def test_a_word_of_the_list_is_found(name: str) -> None:
    assert better(name, is_type=True)


@pytest.mark.parametrize("name", ["remaining", "Partition", "JoinServer", "first_words"])
def test_other_words_are_left_alone(name: str) -> None:
    assert better(name, is_type=True) is None


def test_no_name_is_a_word_that_readers_stumble_over() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {name}, better about {wanted!r}"
        for path in modules().values()
        for name, is_type in names_in(path)
        if name not in EXCEPTIONS and (wanted := better(name, is_type=is_type)) is not None
    ]
    assert found == []
