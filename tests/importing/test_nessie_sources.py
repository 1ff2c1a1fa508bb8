"""Another Nessie server as the source of an import: contents at a branch, tag or commit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from nessie_cli import connect
from nessie_cli.errors import InvalidInput, NotAllowed, NotFound, StoreUnavailable
from nessie_cli.importing.opening import SourceType, open_source
from nessie_cli.importing.source import Listing, Name, SourceContent, SourceKind, SourceNamespace
from nessie_cli.model import UDF, Content, DeltaLakeTable, UnknownContent
from nessie_cli.repository.base import Repository
from tests.repository.vocabulary import Catalog, namespace, put, table, view
from tests.server.guarding import guarded
from tests.server.serving import serving


@pytest.fixture
def source() -> Iterator[Catalog]:
    """A repository with all types of contents."""
    with connect("memory:") as repository:
        catalog = Catalog(repository)
        contents: dict[str, Content] = {
            "db": namespace("db", owner="ann"),
            "db.t": table(1),
            "db.v": view(2),
            "db.f": UDF(sql_text="x", dialect="spark"),
            "db.d": DeltaLakeTable(metadata_location_history=("a",)),
            "db.x": UnknownContent(foreign_type="PUFFIN", foreign_attributes={"a": 1}),
            "db.deep": namespace("db.deep"),
            "db.deep.t": table(3),
            "other": namespace("other"),
            "other.t": table(4),
        }
        catalog.commit("main", *(put(name, content) for name, content in contents.items()))
        catalog.tag("v1")
        catalog.commit("main", put("other.late", table(5)))
        yield catalog


@pytest.fixture
def url(source: Catalog) -> Iterator[str]:
    with serving(source.repository) as address:
        yield f"{address}/api/v2"


@pytest.fixture
def target() -> Iterator[Repository]:
    with connect("memory:") as repository:
        yield repository


def listed(
    text: str,
    *namespaces: Name,
    revision: str | None = None,
    target: Repository | None = None,
) -> Listing:
    opened = open_source(text, revision=revision, target=target)
    try:
        return opened.listing(namespaces)
    finally:
        opened.close()


def names(listing: Listing) -> list[str]:
    return [".".join(content.name) for content in listing.contents]


def test_tables_views_and_namespaces_are_listed_and_other_types_left_out(
    source: Catalog, url: str, target: Repository
) -> None:
    listing = listed(url, target=target)
    assert names(listing) == ["db.deep.t", "db.t", "db.v", "other.late", "other.t"]
    assert listing.namespaces == [
        SourceNamespace(("db",), {"owner": "ann"}),
        SourceNamespace(("db", "deep")),
        SourceNamespace(("other",)),
    ]
    content = source.content("main", "db.v")
    assert listing.contents[2] == SourceContent(
        ("db", "v"),
        SourceKind.VIEW,
        content.metadata_location,  # type: ignore[attr-defined]
        content=content,  # type: ignore[arg-type]
    )
    assert [(entry.name, entry.message) for entry in listing.left_out] == [
        (("db", name), f"type {label}: only Iceberg tables and views are imported")
        for name, label in [("d", "delta-table"), ("f", "udf"), ("x", "puffin")]
    ]
    assert not listing.problems


def test_the_old_api_names_the_same_server(url: str) -> None:
    opened = open_source(url.replace("/v2", "/v1/"))
    assert opened.label == f"{url} at main"
    opened.close()


@pytest.mark.parametrize("kind", ["v1", "hash", "main~1"])
def test_a_revision_chooses_the_state(source: Catalog, url: str, kind: str) -> None:
    revision = source.hash("v1") if kind == "hash" else kind
    assert "other.late" not in names(listed(url, revision=revision))
    with pytest.raises(NotFound) as caught:
        listed(url, revision="nowhere")
    assert type(caught.value) is NotFound
    assert str(caught.value).startswith(f"{url}: ")
    assert f"'nowhere' not found. Hint: `nessie --store {url} branch`" in str(caught.value)


def test_a_listing_is_of_one_commit(source: Catalog, url: str) -> None:
    opened = open_source(url)
    source.commit("main", put("other.later", table(6)))
    assert "other.later" not in names(opened.listing([]))
    opened.close()


@pytest.mark.parametrize(
    ("given", "expected", "above"),
    [
        ([("db", "deep")], ["db.deep.t"], ["db", "db.deep"]),
        ([("other",), ("db", "deep"), ("db",)], ["db.deep.t", "db.t", "db.v"], ["db", "db.deep"]),
    ],
)
def test_only_the_given_namespaces_are_read_with_those_above(
    url: str, given: Sequence[Name], expected: Sequence[str], above: Sequence[str]
) -> None:
    listing = listed(url, *given)
    others = ["other.late", "other.t"] if ("other",) in given else []
    assert names(listing) == [*expected, *others]
    assert [".".join(entry.name) for entry in listing.namespaces] == [
        *above,
        *(["other"] if others else []),
    ]
    assert not listing.problems


def test_what_is_no_namespace_is_a_problem(url: str) -> None:
    listing = listed(url, ("nowhere",), ("db", "t"))
    assert [(problem.name, problem.message.partition(",")[0]) for problem in listing.problems] == [
        (("nowhere",), "no such namespace"),
        (("db", "t"), "is of type iceberg-table"),
    ]


def test_an_empty_server_is_a_problem() -> None:
    with serving() as address:
        listing = listed(f"{address}/api/v2")
    assert [(problem.message, problem.location) for problem in listing.problems] == [
        ("has no Iceberg tables or views", f"{address}/api/v2 at main")
    ]


def test_a_store_is_a_source_if_the_type_says_so(tmp_path: Path) -> None:
    from nessie_cli import create

    path = f"sqlite:///{tmp_path}/other.sqlite"
    with create(path) as repository:
        Catalog(repository).commit("main", put("t", table(1)))
    opened = open_source(path, SourceType.NESSIE)
    assert names(opened.listing([])) == ["t"]
    opened.close()


def test_a_repository_is_not_imported_into_itself(source: Catalog, url: str) -> None:
    with pytest.raises(InvalidInput, match=r"is a commit of this repository.*`nessie merge"):
        listed(url, target=source.repository)
    with connect(url) as remote, pytest.raises(InvalidInput, match="is this repository itself"):
        listed(url, target=remote)
    rest = url.replace("/api/v2", "/iceberg/main")
    with connect(url) as remote, pytest.raises(InvalidInput, match="is this repository itself"):
        listed(rest, target=remote)


def test_a_server_that_does_not_answer_is_unavailable(target: Repository) -> None:
    with pytest.raises(StoreUnavailable):
        listed("http://127.0.0.1:1/api/v2", target=target)


# -- credentials ----------------------------------------------------------------------------------


class GuardedSource(NamedTuple):
    """The URL of a server that authenticates callers, and a token that it knows."""

    url: str
    token: str


@pytest.fixture
def guarded_source(tmp_path: Path) -> Iterator[GuardedSource]:
    with guarded(tmp_path) as server:
        Catalog(server.repository).commit("main", put("t", table(1)))
        token = server.as_("admin", "admin").token
        assert token is not None
        yield GuardedSource(f"{server.url}/api/v2", token)


def test_credentials_come_from_the_environment_or_a_file(
    guarded_source: GuardedSource,
    target: Repository,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(NotAllowed):
        listed(guarded_source.url)
    file = tmp_path / "token"
    file.write_text(guarded_source.token)
    file.chmod(0o600)
    opened = open_source(
        guarded_source.url, properties={"access.token-file": str(file), "s3.region": "eu"}
    )
    assert opened.properties == {"s3.region": "eu"}
    opened.close()
    monkeypatch.setenv("NESSIE_AUTH_TOKEN", guarded_source.token)
    assert listed(guarded_source.url, target=target).contents
    with pytest.raises(InvalidInput, match="token"):
        open_source(guarded_source.url, properties={"access.token": guarded_source.token})


def test_the_credentials_of_a_target_are_not_sent_to_the_source(
    guarded_source: GuardedSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NESSIE_AUTH_TOKEN", guarded_source.token)
    with (
        serving() as address,
        connect(f"{address}/api/v2") as remote,
        pytest.raises(NotAllowed, match=r"--property access\.token-file=FILE"),
    ):
        listed(guarded_source.url, target=remote)
