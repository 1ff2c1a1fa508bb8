"""Completion of references, commits and ranges."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from nessie_cli.errors import AmbiguousHash
from nessie_cli.model import NO_ANCESTOR, ReferenceType
from nessie_cli.repository.base import Repository
from nessie_cli.revisions import Revision

HEAD = "HEAD"
DIGITS = 12
"""Digits of a completed hash."""
SHORTEST = 4
LONGEST = 64
_RECENT = 20
_RECENT_MOVES = 1000
_MOST_CANDIDATES = 10
"""The maximum number of hashes that `AmbiguousHash` lists."""
_STEPS = 10
_DESCRIBED = 200
"""Beyond this number of references, commit subjects are omitted."""

Candidates = list[tuple[str, str]]


class Revisions:
    """Completes revisions of a repository, with `current` as HEAD."""

    def __init__(self, repository: Repository, current: str) -> None:
        self._repository = repository
        self._current = current

    def references(self, word: str, kind: str | None = None) -> Candidates:
        """Returns references, or only branches or tags, whose name begins with the word."""
        references = list(
            self._repository.references(ReferenceType(kind) if kind else None, prefix=word)
        )
        references.sort(key=lambda reference: reference.name)
        described = len(references) <= _DESCRIBED and not self._repository.is_remote
        return [
            (
                reference.name,
                _joined(reference.type.lower(), self._subject(reference.hash) if described else ""),
            )
            for reference in references
        ]

    def moved(self, word: str) -> Candidates:
        """Returns references, including recently deleted ones."""
        there = {reference.name for reference in self._repository.references(prefix=word)}
        entries = self._repository.reflog(limit=_RECENT_MOVES)
        moved = {entry.reference for entry in entries if entry.reference.startswith(word)}
        return [*self.references(word), *((name, "deleted") for name in sorted(moved - there))]

    def moves(self, name: str | None) -> Candidates:
        """Returns the numbers of the operations on a reference."""
        moves = self._repository.reflog(name or self._current, limit=_RECENT)
        return [(str(move.number), _joined(move.operation, move.message)) for move in moves]

    def revisions(self, word: str) -> Candidates:
        """Returns revisions that begin with the word: references, hashes, steps back."""
        name, at, digits = word.partition("@")
        base = word.rstrip("0123456789")
        if base[-1:] in ("~", "^") and base:
            return self._steps(base)
        if at:
            return [
                (f"{name}@{hash_}", subject) for hash_, subject in self.hashes(digits, name or HEAD)
            ]
        head = [(HEAD, f"the current reference, {self._current}")] if HEAD.startswith(word) else []
        hashes = self.hashes(word) if len(word) >= SHORTEST else []
        return [*head, *self.references(word), *hashes]

    def range(self, word: str) -> Candidates:
        """Returns revisions, or ranges whose second end is incomplete."""
        start, dots, end = word.rpartition("..." if "..." in word else "..")
        return [(start + dots + text, description) for text, description in self.revisions(end)]

    def hashes(self, digits: str, of: str = HEAD) -> Candidates:
        """Returns commits by the first digits of their hash, or the newest ones without digits."""
        if not digits:
            return [(hash_[:DIGITS], subject) for hash_, subject in self._history(of, _RECENT)]
        if not SHORTEST <= len(digits) <= LONGEST or any(
            c not in "0123456789abcdef" for c in digits
        ):
            return []
        try:
            hashes = [self._repository.resolve(Revision(None, digits)).hash]
        except AmbiguousHash as error:
            # If the error does not list all hashes, a shell would complete the common prefix of
            # those listed.
            few = len(error.candidates) < _MOST_CANDIDATES
            hashes = [hash_ for hash_, _ in error.candidates] if few else []
        length = DIGITS if len(digits) <= DIGITS else LONGEST
        return [(hash_[:length], self._subject(hash_)) for hash_ in hashes if hash_ != NO_ANCESTOR]

    def resolve(self, revision: str) -> Revision:
        """Returns the commit of a revision."""
        base = revision.replace("^", "~").partition("~")[0]
        spec = (
            self._current + revision[len(base) :]
            if base in ("", "@", HEAD, f"{HEAD}@")
            else revision
        )
        return Revision(None, self._repository.resolve(spec.removeprefix(f"{HEAD}@")).hash)

    def _steps(self, base: str) -> Candidates:
        revision, step = base[:-1], base[-1]
        if step == "~":
            history = self._history(revision or HEAD, _STEPS + 1)
            return [
                (f"{base}{number}", subject)
                for number, (_, subject) in enumerate(history)
                if number
            ]
        newest = next(self._repository.log(self.resolve(revision)), None)
        parents = newest.meta.parents if newest else ()
        return [
            (f"{base}{number}", self._subject(hash_))
            for number, hash_ in enumerate(parents, 1)
            if hash_ != NO_ANCESTOR
        ]

    def _history(self, revision: str, limit: int) -> Iterator[tuple[str, str]]:
        for entry in islice(self._repository.log(self.resolve(revision)), limit):
            yield entry.hash, entry.meta.subject

    def _subject(self, hash_: str) -> str:
        newest = next(self._repository.log(Revision(None, hash_)), None)
        return newest.meta.subject if newest else ""


def _joined(*parts: str) -> str:
    return ": ".join(part for part in parts if part)
