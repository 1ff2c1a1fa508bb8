"""What a Nessie server says to a keystroke: as `catalog`, by a request that may take half a second and is kept for the next keystrokes.

A server that does not answer completes nothing, and is left alone as long as an answer would be kept. What is kept is in the user's cache folder,
readable by the user alone: names, hashes and subjects, no secrets. Credentials are those of every other command; one that would have to be asked for
first (an OAuth2 token that has run out) is not.
"""

from __future__ import annotations

import json
import os
import time
from threading import Thread
from urllib.parse import quote, urlencode

from nessie_cli.cli.completion import keys
from nessie_cli.workspace.locations import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nessie_cli.workspace.glance import Place

    Candidates = list[tuple[str, str]]
    Fetch = Callable[[str], Any]

PATIENCE = 0.5
"""Seconds that a keystroke waits for a server, whatever it is that takes longer: names, connecting, an answer that drips in."""
KEPT = 10.0
"""Seconds that an answer, or that there was none, is kept."""
HEAD = "HEAD"
DEFAULT = "-"
"""How the API calls the default branch."""
DIGITS = 12
SHORTEST = 4
_DIGITS = frozenset("0123456789abcdef")
_RECENT = 20
_MOST = 5000
_NOT_IN_PATHS = frozenset(".*\x00\x1d")
"""What an element of a key holds that servers of different versions escape in different ways: below it nothing is offered."""


def _nothing(_: str) -> Any:
    return None


def _subject(meta: Any) -> str:
    subject: str = meta["message"].partition("\n")[0]
    return subject


class Server:
    """One server, and the reference that is worked on (None: its default branch).

    `answer` gives the JSON behind a path, None for none; `kept` does so only where that takes no request.
    """

    def __init__(self, answer: Fetch, current: str | None, kept: Fetch = _nothing) -> None:
        self._answer = answer
        self._kept = kept
        self._current = current or DEFAULT

    def references(self, word: str, kind: str | None = None) -> Candidates:
        """References, or only branches or tags, whose name begins so; with the subject of their commit where it is known already."""
        found = self._records(f"trees?max-records={_MOST}", "references")
        subjects = {meta["hash"]: _subject(meta) for meta in self._newest(HEAD, self._kept)}
        chosen = [one for one in found if one["name"].startswith(word) and kind in (None, one["type"])]
        return [(one["name"], ": ".join(filter(None, (one["type"].lower(), subjects.get(one["hash"]))))) for one in chosen]

    moved = references
    """Servers do not tell which references were deleted."""

    @staticmethod
    def moves(_: str | None) -> Candidates:
        """Nothing: the moves of references are no part of the API."""
        return []

    def revisions(self, word: str) -> Candidates:
        """What names a commit and begins so: references, and the newest hashes behind an `@`."""
        name, at, digits = word.partition("@")
        if at:
            return [(f"{name}@{hash_}", subject) for hash_, subject in self.hashes(digits, name)]
        found = [(HEAD, "the current reference")] if HEAD.startswith(word) else []
        return [*found, *self.references(word), *(self.hashes(word) if len(word) >= SHORTEST and _DIGITS.issuperset(word) else [])]

    def range(self, word: str) -> Candidates:
        """A revision, or a range whose second end has been begun."""
        start, found, end = word.rpartition("..." if "..." in word else "..")
        return [(start + found + text, said) for text, said in self.revisions(end)]

    def hashes(self, digits: str, of: str = HEAD) -> Candidates:
        """The newest commits of a reference whose hash begins so."""
        length = max(DIGITS, len(digits))
        return [(meta["hash"][:length], _subject(meta)) for meta in self._newest(of, self._answer) if meta["hash"].startswith(digits)]

    def _newest(self, of: str, answer: Fetch) -> list[Any]:
        """The metadata of the newest commits of a reference."""
        path = f"trees/{self._path(of)}/history?max-records={_RECENT}"
        return [entry["commitMeta"] for entry in self._records(path, "logEntries", answer)]

    def keys(self, word: str, revision: str | None = None) -> Candidates:
        """Keys, one element more than what has been typed; what has keys below it ends with a dot."""
        typed = keys.begun(word)
        if typed is None or any(_NOT_IN_PATHS & set(element) for element in typed[0]):
            return []
        above, whole, beginning = typed
        query = urlencode({"max-records": _MOST} | ({"prefix-key": ".".join(above)} if above else {}))
        found: dict[str, str] = {}
        for entry in self._records(f"trees/{self._path(revision or HEAD)}/entries?{query}", "entries"):
            elements = entry["name"]["elements"]
            if tuple(elements[: len(above)]) == above and len(elements) > len(above):
                text = keys.text_of(elements[len(above)])
                below = len(elements) > len(above) + 1 or entry["type"] == "NAMESPACE"
                if text.startswith(beginning) and (below or f"{text}." not in found):
                    found[f"{text}." if below else text] = "namespace" if below else entry["type"].lower().replace("_", "-")
        return [(whole + text, said) for text, said in found.items()]

    def _path(self, revision: str) -> str:
        """A revision as a part of a path."""
        bare = revision or HEAD
        return quote(self._current + bare.removeprefix(HEAD) if bare.startswith(HEAD) else bare, safe="")

    def _records(self, path: str, name: str, answer_of: Fetch | None = None) -> list[Any]:
        answer = (answer_of or self._answer)(path)
        found = answer.get(name) if isinstance(answer, dict) else None
        return found if isinstance(found, list) else []


def using_server(place: Place, url: str, ask: Callable[[Any], Candidates], patience: float = PATIENCE) -> Candidates:
    """The answer of a server; none where it does not give one in time, or gives one that is none."""
    current = place.reference()
    # One candidate may take two requests, but not twice the time.
    end = time.monotonic() + patience
    kept = Kept(cache(), lambda path: _asked(place, url, path, max(end - time.monotonic(), 0)))
    server = Server(lambda path: kept.answer(f"{url} {path}", path), current, lambda path: kept.young(f"{url} {path}"))
    try:
        return ask(server)
    except (LookupError, TypeError, AttributeError):
        return []


class Kept:
    """Answers in a file of the cache folder, given again while they are young. `fetch` asks for one that is not there."""

    def __init__(self, folder: str, fetch: Fetch, now: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._path = os.path.join(folder, "completion.json")  # noqa: PTH118 (importing pathlib takes longer than all the rest)
        self._fetch = fetch
        self._now = now

    def answer(self, name: str, path: str) -> Any:
        """The answer of this name; the one behind `path` is asked for where there is no young one."""
        now = self._now()
        known = {key: value for key, value in self._read().items() if 0 <= now - value[0] < KEPT}
        if name not in known:
            known[name] = [now, self._fetch(path)]
            self._write(known)
        return known[name][1]

    def young(self, name: str) -> Any:
        """The answer of this name where it is there, and young; else None."""
        begun, answer = self._read().get(name, (0, None))
        return answer if 0 <= self._now() - begun < KEPT else None

    def _read(self) -> dict[str, list[Any]]:
        try:
            with open(self._path, encoding="utf-8") as file:  # noqa: PTH123
                found: dict[str, list[Any]] = json.load(file)
            return {key: value for key, value in found.items() if isinstance(value[0], int | float)}
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            # None yet, or not what was written here: it is written anew.
            return {}

    def _write(self, known: dict[str, list[Any]]) -> None:
        beside = f"{self._path}.{os.getpid()}"
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)  # noqa: PTH103
            with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:  # noqa: PTH123
                json.dump(known, file)
            os.replace(beside, self._path)  # noqa: PTH105
        except OSError:
            # A cache that cannot be written only makes the next keystroke slower.
            return


def within(patience: float, request: Callable[[], Any]) -> Any:
    """What a request answers, None where it takes longer; what is still under way then ends with the process."""
    found: list[Any] = []
    thread = Thread(target=lambda: found.append(request()), daemon=True)
    thread.start()
    thread.join(patience)
    return found[0] if found else None


def _asked(place: Place, url: str, path: str, patience: float) -> Any:
    """The answer to a request with the user's credentials, certificates and proxy; None where these are not as they have to be."""
    from nessie_cli.cli.context import Invocation
    from nessie_cli.errors import NessieError

    call = Invocation(())
    call.options.quiet = True
    for name, value in place.options.items():
        call.options.take(name.removeprefix("--"), value)
    try:
        access = call.access(url)
        if access is None:
            return None
        from nessie_cli.cli.completion.asking import ask

        return within(patience, lambda: ask(url, path, access, patience))
    except NessieError:
        # A command tells what is wrong with the settings; a keystroke is silent.
        return None
