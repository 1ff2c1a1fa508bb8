"""Trust in a workspace: the decision from facts, and the facts."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from nessie_cli.workspace import trust, trust_records
from nessie_cli.workspace.folder import Workspace, find_workspace, make_workspace
from nessie_cli.workspace.trust import FOREIGN, OWN, TRUSTED

ME, OTHER, ROOT, NOBODY = 1000, 1001, 0, 65534


@pytest.mark.parametrize(
    ("owners", "uid", "sudo_uid", "found"),
    [
        ({ME}, ME, None, OWN),
        ({OTHER}, ME, None, FOREIGN),
        ({ME, OTHER}, ME, None, FOREIGN),
        ({ROOT}, ME, None, FOREIGN),
        ({NOBODY}, ME, None, FOREIGN),
        # A container that runs as root on another user's checkout.
        ({OTHER}, ROOT, None, FOREIGN),
        ({ROOT}, ROOT, None, OWN),
        # sudo: files of the user and of root.
        ({ME}, ROOT, ME, OWN),
        ({ROOT}, ROOT, ME, OWN),
        ({ME, ROOT}, ROOT, ME, OWN),
        ({OTHER}, ROOT, ME, FOREIGN),
        # Every user can set SUDO_UID, so it is only used for root.
        ({OTHER}, ME, OTHER, FOREIGN),
    ],
)
def test_trust_depends_on_the_owners(
    owners: set[int], uid: int, sudo_uid: int | None, found: str
) -> None:
    assert (
        trust.decide("/srv/lake", owners, uid=uid, sudo_uid=sudo_uid, safe=(), recorded=False)
        == found
    )
    assert (
        trust.decide("/srv/lake", owners, uid=uid, sudo_uid=sudo_uid, safe=(), recorded=True)
        == TRUSTED
    )
    assert (
        trust.decide(
            "/srv/lake", owners, uid=uid, sudo_uid=sudo_uid, safe=["/srv/lake"], recorded=False
        )
        == TRUSTED
    )


@pytest.mark.parametrize(
    ("entry", "safe"),
    [
        ("/srv/lake", True),
        ("/srv/*", True),
        ("/*", True),
        ("*", True),
        ("/srv", False),
        ("/srv/lak", False),
        ("/srv/lak*", False),
        ("/srv/lake/*", False),
        ("/srv/lake/inner", False),
        ("", False),
    ],
)
def test_an_entry_is_a_folder_or_all_folders_below_one(entry: str, safe: bool) -> None:
    assert trust.is_safe("/srv/lake", [entry]) == safe


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1000", 1000),
        ("0", 0),
        (None, None),
        ("", None),
        ("-1", None),
        ("1e3", None),
        ("0x1", None),
    ],
)
def test_sudo_uid_is_parsed(text: str | None, found: int | None) -> None:
    assert trust.sudo_uid(text) == found


def test_a_record_is_valid_while_path_and_owners_are_the_same() -> None:
    records = ["1000 a1 /srv/lake", "0,65534 b2 /mnt/squashed dir", "1000 /srv/old"]
    assert trust.is_recorded(records, "/srv/lake", {ME}, "a1")
    assert trust.is_recorded(records, "/mnt/squashed dir", {NOBODY, ROOT}, "b2")
    assert not trust.is_recorded(records, "/srv/lake", {OTHER}, "a1")
    assert not trust.is_recorded(records, "/srv/lake", {ME, OTHER}, "a1")
    assert not trust.is_recorded(records, "/srv/copy", {ME}, "a1")
    assert not trust.is_recorded(records, "/srv/lake", {ME}, "b2")
    assert not trust.is_recorded(records, "/srv/lake", {ME}, None)
    assert not trust.is_recorded(records, "/srv/old", {ME}, None)


# -- the facts -----------------------------------------------------------------------------------
@pytest.fixture(autouse=True)
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user with an empty home."""
    for name in ("NESSIE_SAFE_DIRECTORIES", "SUDO_UID"):
        monkeypatch.delenv(name, raising=False)
    home = tmp_path / "home"
    for name in ("CONFIG", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(home / name.lower()))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(home / "system"))
    return home


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A workspace that is not trusted yet."""
    return make_workspace(tmp_path / "work", None)


def fresh(workspace: Workspace) -> str:
    return Workspace(workspace.root).trust


def test_a_workspace_of_the_user_is_not_trusted_until_it_is_recorded(workspace: Workspace) -> None:
    assert fresh(workspace) == OWN
    assert trust_records.record_workspace(str(workspace.root))
    assert fresh(workspace) == TRUSTED


@pytest.mark.parametrize("separator", ["\r", "\n", "\x0b", "\x1c"])
def test_the_name_of_a_folder_is_no_second_record(tmp_path: Path, separator: str) -> None:
    victim = make_workspace(tmp_path / "victim", None)
    identity = "ab" * 32
    (victim.root / ".nessie" / "identity").write_text(identity)
    record = trust.record(str(victim.root), frozenset({os.geteuid()}), identity)
    folder = tmp_path / f"x{separator}{record.replace('/', os.sep)}"
    folder.mkdir(parents=True)
    make_workspace(folder, None)
    trust_records.record_workspace(str(folder))
    assert trust_records.trust_in(str(victim.root)) != TRUSTED


def test_a_copy_and_a_moved_folder_are_not_trusted(workspace: Workspace, tmp_path: Path) -> None:
    trust_records.record_workspace(str(workspace.root))
    workspace.root.rename(tmp_path / "moved")
    assert Workspace(tmp_path / "moved").trust == OWN


def replaced(workspace: Workspace) -> Path:
    """Replaces a workspace by another one at its path; returns the folder of the first."""
    first = workspace.root.with_name("first")
    workspace.folder.rename(first)
    make_workspace(workspace.root, None)
    return first


def test_another_workspace_at_a_trusted_path_is_not_trusted(workspace: Workspace) -> None:
    trust_records.record_workspace(str(workspace.root))
    first = replaced(workspace)
    assert fresh(workspace) == OWN
    other = make_workspace(workspace.root.with_name("other"), None)
    trust_records.record_workspace(str(other.root))
    (workspace.folder / "identity").write_bytes((other.folder / "identity").read_bytes())
    assert fresh(workspace) == OWN
    shutil.rmtree(workspace.folder)
    first.rename(workspace.folder)
    assert fresh(workspace) == TRUSTED


@pytest.mark.parametrize("kind", ["missing", "empty", "long", "pipe", "folder", "link", "binary"])
def test_without_its_identity_a_workspace_is_not_trusted(workspace: Workspace, kind: str) -> None:
    trust_records.record_workspace(str(workspace.root))
    file = workspace.folder / "identity"
    right = file.read_text()
    assert fresh(workspace) == TRUSTED
    assert file.stat().st_mode & 0o777 == 0o600
    file.unlink()
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    elif kind == "link":
        (workspace.root / "elsewhere").write_text(right)
        file.symlink_to(workspace.root / "elsewhere")
    elif kind != "missing":
        file.write_bytes(
            {"empty": b"", "long": right.strip().encode() + b"00", "binary": b"\xff" * 64}[kind]
        )
    assert fresh(workspace) == OWN


def test_recording_again_replaces_the_identity(workspace: Workspace, user: Path) -> None:
    trust_records.record_workspace(str(workspace.root))
    first = (workspace.folder / "identity").read_text()
    trust_records.record_workspace(str(workspace.root))
    assert (workspace.folder / "identity").read_text() != first
    assert len((user / "state" / "nessie" / "workspaces").read_text().splitlines()) == 1
    (workspace.folder / "identity").write_text(first)
    assert fresh(workspace) == OWN


def test_a_link_to_a_trusted_folder_is_trusted(workspace: Workspace, tmp_path: Path) -> None:
    trust_records.record_workspace(str(workspace.root))
    (tmp_path / "link").symlink_to(workspace.root)
    assert Workspace(tmp_path / "link").trust == TRUSTED


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("config", 'safe-directories = "{root}"'),
        ("config", 'safe-directories = ["/elsewhere", "{root}"]'),
        ("config", 'author = "ada"\nsafe-directories = "/elsewhere:{root}"'),
        ("config", 'safe-directories = "{above}/*"'),
        ("system", 'safe-directories = "{root}"'),
        ("system", 'safe-directories = "*"'),
    ],
)
def test_safe_directories_of_user_and_system_are_trusted(
    workspace: Workspace, user: Path, place: str, text: str
) -> None:
    path = user / place / "nessie" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text(text.format(root=workspace.root, above=workspace.root.parent) + "\n")
    assert fresh(workspace) == TRUSTED


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("/a:{root}", TRUSTED),
        ("{root}/../work/", TRUSTED),
        ("{link}", TRUSTED),
        ("work", OWN),
        (".", OWN),
    ],
)
def test_safe_directories_of_the_environment_are_trusted(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, found: str
) -> None:
    (tmp_path / "link").symlink_to(workspace.root)
    monkeypatch.chdir(workspace.root)
    monkeypatch.setenv(
        "NESSIE_SAFE_DIRECTORIES", text.format(root=workspace.root, link=tmp_path / "link")
    )
    assert fresh(workspace) == found


def test_safe_directories_in_a_workspace_are_ignored(workspace: Workspace) -> None:
    workspace.config_path.write_text(f'safe-directories = ["*", "{workspace.root}"]\n')
    assert fresh(workspace) == OWN


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to other users")


@needs_root
@pytest.mark.parametrize("which", ["folder", "above"])
def test_files_of_another_user_are_not_trusted(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    trust_records.record_workspace(str(workspace.root))
    os.chown(workspace.folder if which == "folder" else workspace.root, OTHER, OTHER)
    assert fresh(workspace) == FOREIGN
    monkeypatch.setenv("SUDO_UID", str(OTHER))
    assert fresh(workspace) == OWN


@needs_root
def test_a_link_of_another_user_to_a_workspace_is_not_trusted(
    workspace: Workspace, tmp_path: Path
) -> None:
    """Hooks would run in a folder that another user writes to."""
    trust_records.record_workspace(str(workspace.root))
    (tmp_path / "bait").mkdir()
    (tmp_path / "bait" / ".nessie").symlink_to(workspace.folder)
    os.chown(tmp_path / "bait", OTHER, OTHER)
    found = find_workspace(tmp_path / "bait")
    assert found
    assert found.trust == FOREIGN


@pytest.mark.parametrize(
    ("store", "may"),
    [
        ("store.sqlite", True),
        ("sqlite:///.nessie/other.sqlite", True),
        ("../elsewhere.sqlite", False),
        ("sqlite:///../elsewhere.sqlite", False),
        ("SQLite:///../elsewhere.sqlite", False),
        ("/etc/passwd", False),
        ("sqlite:////etc/passwd", False),
        ("link.sqlite", False),
        ("log.sqlite", False),
        ("postgresql://ada@db/catalog", False),
        ("postgres://ada@db/catalog", False),
        ("POSTGRESQL://ada@db/catalog", False),
        ("postgresql:host=db", False),
        ("https://catalog.example.org", True),
    ],
)
def test_an_untrusted_workspace_may_choose_only_some_stores(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: str, may: bool
) -> None:
    monkeypatch.chdir(workspace.root)
    (workspace.root / "link.sqlite").symlink_to(tmp_path / "elsewhere.sqlite")
    (workspace.root / "log.sqlite-wal").symlink_to(tmp_path / "elsewhere")
    workspace.config_path.write_text(f'store = "{store}"\n')
    assert trust_records.may_name(workspace.named_store(), str(workspace.root), OWN) == may
    is_database = store.lower().startswith("postgres")
    assert trust_records.may_name(workspace.named_store(), str(workspace.root), TRUSTED) == (
        not is_database
    )


def test_a_database_is_opened_if_the_user_has_named_it(workspace: Workspace) -> None:
    url = "postgresql://ada@db/catalog?sslmode=require"
    assert not trust_records.may_name(url, str(workspace.root), TRUSTED)
    trust_records.record_server(url)
    assert trust_records.may_name(url, str(workspace.root), OWN)
    assert not trust_records.may_name(f"{url}&host=evil", str(workspace.root), OWN)
    trust_records.record_server("postgresql://db:5432")
    assert trust_records.may_name("postgresql://ada@db/other", str(workspace.root), OWN)
    assert not trust_records.may_name(
        "postgresql://ada@db/other?host=evil", str(workspace.root), OWN
    )
    assert not trust_records.may_name("postgresql://ada@db,evil/other", str(workspace.root), OWN)
