"""Every example of every `--help` and of every page is run here.

Examples of a command are independent: each runs in a copy of one world. Those of one block of a
page run one after another. A hash in an example is replaced by one of the world's commits, and
paths of servers and buckets by files of the test.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from manual.tree import module_of
from nessie_cli.cli import registry
from nessie_cli.cli.registry import COMMANDS

HASH = "8f31c0de"
RUN = "20260131T120000Z"
DIGEST = "5f1c09ab"
PIPELINE_RUN = "20261130-021500-1f2e3d"


class Needs(NamedTuple):
    """Requirements and outcome of an example, if they are not the usual ones."""

    before: tuple[str, ...] = ()
    code: int = 0
    hash: str = "main"


# The only table whose file is in a bucket.
NO_NETWORK = ("nessie content delete db.rates -m 'no bucket is asked'",)
NEEDS = {
    "nessie audit --prefix db.orders --json": Needs(code=1),
    "nessie audit v1 --prefix db.sales": Needs(code=1),
    "nessie audit": Needs(NO_NETWORK, code=1),
    "nessie branch -f feature main~2 --expected-hash 8f31c0de": Needs(hash="feature"),
    "nessie branch feature": Needs(("nessie branch -d feature",)),
    "nessie cherry-pick feature~4 feature~2..feature --theirs db.sales.orders": Needs(
        ("nessie content put db.sales.orders --snapshot-id 99 -m theirs",)
    ),
    "nessie commit -F message.txt --author 'Ada <ada@example.org>' --property run=42 --dry-run": Needs(
        ("nessie content delete db.rates",)
    ),
    "nessie commit -m 'nightly load'": Needs(("nessie content delete db.rates",)),
    "nessie commit -m 'orders in euros'": Needs(
        (
            "nessie content unmodified db.rates",
            "nessie content put db.orders --snapshot-id 43",
        )
    ),
    "nessie config get author": Needs(("nessie config set author Ada",)),
    "nessie config get profile.work.store --user": Needs(
        ("nessie config set profile.work.store sqlite:////srv/catalog.sqlite --user",)
    ),
    "nessie config get protect.main --repository": Needs(
        ("nessie config set protect.main no-delete --repository",)
    ),
    "nessie config unset alias.lg": Needs(("nessie config set alias.lg 'log --oneline'",)),
    "nessie config unset default-profile --user": Needs(
        ("nessie config set default-profile work --user",)
    ),
    "nessie config unset protect.main --repository": Needs(
        ("nessie config set protect.main no-delete --repository",)
    ),
    "nessie content delete db.orders db.items db": Needs(
        (
            (
                "nessie content delete db.customers db.rates db.sales.orders db.sales.items"
                " db.sales.units db.sales"
            ),
        )
    ),
    "nessie content rename db.orders db.sales.orders -m 'orders belong to sales'": Needs(
        ("nessie content delete db.sales.orders -m 'free some space'",)
    ),
    "nessie diff main feature --exit-code --json": Needs(code=1),
    # There are no such catalogs.
    "nessie export --to backup main --prefix lake --prune": Needs(code=4),
    "nessie export --to glue --dry-run": Needs(code=4),
    "nessie export --to hive v1 'sales.*' --allow-gap": Needs(code=4),
    "nessie import --adopt 'sales.*'": Needs(("nessie import prod",)),
    "nessie import prod sales --into staging --prefix hive": Needs(("nessie branch staging",)),
    "nessie login https://catalog.example.org --forget": Needs(
        ("nessie login https://catalog.example.org",)
    ),
    # Stdin is empty.
    "nessie login https://catalog.example.org --token-stdin": Needs(code=2),
    "nessie gc apply 20260131T120000Z --dry-run --json": Needs(("nessie gc approve",)),
    "nessie gc apply": Needs(("nessie gc approve",)),
    "nessie gc show --kept --jsonl": Needs(("nessie gc approve", "nessie gc apply")),
    "nessie reset 'db.*'": Needs(("nessie content delete db.orders",)),
    "nessie reset db.orders": Needs(("nessie content delete db.orders",)),
    "nessie resolve --proposed db.orders --current db.items -m 'nightly load'": Needs(
        (
            "nessie content put db.orders --snapshot-id 50",
            "nessie content put db.items --snapshot-id 51",
            "nessie content put db.orders --snapshot-id 60 -m theirs -C other",
            "nessie content put db.items --snapshot-id 61 -m theirs -C other",
        )
    ),
    "nessie resolve": Needs(("nessie content delete db.rates",)),
    "nessie revert 8f31c0de --ours db.sales.orders --dry-run": Needs(hash="main~2"),
    f"nessie run --resume {PIPELINE_RUN}": Needs(("nessie run --no-merge -- true",)),
    "nessie show 8f31c0de -- db.sales.orders": Needs(hash="feature~1"),
    "nessie stats --sizes --json": Needs(NO_NETWORK),
    "nessie stash apply 1": Needs(
        (
            "nessie content delete db.rates",
            "nessie stash",
            "nessie content delete db.orders",
            "nessie stash",
        )
    ),
    "nessie stash drop 2": Needs(("nessie content delete db.rates", "nessie stash") * 3),
    "nessie stash drop": Needs(("nessie content delete db.rates", "nessie stash")),
    "nessie stash pop": Needs(("nessie content delete db.rates", "nessie stash")),
    "nessie stash push 'db.sales.*'": Needs(("nessie content delete db.sales.orders",)),
    "nessie stash push -m 'half of the rename'": Needs(("nessie content delete db.rates",)),
    "nessie stash show 1 --json": Needs(("nessie content delete db.rates", "nessie stash") * 2),
    "nessie stash show": Needs(("nessie content delete db.rates", "nessie stash")),
    "nessie stash": Needs(("nessie content delete db.rates",)),
    "nessie store load lake.backup --store catalog.sqlite --json": Needs(
        ("nessie store backup lake.backup",)
    ),
    "nessie store load lake.backup --store sqlite:////srv/catalog.sqlite": Needs(
        ("nessie store backup lake.backup",)
    ),
    "nessie switch -": Needs(("nessie switch feature",)),
    "nessie tag -d release-1": Needs(("nessie tag release-1",)),
    "nessie tag -m 'Figures of March' v1 main~1": Needs(("nessie tag -d v1",)),
    "nessie token list --file tokens --json": Needs(("nessie token new ada --file tokens",)),
    "nessie token list --file tokens": Needs(("nessie token new ada --file tokens",)),
    "nessie token revoke nightly --file tokens --json": Needs(
        ("nessie token new nightly --file tokens",)
    ),
    "nessie token revoke nightly --file tokens": Needs(("nessie token new nightly --file tokens",)),
    "nessie transplant 8f31c0de": Needs(hash="feature~2"),
}
"""By example; others have no requirements.

An entry without an example is an error.
"""


def examples() -> list[str]:
    """Returns the examples of `nessie`, of its groups and of all commands, each once."""
    entries = [entry for top in COMMANDS.values() for entry in (top.children or {"": top}).values()]
    modules = dict.fromkeys(module_of(entry) for entry in entries)
    of_groups = [
        *registry.EXAMPLES,
        *(example for top in COMMANDS.values() for example in top.examples),
    ]
    return list(
        dict.fromkeys(of_groups + [example for module in modules for example in module.EXAMPLES])
    )


def run(nessie, line: str, code: int = 0, hash_: str = ""):
    """Runs one line as a shell would; no shell is needed, and none is used."""
    if hash_ and HASH in line:
        found = nessie.ok("log", "-n", "1", "--json", hash_).json["logEntries"][0]["commitMeta"][
            "hash"
        ]
        line = line.replace(HASH, found[:8])
    words = [on_this_machine(nessie, word) for word in shlex.split(line, comments=True)]
    words = [of_newest_run(nessie, word) for word in words]
    assert words[0] == "nessie", line
    assert not {"|", ">", "<", "&&", ";"} & set(words), f"{line}: needs a shell"
    outcome = nessie(*words[1:])
    assert outcome.code == code, (line, outcome)
    return outcome


def place_of(example: str) -> str:
    """Returns the fixture that an example runs in."""
    if example.startswith("nessie gc"):
        return "begun" if "--resume" in example else "warehouse"
    if example.startswith("nessie import"):
        return "sources"
    return "nothing" if example.startswith("nessie init") else "place"


def of_newest_run(nessie, word: str) -> str:
    """Replaces random words of an example: the name of a garbage collection run, and the digest
    of its candidates; the id of a pipeline's run."""
    if word == PIPELINE_RUN:
        return nessie.ok("run", "--list", "--json").json["runs"][-1]["id"]
    if word not in (RUN, DIGEST):
        return word
    newest = nessie.ok("gc", "list", "--json").json["runs"][0]
    return newest["run" if word == RUN else "digest"]


def on_this_machine(nessie, word: str) -> str:
    for folder in ("/srv/", "/var/lib/"):
        if folder in word:
            elsewhere = nessie.folder / "elsewhere on this machine"
            elsewhere.mkdir(exist_ok=True)
            word = word.replace(folder, f"{elsewhere}/")
    return str(nessie.folder / "00002.json") if word == "s3://lake/db/orders/00002.json" else word


SERVERS = ("nessie serve", "nessie ui")
"""The commands that run until they are stopped."""
EXAMPLES = [example for example in examples() if not example.startswith(SERVERS)]


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_of_a_command_works(example, request):
    nessie = request.getfixturevalue(place_of(example))
    needs = NEEDS.get(example, Needs())
    for line in needs.before:
        run(nessie, line)

    run(nessie, example, needs.code, needs.hash)


def test_requirements_belong_to_existing_examples():
    assert NEEDS.keys() - set(EXAMPLES) == set()


@pytest.mark.parametrize(
    "example", [example for example in examples() if example.startswith(SERVERS)]
)
def test_a_server_of_an_example_starts_and_ends(example, place):
    run(place, "nessie init --store sqlite:////srv/catalog.sqlite made-for-the-server")
    run(place, "nessie token new ada --roles reader --file tokens")
    (place.folder / "rules.toml").write_text(
        "reading = \"op in ['VIEW_REFERENCE', 'READ_ENTRIES'] && role == 'reader'\"\n"
    )
    words = [on_this_machine(place, word) for word in shlex.split(example)[1:]]
    # Port 0 is any free one; the last occurrence of an option counts.
    quiet = ["--no-browser"] if words[0] == "ui" else []
    command = [sys.executable, "-m", "nessie_cli", *words, *quiet, "--port", "0"]
    with subprocess.Popen(
        command,
        cwd=place.folder,
        env=place.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.terminate()
        rest = process.stdout.read()
    end = "; Ctrl-C" if words[0] == "ui" else "/api/v2"
    assert re.search(rf"http://(127\.0\.0\.1|0\.0\.0\.0):\d+{end}", first), (first, rest)
    assert process.returncode == 0, (first, rest)


class Block(NamedTuple):
    """A block of command lines on a page, each with its shown output."""

    page: str
    lines: tuple[str, ...]

    def steps(self) -> Iterator[tuple[str, str]]:
        shown: list[str] = []
        command = ""
        for line in (*self.lines, "$ "):
            if not line.startswith("$ "):
                shown.append(line)
                continue
            if command:
                yield command, "\n".join(shown)
            command, shown = line[2:], []


def blocks() -> list[Block]:
    """Returns the console blocks of the hand-written texts."""
    files = sorted((Path(__file__).parents[2] / "manual/texts").glob("*.md"))
    texts = {file.stem: file.read_text(encoding="utf-8") for file in files}
    fences = re.compile(r"^ *```console\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
    return [
        Block(name, tuple(match[1].splitlines()))
        for name, text in texts.items()
        for match in fences.finditer(text)
    ]


@pytest.mark.parametrize(
    "block", blocks(), ids=lambda block: f"{block.page}: {block.lines[0][2:60]}"
)
def test_examples_of_a_page_work(block, place):
    assert block.lines[0].startswith("$ ")
    for command, shown in block.steps():
        code = re.search(r" # exit (\d+)$", command)
        outcome = run(place, command, int(code[1]) if code else 0)
        if shown:
            assert without_what_changes(outcome.json, json.loads(shown)) == json.loads(shown), (
                command
            )


def batches() -> list[str]:
    """Returns the samples of batch files."""
    text = (Path(__file__).parents[2] / "manual/texts/nessie-commit.md").read_text(encoding="utf-8")
    return re.findall(r"^ *```json\n(.*?)^ *```$", text, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("batch", batches())
def test_every_form_of_a_batch_file_can_be_committed(batch, place):
    before = place.ok("content", "list").out
    place.ok("commit", "--batch", "-", "-m", "from a file", stdin=batch)

    assert place.ok("content", "list").out != before


def without_what_changes(found, shown):
    """Returns the document, with `...` where the page allows any text."""
    if shown == "...":
        return shown
    if isinstance(found, dict) and isinstance(shown, dict):
        return {name: without_what_changes(value, shown.get(name)) for name, value in found.items()}
    if isinstance(found, list) and isinstance(shown, list) and len(found) == len(shown):
        return [without_what_changes(a, b) for a, b in zip(found, shown, strict=True)]
    return found


def test_a_wrong_output_is_detected():
    shown = {"a": "...", "b": [{"c": 1}]}

    assert without_what_changes({"a": 7, "b": [{"c": 1}]}, shown) == shown
    assert without_what_changes({"a": 7, "b": [{"c": 2}]}, shown) != shown
    assert without_what_changes({"a": 7, "b": [{"c": 1}], "new": 1}, shown) != shown


def test_every_page_with_commands_is_run(pages):
    shown = {
        page.name
        for page in pages.values()
        for section in page.sections
        for block in section.blocks
        if getattr(block, "language", "") == "console"
    }
    by_hand = {block.page for block in blocks()}
    with_examples = {name for name in shown - by_hand if pages[name].number == 1}

    assert shown == by_hand | with_examples
    for name in with_examples:
        lines = (
            next(section for section in pages[name].sections if section.title == "EXAMPLES")
            .blocks[0]
            .lines
        )
        assert {line.removeprefix("$ ") for line in lines} <= set(examples())
