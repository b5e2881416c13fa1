"""Rules name the type of the state that they take, so that a misspelt field is a type error."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from support.checkout import ROOT

PEER = ROOT / "shared/gossamer/protocol/peer"
DECORATORS = {"rule", "inline_rule"}


def rules_of(path: Path) -> list[ast.FunctionDef]:
    return [
        node
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
        and any(isinstance(one, ast.Name) and one.id in DECORATORS for one in node.decorator_list)
    ]


@pytest.mark.parametrize("path", sorted(PEER.rglob("*.py")), ids=lambda path: path.stem)
def test_a_rule_says_what_state_it_takes(path: Path) -> None:
    untyped = [
        function.name
        for function in rules_of(path)
        for argument in function.args.args
        if argument.arg == "s" and ast.unparse(argument.annotation or ast.Name("Any")) == "Any"
    ]
    assert untyped == []


def test_there_are_rules() -> None:
    assert sum(len(rules_of(path)) for path in PEER.rglob("*.py")) > 200
