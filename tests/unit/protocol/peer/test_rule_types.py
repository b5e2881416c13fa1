"""Rules name the type of the state that they take, so that a misspelt field is a type error."""

from __future__ import annotations

import ast

from support.checkout import ROOT

PEER = ROOT / "shared/gossamer/protocol/peer"
DECORATORS = {"rule", "inline_rule"}


def test_every_rule_says_what_state_it_takes() -> None:
    rules = [
        (path.stem, node)
        for path in sorted(PEER.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
        and any(isinstance(one, ast.Name) and one.id in DECORATORS for one in node.decorator_list)
    ]
    assert len(rules) > 200
    untyped = [
        f"{module}.{function.name}"
        for module, function in rules
        for argument in function.args.args
        if argument.arg == "s" and ast.unparse(argument.annotation or ast.Name("Any")) == "Any"
    ]
    assert untyped == []
