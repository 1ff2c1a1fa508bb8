"""Bearer tokens of `nessie serve`, and the file with their hashes.

A token is `nessie_ID_SECRET`: the id (48 bits, not secret) identifies the entry of the file, the
secret has 256 random bits. The file contains the SHA-256 of the secret without salt: salted or slow
hashes protect passwords, which can be guessed, but 256 random bits cannot. A slow hash would only
let strangers keep the server busy. The file has one JSON object per line; empty lines and lines
with # are ignored.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from msgspec import DecodeError, Struct, json

from nessie_cli.errors import InvalidInput, NotFound, StoreUnavailable
from nessie_cli.server.auth.identity import Caller, Credentials, check_name
from nessie_cli.server.runtime.watched_files import SECRET, read_guarded

FILE_KIND = "token file"
_TOKEN = re.compile(r"nessie_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_HASH = re.compile(r"sha256:[0-9a-f]{64}")
_ID = re.compile(r"[0-9a-f]{12}")
_NEW_FILE = 0o600


class TokenEntry(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A line of a token file.

    `hash` is `sha256:` and the hexadecimal SHA-256 of the token's secret; `expires` has a time
    zone.
    """

    id: str
    name: str
    hash: str
    roles: tuple[str, ...] = ()
    expires: datetime | None = None
    created: datetime | None = None

    def __post_init__(self) -> None:
        """Raise `InvalidInput` for invalid fields."""
        check_name(self.name, "name")
        for role in self.roles:
            check_name(role, "roles")
        if not _ID.fullmatch(self.id):
            raise InvalidInput("id must be 12 hexadecimal digits")
        if not _HASH.fullmatch(self.hash):
            raise InvalidInput(
                "hash must be 'sha256:' and 64 hexadecimal digits; `nessie token new` makes one"
            )
        if self.expires is not None and self.expires.tzinfo is None:
            raise InvalidInput("expires must have a time zone, such as 2027-01-31T00:00:00Z")

    @property
    def caller(self) -> Caller:
        """The caller whom the token stands for."""
        return Caller(self.name, self.roles)

    def has_expired(self, now: datetime) -> bool:
        """Returns whether the token has expired."""
        return self.expires is not None and self.expires <= now


_decode = json.Decoder(TokenEntry).decode
_encode = json.Encoder().encode
_NO_HASH = "sha256:" + "0" * 64


class TokenTable:
    """The tokens of a file."""

    def __init__(self, entries: Sequence[TokenEntry]) -> None:
        self._by_id: Mapping[str, TokenEntry] = {entry.id: entry for entry in entries}

    def caller(self, given: Credentials, now: datetime) -> Caller | None:
        """Returns the caller of a token, or None if it is not valid."""
        entry = self.entry(given, now)
        return None if entry is None else entry.caller

    def entry(self, given: Credentials, now: datetime) -> TokenEntry | None:
        """Returns the entry of a token, or None if the token is not valid.

        It may be unknown, wrong, expired, or another user's. Takes the same time for wrong secrets.
        """
        match = _TOKEN.fullmatch(given.token)
        if not match:
            return None
        entry = self._by_id.get(match[1])
        right = hmac.compare_digest(_hash(match[2]), entry.hash if entry else _NO_HASH)
        if entry is None or not right or entry.has_expired(now):
            return None
        return entry if given.name in (None, "", entry.name) else None

    def entry_of(self, id_: str, hash_: str, now: datetime) -> TokenEntry | None:
        """Returns the entry with an id if it has this hash and has not expired, or None."""
        entry = self._by_id.get(id_)
        if entry is None or entry.hash != hash_ or entry.has_expired(now):
            return None
        return entry


def is_ours(token: str) -> bool:
    """Returns whether a token has the form of those that this module creates."""
    return _TOKEN.fullmatch(token) is not None


def _hash(secret: str) -> str:
    return "sha256:" + hashlib.sha256(secret.encode()).hexdigest()


# -- the file ------------------------------------------------------------------------------------
def read_tokens(data: bytes) -> TokenTable:
    """Reads the tokens of a file. Raises `InvalidInput` that names the line."""
    return TokenTable([entry for _, entry in _entries(data)])


def _entries(data: bytes) -> list[tuple[int, TokenEntry]]:
    entries: list[tuple[int, TokenEntry]] = []
    ids: set[str] = set()
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith(b"#"):
            continue
        try:
            entry = _decode(line)
        except (DecodeError, InvalidInput) as error:
            raise InvalidInput(f"line {number}: {error}") from None
        if entry.id in ids:
            raise InvalidInput(f"line {number}: the id {entry.id} occurs twice")
        ids.add(entry.id)
        entries.append((number, entry))
    return entries


def list_tokens(path: Path) -> list[TokenEntry]:
    """Returns the entries of a token file, in its order."""
    try:
        return [entry for _, entry in _entries(read_guarded(path, SECRET, FILE_KIND))]
    except InvalidInput as error:
        raise InvalidInput(
            error.message if str(path) in error.message else f"{FILE_KIND} {path}: {error.message}"
        ) from None


def add_token(
    path: Path, name: str, roles: Sequence[str], expires: datetime | None, now: datetime
) -> tuple[str, TokenEntry]:
    """Creates a token and appends its entry to a file, which only its owner can read.

    Creates the file if it does not exist. Returns the token, which is stored nowhere, and its
    entry. Raises `InvalidInput` and `NotAllowed` for an unusable name or file.
    """
    secret = secrets.token_urlsafe(32)
    entry = TokenEntry(
        secrets.token_hex(6),
        name,
        _hash(secret),
        tuple(dict.fromkeys(roles)),
        expires,
        now.replace(microsecond=0),
    )
    if expires is not None and expires <= now:
        raise InvalidInput(f"the expiry {expires.isoformat()} has passed")
    with _locked(path, os.O_RDWR | os.O_CREAT | os.O_APPEND) as descriptor:
        list_tokens(path)
        size = os.lseek(descriptor, 0, os.SEEK_END)
        begins = b"" if size == 0 or os.pread(descriptor, 1, size - 1) == b"\n" else b"\n"
        _write_all(descriptor, begins + _encode(entry) + b"\n")
    return f"nessie_{entry.id}_{secret}", entry


def remove_tokens(path: Path, which: str) -> list[TokenEntry]:
    """Removes the entries of an id or a name from a file, atomically.

    A server that uses the file refuses those tokens from then on.
    """
    list_tokens(path)
    with _locked(path, os.O_RDONLY) as descriptor:
        removed = [entry for entry in list_tokens(path) if which in (entry.id, entry.name)]
        if not removed:
            raise NotFound(f"{FILE_KIND} {path} has no token with the id or name '{which}'", which)
        data = read_guarded(path, SECRET, FILE_KIND)
        gone = {number for number, entry in _entries(data) if entry in removed}
        remaining = b"".join(
            line
            for number, line in enumerate(data.splitlines(keepends=True), 1)
            if number not in gone
        )
        # Replacing a symbolic link would leave the tokens in the file that it points to.
        _replace(path.resolve(), remaining, os.fstat(descriptor).st_mode & 0o777)
    return removed


@contextmanager
def _locked(path: Path, flags: int) -> Iterator[int]:
    """Opens a token file that no other process changes meanwhile. Waits for the others."""
    try:
        while True:
            descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, _NEW_FILE)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                # A file that was replaced while this process waited is no longer the token file.
                if _is_at(path, descriptor):
                    yield descriptor
                    return
            finally:
                os.close(descriptor)
    except OSError as error:
        raise StoreUnavailable(f"{FILE_KIND} {path} cannot be written: {error.strerror}") from None


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _replace(path: Path, data: bytes, mode: int) -> None:
    """Writes a new file beside the old one and replaces it."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, _NEW_FILE)
    try:
        _write_all(descriptor, data)
        os.fchmod(descriptor, mode)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
    os.fsync(descriptor)
