"""The listings of `nessie branch` and `nessie tag`: which references, in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from nessie_cli.errors import InvalidInput
from nessie_cli.model import Reference, ReferenceType
from nessie_cli.render.references import print_references
from nessie_cli.wire.encode import encode_reference, encode_single_reference

if TYPE_CHECKING:
    from nessie_cli.cli.context import Invocation

_PATTERN = frozenset("*?[")
"""No reference name holds these: a word with one of them is a pattern."""
SORTS = ("name", "time", "ahead", "behind")
_SORTS_OF_GIT = {"refname": "name", "v:refname": "name", "version:refname": "name"} | dict.fromkeys(("committerdate", "creatordate"), "time")
_PAGE = 64
_BY_METADATA = ("time", "ahead", "behind")


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
    metadata = verbose or key in _BY_METADATA or listed.filter is not None
    found: Iterable[Reference] = repository.references(type_, metadata=metadata)
    if names:
        found = (reference for reference in found if fnmatchcase(reference.name, names[0]))
    for revision, wanted in ((listed.merged, True), (listed.no_merged, False)):
        if revision is not None:
            found = _merged(call, list(found), revision, wanted=wanted)
    for revision, wanted in ((listed.contains, True), (listed.no_contains, False)):
        if revision is not None:
            found = _containing(call, found, revision, wanted=wanted)
    for test in _tests(call, listed):
        found = filter(test, found)
    if order is None or order == ("name", False):
        return found
    return sorted(found, key=_KEYS[key], reverse=descending)


def _merged(call: Invocation, found: list[Reference], revision: str, *, wanted: bool) -> Iterator[Reference]:
    repository = call.repository()
    commit = repository.resolve(call.revision(revision)).hash
    merged = repository.ancestors_among({reference.hash for reference in found}, commit)
    return (reference for reference in found if (reference.hash in merged) == wanted)


def _containing(call: Invocation, found: Iterable[Reference], revision: str, *, wanted: bool) -> Iterator[Reference]:
    repository = call.repository()
    commit = repository.resolve(call.revision(revision)).hash

    def chosen(batch: Sequence[Reference]) -> list[Reference]:
        containing = repository.descendants_among({reference.hash for reference in batch}, commit)
        return [reference for reference in batch if (reference.hash in containing) == wanted]

    rest = iter(found)
    # The first page soon, then all others together.
    return chain.from_iterable(chosen(list(some)) for some in (islice(rest, _PAGE), rest))


def _order(sort: str | None) -> tuple[str, bool] | None:
    """The key of `--sort` and whether it is descending; raises `InvalidInput`."""
    if sort is None:
        return None
    key = sort.removeprefix("-")
    key = _SORTS_OF_GIT.get(key, key)
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
    if listed.points_at is not None:
        at = call.repository().resolve(call.revision(listed.points_at)).hash
        yield lambda reference: reference.hash == at
    if listed.filter is not None:
        from nessie_cli.cli.filters import by_filter

        yield by_filter("references", listed.filter)
