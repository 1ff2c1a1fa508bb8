"""Lost connections before and after the server: results are reported, and nothing happens
twice.

A proxy between client and server disturbs the first answer to a write in one of these ways.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pytest

from nessie_cli.errors import AlreadyExists, OutcomeUnknown, StoreUnavailable
from nessie_cli.model import CommitMeta, ContentKey, IcebergTable, Namespace, Put, ReferenceType
from nessie_cli.repository.access import Access
from nessie_cli.repository.base import Repository
from nessie_cli.repository.changes import MergeOptions
from nessie_cli.repository.remote.opening import open_remote
from tests.remote.listening import CUT, Answer, Request, forward, listening

HTML = {"Content-Type": "text/html"}


def before(server: str, request: Request) -> Answer:
    return CUT


def behind(server: str, request: Request) -> Answer:
    forward(server, request)
    return CUT


def within_the_head(server: str, request: Request) -> Answer:
    return forward(server, request)._replace(cut=20)


def within_the_body(server: str, request: Request) -> Answer:
    answer = forward(server, request)
    # The head has about 150 bytes; the end of the body is cut off.
    return answer._replace(cut=len(answer.body) + 30)


def gateway_before(server: str, request: Request) -> Answer:
    return Answer(502, b"<html>bad gateway</html>", HTML)


def gateway_behind(server: str, request: Request) -> Answer:
    forward(server, request)
    return Answer(504, b"<html>gateway timeout</html>", HTML)


def away_before(server: str, request: Request) -> Answer:
    return Answer(503, b"<html>no server is left</html>", HTML)


def away_behind(server: str, request: Request) -> Answer:
    forward(server, request)
    return Answer(
        503,
        b"upstream connect error or disconnect/reset before headers",
        {"Content-Type": "text/plain"},
    )


LOSSES = [
    before,
    behind,
    within_the_head,
    within_the_body,
    gateway_before,
    gateway_behind,
    away_before,
    away_behind,
]
SOME = [before, behind, within_the_body, gateway_behind]
"""One loss of each kind; the client searches for missing results for more than a second."""
NEVER_ARRIVED = (before, gateway_before, away_before)
Loss = Callable[[str, Request], Answer]

DB = ContentKey(("db",))
WRITES = ("POST", "PUT", "DELETE")
READS = ("/contents",)


class Spoiler:
    """Forwards everything, but disturbs the first `times` writes; `writes` records all writes."""

    def __init__(self, server: str, loss: Loss, *, plain: bool, times: int = 1) -> None:
        self._server, self._loss, self._left = server, loss, times
        self._without = ("nessie-cli",) if plain else ()
        self.writes: list[str] = []

    def __call__(self, request: Request) -> Answer:
        if request.method in WRITES and not request.path.endswith(READS):
            self.writes.append(str(request))
            if self._left:
                self._left -= 1
                stripped = request._replace(
                    headers={
                        name: value
                        for name, value in request.headers.items()
                        if name not in self._without
                    }
                )
                return self._loss(self._server, stripped)
        return forward(self._server, request, self._without)


def key(text: str) -> ContentKey:
    return ContentKey.parse(text)


def table(number: int) -> IcebergTable:
    return IcebergTable(metadata_location=f"s3://lake/{number}.json", snapshot_id=number)


def put(repository: Repository, branch: str, name: str, number: int) -> str:
    return repository.commit(
        branch, [Put(key(name), table(number))], CommitMeta(f"{name} {number}")
    ).reference.hash


@pytest.fixture
def repository(repository: Repository) -> Repository:
    """`work` has two commits more than `main`, `old` is at the common start."""
    repository.commit("main", [Put(DB, Namespace(elements=("db",)))], CommitMeta("begin"))
    begin = repository.reference("main").hash
    for name in ("work", "old"):
        repository.create_reference(ReferenceType.BRANCH, name, begin)
    put(repository, "work", "db.one", 1)
    put(repository, "work", "db.two", 2)
    put(repository, "main", "db.three", 3)
    return repository


@contextmanager
def through(
    server: str, loss: Loss, *, plain: bool, times: int = 1
) -> Iterator[tuple[Repository, Spoiler]]:
    spoiler = Spoiler(server, loss, plain=plain, times=times)
    with listening(spoiler) as url, open_remote(url, Access(), os.urandom) as client:
        yield client, spoiler


class Write(NamedTuple):
    """A write as a client makes it, and the state of the catalog after it has happened once."""

    do: Callable[[Repository], object]
    happened: Callable[[Repository], bool]


def subjects(repository: Repository, name: str = "main") -> list[str]:
    return [entry.meta.subject for entry in repository.log(name)]


def head(repository: Repository, name: str) -> str:
    return repository.reference(name).hash


def names(repository: Repository) -> list[str]:
    return [reference.name for reference in repository.references()]


def _commit(repository: Repository, request_id: str | None) -> object:
    wanted = [Put(key("db.new"), table(7))]
    return repository.commit(
        "main",
        wanted,
        CommitMeta("new", authors=("Ann",), properties={"run": ("1",)}),
        request_id=request_id,
    )


def _transplant(repository: Repository, request_id: str | None) -> object:
    commits = [repository.resolve("work~1").hash, repository.resolve("work").hash]
    return repository.transplant("main", commits, request_id=request_id)


def _assign(repository: Repository) -> object:
    return repository.assign_reference(
        "old", head(repository, "work"), expected_hash=head(repository, "old")
    )


_COMMITTED = ["new", "db.three 3", "begin"]
_TRANSPLANTED = ["db.two 2", "db.one 1", "db.three 3", "begin"]
REQUESTS = {
    "commit": Write(lambda r: _commit(r, None), lambda r: subjects(r) == _COMMITTED),
    "commit-by-id": Write(lambda r: _commit(r, "request-1"), lambda r: subjects(r) == _COMMITTED),
    "merge": Write(
        lambda r: r.merge("main", "work"),
        lambda r: len(subjects(r)) == 3 and r.is_ancestor("work", "main"),
    ),
    "merge-by-id": Write(
        lambda r: r.merge("main", "work", request_id="request-2"),
        lambda r: len(subjects(r)) == 3 and r.is_ancestor("work", "main"),
    ),
    "transplant": Write(lambda r: _transplant(r, None), lambda r: subjects(r) == _TRANSPLANTED),
    "transplant-by-id": Write(
        lambda r: _transplant(r, "request-3"), lambda r: subjects(r) == _TRANSPLANTED
    ),
}
MOVES = {
    "create": Write(lambda r: r.create_reference(ReferenceType.TAG, "v1", head(r, "main")), lambda r: names(r) == ["main", "old", "work", "v1"]),
    "assign": Write(_assign, lambda r: head(r, "old") == head(r, "work")),
    "delete": Write(lambda r: r.delete_reference("old", expected_hash=head(r, "old")), lambda r: names(r) == ["main", "work"]),
    "rename": Write(
        lambda r: r.rename_reference("old", "older", expected_hash=head(r, "old")), lambda r: names(r) == ["main", "older", "work"]
    ),
}  # fmt: skip


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", REQUESTS)
def test_our_own_server_commits_a_write_once(
    repository: Repository, server: str, name: str, loss: Loss
) -> None:
    with through(server, loss, plain=False) as (client, spoiler):
        REQUESTS[name].do(client)
    assert REQUESTS[name].happened(repository)
    assert len(spoiler.writes) == 2


@pytest.mark.parametrize("loss", SOME)
@pytest.mark.parametrize("name", MOVES)
def test_our_own_server_moves_a_reference_once(
    repository: Repository, server: str, name: str, loss: Loss
) -> None:
    moves = len(list(repository.reflog()))
    with through(server, loss, plain=False) as (client, spoiler):
        MOVES[name].do(client)
    assert MOVES[name].happened(repository)
    assert len(spoiler.writes) == 2
    assert len(list(repository.reflog())) == moves + (2 if name == "rename" else 1)


@pytest.mark.parametrize("loss", SOME)
@pytest.mark.parametrize("name", MOVES)
def test_a_move_of_a_reference_on_another_server_is_looked_up(
    repository: Repository, server: str, name: str, loss: Loss
) -> None:
    with through(server, loss, plain=True) as (client, spoiler):
        _find_out(repository, client, MOVES[name], loss)
    assert len(spoiler.writes) == (2 if name == "rename" and loss not in NEVER_ARRIVED else 1)


@pytest.mark.parametrize("loss", [*SOME, away_before, away_behind])
@pytest.mark.parametrize("name", REQUESTS)
def test_a_commit_on_another_server_is_found_in_its_log(
    repository: Repository, server: str, name: str, loss: Loss
) -> None:
    with through(server, loss, plain=True) as (client, spoiler):
        _find_out(repository, client, REQUESTS[name], loss)
    assert len(spoiler.writes) == 1


def _find_out(repository: Repository, client: Repository, write: Write, loss: Loss) -> None:
    if loss in NEVER_ARRIVED:
        with pytest.raises(OutcomeUnknown):
            write.do(client)
        assert not write.happened(repository)
    else:
        write.do(client)
        assert write.happened(repository)


def test_the_result_of_a_lost_commit_is_reported(repository: Repository, server: str) -> None:
    with through(server, behind, plain=True) as (client, _):
        result = _commit(client, None)
    newest = repository.commit_at("main")
    assert result.reference.hash == newest.hash  # type: ignore[attr-defined]
    assert result.added == {key("db.new"): repository.content("main", key("db.new")).id}  # type: ignore[attr-defined]


def test_the_result_of_a_lost_merge_is_reported(repository: Repository, server: str) -> None:
    start, base = head(repository, "main"), head(repository, "old")
    with through(server, behind, plain=True) as (client, _):
        result = client.merge("main", "work")
    assert (result.effective_target_hash, result.resultant_hash, result.common_ancestor) == (
        start,
        head(repository, "main"),
        base,
    )
    assert result.applied


def test_commits_of_others_are_not_mistaken_for_ones_own(
    repository: Repository, server: str
) -> None:
    """Another writer commits another content with the same message. Our request is lost, and
    never arrived."""

    def overtaken(url: str, request: Request) -> Answer:
        repository.commit(
            "main",
            [Put(key("db.new"), table(8))],
            CommitMeta("new", authors=("Ann",), properties={"run": ("1",)}),
        )
        return CUT

    with through(server, overtaken, plain=True) as (client, _), pytest.raises(OutcomeUnknown):
        _commit(client, None)


def test_the_outcome_on_a_deleted_branch_is_unknown(repository: Repository, server: str) -> None:
    def overtaken(url: str, request: Request) -> Answer:
        forward(url, request)
        repository.delete_reference("old", expected_hash=head(repository, "old"))
        return CUT

    with through(server, overtaken, plain=True) as (client, _), pytest.raises(OutcomeUnknown):
        client.commit("old", [Put(key("db.new"), table(7))], CommitMeta("new"))


def test_a_commit_is_found_below_later_ones(repository: Repository, server: str) -> None:
    def overtaken(url: str, request: Request) -> Answer:
        forward(url, request)
        put(repository, "main", "db.later", 9)
        return CUT

    with through(server, overtaken, plain=True) as (client, _):
        assert _commit(client, None).reference.hash == repository.resolve("main~1").hash  # type: ignore[attr-defined]


def test_the_outcome_is_unknown_if_the_server_does_not_return(
    repository: Repository, server: str
) -> None:
    gone = False

    def dying(request: Request) -> Answer:
        nonlocal gone
        gone = gone or request.path.endswith("/history/commit")
        return CUT if gone else forward(server, request)

    with (
        listening(dying) as url,
        open_remote(url, Access(), os.urandom) as client,
        pytest.raises(OutcomeUnknown) as unknown,
    ):
        _commit(client, "request-9")
    assert unknown.value.request_id == "request-9"


class Overtaken(NamedTuple):
    """A write that another one overtakes, and what its error says then."""

    write: Callable[[Repository, str], object]
    other: Callable[[Repository], object]
    reason: str


def late_commit(repository: Repository, start: str) -> object:
    operations = [Put(key("db.new"), table(7))]
    return repository.commit("main", operations, CommitMeta("late"), expected_hash=start)


def late_merge(repository: Repository, _: str) -> object:
    return repository.merge("main", "work", MergeOptions(CommitMeta("late")))


@pytest.mark.parametrize(
    "overtaken",
    [
        Overtaken(late_commit, lambda r: put(r, "main", "db.new", 8), r"db\.new"),
        Overtaken(late_merge, lambda r: r.merge("main", "work"), "no effect"),
    ],
    ids=["refused", "nothing to merge"],
)
def test_after_a_repetition_without_effect_the_first_submission_may_still_arrive(
    repository: Repository, server: str, overtaken: Overtaken
) -> None:
    start = head(repository, "main")
    first: list[Request] = []

    def loss(url: str, request: Request) -> Answer:
        first.append(request)
        overtaken.other(repository)
        return CUT

    with (
        through(server, loss, plain=False) as (client, _),
        pytest.raises(OutcomeUnknown, match=overtaken.reason) as unknown,
    ):
        overtaken.write(client, start)
    assert repository.find_request(unknown.value.request_id) is None

    repository.assign_reference("main", start, expected_hash=head(repository, "main"))
    assert forward(server, first[0]).status == 200
    assert repository.find_request(unknown.value.request_id) is not None
    assert subjects(repository)[0] == "late"


@pytest.mark.parametrize("plain", [False, True])
def test_a_merge_is_not_refused_by_a_server_that_dies_after_its_answer(
    repository: Repository, server: str, plain: bool
) -> None:
    """The contents of a merge are read after it."""
    without = ("nessie-cli",) if plain else ()
    answered: list[Request] = []

    def dying(request: Request) -> Answer:
        if answered:
            return CUT
        if "history/merge" in request.path:
            answered.append(request)
        return forward(server, request, without)

    with (
        listening(dying) as url,
        open_remote(url, Access(), os.urandom) as client,
        pytest.raises(OutcomeUnknown, match="branch main is at") as unknown,
    ):
        client.merge("main", "work")
    assert repository.is_ancestor("work", "main")
    assert plain or repository.find_request(unknown.value.request_id) is not None


@pytest.mark.parametrize("plain", [False, True])
def test_a_failure_without_effect_is_reported(
    repository: Repository, server: str, *, plain: bool
) -> None:
    def failing(url: str, request: Request) -> Answer:
        return Answer(
            500,
            b'{"status": 500, "reason": "Internal Server Error", "message": "a bug", "errorCode": "UNKNOWN"}',
        )

    with (
        through(server, failing, plain=plain) as (client, _),
        pytest.raises(StoreUnavailable) as error,
    ):
        _commit(client, None)
    assert not isinstance(error.value, OutcomeUnknown)
    assert "nothing was written" in error.value.message


@pytest.mark.parametrize("plain", [False, True])
def test_a_write_is_retried_if_the_server_did_not_begin_it(
    repository: Repository, server: str, *, plain: bool
) -> None:
    def busy(url: str, request: Request) -> Answer:
        return Answer(
            503,
            b'{"status": 503, "reason": "Service Unavailable", "message": "away", "errorCode": "SERVICE_UNAVAILABLE"}',
        )

    with through(server, busy, plain=plain, times=2) as (client, spoiler):
        _commit(client, None)
    assert len(spoiler.writes) == 3
    assert subjects(repository) == _COMMITTED


def test_an_existing_reference_is_reported_before_a_write(
    repository: Repository, server: str
) -> None:
    with through(server, behind, plain=True) as (client, spoiler), pytest.raises(AlreadyExists):
        client.create_reference(ReferenceType.BRANCH, "old", head(client, "old"))
    assert spoiler.writes == []


def test_a_request_is_looked_up_on_its_branch(repository: Repository, server: str) -> None:
    asked: list[str] = []

    def watched(request: Request) -> Answer:
        asked.append(request.path)
        return forward(server, request, ("nessie-cli",))

    with listening(watched) as url, open_remote(url, Access(), os.urandom) as client:
        done = _commit(client, "request-1")
        asked.clear()
        assert client.find_request("request-1", branch="main") == done
        assert client.find_request("request-1", branch="work") is None
        assert not any(path.startswith("/api/v2/trees?") for path in asked)
        assert (
            client.find_request("request-1")
            == client.find_request("request-1", branch="gone")
            == done
        )
        assert any(path.startswith("/api/v2/trees?") for path in asked)
