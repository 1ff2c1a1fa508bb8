"""One request of one caller on one reference: its reads, and its change of the branch.

A change is computed on a state that was read once. If another writer has changed the same key
meanwhile, it is computed again, so requirements are checked on the current content.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import Any, NamedTuple
from urllib.parse import quote

from nessie_cli.errors import (
    InvalidInput,
    NessieError,
    NotAllowed,
    OutcomeUnknown,
)
from nessie_cli.iceberg.builder.values import Document
from nessie_cli.iceberg.files import MissingFile
from nessie_cli.iceberg.locations import LocationRefused
from nessie_cli.iceberg.messages import COMMIT_PROPERTIES
from nessie_cli.iceberg.state import State
from nessie_cli.iceberg.warehouses.issuing import UuidIssuer
from nessie_cli.iceberg.warehouses.metadata_files import (
    MAX_BYTES,
    Head,
    MetadataFiles,
    head_of,
    parsed,
)
from nessie_cli.iceberg.warehouses.warehouse import (
    NewMetadata,
    Warehouse,
    Warehouses,
    check_new_metadata,
    check_own_metadata,
)
from nessie_cli.model import (
    CommitMeta,
    CommitResult,
    Content,
    ContentKey,
    IcebergTable,
    Operation,
    Put,
    Reference,
    ReferenceType,
)
from nessie_cli.repository.bounded_cache import BoundedCache
from nessie_cli.repository.changes import Commit
from nessie_cli.repository.draft import MERGE_ONLY, ChangeSubmission, protecting
from nessie_cli.revisions import Revision
from nessie_cli.server.auth.gate import Catalog, Gate
from nessie_cli.server.http.messages import LARGE, Reply
from nessie_cli.server.iceberg import idempotency
from nessie_cli.server.iceberg.delegation import DelegatedTable, Delegation, FileAccess
from nessie_cli.server.iceberg.errors import NoSuchFile
from nessie_cli.server.iceberg.names import (
    Prefix,
    announced,
    client_uri,
    read_prefix,
)
from nessie_cli.server.pipeline import targets
from nessie_cli.server.pipeline.call import (
    Answer,
    Call,
    NewFile,
    Proposal,
    merged_with_headers,
)
from nessie_cli.server.pipeline.exchange import Exchange
from nessie_cli.server.pipeline.table import WRITES_FILES, Match
from nessie_cli.server.runtime.memory import LargeFiles
from nessie_cli.wire.large_json import free

MOST_METADATA = 2 * MAX_BYTES
"""The most bytes of all metadata files that a request reads to make a change."""
_LONG_BODY = 1 << 14
"""The bytes of a body from which one request at a time computes with it.

Python runs one thread at a time: many would share the time of every other request, too.
"""
_DIGEST = 16
DELEGATION = b"x-iceberg-access-delegation"
"""The header by which a client asks for access to files."""


class Services(NamedTuple):
    """The parts of the server that calls share."""

    warehouses: Warehouses
    files: Mapping[str, MetadataFiles]
    """The metadata files of each warehouse, by its name."""
    large_files: LargeFiles
    issuer: UuidIssuer
    delegation: Delegation
    idempotency: idempotency.Idempotency
    bodies: BoundedCache[Hashable, bytes]
    """Encoded answers that load tables, by all that they depend on."""
    gate: Gate | None = None


class Changed(NamedTuple):
    """The states before and after a change."""

    before: State
    after: State


class IcebergCall(Call):
    """A request to the catalog. Its idempotency key is the request id of its write."""

    most_values = 500_000
    """A table or view with a hundred thousand columns has as many."""
    checks_locations = False
    """The handlers check locations in metadata that they have read."""

    def __init__(
        self,
        exchange: Exchange,
        match: Match,
        catalog: Catalog,
        body: bytes,
        services: Services,
    ) -> None:
        scope = exchange.scope
        query = scope["query_string"]
        super().__init__(catalog, match.segments, query.decode("latin-1"), exchange.headers, body)
        self.services = services
        self.all_headers = exchange.headers
        self.who = exchange.principal
        """The caller."""
        self.scheme: str = scope["scheme"]
        """`http` or `https`, of the connection."""
        self._request_line = f"{exchange.method} {scope['raw_path']!r} {query!r}"
        """The method, path and query as the client sent them."""
        self.sent = body
        """The body as the client sent it."""
        self.writes = match.endpoint.effect is WRITES_FILES
        self._proposal: Proposal[CommitResult] | None = None
        """The change of this request that has landed, or may still land."""
        self._read_bytes = 0
        self._has_turn = False
        self._large: list[Document] = []
        """The last document that was parsed in the turn of this request."""

    def answer(self, handler: Callable[[Any], Answer | Reply]) -> Answer | Reply:
        """Returns the answer of a handler. A write under an idempotency key happens once."""
        try:
            return self.once(partial(handler, self)) if self.writes else handler(self)
        finally:
            self._proposal = None
            self.end_turn()

    @cached_property
    def request_id(self) -> str | None:
        """The idempotency key."""
        given = self.headers(b"idempotency-key")
        return idempotency.checked(given[0]) if given else None

    @cached_property
    def submission(self) -> ChangeSubmission:
        """The submission of the write, known by its request: names of metadata files are random."""
        return ChangeSubmission(self.request_id, self.digest, shows_contents=False)

    @cached_property
    def digest(self) -> bytes | None:
        """A digest of everything that a repetition must have in common; None without a key."""
        if self.request_id is None:
            return None
        hasher = hashlib.sha256(f"{self.who}\0{self._request_line}\0".encode())
        hasher.update(self.sent)
        return hasher.digest()[:_DIGEST]

    # -- the names in the request ------------------------------------------------------------------

    @cached_property
    def _prefix(self) -> Prefix:
        """The reference and warehouse in the path, and in the parameter of the configuration."""
        segments = self.segments
        return read_prefix(segments.get("ref"), segments.get("prefix"), self.text("warehouse"))

    @cached_property
    def warehouse(self) -> Warehouse:
        """The warehouse that the request names. Raises `UnknownWarehouse`."""
        return self.services.warehouses.named(self._prefix.warehouse)

    @cached_property
    def files(self) -> MetadataFiles:
        """The metadata files of the warehouse."""
        return self.services.files[self.warehouse.name]

    @cached_property
    def target(self) -> targets.Target:
        """The branch, tag or commit."""
        return targets.parse_segment(
            self._prefix.reference or self._catalog.default_branch, self._catalog.default_branch
        )

    @property
    def reference_text(self) -> str:
        """The reference as the prefix names it."""
        return self._prefix.reference or self._catalog.default_branch

    @property
    def names_warehouse(self) -> bool:
        """Whether the request names its warehouse."""
        return bool(self._prefix.warehouse)

    def header(self, name: bytes) -> str | None:
        """Returns a header, its values joined to one list; None if there is none."""
        return ", ".join(self.headers(name)) or None

    def json_object(self, where: str) -> Document:
        """Returns the body, in the turn of this request if it takes long to compute with.

        Raises `InvalidInput` if it is not a JSON object.
        """
        self._begin_turn(len(self.sent), _LONG_BODY)
        body = self.json()
        if not isinstance(body, dict):
            raise InvalidInput(f"{where}: must be a JSON object")
        return body

    @property
    def _branch(self) -> str:
        return self.target.name or ""

    def may_write_to(self, reference: Reference) -> bool:
        """Whether requests with this prefix can change the reference: a branch without a hash."""
        return self.target.is_plain and reference.type is ReferenceType.BRANCH

    # -- reading -----------------------------------------------------------------------------------

    def state(self) -> State:
        """Returns the state of the reference now."""
        reading = self._open().reading
        return State(reading, targets.read_at(reading, self.target, "The reference"))

    def state_at(self, hash_: str) -> State:
        """Returns the state of a commit of the reference."""
        reading = self._open().reading
        name = self.target.name or ""
        kind = ReferenceType.BRANCH if name else ReferenceType.DETACHED
        return State(reading, Reference(kind, name, hash_))

    def identity_of(self, location: str) -> Hashable:
        """Returns the identity of a metadata file, which changes if a local file does.

        Raises `NoSuchFile` if a local file is missing. Does not look for a remote one.
        """
        try:
            file = self.local_file = self.files.local_file(location)
        except MissingFile:
            raise NoSuchFile(location) from None
        return file or self.warehouse.name

    def file_text(self, location: str, *, committed: bool = True) -> bytes:
        """Returns the text of a metadata file.

        One that a commit names (`committed`) may come from memory. Raises what `MetadataFiles.read`
        raises, `NoSuchFile`, and `InvalidInput` if the files of a change are too large together.
        """
        for file in () if self._proposal is None else self._proposal.files:
            if file.location == location:
                return file.text
        try:
            text = self.files.read(location, committed=committed)
        except MissingFile:
            raise NoSuchFile(location) from None
        self._read_bytes += len(text)
        if self._read_bytes > MOST_METADATA:
            raise InvalidInput(
                (
                    "the metadata files that this request needs have more than"
                    f" {MOST_METADATA // 2**20} MiB together"
                ),
                hint="change fewer tables at once",
            )
        return text

    def head(self, location: str) -> Head:
        """Returns the head of a metadata file that a commit names; see `file_text`."""
        return head_of(self.file_text(location), location)

    def read(self, location: str, *, committed: bool = True) -> Document:
        """Returns the document of a metadata file; see `file_text`."""
        return self.parsed(self.file_text(location, committed=committed), location)

    def parsed(self, text: bytes, location: str) -> Document:
        """Returns the document of a metadata file.

        A large one is parsed in the turn of this request. Raises `InvalidInput`, and `Unavailable`
        if too many wait.
        """
        self._begin_turn(len(text), LARGE)
        document = parsed(text, location)
        if self._has_turn:
            self._large = [document]
        return document

    def _begin_turn(self, size: int, least: int) -> None:
        """Waits for the turn of this request if it computes with `least` bytes or more."""
        if size >= least and not self._has_turn:
            self.services.large_files.begin(size)
            self._has_turn = True

    def end_turn(self) -> None:
        """Lets others read large metadata files: this request needs no document any more.

        The last one may have millions of values, which are freed by calls that are all short.
        """
        if self._has_turn:
            free(self._large)
            self._has_turn = False
            self.services.large_files.end()

    # -- access to files ---------------------------------------------------------------------------

    @cached_property
    def delegation_mode(self) -> str:
        """How the client gets access to files; empty if it uses its own."""
        return mode_of(self.header(DELEGATION), self.warehouse)

    def access_to(
        self, key: ContentKey, content: IcebergTable, location: str, mode: str | None = None
    ) -> FileAccess:
        """Returns how the client accesses the files of a table.

        There is none if the metadata file lies outside of the table's location, unless the caller
        may choose locations, nor if the key has another content now: the answer to a repeated
        request is about an older commit. `location` is that of the table.
        """
        mode = self.delegation_mode if mode is None else mode
        if not mode or not self._has_content(key, content.id):
            return FileAccess()
        if not self.may_choose_location(key, content.type):
            try:
                check_own_metadata(location, content.metadata_location)
            except LocationRefused:
                return FileAccess()
        return self._delegated(key, content.id or "", location, mode)

    def _has_content(self, key: ContentKey, content_id: str | None) -> bool:
        """Whether a key has a content now, for this caller."""
        try:
            content = self.state().content(key)
        except NotAllowed:
            return False
        return content is not None and content.id == content_id

    def access_to_staged(self, key: ContentKey, new_id: str, location: str) -> FileAccess:
        """Returns how the client accesses the files of a table that a later commit will create."""
        mode = self.delegation_mode
        if not mode:
            return FileAccess()
        return self._delegated(key, new_id, location, mode, last_change=self.last_change(key))

    def _delegated(
        self,
        key: ContentKey,
        content_id: str,
        location: str,
        mode: str,
        *,
        last_change: str | None = None,
    ) -> FileAccess:
        table = DelegatedTable(
            ref=self.reference_text,
            key=key,
            content_id=content_id,
            location=location,
            resource=self._resource(key),
            catalog=client_uri(self.scheme, self.header),
            caller=self.who,
            writable=self.may_commit_to(key, exists=last_change is None),
            trusted=self.may_choose_location(key, IcebergTable.type),
            last_change=last_change,
        )
        return self.services.delegation.access(mode, self.warehouse, table)

    def last_change(self, key: ContentKey, state: State | None = None) -> str:
        """Returns the commit that changed a key last, whatever the caller may know, or ""."""
        at = Revision(None, (state or self.state()).reference.hash)
        commit = self._catalog.repository.last_change(at, key)
        return commit.hash or "" if commit is not None else ""

    def _resource(self, key: ContentKey) -> str:
        """Returns the path of a table below the client's catalog."""
        prefix = announced(self.reference_text, self._prefix.warehouse)
        namespace = quote("\x1f".join(key.elements[:-1]), safe="")
        return f"v1/{prefix}/namespaces/{namespace}/tables/{quote(key.elements[-1], safe='')}"

    def staged_uuid(self, state: State, key: ContentKey) -> str:
        """Returns the UUID of a table that a later commit may create."""
        return self.services.issuer.issue(self._branch, key, self.last_change(key, state))

    def has_staged(self, state: State, own_uuid: str, key: ContentKey) -> bool:
        """Whether `staged_uuid` created a UUID for a key, which was not changed since."""
        last_change = self.last_change(key, state)
        return self.services.issuer.has_issued(own_uuid, self._branch, key, last_change)

    def may_choose_location(self, key: ContentKey, type_: str) -> bool:
        """Whether the caller may choose the location of a table or view, and register one."""
        if self.warehouse.choose_locations:
            return True
        policy = self._open().policy
        return policy is not None and policy.may_choose_location(self._branch, key, type_)

    def check_new_metadata(self, key: ContentKey, new: NewMetadata) -> None:
        """Raises an error if the next metadata of a table or view names a location it may not."""
        may_choose = self.may_choose_location(key, new.there.type)
        check_new_metadata(self.files.allowed, self._catalog.locations, new, may_choose=may_choose)

    def may_commit_to(self, key: ContentKey, *, exists: bool) -> bool:
        """Whether the caller may update a table of this key, or create it if it does not exist."""
        state, table = self.state(), IcebergTable(metadata_location="any")
        if protecting(self._catalog.repository.config().settings, self._branch, MERGE_ONLY):
            return False
        with suppress(NotAllowed):
            self.check_may_put(state, key, table, exists=exists)
            return True
        return False

    def check_may_put(
        self, state: State, key: ContentKey, content: Content, *, exists: bool | None = None
    ) -> None:
        """Raises `NotAllowed` if the caller may not put a content of this type on the branch.

        `exists` is whether the key has a content that is updated. If that is unknown (None), the
        right to do either is enough.
        """
        self._check_writable(state.reference)
        commit = Commit(state.reference.name, [Put(key, content)], CommitMeta(""))
        self.check_rights(commit, None if exists is None else () if exists else (key,))

    # -- changing ----------------------------------------------------------------------------------

    def change(self, make: Callable[[State], Proposal[CommitResult] | None]) -> Changed:
        """Commits what `make` proposes on the state of the branch; returns the states around it.

        `make` raises refusals for the client. It is called again after a lost race.
        """
        if (done := self._done_before()) is not None:
            return done
        state: State | None = None

        def propose() -> Proposal[CommitResult] | None:
            nonlocal state
            state = self.state()
            self._check_writable(state.reference)
            self._read_bytes, self._proposal = 0, None
            try:
                self._begin_turn(len(self.sent), _LONG_BODY)
                self._proposal = make(state)
            finally:
                self.end_turn()
            return self._proposal

        try:
            result = self.land(propose)
        except OutcomeUnknown as error:
            result = self._recorded(error)
        assert state is not None, "a proposal begins with the state"
        if result is None:
            if self.request_id is not None:
                at = state.reference.hash
                self.services.idempotency.remember_unchanged((self.who, self.request_id), at)
            return Changed(state, state)
        if self.repeated:
            return self._replayed(result)
        return Changed(state, self.state_at(result.reference.hash))

    def proposal(
        self,
        state: State,
        message: str,
        operations: Sequence[Operation],
        files: Sequence[tuple[str, bytes]] = (),
        content_ids: Mapping[ContentKey, str] = {},
    ) -> Proposal[CommitResult]:
        """Returns the commit of operations on a state of the branch.

        `files` are new metadata files as text, `content_ids` are those of new contents, by key.
        """
        own = CommitMeta(message, properties=COMMIT_PROPERTIES)
        meta = merged_with_headers(self, own) or own
        commit = Commit(state.reference.name, operations, meta, state.reference.hash)
        new_files = [NewFile(self.files, location, text) for location, text in files]
        return Proposal(commit, new_files, content_ids)

    def _check_writable(self, reference: Reference) -> None:
        if not self.may_write_to(reference):
            kind = "a tag" if reference.type is ReferenceType.TAG else "a commit"
            raise NotAllowed(
                f"{self.reference_text} is {kind} and can only be read; name a branch to write"
            )

    def _recorded(self, error: OutcomeUnknown) -> CommitResult:
        """Returns the result of a commit whose outcome was unknown. Raises the error again."""
        result = None
        with suppress(NessieError):
            drafting = self._open().drafting
            result = drafting.find_request(error.request_id, branch=self._branch)
        if result is None:
            raise error
        return result

    # -- repetitions -------------------------------------------------------------------------------

    def once(self, run: Callable[[], Answer | Reply]) -> Answer | Reply:
        """Runs a request that writes. Under an idempotency key it happens once."""
        key, digest = self.request_id, self.digest
        if key is None or digest is None:
            return run()
        return self.services.idempotency.once((self.who, key), digest, self._check_may_write, run)

    def _check_may_write(self) -> None:
        """Raises `NotAllowed` if the caller may no longer commit to the branch."""
        self.check_rights(Commit(self._branch, (), CommitMeta("")))

    def _done_before(self) -> Changed | None:
        """Returns the states around the commit of this very request, None if it was not made.

        Raises `NotAllowed` if its caller may no longer make it.
        """
        result = self.done_before(self._branch) if self.target.is_plain else None
        if result is None:
            return self._unchanged_before()
        made = self._open().drafting.commit_at(Revision(None, result.reference.hash))
        self.check_rights(Commit(self._branch, made.operations or (), CommitMeta("")))
        return self._replayed(result)

    def _unchanged_before(self) -> Changed | None:
        """Returns the state in which this very request changed nothing, None if it did not."""
        key = self.request_id
        at = self.services.idempotency.unchanged_at((self.who, key)) if key is not None else None
        if at is None:
            return None
        self._check_may_write()
        state = self.state_at(at)
        return Changed(state, state)

    def _replayed(self, result: CommitResult) -> Changed:
        self._proposal = None
        after = self.state_at(result.reference.hash)
        return Changed(after.before(), after)


def mode_of(header: str | None, warehouse: Warehouse) -> str:
    """Returns the first mode of `X-Iceberg-Access-Delegation` that the warehouse offers."""
    modes = (mode.strip() for mode in (header or "").split(","))
    return next((mode for mode in modes if mode in warehouse.delegation), "")
