"""A request and its answer for handlers, without HTTP library and JSON text."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar
from urllib.parse import parse_qsl

from msgspec import structs

from nessie_cli.errors import (
    CommitNotFound,
    InvalidInput,
    NessieError,
    NotAllowed,
    OutcomeUnknown,
    ReferenceConflict,
    WriteRefused,
)
from nessie_cli.model import (
    CommitMeta,
    CommitResult,
    ContentKey,
    IcebergTable,
    Put,
    Unchanged,
)
from nessie_cli.model.keys import MAX_ELEMENTS, MAX_LENGTH
from nessie_cli.repository.changes import Change, Commit, Merge, Transplant
from nessie_cli.repository.draft import ChangeSubmission, Draft
from nessie_cli.repository.group_commit import Planned
from nessie_cli.repository.reader import ReadableRepository
from nessie_cli.repository.store_repository import StoreRepository
from nessie_cli.server.auth.gate import CallerAccess, Catalog
from nessie_cli.server.auth.policy import check_locations
from nessie_cli.server.auth.reached import ReachedHistory
from nessie_cli.server.http.messages import Reply, read_json
from nessie_cli.server.pipeline.drafting import draft_beside, write_change
from nessie_cli.wire import keys
from nessie_cli.wire.extensions import HEADER, REQUEST_HEADER
from nessie_cli.wire.large_json import MOST_VALUES, free
from nessie_cli.wire.validation import lenient

if TYPE_CHECKING:
    from nessie_cli.iceberg.warehouses.metadata_files import LocalFile, MetadataFiles

A = TypeVar("A")

_INT32 = range(-(2**31), 2**31)
_DIGITS = 11
_OURS = HEADER.lower().encode()
_REQUEST_HEADER = REQUEST_HEADER.lower().encode()
_REQUEST_ID = re.compile(r"[\x21-\x7e]{1,100}")
MOST_TRIES = 20
"""How often a change is proposed again after lost races."""
MOST_PARAMETERS = 2000
"""The most query parameters of a request, which are read on the event loop."""


class Answer(NamedTuple):
    """The result of a handler: a JSON value, or no body (status 204)."""

    body: Any
    status: int = 200


NO_CONTENT = Answer(None, 204)


class NewFile(NamedTuple):
    """A metadata file that is to be written: its warehouse's files, its location and its text."""

    files: MetadataFiles
    location: str
    text: bytes


class Proposal(NamedTuple, Generic[A]):
    """A change of a branch (commit, merge, transplant), and the metadata files that it needs.

    The files are written before the change is drafted, on the thread of the request and never under
    a transaction of the store. They are removed if certainly no commit needs them. `content_ids`
    are those of new contents, by key.
    """

    change: Change[A]
    files: Sequence[NewFile] = ()
    content_ids: Mapping[ContentKey, str] = {}

    def write(self) -> None:
        """Writes the files, all or none."""
        for number, file in enumerate(self.files, 1):
            try:
                file.files.write(file.location, file.text)
            except BaseException:
                self._replace(files=self.files[:number]).remove()
                raise

    def remove(self) -> None:
        """Removes the files: no commit needs them."""
        for file in self.files:
            file.files.remove(file.location)


class UnreadableParameter(InvalidInput):
    """A query parameter of the wrong type. The original's web framework answers 404, too."""

    status = 404


class KeyTooLong(InvalidInput):
    """A content key in a path that is longer than any valid one, so there is no such content."""

    status = 404


class Call:
    """A request: its path segments, query parameters, headers and body.

    Raises `InvalidInput` for invalid ones.
    """

    checks_locations = True
    """Whether locations are checked on the draft, because the handler does not read metadata."""
    most_values: int = MOST_VALUES
    """The most JSON values of the body."""

    def __init__(
        self,
        catalog: Catalog,
        segments: Mapping[str, str],
        query: str,
        headers: Iterable[tuple[bytes, bytes]],
        body: bytes = b"",
    ) -> None:
        self._catalog = catalog
        self._access: CallerAccess | None = None
        self._draft: Draft[Any] | None = None
        self.repeated = False
        """Whether the write of this request was committed before."""
        self.default_branch = catalog.default_branch
        self.log_entry_cache = catalog.log_entry_cache
        self.filter_seconds = catalog.filter_seconds
        self.segments = segments
        self._query = query
        self._headers = headers
        self.is_ours = _OURS in dict(headers)
        """Whether our own client sent the request (`wire.extensions`)."""
        self.body = body
        self.local_file: LocalFile | None = None
        """The local file on which the answer depends, and which another program may delete."""
        self.watch_client: Callable[[], Callable[[], bool]] = lambda: _is_there
        """Returns `Exchange.lost` of the request. Only for the event loop."""
        self._json: Any = _UNREAD
        self._decoded: Any = _UNREAD

    # -- the repository ---------------------------------------------------------------------------
    @property
    def repository(self) -> ReadableRepository:
        """The repository as the caller may read it."""
        return self._opened.reading

    @property
    def has_warehouses(self) -> bool:
        """Whether the server reads and writes the files of tables."""
        return self._catalog.locations is not None

    @property
    def caller(self) -> str | None:
        """The authenticated caller; see `CallerAccess`."""
        return self._opened.caller

    @property
    def credential(self) -> str:
        """The credential of the caller; see `CallerAccess`."""
        return self._opened.credential

    @property
    def _opened(self) -> CallerAccess:
        if self._access is None:
            self._access = self._open()
        return self._access

    def _open(self) -> CallerAccess:
        """Returns what the caller may do with the repository as it is now."""
        return self._catalog.open(self._catalog.repository)

    @property
    def reads_rows(self) -> bool:
        """Whether the server reads the changed rows of tables."""
        return self._catalog.reads_rows

    def answer(self, handler: Callable[[Any], Any]) -> Answer | Reply:
        """Returns the answer of a handler."""
        with lenient():
            answer: Answer | Reply = handler(self)
        return answer

    def plan(self, repository: StoreRepository, handle: Callable[[Call], A]) -> Planned[A]:
        """Handles the request on a repository, and returns the answer with its draft.

        The handler only reads and drafts. It is called again on a newer state if the draft is
        stale.
        """
        if self.request_id is not None:
            repository = repository.before_request(self.request_id)
        self._access = self._catalog.open(repository)
        self._draft = None
        answer = handle(self)
        return Planned(answer, self._draft)

    def submit(self, change: Change[A], submission: ChangeSubmission | None = None) -> A:
        """Drafts and checks the change of a request, and returns its answer.

        The change is committed after the handler has returned.
        """
        assert self._access is not None, "a handler that writes is called by `plan`"
        policy, drafting = self._access.policy, self._access.drafting
        if policy is not None:
            policy.before(change, self.history)
        draft = drafting.draft(change, submission or self.submission)
        self.repeated = draft.repeated
        if policy is not None:
            policy.on(draft, self.history)
        if self.checks_locations and self._catalog.locations:
            check_locations(draft, self._catalog.locations, policy)
        try:
            answer = draft.answer()
        except ReferenceConflict as conflict:
            raise (
                conflict if policy is None else policy.shown_conflict(change, conflict)
            ) from None
        if draft.write is not None or not draft.exact:
            self._draft = draft
        return answer if policy is None else policy.shown(change, answer)

    def land(self, propose: Callable[[], Proposal[A] | None]) -> A | None:
        """Commits what `propose` proposes, together with other writes of the server.

        Returns the answer, None if nothing is proposed. `propose` reads the current state, and
        refuses what conflicts with it. It is called again if another writer was first. Raises
        `NotAllowed` before a file is written. Only for the threads of requests that write files.
        """
        for number in range(1, MOST_TRIES + 1):
            self._access = None
            proposal = propose()
            if proposal is None:
                return None
            if proposal.content_ids:
                self.submission.choose_content_ids(proposal.content_ids)
            self.check_rights(proposal.change, proposal.content_ids if proposal.files else None)
            proposal.write()
            try:
                answer = self.commit(proposal.change)
            except OutcomeUnknown:
                raise
            except NessieError as error:
                # Unexpected errors are not handled: they may occur after the commit.
                proposal.remove()
                was_first = not isinstance(error, ReferenceConflict | CommitNotFound)
                if was_first or number == MOST_TRIES:
                    raise
            else:
                if self.repeated:
                    # Another server has carried out this request in the meantime.
                    proposal.remove()
                return answer
        raise AssertionError

    def commit(self, change: Change[A]) -> A:
        """Commits a change together with other writes of the server, and waits for it.

        A large one is drafted on this thread. Only for the threads of requests that write files.
        Raises `WriteRefused` for `NotAllowed`.
        """
        assert self._catalog.writer is not None, "only a server writes files"
        of_branch: Change[Any] = change
        assert isinstance(of_branch, Commit | Merge | Transplant)
        prefetch = (of_branch.branch, self.request_id or "")
        run = self._catalog.writer.run

        def plan(repository: StoreRepository, most_changes: int | None = None) -> Planned[A]:
            self.submission.most_changes = most_changes
            return self.plan(repository, lambda call: call.submit(change))

        def draft() -> Planned[A]:
            return draft_beside(self._catalog.repository, plan, self.history, prefetch)

        try:
            return write_change(change, lambda each: run(each, prefetch), plan, draft, self.is_seen)
        except NotAllowed as error:
            # Rights and rules are checked on the draft.
            raise WriteRefused(error.message, hint=error.hint) from None
        finally:
            self._access = None

    def is_seen(self, draft: Draft[Any], repository: StoreRepository) -> bool:
        """Returns `Policy.is_seen` of a draft, in the state that is written."""
        policy = self._catalog.open(repository).policy
        return policy is None or policy.is_seen(draft, self.history)

    def preview(self, change: Change[A], most_changes: int | None = None) -> A:
        """Returns the answer of a dry run, which is drafted on this thread.

        Raises `LargeMerge` for a merge of more changes than `most_changes`.
        """
        assert change.is_dry_run
        self._access = self._open()
        try:
            with self.history.unlimited():
                return self.submit(change, ChangeSubmission(most_changes=most_changes))
        finally:
            self._access = self._draft = None

    def done_before(self, branch: str) -> CommitResult | None:
        """Returns the result of this very request, or None if it was not made.

        Raises `NotAllowed` if its caller may no longer see it.
        """
        access = self._open()
        if self.request_id is None or access.drafting.find_request(self.request_id) is None:
            return None
        # The operations of a repetition do not count: its digest is that of the request.
        again = access.drafting.draft(
            Commit(branch, [Unchanged(ContentKey(("any",)))], CommitMeta("")), self.submission
        )
        if access.policy is not None:
            access.policy.on(again, self.history)
        done: CommitResult = again.answer()
        return done

    def head_before(self, branch: str) -> str:
        """Returns the HEAD of a branch before this request, which was made."""
        assert self.request_id is not None
        repository = self._catalog.repository.before_request(self.request_id)
        return repository.reference(branch).hash

    def may_combine(self, branch: str, keys: Collection[ContentKey]) -> bool:
        """Whether the caller may also choose the location of a table that is to be combined.

        `keys` are those that it has on the branch or, in a transplant, gets by earlier commits.
        Raises `NotAllowed` if the caller may not read it there.
        """
        policy = self._open().policy
        if policy is None:
            return False
        for key in keys:
            policy.check_may_read_table(branch, key)
        return all(policy.may_choose_location(branch, key, IcebergTable.type) for key in keys)

    def check_may_update_table(self, branch: str, key: ContentKey) -> None:
        """Raises `NotAllowed` if the caller may not commit a new state of a table."""
        put = Put(key, IcebergTable(metadata_location="any"))
        self.check_rights(Commit(branch, [put], CommitMeta("")), ())

    def check_rights(self, change: Change[Any], new: Collection[ContentKey] | None = None) -> None:
        """Raises `NotAllowed` if the caller may not make this change. See `Policy.before`."""
        policy = self._open().policy
        if policy is not None:
            with self.history.unlimited():
                policy.before(change, self.history, new)

    @cached_property
    def history(self) -> ReachedHistory:
        """The commits that were checked for the write of this request, over all its drafts."""
        return ReachedHistory()

    @cached_property
    def submission(self) -> ChangeSubmission:
        """The submission of the write of this request, over all its drafts."""
        return ChangeSubmission(self.request_id, shows_contents=False)

    @cached_property
    def request_id(self) -> str | None:
        """The request id of the write, which happens once."""
        given = self.headers(_REQUEST_HEADER) if self.is_ours else []
        if given and not _REQUEST_ID.fullmatch(given[0]):
            raise InvalidInput(
                f"{REQUEST_HEADER}: must be 1 to 100 printable characters without spaces"
            )
        return given[0] if given else None

    @property
    def prefetch(self) -> tuple[str, str] | None:
        """The reference in the path and the request id or "", which the plan reads first."""
        name = self.segments.get("ref", "").partition("@")[0]
        return (
            (self.default_branch if name == "-" else name, self.request_id or "") if name else None
        )

    # -- query ------------------------------------------------------------------------------------
    @cached_property
    def parameters(self) -> dict[str, list[str]]:
        """The values of each query parameter."""
        parameters: dict[str, list[str]] = {}
        for name, value in _fields(self._query) if self._query else ():
            parameters.setdefault(name, []).append(value)
        return parameters

    def texts(self, name: str) -> list[str]:
        """Returns every value of a parameter."""
        return self.parameters.get(name, [])

    def text(self, name: str) -> str | None:
        """Returns the first value of a parameter, or None."""
        values = self.parameters.get(name)
        return values[0] if values else None

    def number(self, name: str) -> int | None:
        """Returns an integer of 32 bits."""
        text = self.text(name)
        if not text:
            return None
        digits = text.removeprefix("-").removeprefix("+")
        if not (
            digits.isascii() and digits.isdigit() and len(digits) < _DIGITS and int(text) in _INT32
        ):
            raise UnreadableParameter(f"{name}: must be a 32-bit integer, not {text!r}")
        return int(text)

    def flag(self, name: str) -> bool:
        """Returns a truth value; everything but `true` is false."""
        return (self.text(name) or "").lower() == "true"

    def fetches_all(self) -> bool:
        """Returns the parameter `fetch`: MINIMAL (the default) or ALL."""
        text = self.text("fetch")
        if text not in (None, "", "MINIMAL", "ALL"):
            raise UnreadableParameter(f"fetch: must be MINIMAL or ALL, not {text!r}")
        return text == "ALL"

    def key(self, name: str) -> ContentKey | None:
        """Returns a content key in any of its encodings, or None if it is missing or empty."""
        text = self.text(name)
        key = None if text is None else keys.decode(text)
        return key if key is not None and key.elements else None

    def path_key(self, name: str) -> ContentKey:
        """Returns the content key of a path segment, possibly without elements."""
        text = self.segments[name]
        elements = keys.decode_elements(text)
        if len(elements) > MAX_ELEMENTS or (
            2 * len(text) > MAX_LENGTH
            and len("".join(elements).encode("utf-16-le", "replace")) > 2 * MAX_LENGTH
        ):
            raise KeyTooLong(
                f"{name}: a content key has at most {MAX_ELEMENTS} elements and {MAX_LENGTH}"
                " characters; there is none like this"
            )
        return ContentKey(tuple(elements))

    # -- headers ----------------------------------------------------------------------------------
    def headers(self, name: bytes) -> list[str]:
        """Returns every value of a header (lower-case name), decoded as UTF-8 or Latin-1."""
        return [_header_text(value) for header_name, value in self._headers if header_name == name]

    def headers_from(self, prefix: bytes) -> Iterable[tuple[str, str]]:
        """Returns (rest of the name, value) of all headers with a prefix."""
        return [
            (name[len(prefix) :].decode("latin-1"), _header_text(value))
            for name, value in self._headers
            if name.startswith(prefix)
        ]

    # -- body -------------------------------------------------------------------------------------
    @property
    def is_read(self) -> bool:
        """Whether the body has been read as JSON."""
        return self._json is not _UNREAD or self._decoded is not _UNREAD

    def take(self, body: bytes) -> None:
        """Sets the body and parses its JSON value.

        The handler gets faults when it reads the value.
        """
        self.body = body
        with suppress(InvalidInput):
            self.json()

    def json(self) -> Any:
        """Returns the body's JSON value; None for an empty one and for null.

        It is parsed once; then the body itself is dropped.
        """
        if self._json is _UNREAD:
            body, self.body = self.body, b""
            try:
                self._json = read_json(body, self.most_values)
            except InvalidInput as error:
                self._json = _bare(error)
        if isinstance(self._json, InvalidInput):
            raise self._json
        return self._json

    def decoded(self, decode: Callable[[Any], A]) -> A | None:
        """Returns the result of `decode` for the body's JSON value; None if there is none.

        It is decoded once, which may consume the JSON value, and a fault is raised each time.
        """
        if self._decoded is _UNREAD:
            self.json()
            try:
                self._decoded = None if self._json is None else decode(self._json)
            except InvalidInput as error:
                self._decoded = _bare(error)
        if isinstance(self._decoded, InvalidInput):
            raise self._decoded
        decoded: A | None = self._decoded
        return decoded

    def free_body(self) -> None:
        """Frees the values of the body, which may be millions, by calls that are all short."""
        values = [self._json, self._decoded]
        self._json = self._decoded = self._draft = None
        free(values)

    def needed_json(self, parameter: str) -> Any:
        """Returns the body's JSON value, which is required."""
        value = self.json()
        if value is None:
            raise InvalidInput(f"{parameter}: must not be null")
        return value


_UNREAD = object()


def _bare(error: InvalidInput) -> InvalidInput:
    """Returns an error without its causes and frames, which refer to values of the body."""
    error.__context__ = error.__cause__ = None
    return error.with_traceback(None)


def _is_there() -> bool:
    return False


def _fields(query: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(
            query, keep_blank_values=True, errors="replace", max_num_fields=MOST_PARAMETERS
        )
    except ValueError:
        raise InvalidInput(f"query: has more than {MOST_PARAMETERS:,} parameters") from None


def _header_text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


_ANY = b"nessie-commit-"
_MESSAGE = b"nessie-commit-message"
_AUTHORS = b"nessie-commit-authors"
_SIGNED_OFF_BY = b"nessie-commit-signedoffby"
_PROPERTY = b"nessie-commit-property-"


def merged_with_headers(call: Call, meta: CommitMeta | None) -> CommitMeta | None:
    """Returns the metadata of a body with the headers applied.

    The message is replaced; authors, signatures and properties are added. Returns None if both are
    empty. An empty message means that none is given.
    """
    if not call.headers_from(_ANY):
        return meta
    message = next((text for text in call.headers(_MESSAGE) if text.strip()), None)
    authors, signed_off_by = _names(call, _AUTHORS), _names(call, _SIGNED_OFF_BY)
    properties = _properties(call)
    if message is None and not authors and not signed_off_by and not properties:
        return meta
    base = meta or CommitMeta("")
    return structs.replace(
        base,
        message=base.message if message is None else message,
        authors=base.authors + authors,
        signed_off_by=base.signed_off_by + signed_off_by,
        properties={**base.properties, **properties},
    )


def _names(call: Call, header: bytes) -> tuple[str, ...]:
    names = (name.strip() for value in call.headers(header) for name in value.split(","))
    return tuple(name for name in names if name)


def _properties(call: Call) -> dict[str, tuple[str, ...]]:
    properties: dict[str, tuple[str, ...]] = {}
    for name, value in call.headers_from(_PROPERTY):
        if value:
            properties[name.lower()] = (*properties.get(name.lower(), ()), value)
    return properties
