"""The listings of `nessie branch` and `nessie tag`: which references, in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

from nessie_cli.commitspec import CommitSpec
from nessie_cli.errors import InvalidInput
from nessie_cli.model import Reference, ReferenceType
from nessie_cli.render.references import print_references
from nessie_cli.repository.base import Surveying
from nessie_cli.wire.encode import encode_reference, encode_single_reference

if TYPE_CHECKING:
    from nessie_cli.cli.context import Invocation

_PATTERN = frozenset("*?[")
"""No reference name holds these: a word with one of them is a pattern."""
SORTS = ("name", "time", "ahead", "behind")
_PAGE = 64
_EXPENSIVE = ("time", "ahead", "behind")


class Listed(NamedTuple):
    """What is to be listed: relations to other revisions, a filter, the order, and whether with metadata."""

    contains: str | None = None
    no_contains: str | None = None
    merged: str | None = None
    no_merged: str | None = None
    points_at: str | None = None
    filter: str | None = None
    sort: str | None = None
    show_current: bool = False
    metadata: bool = False


def existing(call: Invocation, type_: ReferenceType, name: str, *, metadata: bool = False) -> Reference:
    """One reference of a type; raises `ReferenceNotFound`, and `InvalidInput` where it is of the other type."""
    reference = call.repository().reference(name, metadata=metadata)
    if reference.type is not type_:
        raise InvalidInput(f"'{name}' is a {reference.type.lower()}, not a {type_.lower()}; use `nessie {reference.type.lower()}`")
    return reference


def list_references(call: Invocation, type_: ReferenceType, names: list[str], listed: Listed) -> None:
    """Print the references of one type: all, those whose names fit a pattern, or the one that is named."""
    verbose = call.options.verbose or listed.metadata
    if listed.show_current:
        _show_current(call)
    elif names and not _PATTERN & set(names[0]) and listed == Listed(metadata=listed.metadata):
        _print(call, [existing(call, type_, names[0], metadata=verbose)], verbose=verbose, single=True)
    else:
        _print(call, _found(call, type_, names, listed, verbose=verbose), verbose=verbose)


def _show_current(call: Invocation) -> None:
    name = call.reference_name()
    if call.wants_json:
        call.answer(encode_single_reference(call.repository().reference(name)))
    else:
        call.say(name)


def _print(call: Invocation, found: Iterable[Reference], *, verbose: bool, single: bool = False) -> None:
    if not call.wants_json:
        print_references(found, call.out, current=call.head.name, verbose=verbose)
    elif single:
        call.answer(encode_single_reference(next(iter(found))))
    else:
        call.answer_listing("references", map(encode_reference, found), hasMore=False, token=None)


def _found(call: Invocation, type_: ReferenceType, names: list[str], listed: Listed, *, verbose: bool) -> Iterable[Reference]:
    order = _order(listed.sort)
    key, descending = order or ("name", False)
    repository = call.repository()
    by_time = key == "time" and listed.filter is None and isinstance(repository, Surveying)
    metadata = (verbose or key in _EXPENSIVE or listed.filter is not None) and not by_time
    found: Iterable[Reference] = repository.references(type_, metadata=metadata)
    if names:
        found = (reference for reference in found if fnmatchcase(reference.name, names[0]))
    for revision, wanted in ((listed.merged, True), (listed.no_merged, False)):
        if revision is not None:
            found = _merged(call, list(found), revision, wanted=wanted)
    for test in _tests(call, listed):
        found = filter(test, found)
    if by_time:
        return _by_time(repository, list(found), descending=descending, metadata=verbose or call.wants_json)  # type: ignore[arg-type]
    if order is None or order == ("name", False):
        return found
    return sorted(found, key=_KEYS[key], reverse=descending)


def _by_time(repository: Surveying, found: list[Reference], *, descending: bool, metadata: bool) -> Iterator[Reference]:
    """Only for what is printed it is found out how far it is from the default branch."""
    times = repository.commit_times([reference.hash for reference in found])
    found.sort(key=lambda reference: times[reference.hash], reverse=descending)
    for first in range(0, len(found), _PAGE):
        page = found[first : first + _PAGE]
        yield from repository.with_metadata(page) if metadata else page


def _merged(call: Invocation, found: list[Reference], revision: str, *, wanted: bool) -> Iterator[Reference]:
    repository = call.repository()
    commit = repository.resolve(call.revision(revision)).hash
    if isinstance(repository, Surveying):
        merged = repository.ancestors_among({reference.hash for reference in found}, commit)
        return (reference for reference in found if (reference.hash in merged) == wanted)
    # As texts they would be looked for among the names first.
    into = CommitSpec(None, commit)
    return (reference for reference in found if repository.is_ancestor(CommitSpec(None, reference.hash), into) == wanted)


def _order(sort: str | None) -> tuple[str, bool] | None:
    """The key of `--sort` and whether it is descending; raises `InvalidInput`."""
    if sort is None:
        return None
    key = sort.removeprefix("-")
    if key not in SORTS:
        from nessie_cli.cli.suggestions import did_you_mean

        raise InvalidInput(f"--sort {sort}: known are {', '.join(SORTS)}, with a - before it for the other direction{did_you_mean(key, SORTS)}")
    return key, sort.startswith("-")


def _time(reference: Reference) -> float:
    """Of the last commit; a reference without one goes before all others."""
    head = reference.metadata.head if reference.metadata else None
    return head.commit_time.timestamp() if head and head.commit_time else 0.0


_KEYS: dict[str, Callable[[Reference], str | float]] = {
    "name": lambda reference: reference.name,
    "time": _time,
    "ahead": lambda reference: (reference.metadata and reference.metadata.ahead) or 0,
    "behind": lambda reference: (reference.metadata and reference.metadata.behind) or 0,
}


def _tests(call: Invocation, listed: Listed) -> Iterator[Callable[[Reference], bool]]:
    repository = call.repository()

    def commit_of(revision: str) -> CommitSpec:
        return CommitSpec(None, repository.resolve(call.revision(revision)).hash)

    def tip(reference: Reference) -> CommitSpec:
        """As a text it would be looked for among the names first."""
        return CommitSpec(None, reference.hash)

    for revision, wanted in ((listed.contains, True), (listed.no_contains, False)):
        if revision is not None:
            commit = commit_of(revision)
            yield lambda reference, commit=commit, wanted=wanted: repository.is_ancestor(commit, tip(reference)) == wanted  # type: ignore[misc]
    if listed.points_at is not None:
        at = commit_of(listed.points_at).hash
        yield lambda reference: reference.hash == at
    if listed.filter is not None:
        from nessie_cli.cli.filters import by_filter

        yield by_filter("references", listed.filter)
