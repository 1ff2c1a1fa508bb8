"""Random histories with all kinds of changes that statistics count."""

from __future__ import annotations

import itertools
import os
import random

from nessie_cli import create
from nessie_cli.model import CommitMeta, ContentKey, Delete, IcebergTable, Operation, Put
from nessie_cli.repository.base import Repository
from nessie_cli.repository.local import LocalRepository
from nessie_cli.repository.snapshot import Context
from nessie_cli.store.opening import open_store
from tests.repository.vocabulary import namespace, table, view

SEED = int(os.environ.get("NESSIE_TEST_SEED", "20261122"))
AUTHORS = ("ann", "bob", "")
DAY = 86_400_000_000


def slow_repository(path: str) -> LocalRepository:
    """A repository whose clock advances by 7 hours with each call, so that commits span days."""
    times = itertools.count(1_780_000_000_000_000, 7 * DAY // 24)
    create(path).close()
    return LocalRepository(open_store(path), Context("committer", times.__next__, os.urandom))


def fill(repository: Repository, chance: random.Random, commits: int) -> None:
    """Makes random changes, also keys deleted and created by one commit with another type."""
    for number in range(commits):
        there = {entry.key: entry for entry in repository.entries("main", content=True)}
        operations: list[Operation] = []
        for name in chance.sample(range(12), chance.randrange(1, 4)):
            key = ContentKey((f"t{name}",))
            content = chance.choice(
                (table(number), table(number), view(number), namespace(f"t{name}"))
            )
            known = there.get(key)
            if known is None:
                operations.append(Put(key, content))
            elif (turn := chance.random()) < 0.3:
                operations.append(Delete(key))
            elif turn < 0.5:
                operations += [Delete(key), Put(key, content)]
            elif known.content is not None and not known.type.startswith("N"):
                same = table(number) if isinstance(known.content, IcebergTable) else view(number)
                operations.append(Put(key, same.with_id(known.content_id)))
        if operations:
            author = chance.choice(AUTHORS)
            repository.commit(
                "main", operations, CommitMeta(f"commit {number}", (author,) if author else ())
            )
