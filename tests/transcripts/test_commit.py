"""`nessie commit`: metadata, batch files, conflicts and resolutions, lost answers."""

from __future__ import annotations

import json
import shlex
import shutil

import pytest

from nessie_cli import connect
from nessie_cli.model import CommitMeta, ContentKey, Delete, IcebergTable, Put
from nessie_cli.workspace.batch import BatchFile, StagedBatch
from nessie_cli.workspace.folder import Workspace


def put(key, snapshot, **more):
    attributes = {
        "metadataLocation": f"s3://lake/{snapshot}.json",
        "snapshotId": snapshot,
        "schemaId": 0,
        "specId": 0,
        "sortOrderId": 0,
    }
    return {
        "type": "PUT",
        "key": {"elements": key.split(".")},
        "content": {"type": "ICEBERG_TABLE", **attributes, **more},
    }


def another_user(nessie, *operations, message="nightly load", author="etl@example.org"):
    """Another writer commits to main; answers the new head."""
    with connect(str(nessie.folder / ".nessie" / "store.sqlite"), who="etl") as repository:
        return repository.commit(
            "main", operations, CommitMeta(message, authors=(author,))
        ).reference.hash


def changed(nessie, key, snapshot):
    """What another writer does to change a table."""
    with connect(str(nessie.folder / ".nessie" / "store.sqlite")) as repository:
        content = repository.content("main", ContentKey.parse(key))
    return Put(
        ContentKey.parse(key),
        IcebergTable(
            id=content.id, metadata_location=f"s3://lake/{snapshot}.json", snapshot_id=snapshot
        ),
    )


def logged(nessie):
    return nessie.ok("log", "-n", "1", "--json").json["logEntries"][0]["commitMeta"]


# -- metadata ------------------------------------------------------------------------------------
def test_all_metadata_options_of_a_commit(catalog):
    catalog.table("db.orders", 2)
    catalog.ok(
        *(
            "commit",
            "-m",
            "subject",
            "-m",
            "second paragraph",
            "--author",
            "Ada <ada@example.org>",
            "--author",
            "Bob",
        ),
        *(
            "--signed-off-by",
            "Cyd",
            "--property",
            "run=7",
            "--property",
            "run=8",
            "--property",
            "env=a=b",
            "--author-time",
            "2026-01-31T12:00:00Z",
        ),
    )

    meta = logged(catalog)
    assert meta["message"] == "subject\n\nsecond paragraph"
    assert meta["authors"] == ["Ada <ada@example.org>", "Bob"]
    assert meta["allSignedOffBy"] == ["Cyd"]
    assert meta["allProperties"] == {"run": ["7", "8"], "env": ["a=b"]}
    assert meta["authorTime"] == "2026-01-31T12:00:00Z"


def test_the_message_comes_from_a_file_or_stdin(catalog):
    (catalog.folder / "message.txt").write_text("from a file\n\nbody\n")
    catalog.table("db.orders", 2)
    catalog.ok("commit", "-F", "message.txt")
    catalog.table("db.orders", 3)
    catalog.ok("commit", "-F", "-", stdin="from stdin\n")

    assert catalog.messages()[:2] == ["from stdin", "from a file\n\nbody"]


def test_the_author_comes_from_the_environment_or_the_users_configuration(catalog):
    config = catalog.folder.parent / "home" / "config" / "nessie"
    (config / "config.toml").write_text('author = "Conf <conf@example.org>"\n')
    catalog.table("db.orders", 2, "-m", "configured")
    assert logged(catalog)["authors"] == ["Conf <conf@example.org>"]

    catalog.ok("content", "delete", "db.orders", "-m", "named", env={"NESSIE_AUTHOR": "Env"})
    assert logged(catalog)["authors"] == ["Env"]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((), "-m MSG or -F FILE"),
        (("-m", ""), "message is empty"),
        (("-m", "x", "-F", "y"), "cannot be used together"),
        (("-F", "missing.txt"), "missing.txt cannot be read"),
        (("-F", "/dev/zero"), "/dev/zero is larger than 1 GiB"),
        (("-m", "x", "--property", "p"), "--property p"),
        (("-m", "x", "--author-time", "soon"), "time 'soon'"),
        (("-m", "x", "--batch", "missing.json"), "missing.json cannot be read"),
    ],
)
def test_faulty_options_are_refused_and_the_batch_stays(catalog, args, words):
    catalog.table("db.orders", 2)
    before = (catalog.folder / ".nessie" / "batch.json").read_bytes()

    outcome = catalog("commit", *args)

    assert outcome.code == 2
    assert words in outcome.err
    assert (catalog.folder / ".nessie" / "batch.json").read_bytes() == before


def test_an_empty_batch_is_an_error(catalog):
    outcome = catalog("commit", "-m", "empty")

    assert outcome.code == 1
    assert "nothing is staged" in outcome.err


def test_a_dry_run_writes_nothing(catalog):
    catalog.table("db.orders", 2)
    outcome = catalog.ok("commit", "-m", "trial", "--dry-run", "--json")

    assert outcome.json["wasApplied"] is False
    assert catalog.messages() == ["first tables"]
    assert catalog.staged() == [("PUT", "db.orders")]


def test_the_answer_names_the_new_head_and_the_created_ids(catalog):
    catalog.table("db.new", 1)
    answer = catalog.ok("commit", "-m", "create", "--json").json

    assert answer["targetBranch"] == {
        "type": "BRANCH",
        "name": "main",
        "hash": logged(catalog)["hash"],
    }
    [added] = answer["addedContents"]
    assert (
        added["contentId"]
        == catalog.ok("content", "show", "db.new", "--json").json["content"]["id"]
    )
    assert (answer["wasApplied"], answer["wasRepeated"]) == (True, False)


# -- operations from a file ----------------------------------------------------------------------
def test_a_batch_file_is_committed_and_the_staged_batch_left_alone(catalog):
    catalog.table("db.staged", 1)
    body = {
        "commitMeta": {"message": "in the file", "authors": ["File"]},
        "operations": [put("db.a", 1), put("db.b", 2)],
    }
    (catalog.folder / "batch.json").write_text(json.dumps(body))

    catalog.ok("commit", "--batch", "batch.json")

    assert (logged(catalog)["message"], logged(catalog)["authors"]) == ("in the file", ["File"])
    assert catalog.snapshot("db.b") == 2
    assert catalog.staged() == [("PUT", "db.staged")]


def test_a_batch_comes_as_json_lines_from_stdin(catalog):
    lines = "".join(json.dumps(put(f"db.t{n}", n)) + "\n" for n in range(50))

    catalog.ok("commit", "--batch", "-", "-m", "lines", stdin=lines)

    assert len(catalog.ok("content", "list", "--jsonl").out.splitlines()) == 52


def test_one_bad_operation_in_a_thousand_is_named_and_nothing_is_written(catalog):
    operations = [put(f"db.t{n}", n) for n in range(1000)]
    operations[617]["content"]["snapshotId"] = "six hundred"

    outcome = catalog("commit", "--batch", "-", "-m", "load", stdin=json.dumps(operations))

    assert outcome.code == 2
    assert outcome.err.startswith("nessie: stdin: [617].content.snapshotId: ")
    assert catalog.messages() == ["first tables"]


# -- conflicts -----------------------------------------------------------------------------------
@pytest.fixture
def conflicting(catalog):
    """An update of db.orders is staged, and another user has changed the table meanwhile."""
    catalog.table("db.orders", 2)
    another_user(catalog, changed(catalog, "db.orders", 99))
    return catalog


def test_a_conflict_shows_the_expected_and_current_content_and_who_changed_it(conflicting):
    outcome = conflicting("commit", "-m", "mine", "--json")

    assert outcome.code == 3
    assert len(outcome.err.splitlines()) == 1
    details = outcome.error["errorDetails"]
    [conflict] = details["conflicts"]
    assert conflict["conflictType"] == "VALUE_DIFFERS"
    assert [conflict[side]["snapshotId"] for side in ("expected", "actual", "proposed")] == [
        1,
        99,
        2,
    ]
    assert (conflict["changedBy"]["message"], conflict["changedBy"]["authors"]) == (
        "nightly load",
        ["etl@example.org"],
    )
    assert conflict["changedBy"]["hash"] == details["hash"]
    assert (
        details["expectedHash"]
        == conflicting.ok("log", "--json").json["logEntries"][1]["commitMeta"]["hash"]
    )


def test_the_block_for_people_holds_the_same(conflicting):
    outcome = conflicting("commit", "-m", "mine")

    assert (outcome.code, outcome.out) == (3, "")
    for words in (
        "conflict: db.orders was changed on main and in the batch   VALUE_DIFFERS",
        "current",
        '"nightly load" etl@example.org',
        "nessie reset",
    ):
        assert words in outcome.err
    assert "schema-id" not in outcome.err.partition("resolve")[0]


def test_status_shows_the_same_conflict_before_the_commit(conflicting):
    failed = conflicting("commit", "-m", "mine", "--json").error["errorDetails"]["conflicts"]
    status = conflicting.ok("status", "--json").json

    assert status["conflicts"] == failed
    assert "conflict: db.orders was changed on main" in conflicting.ok("status").out


def test_a_dry_run_reports_the_conflict_with_exit_3(conflicting):
    assert conflicting("commit", "-m", "mine", "--dry-run").code == 3


def test_a_failed_commit_leaves_the_batch(conflicting):
    conflicting("commit", "-m", "mine")

    assert conflicting.staged() == [("PUT", "db.orders")]
    assert conflicting.snapshot("db.orders") == 99


def test_the_first_resolution_takes_proposed_and_the_second_keeps_current(conflicting):
    resolutions = conflicting("commit", "-m", "mine", "--json").error["errorDetails"]["conflicts"][
        0
    ]["resolutions"]
    again, out = (shlex.split(line)[1:] for line in resolutions)

    conflicting.ok(*out)
    assert conflicting.staged() == []

    conflicting.ok(*again)
    conflicting.ok("commit", "-m", "mine after all")
    assert conflicting.snapshot("db.orders") == 2


def test_staging_again_without_an_expected_hash_does_not_resolve(conflicting):
    conflicting.table("db.orders", 3)

    assert conflicting("commit", "-m", "mine").code == 3


def key(text):
    return ContentKey.parse(text)


STAGE = {
    "delete": ("content", "delete", "db.orders"),
    "unmodified": ("content", "unmodified", "db.orders"),
    "rename": ("content", "rename", "db.orders", "db.sold"),
    "replace": ("content", "replace", "db.orders", "--type", "udf", "--sql-text", "x"),
    "update": ("content", "put", "db.orders", "--snapshot-id", "2"),
    "create": ("content", "put", "db.fresh", "--type", "iceberg-table", "--metadata-location", "m"),
}
TABLE = IcebergTable(metadata_location="theirs", snapshot_id=7)


@pytest.mark.parametrize(
    ("verb", "theirs", "type_"),
    [
        ("delete", "change", "VALUE_DIFFERS"),
        ("delete", "delete", "KEY_DOES_NOT_EXIST"),
        ("unmodified", "change", "VALUE_DIFFERS"),
        ("unmodified", "delete", "KEY_DOES_NOT_EXIST"),
        ("rename", "change", "VALUE_DIFFERS"),
        ("rename", "delete", "KEY_DOES_NOT_EXIST"),
        ("replace", "change", "VALUE_DIFFERS"),
        ("replace", "delete", "KEY_DOES_NOT_EXIST"),
        ("update", "delete", "KEY_DOES_NOT_EXIST"),
        ("update", "recreate", "CONTENT_ID_DIFFERS"),
        ("create", "create", "KEY_EXISTS"),
    ],
)
def test_every_verb_conflicts_with_changes_of_others_and_each_resolution_works(
    catalog, verb, theirs, type_
):
    catalog.ok(*STAGE[verb])
    if verb == "unmodified":
        catalog.table("db.beside", 1)
    orders = key("db.orders")
    does = {
        "change": lambda: [changed(catalog, "db.orders", 99)],
        "delete": lambda: [Delete(orders)],
        "recreate": lambda: [Delete(orders), Put(orders, TABLE)],
        "create": lambda: [Put(key("db.fresh"), TABLE)],
    }
    another_user(catalog, *does[theirs]())

    outcome = catalog("commit", "-m", "mine", "--json")

    assert outcome.code == 3, outcome
    conflicts = outcome.error["errorDetails"]["conflicts"]
    assert [c["conflictType"] for c in conflicts] == [type_]
    resolutions = [shlex.split(line)[1:] for line in conflicts[0]["resolutions"]]
    assert resolutions
    for index, resolution in enumerate(resolutions):
        folder = catalog.folder.parent / f"way{index}"
        shutil.copytree(catalog.folder, folder)
        catalog.ok(*resolution, cwd=folder)
        assert catalog.ok("status", "--json", cwd=folder).json["conflicts"] == []
        if json.loads(catalog.ok("status", "--json", cwd=folder).out)["batch"]["operations"]:
            catalog.ok("commit", "-m", "resolved", cwd=folder)


def test_all_conflicts_are_reported_at_once(conflicting):
    conflicting.ok("content", "put", "nowhere.x", "--type", "udf")
    conflicting.table("db.fine", 1)

    conflicts = conflicting("commit", "-m", "mine", "--json").error["errorDetails"]["conflicts"]

    assert sorted(c["conflictType"] for c in conflicts) == ["NAMESPACE_ABSENT", "VALUE_DIFFERS"]


def test_changes_of_other_keys_are_not_conflicts(catalog):
    catalog.table("db.orders", 2)
    another_user(catalog, Put(key("db.theirs"), TABLE))

    catalog.ok("commit", "-m", "mine")

    assert catalog.messages() == ["mine", "nightly load", "first tables"]


def test_two_operations_on_one_key_are_named_by_their_numbers(catalog):
    operations = [{"type": "DELETE", "key": {"elements": [name]}} for name in ("a", "b", "c", "b")]
    outcome = catalog(
        "commit", "--batch", "-", "-m", "x", stdin="\n".join(map(json.dumps, operations))
    )

    assert (outcome.code, outcome.err) == (
        2,
        "nessie: stdin: operations 2 and 4 are both about key b; a commit changes a key once\n",
    )


def test_expected_hash_of_a_file_batch_is_where_the_caller_started(catalog):
    start = logged(catalog)["hash"]
    id_ = catalog.ok("content", "show", "db.orders", "--json").json["content"]["id"]
    another_user(catalog, changed(catalog, "db.orders", 99))
    operation = json.dumps([put("db.orders", 5, id=id_)])

    stale = catalog(
        "commit", "--batch", "-", "-m", "late", "--expected-hash", start[:12], stdin=operation
    )
    assert stale.code == 3

    catalog.ok("commit", "--batch", "-", "-m", "over it", stdin=operation)
    assert catalog.snapshot("db.orders") == 5


# -- submissions whose answer never came ---------------------------------------------------------
@pytest.fixture
def unanswered(catalog):
    """A batch that was committed by a process that died before it could take the batch away."""
    catalog.table("db.orders", 2)
    file = BatchFile(Workspace(catalog.folder))
    batch = file.read()
    assert batch is not None
    with file.changing():
        file.write(StagedBatch(batch.begun_at, batch.staged, "request-1"))
    with connect(str(catalog.folder / ".nessie" / "store.sqlite")) as repository:
        repository.commit(
            "main", batch.operations, CommitMeta("committed, then killed"), request_id="request-1"
        )
    return catalog


def test_a_commit_after_a_crash_reports_the_existing_one(unanswered):
    outcome = unanswered.ok("commit", "-m", "try again", "--json")

    assert outcome.json["wasRepeated"] is True
    assert outcome.json["targetBranch"]["hash"] == logged(unanswered)["hash"]
    assert unanswered.messages() == ["committed, then killed", "first tables"]
    assert unanswered.staged() == []


def test_status_after_a_crash_shows_nothing_staged(unanswered):
    assert unanswered.ok("status", "--json").json["batch"]["operations"] == []
    assert unanswered("commit", "-m", "nothing").code == 1


def test_staging_after_a_crash_begins_a_new_batch(unanswered):
    outcome = unanswered.table("db.orders", 3)

    assert "committed already" in outcome.err
    unanswered.ok("commit", "-m", "third load")
    assert unanswered.messages() == ["third load", "committed, then killed", "first tables"]


def test_a_submission_that_never_arrived_is_repeated(catalog):
    catalog.table("db.orders", 2)
    file = BatchFile(Workspace(catalog.folder))
    batch = file.read()
    assert batch is not None
    file.write(StagedBatch(batch.begun_at, batch.staged, "request-2"))

    outcome = catalog.ok("commit", "-m", "second try", "--json")

    assert outcome.json["wasRepeated"] is False
    assert catalog.messages() == ["second try", "first tables"]
    with connect(str(catalog.folder / ".nessie" / "store.sqlite")) as repository:
        assert repository.find_request("request-2", branch="main"), (
            "under its id, in case that the first try is still on its way"
        )


def test_a_store_that_cannot_be_opened_leaves_the_batch_as_it_is(catalog):
    catalog.table("db.orders", 2)
    batch = catalog.folder / ".nessie" / "batch.json"
    before = batch.read_bytes()

    store = catalog.folder / ".nessie" / "store.sqlite"
    away = store.rename(store.with_name("away.sqlite"))
    assert catalog("commit", "-m", "x").code == 4
    away.rename(store)

    assert batch.read_bytes() == before, "no request id for what was never sent"


@pytest.mark.parametrize("by_file", [False, True])
@pytest.mark.parametrize("change", ["put", "delete", "rename", "unmodified"])
def test_with_an_expected_hash_no_operation_is_on_a_key_that_changed_later(
    catalog, by_file, change
):
    start = catalog.ok("log", "-n", "1", "--format", "%H").out.strip()
    catalog.table("db.items", 1, "-m", "items")
    catalog.table("db.orders", 7, "-m", "orders change")
    # Staged on the newest state, so without --expected-hash nothing conflicts.
    if change == "put":
        catalog.table("db.orders", 8)
    else:
        catalog.ok("content", change, "db.orders", *(["db.moved"] if change == "rename" else []))
    where = ("commit",)
    if by_file:
        operations = catalog.ok("status", "--json").json["batch"]["operations"]
        for operation in operations:
            if operation["type"] != "PUT":
                del operation["expectedContent"]
        (catalog.folder / "operations.json").write_text(json.dumps(operations))
        catalog.ok("reset")
        where = ("commit", "--batch", "operations.json")

    catalog.ok(*where, "--dry-run", "-m", "x")
    outcome = catalog(*where, "-m", "x", "--expected-hash", start, "--json")

    assert outcome.code == 3, outcome
    conflict = outcome.error["errorDetails"]["conflicts"][0]
    assert conflict["key"]["elements"] == ["db", "orders"]
    assert conflict["conflictType"] == "VALUE_DIFFERS"
    assert conflict["expected"]["snapshotId"] == 1
    assert conflict["actual"]["snapshotId"] == 7
    catalog.ok(*where, "-m", "x")


def test_with_an_expected_hash_other_keys_may_have_changed(catalog):
    start = catalog.ok("log", "-n", "1", "--format", "%H").out.strip()
    catalog.table("db.items", 1, "-m", "items")
    catalog.table("db.orders", 8)
    catalog.ok("commit", "-m", "x", "--expected-hash", start)
    assert catalog.snapshot("db.orders") == 8


def test_an_expected_hash_that_is_not_on_the_branch_is_not_found(catalog):
    catalog.ok("branch", "other")
    catalog.table("db.orders", 7, "-m", "elsewhere", "--ref", "other")
    other = catalog.ok("log", "-n", "1", "--format", "%H", "other").out.strip()
    catalog.table("db.orders", 8)
    assert catalog("commit", "-m", "x", "--expected-hash", other).code == 4
