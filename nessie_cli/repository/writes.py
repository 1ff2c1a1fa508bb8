"""Creates the `Write` of a draft: objects, moves and settings, and what they require."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import json

from nessie_cli.kernel.forms import Id
from nessie_cli.kernel.objects import Objects
from nessie_cli.model import SETTING_PREFIX, ReferenceType, ReflogType
from nessie_cli.repository.context import Context
from nessie_cli.repository.draft import ReferenceChange
from nessie_cli.repository.requests import Recorded, RecordedMove, Submission, encode_result
from nessie_cli.repository.snapshot import stored_objects
from nessie_cli.store.records import Move, Request, StoredReference, Write

Digest = Callable[[], bytes]
"""A function that returns the digest of a change, called only for a client's request id."""


class WriteMaker:
    """Creates the write of one draft. All of its moves and its request have one time."""

    def __init__(self, context: Context, submission: Submission, operation: str) -> None:
        self._who = context.who
        self._submission = submission
        self._operation = operation
        self._time = context.clock()
        self._id = submission.write_id(context)

    def move(
        self, reference: StoredReference, before: Id | None, after: Id | None, message: str = ""
    ) -> Move:
        """Returns a move of a reference, with its reflog entry."""
        return Move(
            reference.name,
            reference.kind,
            before,
            after,
            self._time,
            self._who,
            self._operation,
            message,
            self._id,
        )

    def setting_change(self, name: str, before: str | None, after: str | None) -> Move:
        """Returns the reflog entry of a changed setting: it moves no reference.

        `message` holds both values.
        """
        values = json.encode((before, after)).decode()
        setting = StoredReference(SETTING_PREFIX + name, ReflogType.SETTING, b"")
        return self.move(setting, None, None, values)

    def request(
        self, digest: Digest, moves: Sequence[Move], settings: Mapping[str, str | None] = {}
    ) -> Request:
        """Returns the record of the request. A generated id needs no digest and no result."""
        if not self._submission.given:
            return Request(self._id, "", b"", b"", self._time)
        done = Recorded(
            self._operation,
            tuple(
                RecordedMove(one.name, ReferenceType(one.kind), one.before, one.after)
                for one in moves
            ),
            settings,
        )
        return Request(self._id, self._who, digest(), encode_result(done), self._time)


def branch_write(
    context: Context,
    submission: Submission,
    operation: str,
    objects: Objects,
    *,
    branch: StoredReference,
    head: Id,
    digest: Digest,
    settings_version: int,
    required: Sequence[Id] = (),
) -> Write:
    """Returns the write that moves a branch to a commit in `objects`."""
    maker = WriteMaker(context, submission, operation)
    moves = [maker.move(branch, branch.target, head)]
    return Write(
        request=maker.request(digest, moves),
        objects=stored_objects(objects.pending, objects.index_terms),
        moves=moves,
        required=required,
        settings_version=settings_version,
    )


def reference_changes(moves: Sequence[Move | RecordedMove]) -> list[ReferenceChange]:
    """Returns moves as values for callers."""
    return [
        ReferenceChange(
            ReferenceType(one.kind),
            one.name,
            None if one.before is None else one.before.hex(),
            None if one.after is None else one.after.hex(),
        )
        for one in moves
    ]


def unmoved(reference: StoredReference) -> ReferenceChange:
    """Returns a reference that a draft reads and does not move."""
    target = reference.target.hex()
    return ReferenceChange(ReferenceType(reference.kind), reference.name, target, target)
