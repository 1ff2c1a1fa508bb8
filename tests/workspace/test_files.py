"""Files of a workspace are regular files of limited size.

Pipes, devices and huge files are errors, and reading them never waits.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from nessie_cli.errors import InvalidInput, StoreUnavailable
from nessie_cli.workspace.files import LARGEST, read_text, replace_text
from tests.command.process import Forker, Nessie, fresh

FILES = ("HEAD", "PREVIOUS", "config.toml", "batch.json", "stash.json", "lock", "requests.json")
COMMANDS = (
    ("status",),
    ("commit", "-m", "x"),
    ("switch", "main"),
    ("switch", "-"),
    ("stash",),
    ("stash", "list"),
    ("reset",),
    ("config", "list"),
    ("config", "set", "author", "me"),
    ("content", "put", "t", "--type", "namespace"),
    ("__complete", "--", "reset", ""),
)


@pytest.fixture
def workspace(tmp_path: Path, forker: Forker) -> Nessie:
    """A workspace with a staged operation and a stashed batch."""
    nessie = fresh(tmp_path, forker)
    nessie.ok("init")
    for number in range(2):
        nessie.ok("content", "put", "t", "--type", "namespace", "--property", f"n={number}")
        if number == 0:
            nessie.ok("stash")
    return nessie


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


def _folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("name", [*FILES, "store.sqlite"])
@pytest.mark.parametrize("make", [_pipe, _device, _huge, _folder])
def test_a_file_of_another_kind_is_an_error_and_never_waited_for(
    workspace: Nessie, name: str, make: Callable[[Path], None]
) -> None:
    path = workspace.folder / ".nessie" / name
    path.unlink(missing_ok=True)
    make(path)
    for command in COMMANDS:
        # The outcome of a command that needs this file is an error; a waiting one would not end.
        outcome = workspace(*command)
        assert outcome.code in (0, 1, 2, 3, 6, 7), (command, outcome)
        assert "internal" not in outcome.err, (command, outcome)


@pytest.mark.parametrize("name", ["HEAD", "config.toml", "batch.json"])
@pytest.mark.parametrize(
    ("make", "why"),
    [
        (_pipe, "cannot be used: it is not a regular file"),
        (_device, "cannot be used: it is not a regular file"),
        (_huge, "is too large: the limit is "),
    ],
)
def test_the_error_names_the_file(
    workspace: Nessie, name: str, make: Callable[[Path], None], why: str
) -> None:
    path = workspace.folder / ".nessie" / name
    path.unlink(missing_ok=True)
    make(path)
    outcome = workspace("status")
    assert outcome.code == 2
    assert outcome.err.startswith(f"nessie: {path} {why}"), outcome.err


def test_a_file_behind_a_link_is_used(workspace: Nessie) -> None:
    folder = workspace.folder / ".nessie"
    for name in ("HEAD", "batch.json", "lock"):
        path = folder / name
        path.rename(workspace.folder / name)
        path.symlink_to(workspace.folder / name)
    assert workspace.staged() == [("PUT", "t")]
    workspace.ok("commit", "-m", "x")


@pytest.mark.parametrize("name", [*FILES, "MESSAGE"])
@pytest.mark.parametrize("kind", ["file", "dangling"])
def test_a_link_in_a_workspace_that_is_not_trusted_is_not_used(
    workspace: Nessie, tmp_path: Path, name: str, kind: str
) -> None:
    """A clone can have one. Its file could be shown, sent to a server of the clone, or changed."""
    secret = tmp_path / "secret"
    path = workspace.folder / ".nessie" / name
    (workspace.folder / ".nessie" / "identity").unlink()
    path.unlink(missing_ok=True)
    if kind != "dangling":
        secret.write_text("SECRET\n")
    path.symlink_to(secret)
    outcomes = [workspace(*command) for command in (*COMMANDS, ("reset", "--all"), ("log",))]
    assert "SECRET" not in "".join(outcome.out + outcome.err for outcome in outcomes)
    assert (secret.read_text() if secret.exists() else None) == (
        None if kind == "dangling" else "SECRET\n"
    )
    refused = [outcome for outcome in outcomes if outcome.code == 6]
    # Only commands with an editor or a server need the others.
    assert refused or name in ("MESSAGE", "requests.json")
    for outcome in refused:
        assert f"{path}, a symbolic link, is not used" in outcome.err
    if name == "HEAD":
        trusting = outcomes[0].err.partition("run `nessie ")[2].partition("`")[0]
        workspace.ok(*trusting.split())
        assert workspace("status").code != 6


def test_a_folder_behind_a_link_is_not_used_without_trust(
    workspace: Nessie, tmp_path: Path
) -> None:
    folder = workspace.folder / ".nessie"
    (folder / "identity").unlink()
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    outcome = workspace("status")
    assert outcome.code == 6
    assert f"{folder}, a symbolic link, is not used" in outcome.err


@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.parametrize("make", [_pipe, _device, _folder])
def test_the_hint_of_an_error_reads_no_file_that_cannot_be_read(
    workspace: Nessie, make: Callable[[Path], None], trusted: bool
) -> None:
    """Hints for an unknown reference ask whether it is the current one."""
    folder = workspace.folder / ".nessie"
    if not trusted:
        (folder / "identity").unlink()
    (folder / "HEAD").unlink()
    make(folder / "HEAD")
    for command in (("log", "nowhere"), ("show", "nowhere"), ("log", "--ref", "nowhere")):
        outcome = workspace(*command)
        assert (outcome.code, outcome.err) == (4, "nessie: no branch or tag 'nowhere'\n")


def test_a_folder_in_the_place_of_a_temporary_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "HEAD"
    path.write_text("main")
    (tmp_path / f"HEAD.{os.getpid()}.tmp").mkdir()
    with pytest.raises(StoreUnavailable, match="HEAD cannot be written: "):
        replace_text(path, "dev")
    assert path.read_text() == "main"


def test_a_link_in_the_place_of_a_temporary_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("text")
    path = tmp_path / "HEAD"
    (tmp_path / f"HEAD.{os.getpid()}.tmp").symlink_to(tmp_path / "victim")
    replace_text(path, "main")
    assert (tmp_path / "victim").read_text() == "text"
    assert (path.read_text(), path.is_symlink()) == ("main", False)


def test_a_text_that_could_not_be_read_again_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "file"
    replace_text(path, "x" * LARGEST)
    assert read_text(path) == "x" * LARGEST
    with pytest.raises(InvalidInput, match="file is too large: the limit is 1 MiB"):
        replace_text(path, "y" * (LARGEST + 1))
    assert read_text(path) == "x" * LARGEST
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a = " + "[" * 5000 + "]" * 5000, "the TOML is nested too deeply"),
        ("a = " + "9" * 5000, "a number has too many digits"),
        pytest.param("a" + ".a" * 400_000 + " = 1", "has too many dots in its keys", id="key"),
        pytest.param(
            "".join(f"k{n}{'.a' * 900} = 1\n" for n in range(500)),
            "has too many dots in its keys",
            id="keys",
        ),
        pytest.param(
            f"[{'a.' * 2900}a]\n" + "".join(f"k{n} = 1\n" for n in range(90_000)),
            "has too many dots in its keys",
            id="table",
        ),
    ],
)
def test_settings_that_python_does_not_read_are_named(
    workspace: Nessie, text: str, why: str
) -> None:
    path = workspace.folder / ".nessie" / "config.toml"
    path.write_text(text)
    outcome = workspace("status")
    assert (outcome.code, outcome.err) == (2, f"nessie: {path}: {why}\n")


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a": ' + "9" * 5000 + "}"])
def test_records_of_requests_that_cannot_be_read_are_ignored(workspace: Nessie, text: str) -> None:
    (workspace.folder / ".nessie" / "requests.json").write_text(text)
    workspace.ok("status")
    workspace.ok("commit", "-m", "x")
