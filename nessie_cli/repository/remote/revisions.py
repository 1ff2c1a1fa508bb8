"""Resolves revisions over REST v2. The server follows their steps.

Shortened hashes are searched in its newest commits.
"""

from __future__ import annotations

from nessie_cli.errors import AmbiguousHash, CommitNotFound, InvalidInput, ReferenceNotFound
from nessie_cli.model import NO_ANCESTOR, Reference, ReferenceType
from nessie_cli.repository.changes import AnyRevision
from nessie_cli.repository.remote import references
from nessie_cli.repository.remote.ancestry import Ancestry
from nessie_cli.repository.remote.session import RestSession
from nessie_cli.repository.remote.transport import segment
from nessie_cli.revisions import Revision, RevisionStep, parse

_HASH_DIGITS = 64
_SHORTEST = 4
_CANDIDATES = 10
_SEARCHED = 10_000
"""Commits that are searched for a shortened hash: REST v2 has no look-up for one."""


def resolve(session: RestSession, revision: AnyRevision) -> Reference:
    """Returns the reference and hash that a revision names."""
    spec = parse(revision) if isinstance(revision, str) else revision
    reference = _named(session, spec)
    for step in spec.steps:
        # One request for each: the original server heeds only the last of several steps.
        reference = Reference(
            reference.type, reference.name, _stepped(session, reference.hash, step)
        )
    return reference


def existing(session: RestSession, hash_: str) -> str:
    """Returns the complete hash of a commit that the server has.

    Raises `CommitNotFound` or `AmbiguousHash`.
    """
    hash_ = hash_.lower()
    if not is_hash(hash_):
        raise InvalidInput(f"{hash_!r} is not a commit hash (4 to 64 hexadecimal digits)")
    if len(hash_) < _HASH_DIGITS:
        return _complete(session, hash_)
    return (
        hash_
        if hash_ == NO_ANCESTOR or hash_ in session.hashes
        else _effective(session, f"@{hash_}")
    )


def is_hash(text: str) -> bool:
    """Returns whether a text can be a commit hash, whole or shortened."""
    return _SHORTEST <= len(text) <= _HASH_DIGITS and all(
        c in "0123456789abcdefABCDEF" for c in text
    )


def _named(session: RestSession, spec: Revision) -> Reference:
    if spec.name is None:
        return Reference(ReferenceType.DETACHED, "", existing(session, spec.hash or ""))
    if spec.hash is None and spec.name in session.hashes:
        # Named by the server before. No reference has the name of a whole hash.
        return Reference(ReferenceType.DETACHED, "", spec.name)
    try:
        reference = references.get(session, spec.name)
    except ReferenceNotFound:
        if spec.hash is None and is_hash(spec.name):
            return Reference(ReferenceType.DETACHED, "", existing(session, spec.name))
        raise
    return (
        Reference(reference.type, reference.name, existing(session, spec.hash))
        if spec.hash
        else reference
    )


def _stepped(session: RestSession, hash_: str, step: RevisionStep) -> str:
    if hash_ == NO_ANCESTOR:
        return NO_ANCESTOR
    revision = f"@{hash_}{step}"
    target = session.steps.get(revision)
    if target is None:
        target = session.steps[revision] = _effective(session, revision)
    return target


def _effective(session: RestSession, revision: str) -> str:
    answer = session.transport.get(f"trees/{segment(revision)}/entries", {"max-records": "1"})
    return session.reference(answer, "effectiveReference").hash


def _complete(session: RestSession, short: str) -> str:
    subjects = {NO_ANCESTOR: "the empty history"} if NO_ANCESTOR.startswith(short) else {}
    heads = {reference.hash for reference in references.list_all(session)} - {NO_ANCESTOR}
    searched = 0
    for entry in Ancestry(session).reachable(sorted(heads), []):
        if entry.hash.startswith(short):
            subjects[entry.hash] = entry.meta.subject
        searched += 1
        if searched == _SEARCHED or len(subjects) > _CANDIDATES:
            break
    if not subjects:
        where = (
            f" among the newest {_SEARCHED:,}; write the whole hash"
            if searched == _SEARCHED
            else ""
        )
        raise CommitNotFound(f"Commit '{short}' not found{where}", short)
    if len(subjects) > 1:
        raise _ambiguous(short, subjects)
    return next(iter(subjects))


def _ambiguous(short: str, subjects: dict[str, str]) -> AmbiguousHash:
    """Returns the error for a shortened hash that several commits share."""
    pairs = list(subjects.items())[:_CANDIDATES]
    names = ", ".join(f"{hash_[: max(8, len(short) + 4)]} ({subject})" for hash_, subject in pairs)
    more = " and more" if len(subjects) > _CANDIDATES else ""
    return AmbiguousHash(f"hash '{short}' is ambiguous: {names}{more}", pairs)
