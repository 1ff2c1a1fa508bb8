"""The log of one key: the same commits as in a walk of the whole log."""

from __future__ import annotations

from random import Random

from nessie_cli.model import CommitMeta, ContentKey, MergeBehavior, Put
from tests.repository.vocabulary import Catalog, table


def walked(catalog: Catalog, start: str, name: str) -> list[str]:
    wanted = ContentKey((name,))
    return [
        e.hash
        for e in catalog.repository.log(start, operations=True)
        if any(o.key == wanted for o in e.operations or ())
    ]


def found(catalog: Catalog, start: str, name: str) -> list[str]:
    return [entry.hash for entry in catalog.repository.log_of_key(start, ContentKey((name,)))]


class KeyLog:
    def test_the_log_of_a_key_equals_the_result_of_a_walk(self, catalog: Catalog) -> None:
        random = Random(7)
        catalog.write("main", dict.fromkeys("abc", 0))
        catalog.branch("dev")
        for number in range(1, 60):
            branch = random.choice(["main", "dev"])
            name = random.choice("abcd")
            gone = name in catalog.numbers(branch) and random.random() < 0.2
            catalog.write(branch, {name: None if gone else number})
            if number % 15 == 0:
                catalog.merge("dev", default_behavior=MergeBehavior.FORCE)
        for start in ("main", "dev", "main~7", "dev~3"):
            for name in "abcde":
                assert found(catalog, start, name) == walked(catalog, start, name)

    def test_a_commit_of_very_many_operations_is_found(self, catalog: Catalog) -> None:
        many = [Put(ContentKey((f"t{number}",)), table(number)) for number in range(1500)]
        load = catalog.repository.commit("main", many, CommitMeta("load")).reference.hash
        catalog.write("main", {"aside": 1})
        change = catalog.write("main", {"t700": 2})
        assert found(catalog, "main", "t700") == [change, load]
        assert found(catalog, "main", "t1499") == [load]
        last = catalog.repository.last_change("main", ContentKey(("t3",)))
        assert last is not None
        assert last.hash == load

    def test_the_log_of_a_key_in_an_empty_history_is_empty(self, catalog: Catalog) -> None:
        assert found(catalog, "main", "a") == []
