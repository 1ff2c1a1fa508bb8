"""Facts in files of the user's cache folder: a damaged file or folder causes no message and
no failure."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nessie_cli.workspace.fact_cache import FactFiles


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "nessie" / "facts"


def test_written_facts_can_be_read(cache: Path) -> None:
    for data in (b"one", b"two" * 100_000):
        FactFiles("/lake/store.sqlite").write("tips", data)
        assert FactFiles("/lake/store.sqlite").read("tips") == data
    assert FactFiles("/lake/store.sqlite").read("merged") == b""
    assert FactFiles("/other/store.sqlite").read("tips") == b""
    (file,) = cache.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert cache.stat().st_mode & 0o777 == 0o700


def test_a_file_that_others_can_write_is_ignored(cache: Path) -> None:
    FactFiles("s").write("tips", b"ours")
    (file,) = cache.iterdir()
    for mode, expected in ((0o644, b"ours"), (0o620, b""), (0o602, b""), (0o600, b"ours")):
        file.chmod(mode)
        assert FactFiles("s").read("tips") == expected


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_ignored(cache: Path) -> None:
    FactFiles("s").write("tips", b"ours")
    (file,) = cache.iterdir()
    os.chown(file, 12_345, 12_345)
    assert FactFiles("s").read("tips") == b""


def test_another_kind_of_file_is_ignored(cache: Path) -> None:
    FactFiles("s").write("tips", b"ours")
    (file,) = cache.iterdir()
    file.unlink()
    file.mkdir()
    FactFiles("s").write("tips", b"ours")
    assert FactFiles("s").read("tips") == b""
    file.rmdir()
    os.mkfifo(file)
    assert FactFiles("s").read("tips") == b""
    file.unlink()
    file.symlink_to("/dev/zero")
    assert FactFiles("s").read("tips") == b""
    FactFiles("s").write("tips", b"again")
    assert FactFiles("s").read("tips") == b"again"
    assert [found.name for found in cache.iterdir()] == [file.name], "nothing is left beside it"


def test_a_folder_that_cannot_be_created_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    FactFiles("s").write("tips", b"lost")
    assert FactFiles("s").read("tips") == b""


@pytest.mark.parametrize("store", ["", "sqlite:///relative", "/caf\u00e9/\udcff", "\ud800"])
def test_a_store_may_have_any_name(cache: Path, store: str) -> None:
    FactFiles(store).write("tips", b"kept")
    assert FactFiles(store).read("tips") == b"kept"
    assert cache.is_dir()


def test_a_relative_cache_folder_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "somewhere")
    monkeypatch.chdir(tmp_path)
    FactFiles("s").write("tips", b"lost")
    assert list(tmp_path.iterdir()) == []
