"""Whether the files of a workspace are the user's word: a decision over facts, without I/O.

A workspace is untrusted data until the user trusts it:

* `FOREIGN`: another user owns it. Nothing in it is used.
* `OWN`: it belongs to this user, who may have copied or cloned it from another user. It is used as data: the current
  reference, the batch, a store inside its folder. It starts no program and names no file elsewhere.
* `TRUSTED`: the user made it with `nessie init`, or named it in `safe-directories`.

Ownership is decided as git decides it (CVE-2022-24765): the folder and its `.nessie/` have to belong to the effective
user; for root under sudo, the user of SUDO_UID counts as well.
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
    """The trust in the workspace of a folder.

    `path` is resolved. `owners` are the user ids that own the folder and its `.nessie/`. `safe` are the entries of
    `safe-directories`, resolved. `recorded`: the user made the workspace, and its owners are still the same.
    """
    if recorded or is_safe(path, safe):
        return TRUSTED
    return OWN if users(uid, sudo_uid).issuperset(owners) else FOREIGN


def users(uid: int, sudo_uid: int | None) -> frozenset[int]:
    """The user ids whose files count as the user's own. Only root may claim to act for SUDO_UID."""
    return frozenset({uid} if uid != ROOT or sudo_uid is None else {uid, sudo_uid})


def is_safe(path: str, safe: Iterable[str]) -> bool:
    """Whether an entry names this folder: itself, with `/*` a folder above it, with `*` every folder."""
    return any(
        entry in (EVERYWHERE, path) or (entry.endswith(_BELOW) and path.startswith(entry[:-1]))
        for entry in safe
    )


def sudo_uid(text: str | None) -> int | None:
    """The value of SUDO_UID; None if it is no user id."""
    return int(text) if text and text.isascii() and text.isdigit() else None


def owner_text(owners: Iterable[int]) -> str:
    """Owners as a record keeps them."""
    return ",".join(map(str, sorted(set(owners))))


def is_recorded(records: Iterable[str], path: str, owners: Iterable[int]) -> bool:
    """Whether the user made this workspace and its owners are still those of that time. A record is `OWNERS PATH`."""
    return f"{owner_text(owners)} {path}" in records
