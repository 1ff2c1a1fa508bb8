"""Contents that come back from many commits cost as much as those from few."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from nessie_cli.kernel import tree
from nessie_cli.kernel.commits import Stamp, draft_commit
from nessie_cli.kernel.committing import OperationBatch, apply_batch
from nessie_cli.kernel.edit import edit
from nessie_cli.kernel.forms import NO_COMMIT, Id, content_id_of, decode_key, format_content_id
from nessie_cli.kernel.objects import Cache
from nessie_cli.kernel.restored import MOST_COMPARED
from nessie_cli.model import CommitMeta, ContentKey, IcebergTable, Put, RestoredFrom
from tests.kernel.heap import Heap, key_set

SIZE = 10_000
KEYS = sorted(key_set("random", SIZE, 1))
STEPS = 40


def record(number: int) -> bytes:
    """Returns the record of a table with this content id."""
    return bytes([IcebergTable.payload]) + number.to_bytes(16, "big") + bytes(32)


class Story:
    """A branch whose commits replace many contents, and move or delete another one each."""

    def __init__(self) -> None:
        self.heap = Heap()
        chance = random.Random(2)
        self.state = {key: record(number) for number, key in enumerate(KEYS)}
        self.head = self._edited(tree.EMPTY, self.state)
        self.puts: list[Put] = []
        for step, moved in enumerate(chance.sample(KEYS, STEPS)):
            earlier = self.state[moved]
            self.puts.append(self._put(step, earlier, moved))
            edits: dict[bytes, bytes | None] = {
                key: record(SIZE * (step + 2) + number)
                for number, key in enumerate(chance.sample(KEYS, 300))
                if key in self.state
            }
            edits[moved] = None
            if step % 3:
                edits[b"moved" + moved] = earlier
            self.head = self._edited(self.head, edits)
            self.state |= {key: value for key, value in edits.items() if value is not None}
            del self.state[moved]
        objects = self.heap.objects()
        self.leaves = len(list(tree.new_leaves(objects, [tree.EMPTY], self.head)))
        self.inner = objects.node_reads - self.leaves

    def _edited(self, root: Id, edits: Mapping[bytes, bytes | None]) -> Id:
        objects = self.heap.objects()
        after = edit(objects, root, edits)
        self.heap.keep(objects)
        return after

    def _put(self, step: int, earlier: bytes, key: bytes) -> Put:
        """Returns a Put that restores a content from the present state."""
        objects = self.heap.objects()
        commit = draft_commit(
            objects, [NO_COMMIT], self.head, {}, meta=CommitMeta("m"), stamp=Stamp("ann", step)
        )
        self.heap.keep(objects)
        content = IcebergTable(
            id=format_content_id(content_id_of(earlier)), metadata_location="m", snapshot_id=1
        )
        return Put(
            ContentKey((f"new{step}",)),
            content,
            restored_from=RestoredFrom(commit.hex(), decode_key(key)),
        )

    def keys_at_head(self, puts: list[Put]) -> tuple[list[bytes | None], int]:
        """Returns the keys of restored contents at HEAD, and how many objects were used for it.

        The reader has no cache, so an object counts each time.
        """
        objects = self.heap.objects(Cache(0))
        batch = OperationBatch(objects, puts)
        applied = apply_batch(
            objects, batch, self.head, self.head, lambda key: key, validate_namespaces=False
        )
        others = {decode_key(each.key): each.other_key for each in applied.conflicts}
        return [others.get(put.key) for put in puts], self.heap.reads


@pytest.fixture(scope="module")
def story() -> Story:
    return Story()


@pytest.mark.parametrize("count", [1, 2, MOST_COMPARED, MOST_COMPARED + 1, STEPS])
def test_each_content_has_the_key_that_a_scan_of_head_finds(story: Story, count: int) -> None:
    by_id = {
        format_content_id(content_id_of(value)): key
        for key, value in tree.scan(story.heap.objects(), story.head)
    }
    for puts in (story.puts[:count], story.puts[-count:]):
        keys, _ = story.keys_at_head(puts)
        assert keys == [by_id.get(put.content.id or "") for put in puts]
        assert count < 3 or {None} < set(keys)


@pytest.mark.parametrize("count", [1, 2, MOST_COMPARED, MOST_COMPARED + 1, STEPS])
def test_each_part_of_head_is_read_once_however_many_commits_are_named(
    story: Story, count: int
) -> None:
    _, reads = story.keys_at_head(story.puts[:count])
    depth = 4
    compared = count if count <= MOST_COMPARED else 1
    # Three paths for each Put, and for each compared state the inner nodes of both.
    assert reads <= story.leaves + count * 3 * depth + compared * 3 * story.inner


def test_parts_of_head_that_the_commit_has_are_not_read(story: Story) -> None:
    _, reads = story.keys_at_head(story.puts[-1:])
    assert reads < story.leaves
