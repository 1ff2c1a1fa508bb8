"""A repository that reports on the terminal which operation runs if it takes over a second."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from nessie_cli.render.busy import Activity, Busy
    from nessie_cli.repository.base import Repository

WORDS: Mapping[str, str] = {
    "assign_reference": "moving the reference",
    "check": "checking every object",
    "commit": "committing",
    "contents": "reading contents",
    "create_reference": "creating the reference",
    "delete_reference": "deleting the reference",
    "diff": "comparing",
    "entries": "reading the catalog",
    "filtered_log": "reading the history",
    "log": "reading the history",
    "log_excluding": "reading the history",
    "log_of_key": "reading the history",
    "merge": "merging",
    "put_setting": "changing a setting",
    "references": "reading branches and tags",
    "rename_reference": "renaming the reference",
    "transplant": "transplanting",
}
"""The text shown for each slow operation."""
OTHERWISE = "reading"


def watched(repository: Repository, busy: Busy) -> Repository:
    """Returns the repository, wrapped so that slow operations are reported."""
    where = ""
    if repository.is_remote:
        from urllib.parse import urlsplit

        where = f", waiting for {urlsplit(repository.url).hostname}"
    return cast("Repository", _WatchedRepository(repository, busy, where))


class _WatchedRepository:
    """Wraps slow methods. A generator is reported while its next item is computed."""

    def __init__(self, repository: Repository, busy: Busy, where: str) -> None:
        self._repository = repository
        self._busy = busy
        self._where = where

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._repository, name)
        if not callable(attribute) or name == "close":
            return attribute
        activity = WORDS.get(name, OTHERWISE) + self._where

        def verb(*args: Any, **named: Any) -> Any:
            work = self._busy.at_work(activity)
            with work:
                answer = attribute(*args, **named)
            return _each(answer, work) if isinstance(answer, Iterator) else answer

        return verb


def _each(answer: Iterator[Any], work: Activity) -> Iterator[Any]:
    end = object()
    while True:
        with work:
            item = next(answer, end)
        if item is end:
            return
        work.counted += 1
        yield item
