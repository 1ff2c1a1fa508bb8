"""The staged batch: operations for the next commit, each with the expected state of its key.

`batch.json` contains the hash at which the batch was started, its branch and store, the operations
as REST v2 JSON (with `expectedContent` on every kind of operation), and, after a submission was
tried, its request id. It is replaced atomically, under the workspace's lock. An invalid file is
never overwritten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from msgspec import Struct

from nessie_cli.errors import InvalidInput
from nessie_cli.model import Content, ContentKey, Operation, Put
from nessie_cli.workspace.files import (
    LARGEST_BATCH,
    locked,
    locked_if_free,
    read_text,
    remove,
    replace_text,
)
from nessie_cli.workspace.folder import Workspace

VERSION = 1


class Staged(Struct, frozen=True):
    """A staged operation; `seen` is the state of its key that it was staged on, or None."""

    operation: Operation
    seen: Content | None = None

    @property
    def key(self) -> ContentKey:
        """The key of the operation."""
        return self.operation.key


class StagedBatch(Struct, frozen=True):
    """The staged operations in order, with the starting hash, the branch and the store.

    `request_id` is that of a submission with unknown outcome. `branch` and `store` are None in a
    batch that is not kept in a file, such as that of a dry run.
    """

    begun_at: str
    staged: tuple[Staged, ...] = ()
    request_id: str | None = None
    branch: str | None = None
    store: str | None = None

    @property
    def operations(self) -> list[Operation]:
        """The operations to submit."""
        return [staged.operation for staged in self.staged]

    @property
    def keys(self) -> list[ContentKey]:
        """The keys of the operations, each once."""
        return list(dict.fromkeys(staged.key for staged in self.staged))


def encode_batch(batch: StagedBatch) -> dict[str, Any]:
    """Returns the JSON of a batch file."""
    operations = [_encode_staged(staged) for staged in batch.staged]
    request = {"requestId": batch.request_id} if batch.request_id else {}
    place = {
        name: text
        for name, text in (("branch", batch.branch), ("store", batch.store))
        if text is not None
    }
    return {
        "version": VERSION,
        "begunAt": batch.begun_at,
        **place,
        **request,
        "operations": operations,
    }


def _encode_staged(staged: Staged) -> dict[str, Any]:
    from nessie_cli.wire.bodies import encode_operation
    from nessie_cli.wire.contents import content_json

    return encode_operation(staged.operation) | (
        {"expectedContent": content_json(staged.seen)} if staged.seen else {}
    )


def decode_batch(text: str, place: str) -> StagedBatch:
    """Decodes a batch file. Raises `InvalidInput` that names the file and the place in it."""
    from nessie_cli.wire.json_text import parse_json

    return decode_document(parse_json(text, place), place)


def decode_document(document: Any, place: str) -> StagedBatch:
    """Decodes the parsed JSON of a batch file."""
    if not isinstance(document, Mapping) or document.get("version") != VERSION:
        raise InvalidInput(f"{place} is not a batch file of version {VERSION}")
    begun_at, operations, request_id, branch, store = (
        document.get(name) for name in ("begunAt", "operations", "requestId", "branch", "store")
    )
    texts = (request_id, branch, store)
    if (
        not isinstance(begun_at, str)
        or not isinstance(operations, list)
        or not all(isinstance(text, str | None) for text in texts)
    ):
        raise InvalidInput(
            f"{place}: begunAt, operations, requestId, branch or store is missing or has the wrong"
            " type"
        )
    return StagedBatch(begun_at, _decode_staged(operations, place), request_id, branch, store)


def _decode_staged(operations: Sequence[Any], place: str) -> tuple[Staged, ...]:
    return tuple(
        _staged(item, f"{place}: operations[{index}]") for index, item in enumerate(operations)
    )


def _staged(item: Any, path: str) -> Staged:
    from nessie_cli.wire.decode import decode_content_value, decode_operation

    if not isinstance(item, dict) or item.get("type") == "PUT":
        operation = decode_operation(item, path, allow_unknown=True)
        return Staged(operation, operation.expected_content if isinstance(operation, Put) else None)
    # In this file, every kind of operation has an expected content.
    expected = item.get("expectedContent")
    operation = decode_operation(item | {"expectedContent": None}, path, allow_unknown=True)
    return Staged(
        operation,
        None
        if expected is None
        else decode_content_value(expected, f"{path}.expectedContent", allow_unknown=True),
    )


class BatchFile:
    """The batch of a workspace. Readers need no lock, because the file is replaced atomically.

    A writer waits for another one in a block of `waiting`.
    """

    def __init__(
        self,
        workspace: Workspace,
        waiting: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self._workspace = workspace
        self._waiting = waiting

    def read(self) -> StagedBatch | None:
        """Returns the staged batch, or None."""
        path = self._workspace.batch_path
        text = read_text(path, limit=LARGEST_BATCH)
        return None if text is None else decode_batch(text, str(path))

    @contextmanager
    def changing(self) -> Iterator[BatchFile]:
        """Holds the workspace's lock, so that no other process stages or submits."""
        with locked(self._workspace.lock_path, self._waiting):
            yield self

    @contextmanager
    def changing_if_free(self) -> Iterator[bool]:
        """Returns `changing` without waiting: False if another process holds the lock."""
        with locked_if_free(self._workspace.lock_path) as free:
            yield free

    def write(self, batch: StagedBatch | None) -> None:
        """Replaces the batch; an empty one, or None, removes it. Only within `changing`."""
        import json

        if batch is None or not batch.staged:
            remove(self._workspace.batch_path)
        else:
            replace_text(
                self._workspace.batch_path,
                json.dumps(encode_batch(batch), indent=1) + "\n",
                limit=LARGEST_BATCH,
            )
