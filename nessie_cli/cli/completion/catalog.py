"""Completion from an embedded store: names of references, commits with their subjects, the next element of a key."""

from __future__ import annotations

from itertools import islice

from nessie_cli.cli.completion import keys
from nessie_cli.commitspec import CommitSpec
from nessie_cli.errors import AmbiguousHash, NessieError
from nessie_cli.model import NO_ANCESTOR, ContentKey, KeyRange, ReferenceType
from nessie_cli.render.fields import type_label
from nessie_cli.repository.opening import connect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from nessie_cli.repository.base import Repository
    from nessie_cli.workspace.glance import Place

    Candidates = list[tuple[str, str]]

HEAD = "HEAD"
DIGITS = 12
"""Digits of a hash that are offered."""
SHORTEST = 4
LONGEST = 64
_RECENT = 20
_RECENT_MOVES = 1000
_MOST_CANDIDATES = 10
"""Hashes that `AmbiguousHash` names at most."""
_STEPS = 10
_DESCRIBED = 200
"""With more references than this, the subjects of their commits are left out."""


class Catalog:
    """A repository in which words are looked up, and the reference that is worked on."""

    def __init__(self, repository: Repository, current: str | None) -> None:
        self._repository = repository
        self._current = current or repository.config().default_branch

    # -- references -----------------------------------------------------------------------------------------------------------------

    def references(self, word: str, kind: str | None = None) -> Candidates:
        """References, or only branches or tags, whose name begins so."""
        found = list(self._repository.references(ReferenceType(kind) if kind else None, prefix=word))
        found.sort(key=lambda reference: reference.name)
        subject = self._subject if len(found) <= _DESCRIBED else _nothing
        return [(reference.name, _said(reference.type.lower(), subject(reference.hash))) for reference in found]

    def moved(self, word: str) -> Candidates:
        """References, also those that were deleted not long ago."""
        there = {reference.name for reference in self._repository.references(prefix=word)}
        moved = {entry.reference for entry in self._repository.reflog(limit=_RECENT_MOVES) if entry.reference.startswith(word)}
        return [*self.references(word), *((name, "deleted") for name in sorted(moved - there))]

    def moves(self, name: str | None) -> Candidates:
        """The numbers of a reference's moves."""
        found = self._repository.reflog(name or self._current, limit=_RECENT)
        return [(str(entry.number), _said(entry.operation, entry.message)) for entry in found]

    # -- commits ----------------------------------------------------------------------------------------------------------------

    def revisions(self, word: str) -> Candidates:
        """Revisions that begin so: references, hashes, steps back."""
        name, at, digits = word.partition("@")
        base = word.rstrip("0123456789")
        if base[-1:] in ("~", "^") and base:
            return self._steps(base)
        if at:
            return [(f"{name}@{hash_}", subject) for hash_, subject in self.hashes(digits, name or HEAD)]
        found = [(HEAD, f"the current reference, {self._current}")] if HEAD.startswith(word) else []
        return [*found, *self.references(word), *(self.hashes(word) if len(word) >= SHORTEST else [])]

    def range(self, word: str) -> Candidates:
        """A revision, or a range whose second end has been begun."""
        dots = "..." if "..." in word else ".."
        start, found, end = word.rpartition(dots)
        return [(start + found + text, said) for text, said in self.revisions(end)]

    def hashes(self, digits: str, of: str = HEAD) -> Candidates:
        """Commits by the beginning of their hash; without one the newest commits of a reference."""
        if not digits:
            return [(hash_[:DIGITS], subject) for hash_, subject in self._history(of, _RECENT)]
        if not SHORTEST <= len(digits) <= LONGEST or any(c not in "0123456789abcdef" for c in digits):
            return []
        try:
            found = [self._repository.resolve(CommitSpec(None, digits)).hash]
        except AmbiguousHash as error:
            # With more candidates than the error names, a shell would take what these have in common for all of them.
            found = [hash_ for hash_, _ in error.candidates] if len(error.candidates) < _MOST_CANDIDATES else []
        length = DIGITS if len(digits) <= DIGITS else LONGEST
        return [(hash_[:length], self._subject(hash_)) for hash_ in found if hash_ != NO_ANCESTOR]

    def _steps(self, base: str) -> Candidates:
        revision, step = base[:-1], base[-1]
        if step == "~":
            history = self._history(revision or HEAD, _STEPS + 1)
            return [(f"{base}{number}", subject) for number, (_, subject) in enumerate(history) if number]
        newest = next(self._repository.log(self._resolve(revision)), None)
        parents = newest.meta.parents if newest else ()
        return [(f"{base}{number}", self._subject(hash_)) for number, hash_ in enumerate(parents, 1) if hash_ != NO_ANCESTOR]

    def _history(self, revision: str, limit: int) -> Iterator[tuple[str, str]]:
        for entry in islice(self._repository.log(self._resolve(revision)), limit):
            yield entry.hash, entry.meta.subject

    def _resolve(self, revision: str) -> CommitSpec:
        base = revision.replace("^", "~").partition("~")[0]
        spec = self._current + revision[len(base) :] if base in ("", "@", HEAD, f"{HEAD}@") else revision
        return CommitSpec(None, self._repository.resolve(spec.removeprefix(f"{HEAD}@")).hash)

    def _subject(self, hash_: str) -> str:
        newest = next(self._repository.log(CommitSpec(None, hash_)), None)
        return newest.meta.subject if newest else ""

    # -- keys -------------------------------------------------------------------------------------------------------------------

    def keys(self, word: str, revision: str | None = None) -> Candidates:
        """Keys, one element more than what has been typed; what has keys below it ends with a dot."""
        typed = keys.begun(word)
        if typed is None:
            return []
        above, whole, beginning = typed
        found = []
        for element, type_ in self._elements(self._resolve(revision or HEAD), above, keys.plain_beginning(beginning)):
            text = keys.text_of(element)
            if text.startswith(beginning):
                found.append((f"{whole}{text}{'.' if type_ == 'namespace' else ''}", type_))
        return found

    def _elements(self, at: CommitSpec, above: tuple[str, ...], begun: str) -> Iterator[tuple[str, str]]:
        """The elements right below a key that begin so, each with the type of its content; keys further below are skipped."""
        last = begun
        while True:
            start = (*above, last) if last else above
            for entry in self._repository.entries(at, KeyRange(minimum=ContentKey(start) if start else None)):
                elements = entry.key.elements
                if elements == above:
                    continue
                if elements[: len(above)] != above or not elements[len(above)].startswith(begun):
                    return
                element = elements[len(above)]
                type_ = type_label(entry.type) if len(elements) == len(above) + 1 else "namespace"
                yield element, type_
                if type_ == "namespace":
                    # No character of a key sorts before the space: this is behind everything below the element.
                    last = f"{element} "
                    break
            else:
                return


def _nothing(_: str) -> str:
    return ""


def _said(*parts: str) -> str:
    return ": ".join(part for part in parts if part)


def using(place: Place, url: str, ask: Callable[[Any], Candidates]) -> Candidates:
    """The answer of an embedded store; none if it cannot be read."""
    try:
        # A keystroke changes nothing, so it migrates nothing.
        with connect(url, migrate=False) as repository:
            return ask(Catalog(repository, place.reference()))
    except NessieError:
        return []
