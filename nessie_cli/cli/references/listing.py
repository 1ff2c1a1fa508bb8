"""Selecting and sorting the references of a list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from nessie_cli.cli.references.lookup import GLOB, existing
from nessie_cli.cli.references.results import ReferencesResult, SingleReferenceResult
from nessie_cli.errors import InvalidInput
from nessie_cli.model import Reference, ReferenceType

if TYPE_CHECKING:
    from nessie_cli.cli.app.invocation import Invocation
    from nessie_cli.cli.references.options import ReferenceOptions

_SORTS_OF_GIT = {
    "refname": "name",
    "v:refname": "name",
    "version:refname": "name",
    "committerdate": "time",
    "creatordate": "time",
}


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
    if len(options.arguments) == 1 and not options.selects and not GLOB & set(options.arguments[0]):
        reference = existing(app, type_, options.arguments[0], metadata=verbose)
        return SingleReferenceResult(reference, current=current, verbose=verbose)
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
    metadata = verbose or key != "name" or options.filter_ is not None
    references: Iterable[Reference] = app.repository().references(type_, metadata=metadata)
    if options.arguments:
        references = _named(options.arguments, app, type_, references)
    if any((options.merged, options.no_merged, options.contains, options.no_contains)):
        references = _by_commits(options, app, references)
    for test in _tests(options, app):
        references = filter(test, references)
    if key == "name" and not descending:
        return references
    from nessie_cli.inspection.references import sort_references

    return sort_references(references, key, descending=descending)


def _named(
    patterns: Sequence[str],
    app: Invocation,
    type_: ReferenceType,
    references: Iterable[Reference],
) -> Iterator[Reference]:
    """Returns the references with these names or patterns.

    Raises `ReferenceNotFound` for a name.
    """
    for pattern in patterns:
        if not GLOB & set(pattern):
            existing(app, type_, pattern)
    return (
        reference
        for reference in references
        if any(fnmatchcase(reference.name, pattern) for pattern in patterns)
    )


def _by_commits(
    options: ReferenceOptions, app: Invocation, references: Iterable[Reference]
) -> Iterable[Reference]:
    """Returns the references that contain some commits, or that these contain, or all others."""
    from nessie_cli.inspection.references import containing, merged

    repository = app.repository()

    def commit(revision: str) -> str:
        return repository.resolve(app.revision(revision)).hash

    for revision, are_merged in ((options.merged, True), (options.no_merged, False)):
        if revision is not None:
            references = merged(repository, references, commit(revision), are_merged=are_merged)
    for revision, do_contain in ((options.contains, True), (options.no_contains, False)):
        if revision is not None:
            references = containing(repository, references, commit(revision), do_contain=do_contain)
    return references


def _order(sort: str | None) -> tuple[str, bool]:
    """Returns the key of `--sort` and whether it is descending. Raises `InvalidInput`."""
    if sort is None:
        return "name", False
    from nessie_cli.inspection.references import SORTS

    key = sort.removeprefix("-")
    key = _SORTS_OF_GIT.get(key, key)
    if key not in SORTS:
        from nessie_cli.cli.errors.suggestions import did_you_mean

        keys = ", ".join(SORTS)
        near = did_you_mean(key, SORTS)
        raise InvalidInput(
            f"--sort {sort}: the keys are {keys}; a - before the key sorts descending{near}",
        )
    return key, sort.startswith("-")


def _tests(options: ReferenceOptions, app: Invocation) -> Iterator[Callable[[Reference], bool]]:
    if options.points_at is not None:
        at = app.repository().resolve(app.revision(options.points_at)).hash
        yield lambda reference: reference.hash == at
    if options.filter_ is not None:
        from nessie_cli.cli.app.filters import by_filter

        yield by_filter("references", options.filter_)
