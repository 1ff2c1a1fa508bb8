"""A request for a page, and what all pages show around their own part."""

from __future__ import annotations

import re
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from nessie_cli.errors import CommitNotFound, InvalidInput, NotAllowed
from nessie_cli.model import ContentKey, IcebergTable, LogEntry, Reference, ReferenceType
from nessie_cli.repository.changes import AnyRevision
from nessie_cli.repository.draft import ChangeSubmission
from nessie_cli.revisions import Revision
from nessie_cli.server.auth.authorized import AuthorizedRepository, require_rows
from nessie_cli.server.auth.rules import LIST_COMMIT_LOG, READ_CONTENT_KEY, READ_ENTITY_VALUE
from nessie_cli.server.http.failures import HttpFault
from nessie_cli.server.http.messages import Headers, Reply
from nessie_cli.server.pages.html import html_reply
from nessie_cli.server.pages.urls import ROOT, page_url
from nessie_cli.server.pipeline.call import Call

MOST_FORM, MOST_FIELDS = 64 << 10, 1_200
"""The most bytes and fields of a form."""
_REQUEST_ID = re.compile("[0-9a-f]{32}")
_FORM = "application/x-www-form-urlencoded"


class LoginState(NamedTuple):
    """The login of a caller: when the session ends, if there is one, and whether one can begin."""

    ends: datetime | None
    is_possible: bool


class PageCall(Call):
    """A request for a page."""

    is_head = False
    """Whether only the headers of the page are asked for."""
    path = ""
    """The path of the page."""
    login: LoginState | None = None
    """The login of the caller. None if the server has no authentication."""

    @property
    def all_headers(self) -> Headers:
        """All headers of the request."""
        return list(self._headers)

    # -- what it asks for --------------------------------------------------------------------------
    @cached_property
    def form(self) -> dict[str, list[str]]:
        """The fields of the form that was sent; none for a page."""
        if not self.body:
            return {}
        kind = next(iter(self.headers(b"content-type")), "").partition(";")[0].strip().lower()
        if kind != _FORM:
            raise HttpFault(415, f"A page takes forms of the type {_FORM}")
        try:
            pairs = parse_qsl(
                self.body.decode("utf-8", "replace"),
                keep_blank_values=True,
                max_num_fields=MOST_FIELDS,
            )
        except ValueError:
            raise InvalidInput(f"the form has more than {MOST_FIELDS:,} fields") from None
        fields: dict[str, list[str]] = {}
        for name, value in pairs:
            # Browsers send line ends as CR LF.
            fields.setdefault(name, []).append(value.replace("\r\n", "\n"))
        return fields

    def field(self, name: str) -> str:
        """Returns a field of the form, trimmed; an absent one is empty."""
        return self.form.get(name, [""])[0].strip()

    def value(self, name: str) -> str:
        """Returns a query parameter or, for a form, a field."""
        return self.text(name) or self.field(name)

    def message(self, default: str) -> str:
        """Returns the message of a commit that the form or the address has, or the default."""
        return self.value("message").replace("\r\n", "\n").strip() or default

    def needed_field(self, name: str) -> str:
        """Returns a field of the form. Raises `InvalidInput` if it is empty."""
        text = self.field(name)
        if not text:
            raise InvalidInput(f"{name}: must not be empty")
        return text

    @cached_property
    def request_id(self) -> str | None:
        """The request id of a form, so that a form that is sent twice is carried out once."""
        given = self.field("request") if self.body else ""
        return given if _REQUEST_ID.fullmatch(given) else None

    @cached_property
    def submission(self) -> ChangeSubmission:
        """The submission of the change of a form. The same form is the same change."""
        return ChangeSubmission(self.request_id, sha256(self.body).digest())

    @property
    def authors(self) -> tuple[str, ...]:
        """The authors of the commits of this caller."""
        return (self.caller,) if self.caller else ()

    def was_done(self, branch: str) -> bool:
        """Returns whether this form was carried out before."""
        return self.request_id is not None and self.done_before(branch) is not None

    def reference_named(self) -> Reference:
        """Returns the reference or commit of the query parameter `ref`, or the default branch.

        Raises `ReferenceNotFound` and `CommitNotFound`.
        """
        return self.repository.resolve(self.text("ref") or self.default_branch)

    def commit_named(self, revision: AnyRevision) -> LogEntry:
        """Returns the commit of a revision, without operations, if the caller may list its log.

        A reference that the caller may view also shows its HEAD. Raises `NotAllowed`, and
        `CommitNotFound` for the empty history.
        """
        try:
            entry = next(iter(self.repository.log(revision)), None)
        except NotAllowed:
            hash_ = self.repository.resolve(revision).hash
            if all(reference.hash != hash_ for reference in self.repository.references()):
                raise
            return self.repository.commit_at(Revision(None, hash_), operations=False)
        if entry is None:
            raise CommitNotFound(f"{revision}: there is no commit", str(revision))
        return entry

    def may_read_rows(self, at: Revision, key: ContentKey) -> bool:
        """Returns whether the caller may read the rows of a table at a commit, and its metadata."""
        try:
            require_rows(self.repository, at, key, IcebergTable.type)
        except NotAllowed:
            return False
        return True

    def may_see_key(self, at: Revision, key: ContentKey | None) -> bool:
        """Returns whether the caller may know whether there is a content at a key of a commit."""
        repository = self.repository
        if key is None or not isinstance(repository, AuthorizedRepository):
            return key is not None
        return repository.rights.may_somehow(READ_CONTENT_KEY, repository.seen(at), key)

    def may_read(self, at: Revision, key: ContentKey, type_: str) -> bool:
        """Returns whether the caller may read a content of this type at a commit."""
        repository = self.repository
        if not isinstance(repository, AuthorizedRepository):
            return True
        through, may = repository.seen(at), repository.rights.may
        needed = READ_CONTENT_KEY, READ_ENTITY_VALUE
        return all(may(operation, through, key, type_) for operation in needed)

    @property
    def has_rights(self) -> bool:
        """Whether rules decide what the caller may see."""
        return isinstance(self.repository, AuthorizedRepository)

    def may_list_log(self, name: str | None) -> bool:
        """Returns whether the caller may list the commits of a reference."""
        repository = self.repository
        if name is None or not isinstance(repository, AuthorizedRepository):
            return name is not None
        return repository.rights.may(LIST_COMMIT_LOG, name)

    def key_named(self, parameter: str = "key") -> ContentKey:
        """Returns the key of a query parameter. Raises `InvalidInput` if there is none."""
        key = self.key(parameter)
        if key is None:
            raise InvalidInput(f"{parameter}: is missing (a content key)")
        return key

    # -- the answer --------------------------------------------------------------------------------
    def page(
        self, template: str, title: str, *, at: Reference | None = None, **values: Any
    ) -> Reply:
        """Returns a page. `at` is the reference or commit that it shows."""
        return html_reply(template, self.frame(title, at) | values)

    def frame(self, title: str, at: Reference | None = None) -> dict[str, Any]:
        """Returns what the frame of every page shows."""
        is_named = at is not None and at.type is not ReferenceType.DETACHED
        return {
            "title": title,
            "at": at,
            "ref": at.name if at is not None and is_named else "",
            "revision": self._revision(at) if at is not None else "",
            "default_branch": self.default_branch,
            "caller": self.caller,
            "login": self.login,
            "query": {name: self.text(name) or "" for name in self.parameters if name != "page"},
            "fixed_url": self._fixed_url(at),
        }

    def _revision(self, at: Reference) -> str:
        """Returns the text that names what a page shows: a reference, or a commit."""
        return at.hash if at.type is ReferenceType.DETACHED else self.text("ref") or at.name

    def _fixed_url(self, at: Reference | None) -> str:
        """Returns the address of this page at the commit that it shows."""
        return "" if at is None else self.url_with(ref=at.hash)

    def url_with(self, **query: str) -> str:
        """Returns the address of this page with other query fields."""
        fields = {name: self.text(name) for name in self.parameters}
        return page_url(self.path.removeprefix(f"{ROOT}/"), **(fields | query))
