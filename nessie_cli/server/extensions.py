"""What our own client is told beyond REST v2 (`wire.extensions`): routes and attributes that answer only requests with its header."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import dropwhile
from typing import Any

from nessie_cli.errors import AmbiguousHash, InvalidInput
from nessie_cli.model import LogEntry, MergeDetail
from nessie_cli.repository.changes import PutSettings, RenameReference
from nessie_cli.server.call import Answer, Call
from nessie_cli.server.listings import MOST_COMMITS, filter_of
from nessie_cli.server.paging import Page, limit, page
from nessie_cli.server.streams import Listing, listing
from nessie_cli.server.table import NoRoute, Route
from nessie_cli.server.targets import Target, expected, named, parse_segment
from nessie_cli.wire import facts
from nessie_cli.wire.encode import Json, encode_key, encode_merge_detail, encode_single_reference
from nessie_cli.wire.extensions import ANNOUNCED, SETTINGS, VERSION
from nessie_cli.wire.guards import Guard, check

MOST_WALKED = 20_000
"""The largest page of a walk over all parents, and of a reflog: each page repeats the work of those before it."""


def is_ours(call: Call) -> bool:
    """Whether our own client asks."""
    return call.is_ours


def announcement(call: Call) -> Json:
    """What is added to the configuration."""
    return {"additionalProperties": {ANNOUNCED: VERSION}} if is_ours(call) else {}


def expected_or_head(call: Call, target: Target) -> str | None:
    """The expected hash of a commit, merge or transplant; None where our own client leaves it out: HEAD, whichever it is then."""
    return None if is_ours(call) and target.is_plain else expected(call.repository, target)


def wants_dry_run(call: Call, body: Any) -> bool:
    """Whether a commit is only to be judged."""
    return is_ours(call) and isinstance(body, dict) and body.get("isDryRun") is True


def merge_detail(detail: MergeDetail) -> Json:
    """One key of a merge; a conflict tells the renames behind it. Contents are left to the routes for contents, and to their rules."""
    body = encode_merge_detail(detail)
    if detail.conflict:
        body["conflict"] |= facts.renames(detail.conflict)
    return body


# -- history ------------------------------------------------------------------------------------------------------------------------------


def walk(call: Call, start: str) -> Answer | None:
    """A page of a history that is none along first parents: of one key, or over all parents; None where the request is for a plain one."""
    key, everywhere = call.key("key"), call.flag("all-parents")
    if not is_ours(call) or not (key or everywhere):
        return None
    entries: Iterable[LogEntry]
    operations, most = call.fetches_all(), limit(call.number("max-records")) or MOST_COMMITS
    if key is not None:
        token = call.text("page-token")
        entries = call.repository.log_of_key(f"@{token or start}", key, operations=operations)
    else:
        hidden = [f"@{hash_}" for hash_ in call.texts("exclude")]
        entries = _from_token(call, call.repository.log_excluding(f"@{start}", hidden, operations=operations), lambda entry: entry.hash)
    return Answer(log_page(page(entries, min(most, MOST_WALKED), filter_of(call, "log"), lambda found: found.hash)))


def log_page(found: Page[LogEntry]) -> Listing:
    """A page of a log whose commits tell their height."""
    return listing("logEntries", map(facts.log_entry_with_facts, found), found.token)


def _from_token(call: Call, items: Iterator[Any], name: Callable[[Any], str]) -> Iterator[Any]:
    token = call.text("page-token")
    return dropwhile(lambda item: name(item) != token, items) if token else items


def get_ancestry(call: Call) -> Answer:
    """How two commits are related: their merge base, whether one is an ancestor of the other, or how far they are apart."""
    _for_us(call)
    of, to, tell = (call.text(name) or "" for name in ("of", "to", "tell"))
    if tell == "merge-base":
        return Answer({"mergeBase": call.repository.merge_base(f"@{of}", f"@{to}")})
    if tell == "is-ancestor":
        return Answer({"isAncestor": call.repository.is_ancestor(f"@{of}", f"@{to}")})
    if tell == "ahead-behind":
        found = call.repository.ahead_behind(f"@{of}", f"@{to}")
        return Answer({"ahead": found.ahead, "behind": found.behind, "commonAncestor": found.common_ancestor})
    raise InvalidInput(f"tell: must be merge-base, is-ancestor or ahead-behind, not {tell!r}")


def get_divisions(call: Call) -> Answer:
    """Where to cut a state so that its parts can be read at the same time: the last key of each part but the last one."""
    _for_us(call)
    repository, most = call.repository, call.number("most")
    if most is None:
        raise InvalidInput("most: is missing: how many keys a part may hold")
    found = repository.divisions(f"@{call.text('at')}", most, prefix=call.key("prefix-key"))
    return Answer({"divisions": [encode_key(key) for key in found or ()]})


def get_revision(call: Call) -> Answer:
    """What a revision names: with shortened hashes, and all of its steps at once."""
    _for_us(call)
    try:
        return Answer(encode_single_reference(call.repository.resolve(call.text("spec") or "")))
    except AmbiguousHash as error:
        return Answer({"ambiguous": {"message": error.message, "candidates": [list(pair) for pair in error.candidates]}})


# -- references ---------------------------------------------------------------------------------------------------------------------------


def get_reflog(call: Call) -> Answer:
    """Where one reference, or any, has been, newest first."""
    _for_us(call)
    entries = _from_token(call, call.repository.reflog(call.text("ref")), lambda entry: str(entry.number))
    found = Page(entries, min(limit(call.number("max-records")) or MOST_WALKED, MOST_WALKED), lambda entry: str(entry.number))
    return Answer(listing("reflog", map(facts.reflog_entry, found), found.token))


def post_rename(call: Call) -> Answer:
    """Give a reference another name in one step."""
    _for_us(call)
    target = parse_segment(call.segments["ref"], call.default_branch)
    if target.name is None:
        raise InvalidInput("A branch or a tag must be named.")
    found = named(call.repository, target.name)
    new = call.text("name") or ""
    return Answer(encode_single_reference(call.submit(RenameReference(found.name, new, expected(call.repository, target)))))


# -- requests and settings ----------------------------------------------------------------------------------------------------------------


def get_request(call: Call) -> Answer:
    """What a write with this request id did."""
    _for_us(call)
    found = call.repository.find_request(call.segments["request"])
    return Answer({"result": None if found is None else facts.commit_with_facts(found)})


class _SettingsGuard(Guard):
    settings: dict[str, str | None]


def settings_asked(call: Call) -> bool:
    """Whether the settings of the repository are asked for among its configuration objects."""
    return is_ours(call) and call.texts("type") == [SETTINGS]


def get_settings(call: Call) -> Answer:
    """The settings, as a configuration object."""
    return Answer({"configs": [{"type": SETTINGS, "settings": dict(call.repository.config().settings)}]})


def settings_given(call: Call, body: Any) -> Json | None:
    """The settings in the body of an update; None where it is about something else."""
    config = body.get("config") if isinstance(body, dict) else None
    return config if is_ours(call) and isinstance(config, dict) and config.get("type") == SETTINGS else None


def put_settings(call: Call, config: Json) -> Answer:
    """Set or remove settings; answers their previous values."""
    wanted = check(_SettingsGuard, config, "config").settings
    previous = call.submit(PutSettings(wanted))
    return Answer({"previous": {"type": SETTINGS, "settings": previous}})


def _for_us(call: Call) -> None:
    if not is_ours(call):
        raise NoRoute(())


EXTENSIONS = (
    Route("GET", "/api/v2/revisions", get_revision, "What a revision names", ""),
    Route("GET", "/api/v2/ancestry", get_ancestry, "How two commits are related", ""),
    Route("GET", "/api/v2/divisions", get_divisions, "Where to cut a state into parts", ""),
    Route("GET", "/api/v2/reflog", get_reflog, "Where references have been", ""),
    Route("GET", "/api/v2/requests/{request}", get_request, "What a write did", ""),
    Route("POST", "/api/v2/trees/{ref}/rename", post_rename, "Rename a reference", "", writes=True),
)
"""Routes of our own. The description of the API leaves them out: it describes what every client may use."""
