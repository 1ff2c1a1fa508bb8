"""Proposals: a change of any kind, and the metadata files that land with it or are removed."""

import pytest

from nessie_cli import connect
from nessie_cli.errors import MergeConflict, NessieError
from nessie_cli.iceberg.warehouses.configuration import from_options
from nessie_cli.iceberg.warehouses.metadata_files import MetadataFiles
from nessie_cli.model import (
    CommitMeta,
    ContentKey,
    IcebergTable,
    MergeBehavior,
    Put,
    ReferenceType,
)
from nessie_cli.repository.changes import Commit, Merge, MergeOptions, Transplant
from nessie_cli.server.auth.gate import ANONYMOUS, Admission, Catalog
from nessie_cli.server.auth.rules import Rules
from nessie_cli.server.http.streams import LogEntryCache
from nessie_cli.server.pipeline.call import MOST_TRIES, Call, NewFile, Proposal
from nessie_cli.server.runtime.thread_pool import Writer

KEY = ContentKey(("t",))


def table(name, like=None):
    return Put(KEY, IcebergTable(metadata_location=name, id=like and like.id), like)


def commit(repository, branch, name):
    there = repository.contents(branch, [KEY]).get(KEY)
    return repository.commit(branch, [table(name, there)], CommitMeta(name))


@pytest.fixture
def repository():
    with connect("memory:") as opened:
        commit(opened, "main", "base")
        opened.create_reference(ReferenceType.BRANCH, "dev", opened.reference("main").hash)
        commit(opened, "dev", "theirs")
        yield opened


@pytest.fixture
def catalog(repository):
    writer = Writer(repository)
    yield Catalog(repository, "main", LogEntryCache(), writer=writer)
    writer.close()


@pytest.fixture
def call(catalog):
    return Call(catalog, {}, "", [])


@pytest.fixture
def new_file(tmp_path):
    """Returns metadata files of a local warehouse that are not written yet."""
    files = MetadataFiles(from_options([str(tmp_path)]).named(None))
    return lambda name: NewFile(files, f"file://{tmp_path}/{name}.metadata.json", b"{}")


@pytest.fixture
def written(tmp_path):
    """Returns the names of the files in the warehouse."""
    return lambda: sorted(path.name.partition(".")[0] for path in tmp_path.rglob("*.json"))


def location(repository, branch="main"):
    return repository.contents(branch, [KEY])[KEY].metadata_location


def changes(repository):
    """Returns a change of each kind that makes `main` what `dev` is."""
    head = repository.reference("dev").hash
    there = repository.contents("main", [KEY])[KEY]
    return {
        "commit": Commit("main", [table("theirs", there)], CommitMeta("m")),
        "merge": Merge("main", "dev"),
        "transplant": Transplant("main", [head]),
    }


@pytest.mark.parametrize("kind", ["commit", "merge", "transplant"])
def test_a_change_of_any_kind_lands_with_its_files(repository, call, new_file, written, kind):
    files = [new_file("a"), new_file("b")]
    assert call.land(lambda: Proposal(changes(repository)[kind], files)) is not None
    assert (location(repository), written()) == ("theirs", ["a", "b"])
    assert location(call.repository) == "theirs", "the request reads what it has written"


def test_nothing_is_written_if_nothing_is_proposed(repository, call, written):
    head = repository.reference("main")
    assert call.land(lambda: None) is None
    assert (repository.reference("main"), written()) == (head, [])


def test_after_a_lost_race_the_change_is_proposed_again(repository, call, new_file, written):
    seen = []

    def propose():
        seen.append(location(call.repository))
        if len(seen) == 1:
            commit(repository, "main", "ours")
            return Proposal(Merge("main", "dev"), [new_file("first")])
        options = MergeOptions(default_behavior=MergeBehavior.FORCE)
        return Proposal(Merge("main", "dev", options), [new_file("second")])

    call.land(propose)
    assert seen == ["base", "ours"], "each proposal reads the current state"
    assert (location(repository), written()) == ("theirs", ["second"])


def test_a_change_that_conflicts_each_time_fails_in_the_end(repository, call, new_file, written):
    commit(repository, "main", "ours")
    tries = []

    def propose():
        tries.append(written())
        return Proposal(Merge("main", "dev"), [new_file("a")])

    with pytest.raises(MergeConflict):
        call.land(propose)
    assert tries == [[]] * MOST_TRIES
    assert (location(repository), written()) == ("ours", [])


def test_no_file_is_written_for_a_caller_without_the_right(catalog, new_file, written):
    admission = Admission(ANONYMOUS, Rules({}))
    call = Call(admission.catalog(catalog, b"/api/v2/trees"), {}, "", [])
    with pytest.raises(NessieError):
        call.land(lambda: Proposal(Merge("main", "dev"), [new_file("a")]))
    assert written() == []


def test_files_are_written_all_or_none(repository, call, new_file, written):
    head = repository.reference("main")
    Proposal(Merge("main", "dev"), [new_file("there")]).write()
    files = [
        new_file("a"),
        new_file("b"),
        NewFile(new_file("c").files, "file:///etc/c.metadata.json", b"{}"),
    ]
    with pytest.raises(NessieError):
        call.land(lambda: Proposal(Merge("main", "dev"), files))
    assert (repository.reference("main"), written()) == (head, ["there"])
