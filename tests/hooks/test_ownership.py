"""Workspaces of other people: their hooks never run as this user, and are never skipped
silently."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.command.outcome import Outcome
from tests.command.process import Nessie
from tests.hooks.conftest import Hooks

OTHER, SQUASHED = 4321, 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to other users")
WRITES = {
    "commit": ("content", "put", "db.new", "--type", "namespace", "-m", "new"),
    "merge": ("merge", "dev"),
    "transplant": ("transplant", "dev"),
    "revert": ("revert", "HEAD", "-m", "back"),
}


def give(folder: Path, uid: int) -> None:
    """Gives a folder and everything in it to another user."""
    for path in (folder, *folder.rglob("*")):
        os.chown(path, uid, uid, follow_symlinks=False)


def trusting(refused: Outcome) -> list[str]:
    """Returns the command line that a refusal suggests."""
    found = re.search(r"run `nessie ([^`]+)`", refused.err)
    assert found, refused
    return shlex.split(found[1])


@pytest.fixture
def copied(dev: Nessie, tmp_path: Path) -> Nessie:
    """A copied workspace with hooks: it belongs to this user, who has not seen its contents."""
    hooks = Hooks(dev)
    for name in ("pre-commit", "post-commit", "pre-merge", "post-merge"):
        hooks.write(name, f'#!/bin/sh\ntouch "{tmp_path}/ran"\n')
    copy = Nessie(tmp_path / "copy", Path(dev.environment["HOME"]), dev.forker)
    shutil.copytree(dev.folder, copy.folder)
    return copy


@pytest.mark.parametrize("command", WRITES)
def test_hooks_of_a_copied_folder_are_refused_not_skipped(
    copied: Nessie, tmp_path: Path, command: str
) -> None:
    before = copied.messages()
    for more in ([], ["--no-verify"]):
        refused = copied(*WRITES[command], *more)
        refused.expect(6, "is not trusted, so its hooks pre-")
    if command != "commit":
        copied.ok(*WRITES[command], "--dry-run")
    assert copied.messages() == before
    assert not (tmp_path / "ran").exists()
    copied.ok(*trusting(refused))
    copied.ok(*WRITES[command])
    assert (tmp_path / "ran").exists()


def test_another_workspace_at_the_same_path_runs_no_hooks(dev: Nessie, tmp_path: Path) -> None:
    """The folder was replaced, for example by a clone, after `nessie init` had made it."""
    hooks = Hooks(dev)
    hooks.write("pre-commit", f'#!/bin/sh\ntouch "{tmp_path}/own"\n')
    dev.ok(*WRITES["commit"])
    assert (tmp_path / "own").exists()
    other = Nessie(tmp_path / "other", Path(dev.environment["HOME"]), dev.forker)
    shutil.copytree(dev.folder, other.folder)
    (other.folder / ".nessie" / "identity").unlink()
    shutil.rmtree(other.folder / ".nessie" / "hooks")
    Hooks(other).write("pre-commit", f'#!/bin/sh\ntouch "{tmp_path}/ran"\n')
    dev.folder.rename(tmp_path / "first")
    other.folder.rename(dev.folder)
    refused = dev("content", "put", "db.more", "--type", "namespace", "-m", "more")
    refused.expect(6, "is not trusted, so its hook pre-commit")
    assert not (tmp_path / "ran").exists()
    dev.ok(*trusting(refused))
    dev.ok("content", "put", "db.more", "--type", "namespace", "-m", "more")
    assert (tmp_path / "ran").exists()


def test_a_copied_folder_is_used_as_data(copied: Nessie, tmp_path: Path) -> None:
    copied.ok("switch", "dev")
    copied.ok("content", "put", "db.new", "--type", "namespace")
    assert copied.staged() == [("PUT", "db.new")]
    assert copied.ok("log").err == ""
    copied.ok("branch", "another")
    shutil.rmtree(copied.folder / ".nessie" / "hooks")
    copied.ok("commit", "-m", "without hooks")
    assert not (tmp_path / "ran").exists()


def test_a_copied_folder_cannot_open_a_store_outside_of_it(copied: Nessie, tmp_path: Path) -> None:
    """Its batch would be committed to another catalog of the user."""
    mine = tmp_path / "mine.sqlite"
    shutil.copy(copied.folder / ".nessie" / "store.sqlite", mine)
    (copied.folder / ".nessie" / "config.toml").write_text(f'store = "{mine}"\n')
    refused = copied("log")
    refused.expect(6, f"its store outside of it is not opened: {mine}")
    assert copied("__complete", "--", "switch", "").out == ""
    copied.ok(*trusting(refused))
    copied.ok("log")


def test_a_store_option_overrides_an_untrusted_workspace(copied: Nessie, catalog: Nessie) -> None:
    store = str(catalog.folder / ".nessie" / "store.sqlite")
    copied.ok("content", "put", "db.y", "--type", "namespace")
    (copied.folder / ".nessie" / "HEAD").write_text("nowhere\n")
    for way in (("--store", store), ()):
        env = {} if way else {"NESSIE_STORE": store}
        assert copied.ok("log", *way, env=env).err == ""
        assert copied.ok("status", *way, "--json", env=env).json["batch"]["operations"] == []
        staging = copied("content", "put", "db.x", "--type", "namespace", *way, env=env)
        staging.expect(6, "is not trusted, so it is ignored while")
        committing = copied(*WRITES["commit"], *way, env=env)
        committing.expect(6, "its hooks pre-commit and post-commit are not run")


# -- another user's workspace --------------------------------------------------------------------
READS = (
    ("status",),
    ("log",),
    ("diff", "HEAD~1"),
    ("content", "list"),
    ("config", "list"),
    ("init",),
    ("switch", "main"),
    ("gc", "list"),
)


@needs_root
@pytest.mark.parametrize("below", [False, True])
def test_a_workspace_of_another_user_is_refused(
    copied: Nessie, tmp_path: Path, *, below: bool
) -> None:
    """Examples are a container that runs as root on another user's checkout, and a folder below
    /tmp."""
    give(copied.folder, OTHER)
    inner = copied.folder / "mine"
    inner.mkdir()
    here = inner if below else copied.folder
    for words in (*READS, *WRITES.values()):
        if words == ("init",) and below:
            continue
        refused = copied(*words, cwd=here)
        assert (refused.code, refused.out) == (6, ""), (words, refused)
        assert "belongs to another user" in refused.err
        assert len(refused.err.splitlines()) == 1
    assert copied("log", "--json", cwd=here).error["status"] == 403
    assert not (tmp_path / "ran").exists()
    for words in (("switch", ""), ("content", "show", "d"), ("reset", "")):
        asked = copied("__complete", "--", *words, cwd=here)
        assert (asked.code, asked.out, asked.err) == (0, "", "")
    copied.ok("--version", cwd=here)
    copied.ok("config", "list", "--user", cwd=here)
    copied.ok("login", "https://catalog.example.org", cwd=here)


@needs_root
def test_the_suggested_command_trusts_the_workspace(copied: Nessie, tmp_path: Path) -> None:
    give(copied.folder, OTHER)
    copied.ok(*trusting(copied("log")))
    copied.ok("log")
    copied.ok(*WRITES["commit"])
    assert (tmp_path / "ran").exists()


@needs_root
@pytest.mark.parametrize("entry", ["{copy}", "{above}/*", "*", "/elsewhere:{copy}"])
def test_a_container_may_trust_its_checkout(copied: Nessie, entry: str) -> None:
    give(copied.folder, OTHER)
    env = {"NESSIE_SAFE_DIRECTORIES": entry.format(copy=copied.folder, above=copied.folder.parent)}
    copied.ok(*WRITES["commit"], env=env)


@needs_root
def test_root_accepts_a_workspace_of_the_user_of_sudo(copied: Nessie, tmp_path: Path) -> None:
    give(copied.folder, OTHER)
    copied.ok("log", env={"SUDO_UID": str(OTHER)})
    assert copied("log", env={"SUDO_UID": str(OTHER + 1)}).code == 6
    # Ownership is not trust: root runs no hook that the user of sudo has not trusted as root.
    assert copied(*WRITES["commit"], env={"SUDO_UID": str(OTHER)}).code == 6
    assert not (tmp_path / "ran").exists()


@needs_root
def test_reads_of_another_store_ignore_a_workspace_of_another_user(
    copied: Nessie, catalog: Nessie, tmp_path: Path
) -> None:
    give(copied.folder, OTHER)
    store = str(catalog.folder / ".nessie" / "store.sqlite")
    for words in (("log",), ("status",), ("content", "list"), ("diff", "HEAD~1")):
        assert copied.ok(*words, "--store", store).err == ""
    assert copied("commit", "-m", "x", "--store", store).code == 6
    assert copied(*WRITES["commit"], "--store", store).code == 6
    shutil.rmtree(copied.folder / ".nessie" / "hooks")
    copied.ok(*WRITES["commit"], "--store", store)
    assert not (tmp_path / "ran").exists()


@needs_root
def test_a_workspace_with_a_squashed_user_id_is_trusted(nessie: Nessie) -> None:
    """A file system that gives all files to one user: a workspace from `nessie init` is trusted
    until that changes."""
    os.chown(nessie.folder, SQUASHED, SQUASHED)
    nessie.ok("init")
    Hooks(nessie).write("pre-commit", "#!/bin/sh\ntouch ran\n")
    nessie.ok("content", "put", "db", "--type", "namespace", "-m", "x")
    assert (nessie.folder / "ran").exists()
    give(nessie.folder, SQUASHED)
    refused = nessie("log")
    assert refused.code == 6
    nessie.ok(*trusting(refused))
    nessie.ok("log")


@needs_root
def test_a_folder_that_was_given_to_another_user_is_refused(workspace: Nessie) -> None:
    workspace.ok("log")
    give(workspace.folder, OTHER)
    assert workspace("log").code == 6


def test_a_workspace_cannot_declare_itself_trusted(copied: Nessie, tmp_path: Path) -> None:
    (copied.folder / ".nessie" / "config.toml").write_text(
        f'safe-directories = ["*", "{copied.folder}"]\n'
    )
    assert copied(*WRITES["commit"]).code == 6
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "command", [("gc", "list"), ("gc", "show"), ("gc", "approve"), ("gc", "apply")]
)
def test_gc_runs_in_a_copied_folder_are_not_used(copied: Nessie, command: tuple[str, ...]) -> None:
    """A run contains the list of files to delete."""
    refused = copied(*command)
    refused.expect(6, "is not trusted, so its runs are not used")
    copied.ok(*trusting(refused))
    assert copied("gc", "list").code == 0
