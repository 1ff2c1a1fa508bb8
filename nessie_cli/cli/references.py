"""What `nessie branch` and `nessie tag` do: list, create, delete, rename and assign references of one type."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from msgspec.structs import replace

from nessie_cli.cli.context import Invocation
from nessie_cli.cli.reference_listing import Listed, existing, list_references
from nessie_cli.cli.walks import only_references_to
from nessie_cli.cli.words import confirm, refuse_empty
from nessie_cli.errors import AlreadyExists, InvalidInput, NessieError, NotAllowed, NotFound, ReferenceConflict, ReferenceNotFound
from nessie_cli.model import Reference, ReferenceType, check_new_reference_name
from nessie_cli.render.spans import Span
from nessie_cli.wire.encode import encode_single_reference


class Wishes(NamedTuple):
    """The options of one call of `branch` or `tag`; `listed` says what is to be listed, where it is."""

    words: list[str]
    listed: Listed | None = None
    delete: bool = False
    rename: bool = False
    assign: bool = False
    if_exists: bool = False
    if_not_exists: bool = False
    expected_hash: str | None = None
    yes: bool = False
    dry_run: bool = False
    hash_on_ref: str | None = None


def wishes_of(params: Mapping[str, Any]) -> Wishes:
    """The options as the parser has them."""
    listed = Listed(
        contains=params["contains"],
        no_contains=params["no_contains"],
        merged=params["merged"],
        no_merged=params["no_merged"],
        points_at=params["points_at"],
        filter=params["filter_"],
        sort=params["sort"],
        show_current=params["show_current"],
        metadata=params["extended"],
    )
    same = ("delete", "rename", "assign", "if_exists", "if_not_exists", "expected_hash", "yes", "dry_run", "hash_on_ref")
    wanted = params["listing"] or listed != Listed()
    given = {name: params[name] for name in same}
    if params["delete_all"]:
        given |= {"delete": True, "yes": True}
    return Wishes(words=params["words"] or [], listed=listed if wanted else None, **given)


def work_on_references(call: Invocation, type_: ReferenceType, wishes: Wishes) -> None:
    """Do what the options say; raises `InvalidInput` where they contradict each other or the words do not fit."""
    refuse_empty("NAME [START]", *wishes.words, wishes.expected_hash, wishes.hash_on_ref, *(wishes.listed or ())[:7])
    actions: list[tuple[bool, Callable[[Invocation, ReferenceType, Wishes], None]]] = [
        (wishes.listed is not None, _list),
        (wishes.delete, _delete),
        (wishes.rename, _rename),
        (wishes.assign, _assign),
    ]
    wanted = [action for chosen, action in actions if chosen]
    if len(wanted) > 1:
        raise InvalidInput("only one of -l, -d, -m and -f at a time")
    action = wanted[0] if wanted else _create if wishes.words else _list
    action(call, type_, wishes)


def _words(wishes: Wishes, least: int, most: int, usage: str) -> list[str]:
    if not least <= len(wishes.words) <= most:
        count = len(wishes.words)
        raise InvalidInput(f"{count} name{'' if count == 1 else 's'} given, expected: {usage}")
    return wishes.words


def _list(call: Invocation, type_: ReferenceType, wishes: Wishes) -> None:
    list_references(call, type_, _words(wishes, 0, 1, "-l [NAME|PATTERN]"), wishes.listed or Listed())


# -- create -----------------------------------------------------------------------------------------------------------------------------


def _create(call: Invocation, type_: ReferenceType, wishes: Wishes) -> None:
    if wishes.expected_hash is not None:
        raise InvalidInput(f"--expected-hash (-c) is for -d, -m and -f; `nessie {type_.lower()} NEW OLD` makes one where another stands")
    name, *start = _words(wishes, 1, 2, "NAME [START]")
    if wishes.hash_on_ref:
        start = [f"{start[0] if start else call.reference_name()}@{wishes.hash_on_ref}"]
    repository = call.repository()
    target = repository.resolve(call.revision(start[0] if start else None)).hash
    try:
        if wishes.dry_run:
            _preview_creation(call, type_, check_new_reference_name(name), target)
            return
        reference = repository.create_reference(type_, name, target)
    except AlreadyExists:
        if not wishes.if_not_exists:
            raise
        _report(call, "exists already:", existing(call, type_, name))
    else:
        _report(call, "created", reference)


def _preview_creation(call: Invocation, type_: ReferenceType, name: str, target: str) -> None:
    """Reports what would be created. Raises `AlreadyExists` as the creation does."""
    try:
        call.repository().reference(name)
    except ReferenceNotFound:
        _report(call, "would create", Reference(type_, name, target))
    else:
        raise AlreadyExists(f"reference '{name}' exists already", name)


def _report(call: Invocation, verb: str, reference: Reference) -> None:
    if call.wants_json:
        call.answer(encode_single_reference(reference))
    else:
        call.say(f"{verb} {reference.type.lower()} ", Span(reference.name, "name"), " at ", Span(call.out.hash(reference.hash), "hash"))


# -- delete, rename, assign ---------------------------------------------------------------------------------------------------------------


def _expected(call: Invocation, reference: Reference, wishes: Wishes) -> str:
    """The hash at which the caller wants the reference to stand; where nothing is said, the one it has."""
    if wishes.expected_hash is None:
        return reference.hash
    return call.repository().resolve(call.revision(wishes.expected_hash)).hash


def _delete(call: Invocation, type_: ReferenceType, wishes: Wishes) -> None:
    """Delete those that can be deleted; where some cannot, the others go all the same, and the end is "partly done"."""
    if not wishes.words or (wishes.expected_hash and len(wishes.words) > 1):
        raise InvalidInput("-d needs the names to delete; with --expected-hash exactly one")
    failures: list[NessieError] = []
    found = list(_to_delete(call, type_, wishes, failures))
    names = {reference.name for reference in found}
    if call.workspace and call.workspace.current_reference() in names:
        raise InvalidInput(f"'{call.workspace.current_reference()}' is the current reference of this workspace; `nessie switch` to another one first")
    lost = [reference.name for reference in found if only_references_to(call.repository(), reference.hash, names)]
    if lost and not wishes.dry_run:
        confirm(call, f"Only {', '.join(lost)} leads to some commits. Delete?", yes=wishes.yes)
    deleted = list(_deleted(call, found, wishes, failures))
    if failures and not deleted:
        raise failures[0]
    _report_deleted(call, deleted, [name for name in lost if name in {reference.name for reference in deleted}], wishes, failures)
    if failures:
        from nessie_cli.cli.failures import partly_done

        partly_done(failures, call)


def _to_delete(call: Invocation, type_: ReferenceType, wishes: Wishes, failures: list[NessieError]) -> Iterator[Reference]:
    """All of them are looked up before the first one goes."""
    default = call.repository().config().default_branch
    for name in dict.fromkeys(wishes.words):
        if name == default:
            raise InvalidInput(f"'{name}' is the default branch of this repository; it cannot be deleted")
        try:
            yield existing(call, type_, name)
        except ReferenceNotFound as error:
            failures += [] if wishes.if_exists else [error]


def _deleted(call: Invocation, found: list[Reference], wishes: Wishes, failures: list[NessieError]) -> Iterator[Reference]:
    for reference in found:
        try:
            if not wishes.dry_run:
                call.repository().delete_reference(reference.name, expected_hash=_expected(call, reference, wishes))
            yield reference
        except (NotAllowed, NotFound, ReferenceConflict) as error:
            failures.append(error)


def _report_deleted(call: Invocation, deleted: list[Reference], lost: list[str], wishes: Wishes, failures: list[NessieError]) -> None:
    if call.wants_json:
        documents = [encode_single_reference(reference) for reference in deleted]
        many = {"references": [document["reference"] for document in documents]}
        if failures:
            from nessie_cli.wire.facts import error_with_facts

            many["errors"] = [error_with_facts(error) for error in failures]
        call.answer(documents[0] if len(documents) == 1 and not failures else many)
        return
    for reference in deleted:
        verb = "would delete" if wishes.dry_run else "deleted"
        call.say(f"{verb} {reference.type.lower()} ", Span(reference.name, "name"), " at ", Span(call.out.hash(reference.hash), "hash"))
        only = " (nothing else leads to its last commits)" if reference.name in lost else ""
        if not wishes.dry_run:
            call.note(f"`nessie undo {reference.name}` brings it back{only}")


def _rename(call: Invocation, type_: ReferenceType, wishes: Wishes) -> None:
    words = _words(wishes, 1, 2, "-m [OLD] NEW")
    old, new = words if len(words) > 1 else (call.reference_name(), words[0])
    reference = existing(call, type_, old)
    if wishes.dry_run:
        _report(call, f"would rename {old} to {new}:", reference)
        return
    renamed = call.repository().rename_reference(old, new, expected_hash=_expected(call, reference, wishes))
    follow_rename(call, old, new)
    _report(call, f"renamed {old} to", renamed)


def follow_rename(call: Invocation, old: str, new: str) -> None:
    """Let the workspace work on the new name where it worked on the old one."""
    if not call.workspace:
        return
    call.workspace.follow_rename(old, new)
    with call.batch_file().changing() as file:
        batch = file.read()
        if batch is not None and batch.branch == old and batch.store in (None, call.store.name()):
            file.write(replace(batch, branch=new))


def _assign(call: Invocation, type_: ReferenceType, wishes: Wishes) -> None:
    name, to = _words(wishes, 2, 2, "-f NAME TARGET")
    repository = call.repository()
    try:
        reference = existing(call, type_, name)
    except NotFound:
        if not wishes.if_exists:
            raise
        return
    target = repository.resolve(call.revision(to)).hash
    backwards = not repository.is_ancestor(reference.hash, target)
    if wishes.dry_run:
        _report(call, "would assign", Reference(type_, name, target))
        return
    if backwards and only_references_to(repository, reference.hash, [name]):
        confirm(call, f"Only {name} leads to some of its commits. Assign it elsewhere?", yes=wishes.yes)
    assigned = repository.assign_reference(name, target, expected_hash=_expected(call, reference, wishes))
    _report(call, "assigned", assigned)
    if backwards:
        call.note(f"`nessie undo {name}` takes it back to {call.err.hash(reference.hash)}")
