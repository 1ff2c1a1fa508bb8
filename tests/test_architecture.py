"""The packages and their imports: checks every import, at module level and inside functions.

The table is that of ARCHITECTURE.md. A package is a folder or a top-level module; a module named in
a string (lazy commands) counts as imported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

import nessie_cli

PACKAGE = Path(nessie_cli.__file__).parent
ROOT = "nessie_cli"

_VALUES = frozenset({"errors", "model"})
_EVERYTHING = _VALUES | {
    "revisions",
    "kernel",
    "store",
    "repository",
    "wire",
    "iceberg",
    "inspection",
    "workspace",
    "reaching",
    "runs",
    "gc",
    "importing",
    "exporting",
    "audit",
    "render",
}
ALLOWED: Mapping[str, frozenset[str]] = {
    "errors": frozenset(),
    "model": frozenset({"errors"}),
    "revisions": _VALUES,
    "kernel": _VALUES,
    "store": _VALUES,
    "wire": _VALUES,
    "repository": _VALUES | {"revisions", "kernel", "store", "wire"},
    "server": _VALUES | {"revisions", "repository", "wire", "iceberg", "inspection"},
    "workspace": _VALUES | {"wire"},
    "reaching": _VALUES | {"repository", "workspace"},
    "runs": _VALUES | {"revisions", "repository", "iceberg", "workspace"},
    "iceberg": _VALUES | {"revisions", "wire", "repository", "reaching"},
    "inspection": _VALUES | {"revisions", "wire", "repository", "iceberg"},
    "gc": _VALUES
    | {"wire", "repository", "workspace", "reaching", "iceberg", "importing", "exporting"},
    "importing": _VALUES | {"revisions", "wire", "repository", "workspace", "reaching", "iceberg"},
    "exporting": _VALUES
    | {"revisions", "wire", "repository", "workspace", "reaching", "iceberg", "importing"},
    "audit": _VALUES | {"iceberg"},
    "spark": _VALUES | {"repository", "iceberg", "workspace", "reaching", "wire", "gc", "audit"},
    "render": _VALUES | {"wire", "inspection"},
    "cli": _EVERYTHING,
    # The public API: names load when they are used. `python -m` runs the command; spark-submit runs
    # its own module.
    "__init__": _VALUES | {"repository", "revisions", "runs"},
    "__main__": frozenset({"cli"}),
    "submit": frozenset({"cli", "workspace"}),
}
"""The rooms that each room may import, besides itself."""

LAYERS_OF_SERVER: Sequence[frozenset[str]] = (
    frozenset({"http"}),
    frozenset({"runtime"}),
    frozenset({"auth"}),
    frozenset({"pipeline"}),
    frozenset({"nessie", "iceberg"}),
    frozenset({"pages"}),
)
"""The folders of the server, from the lowest on. Its own modules, which start it, are above."""

SERVED_BY_CLI = frozenset({"server", "spark"})
"""Rooms that a command may start: only the room itself, not its modules, and only inside the
function that runs."""
STARTED: Mapping[str, frozenset[str]] = {"runs": frozenset({"server"})}
"""Rooms whose programs another room starts by `python -m`, which is not an import."""

ONLY_IN: Mapping[str, frozenset[str]] = {
    "rich": frozenset({"render"}),
    "typer": frozenset({"cli"}),
    "platformdirs": frozenset({"workspace"}),
    "apsw": frozenset({"store"}),
    "sqlite3": frozenset({"store"}),
    "zstandard": frozenset({"store"}),
    "psycopg": frozenset({"store"}),
    "uvicorn": frozenset({"server"}),
    "prometheus_client": frozenset({"server"}),
    "jinja2": frozenset({"server"}),
    "jwt": frozenset({"server"}),
    "botocore": frozenset({"server"}),
    "pyspark": frozenset({"spark", "runs"}),
    "pyiceberg": frozenset({"iceberg", "importing", "exporting", "spark"}),
    "authlib": frozenset({"repository", "server"}),
}
"""Libraries that only one room may import, at any level."""

LAZY = frozenset(
    {
        "pydantic",
        "rich",
        "requests",
        "authlib",
        "psycopg",
        "pyspark",
        "pyiceberg",
        "fastavro",
        "pyroaring",
        "uvicorn",
        "prometheus_client",
        "jwt",
        "importlib.metadata",
    }
)
LAZY_EXEMPT = frozenset(
    {"wire", "workspace", "render", "server", "spark", "iceberg", "importing", "exporting"}
)
LAZY_FOLDER = f"{ROOT}.repository.remote"
"""Slow libraries: only the rooms that exist for them, and the remote repository, which is
loaded late, import them at module level."""

FACTS = frozenset({"__version__", "__file__"})
"""Names of the bare package that any room may use."""

PURE = frozenset({"errors", "model", "revisions", "kernel"})
IMPURE = frozenset(
    {
        "os",
        "io",
        "pathlib",
        "shutil",
        "socket",
        "subprocess",
        "tempfile",
        "time",
        "random",
        "secrets",
        "threading",
        "platform",
    }
)
"""Modules for I/O, clocks and randomness; the pure rooms import none of them."""

MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 80


@dataclass(frozen=True)
class Import:
    """An import: its module, its place, and whether it runs when the file is loaded."""

    module: str
    line: int
    at_load: bool
    name: str = ""
    starts: bool = False
    """Whether the module is the program of a new process, `python -m MODULE`."""


@dataclass(frozen=True)
class Source:
    """A file of the package."""

    path: Path
    name: str
    tree: ast.Module
    lines: int

    @property
    def room(self) -> str:
        parts = self.name.split(".")
        return parts[1] if len(parts) > 1 else "__init__"


@cache
def read_package(root: Path) -> Mapping[str, Source]:
    """Returns every module below a folder, by name, read once for all rules."""
    sources = {}
    for path in sorted(root.rglob("*.py")):
        relative = path.relative_to(root).with_suffix("").parts
        parts = relative[:-1] if relative[-1] == "__init__" else relative
        name = ".".join((ROOT, *parts))
        text = path.read_text(encoding="utf-8")
        sources[name] = Source(path, name, ast.parse(text), text.count("\n"))
    return sources


@cache
def imports_below(root: Path) -> Mapping[str, Sequence[Import]]:
    """Returns the imports of every module below a folder."""
    sources = read_package(root)
    return {name: tuple(imports_of(source, sources)) for name, source in sources.items()}


def imports_of(source: Source, known: Mapping[str, Source]) -> Iterator[Import]:
    """Yields every import of a file, resolved to the most specific module of the package."""
    package = source.name if source.path.name == "__init__.py" else source.name.rpartition(".")[0]
    programs = set(_programs(source.tree))
    for node, at_load in _walk(source.tree, at_load=True):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(
                    alias.name,
                    node.lineno,
                    at_load,
                    _root_facts(source.tree) if alias.name == ROOT else "",
                )
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")
                base = ".".join(
                    [*parents[: len(parents) - node.level + 1], *([base] if base else [])]
                )
            for alias in node.names:
                full = f"{base}.{alias.name}"
                yield Import(
                    full if full in known or not base.startswith(ROOT) else base,
                    node.lineno,
                    at_load,
                    alias.name,
                )
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and re.fullmatch(rf"{ROOT}(\.\w+)+", node.value)
        ):
            yield Import(node.value, node.lineno, at_load=False, starts=node in programs)


def _programs(tree: ast.Module) -> Iterator[ast.expr]:
    """Yields the words that follow `-m` in a command line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.List):
            for before, word in pairwise(node.elts):
                if isinstance(before, ast.Constant) and before.value == "-m":
                    yield word


def _root_facts(tree: ast.Module) -> str:
    """Yields the names that a file imports from the bare package, if they are all dunder names."""
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == ROOT
    }
    return "__file__" if used and used <= FACTS else ""


def _walk(node: ast.AST, *, at_load: bool) -> Iterator[tuple[ast.AST, bool]]:
    for child in ast.iter_child_nodes(node):
        function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        typing_only = (
            isinstance(child, ast.If) and at_load and "TYPE_CHECKING" in ast.dump(child.test)
        )
        inner = at_load and not function and not typing_only
        yield child, inner
        yield from _walk(child, at_load=inner)


def room_of(module: str) -> str | None:
    """Returns the room of one of our modules; None for others."""
    parts = module.split(".")
    if parts[0] != ROOT:
        return None
    return parts[1] if len(parts) > 1 else "__init__"


def upward_imports(root: Path) -> list[str]:
    """Returns the imports inside the server that are not from a lower layer or the same folder."""
    found = []
    for name, items in imports_below(root).items():
        folder, layer = _layer_of(name)
        for item in items:
            other, below = _layer_of(item.module)
            if layer is not None and below is not None and folder != other and below >= layer:
                found.append(f"{name}:{item.line} imports {item.module}")
    return found


def _layer_of(module: str) -> tuple[str, int | None]:
    """Returns the folder of a module of the server, and its layer; None for other modules."""
    _, package, folder, *_ = [*module.split("."), "", "", ""]
    if package != "server":
        return "", None
    for layer, folders in enumerate(LAYERS_OF_SERVER):
        if folder in folders:
            return folder, layer
    return "", len(LAYERS_OF_SERVER)


def forbidden_imports(root: Path) -> list[str]:
    sources = read_package(root)
    found = []
    for source in sources.values():
        for item in imports_below(root)[source.name]:
            room = room_of(item.module)
            if room in (None, source.room) or (room == "__init__" and item.name in FACTS):
                continue
            started = (
                source.room == "cli"
                and room in SERVED_BY_CLI
                and item.module.count(".") == 1
                and not item.at_load
            ) or (item.starts and room in STARTED.get(source.room, frozenset()))
            if room not in ALLOWED.get(source.room, frozenset()) and not started:
                found.append(
                    f"{source.path.relative_to(root)}:{item.line}: {source.room} may not import"
                    f" {item.module}"
                )
    return found


def misplaced_libraries(root: Path) -> list[str]:
    sources = read_package(root)
    found = []
    for source in sources.values():
        for item in imports_below(root)[source.name]:
            where = f"{source.path.relative_to(root)}:{item.line}"
            top = item.module.split(".")[0]
            if top in ONLY_IN and source.room not in ONLY_IN[top]:
                found.append(f"{where}: {top} belongs into {', '.join(sorted(ONLY_IN[top]))}")
            lazy = top in LAZY or any(item.module.startswith(name) for name in LAZY if "." in name)
            if (
                lazy
                and item.at_load
                and source.room not in LAZY_EXEMPT | ONLY_IN.get(top, frozenset())
                and not source.name.startswith(LAZY_FOLDER)
            ):
                found.append(f"{where}: import {item.module} inside the function that needs it")
            if (
                item.module.startswith(LAZY_FOLDER)
                and item.at_load
                and not source.name.startswith(LAZY_FOLDER)
            ):
                found.append(f"{where}: import {item.module} inside the function that needs it")
            if source.room in PURE and top in IMPURE:
                found.append(f"{where}: {source.room} does no I/O and knows no clock, so no {top}")
    return found


def cycles(root: Path) -> list[list[str]]:
    """Returns groups of modules that import each other, also lazily."""
    sources = read_package(root)
    graph = {
        name: {i.module for i in imports if not i.starts} & sources.keys() - {name}
        for name, imports in imports_below(root).items()
    }
    reach = {name: _reachable(name, graph) for name in graph}
    knots = {
        frozenset({a} | {b for b in reach[a] if a in reach[b]}) for a in graph if a in reach[a]
    }
    return sorted(sorted(knot) for knot in knots)


def _reachable(start: str, graph: Mapping[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    todo = list(graph[start])
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += graph[name]
    return seen


def readers_of_the_environment(root: Path) -> list[str]:
    found = []
    for source in read_package(root).values():
        if source.room == "workspace":
            continue
        # Setting a variable, for a library that reads it, does not count as reading.
        written = {
            id(node.value)
            for node in ast.walk(source.tree)
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
        }
        for node in ast.walk(source.tree):
            if id(node) in written:
                continue
            attribute = isinstance(node, ast.Attribute) and node.attr in (
                "environ",
                "environb",
                "getenv",
                "getenvb",
                "expanduser",
            )
            home = (
                isinstance(node, ast.Attribute)
                and node.attr == "home"
                and ast.unparse(node.value).endswith("Path")
            )
            name = (
                isinstance(node, ast.ImportFrom)
                and node.module == "os"
                and any(a.name in ("environ", "getenv") for a in node.names)
            )
            if attribute or home or name:
                found.append(f"{source.path.relative_to(root)}:{node.lineno}")  # type: ignore[attr-defined]
    return found


def readers_of_the_clock(root: Path) -> list[str]:
    return [
        f"{source.path.relative_to(root)}:{node.lineno}"
        for source in read_package(root).values()
        if source.room in ("model", "kernel")
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Attribute) and node.attr in ("now", "utcnow", "today")
    ]


def is_generated(source: Source) -> bool:
    """Returns whether a file is a table that `make docs` writes; its size does not count."""
    return "not to be edited" in (ast.get_docstring(source.tree) or "").partition("\n")[0]


def oversized(root: Path) -> list[str]:
    found = []
    for source in read_package(root).values():
        where = source.path.relative_to(root)
        if source.lines > MAX_FILE_LINES and not is_generated(source):
            found.append(
                f"{where}: {source.lines} lines; split it by subject (at most {MAX_FILE_LINES})"
            )
        for node in ast.walk(source.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > MAX_FUNCTION_LINES:
                    found.append(
                        f"{where}:{node.lineno}: {node.name} has {length} lines (at most"
                        f" {MAX_FUNCTION_LINES})"
                    )
    return found


def test_every_import_is_in_the_table_of_rooms() -> None:
    assert forbidden_imports(PACKAGE) == []


def test_every_room_is_in_the_table() -> None:
    rooms = {source.room for source in read_package(PACKAGE).values()}
    assert rooms <= ALLOWED.keys()


def test_the_table_of_rooms_has_no_cycle() -> None:
    graph = {room: set(allowed) for room, allowed in ALLOWED.items()}
    assert [room for room in graph if room in _reachable(room, graph)] == []


def test_no_import_runs_upwards_inside_the_server() -> None:
    assert upward_imports(PACKAGE) == []


def test_no_modules_import_each_other() -> None:
    assert cycles(PACKAGE) == []


def test_libraries_stay_in_their_rooms_and_heavy_ones_load_late() -> None:
    assert misplaced_libraries(PACKAGE) == []


def test_only_the_workspace_reads_the_environment_and_the_home_directory() -> None:
    assert readers_of_the_environment(PACKAGE) == []


def test_model_and_kernel_know_no_clock() -> None:
    assert readers_of_the_clock(PACKAGE) == []


def test_files_and_functions_stay_small() -> None:
    assert oversized(PACKAGE) == []


BAD_FILES = {
    "kernel/a.py": ("def f():\n    from nessie_cli.store import base\n", forbidden_imports),
    "model/b.py": (
        (
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from nessie_cli import"
            " revisions\n"
        ),
        forbidden_imports,
    ),
    "server/c.py": ("from nessie_cli import connect\n", forbidden_imports),
    "render/c.py": ("from ..repository import base\n", forbidden_imports),
    "cli/d.py": ("LAZY = 'nessie_cli.server.app'\n", forbidden_imports),
    "cli/d2.py": ("from nessie_cli import server\n", forbidden_imports),
    "cli/e.py": ("import rich.table\n", misplaced_libraries),
    "repository/f.py": ("import requests\n", misplaced_libraries),
    "repository/f2.py": (
        "from nessie_cli.repository.remote import transport\n",
        misplaced_libraries,
    ),
    "server/http/c3.py": ("from nessie_cli.server.auth import gate\n", upward_imports),
    "server/iceberg/c4.py": ("from nessie_cli.server.nessie import v1\n", upward_imports),
    "server/c2.py": (
        "import nessie_cli\nREPOSITORY = nessie_cli.connect('memory:')\n",
        forbidden_imports,
    ),
    "kernel/g.py": ("def f():\n    import time\n", misplaced_libraries),
    "model/g2.py": ("import importlib.metadata\n", misplaced_libraries),
    "store/h.py": ("from nessie_cli.store import i\n", cycles),
    "cli/j.py": ("import os\nHOME = os.environ['HOME']\n", readers_of_the_environment),
    "cli/k.py": ("from pathlib import Path\nHOME = Path.home()\n", readers_of_the_environment),
    "kernel/l.py": ("import datetime\nNOW = datetime.datetime.now()\n", readers_of_the_clock),
    "cli/m.py": ("x = 1\n" * (MAX_FILE_LINES + 1), oversized),
    "cli/n.py": ("def f():\n" + "    x = 1\n" * MAX_FUNCTION_LINES, oversized),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_each_rule_finds_violations(name: str, tmp_path: Path) -> None:
    text, rule = BAD_FILES[name]
    for package in ("", "store", "repository", "server"):
        (tmp_path / package).mkdir(exist_ok=True)
        (tmp_path / package / "__init__.py").write_text("")
    for module in ("revisions.py", "store/base.py", "repository/base.py", "server/app.py"):
        (tmp_path / module).write_text("")
    (tmp_path / "store/i.py").write_text("def f():\n    from nessie_cli.store import h\n")
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text(text)
    assert rule(tmp_path)


def test_a_command_may_start_the_server_inside_its_function(tmp_path: Path) -> None:
    for package in ("cli", "server"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("")
    (tmp_path / "cli/serve.py").write_text(
        "def serve():\n    from nessie_cli.server import serve\n"
    )
    assert forbidden_imports(tmp_path) == []
