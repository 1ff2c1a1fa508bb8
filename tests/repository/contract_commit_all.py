"""The contract of `commit_all`: several plans commit at once, each planned on the state that
those before it will leave."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from nessie_cli.errors import (
    AlreadyExists,
    CommitNotFound,
    InvalidInput,
    MergeConflict,
    NessieError,
    NotAllowed,
    ReferenceConflict,
)
from nessie_cli.model import Reference, ReferenceType
from tests.repository.plans import group
from tests.repository.vocabulary import EMPTY, Catalog, key, put, table


class Groups:
    """The part of the contract for embedded repositories."""

    def test_each_plan_of_a_group_has_its_own_answer_in_order(self, catalog: Catalog) -> None:
        answers = group(catalog, *[lambda c, n=n: c.write("main", {f"k{n}": n}) for n in range(5)])
        assert answers == list(reversed(catalog.hashes()))
        assert catalog.numbers() == {f"k{n}": n for n in range(5)}

    def test_an_empty_group_has_no_answers(self, catalog: Catalog) -> None:
        assert group(catalog) == []

    def test_a_conflict_in_a_group_affects_only_its_own_plan(self, catalog: Catalog) -> None:
        start = catalog.write("main", {"a": 0})
        content_id = catalog.id("main", "a")
        first, refused, last = group(
            catalog,
            lambda c: c.commit("main", put("a", table(1, content_id)), at=start),
            lambda c: c.commit("main", put("a", table(2, content_id)), at=start),
            lambda c: c.commit("main", put("b", table(3)), at=start),
        )
        assert isinstance(refused, ReferenceConflict)
        assert refused.head == first
        assert catalog.hashes() == [last, first, start]
        assert catalog.numbers() == {"a": 1, "b": 3}

    def test_a_plan_that_fails_late_writes_nothing(self, catalog: Catalog) -> None:
        lost = []

        def fails(c: Catalog) -> None:
            lost.append(c.write("main", {"lost": 1}))
            raise ZeroDivisionError

        answers = group(
            catalog, lambda c: c.write("main", {"a": 1}), fails, lambda c: c.write("main", {"b": 1})
        )
        assert isinstance(answers[1], ZeroDivisionError)
        assert catalog.hashes() == [answers[2], answers[0]]
        assert catalog.numbers() == {"a": 1, "b": 1}
        assert [r.name for r in catalog.repository.references()] == ["main"]
        assert [row.operation for row in catalog.repository.reflog()] == [
            "commit",
            "commit",
            "create",
        ]
        with pytest.raises(CommitNotFound):
            catalog.branch("on what never was", at=f"@{lost[0]}")

    def test_plans_of_a_group_see_the_changes_of_those_before_them(self, catalog: Catalog) -> None:
        base = catalog.write("main", {"a": 0, "b": 0})
        answers = group(
            catalog,
            lambda c: c.branch("dev").hash,
            lambda c: c.write("dev", {"a": 1}),
            lambda c: c.write("main", {"b": 2}),
            lambda c: c.merge("dev").successful,
            lambda c: c.write("dev", {"c": 3}),
            lambda c: c.transplant([c.head("dev")]).applied,
            Catalog.numbers,
            lambda c: c.repository.delete_reference("dev", expected_hash=c.head("dev")).name,
        )
        assert answers[0] == base
        assert answers[5:] == [True, {"a": 1, "b": 2, "c": 3}, "dev"]
        assert catalog.numbers() == answers[6]
        assert [r.name for r in catalog.repository.references()] == ["main"]

    def test_every_kind_of_refusal_is_the_answer_of_its_plan(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 0})
        catalog.branch("dev")
        catalog.write("dev", {"a": 1})
        catalog.write("main", {"a": 2})
        before = catalog.everything()
        kinds = (MergeConflict, AlreadyExists, InvalidInput)
        answers = group(
            catalog,
            lambda c: c.merge("dev"),
            lambda c: c.branch("dev"),
            lambda c: c.repository.delete_reference("main", expected_hash=c.head()),
        )
        assert [isinstance(answer, kind) for answer, kind in zip(answers, kinds, strict=True)] == [
            True
        ] * 3
        assert catalog.everything() == before

    def test_a_request_that_is_twice_in_a_group_is_committed_once(self, catalog: Catalog) -> None:
        answers = group(
            catalog, *[lambda c: c.commit("main", put("a", table(1)), request_id="r")] * 2
        )
        assert answers[0] == answers[1] == catalog.head()
        assert len(catalog.log()) == 1

    def test_a_plan_never_uses_the_settings_of_a_stale_plan(self, catalog: Catalog) -> None:
        """Another writer changes the settings as often as the stale plan, so that the versions are
        equal."""
        catalog.repository.put_setting("protect.main", "merge-only")
        before = catalog.everything()

        def release(c: Catalog) -> str:
            if "frozen" in c.repository.config().settings:
                raise NotAllowed("frozen")
            c.repository.put_setting("protect.main", None)
            return "released"

        def commit(c: Catalog) -> str:
            if "frozen" not in catalog.repository.config().settings:
                head = c.write("main", {"a": 1})
                catalog.repository.put_setting("frozen", "true")
                return head
            return c.write("main", {"a": 1})

        released, committed = group(catalog, release, commit)
        protected = "protect.main" in catalog.repository.config().settings
        assert isinstance(released, NotAllowed) == isinstance(committed, NotAllowed) == protected
        assert (catalog.everything() == before) == protected

    def test_a_group_may_change_settings_many_times(self, catalog: Catalog) -> None:
        """Each plan reads the settings that the one before it has left, with commits in between."""

        def count(c: Catalog) -> int:
            number = int(c.repository.config().settings.get("count", "0"))
            c.repository.put_setting("count", str(number + 1))
            return number

        answers = group(
            catalog, *[count, lambda c: c.commit("main", put(f"k{len(c.log())}", table(1)))] * 60
        )
        assert answers[::2] == list(range(60))
        assert answers[1::2] == catalog.hashes()[::-1]

    def test_an_interrupt_rolls_back_the_whole_group(self, catalog: Catalog) -> None:
        lost = []

        def interrupted(c: Catalog) -> None:
            lost.append(c.head())
            raise KeyboardInterrupt

        before = catalog.everything()
        with pytest.raises(KeyboardInterrupt):
            group(catalog, lambda c: c.write("main", {"a": 1}), interrupted)
        assert catalog.everything() == before
        with pytest.raises(CommitNotFound):
            catalog.hash(f"@{lost[0]}")
        assert group(catalog, lambda c: c.write("main", {"a": 1})) == [catalog.head()]

    def test_a_group_becomes_visible_at_once(self, catalog: Catalog) -> None:
        written, seen = Event(), []

        def last(c: Catalog) -> str:
            head = c.write("main", {"b": 1})
            written.set()
            return head

        def reader() -> None:
            assert written.wait(60)
            # The reader may have to wait for the end of the group, so the group must not wait for
            # it.
            head = catalog.head()
            seen.append((head, catalog.repository.contents(f"@{head}", [key("a"), key("b")])))

        with ThreadPoolExecutor(1) as pool:
            reading = pool.submit(reader)
            group(catalog, lambda c: c.write("main", {"a": 1}), last)
            reading.result(60)
        head, contents = seen[0]
        assert (head, len(contents)) in [(EMPTY, 0), (catalog.head(), 2)]

    def test_concurrent_groups_and_single_writers_lose_no_commits(self, catalog: Catalog) -> None:
        def work(number: int) -> list[object]:
            if number % 2:
                return [catalog.commit("main", put(f"k{number}-{n}", table(n))) for n in range(8)]
            return group(
                catalog,
                *[
                    lambda c, n=n: c.commit("main", put(f"k{number}-{n}", table(n)))
                    for n in range(8)
                ],
            )

        with ThreadPoolExecutor(4) as pool:
            made = [hash_ for hashes in pool.map(work, range(4)) for hash_ in hashes]
        assert sorted(catalog.hashes()) == sorted(map(str, made))
        assert len(catalog.numbers()) == 32

    def test_references_of_a_group_are_created_or_refused(self, catalog: Catalog) -> None:
        def make(c: Catalog) -> Reference:
            return c.repository.create_reference(ReferenceType.TAG, "t", EMPTY)

        made, refused = group(catalog, make, make)
        assert made == catalog.repository.reference("t")
        assert isinstance(refused, NessieError)
