"""Revisions: every form, resolved to a hash."""

from __future__ import annotations

from datetime import timedelta

import pytest

from nessie_cli import revisions
from nessie_cli.errors import (
    AmbiguousHash,
    CommitNotFound,
    InvalidInput,
    NessieError,
    ReferenceNotFound,
)
from nessie_cli.model import MAX_REVISION_LENGTH, MAX_STEPS, Reference, ReferenceType
from nessie_cli.repository.base import Repository
from tests.repository.vocabulary import EMPTY, NOBODY, Catalog

BRANCH, TAG, DETACHED = ReferenceType.BRANCH, ReferenceType.TAG, ReferenceType.DETACHED


def chain(catalog: Catalog, length: int, branch: str = "main") -> list[str]:
    return [catalog.write(branch, {"a": n}) for n in range(1, length + 1)]


class Revisions:
    def test_names_and_hashes_are_resolved(self, catalog: Catalog) -> None:
        one, two = chain(catalog, 2)
        catalog.tag("v1", one)
        resolve = catalog.repository.resolve
        assert resolve("main") == Reference(BRANCH, "main", two)
        assert resolve("main@") == Reference(BRANCH, "main", two)
        assert resolve("v1") == Reference(TAG, "v1", one)
        assert resolve(f"main@{one}") == Reference(BRANCH, "main", one)
        assert resolve(f"v1@{two}") == Reference(TAG, "v1", two)
        assert resolve(f"@{one}") == Reference(DETACHED, "", one)
        assert resolve(one) == Reference(DETACHED, "", one)
        assert resolve(one.upper()) == Reference(DETACHED, "", one)
        assert resolve(f"main@{one.upper()}").hash == one

    def test_a_dash_is_the_default_branch(self, catalog: Catalog) -> None:
        one, two = chain(catalog, 2)
        assert catalog.repository.resolve("-") == Reference(BRANCH, "main", two)
        assert catalog.repository.resolve("-~1").hash == one
        assert catalog.repository.resolve(f"-@{one}").hash == one

    def test_a_parsed_revision_resolves_like_its_text(self, catalog: Catalog) -> None:
        chain(catalog, 3)
        for text in ("main", "main~2", f"@{catalog.head()}^1"):
            assert catalog.repository.resolve(revisions.parse(text)) == catalog.repository.resolve(
                text
            )

    def test_the_empty_history_has_a_hash(self, catalog: Catalog) -> None:
        chain(catalog, 1)
        assert catalog.repository.resolve(EMPTY).hash == EMPTY
        assert catalog.repository.resolve(f"main@{EMPTY}").hash == EMPTY
        assert catalog.repository.resolve(f"@{EMPTY}~3").hash == EMPTY

    def test_a_hash_need_not_be_on_the_named_reference(self, catalog: Catalog) -> None:
        chain(catalog, 1)
        catalog.branch("dev", EMPTY)
        (aside,) = chain(catalog, 1, "dev")
        assert catalog.repository.resolve(f"main@{aside}") == Reference(BRANCH, "main", aside)
        assert catalog.numbers(f"main@{aside}") == {"a": 1}

    @pytest.mark.parametrize(
        "revision", ["nosuch", "nosuch@", f"nosuch@{EMPTY}", "nosuch~1", "main2"]
    )
    def test_an_unknown_reference_is_not_found(self, repository: Repository, revision: str) -> None:
        with pytest.raises(ReferenceNotFound):
            repository.resolve(revision)

    @pytest.mark.parametrize(
        "revision", [NOBODY, f"main@{NOBODY}", f"@{NOBODY}", f"main@{NOBODY}~1", "main@11223344"]
    )
    def test_an_unknown_commit_is_not_found(self, catalog: Catalog, revision: str) -> None:
        chain(catalog, 1)
        with pytest.raises(CommitNotFound):
            catalog.repository.resolve(revision)

    @pytest.mark.parametrize(
        "revision",
        [
            "",
            "@",
            "~1",
            "main~0",
            "main^0",
            "main~x",
            "main@xyz",
            "ma..in",
            "main~2147483648",
            "main*whenever",
            pytest.param("main" + "~1" * (MAX_STEPS + 1), id="too many steps"),
            pytest.param("a" * (MAX_REVISION_LENGTH + 1), id="too long"),
        ],
    )
    def test_malformed_revisions_are_refused(self, repository: Repository, revision: str) -> None:
        with pytest.raises(InvalidInput):
            repository.resolve(revision)

    def test_the_name_head_has_no_meaning_for_a_repository(self, repository: Repository) -> None:
        with pytest.raises(NessieError):
            repository.resolve("HEAD")

    # -- relative parts --

    def test_predecessors_are_resolved(self, catalog: Catalog) -> None:
        hashes = chain(catalog, 40)
        for back in range(1, 40):
            assert catalog.hash(f"main~{back}") == hashes[-1 - back]
        assert catalog.hash(f"main@{hashes[20]}~7") == hashes[13]

    def test_many_relative_parts_are_resolved(self, catalog: Catalog) -> None:
        hashes = chain(catalog, 40)
        assert catalog.hash("main" + "~1" * 30 + "^1" * 8) == hashes[1]
        assert catalog.hash("main" + "~1" * MAX_STEPS) == EMPTY

    def test_the_predecessor_of_the_first_commit_is_the_empty_history(
        self, catalog: Catalog
    ) -> None:
        chain(catalog, 3)
        for revision in ("main~3", "main~4", "main~2147483647", "main~3~1", "main~2^1", "main~3^2"):
            assert catalog.hash(revision) == EMPTY
        catalog.branch("empty", EMPTY)
        assert catalog.hash("empty~1") == EMPTY

    def test_parents_are_resolved(self, catalog: Catalog) -> None:
        one, two = chain(catalog, 2)
        catalog.branch("dev", one)
        side = catalog.write("dev", {"b": 1})
        merged = catalog.merge("dev").resultant_hash
        assert catalog.hash("main") == merged
        assert catalog.hash("main^") == two
        assert catalog.hash("main^1") == two
        assert catalog.hash("main^2") == side
        assert catalog.hash("main^3") == EMPTY
        assert catalog.hash("main~1^2") == EMPTY

    def test_relative_parts_apply_from_left_to_right(self, catalog: Catalog) -> None:
        hashes = chain(catalog, 3)
        catalog.branch("dev", hashes[0])
        side = [catalog.write("dev", {"b": n}) for n in (1, 2, 3)]
        catalog.merge("dev")
        catalog.write("main", {"c": 1})
        assert catalog.hash("main~1^2") == side[2]
        assert catalog.hash("main~1^2~1") == side[1]
        assert catalog.hash("main~1^2~3") == hashes[0]
        assert catalog.hash("main^1^2^1~2") == hashes[0]
        assert catalog.hash("main~2~1") == hashes[1]

    def test_times_are_resolved(self, catalog: Catalog) -> None:
        hashes = chain(catalog, 20)
        times = {e.hash: e.meta.commit_time for e in catalog.log()}
        for n, hash_ in enumerate(hashes):
            when = times[hash_]
            assert when is not None
            assert catalog.hash(f"main*{revisions.format_time(when)}") == hash_
            just_before = revisions.format_time(when - timedelta(microseconds=1))
            assert catalog.hash(f"main*{just_before}") == (hashes[n - 1] if n else EMPTY)
        assert catalog.hash(f"main~5*{revisions.format_time(times[hashes[3]])}") == hashes[3]  # type: ignore[arg-type]

    def test_times_before_and_after_all_commits(self, catalog: Catalog) -> None:
        hashes = chain(catalog, 2)
        assert catalog.hash("main*now") == hashes[-1]
        assert catalog.hash("main*2999-01-01T00:00:00Z") == hashes[-1]
        assert catalog.hash("main*1999-01-01T00:00:00Z") == EMPTY
        assert catalog.hash("main*1000000000000") == EMPTY

    def test_times_follow_first_parents_only(self, catalog: Catalog) -> None:
        (one,) = chain(catalog, 1)
        catalog.branch("dev", one)
        catalog.write("dev", {"b": 1})
        merged = catalog.merge("dev").resultant_hash
        (entry,) = [e for e in catalog.log() if e.hash == merged]
        assert entry.meta.commit_time is not None
        assert (
            catalog.hash(
                f"main*{revisions.format_time(entry.meta.commit_time - timedelta(microseconds=1))}"
            )
            == one
        )

    # -- abbreviated hashes --

    def test_a_hash_may_be_abbreviated_while_it_is_unique(self, catalog: Catalog) -> None:
        hashes = chain(catalog, 8)
        for hash_ in hashes:
            for digits in (12, 13, 20, 63):
                assert catalog.repository.resolve(hash_[:digits]) == Reference(DETACHED, "", hash_)
                assert catalog.repository.resolve(f"main@{hash_[:digits]}") == Reference(
                    BRANCH, "main", hash_
                )
        assert catalog.hash(f"{hashes[5][:12].upper()}~2") == hashes[3]

    @pytest.mark.slow
    def test_an_ambiguous_hash_lists_its_commits(self, catalog: Catalog) -> None:
        seen: dict[str, str] = {}
        for n in range(5000):
            hash_ = catalog.write("main", {"a": n}, f"commit {n}")
            if hash_[:4] in seen:
                break
            seen[hash_[:4]] = hash_
        else:
            pytest.fail("no two of 5000 commits share four digits")
        for revision in (hash_[:4], f"main@{hash_[:4]}"):
            with pytest.raises(AmbiguousHash) as refused:
                catalog.repository.resolve(revision)
            assert {h for h, _ in refused.value.candidates} == {hash_, seen[hash_[:4]]}
            assert (hash_, f"commit {n}") in refused.value.candidates
        assert catalog.hash(hash_[:16]) == hash_

    def test_an_abbreviated_hash_has_at_least_four_digits(self, catalog: Catalog) -> None:
        (one,) = chain(catalog, 1)
        with pytest.raises(NessieError) as refused:
            catalog.repository.resolve(f"main@{one[:3]}")
        assert refused.value.status == 400

    def test_reference_names_take_precedence_over_abbreviated_hashes(
        self, catalog: Catalog
    ) -> None:
        for n in range(200):
            hash_ = catalog.write("main", {"a": n})
            if hash_[0] in "abcdef":
                break
        catalog.branch(hash_[:5], EMPTY)
        assert catalog.repository.resolve(hash_[:5]) == Reference(BRANCH, hash_[:5], EMPTY)
        assert catalog.repository.resolve(f"@{hash_[:12]}").hash == hash_
