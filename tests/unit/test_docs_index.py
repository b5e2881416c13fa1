"""Every page is in the index once, and every link leads somewhere."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final

from support.checkout import ROOT

DOCS: Final = ROOT / "docs"
INDEX: Final = DOCS / "README.md"
PAGES: Final = sorted(DOCS.rglob("*.md"))
LINKED: Final = [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
PARTS: Final = ["Tutorials", "How-to", "Reference", "Explanation"]


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def prose(page: Path) -> str:
    """A page without its fenced and indented code, comments, and spans of code."""
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"(?ms)^(```+).*?^\1\s*$", "", text)
    text = re.sub(r"(?s)<!--.*?-->", "", text)
    return re.sub(r"`[^`\n]*`", lambda found: "x" * len(found.group()), text)


def links(page: Path) -> list[str]:
    """The targets of all links and pictures of a page that lead to no other site."""
    found = re.findall(r"\]\(([^()\s]+)\)", prose(page))
    return [target for target in found if not re.match(r"[a-z]+:", target)]


@cache
def anchors(page: Path) -> set[str]:
    """What its headings are called in addresses."""
    text = re.sub(r"(?ms)^(```+).*?^\1\s*$", "", page.read_text(encoding="utf-8"))
    titles = re.findall(r"(?m)^#{1,6} +(.+?) *$", text)
    kept = (re.sub(r"[^\w\- ]", "", title.lower()) for title in titles)
    return {re.sub(r"[ ]", "-", title.strip()) for title in kept}


# Groups of entry points, which are dotted names as modules are.
GROUPS = frozenset({"gossamer.commands", "gossamer.runners", "gossamer.studies"})


@cache
def is_module(name: str) -> bool:
    """Whether a dotted name is a module or folder, or something that a module mentions."""
    if name in GROUPS:
        return True
    *package, last = name.split(".")
    for source in ("shared", "node", "sim", "spark"):
        folder = ROOT.joinpath(source, *package)
        if (folder / f"{last}.py").is_file() or (folder / last).is_dir():
            return True
        for module in (folder.with_suffix(".py"), folder / "__init__.py"):
            if module.is_file() and last in module.read_text(encoding="utf-8"):
                return True
    return False


def test_the_index_has_four_parts() -> None:
    assert re.findall(r"(?m)^## (.*)$", prose(INDEX)) == PARTS


def test_every_page_is_in_the_index_once() -> None:
    listed = [(DOCS / target.partition("#")[0]).resolve() for target in links(INDEX)]
    assert sorted(listed) == [page for page in PAGES if page != INDEX]


def test_the_site_shows_every_page_once() -> None:
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    assert sorted(DOCS / page for page in re.findall(r"[\w/.-]+\.md", nav)) == PAGES


def comparison() -> list[list[str]]:
    """The rows of all tables of the comparison, as cells, without their heads."""
    lines = (DOCS / "comparison.md").read_text(encoding="utf-8").splitlines()
    tables = [
        line
        for line, rule in pairwise([*lines, ""])
        if line.startswith("|") and not rule.startswith("|-") and not line.startswith("|-")
    ]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in tables]


def test_every_row_of_the_comparison_names_a_test_of_what_is_offered_here() -> None:
    rows = [row for row in comparison() if len(row) > 3]
    assert len(rows) >= 18
    for row in rows:
        assert len(row) == 6, f"{row[0]} has {len(row)} cells, expected 6"
        assert all(row), f"{row[0]} has an empty cell"
        tests = re.findall(r"`(tests/[\w/]+\.py)`", row[-1])
        assert tests, f"{row[0]} names no test"
        for test in tests:
            assert (ROOT / test).is_file(), f"{row[0]} names {test}"
            text = (ROOT / test).read_text(encoding="utf-8")
            assert re.search(r"(?m)^(async )?def (test_|main\()", text), f"{test} tests nothing"


def test_the_comparison_names_version_date_and_source_of_each_other_product() -> None:
    products = {row[0]: row[1:] for row in comparison() if len(row) == 3}
    assert list(products) == ["NATS", "Zenoh", "Serf", "Mosquitto"]
    for product, (version, source) in products.items():
        assert re.search(r"\d+\.\d+", version), f"{product} has no version"
        assert re.search(r"https://\S+", source), f"{product} has no source"
        assert re.search(r"\b20\d\d\b|\d+\.\d+\.\d+", source), f"{product} is of no date"


def test_every_module_and_path_that_a_page_names_exists() -> None:
    missing = []
    for page in LINKED:
        text = page.read_text(encoding="utf-8")
        modules = re.findall(r"\bgossamer(?:\.[a-z_0-9]+)+\b(?!\.)", text)
        paths = re.findall(r"`((?:tests|shared|node|sim|spark|examples|traces)/[\w/.]*)`", text)
        unknown = [name for name in modules if not is_module(name)]
        unknown += [path for path in paths if not (ROOT / path).exists()]
        missing += [f"{named(page)} names {name}" for name in unknown]
    assert missing == []


def test_every_link_leads_to_a_file_and_a_heading() -> None:
    broken = []
    for page in LINKED:
        for target in links(page):
            path, _, heading = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            if not file.exists() or (heading and heading not in anchors(file)):
                broken.append(f"{named(page)} links to {target}")
    assert broken == []
