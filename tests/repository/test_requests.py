"""A request id makes a write happen once: for every verb, in every store, in every race."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from nessie_cli.errors import InvalidInput, NessieError
from nessie_cli.model import (
    CommitMeta,
    ContentKey,
    Delete,
    Put,
    Reference,
    ReferenceType,
    RestoredFrom,
)
from nessie_cli.repository.base import Repository
from nessie_cli.repository.changes import (
    AssignReference,
    Change,
    Commit,
    CreateReference,
    DeleteReference,
    Merge,
    PutSettings,
    RenameReference,
    Transplant,
)
from nessie_cli.repository.opening import connect, create
from tests.repository.plans import plan
from tests.repository.vocabulary import EMPTY, Catalog, put, table
from tests.server.serving import serving
from tests.store.postgres_server import new_url


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def repository(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Repository]:
    with ExitStack() as stack:
        urls = {
            "memory": lambda: "memory:",
            "sqlite": lambda: f"{tmp_path}/store.sqlite",
            "postgres": lambda: stack.enter_context(new_url()),
        }
        opened = stack.enter_context(create(urls[request.param]()))
        catalog = Catalog(opened)
        catalog.write("main", {"a": 1})
        catalog.branch("dev")
        catalog.write("dev", {"b": 2})
        catalog.branch("old")
        yield opened


CHANGES: dict[str, Callable[[Catalog], tuple[Change, Change]]] = {
    "commit": lambda _: (
        Commit("main", [put("n", table(1))], CommitMeta("m")),
        Commit("main", [put("n", table(2))], CommitMeta("m")),
    ),
    "merge": lambda _: (Merge("main", "dev"), Merge("main", "old")),
    "transplant": lambda c: (
        Transplant("main", [c.head("dev")]),
        Transplant("old", [c.head("dev")]),
    ),
    "create": lambda c: (
        CreateReference(ReferenceType.BRANCH, "new", c.head()),
        CreateReference(ReferenceType.TAG, "new", c.head()),
    ),
    "assign": lambda c: (
        AssignReference("old", c.head(), c.head("old")),
        AssignReference("dev", c.head(), c.head("dev")),
    ),
    "rename": lambda c: (
        RenameReference("old", "young", c.head("old")),
        RenameReference("dev", "young", c.head("dev")),
    ),
    "delete": lambda c: (
        DeleteReference("old", c.head("old")),
        DeleteReference("dev", c.head("dev")),
    ),
    "settings": lambda _: (
        PutSettings({"retention": "30 days"}),
        PutSettings({"retention": "1 day"}),
    ),
}


def everything(repository: Repository) -> tuple[Any, ...]:
    return (
        list(repository.reflog()),
        dict(repository.config().settings),
        [r.hash for r in repository.references()],
    )


@pytest.mark.parametrize("verb", CHANGES)
def test_a_repeated_request_has_the_same_answer_and_no_second_effect(
    repository: Repository, verb: str
) -> None:
    change, _ = CHANGES[verb](Catalog(repository))
    answer = repository.submit(change, request_id="r")
    done = everything(repository)
    Catalog(repository).commit("dev", put("later", table(9))) if verb == "merge" else None
    again = repository.submit(change, request_id="r")
    assert again == answer
    if verb != "merge":
        assert everything(repository) == done


def test_a_repeated_commit_answers_content_ids_in_the_order_of_the_first_answer(
    repository: Repository,
) -> None:
    """Created, recreated and restored contents, through the repository and through a server."""
    catalog = Catalog(repository)
    catalog.write("main", {"z": 5})
    origin = RestoredFrom(catalog.head(), ContentKey(("z",)))
    gone = repository.content("main", origin.key)
    catalog.write("main", {"z": None})
    operations = (
        put("n", table(1)),
        Put(ContentKey(("m",)), gone, restored_from=origin),
        put("b", table(2)),
        Delete(ContentKey(("a",))),
        put("a", table(3)),
    )
    change = Commit("main", operations, CommitMeta("m"))
    with serving(repository) as url, connect(f"{url}/api/v2") as client:
        answers = [each.submit(change, request_id="r") for each in (repository, client) * 2]
        found = client.find_request("r")
    assert [list(answer.added.items()) for answer in answers] == [
        list(answers[0].added.items())
    ] * 4
    assert list(answers[0].added) != sorted(answers[0].added)
    assert found == answers[0]


@pytest.mark.parametrize("verb", CHANGES)
def test_a_committed_request_is_found(repository: Repository, verb: str) -> None:
    """The repository and a client of a server find it; None would mean that nothing was written."""
    change, _ = CHANGES[verb](Catalog(repository))
    with serving(repository) as url, connect(f"{url}/api/v2") as client:
        assert repository.find_request("r") is client.find_request("r") is None
        answer = repository.submit(change, request_id="r")
        found = repository.find_request("r")
        assert found is not None
        assert client.find_request("r") == found
        # As the verb returns it: a deleted reference is shown as it was before.
        expected = {
            "commit": lambda: answer.reference,
            "merge": lambda: repository.reference("main"),
            "transplant": lambda: repository.reference("main"),
            "settings": lambda: Reference(ReferenceType.DETACHED, "", EMPTY),
        }.get(verb, lambda: answer)()
        assert found.reference == expected


@pytest.mark.parametrize("verb", ["rename", "delete"])
def test_a_client_with_a_check_repeats_a_committed_request(
    repository: Repository, verb: str
) -> None:
    change, _ = CHANGES[verb](Catalog(repository))
    seen: list[object] = []
    with serving(repository) as url, connect(f"{url}/api/v2") as client:
        answers = [client.submit(change, request_id="r", check=seen.append) for _ in range(2)]
    assert answers[0] == answers[1]
    assert len(seen) == 1


@pytest.mark.parametrize("verb", CHANGES)
def test_another_change_under_the_same_id_is_refused(repository: Repository, verb: str) -> None:
    change, other = CHANGES[verb](Catalog(repository))
    repository.submit(change, request_id="r")
    done = everything(repository)
    with pytest.raises(InvalidInput, match="request id 'r' was used for another request"):
        repository.submit(other, request_id="r")
    assert everything(repository) == done


def test_another_caller_cannot_use_the_id(repository: Repository) -> None:
    change = Commit("main", [put("n", table(1))], CommitMeta("m"))
    repository.as_caller("ada").submit(change, request_id="r")
    with pytest.raises(InvalidInput, match="another request"):
        repository.as_caller("bob").submit(change, request_id="r")


@pytest.mark.parametrize("rounds", [12])
def test_concurrent_submissions_of_one_id_create_one_commit(tmp_path: Path, rounds: int) -> None:
    """Two connections stand for two processes: looking up the id and committing must be one
    step."""
    url = f"{tmp_path}/store.sqlite"
    create(url).close()
    with connect(url) as first, connect(url) as second, ThreadPoolExecutor(2) as pool:
        for number in range(rounds):
            barrier = Barrier(2)

            def submit(
                repository: Repository, number: int = number, barrier: Barrier = barrier
            ) -> Any:
                # Both have looked up the id and found nothing before one of them commits.
                waited: list[int] = []

                def check(_: object) -> None:
                    if not waited:
                        waited.append(barrier.wait(30))

                change = Commit("main", [put(f"k{number}", table(number))], CommitMeta(str(number)))
                return repository.submit(change, request_id=f"r{number}", check=check)

            answers = list(pool.map(submit, (first, second)))
            assert answers[0] == answers[1]
        assert [entry.meta.message for entry in first.log("main")] == [
            str(n) for n in reversed(range(rounds))
        ]
        assert list(first.check()) == []


def test_an_id_inside_and_outside_of_a_group_creates_one_commit(tmp_path: Path) -> None:
    url = f"{tmp_path}/store.sqlite"
    create(url).close()
    with connect(url) as first, connect(url) as second:
        outside: list[Any] = []

        def meanwhile(c: Catalog) -> str:
            answer = c.commit("main", put("k", table(1)), request_id="r")
            if not outside:
                outside.append(Catalog(second).commit("main", put("k", table(1)), request_id="r"))
            return answer

        found = first.commit_all(
            [plan(lambda c: c.commit("main", put("before", table(1)))), plan(meanwhile)]
        )
        assert found[1] == outside[0]
        assert len(Catalog(first).log()) == 2


def test_content_ids_stay_the_same_in_a_repeated_draft(tmp_path: Path) -> None:
    url = f"{tmp_path}/store.sqlite"
    create(url).close()
    with connect(url) as first, connect(url) as second:
        seen = []

        def check(draft: Any) -> None:
            seen.append(dict(draft.answer().added))
            if len(seen) < 4:
                Catalog(second).commit("main", put(f"other{len(seen)}", table(1)))

        result = first.submit(Commit("main", [put("k", table(1))], CommitMeta("m")), check=check)
        assert seen == [dict(result.added)] * 4


def test_an_acknowledged_protection_applies_to_earlier_drafts(
    tmp_path: Path,
) -> None:
    url = f"{tmp_path}/store.sqlite"
    create(url).close()
    with connect(url) as first, connect(url) as second:
        seen = []

        def check(draft: Any) -> None:
            seen.append(draft)
            if len(seen) == 1:
                second.put_setting("protect.main", "merge-only")

        with pytest.raises(NessieError, match="is protected"):
            first.submit(Commit("main", [put("k", table(1))], CommitMeta("m")), check=check)
        assert Catalog(first).log() == []


def test_a_draft_that_a_check_refuses_is_not_committed(repository: Repository) -> None:
    before = everything(repository)

    def refuse(_: object) -> None:
        raise ZeroDivisionError

    for changes in CHANGES.values():
        change, _ = changes(Catalog(repository))
        with pytest.raises(ZeroDivisionError):
            repository.submit(change, check=refuse)
    assert everything(repository) == before


def test_a_generated_id_is_found(repository: Repository) -> None:
    """`OutcomeUnknown` names such an id if the caller gave none."""
    catalog = Catalog(repository)
    heads = [catalog.write("main", {"a": number}) for number in range(3)]
    moves = [entry for entry in repository.reflog("main") if entry.after in heads]

    assert len(moves) == len(heads)
    for entry in moves:
        found = repository.find_request(entry.request_id)
        assert found is not None
        assert found.reference.hash == entry.after


@pytest.mark.parametrize("id_", ["f" * 26, "0" * 26, "never used"])
def test_an_unused_id_is_not_found(repository: Repository, id_: str) -> None:
    assert repository.find_request(id_) is None
