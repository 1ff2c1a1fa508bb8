"""The command lines that resolve the conflicts of staged operations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import count, islice
from typing import TYPE_CHECKING, Any

from nessie_cli.cli.app.global_options import carried
from nessie_cli.cli.errors.resolutions import CurrentHash, command_line, key_option
from nessie_cli.cli.staging.batch import StagedChange, changes_of
from nessie_cli.errors import InvalidInput, ReferenceConflict, Resolution, WaysOut
from nessie_cli.iceberg.combination.merging import states_of
from nessie_cli.inspection.text import short_hash, visible
from nessie_cli.model import (
    CONTENT_TYPES,
    CommitMeta,
    Conflict,
    ConflictType,
    Content,
    ContentKey,
    Delete,
    KeyRange,
    Namespace,
    Put,
    UnknownContent,
    type_label,
)
from nessie_cli.render.text import counted
from nessie_cli.repository.edits import is_same
from nessie_cli.workspace.content_edits import ContentEdit, components, connected, content_edits
from nessie_cli.workspace.staging import StagedList, origins_of, overlaid, without

if TYPE_CHECKING:
    from collections.abc import Collection

    from nessie_cli.cli.app.invocation import Invocation
    from nessie_cli.cli.staging.restaging import Restaged
    from nessie_cli.repository.changes import AnyRevision
    from nessie_cli.workspace.batch import Staged


OF_NAMESPACES = (
    ConflictType.NAMESPACE_ABSENT,
    ConflictType.NOT_A_NAMESPACE,
    ConflictType.NAMESPACE_NOT_EMPTY,
)
"""The types of conflicts about the namespaces that a batch needs."""

MOST_CHILDREN = 20
"""No command line is suggested, and no answer accepted, that deletes more contents at once."""
MOST_NAMES = 3
"""The number of contents below a namespace that a message names."""

TYPE_OPTION: Mapping[str, str] = {name: type_label(name) for name in CONTENT_TYPES}
"""The spelling of each content type in `--type`."""

FIELD_OPTION: Mapping[str, str] = {
    "metadataLocation": "--metadata-location",
    "snapshotId": "--snapshot-id",
    "schemaId": "--schema-id",
    "specId": "--spec-id",
    "sortOrderId": "--sort-order-id",
    "versionId": "--version-id",
    "sqlText": "--sql-text",
    "dialect": "--dialect",
    "signatureId": "--signature-id",
    "metadataLocationHistory": "--metadata-location",
    "checkpointLocationHistory": "--checkpoint-location",
    "lastCheckpoint": "--last-checkpoint",
    "properties": "--property",
}
"""The option of `nessie content put` that sets each attribute of a content."""


class BatchResolutions(WaysOut):
    """Resolves a conflict: stage the change again on the current state, or drop it.

    A line never drops another staged change. It says which contents of the branch it deletes.
    Without a workspace nothing is staged, so each command line commits by itself.
    """

    def __init__(self, app: Invocation, staged: StagedList, error: ReferenceConflict) -> None:
        self._app, self._staged, self._error = app, staged, error
        self.one_by_one = command_line(*carried(app.options), "resolve") if app.workspace else ""
        can_combine = any(states_of(conflict, error) for conflict in error.conflicts)
        self.combines = can_combine and app.combines_tables
        self._edits = components(content_edits(staged))
        self._staged_keys = [item.key for item in staged]
        self._items: dict[ContentKey, list[Staged]] = {}
        for item in staged:
            self._items.setdefault(item.key, []).append(item)
        self._keys_in_conflict = {conflict.key for conflict in error.conflicts}
        self._reasons: dict[ContentKey, str] = {}
        self._keeps_ids = app.repository().restores_content_ids
        self._restored = origins_of(staged).keys() if self._keeps_ids else set()

    def of(self, conflict: Conflict) -> Sequence[Resolution]:
        """Returns the command lines for a conflict."""
        key = conflict.key
        if key is None:
            return CurrentHash(self._app, self._error).of(conflict)
        match conflict.type:
            case ConflictType.NAMESPACE_ABSENT:
                return [*self._absent(conflict, key), *self._reset(self._staged_below(key))]
            case ConflictType.NOT_A_NAMESPACE:
                return [*self._reset(self._staged_below(key)), *self._in_place_of(key)]
            case ConflictType.NAMESPACE_NOT_EMPTY:
                return self._empty(key)
        lines: list[Resolution] = []
        if conflict.other_key is not None:
            lines = self._by_decision(conflict, key)
        elif conflict.same_file_key is None and not self.reason_against_proposed(conflict):
            lines = self._stage_again(conflict, key)
        return [*lines, *self._reset([key])]

    def _stage_again(self, conflict: Conflict, key: ContentKey) -> list[Resolution]:
        """Returns the command that stages the change on the current state, if there is one."""
        edits = self._edits.get(key, [])
        is_renamed = _new_key(conflict) is not None and self._app.workspace is not None
        if is_renamed or self._loses_id(conflict, key, edits):
            return self._by_decision(conflict, key)
        if not edits:
            return self._again(conflict, ["unmodified"])
        if len(edits) > 1:
            # No other command stages a swap, or a renamed key with another content, at once.
            return self._replacement(conflict, key, edits) or self._by_decision(conflict, key)
        return self._alone(conflict, key, edits[0])

    def _loses_id(self, conflict: Conflict, key: ContentKey, edits: Sequence[ContentEdit]) -> bool:
        """Returns whether only a decision keeps the id of a content that has been deleted.

        The batch restores it, or another writer has deleted it since.
        """
        actual = conflict.actual
        if actual is None:
            can_decide = self._keeps_ids and self._app.workspace is not None
            return can_decide and any(edit.old == key and edit.changes_value for edit in edits)
        return any(
            edit.new == key
            and edit.after is not None
            and edit.after.id in self._restored
            and edit.after.id != actual.id
            for edit in edits
        )

    def _alone(self, conflict: Conflict, key: ContentKey, edit: ContentEdit) -> list[Resolution]:
        """Returns the command for a change that has nothing to do with another one."""
        if edit.new is None:
            return self._again(conflict, ["delete"], effect=_deleted(conflict, key))
        if not edit.is_rename:
            return self._put(conflict, key, edit)
        if edit.changes_value or edit.new in self._keys_in_conflict:
            return self._by_decision(conflict, key)
        return self._again(conflict, ["rename"], [edit.new])

    def _again(
        self,
        conflict: Conflict,
        verb: Sequence[str],
        arguments: Sequence[ContentKey] = (),
        options: Sequence[str] = (),
        effect: str = "",
    ) -> list[Resolution]:
        """Returns the command for the staged content, or nothing if it was deleted."""
        expected, actual, key = conflict.expected, conflict.actual, conflict.key
        if key is None or expected is None or actual is None or actual.id != expected.id:
            return []
        if (now := _new_key(conflict)) is not None:
            effect = f"{_text(key)} is {_text(now)} now"
            renamed = self._staging(verb, [now, *arguments], (*options, *self._expected_hash()))
            return [renamed._replace(effect=effect)]
        line = self._staging(verb, [key, *arguments], (*options, *self._expected_hash()))
        return [line._replace(effect=effect)]

    def _put(self, conflict: Conflict, key: ContentKey, edit: ContentEdit) -> list[Resolution]:
        """Returns the command that stages a value. Another content of the key is deleted by it."""
        after, actual = edit.after, conflict.actual
        if after is None:
            return []
        options = put_options(after)
        if edit.before is not None and actual is not None and actual.id == edit.before.id:
            return self._again(conflict, ["put"], options=options)
        options += self._expected_hash()
        if actual is None or actual.id == after.id or is_same(after, actual):
            if actual is not None and self._is_staged_elsewhere(actual, key):
                return []
            line = self._staging(["put"], [key], options)
            is_back = actual is not None and actual.id == after.id and actual != after
            return [line._replace(effect=_overwritten(key) if is_back else "")]
        if not self._can_replace(actual, after):
            return []
        line = self._staging(["replace"], [key], options)
        return [line._replace(effect=_deleted(conflict, key))]

    def _is_staged_elsewhere(self, actual: Content, key: ContentKey) -> bool:
        """Returns whether a change of the present content of a key is staged as another key."""
        edits = (edit for part in self._edits.values() for edit in part)
        return any(
            e.before is not None and e.before.id == actual.id and e.old != key for e in edits
        )

    def _can_replace(self, actual: Content, after: Content) -> bool:
        """Returns whether one commit can replace a content: only our servers change its type."""
        is_same_type = actual.type_name == after.type_name
        return self._keeps_ids or is_same_type or isinstance(actual, Namespace)

    def _replacement(
        self, conflict: Conflict, key: ContentKey, edits: Sequence[ContentEdit]
    ) -> list[Resolution]:
        """Returns the command that stages a replacement again, if these edits are one."""
        values = [edit.after for edit in edits if edit.old is None]
        if any(edit.keys != {key} for edit in edits) or len(edits) != len(values) + 1:
            return []
        if values[0] is None or conflict.actual is None or _new_key(conflict) is not None:
            return []
        if not self._can_replace(conflict.actual, values[0]):
            return []
        options = (*put_options(values[0]), *self._expected_hash())
        line = self._staging(["replace"], [key], options)
        return [line._replace(effect=_deleted(conflict, key))]

    def _by_decision(self, conflict: Conflict, key: ContentKey) -> list[Resolution]:
        """Returns the decision for the staged change, if it can be kept and nothing else is asked.

        It says which contents are deleted, and which ones have another key now.
        """
        restaged = self._restaged([key]) if len(self._error.conflicts) == 1 else None
        if restaged is None or self._app.workspace is None or self._asks_more(restaged, [key]):
            return []
        effects = [effect for _, effect in _effects(conflict, restaged)]
        decision = key_option("--proposed", str(key))
        arguments = (*carried(self._app.options), "resolve", *decision, *self._expected_hash())
        line = command_line(*arguments)
        return [Resolution(line, "; ".join(effects))]

    def together(self) -> Sequence[Resolution]:
        """Returns the command that keeps the staged changes of all conflicts, if this is possible.

        It says which contents are deleted, and which ones have another key now.
        """
        conflicts, restaged = self._of_contents, None
        keys = [conflict.key for conflict in conflicts if conflict.key is not None]
        if len(keys) == len(self._error.conflicts) and not self._error.more:
            restaged = self._all_kept
        if restaged is None or self._app.workspace is None or self._asks_more(restaged, keys):
            return []
        by_key = {conflict.key: conflict for conflict in conflicts}
        effects = {
            effect: None
            for conflict in conflicts
            for (first, *_), effect in _effects(conflict, restaged)
            if by_key.get(first, conflict) is conflict
        }
        decisions = [word for key in keys for word in key_option("--proposed", str(key))]
        arguments = (*carried(self._app.options), "resolve", *decisions, *self._expected_hash())
        return [Resolution(command_line(*arguments), "; ".join(effects))]

    def _asks_more(self, restaged: Restaged, decided: Collection[ContentKey]) -> bool:
        """Returns whether the branch refuses a batch, or asks about namespaces as well."""
        head, operations = self._error.head, [item.operation for item in restaged.staged]
        if self._lacks_parents(restaged, decided):
            return True
        try:
            if operations:
                self._app.repository().commit(
                    self._error.reference or "",
                    operations,
                    CommitMeta(""),
                    expected_hash=head,
                    dry_run=True,
                )
        except InvalidInput:
            # A server without our extensions cannot commit every change at once.
            return True
        except ReferenceConflict as refused:
            not_empty = ConflictType.NAMESPACE_NOT_EMPTY
            return any(conflict.type is not_empty for conflict in refused.conflicts)
        return False

    def _lacks_parents(self, restaged: Restaged, decided: Collection[ContentKey]) -> bool:
        """Returns whether staged contents would lack a namespace, so that more is asked.

        A decision creates the namespace of its own key, unless another content has this key.
        """
        puts = (item.key for item in restaged.staged if isinstance(item.operation, Put))
        parents = {key.parent for key in puts if key.parent is not None}
        present = self._app.repository().contents(self._error.head or self._app.head, parents)
        after = overlaid(present, restaged.staged)
        missing = {key for key in parents if not isinstance(after.get(key), Namespace)}
        return any(key in after or key not in decided for key in missing)

    def effect_of_proposed(self, conflict: Conflict) -> str:
        """Returns what keeping the staged change does to other contents; "" for nothing.

        The staged changes of the other keys in conflict count as kept.
        """
        restaged = self._all_kept
        if restaged is None:
            return _effect_of_replacement(conflict)
        return "; ".join(
            effect
            for keys, effect in _effects(conflict, restaged)
            if len(self._of_contents) == 1 or conflict.key in keys
        )

    def reason_against_proposed(self, conflict: Conflict) -> str:
        """Returns why the staged change cannot be kept; "" if it can be."""
        key = conflict.key
        if key is not None and conflict.type is ConflictType.NAMESPACE_NOT_EMPTY:
            if key not in self._items:
                return f"the change of {key} is staged under its former key"
            below = staged_below(self._staged, key)
            return f"a change of {below[0]} is staged below {key}" if below else ""
        if key is None or conflict not in self._of_contents:
            return ""
        if self._all_kept is None and key not in self._reasons:
            self._restaged([key])
        return self._reasons.get(key, "")

    def deleted_by_proposed(self, conflict: Conflict) -> Collection[ContentKey]:
        """Returns the keys of contents of which `effect_of_proposed` says that it deletes them."""
        restaged = self._all_kept
        if restaged is None:
            named = [conflict.key] if _effect_of_replacement(conflict) else []
        else:
            named = [
                key
                for key in restaged.replaced
                if len(self._of_contents) == 1 or conflict.key == key
            ]
        return [key for key in named if key is not None]

    def connected_by_proposed(self, key: ContentKey) -> Sequence[ContentKey]:
        """Returns the keys in conflict whose staged changes are about contents of the same keys.

        A content that was renamed on the branch connects its keys. If the staged changes cannot all
        be kept, all keys in conflict count as connected.
        """
        keys = [conflict.key for conflict in self._of_contents if conflict.key is not None]
        if self._all_kept is None:
            return keys
        places = {**self._all_kept.renamed, **self._all_kept.came_back}
        links = [ContentEdit(place, old, None, None) for old, place in places.items()]
        reached = connected([*content_edits(self._staged), *links], {key})
        return [other for other in keys if other in reached]

    @property
    def _of_contents(self) -> Sequence[Conflict]:
        conflicts = self._error.conflicts
        return [
            conflict
            for conflict in conflicts
            if conflict.type not in OF_NAMESPACES and conflict.same_file_key is None
        ]

    @cached_property
    def _all_kept(self) -> Restaged | None:
        """The batch with the changes of all keys in conflict kept, or None if they cannot be."""
        keys = [conflict.key for conflict in self._of_contents if conflict.key is not None]
        return self._restaged(keys)

    def _restaged(self, keys: Sequence[ContentKey]) -> Restaged | None:
        """Returns the batch with the changes of these keys kept, or None if they cannot be."""
        from nessie_cli.cli.staging.restaging import CannotKeep, Restager

        branch, head = self._error.reference, self._error.head
        if not (branch and head):
            return None
        restager = Restager(self._app.repository(), branch, head, self._error.expected_hash)
        try:
            return restager.restaged(self._staged, dict.fromkeys(keys))
        except CannotKeep as refusal:
            if len(keys) == 1:
                self._reasons[keys[0]] = refusal.why
            return None

    def _expected_hash(self) -> list[str]:
        return ["--expected-hash", short_hash(self._error.head)] if self._error.head else []

    def _namespace(self, verb: str, key: ContentKey, options: Sequence[str] = ()) -> Resolution:
        return self._staging([verb], [key], ("--type", "namespace", *options))

    def _in_place_of(self, key: ContentKey) -> list[Resolution]:
        """Returns the command that creates a namespace in the place of another content."""
        if key not in self._items:
            if not self._keeps_ids:
                return []
            effect = f"deletes the present {_text(key)}"
            line = self._namespace("replace", key, self._expected_hash())
            return [line._replace(effect=effect)]
        return [self._namespace("put", key)] if self._is_left(key) else []

    def _is_left(self, key: ContentKey) -> bool:
        """Returns whether the batch frees a key, and this part of it is not in conflict."""
        is_in_conflict = any(conflict.key == key for conflict in self._of_contents)
        items = self._items.get(key, ())
        return not is_in_conflict and all(isinstance(item.operation, Delete) for item in items)

    def _absent(self, conflict: Conflict, key: ContentKey) -> list[Resolution]:
        """Returns the command that creates a namespace, or moves the content staged at its key.

        There is none if another change of the namespace is staged, or if the batch moves a content
        away from its key only after the decision about this content.
        """
        head = self._error.head or self._app.head
        present = self._app.repository().contents(head, [key]).get(key)
        if present is not None and not isinstance(present, Namespace) and key not in self._items:
            return []
        if conflict.proposed is None:
            return [self._namespace("put", key)] if self._is_left(key) else []
        names = (f"{key.elements[-1]}_{number}" for number in count(1))
        keys = (ContentKey((*key.elements[:-1], name)) for name in names)
        free = next(free for free in keys if self._is_free(free))
        line = self._staging(["rename"], [key, free])
        return [line._replace(effect=f"makes room for namespace {visible(str(key))}")]

    def _is_free(self, key: ContentKey) -> bool:
        is_staged = key in self._items
        return not is_staged and not self._app.repository().contents(self._app.head, [key])

    def _empty(self, key: ContentKey) -> list[Resolution]:
        """Returns commands that keep a namespace, or move or delete its contents."""
        if key not in self._items:
            # It is staged under a former key: the decision about that one counts.
            return []
        if staged_below(self._staged, key):
            return self._reset([key])
        left = contents_below(self._app, self._app.head, key, self._staged_keys)
        if left and self._app.workspace is None:
            left.append(key)
        deleted = f"deletes {counted(len(left), 'content')} of the branch"
        expected = self._expected_hash()
        empty = [self._staging(["delete"], left, expected)._replace(effect=deleted)] if left else []
        return [*self._reset([key]), *self._moved_along(key, left), *empty]

    def _moved_along(self, key: ContentKey, left: Sequence[ContentKey]) -> list[Resolution]:
        """Returns the command that moves the only content below a renamed namespace along."""
        edits = self._edits.get(key, [])
        renamed = [edit.new for edit in edits if edit.old == key and edit.is_rename]
        if not renamed or renamed[0] is None or len(left) != 1:
            return []
        new = ContentKey((*renamed[0].elements, *left[0].elements[len(key.elements) :]))
        return [self._staging(["rename"], [left[0], new], self._expected_hash())]

    def _staged_below(self, key: ContentKey) -> list[ContentKey]:
        return [staged for staged in self._staged_keys if staged != key and staged.starts_with(key)]

    def _staging(
        self, verb: Sequence[str], keys: Sequence[ContentKey], options: Sequence[str] = ()
    ) -> Resolution:
        """Returns a command line of `nessie content`.

        A key that looks like an option follows `--`.
        """
        message = () if self._app.workspace else ("-m", f"{verb[0]} {', '.join(map(str, keys))}")
        texts = list(map(str, keys))
        head = [*carried(self._app.options), "content", *verb]
        if any(text.startswith("-") for text in texts):
            return Resolution(command_line(*head, *options, *message, "--", *texts))
        return Resolution(command_line(*head, *texts, *options, *message))

    def _reset(self, keys: Sequence[ContentKey]) -> list[Resolution]:
        """Returns the command that unstages keys. It lists the changes that are unstaged along."""
        if self._app.workspace is None or not keys:
            return []
        dash = ["--"] if any(str(key).startswith("-") for key in keys) else []
        line = command_line(*carried(self._app.options), "reset", *dash, *map(str, keys))
        left = {item.key for item in without(self._staged, keys)}
        gone = sorted(self._items.keys() - left)
        changes = changes_of(tuple(item for key in gone for item in self._items[key]))
        if set(gone) <= set(keys):
            return [Resolution(line)]
        texts = ", ".join(map(_unstaged, changes))
        return [Resolution(line, f"unstages {texts}")]


def _unstaged(change: StagedChange) -> str:
    """Returns a change, for the effect of a line that unstages it."""
    new_key = f" to {change.what}" if change.verb == "rename" else ""
    return visible(f"{change.verb} {change.key}{new_key}")


def _new_key(conflict: Conflict) -> ContentKey | None:
    """Returns the key to which the content of the conflict was renamed on the branch."""
    rename = conflict.target_rename
    return rename.new if rename is not None and rename.old == conflict.key else None


def _deleted(conflict: Conflict, key: ContentKey) -> str:
    """Returns the effect of a line that deletes the present content of a key."""
    rename = conflict.target_rename
    origin = rename.old if rename is not None and rename.new == key == conflict.key else None
    return f"deletes the present {_text(key)}" + (
        f", renamed from {_text(origin)}" if origin else ""
    )


def _overwritten(key: ContentKey) -> str:
    """Returns the effect of a line that gives a restored content its staged value again."""
    return f"overwrites the value of {_text(key)}"


def _effects(conflict: Conflict, restaged: Restaged) -> Iterator[tuple[Sequence[ContentKey], str]]:
    """Yields what a decision about a conflict does to contents, each with the keys in question."""
    for key in restaged.replaced:
        yield [key], _deleted(conflict, key)
    for old, new in restaged.renamed.items():
        yield [old], f"{_text(old)} is {_text(new)} now"
    for key, place in restaged.came_back.items():
        yield [key, place], f"the restored {_text(key)} is {_text(place)} now"
    for place in restaged.overwritten:
        keys = [key for key, other in restaged.came_back.items() if other == place]
        yield [*keys, place], _overwritten(place)


def _effect_of_replacement(conflict: Conflict) -> str:
    """Returns the effect of keeping a staged content whose key has another content; "" for none."""
    key, expected, actual = conflict.key, conflict.expected, conflict.actual
    if key is None or actual is None or conflict.proposed is None or _new_key(conflict):
        return ""
    is_expected = expected is not None and expected.id == actual.id
    if is_expected or is_same(conflict.proposed, actual):
        return ""
    return _deleted(conflict, key)


def _text(key: ContentKey) -> str:
    return visible(str(key))


def contents_below(
    app: Invocation, at: AnyRevision, key: ContentKey, staged: Collection[ContentKey] = ()
) -> list[ContentKey]:
    """Returns the keys below a key without the staged ones, or nothing if there are too many."""
    children = list(islice(_below(app, at, key, staged), MOST_CHILDREN + 1))
    return children if len(children) <= MOST_CHILDREN else []


def staged_below(staged: StagedList, key: ContentKey) -> list[ContentKey]:
    """Returns the keys below a key that staged operations give to contents."""
    puts = (item.key for item in staged if isinstance(item.operation, Put))
    return [below for below in puts if below != key and below.starts_with(key)]


def first_below(
    app: Invocation, at: AnyRevision, key: ContentKey, staged: Collection[ContentKey]
) -> str:
    """Returns the first keys below a key, without the staged ones, as a text."""
    keys = list(islice(_below(app, at, key, staged), MOST_NAMES + 1))
    names = [_text(below) for below in keys[:MOST_NAMES]]
    return ", ".join(names) + (" and others" if len(keys) > MOST_NAMES else "")


def _below(
    app: Invocation, at: AnyRevision, key: ContentKey, staged: Collection[ContentKey]
) -> Iterator[ContentKey]:
    hidden = {key, *staged}
    entries = app.repository().entries(at, KeyRange(prefix=key))
    return (entry.key for entry in entries if entry.key not in hidden)


def put_options(content: Content) -> list[str]:
    """Returns the options of `nessie content put` that write a content."""
    if isinstance(content, UnknownContent):
        return ["--content", "FILE"]
    arguments = ["--type", TYPE_OPTION[content.type_name]]
    for name, value in content.attributes().items():
        arguments += (
            [argument for text in _texts(value) for argument in (FIELD_OPTION[name], text)]
            if name in FIELD_OPTION
            else []
        )
    return arguments


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from (f"{name}={text}" for name, text in value.items())
    elif isinstance(value, list):
        yield from map(str, value)
    elif value is not None:
        yield str(value)
