"""Damage to a workspace, its settings, the environment and stdin, and the folder of the
tests."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.fuzz.lines import ODD, REVISIONS, STORES, VALUES

_PAGE = 4096
STAGED_FILES = (
    "HEAD",
    "PREVIOUS",
    "config.toml",
    "batch.json",
    "stash.json",
    "lock",
    "store.sqlite",
    "hooks",
)
VARIABLES = (
    "NESSIE_STORE", "NESSIE_ENDPOINT", "NESSIE_REF", "NESSIE_PROFILE", "NESSIE_DEFAULT_BRANCH", "NESSIE_AUTHOR", "NESSIE_HOOK", "NESSIE_EDITOR",
    "NESSIE_PAGER", "PAGER", "COLUMNS", "LINES", "TERM", "NO_COLOR", "CLICOLOR_FORCE", "LC_ALL", "HOME", "XDG_CONFIG_HOME", "TZ", "PATH", "LOGNAME",
    "TMPDIR", "PYTHONWARNINGS", "NESSIE_AUTH_TYPE", "NESSIE_AUTH_TOKEN", "NESSIE_VERIFY",
)  # fmt: skip
OTHER_JSON = (
    "null",
    "[]",
    "{}",
    "7",
    '"text"',
    "[[[",
    '{"version": 1}',
    '{"version": 1e999}',
    "[" * 5000,
    '{"a": NaN}',
    '{"version": 1, "stashes": [7]}',
)
OTHER_TOML = (
    *(
        "store = 7\n",
        "store = [\n",
        "[store]\n",
        "store = 'sqlite:///none.sqlite'\n",
        "store = 'memory:'\n",
        "author = ['a']\n",
        "= \n",
    ),
    *(
        "[profile]\nx = 1\n",
        "[profile.x]\nstore = 1\n",
        "default-profile = 'x'\n",
        "[alias]\nlog = 'log'\n",
        "[alias]\nx = 7\n",
        "a.b.c = 1\nstore = ''\n",
    ),
)


def _cut(path: Path, chance: random.Random) -> None:
    whole = path.read_bytes() if path.is_file() else b"some words\n"
    path.write_bytes(whole[: chance.randrange(len(whole) + 1)])


def _flip(path: Path, chance: random.Random) -> None:
    whole = bytearray(path.read_bytes() if path.is_file() else b"some words\n")
    for _ in range(chance.choice((1, 3, 30))):
        if whole:
            whole[chance.randrange(len(whole))] = chance.randrange(256)
    path.write_bytes(whole)


def _page(path: Path, chance: random.Random) -> None:
    """Replaces a page of a store by zeros or by another page."""
    whole = path.read_bytes() if path.is_file() else bytes(2 * _PAGE)
    pages = [whole[start : start + _PAGE] for start in range(0, len(whole), _PAGE)] or [b""]
    pages[chance.randrange(len(pages))] = chance.choice((bytes(_PAGE), chance.choice(pages)))
    path.write_bytes(b"".join(pages))


def _gone(path: Path, chance: random.Random) -> None:
    path.unlink(missing_ok=True)


def _folder(path: Path, chance: random.Random) -> None:
    path.unlink(missing_ok=True)
    path.mkdir()


def _loop(path: Path, chance: random.Random) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(path.name)


def _binary(path: Path, chance: random.Random) -> None:
    path.write_bytes(chance.randbytes(chance.choice((0, 1, 50, 5000))))


def _other(path: Path, chance: random.Random) -> None:
    path.write_text(chance.choice((*OTHER_JSON, *OTHER_TOML)))


def _unreadable(path: Path, chance: random.Random) -> None:
    if path.exists():
        path.chmod(0)


WAYS: tuple[Callable[[Path, random.Random], None], ...] = (
    _cut,
    _flip,
    _page,
    _gone,
    _folder,
    _loop,
    _binary,
    _other,
    _unreadable,
)


class Folder:
    """A workspace, the user's configuration beside it, and files for options. It can be damaged,
    compared, and restored."""

    def __init__(self, whole: Path, path: Path) -> None:
        self._whole = whole
        self.path = path
        self.work = path / "work"
        self.make_whole()

    def make_whole(self) -> None:
        """Restores the original state."""
        shutil.rmtree(self.path, ignore_errors=True)
        shutil.copytree(self._whole, self.path, symlinks=True)

    def break_something(self, chance: random.Random) -> str:
        """Damages one file; returns a description."""
        path = (
            self.path / "home/config/nessie/config.toml"
            if chance.random() < 0.15
            else self.work / ".nessie" / chance.choice(STAGED_FILES)
        )
        way = chance.choice(WAYS)
        if path.name == "hooks":
            way = chance.choice((_folder, _binary, _loop))
        if path.is_dir():
            return "nothing"
        way(path, chance)
        return f"{way.__name__[1:]} {path.relative_to(self.path)}"

    def state(self) -> Mapping[str, object]:
        """Returns everything that a failed command must not change: all files, and the rows of
        stores."""
        found: dict[str, object] = {}
        for path in sorted(self.path.rglob("*")):
            name = str(path.relative_to(self.path))
            # The cache contains only facts that may be deleted or computed at any time.
            if name.endswith(("-wal", "-shm", "/lock")) or name.startswith("home/.cache"):
                continue
            if path.name == "store.sqlite":
                found[name] = _rows(path)
            elif path.is_symlink():
                found[name] = path.readlink()
            else:
                found[name] = path.read_bytes() if path.is_file() else None
        return found


def _rows(path: Path) -> object:
    if not path.is_file():
        return path.is_dir()
    try:
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    except sqlite3.Error:
        return path.read_bytes()
    connection.text_factory = bytes
    try:
        tables = [
            name.decode("latin-1")
            for (name,) in connection.execute(
                "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"
            )
        ]
        return {name: connection.execute(f'SELECT * FROM "{name}"').fetchall() for name in tables}
    except (sqlite3.Error, UnicodeDecodeError):
        # The second form is for a message that contains bytes of the file.
        return path.read_bytes()
    finally:
        connection.close()


def environment(chance: random.Random) -> dict[str, str]:
    """Returns environment variables with random values."""
    found = {}
    for name in chance.sample(VARIABLES, chance.choice((1, 1, 2))):
        odd = "".join(chance.choice(ODD) for _ in range(3))
        value = chance.choice(
            (
                odd,
                "",
                " ",
                *VALUES,
                *REVISIONS,
                *(STORES if name in ("NESSIE_STORE", "NESSIE_ENDPOINT") else ()),
                "binary",
                "9" * 30,
            )
        )
        found[name] = value
    return found


def stdin(chance: random.Random) -> str:
    """Returns bytes, as text with surrogates for invalid ones."""
    kind = chance.random()
    if kind < 0.4:
        return ""
    if kind < 0.6:
        return chance.randbytes(chance.choice((1, 40, 3000))).decode("utf-8", "surrogateescape")
    if kind < 0.8:
        return chance.choice(OTHER_JSON)
    return json.dumps(_document(chance, 3))


def _document(chance: random.Random, depth: int) -> object:
    """Returns JSON with the attributes of a batch, and values of any kind."""
    kind = chance.randrange(8 if depth else 5)
    if kind < 5:
        return chance.choice(
            (
                None,
                True,
                -1,
                1e300,
                2**70,
                "",
                "PUT",
                "DELETE",
                "ICEBERG_TABLE",
                "NAMESPACE",
                "x",
                "\ud800",
                "\x00",
                {},
                [],
            )
        )
    if kind == 5:
        return [_document(chance, depth - 1) for _ in range(chance.randrange(3))]
    names = (
        "operations",
        "commitMeta",
        "type",
        "key",
        "elements",
        "content",
        "id",
        "metadataLocation",
        "snapshotId",
        "message",
        "expectedContent",
        "x",
    )
    return {
        name: _document(chance, depth - 1) for name in chance.sample(names, chance.randrange(1, 6))
    }
