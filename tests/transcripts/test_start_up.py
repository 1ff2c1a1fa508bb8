"""What a command loads: none of the large packages that it does not need."""

from __future__ import annotations

import subprocess
import sys

import pytest

from manual.tree import module_of
from nessie_cli import connect
from nessie_cli.cli.registry import COMMANDS, EXAMPLES
from tests.server.serving import serving

NEVER = {
    "rich",
    "pydantic",
    "requests",
    "httpx",
    "psycopg",
    "pyspark",
    "pyarrow",
    "pyiceberg",
    "uvicorn",
}
PROGRAM = """
import sys
from nessie_cli.cli.main import run
run(sys.argv[1:])
print(*sys.modules, file=sys.stderr)
"""


def modules_after(nessie, *args):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *args],
        cwd=nessie.folder,
        env=nessie.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        check=True,
    )
    return set(done.stderr.split())


@pytest.mark.parametrize(
    "args",
    [
        ("branch", "--json"),
        ("log", "-n", "20", "--json"),
        ("content", "list", "--json"),
        ("status", "--json"),
        ("log",),
        ("show", "--json"),
    ],
)
def test_reading_an_embedded_store_loads_nothing_heavy(catalog, args):
    loaded = modules_after(catalog, *args)

    assert "nessie_cli.store.sqlite" in loaded
    assert NEVER & loaded == set()


@pytest.mark.parametrize(
    "args", [("branch", "--json"), ("log",), ("content", "list"), ("status",), ("diff", "main~1")]
)
def test_reading_from_a_server_loads_neither_stores_nor_the_validation_of_requests(catalog, args):
    with (
        connect(f"sqlite:///{catalog.folder}/.nessie/store.sqlite") as repository,
        serving(repository) as url,
    ):
        loaded = modules_after(catalog, "--store", url, *args)

    assert "requests" in loaded
    assert {
        "pydantic",
        "apsw",
        "authlib",
        "nessie_cli.repository.local",
        "nessie_cli.kernel.committing",
    } & loaded == set()


def test_no_command_loads_another(catalog):
    modules = {f"nessie_cli.cli.{entry.module}" for entry in LEAVES.values()}
    loaded = modules_after(catalog, "content", "list")

    assert loaded & modules == {"nessie_cli.cli.content.list"}


def test_help_loads_no_command(nessie):
    loaded = modules_after(nessie, "--help")

    heavy = ("cli.log", "cli.merge", "repository", "render", "model")
    assert [
        name for name in loaded if name.startswith(tuple(f"nessie_cli.{one}" for one in heavy))
    ] == []
    assert NEVER & loaded == set()


def leaves(table=COMMANDS, path=()):
    """Every command that can be run: the words that call it, and its line of the registry."""
    for name, entry in table.items():
        if entry.children is None:
            yield " ".join((*path, name)), entry
        else:
            yield from leaves(entry.children, (*path, name))


LEAVES = dict(leaves())


@pytest.mark.parametrize("name", LEAVES)
def test_the_line_in_the_registry_is_the_first_of_the_docstring_and_there_are_examples(name):
    entry = LEAVES[name]
    module = module_of(entry)

    first = next(other for other, one in LEAVES.items() if one.module == entry.module)
    line = module.Options.__doc__.splitlines()[0]
    assert entry.help == (line if name == first or entry.hidden else f"Same as {first}.")
    assert module.EXAMPLES
    assert all(example.startswith("nessie ") for example in module.EXAMPLES)


GROUPS = {"": EXAMPLES} | {
    name: entry.examples for name, entry in COMMANDS.items() if entry.children is not None
}


@pytest.mark.parametrize("name", GROUPS)
def test_every_group_has_help_with_an_example(nessie, name):
    out = nessie.ok(*name.split(), "--help").out

    assert f"Usage: nessie {name}".rstrip() in out
    assert GROUPS[name]
    assert "Examples:\n" + "".join(f"  {example}\n" for example in GROUPS[name]) in out


@pytest.mark.parametrize("name", LEAVES)
def test_every_command_has_help_with_an_example_and_no_annotation_is_text(workspace, name):
    entry = LEAVES[name]
    out = workspace.ok(*name.split(), "--help").out

    assert f"Usage: nessie {name}" in out
    assert "{" not in out.partition("\n\n")[0], "as the manual writes it"
    assert "Examples:\n  nessie " in out
    declared = module_of(entry).Options
    assert [a for a in declared.__annotations__.values() if isinstance(a, str)] == []
