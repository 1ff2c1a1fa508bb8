"""The cost of diff and merge of ten changes must not depend on the number of keys."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from bench import corpus
from bench.load import KEYS, STORE
from bench.report import Line, milliseconds, ratio_of_medians, seconds
from nessie_cli.model import ReferenceType
from nessie_cli.repository.local import LocalRepository

FEW = 1000
CHANGES = 10
ROUNDS = 25
GOAL = 3.0
SEED = 20_260_102


class _Catalog:
    """One of the two catalogs, and the times measured on it."""

    def __init__(self, path: Path, keys: int) -> None:
        self.path = path
        self.keys = keys
        self.times: dict[str, list[float]] = {
            "diff": [],
            "diff, empty caches": [],
            "merge": [],
            "merge, empty caches": [],
        }
        if not path.exists():
            corpus.load(path, keys)
        self.repository, self.store = corpus.open_repository(path)

    def round(self, number: int, picker: random.Random) -> None:
        """Compares and merges two branches with ten changes each, first with empty caches."""
        repository = self.repository
        fresh = corpus.forgetful(self.store)
        head = repository.reference("main").hash
        targets = [f"target-{number}-{kind}" for kind in ("fresh", "known")]
        source = f"source-{number}"
        numbers = picker.sample(range(self.keys), 2 * CHANGES)
        for name in (*targets, source):
            repository.create_reference(ReferenceType.BRANCH, name, head)
            mine = numbers[:CHANGES] if name == source else numbers[CHANGES:]
            repository.commit(
                name,
                [corpus.update(repository, name, n, number + 1) for n in mine],
                corpus.meta("ten tables"),
            )
        self._diff(corpus.forgetful(self.store), head, source, "diff, empty caches")
        self._diff(repository, head, source, "diff")
        self.times["merge, empty caches"].append(seconds(lambda: fresh.merge(targets[0], source)))
        self.times["merge"].append(seconds(lambda: repository.merge(targets[1], source)))

    def _diff(self, repository: LocalRepository, before: str, after: str, what: str) -> None:
        found: list[object] = []
        self.times[what].append(seconds(lambda: found.extend(repository.diff(before, after))))
        assert len(found) == CHANGES


def measure(scratch: Path) -> Iterator[Line]:
    """Returns the ratios of the medians, large to small."""
    large, small = _Catalog(scratch / STORE, KEYS), _Catalog(scratch / "thousand.sqlite", FEW)
    picker = random.Random(SEED)
    for number in range(ROUNDS):
        for catalog in (large, small):
            catalog.round(number, picker)
    for catalog in (large, small):
        catalog.repository.close()
    for what, times in large.times.items():
        others = small.times[what]
        made_of = f"{milliseconds(times)} / {milliseconds(others)}, medians of {ROUNDS} interleaved"
        name = f"{what.replace(',', f' of {CHANGES} changes,', 1) if ',' in what else f'{what} of {CHANGES} changes'}: {KEYS:,} : {FEW:,} keys"
        yield Line(name, ratio_of_medians(times, others), "x", GOAL, made_of)
