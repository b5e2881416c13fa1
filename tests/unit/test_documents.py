"""Documents: pages are in the index once, what they name is there, clusters in them run."""

from __future__ import annotations

import ast
import csv
import re
from collections.abc import Iterator
from functools import cache
from itertools import chain, pairwise
from pathlib import Path
from typing import Final

from attrs import frozen

from support.checkout import ROOT

DOCS: Final = ROOT / "docs"
INDEX: Final = DOCS / "README.md"
PAGES: Final = sorted(DOCS.rglob("*.md"))
LINKED: Final = [
    *PAGES,
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "tests/README.md")),
]


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def prose(page: Path) -> str:
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"(?ms)^(```+).*?^\1\s*$", "", text)
    text = re.sub(r"(?s)<!--.*?-->", "", text)
    return re.sub(r"`[^`\n]*`", lambda found: "x" * len(found.group()), text)


def links(page: Path) -> list[str]:
    found = re.findall(r"\]\(([^()\s]+)\)", prose(page))
    return [target for target in found if not re.match(r"[a-z]+:", target)]


@cache
def anchors(page: Path) -> set[str]:
    text = re.sub(r"(?ms)^(```+).*?^\1\s*$", "", page.read_text(encoding="utf-8"))
    titles = re.findall(r"(?m)^#{1,6} +(.+?) *$", text)
    kept = (re.sub(r"[^\w\- ]", "", title.lower()) for title in titles)
    return {re.sub(r"[ ]", "-", title.strip()) for title in kept}


@cache
def is_module(name: str) -> bool:
    if name in ("gossamer.commands", "gossamer.runners", "gossamer.studies"):
        return True  # groups of entry points, which are dotted names as modules are
    *package, last = name.split(".")
    for source in ("shared", "node", "sim", "spark"):
        folder = ROOT.joinpath(source, *package)
        if (folder / f"{last}.py").is_file() or (folder / last).is_dir():
            return True
        for module in (folder.with_suffix(".py"), folder / "__init__.py"):
            if module.is_file() and last in module.read_text(encoding="utf-8"):
                return True
    return False


def test_the_index_and_the_site_have_every_page_once() -> None:
    parts = ["Tutorials", "How-to", "Reference", "Explanation"]
    assert re.findall(r"(?m)^## (.*)$", prose(INDEX)) == parts
    listed = [(DOCS / target.partition("#")[0]).resolve() for target in links(INDEX)]
    assert sorted(listed) == [page for page in PAGES if page != INDEX]
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    assert sorted(DOCS / page for page in re.findall(r"[\w/.-]+\.md", nav)) == PAGES


def comparison() -> list[list[str]]:
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


WITH_CLUSTERS: Final = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]
PROGRAMS: Final = [
    *sorted(ROOT.glob("examples/*/node/*.py")),
    *sorted(ROOT.glob("examples/node/*.py")),
]
COMPOSE: Final = ROOT / "deploy/compose.yaml"
# Of `init --peers` where no port is named.
DEFAULT_PORT: Final = 7720
# A tutorial repeats the readme's first cluster; both say so.
SHARED: Final = {"README.md", "docs/first-cluster.md"}
MOST_PEERS: Final = 5


@frozen
class Cluster:
    """One that a text has its reader make: where, of how many, from which port on."""

    place: str
    folder: str
    peers: int
    port: int

    @property
    def ports(self) -> set[int]:
        return set(range(self.port, self.port + self.peers))


def clusters_of(path: Path) -> list[Cluster]:
    made = []
    for line in re.findall(r"(?m)^ {4}gossamer node init (.+)$", path.read_text(encoding="utf-8")):
        peers, port = (re.search(rf"--{name} (\d+)", line) for name in ("peers", "port"))
        if peers is not None:
            first = DEFAULT_PORT if port is None else int(port[1])
            made.append(Cluster(named(path), line.split()[0], int(peers[1]), first))
    return made


SHOWN: Final = [*chain.from_iterable(map(clusters_of, [*WITH_CLUSTERS, *PROGRAMS]))]


def ports_of_programs() -> dict[str, set[int]]:
    """Of the programs that make a cluster by themselves, and of the pages of the containers."""
    taken = {}
    for path in PROGRAMS:
        found = re.search(r'"FIRST_PORT", "(\d+)"', path.read_text(encoding="utf-8"))
        if found is not None:
            taken[named(path)] = set(range(int(found[1]), int(found[1]) + MOST_PEERS))
    pages = re.findall(r"127\.0\.0\.1:(\d+):", COMPOSE.read_text(encoding="utf-8"))
    return taken | {"deploy/compose.yaml": set(map(int, pages))}


def test_clusters_have_folders_and_ports_of_their_own() -> None:
    kept = [one for one in SHOWN if one.place != "docs/first-cluster.md"]
    assert len(kept) >= 9
    folders = [one.folder for one in kept]
    assert len(set(folders)) == len(folders)
    ports = {one.place: one.ports for one in kept} | ports_of_programs()
    assert len(ports) >= 13
    owners: dict[int, str] = {}
    for place, numbers in ports.items():
        for number in numbers:
            assert number not in owners, f"{place} and {owners[number]} use port {number}"
            owners[number] = place


def test_the_tutorial_makes_the_cluster_of_the_readme() -> None:
    shared = {(one.folder, one.peers, one.port) for one in SHOWN if one.place in SHARED}
    assert len(shared) == 1


def test_who_makes_a_cluster_is_told_how_to_run_all_of_it() -> None:
    for cluster in SHOWN:
        text = (ROOT / cluster.place).read_text(encoding="utf-8")
        commands = re.findall(r"(?m)^ {4}gossamer node run (.+)$", text)
        run = {word for command in commands for word in command.split()}
        folders = {f"{cluster.folder}/peer{number + 1}" for number in range(cluster.peers)}
        assert folders <= run, f"{cluster.place}: {cluster.folder}"


RULES: Final = r"(?m)^\| .* \| `([\w/]+\.py)` \| `(\w+)` \|$"
ROWS: Final = re.findall(RULES, (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))


def test_every_rule_of_the_table_of_the_papers_is_where_it_says() -> None:
    assert len(ROWS) >= 30
    texts = {file: (ROOT / file).read_text(encoding="utf-8") for file, _ in ROWS}
    lost = [row for row in ROWS if not re.search(rf"(?m)^(def|class) {row[1]}\b", texts[row[0]])]
    assert lost == []


TESTS: Final = ROOT / "tests"
TEXT: Final = (TESTS / "README.md").read_text(encoding="utf-8")
PROMISES: Final = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in TEXT.splitlines()
    if line.startswith("| ") and "`make test`" not in line
]
CLAIMS: Final = {"V": 10, "P": 9, "I": 6, "O": 7, "T": 7}
CAMPAIGN: Final = "pytest.mark.campaign"
# What gives a test larger cases in `make test-all`.
LARGER: Final = ("campaign", "few_or_many", "few_examples", "one_in(")


def named_tests(text: str) -> Iterator[tuple[str, str]]:
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
        for file, function in named_tests(TEXT)
        if not (TESTS / file).is_file() or (function and function not in campaigns(file))
    ]
    assert missing == []


def test_each_test_is_named_beside_the_command_that_runs_it() -> None:
    wrong = []
    for *_, plain, all_of_them in PROMISES:
        for file, function in named_tests(plain):
            if function and campaigns(file)[function]:
                wrong.append(f"make test does not run {file}::{function}")
        for file, function in named_tests(all_of_them):
            folders = [TESTS / file, (TESTS / file).parent / "conftest.py"]
            texts = [one.read_text(encoding="utf-8") for one in folders if one.exists()]
            if not any(sign in text for text in texts for sign in LARGER):
                wrong.append(f"{file}::{function} is no campaign")
    assert wrong == []


def test_every_check_of_the_broker_papers_is_in_the_table_of_both_readings() -> None:
    """A claim holds under a reading where all of its checks are within their bounds."""
    with (DOCS / "measured" / "readings.csv").open(encoding="utf-8", newline="") as file:
        rows = [*csv.DictReader(file)]
    claims = {row["claim"] for row in rows}
    assert claims == {f"{one}{n}" for one in "PIOT" for n in range(1, CLAIMS[one] + 1)}
    for reading in ("literal", "alternative"):
        for claim in sorted(claims):
            of_it = [row for row in rows if row["claim"] == claim]
            verdicts = {row[f"verdict_{reading}"] for row in of_it}
            missed = any("✓" not in value for row in of_it for value in row[reading].split(", "))
            assert verdicts <= {"differs" if missed else "holds", ""}, claim


def test_every_claim_and_promise_has_a_test() -> None:
    claims = [f"{letter}{n}" for letter, last in CLAIMS.items() for n in range(1, last + 1)]
    judged = {row[0]: row[-1] for row in PROMISES if len(row) == 4}
    assert list(judged) == claims
    assert all(re.match(r"F\b", cell) for cell in judged.values())
    assert all(any(chain(named_tests(row[-2]), named_tests(row[-1]))) for row in PROMISES)


def test_the_way_of_an_event_is_drawn_by_at_most_ten_files_that_are_there() -> None:
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    drawing = text.split("<!-- way of an event -->")[1].split("<!-- end -->")[0]
    files = re.findall(r"[\w/]+\.py", drawing)
    assert 0 < len(files) == len(set(files)) <= 10
    missing = [one for one in files if not (ROOT / "node" / "gossamer" / "node" / one).is_file()]
    assert not missing
