"""Selecting and sorting the references of a list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import chain, islice
from typing import TYPE_CHECKING

from nessie_cli.cli.references.lookup import GLOB, existing
from nessie_cli.cli.references.results import ReferencesResult, SingleReferenceResult
from nessie_cli.errors import InvalidInput
from nessie_cli.model import Reference, ReferenceType

if TYPE_CHECKING:
    from nessie_cli.cli.app.invocation import Invocation
    from nessie_cli.cli.references.options import ReferenceOptions

SORTS = ("name", "time", "ahead", "behind")
_SORTS_OF_GIT = {
    "refname": "name",
    "v:refname": "name",
    "version:refname": "name",
    "committerdate": "time",
    "creatordate": "time",
}
_PAGE = 64
_BY_METADATA = ("time", "ahead", "behind")


def list_references(
    options: ReferenceOptions,
    app: Invocation,
    type_: ReferenceType,
) -> ReferencesResult | SingleReferenceResult:
    """Returns the references that the options select.

    A single name without conditions returns a single reference.
    """
    verbose = app.options.verbose or options.extended
    current = None if app.output.is_json else app.head.name
    if len(options.words) == 1 and not options.selects and not GLOB & set(options.words[0]):
        found = existing(app, type_, options.words[0], metadata=verbose)
        return SingleReferenceResult(found, current=current, verbose=verbose)
    selected = _selected(options, app, type_, verbose=verbose)
    return ReferencesResult(references=selected, current=current, verbose=verbose)


def _selected(
    options: ReferenceOptions,
    app: Invocation,
    type_: ReferenceType,
    *,
    verbose: bool,
) -> Iterable[Reference]:
    key, descending = _order(options.sort)
    metadata = verbose or key in _BY_METADATA or options.filter_ is not None
    found: Iterable[Reference] = app.repository().references(type_, metadata=metadata)
    if options.words:
        found = _named(options.words, app, type_, found)
    for revision, wanted in ((options.merged, True), (options.no_merged, False)):
        if revision is not None:
            found = _merged(app, list(found), revision, wanted=wanted)
    for revision, wanted in ((options.contains, True), (options.no_contains, False)):
        if revision is not None:
            found = _containing(app, found, revision, wanted=wanted)
    for test in _tests(options, app):
        found = filter(test, found)
    if key == "name" and not descending:
        return found
    return sorted(found, key=_KEYS[key], reverse=descending)


def _named(
    words: Sequence[str],
    app: Invocation,
    type_: ReferenceType,
    found: Iterable[Reference],
) -> Iterator[Reference]:
    """Returns the references with these names or patterns.

    Raises `ReferenceNotFound` for a name.
    """
    for word in words:
        if not GLOB & set(word):
            existing(app, type_, word)
    return (one for one in found if any(fnmatchcase(one.name, word) for word in words))


def _merged(
    app: Invocation,
    found: list[Reference],
    revision: str,
    *,
    wanted: bool,
) -> Iterator[Reference]:
    repository = app.repository()
    commit = repository.resolve(app.revision(revision)).hash
    merged = repository.ancestors_among({reference.hash for reference in found}, commit)
    return (reference for reference in found if (reference.hash in merged) == wanted)


def _containing(
    app: Invocation,
    found: Iterable[Reference],
    revision: str,
    *,
    wanted: bool,
) -> Iterator[Reference]:
    repository = app.repository()
    commit = repository.resolve(app.revision(revision)).hash

    def chosen(batch: Sequence[Reference]) -> list[Reference]:
        hashes = {reference.hash for reference in batch}
        containing = repository.descendants_among(hashes, commit)
        return [reference for reference in batch if (reference.hash in containing) == wanted]

    rest = iter(found)
    # A small first page makes the output start early. The rest is looked up in one request.
    return chain.from_iterable(chosen(list(some)) for some in (islice(rest, _PAGE), rest))


def _order(sort: str | None) -> tuple[str, bool]:
    """Returns the key of `--sort` and whether it is descending. Raises `InvalidInput`."""
    if sort is None:
        return "name", False
    key = sort.removeprefix("-")
    key = _SORTS_OF_GIT.get(key, key)
    if key not in SORTS:
        from nessie_cli.cli.errors.suggestions import did_you_mean

        known = ", ".join(SORTS)
        near = did_you_mean(key, SORTS)
        raise InvalidInput(
            f"--sort {sort}: the keys are {known}; a - before the key sorts descending{near}",
        )
    return key, sort.startswith("-")


def _time(reference: Reference) -> float:
    """Returns the time of the last commit. References without a commit sort first."""
    head = reference.metadata.head if reference.metadata else None
    return head.commit_time.timestamp() if head and head.commit_time else 0.0


_KEYS: dict[str, Callable[[Reference], str | float]] = {
    "name": lambda reference: reference.name,
    "time": _time,
    "ahead": lambda reference: (reference.metadata and reference.metadata.ahead) or 0,
    "behind": lambda reference: (reference.metadata and reference.metadata.behind) or 0,
}


def _tests(options: ReferenceOptions, app: Invocation) -> Iterator[Callable[[Reference], bool]]:
    if options.points_at is not None:
        at = app.repository().resolve(app.revision(options.points_at)).hash
        yield lambda reference: reference.hash == at
    if options.filter_ is not None:
        from nessie_cli.cli.app.filters import by_filter

        yield by_filter("references", options.filter_)
