"""History over REST v2: logs by pages along first parents; what has to know merge parents walks them here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from nessie_cli.commitspec import CommitSpec
from nessie_cli.errors import CommitNotFound
from nessie_cli.model import NO_ANCESTOR, CommitMeta, ContentKey, LogEntry
from nessie_cli.repository.base import AheadBehind
from nessie_cli.repository.changes import Revision
from nessie_cli.repository.remote.ancestry import Ancestry
from nessie_cli.repository.remote.references import RemoteReferences, cel_text
from nessie_cli.repository.remote.session import understood
from nessie_cli.repository.remote.transport import Query, segment
from nessie_cli.wire import answers, keys

_LONGEST_FILTER = 3000
"""Characters: a filter stands in the URL, and servers take about 8,000."""


class RemoteHistory(RemoteReferences):
    """The verbs about commits."""

    def _history(self, start: str, more: Query | None = None, *, operations: bool, growing: int = 0) -> Iterator[LogEntry]:
        """Commits from a hash on along first parents, or by what `more` says, page by page."""
        if start == NO_ANCESTOR:
            return
        path, query = f"trees/{segment('@' + start)}/history", {"fetch": "ALL" if operations else None, **(more or {})}
        for entry in self._session.pages(path, "logEntries", query, answers.decode_log_entry, growing=growing):
            self._known.add(entry.hash)
            yield with_operations(entry) if operations else entry

    def _log_page(self, start: str, limit: int, *, operations: bool) -> list[LogEntry]:
        query: Query = {"fetch": "ALL" if operations else None, "max-records": str(limit)}
        found = self._transport.get(f"trees/{segment('@' + start)}/history", query)
        entries = understood(found, lambda found: [answers.decode_log_entry(entry) for entry in found["logEntries"]], "history")
        return [with_operations(entry) for entry in entries] if operations else entries

    def _walker(self, *, operations: bool) -> Ancestry:
        """Who walks over all parents. With operations one of its own, which forgets: they can be large."""
        return Ancestry(lambda start, limit: self._log_page(start, limit, operations=True)) if operations else self._ancestry

    def log(self, start: Revision, *, until: str | None = None, operations: bool = False, all_parents: bool = False) -> Iterator[LogEntry]:
        """See `Repository`; the height of a commit is not on the wire, it is 0."""
        first, last = self._hash(start), self._existing(until) if until else None
        walk = self._walker(operations=operations).reachable([first], []) if all_parents else self._history(first, operations=operations)
        for entry in walk:
            yield entry
            if entry.hash == last:
                return

    def log_excluding(self, start: Revision, exclude: Sequence[Revision], *, operations: bool = False) -> Iterator[LogEntry]:
        """See `Repository`."""
        hidden = [self._hash(revision) for revision in exclude]
        yield from self._walker(operations=operations).reachable([self._hash(start)], hidden)

    def log_of_key(self, start: Revision, key: ContentKey, *, operations: bool = False) -> Iterator[LogEntry]:
        """See `Repository`; the server looks through the history."""
        for entry in self._history(self._hash(start), {"filter": _changes([key])}, operations=True):
            if any(operation.key == key for operation in entry.operations or ()):
                yield entry if operations else LogEntry(entry.meta, entry.height)

    def commit_at(self, revision: Revision) -> LogEntry:
        """See `Repository`."""
        found = self._hash(revision)
        if found == NO_ANCESTOR:
            raise CommitNotFound("this is the beginning of the history: there is no commit", NO_ANCESTOR)
        return self._log_page(found, 1, operations=True)[0]

    def last_change(self, at: Revision, key: ContentKey) -> CommitMeta | None:
        """See `Repository`."""
        return self.last_changes(self._hash(at), [key]).get(key)

    def last_changes(self, at: str, wanted: Iterable[ContentKey]) -> dict[ContentKey, CommitMeta]:
        """The newest commit that changed each key, for those that have one: many keys in one walk of the server."""
        found: dict[ContentKey, CommitMeta] = {}
        for some in _in_filters(sorted(set(wanted))):
            missing = set(some)
            for entry in self._history(at, {"filter": _changes(some)}, operations=True) if missing else ():
                for key in {operation.key for operation in entry.operations or ()} & missing:
                    found[key] = entry.meta
                    missing.discard(key)
                if not missing:
                    break
        return found

    def merge_base(self, a: Revision, b: Revision) -> str:
        """See `Repository`; one read for each page of history since it."""
        return self._ancestry.merge_base(self._hash(a), self._hash(b))

    def is_ancestor(self, ancestor: Revision, descendant: Revision) -> bool:
        """See `Repository`."""
        wanted, first = self._hash(ancestor), self._hash(descendant)
        return wanted in (NO_ANCESTOR, first) or any(entry.hash == wanted for entry in self._ancestry.reachable([first], []))

    def ahead_behind(self, of: Revision, base: Revision) -> AheadBehind:
        """See `Repository`."""
        return self._ancestry.ahead_behind(self._hash(of), self._hash(base))


def at_hash(hash_: str) -> CommitSpec:
    """The revision of a hash."""
    return CommitSpec(None, hash_)


def with_operations(entry: LogEntry) -> LogEntry:
    """A commit without operations has none on the wire; asked for, they are an empty list."""
    return entry if entry.operations is not None else LogEntry(entry.meta, entry.height, ())


def _changes(wanted: Sequence[ContentKey]) -> str:
    names = ", ".join(cel_text(keys.encode_legacy(key)) for key in wanted)
    return f"operations.exists(op, op.encodedKey in [{names}])"


def _in_filters(wanted: Sequence[ContentKey]) -> Iterator[Sequence[ContentKey]]:
    """The keys in groups whose filters are short enough."""
    group: list[ContentKey] = []
    for key in wanted:
        if group and len(_changes([*group, key])) > _LONGEST_FILTER:
            yield group
            group = []
        group.append(key)
    if group:
        yield group
