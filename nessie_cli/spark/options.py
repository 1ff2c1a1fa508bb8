"""What `.option(...)` may say, read once and checked: a misspelt option is an error, never a wider answer."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from nessie_cli.errors import InvalidInput
from nessie_cli.model import ContentKey
from nessie_cli.repository.access import checked_url

ALL_REFERENCES = "*"
ROWS_PER_PARTITION = 25_000
"""Spark's own Python spends a quarter of a second on each task before it reads; a commit takes 30 microseconds (docs/reference/performance.md)."""
_SECRET = r"(?i)auth|token|passw|pwd|secret|credential|api.?key|access.?key"  # noqa: S105 - a pattern of names
_COMMON = frozenset({"url", "table", "rowsperpartition"})
_SPELLING = {
    "rowsperpartition": "rowsPerPartition",
    "maxcommitsperbatch": "maxCommitsPerBatch",
    "dryrun": "dryRun",
    "requestid": "requestId",
    "expectedhash": "expectedHash",
}
"""Spark gives the names of options in lower case."""
WRITING = frozenset({"url", "ref", "message", "author", "expectedhash", "requestid", "dryrun"})


class Asked(Struct, frozen=True):
    """What a read asks for. `references` are revisions, or the one word `*`; None for the default branch. `since` is the option `from`.

    `commits_per_batch` is for streams alone: None takes all that there are.
    """

    url: str
    table: str
    references: tuple[str, ...] | None = None
    since: str | None = None
    at: str | None = None
    prefix: str | None = None
    rows: int = ROWS_PER_PARTITION
    commits_per_batch: int | None = None

    @property
    def place(self) -> str:
        """Where this is, for messages."""
        return f"{self.url}, table {self.table}"

    @property
    def key_prefix(self) -> ContentKey | None:
        """The prefix as a content key."""
        return ContentKey.parse(self.prefix) if self.prefix else None


class Submission(Struct, frozen=True):
    """What a write asks for. `author` may be None: then the repository names who writes."""

    url: str
    branch: str | None
    message: str
    author: str | None = None
    expected_hash: str | None = None
    request_id: str | None = None
    dry_run: bool = False

    @property
    def place(self) -> str:
        """Where this is, for messages."""
        return f"{self.url}, commit on {self.branch or 'the default branch'}"


def asked(options: Mapping[str, str], tables: Mapping[str, frozenset[str]]) -> Asked:
    """The options of a read; `tables` says which ones each table takes. Raises `InvalidInput`."""
    given = {name.lower(): value.strip() for name, value in options.items()}
    _refuse_secrets(given)
    table = given.get("table", "")
    if table not in tables:
        raise InvalidInput(
            f"option table: {table!r} is no table; there are {', '.join(tables)}"
            if table
            else f"option table: is missing; {_offer(tables)}"
        )
    allowed = _COMMON | tables[table]
    for name in given:
        if name not in allowed:
            raise InvalidInput(
                f"option {_SPELLING.get(name, name)}: table {table} has no such option; it takes {_spelt(allowed)}"
            )
    if "ref" in given and "to" in given:
        raise InvalidInput("options ref and to: both name the end; give one of them")
    text = given.get("ref") or given.get("to")
    result = Asked(
        url=_url(given),
        table=table,
        references=tuple(filter(None, (part.strip() for part in text.split(","))))
        if text
        else None,
        since=given.get("from") or None,
        at=given.get("at") or None,
        prefix=given.get("prefix") or None,
        rows=_number(given, "rowsperpartition") or ROWS_PER_PARTITION,
        commits_per_batch=_number(given, "maxcommitsperbatch"),
    )
    if result.references and len(result.references) > 1 and ALL_REFERENCES in result.references:
        raise InvalidInput("option ref: * is every reference; give it alone")
    return result


def _offer(tables: Mapping[str, frozenset[str]]) -> str:
    return f'.option("table", ...) is one of {", ".join(tables)}'


def submission(options: Mapping[str, str]) -> Submission:
    """The options of a write. Raises `InvalidInput`."""
    given = {name.lower(): value for name, value in options.items()}
    _refuse_secrets(given)
    for name in given:
        if name not in WRITING:
            raise InvalidInput(
                f"option {_SPELLING.get(name, name)}: a write has no such option; it takes {_spelt(WRITING)}"
            )
    if not given.get("message", "").strip():
        raise InvalidInput(
            'option message: is missing; .option("message", ...) says what the commit does'
        )
    return Submission(
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
                f"option {name}: options stand in plans, so secrets are none; NESSIE_AUTH_TOKEN and its like come from the environment of the "
                "driver, and of the executors by the setting spark.executorEnv.NESSIE_AUTH_TOKEN"
            )


def _url(given: Mapping[str, str]) -> str:
    url = given.get("url", "").strip()
    if not url:
        raise InvalidInput(
            'option url: is missing; .option("url", ...) names a server (http://host/api/v2) or a store (sqlite:////path)'
        )
    if url.startswith(("http://", "https://")):
        return checked_url(url)
    if url.startswith("memory:"):
        raise InvalidInput(
            "option url: memory: is another repository in each process; Spark has several"
        )
    return url


def _number(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or not 0 < int(text[:10]) == int(text):
        raise InvalidInput(f"option {_SPELLING[name]}: {text!r} is no whole number above 0")
    return int(text)


def _flag(name: str, text: str) -> bool:
    if text.strip().lower() not in ("true", "false"):
        raise InvalidInput(f"option {name}: {text!r} is neither true nor false")
    return text.strip().lower() == "true"
