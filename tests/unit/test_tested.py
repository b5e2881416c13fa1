"""docs/tested.md names tests that exist, by the command that runs them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import chain
from typing import Final

from support.checkout import ROOT

TESTS: Final = ROOT / "tests"
TEXT: Final = (ROOT / "docs" / "tested.md").read_text(encoding="utf-8")
ROWS: Final = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in TEXT.splitlines()
    if line.startswith("| ") and "`make test`" not in line
]
CLAIMS: Final = {"V": 10, "P": 9, "I": 6, "O": 7, "T": 7}
CAMPAIGN: Final = "pytest.mark.campaign"
# What gives a test larger cases in `make test-all`.
LARGER: Final = ("campaign", "few_or_many", "few_examples", "one_in(")


def named(text: str) -> Iterator[tuple[str, str]]:
    """File and function of each test that a text names; a file alone has no function."""
    file = ""
    for name in re.findall(r"`([\w/]*(?:\.py)?(?:::\w+)?)`", text):
        path, _, function = name.partition("::")
        if path.endswith(".py") or (function and file):
            file = path or file
            yield file, function


@cache
def campaigns(file: str) -> dict[str, bool]:
    """The tests of a file, each with whether it is a campaign as a whole."""
    body = ast.parse((TESTS / file).read_text(encoding="utf-8")).body
    marks = [ast.unparse(one.value) for one in body if isinstance(one, ast.Assign)]
    whole = any(CAMPAIGN in re.split(r"[^\w.]", mark) for mark in marks if "param" not in mark)
    functions = [one for one in body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {
        one.name: whole or CAMPAIGN in map(ast.unparse, one.decorator_list)
        for one in functions
        if one.name.startswith("test_")
    }


def test_every_test_that_is_named_exists() -> None:
    missing = [
        f"{file}::{function}"
        for file, function in named(TEXT)
        if not (TESTS / file).is_file() or (function and function not in campaigns(file))
    ]
    assert missing == []


def test_each_test_is_named_beside_the_command_that_runs_it() -> None:
    wrong = []
    for *_, plain, all_of_them in ROWS:
        for file, function in named(plain):
            if function and campaigns(file)[function]:
                wrong.append(f"make test does not run {file}::{function}")
        for file, function in named(all_of_them):
            folders = [TESTS / file, (TESTS / file).parent / "conftest.py"]
            texts = [one.read_text(encoding="utf-8") for one in folders if one.exists()]
            if not any(sign in text for text in texts for sign in LARGER):
                wrong.append(f"{file}::{function} is no campaign")
    assert wrong == []


def test_every_claim_has_a_test_that_judges_it() -> None:
    claims = [f"{letter}{n}" for letter, last in CLAIMS.items() for n in range(1, last + 1)]
    judged = {row[0]: row[-1] for row in ROWS if len(row) == 4}
    assert list(judged) == claims
    assert all(re.match(r"F\b", cell) for cell in judged.values())


def test_every_promise_has_a_test() -> None:
    assert all(any(chain(named(row[-2]), named(row[-1]))) for row in ROWS)
