"""The permissions of the caller of one request.

Every check of the API goes through here to the rules; without rules, everything is allowed. Rules
name references, not hashes: `Visibility` finds the reference through which a caller sees a commit.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import islice

from nessie_cli.errors import DamagedObject, NotAllowed
from nessie_cli.model import CONTENT_TYPES, NO_ANCESTOR, ContentKey, Reference
from nessie_cli.repository.reader import ReadableRepository
from nessie_cli.revisions import Revision
from nessie_cli.server.auth.identity import Caller
from nessie_cli.server.auth.rules import (
    CREATE_REFERENCE,
    VIEW_REFERENCE,
    Question,
    Readable,
    Rules,
)
from nessie_cli.server.auth.run_rules import FENCED, RunRules
from nessie_cli.wire.keys import encode_legacy

_TYPES = ("", *sorted(CONTENT_TYPES))


class Rights:
    """The permissions of a caller in one request; `api` is the version of the API."""

    def __init__(self, caller: Caller, rules: Rules | RunRules, api: int) -> None:
        self.caller = caller
        self._rules = rules
        self._api = api
        # Without rules about types, one decision is enough.
        self._types = _TYPES if rules.depend_on_content_type else _TYPES[:1]

    def may(
        self,
        op: str,
        ref: str = "",
        key: ContentKey | None = None,
        content_type: str = "",
        *,
        config: str = "",
    ) -> bool:
        """Returns whether a rule allows an operation on a reference, a key or a setting."""
        path = encode_legacy(key) if key is not None else ""
        return self._rules.allow(
            self.caller, self._api, Question(op, ref, path, content_type, config)
        )

    def rule_for(
        self, op: str, ref: str = "", key: ContentKey | None = None, content_type: str = ""
    ) -> str | None:
        """Returns the name of the rule that allows an operation, or None."""
        path = encode_legacy(key) if key is not None else ""
        question = Question(op, ref, path, content_type, "")
        return self._rules.rule_for(self.caller, self._api, question)

    def may_somehow(self, op: str, ref: str, key: ContentKey) -> bool:
        """Returns whether an operation is allowed for any type of content under a key."""
        return any(self.may(op, ref, key, content_type) for content_type in self._types)

    def may_always(self, op: str, ref: str, key: ContentKey) -> bool:
        """Returns whether an operation is allowed for every type of content under a key."""
        return all(self.may(op, ref, key, content_type) for content_type in self._types)

    def require(
        self,
        op: str,
        ref: str = "",
        key: ContentKey | None = None,
        content_type: str = "",
        *,
        config: str = "",
    ) -> None:
        """Raises `NotAllowed` with the original server's message unless this is allowed."""
        if not self.may(op, ref, key, content_type, config=config):
            raise self.refusal(op, ref, key, config=config)

    def checks(self) -> Checks:
        """Returns checks whose failures are reported in one error."""
        return Checks(self)

    def readable(self, through: str) -> Readable:
        """Returns commits whose whole history the caller may read through a reference."""
        return self._rules.readable(self.caller, self._api, through)

    def remember_readable(self, through: str, readable: Readable) -> None:
        """Remembers that the caller may read these commits and their ancestors."""
        self._rules.remember_readable(self.caller, self._api, through, readable)

    def refusal(
        self, op: str, ref: str = "", key: ContentKey | None = None, *, config: str = ""
    ) -> NotAllowed:
        """Returns the error for a forbidden operation. It names only what the caller named."""
        who = f"role '{self.caller.roles[0] if self.caller.roles else self.caller.name}'"
        if self.caller.run and op in FENCED:
            # The role alone may be allowed to do so.
            who = (
                f"a program of run {self.caller.run}, which can write the branch"
                f" run/{self.caller.run} and begin no other run,"
            )
        if key is not None:
            return NotAllowed(f"'{op}' is not allowed for {who} on content '{encode_legacy(key)}'")
        if config:
            return NotAllowed(
                f"'{op}' is not allowed for {who} on repository config type '{config}'"
            )
        return NotAllowed(
            f"'{op}' is not allowed for {who} on reference '{ref}'"
            if ref
            else f"'{op}' is not allowed for {who}"
        )


MOST_FAILURES = 100
"""Checks end after as many failures: a caller without rights must not keep others waiting."""


class Checks:
    """Checks that are reported together: one error names their failures, joined by ", "."""

    def __init__(self, rights: Rights) -> None:
        self._rights = rights
        self._viewed: set[str] = set()
        # A check that fails twice is named once.
        self._failed: dict[str, None] = {}

    def need(
        self, op: str, ref: str, key: ContentKey | None = None, content_type: str = ""
    ) -> Checks:
        """Checks an operation. All but creating a reference include the permission to view it."""
        if op != CREATE_REFERENCE and ref not in self._viewed:
            self._viewed.add(ref)
            self.need(VIEW_REFERENCE, ref)
            if op == VIEW_REFERENCE:
                return self
        return self.note(op, ref, key, allowed=self._rights.may(op, ref, key, content_type))

    def note(self, op: str, ref: str, key: ContentKey | None = None, *, allowed: bool) -> Checks:
        """Adds the result of a check. Raises `NotAllowed` after many failures."""
        if not allowed:
            self._failed[self._rights.refusal(op, ref, key).message] = None
            if len(self._failed) >= MOST_FAILURES:
                self.done()
        return self

    def done(self) -> None:
        """Raises `NotAllowed` if a check has failed."""
        if self._failed:
            raise NotAllowed(", ".join(self._failed))


DETACHED = "DETACHED"
SEARCH_SECONDS = 0.5
"""Seconds of processor time in which a request searches references that it does not name.

It may do so on the writing thread, for which all other writers wait.
"""
_FIRST_SEARCHED, _MOST_SEARCHED = 8, 1_000
"""The references that are searched together: few at first, because one often suffices."""


class Visibility:
    """The references that one request named, and through which it sees commits."""

    def __init__(self, repository: ReadableRepository, rights: Rights) -> None:
        self._repository = repository
        self._rights = rights
        self._named: dict[str, str] = {}
        self._through: dict[str, str] = {}
        self._last: Reference | None = None
        """The last other reference that had a commit."""
        self._searched = 0.0
        """Seconds of processor time in which other references were searched."""

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
        name = self._through.get(hash_)
        if name is None:
            name = self._through[hash_] = self._find(hash_)
        return name

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
        yield from self._others(hash_)

    def _others(self, hash_: str) -> Iterator[str]:
        """Yields the references that have a commit, of those that the request does not name.

        The last one that had a commit comes first: it often has the next commit, too. A request
        searches the others for a short time only. Then commits count as being on none of them.
        """
        last, size = self._last, _FIRST_SEARCHED
        if last is not None and last.name not in self._named and self._reaches(last.hash, hash_):
            yield last.name
        others = (
            each for each in self._viewable() if each.name not in self._named and each != last
        )
        while self._searched < SEARCH_SECONDS:
            start = time.thread_time()
            batch = list(islice(others, size))
            having = self._having(batch, hash_, start + SEARCH_SECONDS - self._searched)
            self._searched += time.thread_time() - start
            for self._last in having:
                yield self._last.name
            if len(batch) < size:
                break
            size = min(4 * size, _MOST_SEARCHED)

    def _having(
        self, references: Sequence[Reference], hash_: str, until: float
    ) -> Sequence[Reference]:
        """Returns those that have a commit; none after a processor time."""
        if hash_ == NO_ANCESTOR:
            return references
        heads = {reference.hash for reference in references} - {NO_ANCESTOR}
        try:
            having = self._repository.descendants_among(
                heads, hash_, lambda: time.thread_time() > until
            )
        except TimeoutError:
            return []
        except DamagedObject:
            # A damaged commit hides none of the other references.
            having = {
                head for head in heads if time.thread_time() < until and self._reaches(head, hash_)
            }
        return [reference for reference in references if reference.hash in having]

    def _viewable(self) -> Iterator[Reference]:
        return (
            reference
            for reference in self._repository.references()
            if self._rights.may(VIEW_REFERENCE, reference.name)
        )

    def _reaches(self, head: str, hash_: str) -> bool:
        return hash_ in (head, NO_ANCESTOR) or (
            head != NO_ANCESTOR
            and self._repository.is_ancestor(Revision(None, hash_), Revision(None, head))
        )
