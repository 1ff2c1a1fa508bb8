"""Token files: contents, callers of tokens, and changes of the file while a server runs."""

import json
import multiprocessing
import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from nessie_cli.errors import InvalidInput, NotAllowed, NotFound
from nessie_cli.server.auth.identity import Caller, Credentials, Unauthenticated, credentials
from nessie_cli.server.auth.tokens import (
    FILE_KIND,
    add_token,
    list_tokens,
    read_tokens,
    remove_tokens,
)
from nessie_cli.server.runtime.watched_files import SECRET, WatchedFile

PATIENCE = 120
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def made(path, name="ada", roles=(), expires=None, now=NOW):
    return add_token(path, name, roles, expires, now)


def caller(path, token, name=None, now=NOW):
    return read_tokens(path.read_bytes()).caller(Credentials(token, name), now)


def test_a_token_identifies_its_name_and_roles(tmp_path):
    path = tmp_path / "tokens"
    token, entry = made(path, "ada", ["reader", "writer", "reader"])
    assert caller(path, token) == Caller("ada", ("reader", "writer"))
    assert list_tokens(path) == [entry]
    assert entry.created == NOW


def test_the_file_contains_no_token_and_is_private(tmp_path):
    path = tmp_path / "tokens"
    token, entry = made(path)
    text = path.read_text()
    assert token not in text
    assert token.removeprefix(f"nessie_{entry.id}_") not in text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_name_may_have_several_tokens(tmp_path):
    path = tmp_path / "tokens"
    first, _ = made(path, "ada", ["a"])
    second, _ = made(path, "ada", ["b"])
    assert first != second
    assert [caller(path, token).roles for token in (first, second)] == [("a",), ("b",)]


def test_invalid_tokens_are_refused(tmp_path):
    path = tmp_path / "tokens"
    token, entry = made(path)
    other, _ = made(path, "eve")
    last = "A" if token[-1] != "A" else "B"
    wrong = [
        token[:-1] + last,
        token[:-1],
        token + "A",
        "",
        "nessie_",
        entry.hash,
        other[:19] + token[19:],
        token.upper(),
    ]
    assert [found for found in wrong if caller(path, found) is not None] == []


def test_the_user_name_must_belong_to_the_token(tmp_path):
    path = tmp_path / "tokens"
    token, _ = made(path, "ada")
    assert caller(path, token, "ada")
    assert caller(path, token, "eve") is None


def test_an_expired_token_is_refused(tmp_path):
    path = tmp_path / "tokens"
    token, _ = made(path, expires=NOW + timedelta(hours=1))
    assert caller(path, token, now=NOW + timedelta(minutes=59))
    assert caller(path, token, now=NOW + timedelta(hours=1)) is None


def test_an_expired_token_cannot_be_created(tmp_path):
    with pytest.raises(InvalidInput, match="has passed"):
        made(tmp_path / "tokens", expires=NOW)
    assert not (tmp_path / "tokens").exists()


def test_entries_are_removed_by_id_or_name(tmp_path):
    path = tmp_path / "tokens"
    path.write_text("# ours\n\n")
    path.chmod(0o600)
    (a, first), (b, _), (c, _) = made(path, "ada"), made(path, "ada"), made(path, "bob")
    assert remove_tokens(path, first.id) == [first]
    assert [caller(path, token) is None for token in (a, b, c)] == [True, False, False]
    assert len(remove_tokens(path, "ada")) == 1
    assert [caller(path, token) is None for token in (a, b, c)] == [True, True, False]
    assert path.read_text().startswith("# ours\n\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(found.name for found in tmp_path.iterdir()) == ["tokens"]
    with pytest.raises(NotFound, match="nobody"):
        remove_tokens(path, "nobody")


def test_entries_are_removed_from_the_target_of_a_symbolic_link(tmp_path):
    path, link = tmp_path / "tokens", tmp_path / "link"
    link.symlink_to("tokens")
    token, entry = made(link)
    assert caller(path, token) == Caller("ada")
    assert remove_tokens(link, "ada") == [entry]
    assert link.is_symlink()
    assert caller(path, token) is None


def test_an_entry_is_appended_on_a_new_line(tmp_path):
    path = tmp_path / "tokens"
    a, _ = made(path, "ada")
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    b, _ = made(path, "bob")
    assert [caller(path, token).name for token in (a, b)] == ["ada", "bob"]


def change_many(path, number, together):
    """Creates and revokes tokens; the last one remains. Exits with 0 if nothing failed."""
    together.wait(PATIENCE)
    for round_ in range(10):
        _, entry = made(path, f"caller-{number}-{round_}")
        if round_ < 9:
            assert remove_tokens(path, entry.id) == [entry]


def test_concurrent_changes_are_not_lost(tmp_path):
    path = tmp_path / "tokens"
    for number in range(4):
        made(path, f"leaving-{number}")
    context = multiprocessing.get_context("fork")
    together = context.Barrier(4)
    processes = [
        context.Process(target=change_many, args=(path, number, together)) for number in range(4)
    ]
    for process in processes:
        process.start()
    for number in range(4):
        assert len(remove_tokens(path, f"leaving-{number}")) == 1
    for process in processes:
        process.join(PATIENCE)
    assert [process.exitcode for process in processes] == [0] * 4
    assert sorted(entry.name for entry in list_tokens(path)) == [
        f"caller-{number}-9" for number in range(4)
    ]
    assert [found.name for found in tmp_path.iterdir()] == ["tokens"]


LINE = {"id": "0123456789ab", "name": "ada", "hash": "sha256:" + "0" * 64}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hash": "sha256:zz"}, "hash"),
        ({"hash": "secret"}, "hash"),
        ({"id": "x"}, "id"),
        ({"name": ""}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"roles": ["a", " b"]}, "roles"),
        ({"roles": "a"}, "roles"),
        ({"expires": "2027-01-01T00:00:00"}, "time zone"),
        ({"expires": "tomorrow"}, "expires"),
        ({"password": "x"}, "password"),
    ],
)
def test_an_invalid_line_is_reported_by_number(tmp_path, change, message):
    path = tmp_path / "tokens"
    path.write_text("# first\n" + json.dumps({**LINE, **change}) + "\n")
    path.chmod(0o600)
    with pytest.raises(InvalidInput, match=rf"tokens: line 2: .*{message}"):
        list_tokens(path)


def test_ids_must_be_unique(tmp_path):
    with pytest.raises(InvalidInput, match=r"line 2.*twice"):
        read_tokens((json.dumps(LINE) + "\n" + json.dumps(LINE)).encode())


@pytest.mark.parametrize("mode", [0o604, 0o602, 0o660, 0o644, 0o666, 0o601])
def test_a_file_that_others_can_read_is_refused(tmp_path, mode):
    path = tmp_path / "tokens"
    made(path)
    path.chmod(mode)
    for use in (lambda: list_tokens(path), lambda: made(path), lambda: remove_tokens(path, "ada")):
        with pytest.raises(NotAllowed, match="chmod 600"):
            use()


# -- a file that changes -------------------------------------------------------------------------
def watched(path, reports):
    return WatchedFile(path, SECRET, FILE_KIND, read_tokens, reports.append)


def test_a_changed_file_is_read_again(tmp_path):
    path, reports = tmp_path / "tokens", []
    old, _ = made(path, "ada")
    file = watched(path, reports)
    new, _ = made(path, "bob")
    remove_tokens(path, "ada")
    assert file.value().caller(Credentials(new), NOW) == Caller("bob")
    assert file.value().caller(Credentials(old), NOW) is None
    assert reports == []


@pytest.mark.parametrize("harm", ["garbage", "gone", "mode", "folder"])
def test_the_last_valid_tokens_apply_while_the_file_is_invalid(tmp_path, harm):
    path, reports = tmp_path / "tokens", []
    token, _ = made(path, "ada")
    good = path.read_bytes()
    file = watched(path, reports)
    if harm == "garbage":
        path.write_text("{")
    elif harm == "mode":
        path.chmod(0o644)
    else:
        path.unlink()
    if harm == "folder":
        path.mkdir()
    for _ in range(3):
        assert file.value().caller(Credentials(token), NOW) == Caller("ada")
    assert len(reports) == 1
    assert str(path) in reports[0]
    assert "stays in force" in reports[0]
    assert token not in reports[0]
    if harm == "folder":
        path.rmdir()
    path.write_bytes(good)
    path.chmod(0o600)
    new, _ = made(path, "bob")
    assert file.value().caller(Credentials(new), NOW) == Caller("bob")
    assert len(reports) == 1


def test_nobody_gets_the_old_tokens_while_the_new_ones_are_read(tmp_path):
    path, is_reading, may_end = tmp_path / "tokens", threading.Event(), threading.Event()
    token, _ = made(path, "ada")
    made(path, "bob")

    def read_slowly(data):
        if b'"ada"' not in data:
            is_reading.set()
            assert may_end.wait(30)
        return read_tokens(data)

    file = WatchedFile(path, SECRET, FILE_KIND, read_slowly, [].append)
    remove_tokens(path, "ada")
    with ThreadPoolExecutor(2) as threads:
        threads.submit(file.value)
        assert is_reading.wait(30)
        other = threads.submit(lambda: file.value().caller(Credentials(token), NOW))
        with pytest.raises(TimeoutError):
            other.result(0.05)
        may_end.set()
        assert other.result(30) is None


def test_a_replaced_file_of_equal_size_and_time_is_noticed(tmp_path):
    path, reports = tmp_path / "tokens", []
    token, _ = made(path, "ada")
    found = path.stat()
    file = watched(path, reports)
    beside = tmp_path / "beside"
    beside.write_bytes(path.read_bytes().replace(b'"ada"', b'"bob"'))
    beside.chmod(0o600)
    os.utime(beside, ns=(found.st_atime_ns, found.st_mtime_ns))
    beside.replace(path)
    assert file.value().caller(Credentials(token), NOW) == Caller("bob")


# -- the header ----------------------------------------------------------------------------------
def test_credentials_are_read_from_the_header():
    assert credentials(b"") is None
    assert credentials(b"  ") is None
    assert credentials(b"Bearer abc") == Credentials("abc")
    assert credentials(b"bearer   abc ") == Credentials("abc")
    assert credentials(b"Basic YWRhOnNlY3JldDp4") == Credentials("secret:x", "ada")


@pytest.mark.parametrize(
    "text",
    [
        b"Bearer",
        b"Bearer ",
        b"abc",
        b"Digest x",
        b"Basic !!",
        b"Basic YWRh",
        b"Basic YWRhOg==",
        b"Bearer \xff",
        b"Bearer " + b"a" * 20_000,
    ],
)
def test_other_credentials_are_refused_and_never_repeated(text):
    with pytest.raises(Unauthenticated) as caught:
        credentials(text)
    assert b"invalid_token" in caught.value.challenge
    assert text.split()[-1].decode("latin-1") not in caught.value.message or text in (
        b"Bearer",
        b"Bearer ",
        b"Digest x",
    )
