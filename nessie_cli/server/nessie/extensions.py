"""Extensions to REST v2 (`wire.extensions`), for clients that request them by header."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Raw, Struct

from nessie_cli import model
from nessie_cli.errors import InvalidInput
from nessie_cli.model import MergeResult
from nessie_cli.model.batches import batched
from nessie_cli.repository.changes import PutSettings, RenameReference
from nessie_cli.revisions import Revision
from nessie_cli.server.http.messages import encoded
from nessie_cli.server.http.streams import ListingBody
from nessie_cli.server.nessie.listings import (
    MOST_COMMITS,
    ListingPage,
    limit,
    size_of_log_entry,
    token_start,
)
from nessie_cli.server.pipeline.call import Answer, Call
from nessie_cli.server.pipeline.table import WRITES, Doc, Endpoint, NoRoute
from nessie_cli.server.pipeline.targets import Target, expected, named, parse_segment
from nessie_cli.wire.commits import LogEntry
from nessie_cli.wire.contents import Key
from nessie_cli.wire.extensions import (
    ANNOUNCED,
    ANY_ORDER,
    COMBINES,
    HIDDEN,
    MESSAGE,
    ROWS,
    SETTINGS,
    VERSION,
)
from nessie_cli.wire.merges import BareMerge, MergeOfOurs
from nessie_cli.wire.references import CommitOutcome, ReflogEntry
from nessie_cli.wire.rest import LogResponseOfOurs, ReflogResponse, SingleReference
from nessie_cli.wire.scalars import Json
from nessie_cli.wire.validation import checked

LARGEST_REFLOG_PAGE = 20_000
"""The most entries of a page of the reflog."""
_MESSAGES_AT_ONCE = 8
"""The number of tags whose messages are in memory together: each may have megabytes."""
_NUMBER_DIGITS = 18


def is_ours(call: Call) -> bool:
    """Returns whether the client requests the extensions."""
    return call.is_ours


def announcement(call: Call) -> Json:
    """The additional properties of the configuration."""
    if not is_ours(call):
        return {}
    combines = {COMBINES: VERSION} if call.has_warehouses else {}
    rows = {ROWS: VERSION} if call.reads_rows else {}
    return {"additionalProperties": {ANNOUNCED: VERSION, **combines, **rows}}


def expected_or_head(call: Call, target: Target) -> str | None:
    """The expected hash of a commit, merge or transplant.

    Our client may leave it out: None, for HEAD at that time.
    """
    return None if is_ours(call) and target.is_plain else expected(call.repository, target)


def wants_dry_run(call: Call, body: Any) -> bool:
    """Whether a commit is a dry run."""
    return is_ours(call) and isinstance(body, dict) and body.get("isDryRun") is True


def merge_answer(call: Call, result: MergeResult) -> Answer:
    """The answer to a merge or transplant.

    Contents are left to the routes for contents, and to their rules.
    """
    return Answer((MergeOfOurs if is_ours(call) else BareMerge).of(result))


def accepts_any_order(call: Call, body: Any) -> bool:
    """Whether the commits of a transplant need not be neighbours."""
    return is_ours(call) and isinstance(body, dict) and body.get(ANY_ORDER) is True


def message_given(call: Call, body: Any) -> str:
    """The message of a new tag; "" if there is none."""
    message = body.get(MESSAGE, "") if is_ours(call) and isinstance(body, dict) else ""
    if not isinstance(message, str):
        raise InvalidInput(f"{MESSAGE}: must be a string")
    return message


# -- reading -------------------------------------------------------------------------------------
def log_of_key(call: Call, start: str) -> Answer | None:
    """A page of the commits of one key, which a filter finds only by reading all commits.

    None if a whole log is requested.
    """
    key = call.key("key") if is_ours(call) else None
    if key is None:
        return None
    page_token = call.text("page-token")
    if page_token:
        start = token_start(call, page_token)
    entries = call.repository.log_of_key(Revision(None, start), key, operations=call.fetches_all())
    most = min(limit(call.number("max-records")) or MOST_COMMITS, MOST_COMMITS)
    return Answer(log_page(ListingPage(entries, most, lambda entry: entry.hash, size_of_log_entry)))


def log_page(page: ListingPage[model.LogEntry]) -> ListingBody:
    """A page of a log with the height of each commit."""
    return page.body(LogResponseOfOurs, LogEntry.of)


def get_divisions(call: Call) -> Answer:
    """The last key of each part of a state but the last, so that parts can be read in parallel."""
    require_extensions(call)
    repository, most = call.repository, call.number("most")
    if most is None:
        raise InvalidInput("most: is missing (the maximum number of keys in a part)")
    divisions = repository.divisions(f"@{call.text('at')}", most, prefix=call.key("prefix-key"))
    return Answer({"divisions": list(map(Key.of, divisions or ()))})


# -- references ----------------------------------------------------------------------------------
def get_caller(call: Call) -> Answer:
    """The authenticated caller: empty for an anonymous one, null if nobody is authenticated."""
    require_extensions(call)
    return Answer({"name": call.caller})


def get_reflog(call: Call) -> Answer:
    """A page of the moves of one reference, of the changes of one setting, or of all entries."""
    require_extensions(call)
    token = call.text("page-token")
    before = _number_of(token) + 1 if token else None
    entries = call.repository.reflog(call.text("ref"), before=before)
    most = min(limit(call.number("max-records")) or LARGEST_REFLOG_PAGE, LARGEST_REFLOG_PAGE)
    page = ListingPage(entries, most, lambda entry: str(entry.number), _size_of_move)
    return Answer(page.body(ReflogResponse, ReflogEntry.of))


def _number_of(token: str) -> int:
    """Returns the number of the entry with which a page of the reflog begins."""
    if not (token.isascii() and token.isdecimal() and len(token) <= _NUMBER_DIGITS):
        raise InvalidInput("page-token: is not the token of a page of the reflog")
    return int(token)


def _size_of_move(entry: model.ReflogEntry) -> int:
    """Returns the size of the texts that can be large: those of a setting."""
    return len(entry.message) + len(entry.value_before or "") + len(entry.value_after or "")


def get_messages(call: Call) -> Answer:
    """The messages of those tags that have one."""
    require_extensions(call)
    return Answer(ListingBody("messages", _messages(call), dict, is_object=True))


def _messages(call: Call) -> Iterator[Raw]:
    """Yields the members of the object of messages, which are read a few at a time."""
    for names in batched(dict.fromkeys(call.texts("ref")), _MESSAGES_AT_ONCE):
        for name, message in call.repository.messages(names).items():
            yield Raw(encoded(name) + b":" + encoded(message))


def post_rename(call: Call) -> Answer:
    """Rename a reference in one step."""
    require_extensions(call)
    target = parse_segment(call.segments["ref"], call.default_branch)
    if target.name is None:
        raise InvalidInput("A branch or a tag must be named.")
    reference = named(call.repository, target.name)
    new = call.text("name") or ""
    return Answer(
        SingleReference.of(
            call.submit(RenameReference(reference.name, new, expected(call.repository, target)))
        )
    )


# -- requests and settings -----------------------------------------------------------------------
def get_request(call: Call) -> Answer:
    """The result of the write with a request id."""
    require_extensions(call)
    result = call.repository.find_request(call.segments["request"])
    return Answer({"result": None if result is None else CommitOutcome.of(result)})


class _Settings(Struct):
    settings: dict[str, str | None]
    expected: dict[str, str | None] = {}


def settings_asked(call: Call) -> bool:
    """Whether a request for configuration objects is for the settings of the repository."""
    return is_ours(call) and call.texts("type") == [SETTINGS]


def get_settings(call: Call) -> Answer:
    """The settings, as a configuration object, and whether there are others that stay hidden."""
    config = call.repository.config()
    hidden = {HIDDEN: True} if config.hides_settings else {}
    return Answer({"configs": [{"type": SETTINGS, "settings": dict(config.settings), **hidden}]})


def settings_given(call: Call, body: Any) -> Json | None:
    """The settings in the body of an update; None if it is of another configuration object."""
    config = body.get("config") if isinstance(body, dict) else None
    return (
        config
        if is_ours(call) and isinstance(config, dict) and config.get("type") == SETTINGS
        else None
    )


def put_settings(call: Call, config: Json) -> Answer:
    """Set or remove settings; answers their previous values."""
    body = checked(_Settings, config, "config")
    previous = call.submit(PutSettings(body.settings, body.expected))
    return Answer({"previous": {"type": SETTINGS, "settings": previous}})


def require_extensions(call: Call) -> None:
    """Raises `NoRoute` for a client that does not request the extensions."""
    if not is_ours(call):
        raise NoRoute(())


EXTENSIONS = (
    Endpoint("GET", "/api/v2/caller", get_caller, doc=Doc("The authenticated caller")),
    Endpoint(
        "GET", "/api/v2/divisions", get_divisions, cacheable=True, doc=Doc("Parts of a state")
    ),
    Endpoint("GET", "/api/v2/messages", get_messages, cacheable=True, doc=Doc("Messages of tags")),
    Endpoint("GET", "/api/v2/reflog", get_reflog, cacheable=True, doc=Doc("Moves of references")),
    Endpoint(
        "GET",
        "/api/v2/requests/{request}",
        get_request,
        cacheable=True,
        doc=Doc("The result of a write"),
    ),
    Endpoint(
        "POST", "/api/v2/trees/{ref}/rename", post_rename, WRITES, doc=Doc("Rename a reference")
    ),
)
"""The endpoints of the extensions.

They are not in the OpenAPI document, which describes what every client may use.
"""
