"""The two states of a conflict, and their names in options and questions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from nessie_cli.cli.merge.effects import effect_of
from nessie_cli.errors import WaysOut
from nessie_cli.inspection.decisions import needed_namespace, options_of
from nessie_cli.inspection.text import visible
from nessie_cli.model import Conflict, ConflictType, ContentKey, MergeBehavior, type_label


class Sides(NamedTuple):
    """The names of the two states, the options that select them, and the effect of each answer.

    `ours` is the state of the branch, `theirs` that of the merge's source or of the staged batch.
    """

    ours: str
    theirs: str
    meaning_of_ours: str
    meaning_of_theirs: str
    meaning_of_skip: str
    deletes: Sequence[ContentKey] = ()
    """The contents that the answer for theirs deletes and that its meaning does not name."""
    is_theirs_possible: bool = True
    is_edit_possible: bool = True
    why_no_edit: str = ""
    replaces_another: bool = False
    """Whether a new value can replace another content that the branch has at the key."""

    def options(self, conflicts: Iterable[Conflict]) -> str:
        """Returns the options that decide conflicts, for an error message."""
        if any(map(self.takes_new_value, conflicts)):
            return f"--{self.ours} KEY, --{self.theirs} KEY or --resolve KEY=FILE"
        return f"--{self.ours} KEY or --{self.theirs} KEY"

    def takes_new_value(self, conflict: Conflict) -> bool:
        """Returns whether a new value can resolve a conflict."""
        if self.ours == OF_BATCH.ours:
            return True
        if conflict.actual is None or conflict.type is ConflictType.NAMESPACE_NOT_EMPTY:
            return False
        return self.replaces_another or _is_one(conflict)

    @property
    def question(self) -> str:
        """Returns the question about a conflict."""
        edit = "[e]dit, " if self.is_edit_possible else ""
        return f"{_key(self.ours)}, {_key(self.theirs)}, {edit}[s]kip, [a]bort, [?] help:"

    def explained_sides(self) -> Iterator[tuple[str, str]]:
        """Yields the answers for the two states, each with its effect. Other lines continue it."""
        yield _key(self.ours), self.meaning_of_ours
        yield _key(self.theirs), self.meaning_of_theirs
        yield from (("", visible(str(key))) for key in self.deletes)

    def explained(self) -> Iterator[tuple[str, str]]:
        """Yields each answer and its effect. A line without an answer continues the one before."""
        yield from self.explained_sides()
        if self.is_edit_possible:
            yield "[e]dit", "edit both sides in your editor, between conflict markers"
        elif self.why_no_edit:
            yield "[e]dit", visible(f"not possible: {self.why_no_edit}")
        yield "[s]kip", self.meaning_of_skip
        yield "[a]bort", "change nothing"
        yield "[?]", "show what each side changed, with rows, files and schema"

    def meant(self, typed: str) -> str:
        """Returns the answer that a word or its beginning means, or an empty text.

        That is `ours` or `theirs`, whatever these sides are called, `edit`, `skip`, `abort` or `?`.
        """
        answers = {self.ours: "ours", self.theirs: "theirs"}
        answers |= {word: word for word in ("edit", "skip", "abort", "?")}
        word = typed.lower()
        matches = (answer for name, answer in answers.items() if word and name.startswith(word))
        return next(matches, "")

    def of(self, conflict: Conflict, branch: str, ways_out: WaysOut) -> Sides:
        """Returns these sides with the effects of the answers about one conflict."""
        if self.ours != OF_BATCH.ours:
            sides = self._with_effects(conflict, branch)
            if _is_one(conflict) and sides.takes_new_value(conflict):
                return sides
            why = why_no_value(conflict)
            if is_renamed_twice(conflict) and conflict.proposed is not None:
                why += f"; --resolve {conflict.key}=FILE and a side give it a value and a key"
            return sides._replace(is_edit_possible=False, why_no_edit=why)
        return self._of_batch(conflict, ways_out)

    def _of_batch(self, conflict: Conflict, ways_out: WaysOut) -> Sides:
        """Returns these sides with the effects of the answers about a conflict of a batch."""
        if conflict.same_file_key is not None:
            return self._without_theirs(f"{conflict.same_file_key} has the same metadata file")
        match conflict.type:
            case ConflictType.NAMESPACE_ABSENT | ConflictType.NOT_A_NAMESPACE:
                return self._with_namespace(conflict)
            case ConflictType.NAMESPACE_NOT_EMPTY:
                why = ways_out.reason_against_proposed(conflict)
                return self._with_deletions(conflict, why)
        if reason := ways_out.reason_against_proposed(conflict):
            return self._without_theirs(reason)
        if effect := ways_out.effect_of_proposed(conflict):
            return self._replace(meaning_of_theirs=f"keep the staged change; {effect}")
        return self

    def _without_theirs(self, reason: str) -> Sides:
        meaning = f"not possible: {visible(reason)}"
        return self._replace(meaning_of_theirs=meaning, is_theirs_possible=False)

    def _with_namespace(self, conflict: Conflict) -> Sides:
        """Returns these sides with the effects on a namespace that staged changes need."""
        key, below = conflict.key, "the changes below it"
        sides = self._replace(meaning_of_ours=f"drop {below}")
        if conflict.type is ConflictType.NOT_A_NAMESPACE:
            meaning = f"replace {key} by a namespace and keep {below}"
            return sides._replace(meaning_of_theirs=meaning)
        if conflict.proposed is None:
            meaning = f"create namespace {key} and keep {below}"
            return sides._replace(meaning_of_theirs=meaning)
        type_ = type_label(conflict.proposed.type_name)
        meaning = f"not possible: {key} is staged as {type_}"
        return sides._replace(
            meaning_of_theirs=meaning, is_theirs_possible=False, is_edit_possible=False
        )

    def _with_deletions(self, conflict: Conflict, why_not: str) -> Sides:
        """Returns these sides with the contents that the deletion of a namespace deletes too.

        `why_not` is why the staged change cannot be kept, "" if it can be.
        """
        key = conflict.key
        deletes = next((option.deletes for option in conflict.options if option.deletes), ())
        keep = f"delete these contents below {key} too:"
        if not deletes:
            why_not = why_not or f"{key} has too many contents to delete them all by one answer"
            keep = f"not possible: {visible(why_not)}"
        rename = conflict.source_rename
        dropped = f", and drop its staged rename to {rename.new}" if rename else ""
        return self._replace(
            meaning_of_ours=f"keep the namespace {key}{dropped}",
            meaning_of_theirs=keep,
            deletes=deletes,
            is_theirs_possible=bool(deletes),
        )

    def _with_effects(self, conflict: Conflict, branch: str) -> Sides:
        """Returns these sides with what the answers do to other contents of a merge."""
        effects = {o.behavior: effect_of(o, conflict, branch) for o in options_of(conflict)}
        is_theirs_possible = MergeBehavior.FORCE in effects
        if not any(effects.values()) and (is_theirs_possible or not effects):
            return self

        is_about_key = (
            conflict.type is ConflictType.KEY_CONFLICT
            and conflict.actual is not None
            and conflict.proposed is not None
        )

        def meaning(plain: str, behavior: MergeBehavior) -> str:
            if is_about_key:
                # The value is merged.
                plain = plain.replace("state", "key")
            if behavior not in effects:
                why = "contradicts an earlier answer"
                if conflict.other_key is not None:
                    why = f"gives {conflict.other_key} a second key"
                if conflict.same_file_key is not None:
                    why = f"{conflict.same_file_key} has the same metadata file"
                if (namespace := needed_namespace(conflict)) is not None:
                    why = f"namespace {namespace} is not empty"
                return f"not possible: {why}"
            return "; ".join(filter(None, [plain, effects[behavior]]))

        return self._replace(
            meaning_of_ours=meaning(self.meaning_of_ours, MergeBehavior.DROP),
            meaning_of_theirs=meaning(self.meaning_of_theirs, MergeBehavior.FORCE),
            is_theirs_possible=is_theirs_possible,
        )


def _is_one(conflict: Conflict) -> bool:
    """Returns whether the two states are those of one content with one key.

    If both sides renamed it, a new value would leave the key in conflict.
    """
    sides = (conflict.actual, conflict.proposed)
    ids = {side.id for side in sides if side is not None}
    return len(ids) == 1 and not is_renamed_twice(conflict)


def is_renamed_twice(conflict: Conflict) -> bool:
    """Returns whether both sides gave the content different keys."""
    renames = (conflict.target_rename, conflict.source_rename)
    return len({rename.new for rename in renames if rename is not None}) > 1


def why_no_value(conflict: Conflict) -> str:
    """Returns why a new value does not resolve a conflict of a merge."""
    if conflict.actual is None:
        return "the branch deleted it"
    if conflict.type is ConflictType.NAMESPACE_NOT_EMPTY:
        return "the namespace is not empty"
    return "both sides renamed it" if is_renamed_twice(conflict) else "two contents have this key"


def _key(name: str) -> str:
    return f"[{name[0]}]{name[1:]}"


OF_MERGE = Sides(
    "ours",
    "theirs",
    "keep the state of the target branch",
    "take the state of the source",
    "decide later; nothing is written if a conflict is skipped",
)
OF_REVERT = OF_MERGE._replace(
    meaning_of_ours="keep the current state",
    meaning_of_theirs="take the state before the commit",
    replaces_another=True,
)
OF_BATCH = Sides(
    "current",
    "proposed",
    "keep the current state, and drop the staged change",
    "keep the staged change, and stage it on the current state",
    "decide later; the change stays staged and in conflict",
)
