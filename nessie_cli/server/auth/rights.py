"""What the caller of one request may do: each question that the API asks goes through here, to the rules or, where there are none, to yes."""

from __future__ import annotations

from collections.abc import Sequence

from nessie_cli.errors import NotAllowed
from nessie_cli.model import CONTENT_TYPES, ContentKey
from nessie_cli.server.auth.identity import Caller
from nessie_cli.server.auth.rules import CREATE_REFERENCE, VIEW_REFERENCE, Question, Rules
from nessie_cli.wire.keys import encode_legacy

_TYPES = ("", *sorted(CONTENT_TYPES))


class Rights:
    """The rights of a caller in one request; `api` is the version of the API that is asked."""

    def __init__(self, caller: Caller, rules: Rules, api: int) -> None:
        self.caller = caller
        self._rules = rules
        self._api = api

    def may(
        self,
        op: str,
        ref: str = "",
        key: ContentKey | None = None,
        content_type: str = "",
        *,
        config: str = "",
    ) -> bool:
        """Whether a rule allows an operation on a reference, or on a content of a type under a key there, or on a type of configuration."""
        path = encode_legacy(key) if key is not None else ""
        return self._rules.allow(
            self.caller, self._api, Question(op, ref, path, content_type, config)
        )

    def may_somehow(self, op: str, ref: str, key: ContentKey) -> bool:
        """Whether an operation is allowed on some content under a key, whichever type it may have: for keys of which nothing is known."""
        return any(self.may(op, ref, key, content_type) for content_type in _TYPES)

    def require(
        self,
        op: str,
        ref: str = "",
        key: ContentKey | None = None,
        content_type: str = "",
        *,
        config: str = "",
    ) -> None:
        """Raise `NotAllowed`, in the original's words, unless this is allowed."""
        if not self.may(op, ref, key, content_type, config=config):
            raise self.refusal(op, ref, key, config=config)

    def checks(self) -> Checks:
        """Several checks, of which all that fail are named in one error."""
        return Checks(self)

    def readable_heads(self, through: str) -> list[str]:
        """Commits of which this caller may read, through a reference, every content that they and their ancestors changed."""
        return self._rules.readable_heads(self.caller, through)

    def remember_readable(self, through: str, hashes: Sequence[str]) -> None:
        """Remember that the caller may read these commits and their ancestors."""
        self._rules.remember_readable(self.caller, through, hashes)

    def refusal(
        self, op: str, ref: str = "", key: ContentKey | None = None, *, config: str = ""
    ) -> NotAllowed:
        """The error for an operation that no rule allows. It names what the caller has named, nothing else."""
        who = f"role '{self.caller.roles[0] if self.caller.roles else self.caller.name}'"
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


class Checks:
    """Checks that are made together, as the original makes them: one error names all that fail, joined by ", "."""

    def __init__(self, rights: Rights) -> None:
        self._rights = rights
        self._viewed: set[str] = set()
        # A check that fails twice is named once.
        self._failed: dict[str, None] = {}

    def need(
        self, op: str, ref: str, key: ContentKey | None = None, content_type: str = ""
    ) -> Checks:
        """Note whether an operation is allowed. Everything but creating a reference includes the right to view it."""
        if op != CREATE_REFERENCE and ref not in self._viewed:
            self._viewed.add(ref)
            self.need(VIEW_REFERENCE, ref)
            if op == VIEW_REFERENCE:
                return self
        return self.note(op, ref, key, allowed=self._rights.may(op, ref, key, content_type))

    def note(self, op: str, ref: str, key: ContentKey | None = None, *, allowed: bool) -> Checks:
        """Note the outcome of a check."""
        if not allowed:
            self._failed[self._rights.refusal(op, ref, key).message] = None
        return self

    def done(self) -> None:
        """Raise `NotAllowed` if a check has failed."""
        if self._failed:
            raise NotAllowed(", ".join(self._failed))
