"""The reference through which a caller sees a commit: rules name references, not hashes.

A commit is seen through a reference that the request named, if the commit is reachable from it:
`main@HASH` concerns `main` only while the commit belongs to it. Other commits are DETACHED, as in
the original server. If no rule allows that, a commit is still seen through any reference that the
caller may view and that reaches it, because the caller could have named it.
"""

from __future__ import annotations

from collections.abc import Iterator

from nessie_cli.model import NO_ANCESTOR, Reference
from nessie_cli.repository.reader import ReadableRepository
from nessie_cli.server.auth.rights import Rights
from nessie_cli.server.auth.rules import VIEW_REFERENCE

DETACHED = "DETACHED"


class Visibility:
    """The references that one request named, and through which it sees commits."""

    def __init__(self, repository: ReadableRepository, rights: Rights) -> None:
        self._repository = repository
        self._rights = rights
        self._named: dict[str, str] = {}
        self._through: dict[str, str] = {}

    def name(self, reference: Reference) -> None:
        """Adds a reference that the request names and the caller may view."""
        self._named[reference.name] = reference.hash

    def show(self, hash_: str, name: str) -> None:
        """Records that a commit was on a reference whose past the caller may see."""
        self._through.setdefault(hash_, name)

    def through(self, hash_: str) -> str:
        """Returns the reference through which a commit is seen, or DETACHED.

        Cost: ancestor tests.
        """
        known = self._through.get(hash_)
        if known is None:
            known = self._through[hash_] = self._find(hash_)
        return known

    def _find(self, hash_: str) -> str:
        return next(self.ways(hash_), DETACHED)

    def ways(self, hash_: str) -> Iterator[str]:
        """Yields the references through which the caller sees a commit, or could by naming them.

        Those that the request names come first, then DETACHED. Cost: ancestor tests.
        """
        yield from (name for name, head in self._named.items() if head == hash_)
        yield from (
            name
            for name, head in self._named.items()
            if head != hash_ and self._reaches(head, hash_)
        )
        if self._rights.may(VIEW_REFERENCE, DETACHED):
            yield DETACHED
        yield from (
            found.name
            for found in self._viewable()
            if found.name not in self._named and self._reaches(found.hash, hash_)
        )

    def _viewable(self) -> Iterator[Reference]:
        return (
            found
            for found in self._repository.references()
            if self._rights.may(VIEW_REFERENCE, found.name)
        )

    def _reaches(self, head: str, hash_: str) -> bool:
        return hash_ in (head, NO_ANCESTOR) or (
            head != NO_ANCESTOR and self._repository.is_ancestor(f"@{hash_}", f"@{head}")
        )
