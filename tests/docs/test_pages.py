"""The pages for readers name files, rooms, libraries and numbers that exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from nessie_cli.kernel import commits, edit, forms
from nessie_cli.model import NO_ANCESTOR
from nessie_cli.store import STORE_FORMAT, rows
from nessie_cli.store.sqlite import schema as sqlite_schema
from tests import test_architecture as architecture

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
_PLACES = ("", "nessie_cli", "nessie_cli/cli", "nessie_cli/kernel", "docs")


def _text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _exists(name: str) -> bool:
    return any(list((ROOT / place).glob(name.rstrip("/"))) for place in _PLACES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_sessions_of_python_are_in_code_blocks(page: Path) -> None:
    # Outside of a block, Markdown takes the prompt for three nested quotations.
    outside = re.sub(
        r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    assert re.findall(r"^>>>.*", outside, re.MULTILINE) == []


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_files_named_in_the_text_exist(page: str) -> None:
    named = set(re.findall(r"`([\w./*]+(?:\.py|/))`", _text(page))) - {
        ".nessie/",
        "commands/NAME.py",
    }
    assert len(named) > 20
    assert sorted(name for name in named if not _exists(name)) == []


def _rooms() -> set[str]:
    package = ROOT / "nessie_cli"
    folders = {path.parent.name for path in package.glob("*/__init__.py")}
    return folders | {path.stem for path in package.glob("*.py") if not path.name.startswith("__")}


def test_the_table_of_rooms_is_the_one_that_the_architecture_test_holds() -> None:
    rows = re.findall(
        r"^\| `(\w+)(?:\.py|/)` \|.*\| ([\w, ]+) \|$", _text("ARCHITECTURE.md"), re.MULTILINE
    )
    rooms = [name for name, _ in rows]
    assert set(rooms) == _rooms()
    for number, (name, allowed) in enumerate(rows):
        said = {
            "nothing": set(),
            "all but server and spark": set(rooms[:number]) - {"server", "spark"},
            "all above": set(rooms[:number]),
        }.get(allowed, set(allowed.split(", ")))
        assert said == set(architecture.ALLOWED[name]), name


def test_every_library_has_its_reason() -> None:
    project = tomllib.loads(_text("pyproject.toml"))
    groups = [
        project["project"]["dependencies"],
        *project["project"]["optional-dependencies"].values(),
        *project["dependency-groups"].values(),
    ]
    names = {
        re.match(r"[\w-]+", line)[0] for group in groups for line in group if isinstance(line, str)
    } - {"nessie-cli"}  # type: ignore[index]
    page = _text("docs/reference/dependencies.md")
    assert (
        sorted(name for name in names if not re.search(rf"(?<![\w-]){name}(?![\w-])", page)) == []
    )


@pytest.mark.parametrize(
    "said",
    [
        f"format version is {STORE_FORMAT}.",
        NO_ANCESTOR,
        f"id of the value 32 | {forms.RECORD_SIZE} |",
        f"last key of the child | {forms.CHILD_SIZE} |",
        f"{edit.LEAF_TARGET} for level 0 and {edit.INNER_TARGET} above",
        f"up to {commits.INLINE_OPERATIONS} as the bytes",
        f"more than {commits.INDEXED_OPERATIONS} operations",
        f"Objects below {rows.SMALL} bytes are raw",
        f"0x{sqlite_schema.APPLICATION_ID:X} (`ness`)",
        "1 Iceberg table, 2 Delta table, 3 Iceberg view, 4 namespace, 5 UDF",
    ],
)
def test_the_page_of_formats_has_the_numbers_of_the_code(said: str) -> None:
    assert said in _text("docs/reference/formats.md")


def test_the_page_of_the_rest_api_lists_every_route() -> None:
    from nessie_cli.server.nessie.routes import V1, V2

    wanted = {f"| `{route.method} {route.path}` | {route.doc.summary} |" for route in (*V2, *V1)}

    assert wanted - set(_text("docs/reference/rest.md").splitlines()) == set()


def test_every_screenshot_is_small_and_on_a_page() -> None:
    pictures = sorted((ROOT / "docs" / "pictures").glob("*.png"))
    pages = "".join(page.read_text("utf-8") for page in (ROOT / "docs").rglob("*.md"))
    assert len(pictures) > 3
    for picture in pictures:
        assert picture.stat().st_size < 150_000, picture.name
        assert f"/pictures/{picture.name})" in pages, picture.name
