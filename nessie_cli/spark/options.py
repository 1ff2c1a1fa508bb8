"""The options of `.option(...)`, checked once. A misspelt option is an error."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from nessie_cli.errors import InvalidInput
from nessie_cli.model import ContentKey
from nessie_cli.repository.access import checked_url
from nessie_cli.repository.urls import is_server

ALL_REFERENCES = "*"
ROWS_PER_PARTITION = 25_000
"""The default of `rowsPerPart`.

Spark's Python spends 0.25 s on each task before it reads, a commit takes 30 microseconds
(docs/reference/performance.md).
"""
_SECRET = r"(?i)auth|token|passw|pwd|secret|credential|api.?key|access.?key"  # noqa: S105 - a pattern of names
_COMMON = frozenset({"url", "table", "rowsperpartition"})
_SPELLING = {
    "rowsperpartition": "rowsPerPartition",
    "maxcommitsperbatch": "maxCommitsPerBatch",
    "dryrun": "dryRun",
    "requestid": "requestId",
    "expectedhash": "expectedHash",
}
"""The spelling of options, which Spark passes in lower case."""
WRITING = frozenset({"url", "ref", "message", "author", "expectedhash", "requestid", "dryrun"})


class ReadOptions(Struct, frozen=True):
    """The options of a read.

    `references` are revisions, `*` for all, or None for the default branch. `since` is the option
    `from`. `commits_per_batch` is for streams only; None takes all new commits.
    """

    url: str
    table: str
    references: tuple[str, ...] | None = None
    since: str | None = None
    at: str | None = None
    prefix: str | None = None
    key: str | None = None
    rows: int = ROWS_PER_PARTITION
    commits_per_batch: int | None = None

    @property
    def place(self) -> str:
        """The place in messages."""
        return f"{self.url}, table {self.table}"

    @property
    def key_prefix(self) -> ContentKey | None:
        """The prefix as a content key."""
        return ContentKey.parse(self.prefix) if self.prefix else None


class WriteOptions(Struct, frozen=True):
    """The options of a write. If `author` is None, the repository determines the author."""

    url: str
    branch: str | None
    message: str
    author: str | None = None
    expected_hash: str | None = None
    request_id: str | None = None
    dry_run: bool = False

    @property
    def place(self) -> str:
        """The place in messages."""
        return f"{self.url}, commit on {self.branch or 'the default branch'}"


def read_options(options: Mapping[str, str], tables: Mapping[str, frozenset[str]]) -> ReadOptions:
    """The options of a read; `tables` says which ones each table takes. Raises `InvalidInput`."""
    given = {name.lower(): value.strip() for name, value in options.items()}
    _refuse_secrets(given)
    table = given.get("table", "")
    if table not in tables:
        if table:
            raise InvalidInput(
                f"option 'table': there is no table {table!r}",
                hint=f"there are {', '.join(tables)}",
            )
        raise InvalidInput(f"option 'table' is missing; {_offer(tables)}")
    allowed = _COMMON | tables[table]
    for name in given:
        if name not in allowed:
            raise InvalidInput(
                f"option {_SPELLING.get(name, name)}: table {table} has no such option",
                hint=f"its options are {_spelt(allowed)}",
            )
    if "ref" in given and "to" in given:
        raise InvalidInput("options 'ref' and 'to' cannot be combined", hint="set one of them")
    text = given.get("ref") or given.get("to")
    result = ReadOptions(
        url=_url(given),
        table=table,
        references=tuple(filter(None, (part.strip() for part in text.split(","))))
        if text
        else None,
        since=given.get("from") or None,
        at=given.get("at") or None,
        prefix=given.get("prefix") or None,
        key=given.get("key") or None,
        rows=_number(given, "rowsperpartition") or ROWS_PER_PARTITION,
        commits_per_batch=_number(given, "maxcommitsperbatch"),
    )
    if result.references and len(result.references) > 1 and ALL_REFERENCES in result.references:
        raise InvalidInput(
            "option ref: * stands for all references and cannot be combined with others"
        )
    return result


def _offer(tables: Mapping[str, frozenset[str]]) -> str:
    return f".option('table', ...) is one of {', '.join(tables)}"


def write_options(options: Mapping[str, str]) -> WriteOptions:
    """The options of a write. Raises `InvalidInput`."""
    given = {name.lower(): value for name, value in options.items()}
    _refuse_secrets(given)
    for name in given:
        if name not in WRITING:
            raise InvalidInput(
                f"option {_SPELLING.get(name, name)}: a write has no such option",
                hint=f"its options are {_spelt(WRITING)}",
            )
    if not given.get("message", "").strip():
        raise InvalidInput(
            "option 'message' is missing", hint="set the commit message by .option('message', ...)"
        )
    return WriteOptions(
        url=_url(given),
        branch=given.get("ref") or None,
        message=given["message"],
        author=given.get("author") or None,
        expected_hash=given.get("expectedhash") or None,
        request_id=given.get("requestid") or None,
        dry_run=_flag("dryRun", given.get("dryrun", "false")),
    )


def _spelt(names: frozenset[str]) -> str:
    return ", ".join(sorted(_SPELLING.get(name, name) for name in names))


def _refuse_secrets(given: Mapping[str, str]) -> None:
    for name in given:
        if re.search(_SECRET, name) and name != "author":
            raise InvalidInput(
                f"option {name}: secrets are not options, because options are in Spark's plans",
                hint=(
                    "set NESSIE_AUTH_TOKEN in the environment of the driver, and of the"
                    " executors "
                    "by the setting spark.executorEnv.NESSIE_AUTH_TOKEN"
                ),
            )


def _url(given: Mapping[str, str]) -> str:
    url = given.get("url", "").strip()
    if not url:
        raise InvalidInput(
            "option 'url' is missing",
            hint="set .option('url', ...) to a server "
            "(http://host/api/v2) or a store (sqlite:////path)",
        )
    if is_server(url):
        return checked_url(url)
    if url.startswith("memory:"):
        raise InvalidInput("option 'url': memory is a store of one process, and Spark has several")
    return url


def _number(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or not 0 < int(text[:10]) == int(text):
        raise InvalidInput(f"option {_SPELLING[name]}: {text!r} is not a positive integer")
    return int(text)


def _flag(name: str, text: str) -> bool:
    if text.strip().lower() not in ("true", "false"):
        raise InvalidInput(f"option {name}: {text!r} is neither true nor false")
    return text.strip().lower() == "true"
