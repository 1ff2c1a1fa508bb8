"""Decides, without I/O, whether the user trusts the files of a workspace.

A workspace is untrusted data until the user trusts it:

* `FOREIGN`: another user owns it. Nothing in it is used.
* `OWN`: it belongs to this user, who may have copied or cloned it. It is used as data: the
  current reference, the batch, a store inside its folder. It starts no program and names no
  file elsewhere.
* `TRUSTED`: the user made it with `nessie init`, or named it in `safe-directories`.

Ownership follows git's rules (CVE-2022-24765): the folder and its `.nessie/` must belong to the
effective user; for root under sudo, the user of SUDO_UID counts as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import Literal

    Trust = Literal["trusted", "own", "foreign"]

TRUSTED: Trust = "trusted"
OWN: Trust = "own"
FOREIGN: Trust = "foreign"
ROOT = 0
EVERYWHERE = "*"
_BELOW = "/*"


def decide(
    path: str,
    owners: Collection[int],
    *,
    uid: int,
    sudo_uid: int | None,
    safe: Iterable[str],
    recorded: bool,
) -> Trust:
    """Returns the trust in the workspace of a folder.

    `path` is resolved. `owners` are the user ids that own the folder and its `.nessie/`. `safe` are
    the entries of `safe-directories`, resolved. `recorded`: the user made this very workspace, and
    its owners are still the same.
    """
    if recorded or is_safe(path, safe):
        return TRUSTED
    return OWN if users(uid, sudo_uid).issuperset(owners) else FOREIGN


def users(uid: int, sudo_uid: int | None) -> frozenset[int]:
    """Returns the user ids whose files are the user's own. Only root may use SUDO_UID."""
    return frozenset({uid} if uid != ROOT or sudo_uid is None else {uid, sudo_uid})


def is_safe(path: str, safe: Iterable[str]) -> bool:
    """Returns whether an entry matches this folder: `FOLDER`, `FOLDER/*` or `*`."""
    return any(
        entry in (EVERYWHERE, path) or (entry.endswith(_BELOW) and path.startswith(entry[:-1]))
        for entry in safe
    )


def sudo_uid(text: str | None) -> int | None:
    """Returns the value of SUDO_UID, or None if it is not a user id."""
    return int(text) if text and text.isascii() and text.isdigit() else None


def owner_text(owners: Iterable[int]) -> str:
    """Returns the owners as text for a record."""
    return ",".join(map(str, sorted(set(owners))))


def record(path: str, owners: Iterable[int], identity: str) -> str:
    """Returns the record of a workspace: `OWNERS IDENTITY PATH`."""
    return f"{owner_text(owners)} {identity} {path}"


def is_recorded(
    records: Iterable[str], path: str, owners: Iterable[int], identity: str | None
) -> bool:
    """Returns whether the user made this very workspace and its owners have not changed since.

    `identity` is the one in its folder, or None without one. Another folder at the same path has
    another identity.
    """
    return identity is not None and record(path, owners, identity) in records
