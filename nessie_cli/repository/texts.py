"""What the commits of a history say, kept for the next process: a search for a rare word or author then reads only the commits that have it.

Nothing in a store leads from a text to commits. A search walks, and what it has walked past is kept: message, authors and committer of each
commit, in the order of the walk. The next one goes through that list, walks past what has been committed since, and walks on where the list ends. A
commit found so is read and tested like any other.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from heapq import merge
from itertools import accumulate, chain, compress, groupby, islice
from operator import itemgetter
from re import DOTALL, IGNORECASE, VERBOSE, Pattern, split, sub
from sys import byteorder
from zlib import crc32

from msgspec import MsgspecError, Struct, msgpack

from nessie_cli.kernel import history, leaping
from nessie_cli.kernel.forms import NO_COMMIT, Id
from nessie_cli.kernel.leaping import Found, newest_first
from nessie_cli.kernel.objects import Objects
from nessie_cli.repository.base import Sieve
from nessie_cli.repository.notes import Notes

VERSION = f"1 {byteorder}"
"""To be counted up where another form is written: other versions are ignored."""
_CHECK = 4
ROOM = 12 << 20
"""Bytes kept, about: what is behind them is walked."""
EACH = 64
"""Bytes of a commit beside its texts, about."""
_BATCH = 32
_PAIRS = 64
"""So many pairs of commits are compared to find out whether branches have only gone on."""
_SIZE = len(NO_COMMIT)
_STRUCTURE = frozenset("{}\\")

Times = Callable[[Collection[Id]], Mapping[Id, int] | None]
Speaker = tuple[tuple[str, ...], str]
"""Authors and committer."""
Said = tuple[int, Id, Speaker, str]
"""Of a commit: its time, negative, so that newer ones come first; its id, who made it, its message."""


class Texts(Struct, frozen=True, array_like=True):
    """The newest commits of the history of `starts` (over all parents), in the order of a walk. Those that follow are reachable from `rest`.

    Numbers are arrays of this machine, so that nothing is decoded that is not looked at: `times` microseconds (8 bytes each), `speakers` places in
    `people` (4 bytes), `ends` where each message ends in `messages` (4 bytes, characters).
    """

    starts: list[Id]
    rest: list[Id]
    ids: bytes
    times: bytes
    speakers: bytes
    ends: bytes
    messages: str
    people: list[Speaker]

    def __len__(self) -> int:
        return len(self.ids) // _SIZE

    def __contains__(self, id_: Id) -> bool:
        place = self.ids.find(id_)
        while place % _SIZE > 0 and place > 0:
            place = self.ids.find(id_, place + 1)
        return place >= 0

    def id_at(self, place: int) -> Id:
        """That of one of them."""
        return self.ids[place * _SIZE : (place + 1) * _SIZE]

    def said(self) -> Iterator[Said]:
        """What each says."""
        ends = memoryview(self.ends).cast("I")
        numbers = zip(memoryview(self.times).cast("q"), memoryview(self.speakers).cast("I"), (0, *ends), ends, strict=False)
        for place, (time, speaker, begin, end) in enumerate(numbers):
            yield -time, self.id_at(place), self.people[speaker], self.messages[begin:end]

    def saying(self, sieve: Sieve, until: int | None) -> Iterator[Id]:
        """Those that a sieve may pass: their texts match, and they are not younger than `until`."""
        places: Iterable[int] = range(len(self))
        if sieve.message is not None:
            places = self._matching(sieve.message)
        if until is not None:
            times = memoryview(self.times).cast("q")
            places = (place for place in places if times[place] <= until)
        if sieve.authors or sieve.committers:
            wanted = {number for number, speaker in enumerate(self.people) if _spoken(sieve, speaker)}
            speakers = memoryview(self.speakers).cast("I")
            places = (place for place in places if speakers[place] in wanted)
        return map(self.id_at, places)

    def _matching(self, pattern: Pattern[str]) -> Iterator[int]:
        words, messages = _needed_words(pattern), self.messages
        if pattern.flags & IGNORECASE:
            # Beyond ASCII more than capitals are the same.
            words = [word.lower() for word in words] if messages.isascii() and "".join(words).isascii() else []
            messages = messages.lower() if words else messages
        if words:
            having = merge(*(self._having(word, messages) for word in words))
            return (place for place, _ in groupby(having) if pattern.search(self._message(place)))
        ends = memoryview(self.ends).cast("I")
        each = map(messages.__getitem__, map(slice, chain((0,), ends), ends))
        return compress(range(len(self)), map(pattern.search, each))

    def _having(self, word: str, messages: str) -> Iterator[int]:
        """Those with a text, by one look at all messages together."""
        ends = memoryview(self.ends).cast("I")
        at = messages.find(word)
        while at >= 0:
            place = bisect_right(ends, at)
            yield place
            at = messages.find(word, ends[place])

    def _message(self, place: int) -> str:
        ends = memoryview(self.ends).cast("I")
        return self.messages[ends[place - 1] if place else 0 : ends[place]]


def _needed_words(pattern: Pattern[str]) -> list[str]:
    """Texts of which one stands in all that an expression matches; none where that is not seen at once."""
    text = sub(r"\\[AbBdDsSwWZ]", "\n", pattern.pattern)
    if pattern.flags & VERBOSE or not _STRUCTURE.isdisjoint(text):
        return []
    before, text = "", sub(r"\[\^?\]?[^\]]*\]", "\n", text)
    while before != text:
        before, text = text, sub(r"\([^()]*\)", "\n", text)
    words = [max(split(r".?[*?]|[.^$+\n]", way, flags=DOTALL), key=len) for way in text.split("|")]
    return words if all(words) else []


def _spoken(sieve: Sieve, speaker: Speaker) -> bool:
    authors, committer = speaker
    return (not sieve.authors or any(pattern.search(name) for pattern in sieve.authors for name in authors or (committer,))) and (
        not sieve.committers or any(pattern.search(committer) for pattern in sieve.committers)
    )


class Passed:
    """Notes what is said by the commits of a walk as they are consumed, in some `room` (bytes); `rest` leads to those that are not noted."""

    def __init__(self, starts: Iterable[Id], room: int) -> None:
        self.said: list[Said] = []
        self.rest = set(starts)
        self.room = room
        self.all = False
        """Whether the walk has come to its end, and everything was noted."""
        self._speakers: dict[Speaker, Speaker] = {}

    def noting(self, walk: Iterable[Found]) -> Iterator[Found]:
        """The same walk: newest first, so that a commit comes after all its children."""
        for id_, commit in walk:
            if self.room > 0:
                speaker = (commit.authors, commit.committer)
                if speaker not in self._speakers:
                    self._speakers[speaker] = speaker
                    self.room -= _size(commit.committer, *commit.authors)
                self.room -= _size(commit.message)
                self.said.append((-commit.time, id_, self._speakers[speaker], commit.message))
                self.rest.discard(id_)
                self.rest.update(commit.parents)
            yield id_, commit
        self.all = self.room > 0


def _size(*some: str) -> int:
    """Bytes of a commit with these texts, or a little more."""
    return EACH + sum(len(text) if text.isascii() else 4 * len(text) for text in some)


class KeptTexts:
    """Where they are kept: for each store those of one history, and those of one that begins at many commits (of all branches)."""

    def __init__(self, notes: Notes, *, many: bool = False) -> None:
        self._notes = notes
        self._name = "texts-many" if many else "texts"
        self.size = 0
        """Bytes that there were."""

    def known(self) -> Texts | None:
        """What was kept last; None where there is nothing that was written here."""
        kept = self._notes.read(self._name)
        data = kept[_CHECK:]
        self.size = len(kept)
        try:
            if data and crc32(data) == int.from_bytes(kept[:_CHECK], "big"):
                version, texts = msgpack.decode(data, type=tuple[str, Texts])
                return texts if version == VERSION else None
        except MsgspecError:
            # Of another version.
            pass
        return None

    def keep(self, texts: Texts) -> None:
        """Put these in their place."""
        data = msgpack.encode((VERSION, texts))
        self._notes.keep(self._name, crc32(data).to_bytes(_CHECK, "big") + data)

    def forget(self) -> None:
        """Begin anew the next time."""
        self._notes.keep(self._name, b"")


def nothing_about(starts: Iterable[Id]) -> Texts:
    """A list with nothing in it: all is still to be walked."""
    return Texts([*starts], [*starts], b"", b"", b"", b"", "", [])


def joined(known: Texts, said: Iterable[Said], starts: Iterable[Id], rest: Iterable[Id]) -> Texts:
    """What is known, and what is said by commits that are not in it."""
    rows = sorted([*known.said(), *said], key=itemgetter(0, 1))
    people: dict[Speaker, int] = {}
    return Texts(
        sorted(starts),
        sorted(set(rest) - {NO_COMMIT}),
        b"".join(row[1] for row in rows),
        array("q", (-row[0] for row in rows)).tobytes(),
        array("I", (people.setdefault(row[2], len(people)) for row in rows)).tobytes(),
        array("I", accumulate(len(row[3]) for row in rows)).tobytes(),
        "".join(row[3] for row in rows),
        list(people),
    )


class Search:
    """Looks for the commits of the history of `starts` that a sieve may pass, newest first, each among some that it may not.

    `times` answers when many commits were made, where it knows that without reading them; `room` is for bytes.
    """

    def __init__(
        self,
        objects: Objects,
        is_ancestor: leaping.IsAncestor,
        notes: Notes,
        starts: Iterable[Id],
        *,
        times: Times = lambda _: None,
        room: int = ROOM,
    ) -> None:
        self._room = room
        self._objects = objects
        self._is_ancestor = is_ancestor
        self._times = times
        self._starts = sorted(set(starts) - {NO_COMMIT})
        self._kept = KeptTexts(notes, many=len(self._starts) > 1)
        self._known = self._kept.known()
        self._base = self._shared(self._known) if self._known else None
        """Ancestors of the starts, or themselves, whose history is in the kept list as far as that goes."""

    def _shared(self, known: Texts) -> list[Id] | None:
        if known.starts == self._starts:
            return known.starts
        missing = sorted(set(known.starts) - set(self._starts))
        if len(self._objects.find_commits(missing)) < len(missing):
            # Those of another store that was here, or of a branch that is gone.
            return None
        if len(self._starts) == 1:
            (start,), (about,) = self._starts, known.starts
            base = start if start in known else history.common_first_parent(self._objects, about, start)
            return [base] if base == about or (base != NO_COMMIT and not known.rest) else None
        new = self._new(known.starts)
        few = len(missing) * len(new) <= _PAIRS
        followed = few and all(any(history.on_first_parents(self._objects, before, start) for start in new) for before in missing)
        return known.starts if followed else None

    def _new(self, base: Iterable[Id]) -> list[Id]:
        return sorted(set(self._starts) - set(base))

    @property
    def begins_with_something(self) -> bool:
        """Whether what is kept helps; else all is walked."""
        return self._base is not None

    def found(self, sieve: Sieve, until: int | None, worth: int) -> Iterator[Found]:
        """Over all parents. Cost: one read for each commit that is found, and for each that is not known yet.

        What was walked past is kept when the search ends, wherever that is, if it is `worth` it.
        """
        known = self._known if self._known and self._base else nothing_about(self._starts)
        base = self._base or self._starts
        whole = base == known.starts
        new = self._new(base)
        newer = Passed(new, self._room)
        older = Passed(known.rest, self._room - (self._kept.size if known is self._known else 0))
        since = newer.noting(history.reachable(self._objects, new, base) if new else ())
        said = self._read(known.saying(sieve, until))
        after = older.noting(history.reachable(self._objects, known.rest, times=self._times(known.rest))) if whole else ()
        try:
            yield from merge(since, said if whole else self._of(base[0], said, self._is_ancestor), after, key=newest_first)
        finally:
            if whole:
                # A list that was of no use here is not given up for one that is much shorter.
                other = self._known if self._known is not known else None
                self._keep(known, newer, older, max(worth, len(other) // 2 if other else 0))

    def found_on_line(self, sieve: Sieve, until: int | None) -> Iterator[Found]:
        """The same along first parents of the only start; nothing new is kept."""
        for id_, commit in history.first_parents(self._objects, *self._starts):
            if self._known and not self._known.rest and [id_] == self._base:
                yield from self._of(id_, self._read(self._known.saying(sieve, until)), lambda _, __: False)
                return
            yield id_, commit

    def _read(self, ids: Iterator[Id]) -> Iterator[Found]:
        while batch := list(islice(ids, _BATCH)):
            found = self._objects.find_commits(batch)
            yield from ((id_, found[id_]) for id_ in batch if id_ in found)

    def _of(self, base: Id, found: Iterator[Found], is_ancestor: leaping.IsAncestor) -> Iterator[Found]:
        while batch := list(islice(found, _BATCH)):
            yield from leaping.those_in(self._objects, is_ancestor, base, batch)

    def _keep(self, known: Texts, newer: Passed, older: Passed, least: int) -> None:
        if len(newer.said) >= least and newer.room < self._kept.size:
            # There is no room for both.
            self._kept.forget()
            return
        # The newer ones can only be added when all of them have been met: the list has no gaps.
        from_start = newer.all and self._starts != known.starts
        said = [*(newer.said if from_start else ()), *older.said]
        if len(said) >= least:
            self._kept.keep(joined(known, said, self._starts if from_start else known.starts, older.rest))
