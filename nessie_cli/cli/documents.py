"""What each command answers with `--json`, as types, beside those that `wire.documents` has; the schemas in `docs/json/` are made of them.

Nothing loads this at run time. A new command gets a line in `ANSWERS`; tests hold its golden answers against it.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

<<<<<<< HEAD
from nessie_cli.wire.shape import Shape
=======
from nessie_cli.cli.help.help import Text
from nessie_cli.cli.log.show import ShownCommit
from nessie_cli.wire import documents as wire
from nessie_cli.wire import shapes
from nessie_cli.wire.shape import NotRequired, Shape
from nessie_cli.wire.shapes import CommitMeta, Content, Count, Digest, Hash, Instant, Key
>>>>>>> 57106be (cli: help and completion as modules with Options, run and show)

# -- workspace --------------------------------------------------------------------------------------------------------------------------


<<<<<<< HEAD
class Script(Shape):
    """The completion script of a shell."""

    shell: Literal["bash", "zsh", "fish"]
    script: str


class Text(Shape):
    """A page of the manual, or the help that `--help` shows."""

    name: str
    text: str
=======
class StagedPut(Shape):
    """A staged Put; `expectedContent` is the content that it was staged on."""

    type: Literal["PUT"]
    key: Key
    content: Content
    expectedContent: NotRequired[Content]


class StagedOther(Shape):
    """A staged Delete, or the demand that a key is unmodified."""

    type: Literal["DELETE", "UNCHANGED"]
    key: Key
    expectedContent: NotRequired[Content]


class Batch(Shape):
    """What is staged for a reference of a store; `begunAt` is the hash at which the batch was begun, null if nothing is staged."""

    reference: str
    store: NotRequired[str]
    begunAt: Hash | None
    requestId: NotRequired[str]
    operations: list[StagedPut | StagedOther]


class Status(Shape):
    """Where the workspace is, what is staged, and what would conflict if it were committed now."""

    reference: shapes.Reference
    defaultBranch: str
    ahead: Count
    behind: Count
    batch: Batch
    conflicts: list[wire.Conflict]


class Stash(Shape):
    """A batch that was put aside."""

    number: Count
    message: str
    time: Instant
    batch: Batch


class Stashes(wire.Listing):
    """The batches that were put aside, newest first."""

    stashes: list[Stash]


# -- contents and history ---------------------------------------------------------------------------------------------------------------


class ShownContent(Shape):
    """One content; `lastChange` is the newest commit along first parents that has an operation on its key."""

    content: Content
    effectiveReference: shapes.Reference
    valueHash: Digest
    cacheKey: str
    lastChange: CommitMeta | None


class Entries(wire.Page):
    """The keys of a state, ascending."""

    effectiveReference: shapes.Reference
    entries: list[wire.Entry]


class Moment(wire.LogEntry):
    """A commit that changed a content: the key that the content had after it, what happened, the names of the fields that changed."""

    from_: Content | None
    to: Content | None
    key: Key
    change: Literal["CREATED", "UPDATED", "DELETED", "RENAMED"]
    fields: list[str]
    renamedFrom: NotRequired[Key]


class History(wire.Page):
    """The commits that changed one content, newest first."""

    history: list[Moment]

    # -- care -------------------------------------------------------------------------------------------------------------------------------

    key: Key

    effectiveReference: shapes.Reference
    contents: Count
    files: Count
>>>>>>> 57106be (cli: help and completion as modules with Options, run and show)


# -- which command answers what -----------------------------------------------------------------------------------------------------------


class Answer(NamedTuple):
    """The documents that a command may answer with, and for a listing the record, or records, that `--jsonl` prints one per line."""

    documents: tuple[Any, ...]
    record: Any = None


ANSWERS: Mapping[str, Answer] = {
<<<<<<< HEAD
    "help": Answer((Text,)),
    "completion": Answer((Script,)),
=======
    "status": Answer((Status,)),
    "content put": _STAGED,
    "content delete": _STAGED,
    "content rename": _STAGED,
    "content replace": _STAGED,
    "content unmodified": _STAGED,
    "content show": Answer((ShownContent, shapes.Content)),
    "content view": Answer((ShownContent, shapes.Content)),
    "content history": Answer((History,), Moment),
    "content list": Answer((Entries,), wire.Entry),
    "reset": Answer((Batch,)),
    "commit": Answer((wire.Committed,)),
    "restore": _STAGED,
    "revert": _STAGED,
    "resolve": Answer((Batch, wire.Committed, wire.Merge)),
    "stash push": _STASH,
    "stash list": Answer((Stashes,), Stash),
    "stash show": _STASH,
    "stash pop": _STASH,
    "stash apply": _STASH,
    "stash drop": _STASH,
    "show": Answer((ShownCommit, ShownContent)),
>>>>>>> 57106be (cli: help and completion as modules with Options, run and show)
}
"""By the name of the command."""
HELP = Text
"""What `--help` answers at every command."""
