"""Merges and transplants have equal reports on an embedded store and on a server over it.

The histories are random. Each merge is first a dry run, with and without decisions.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from nessie_cli.errors import MergeConflict, NessieError, ReferenceConflict
from nessie_cli.model import Conflict, ConflictType, KeyBehavior, MergeResult
from nessie_cli.repository.base import Repository
from nessie_cli.repository.opening import connect, create
from nessie_cli.wire.documents import ConflictDetails, DetailedMerge
from tests.repository.test_random_merges import History
from tests.repository.vocabulary import Catalog, table
from tests.server.serving import serving

COUNT = int(os.environ.get("NESSIE_TEST_SAME_MERGES", "24"))
"""The number of histories. A long run sets it to 2,000."""


class ComparedCatalog(Catalog):
    """A catalog whose dry runs are also made over the network."""

    def __init__(self, repository: Repository, remote: Repository) -> None:
        super().__init__(repository)
        self._both = [Catalog(repository), Catalog(remote)]
        self.reports: Counter[str] = Counter()

    def merge_contents(self, source: str, into: str = "main", **options: Any) -> MergeResult:
        self._compare("merge_contents", source, into, options)
        return super().merge_contents(source, into, **options)

    def transplant_contents(
        self, commits: Sequence[str], onto: str = "main", **options: Any
    ) -> MergeResult:
        self._compare("transplant_contents", commits, onto, options)
        return super().transplant_contents(commits, onto, **options)

    def _compare(self, verb: str, source: object, onto: str, options: dict[str, Any]) -> None:
        named = [(b.key, b.content_id, b.commit) for b in options.get("behaviors", ())]
        if not options.get("dry_run") or len(named) > len(set(named)):
            # A request cannot name a content twice.
            return
        embedded, remote = (report(each, verb, source, onto, options) for each in self._both)
        assert remote == embedded
        self.reports[verb + (" in conflict" if "conflicts" in embedded else "")] += 1


def report(catalog: Catalog, verb: str, source: object, onto: str, options: dict[str, Any]) -> str:
    """Returns the JSON of a merge or of its refusal."""
    try:
        result = getattr(catalog, verb)(source, onto, **options)
    except ReferenceConflict as refused:
        result = refused.result if isinstance(refused, MergeConflict) else None
        if result is not None and result.has_several_bases:
            # Their merge need not be a state of any commit, so a client may not be able to read it.
            refused.conflicts = [replace(each, expected=None) for each in refused.conflicts]
            result = replace(result, details=())
        document: Any = [ConflictDetails.of(refused)]
        if result is not None:
            document.append(DetailedMerge.of(result))
    except NessieError as refused:
        document = [type(refused).__name__, refused.message]
    else:
        document = [DetailedMerge.of(result)]
    return json.dumps(json.loads(msgspec.json.encode(document)), indent=1)


class HistoryWithValues(History):
    """A history in which some conflicts are resolved by a new value."""

    def _decisions(self, conflicts: Sequence[Conflict]) -> list[KeyBehavior]:
        decisions = super()._decisions(conflicts)
        for index, (decision, conflict) in enumerate(zip(decisions, conflicts, strict=True)):
            ours = conflict.actual
            is_value = conflict.type is ConflictType.VALUE_DIFFERS and conflict.value_key is None
            if not is_value or ours is None or conflict.proposed is None:
                continue
            if self.random.random() < 0.5:
                self._number += 1
                decisions[index] = KeyBehavior(
                    decision.key,
                    expected_target=ours,
                    resolved=table(self._number, ours.id),
                    content_id=conflict.content_id,
                    commit=conflict.commit,
                )
        return decisions


@pytest.mark.parametrize("seeds", [range(n, COUNT, 4) for n in range(4)], ids=str)
def test_a_server_reports_merges_as_an_embedded_store_does(seeds: range) -> None:
    reports: Counter[str] = Counter()
    for seed in seeds:
        with (
            create("memory:") as repository,
            serving(repository) as url,
            connect(f"{url}/api/v2") as remote,
        ):
            catalog = ComparedCatalog(repository, remote)
            history = HistoryWithValues(catalog, seed)
            for _ in range(30):
                history.step()
            reports += catalog.reports
    assert reports["transplant_contents in conflict"] > len(seeds) / 2
    assert reports["merge_contents in conflict"] > len(seeds) / 4
