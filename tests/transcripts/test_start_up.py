"""What a command loads: the list of modules, never milliseconds."""

from __future__ import annotations

import subprocess
import sys

import pytest

from nessie_cli.cli.registry import COMMANDS, EXAMPLES

NEVER = {
    "rich", "pydantic", "requests", "urllib3", "httpx", "psycopg", "pyspark", "pyarrow", "pyiceberg", "starlette", "uvicorn", "asyncio",
    "platformdirs", "tomllib", "tempfile", "logging", "importlib.metadata", "typer.main", "typer.params",
}  # fmt: skip
PROGRAM = """
import sys
from nessie_cli.cli.main import run
run(sys.argv[1:])
print(*(name for name, module in sys.modules.items() if type(module).__name__ != "Postponed"), file=sys.stderr)
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
    "args", [("branch", "--json"), ("log", "-n", "20", "--json"), ("content", "list", "--json"), ("status", "--json"), ("log",), ("show", "--json")]
)
def test_reading_an_embedded_store_loads_nothing_heavy(catalog, args):
    loaded = modules_after(catalog, *args)

    assert "nessie_cli.store.sqlite" in loaded
    assert NEVER & loaded == set()


COSTLY = NEVER | {
    "bz2", "cryptography", "dataclasses", "difflib", "email", "gettext", "hashlib", "http", "ipaddress", "json", "jsonschema", "jwt",
    "keyring", "linecache", "lzma", "platform", "random", "shlex", "socket", "ssl", "subprocess", "textwrap", "tokenize", "tomlkit",
    "typing_extensions", "zstandard",
}  # fmt: skip
"""What costs as much as a command's own modules together, or more."""
PACKED, MARKS, TEXT, AUTHOR = {"zstandard", "platform"}, {"hashlib"}, {"json"}, {"platformdirs", "random", "tempfile"}
"""To unpack an object; to find a commit by key, or to give an id; to read or write a batch, or show a field; to look for the user's settings."""
NEARBY, CHOICE = {"difflib"}, {"typer.main", "typer.params"}
"""To look for a word that may have been meant, as the parser does at once for a short option, too; to take one of some words as an option."""
RUN = CHOICE | AUTHOR | {"hashlib", "json", "logging", "shlex", "socket"}
"""To find the runs of `gc`, and to begin one."""
PYICEBERG = {"dataclasses", "email", "importlib.metadata", "ipaddress", "pydantic", "textwrap", "typing_extensions"}
COMMITTING = PACKED | MARKS | TEXT | AUTHOR | {"shlex"}
BUDGET = {
    "init": ("init again", MARKS | {"tempfile"}),
    "status": ("status", PACKED | MARKS | TEXT | {"shlex"}),
    "switch": ("switch main", TEXT),
    "login": ("login https://catalog.example.org", AUTHOR | MARKS),
    "config list": ("config list", AUTHOR),
    "config get": ("config get author", AUTHOR | {"shlex"}),
    "config set": ("config set author Ada", {"dataclasses", "tomlkit", "json"}),
    "config unset": ("config unset no-such", AUTHOR | NEARBY | {"dataclasses", "tomlkit", "json", "shlex"}),
    "content put": ("content put db.orders --metadata-location s3://x", PACKED | TEXT | {"shlex"}),
    "content delete": ("content delete db.orders", PACKED | TEXT | {"shlex"}),
    "content rename": ("content rename db.orders db.other", PACKED | TEXT | {"shlex"}),
    "content replace": ("content replace db.orders --metadata-location s3://x", PACKED | TEXT | {"shlex"}),
    "content unmodified": ("content unmodified db.orders", PACKED | TEXT | {"shlex"}),
    "content show": ("content show db.orders", PACKED | MARKS | TEXT),
    "content view": ("content view db.orders", PACKED | MARKS | TEXT),
    "content history": ("content history db.orders", PACKED | MARKS | TEXT),
    "content list": ("content list", PACKED | TEXT | {"shlex"}),
    "reset": ("reset", PACKED | TEXT | {"shlex"}),
    "commit": ("commit -m x --dry-run", COMMITTING | NEARBY),
    "restore": ("restore db.orders --source main", PACKED | TEXT | {"shlex"}),
    "revert": ("revert main --dry-run", COMMITTING),
    "stash push": ("stash push", TEXT | {"shlex"}),
    "stash list": ("stash list", TEXT | {"shlex"}),
    "stash show": ("stash show", TEXT | {"shlex"}),
    "stash pop": ("stash pop", TEXT | {"shlex"}),
    "stash apply": ("stash apply", TEXT | {"shlex"}),
    "stash drop": ("stash drop", TEXT | {"shlex"}),
    "log": ("log", PACKED | TEXT),
    "show": ("show", PACKED | TEXT),
    "diff": ("diff main", PACKED | TEXT),
    "branch": ("branch", PACKED),
    "tag": ("tag", PACKED),
    "merge": ("merge main --dry-run", COMMITTING | CHOICE),
    "resolve": ("resolve --ours db.orders", PACKED | MARKS | TEXT | {"shlex"}),
    "transplant": ("transplant main --dry-run", COMMITTING | CHOICE),
    "cherry-pick": ("cherry-pick main --dry-run", COMMITTING | CHOICE),
    "blame": ("blame", PACKED | MARKS),
    "reflog": ("reflog", PACKED),
    "undo": ("undo --dry-run", PACKED),
    "gc list": ("gc list", MARKS),
    "gc show": ("gc show", MARKS | {"shlex"}),
    "gc mark": (
        "gc mark --cutoff none",
        RUN | PYICEBERG,
    ),
    "gc plan": ("gc plan", RUN),
    "gc approve": ("gc approve", RUN),
    "gc apply": ("gc apply", RUN),
    "token new": ("token new ci", CHOICE | {"shlex"}),
    "token list": ("token list", CHOICE | {"shlex"}),
    "token revoke": ("token revoke ci", CHOICE | {"shlex"}),
    "serve": ("serve --port none", CHOICE | {"shlex"}),
    "store backup": ("store backup lake.backup", set()),
    "store load": ("store load no-such-file", {"shlex"}),
    "fsck": ("fsck", PACKED | MARKS | TEXT),
    "audit": ("audit --prefix none", CHOICE | PACKED | MARKS | TEXT | {"shlex", "logging", "random"}),
    "stats": ("stats", CHOICE | PACKED | TEXT),
    "help": ("help log", set()),
    "completion": ("completion bash", CHOICE),
    "version": ("version", set()),
}
"""For each command a line, and what of `COSTLY` it may load. A command that would wait for requests, make keys or read table files is held to
what it loads before that: its line lacks something."""
SHARE_OPTIONS = {"tag": {"branch"}, "revert": {"merge"}, "resolve": {"merge"}, "transplant": {"merge"}, "cherry-pick": {"merge"}}
"""Commands with options of another one."""
COMMAND_MODULES = "nessie_cli.cli.commands."


def test_every_command_has_a_budget(workspace):
    assert BUDGET.keys() == LEAVES.keys()


@pytest.mark.parametrize("name", BUDGET)
def test_a_command_loads_only_what_it_uses(catalog, name):
    line, allowed = BUDGET[name]
    loaded = modules_after(catalog, *line.split())

    assert (loaded & COSTLY) - allowed == set()
    commands = {module.removeprefix(COMMAND_MODULES) for module in loaded if module.startswith(COMMAND_MODULES)}
    assert commands == {LEAVES[name].module} | SHARE_OPTIONS.get(name, set())


def test_no_command_loads_another_one(catalog):
    loaded = {name for name in modules_after(catalog, "content", "list") if name.startswith("nessie_cli.cli.commands.")}

    assert loaded == {"nessie_cli.cli.commands.content_list"}


def test_help_loads_no_command(nessie):
    loaded = modules_after(nessie, "--help")

    assert [
        name for name in loaded if name.startswith(("nessie_cli.cli.commands", "nessie_cli.repository", "nessie_cli.render", "nessie_cli.model"))
    ] == []
    assert NEVER & loaded == set()


def test_version_does_not_even_load_the_parser(nessie):
    loaded = modules_after(nessie, "--version")

    assert {"typer", "typing", "re", "enum", "json"} & loaded == set()


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
    from importlib import import_module

    entry = LEAVES[name]
    module = import_module(f"nessie_cli.cli.commands.{entry.module}")

    assert getattr(module, entry.function).__doc__.splitlines()[0] == entry.help
    assert module.EXAMPLES
    assert all(example.startswith("nessie ") for example in module.EXAMPLES)


GROUPS = {"": EXAMPLES} | {name: entry.examples for name, entry in COMMANDS.items() if entry.children is not None}


@pytest.mark.parametrize("name", GROUPS)
def test_every_group_has_help_with_an_example(nessie, name):
    out = nessie.ok(*name.split(), "--help").out

    assert f"Usage: nessie {name}".rstrip() in out
    assert GROUPS[name]
    assert "Examples:\n" + "".join(f"  {example}\n" for example in GROUPS[name]) in out


@pytest.mark.parametrize("name", LEAVES)
def test_every_command_has_help_with_an_example_and_no_annotation_is_text(workspace, name):
    from importlib import import_module

    entry = LEAVES[name]
    out = workspace.ok(*name.split(), "--help").out

    assert f"Usage: nessie {name}" in out
    assert "{" not in out.partition("\n\n")[0], "as the manual writes it"
    assert "Examples:\n  nessie " in out
    function = getattr(import_module(f"nessie_cli.cli.commands.{entry.module}"), entry.function)
    assert [a for a in function.__annotations__.values() if isinstance(a, str)] == []
