"""What the store says to a keystroke: names of references, commits with their subjects, the next element of a key."""

from __future__ import annotations

from nessie_cli.cli.completion import keys
from nessie_cli.kernel import glance as kernel
from nessie_cli.store.glance import Glance, path_of
from nessie_cli.workspace.glance import Place

# Importing `typing` takes longer than a keystroke may; checkers know this name without the import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Candidates = list[tuple[str, str]]

HEAD = "HEAD"
DEFAULT_BRANCH = ".default-branch"
TYPE_NAMES = {1: "iceberg-table", 2: "delta-table", 3: "iceberg-view", kernel.NAMESPACE: "namespace", 5: "udf"}
DIGITS = 12
"""As many digits of a hash as are offered."""
SHORTEST = 4
LONGEST = 64
_RECENT = 20
_STEPS = 10
_FARTHEST = 2000
"""Commits that a keystroke walks back at most."""
_LONGEST_NUMBER = 5
_SAME_BEGINNING = 1000
"""Commits with one beginning; of more only some could be shown, and a shell would take what these have in common for all that there is."""
_DESCRIBED = 200
"""References that are told with the subject of their commit; more would take longer than a keystroke may."""


class Catalog:
    """The store that the line, the environment or the workspace names; raises `LookupError` where there is none that can be looked into."""

    def __init__(self, place: Place, url: str | None) -> None:
        path = path_of(url) if url else None
        if path is None:
            raise LookupError(url)
        self._store = Glance(path)
        self._current = place.reference() or self._store.setting(DEFAULT_BRANCH) or ""

    def close(self) -> None:
        """Let go of the store."""
        self._store.close()

    # -- references -----------------------------------------------------------------------------------------------------------------

    def references(self, word: str, kind: str | None = None) -> Candidates:
        """References, or only branches or tags, whose name begins so."""
        found = self._store.references(word, kind)
        told = self._subject if len(found) <= _DESCRIBED else _nothing
        return [(name, _said(of.lower(), told(target))) for name, of, target in found]

    def moved(self, word: str) -> Candidates:
        """References, also those that were deleted."""
        return [*self.references(word), *((name, "deleted") for name in self._store.deleted(word))]

    def moves(self, name: str | None) -> Candidates:
        """The numbers of a reference's moves."""
        return [(str(number), _said(operation, message)) for number, operation, message in self._store.moves(name or self._current, _RECENT)]

    # -- commits ----------------------------------------------------------------------------------------------------------------

    def revisions(self, word: str) -> Candidates:
        """What names a commit and begins so: references, hashes, steps back."""
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
        """Commits by the beginning of their hash; the newest ones of a reference where there is none."""
        if not digits:
            return [(id_.hex()[:DIGITS], subject) for id_, subject in self._history(of, _RECENT)]
        if len(digits) > LONGEST or any(c not in "0123456789abcdef" for c in digits):
            return []
        found = self._store.ids(kernel.COMMIT_KIND, digits, _SAME_BEGINNING + 1)
        if len(found) > _SAME_BEGINNING:
            return []
        length = DIGITS if len(digits) <= DIGITS else LONGEST
        return [(id_.hex()[:length], self._subject(id_)) for id_ in found]

    def _steps(self, base: str) -> Candidates:
        revision, step = base[:-1], base[-1]
        if step == "~":
            history = self._history(revision or HEAD, _STEPS + 1)
            return [(f"{base}{number}", subject) for number, (_, subject) in enumerate(history) if number]
        start = self._resolve(revision or HEAD)
        data = self._store.get(start) if start else None
        parents = kernel.parents(data) if data else []
        return [(f"{base}{number}", self._subject(id_)) for number, id_ in enumerate(parents, 1) if self._store.get(id_)]

    def _history(self, revision: str, limit: int) -> Iterator[tuple[bytes, str]]:
        id_ = self._resolve(revision)
        data = self._store.get(id_) if id_ else None
        while id_ and data and limit:
            yield id_, kernel.subject(data)
            id_, limit = kernel.parents(data)[0], limit - 1
            data = self._store.get(id_)

    def _resolve(self, revision: str) -> bytes | None:
        """The commit of a name or hash with `~N` and `^N` behind it; None where it is not found near by."""
        base = revision.replace("^", "~").partition("~")[0]
        id_ = self._named(base or HEAD)
        for step in revision[len(base) :].replace("~", " ~").replace("^", " ^").split():
            digits = step[1:] or "1"
            near = digits.isdecimal() and len(digits) < _LONGEST_NUMBER and 0 < int(digits) <= _FARTHEST
            id_ = self._back(id_, step[0], int(digits)) if near else None
        return id_

    def _named(self, base: str) -> bytes | None:
        name, _, digits = base.partition("@")
        if digits:
            name = digits
        elif name in ("", HEAD):
            return self._resolve(self._current) if self._current not in ("", HEAD) else None
        found = None if digits else self._store.reference(name)
        if found is None and SHORTEST <= len(name) <= LONGEST and all(c in "0123456789abcdef" for c in name):
            found = next(iter(self._store.ids(kernel.COMMIT_KIND, name, 1)), None)
        return found

    def _back(self, id_: bytes | None, step: str, count: int) -> bytes | None:
        parent = count if step == "^" else 1
        for _ in range(1 if step == "^" else count):
            data = self._store.get(id_) if id_ else None
            parents = kernel.parents(data) if data else []
            id_ = parents[parent - 1] if parent <= len(parents) else None
        return id_

    def _subject(self, id_: bytes) -> str:
        data = self._store.get(id_)
        return kernel.subject(data) if data else ""

    # -- keys -------------------------------------------------------------------------------------------------------------------

    def keys(self, word: str, revision: str | None = None) -> Candidates:
        """Keys, one element more than what has been typed; what has keys below it ends with a dot."""
        typed = keys.begun(word)
        id_ = self._resolve(revision or HEAD)
        data = self._store.get(id_) if id_ else None
        if typed is None or data is None:
            return []
        above, whole, beginning = typed
        found = []
        for element, payload in kernel.elements(self._store.get, kernel.root(data), above, keys.plain_beginning(beginning)):
            text = keys.text_of(element)
            if text.startswith(beginning):
                below = payload in (None, kernel.NAMESPACE)
                found.append((f"{whole}{text}{'.' if below else ''}", TYPE_NAMES.get(payload or kernel.NAMESPACE, "")))
        return found


def _nothing(_: bytes) -> str:
    return ""


def _said(*parts: str) -> str:
    return ": ".join(part for part in parts if part)


def using(place: Place, ask: Callable[[Any], Candidates]) -> Candidates:
    """The answer of the store; none where there is no store, or where it cannot be read."""
    url = place.store()
    if url and url.startswith(("http://", "https://")):
        from nessie_cli.cli.completion.server import using_server

        return using_server(place, url, ask)
    try:
        catalog = Catalog(place, url)
    except LookupError:
        return []
    try:
        return ask(catalog)
    finally:
        catalog.close()
