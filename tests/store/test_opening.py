"""URLs and paths of stores, and messages for invalid ones."""

import subprocess
import sys
from pathlib import Path

import pytest

from nessie_cli.errors import InvalidInput, StoreNotFound
from nessie_cli.store.opening import create_store, open_store
from tests.store.samples import create, write


@pytest.fixture(autouse=True)
def _working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()


@pytest.mark.parametrize(
    "url", ["sqlite:///in/a.sqlite", "in/a.sqlite", "./in/a.sqlite", "SQLITE:///in/a.sqlite"]
)
def test_a_relative_path_starts_at_the_working_directory(tmp_path: Path, url: str) -> None:
    store = create_store(url)
    assert store.url == f"sqlite:///{tmp_path}/in/a.sqlite"
    store.close()
    assert [p.name for p in (tmp_path / "in").iterdir()] == ["a.sqlite"]


@pytest.mark.parametrize(
    "name",
    [
        "b c?mode=ro#x.sqlite",
        "%41.sqlite",
        "a:b.sqlite",
        "é👍.sqlite",
        "file:x",
        ":memory:",
        "-wal",
    ],
)
def test_a_file_may_have_any_name(tmp_path: Path, name: str) -> None:
    for url in (
        f"in/{name}",
        f"sqlite:///in/{name}",
        f"{tmp_path}/in/{name}",
        f"sqlite:///{tmp_path}/in/{name}",
    ):
        store = create_store(url)
        store.close()
    assert [p.name for p in (tmp_path / "in").iterdir()] == [name]


def test_the_url_of_a_store_opens_it_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = create_store("in/a.sqlite")
    write(store, create("main"))
    store.close()
    monkeypatch.chdir("/")
    again = open_store(store.url)
    assert [r.name for r in again.references()] == ["main"]
    again.close()


def test_another_working_directory_does_not_move_an_open_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from threading import Thread

    store = create_store("in/a.sqlite")
    monkeypatch.chdir(tmp_path / "in")
    thread = Thread(target=lambda: write(store, create("main")))  # a new thread: a new connection
    thread.start()
    thread.join()
    assert [r.name for r in store.references()] == ["main"]
    store.close()


def test_creating_an_existing_store_opens_it() -> None:
    store = create_store("in/a.sqlite")
    write(store, create("main"))
    store.close()
    again = create_store("in/a.sqlite")
    assert [r.name for r in again.references()] == ["main"]
    again.close()


def test_memory_is_empty_each_time() -> None:
    for make in (create_store, open_store):
        store = make("memory:")
        assert store.url == "memory:"
        assert write(store, create("main"))
        assert len(store.references()) == 1
        store.close()


def test_opening_does_not_create(tmp_path: Path) -> None:
    with pytest.raises(StoreNotFound, match=r"in/none\.sqlite: no such file"):
        open_store("in/none.sqlite")
    with pytest.raises(StoreNotFound):
        open_store("nowhere/none.sqlite")
    assert not list((tmp_path / "in").iterdir())


@pytest.mark.parametrize(
    "url",
    [
        "",
        " ",
        "sqlite:///",
        "sqlite://",
        "sqlite:",
        "sqlite:a.sqlite",
        "sqlite://a.sqlite",
        "memory:x",
        "memory://",
        "mysql://h/d",
        "a\0b",
    ],
)
def test_an_invalid_url_is_refused_with_the_valid_forms(tmp_path: Path, url: str) -> None:
    for make in (create_store, open_store):
        with pytest.raises(
            InvalidInput, match=r"^store .*(sqlite:///relative/path|zero bytes)"
        ) as caught:
            make(url)
        assert "\n" not in str(caught.value)
    assert [p.name for p in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://joe:secret@host/db",
        "postgres://joe:secret@host/db",
        "http://joe:secret@host/api/v2",
    ],
)
def test_passwords_are_not_shown(url: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        open_store(url)
    assert "secret" not in str(caught.value)


def test_opening_a_store_loads_few_modules(tmp_path: Path) -> None:
    code = (
        "import sys; from nessie_cli.store.opening import create_store;"
        " create_store(sys.argv[1]).close(); print(*sys.modules)"
    )

    def loaded(url: str) -> set[str]:
        return set(
            subprocess.run(
                [sys.executable, "-c", code, url], capture_output=True, text=True, check=True
            ).stdout.split()
        )

    plain = set(
        subprocess.run(
            [sys.executable, "-c", "import sys; print(*sys.modules)"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
    )
    forbidden = {"zstandard", "logging", "pydantic", "requests", "rich", "ctypes", "asyncio"}
    assert not (loaded("in/a.sqlite") - plain) & forbidden
