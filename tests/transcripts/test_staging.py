"""The staging verbs and the batch: staged operations, expected contents, refusals."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import pytest

from nessie_cli import connect
from nessie_cli.cli.errors.messages import text_for_people
from tests.command.process import fresh

UUID = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"


def keys(nessie, *more):
    return [
        ".".join(entry["name"]["elements"])
        for entry in nessie.ok("content", "list", "--json", *more).json["entries"]
    ]


def content(nessie, key, *more):
    return nessie.ok("content", "show", key, "--json", *more).json["content"]


def test_nothing_is_written_before_the_commit(catalog):
    catalog.table("db.orders", 2)

    assert catalog.snapshot("db.orders") == 1
    assert catalog.staged() == [("PUT", "db.orders")]

    catalog.ok("commit", "-m", "second load")

    assert catalog.snapshot("db.orders") == 2
    assert catalog.staged() == []
    assert catalog.messages() == ["second load", "first tables"]


def test_an_update_keeps_the_content_id_and_the_fields_that_are_left_out(catalog):
    before = content(catalog, "db.orders")

    catalog.ok("content", "put", "db.orders", "--schema-id", "7", "-m", "new schema")

    assert content(catalog, "db.orders") == before | {"schemaId": 7}


def test_an_update_carries_the_content_it_expects(catalog):
    document = json.loads(catalog.table("db.orders", 2, "--json").out)

    assert document["reference"] == "main"
    assert [o["expectedContent"]["snapshotId"] for o in document["operations"]] == [1]


def test_staging_twice_keeps_the_first_expectation(catalog):
    catalog.table("db.orders", 2)
    operations = json.loads(catalog.table("db.orders", 3, "--json").out)["operations"]

    assert [
        (o["content"]["snapshotId"], o["expectedContent"]["snapshotId"]) for o in operations
    ] == [(3, 1)]


def test_a_message_is_refused_while_other_keys_are_staged(catalog):
    catalog.table("db.a", 1)
    outcome = catalog("content", "put", "db.b", "--type", "udf", "-m", "one of them")

    outcome.expect(2, "db.a", "nessie stash")
    assert keys(catalog) == ["db", "db.orders"]
    assert catalog.table("db.a", 2, "-m", "the staged key itself").out.endswith(" 1 key\n")


def test_a_batch_is_for_one_branch(catalog):
    catalog.ok("branch", "hk")
    catalog.table("db.a", 1, "--ref", "hk")

    for args in (
        ("commit", "-m", "x"),
        ("content", "delete", "db.orders"),
        ("resolve", "--proposed", "db.a"),
    ):
        refused = catalog(*args)
        refused.expect(2, "nessie --ref hk commit")
    assert "staged for hk of .nessie/store.sqlite" in catalog.ok("status").out

    catalog.ok("commit", "-m", "there", "--ref", "hk")
    assert keys(catalog) == ["db", "db.orders"]
    assert catalog.ok("status").out.endswith("nothing is staged\n")


def test_a_batch_is_for_one_store(catalog, tmp_path):
    other = str(tmp_path / "other.sqlite")
    catalog.ok("store", "load", ".nessie/store.sqlite", "--store", other)
    catalog.table("db.a", 1, "--store", other)

    refused = catalog("commit", "-m", "x")
    refused.expect(2, f"nessie --ref main --store {other} commit")
    catalog.ok("commit", "-m", "there", "--store", other)

    assert keys(catalog) == ["db", "db.orders"]
    assert "db.a" in catalog.ok("content", "list", "--store", other).out


def test_switching_takes_the_batch_along_only_within_the_store(catalog, tmp_path):
    catalog.ok("branch", "hk")
    catalog.table("db.a", 1)

    assert "moved to hk" in catalog.ok("switch", "hk").out
    other = str(tmp_path / "other.sqlite")
    catalog.ok("store", "load", ".nessie/store.sqlite", "--store", other)
    assert catalog("switch", "main", "--store", other).code == 2
    assert "on branch hk" in catalog.ok("status").out
    catalog.ok("branch", "-m", "hk", "hk2")
    catalog.ok("commit", "-m", "on the renamed branch")
    catalog.ok("switch", "main")
    assert keys(catalog) == ["db", "db.orders"]


def test_a_batch_of_an_older_version_is_for_the_current_branch(catalog):
    catalog.table("db.a", 1)
    path = catalog.folder / ".nessie" / "batch.json"
    document = json.loads(path.read_text())
    del document["branch"], document["store"]
    path.write_text(json.dumps(document))

    catalog.ok("commit", "-m", "still works")


def test_a_missing_namespace_is_a_conflict_of_the_keys_below_it(catalog):
    catalog.table("nowhere.t", 1)

    assert catalog.ok("status", "-s").out == "AC nowhere.t\n"


def test_status_says_that_the_current_branch_is_gone(catalog):
    catalog.ok("switch", "-c", "hk")
    with connect(str(catalog.folder / ".nessie" / "store.sqlite")) as repository:
        repository.delete_reference("hk", expected_hash=repository.reference("hk").hash)

    outcome = catalog("status")
    outcome.expect(4, "nessie switch", "nessie undo hk")
    catalog.ok("undo", "hk", "--yes")
    assert "on branch hk" in catalog.ok("status").out


def test_a_delete_of_a_staged_creation_leaves_nothing(catalog):
    catalog.table("db.new", 1)
    catalog.ok("content", "delete", "db.new")

    assert catalog.staged() == []
    assert catalog("commit", "-m", "empty").code == 1


def test_a_put_after_a_delete_is_another_content(catalog):
    before = content(catalog, "db.orders")["id"]
    catalog.ok("content", "delete", "db.orders")
    catalog.table("db.orders", 5, "-m", "again")

    assert content(catalog, "db.orders")["id"] != before
    assert catalog.snapshot("db.orders") == 5


def test_replace_is_a_delete_and_a_put_without_id(catalog):
    before = content(catalog, "db.orders")["id"]
    view = (
        "--type",
        "iceberg-view",
        "--metadata-location",
        "s3://v",
        "--version-id",
        "1",
        "--schema-id",
        "0",
    )

    document = catalog.ok("content", "replace", "db.orders", *view, "--json").json
    catalog.ok("commit", "-m", "a view now")

    assert [o["type"] for o in document["operations"]] == ["DELETE", "PUT"]
    assert document["operations"][0]["expectedContent"]["id"] == before
    assert document["operations"][1]["content"]["id"] is None
    found = content(catalog, "db.orders")
    assert found["type"] == "ICEBERG_VIEW"
    assert found["id"] != before


def test_replace_needs_something_to_replace(catalog):
    assert catalog("content", "replace", "db.none", "--type", "udf").code == 4


def test_a_rename_keeps_the_content_id(catalog):
    before = content(catalog, "db.orders")
    catalog.ok("content", "rename", "db.orders", "db.sold", "-m", "rename")

    assert keys(catalog) == ["db", "db.sold"]
    assert content(catalog, "db.sold") == before


def test_renamed_and_changed_in_one_batch(catalog):
    before = content(catalog, "db.orders")["id"]
    catalog.ok("content", "rename", "db.orders", "db.sold")
    catalog.table("db.sold", 9)
    catalog.ok("content", "rename", "db.sold", "db.final", "-m", "chain")

    assert keys(catalog) == ["db", "db.final"]
    assert (content(catalog, "db.final")["id"], catalog.snapshot("db.final")) == (before, 9)


def test_a_rename_there_and_back_leaves_nothing(catalog):
    catalog.ok("content", "rename", "db.orders", "db.sold")
    catalog.ok("content", "rename", "db.sold", "db.orders")

    assert catalog.staged() == []


def test_names_swapped_in_one_commit(catalog):
    catalog.table("db.items", 2, "-m", "second table")
    ids = {key: content(catalog, key)["id"] for key in ("db.orders", "db.items")}
    for old, new in (
        ("db.orders", "db.temporary"),
        ("db.items", "db.orders"),
        ("db.temporary", "db.items"),
    ):
        catalog.ok("content", "rename", old, new)
    catalog.ok("commit", "-m", "swap")

    assert keys(catalog) == ["db", "db.items", "db.orders"]
    assert content(catalog, "db.orders")["id"] == ids["db.items"]
    assert content(catalog, "db.items")["id"] == ids["db.orders"]


def test_a_new_table_under_the_old_name_of_a_renamed_one(catalog):
    before = content(catalog, "db.orders")["id"]
    catalog.ok("content", "rename", "db.orders", "db.archive")
    catalog.table("db.orders", 3, "-m", "archive and start afresh")

    assert content(catalog, "db.archive")["id"] == before
    assert content(catalog, "db.orders")["id"] != before


def test_a_renamed_namespace_names_its_new_key(catalog):
    catalog.ok(
        "content",
        "put",
        "empty",
        "--type",
        "namespace",
        "--property",
        "owner=ada",
        "-m",
        "empty one",
    )
    catalog.ok("content", "rename", "empty", "bare", "-m", "rename it")

    found = content(catalog, "bare")
    assert (found["elements"], found["properties"]) == (["bare"], {"owner": "ada"})


def test_unmodified_is_checked_and_not_stored(catalog):
    catalog.ok("content", "unmodified", "db.orders")
    catalog.table("db.other", 1)
    catalog.ok("commit", "-m", "beside it")

    logged = catalog.ok("show", "--json").json
    assert "db.other" in json.dumps(logged) or "other" in json.dumps(logged)
    assert "UNCHANGED" not in json.dumps(logged)


@pytest.fixture(scope="module")
def half_staged(tmp_path_factory, made_once, forker):
    """One catalog for all refusals, with something staged: none of them may change it."""
    nessie = fresh(tmp_path_factory.mktemp("refusals"), forker)
    shutil.copytree(made_once.folder, nessie.folder, dirs_exist_ok=True)
    nessie.table("db.kept", 1)
    return nessie


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("put", "db.orders", "--snapshot-id", "2", "--new"), 5, "already exists"),
        (("put", "db.none", "--type", "udf", "--existing"), 4, "no content with key 'db.none'"),
        (("put", "db.none"), 2, "--type"),
        (("put", "db.none", "--type", "icebergtable"), 2, "did you mean 'iceberg-table'"),
        (("put", "db.none", "--type", "iceberg-table"), 2, "--metadata-location: is missing"),
        (("put", "db.none", "--type", "udf", "--snapshot-id", "3"), 2, "--snapshot-id"),
        (
            ("put", "db.none", "--type", "namespace", "--property", "novalue"),
            2,
            "--property novalue",
        ),
        (
            (
                "put",
                "db.none",
                "--type",
                "iceberg-view",
                "--metadata-location",
                "x",
                "--version-id",
                "one",
            ),
            2,
            "--version-id one",
        ),
        (("put", "db.none", "--type", "udf", "--id", UUID), 2, "--id"),
        (("put", "db.orders", "--type", "udf"), 2, "of type iceberg-table, not udf"),
        (("put", "db..orders", "--type", "udf"), 2, "element is empty"),
        (
            (
                "put",
                "db.x",
                "--type",
                "iceberg-table",
                "--metadata-location",
                "a",
                "--metadata-location",
                "b",
            ),
            2,
            "delta-table",
        ),
        (
            (
                "put",
                "db.x",
                "--type",
                "iceberg-table",
                "--metadata-location",
                "a",
                "--schema-id",
                "3000000000",
            ),
            2,
            "32 bits",
        ),
        (("put", "db.x", "--content", "missing.json"), 2, "missing.json"),
        (
            ("put", "db.x", "--content", "-", "--type", "udf"),
            2,
            "--content gives the whole content",
        ),
        (("put", "db.x", "--from-metadata", "missing.json"), 2, "missing.json"),
        (("delete", "db.none"), 4, "db.none"),
        (("delete", "db.orders", "db.none"), 4, "db.none"),
        (("rename", "db.none", "db.x"), 4, "db.none"),
        (("rename", "db.orders", "db"), 5, "'db' already exists"),
        (("unmodified", "db.none"), 4, "db.none"),
        (("put", "db.orders", "--new", "--existing"), 2, "cannot be used together"),
        (("put", "db.x", "--type", "udf", "-m", " "), 2, "message is empty"),
        (("put", "db.x", "--type", "udf", "--expected-hash", "dead0000"), 4, "dead0000"),
    ],
)
def test_an_invalid_operation_is_refused_in_one_line_and_the_batch_stays(
    half_staged, args, code, words
):
    batch = half_staged.folder / ".nessie" / "batch.json"
    before = batch.read_bytes()

    outcome = half_staged("content", *args, "--json")

    assert outcome.code == code, outcome
    assert words in outcome.err.splitlines()[0]
    assert text_for_people(outcome.error["message"]) in outcome.err
    assert batch.read_bytes() == before


def test_content_comes_from_rest_json_of_a_file_or_stdin(catalog):
    document = '{"type": "UDF", "sqlText": "select 1", "dialect": "spark"}'
    (catalog.folder / "udf.json").write_text(document)

    catalog.ok("content", "put", "db.f", "--content", "udf.json")
    catalog.ok("content", "put", "db.g", "--content", "-", stdin=document)
    catalog.ok("commit", "-m", "functions")

    f, g = content(catalog, "db.f"), content(catalog, "db.g")
    assert f["sqlText"] == g["sqlText"] == "select 1"
    assert f["id"] != g["id"]


def test_a_content_of_an_unknown_type_is_kept_whole(catalog):
    document = {"type": "HUDI_TABLE", "base": "s3://h", "parts": [1, {"a": None}]}

    catalog.ok(
        "content", "put", "db.h", "--content", "-", "-m", "foreign", stdin=json.dumps(document)
    )

    found = content(catalog, "db.h")
    assert {name: found[name] for name in document} == document
    assert "hudi-table" in catalog.ok("content", "show", "db.h").out.lower().replace("_", "-")


def test_invalid_content_json_names_file_and_fault(catalog):
    outcome = catalog(
        "content",
        "put",
        "db.h",
        "--content",
        "-",
        stdin='{"type": "ICEBERG_TABLE", "metadataLocation": 3}',
    )

    assert outcome.code == 2
    assert outcome.err.startswith("nessie: stdin: ")


def test_every_type_keeps_all_its_fields(catalog):
    wanted = {
        "db.table": {
            "type": "ICEBERG_TABLE",
            "metadataLocation": "s3://t",
            "snapshotId": -(2**63),
            "schemaId": 1,
            "specId": 2,
            "sortOrderId": 2**31 - 1,
        },
        "db.view": {
            "type": "ICEBERG_VIEW",
            "metadataLocation": "s3://v",
            "versionId": 4,
            "schemaId": 5,
            "sqlText": "select 1",
            "dialect": "ansi",
        },
        "db.delta": {
            "type": "DELTA_LAKE_TABLE",
            "metadataLocationHistory": ["m1", "m2"],
            "checkpointLocationHistory": ["c1"],
            "lastCheckpoint": "c1",
        },
        "db.udf": {
            "type": "UDF",
            "sqlText": "s",
            "dialect": "d",
            "versionId": "v",
            "signatureId": "g",
            "metadataLocation": "m",
        },
        "db.ns": {
            "type": "NAMESPACE",
            "elements": ["db", "ns"],
            "properties": {"a": "b=c", "e": ""},
        },
    }
    options = {
        "db.table": "--type iceberg-table --metadata-location s3://t --snapshot-id -9223372036854775808 --schema-id 1 --spec-id 2 "
        "--sort-order-id 2147483647",
        "db.view": (
            "--type ICEBERG_VIEW --metadata-location s3://v --version-id 4 --schema-id 5"
            " --sql-text select§1 --dialect ansi"
        ),
        "db.delta": (
            "--type delta-table --metadata-location m1 --metadata-location m2"
            " --checkpoint-location c1 --last-checkpoint c1"
        ),
        "db.udf": (
            "--type udf --sql-text s --dialect d --version-id v --signature-id g"
            " --metadata-location m"
        ),
        "db.ns": "--type namespace --property a=b=c --property e=",
    }
    for key, words in options.items():
        catalog.ok("content", "put", key, *(word.replace("§", " ") for word in words.split()))
    catalog.ok("commit", "-m", "all types")

    found = {key: content(catalog, key) for key in wanted}
    assert {
        key: {name: value for name, value in document.items() if name != "id"}
        for key, document in found.items()
    } == wanted


def test_from_metadata_reads_an_iceberg_file(catalog):
    metadata = {
        "format-version": 2,
        "table-uuid": UUID,
        "location": "s3://lake/t",
        "last-sequence-number": 1,
        "last-updated-ms": 1,
        "last-column-id": 1,
        "schemas": [
            {
                "type": "struct",
                "schema-id": 3,
                "fields": [{"id": 1, "name": "x", "required": False, "type": "long"}],
            }
        ],
        "current-schema-id": 3,
        "partition-specs": [{"spec-id": 4, "fields": []}],
        "default-spec-id": 4,
        "last-partition-id": 999,
        "sort-orders": [
            {
                "order-id": 5,
                "fields": [
                    {
                        "transform": "identity",
                        "source-id": 1,
                        "direction": "asc",
                        "null-order": "nulls-first",
                    }
                ],
            }
        ],
        "default-sort-order-id": 5,
        "current-snapshot-id": 42,
        "snapshots": [
            {
                "snapshot-id": 42,
                "timestamp-ms": 1,
                "sequence-number": 1,
                "summary": {"operation": "append"},
                "manifest-list": "x",
            }
        ],
    }
    path = catalog.folder / "00001.metadata.json"
    path.write_text(json.dumps(metadata))

    catalog.ok("content", "put", "db.t", "--from-metadata", str(path), "-m", "registered")

    found = content(catalog, "db.t")
    assert (
        found["metadataLocation"],
        found["snapshotId"],
        found["schemaId"],
        found["specId"],
        found["sortOrderId"],
    ) == (str(path), 42, 3, 4, 5)


def test_reset_unstages_single_keys_or_everything(catalog):
    for key in ("db.a", "db.b", "db.c"):
        catalog.table(key, 1)
    catalog.ok("reset", "db.b")
    assert catalog.staged() == [("PUT", "db.a"), ("PUT", "db.c")]

    outcome = catalog("reset", "db.d")
    assert outcome.code == 4
    assert "nothing is staged for key 'db.d'" in outcome.err

    catalog.ok("reset")
    assert catalog.staged() == []
    assert catalog.ok("reset", "--json").json["operations"] == []


def test_reset_of_one_key_of_a_rename_unstages_both(catalog):
    catalog.ok("content", "rename", "db.orders", "db.sold")
    catalog.ok("reset", "db.sold")

    assert catalog.staged() == []


def test_listing_by_prefix_type_and_revision(catalog):
    catalog.ok("content", "put", "dbx", "--type", "namespace")
    catalog.table("db.orders", 2)
    catalog.ok("commit", "-m", "later")

    assert keys(catalog, "db") == ["db", "db.orders"]
    assert keys(catalog, "--type", "namespace") == ["db", "dbx"]
    assert keys(catalog, "--at", "HEAD~1") == ["db", "db.orders"]
    assert keys(catalog, "--at", "~1") == ["db", "db.orders"]
    lines = [json.loads(line) for line in catalog.ok("content", "list", "--jsonl").out.splitlines()]
    assert [line["content"]["type"] for line in lines] == [
        "NAMESPACE",
        "ICEBERG_TABLE",
        "NAMESPACE",
    ]


def test_a_tree_shows_every_level_once(catalog):
    catalog.ok("content", "put", 'db."a.b"', "--type", "namespace")
    catalog.ok("content", "put", 'db."a.b".f', "--type", "udf")
    catalog.ok("commit", "-m", "deeper")

    assert (
        catalog.ok("content", "list", "--tree").out
        == 'db  namespace\n  "a.b"  namespace\n    f  udf\n  orders  iceberg-table\n'
    )
    assert catalog.ok("content", "list", 'db."a.b".f', "--tree").out == 'db\n  "a.b"\n    f  udf\n'


def test_an_unknown_type_in_a_batch_file_is_kept(catalog):
    operation = {
        "type": "PUT",
        "key": {"elements": ["db", "h"]},
        "content": {"type": "HUDI", "a": [1]},
    }
    catalog.ok("commit", "--batch", "-", "-m", "foreign", stdin=json.dumps([operation]))

    assert content(catalog, "db.h")["a"] == [1]


def test_listed_keys_are_valid_input(catalog):
    odd = 'db."order.lines"."a ""quoted"" one"'
    catalog.ok("content", "put", 'db."order.lines"', "--type", "namespace")
    catalog.table(odd, 1)
    catalog.ok("commit", "-m", "odd names")

    listed = [re.split(" {2,}", line)[0] for line in catalog.ok("content", "list").out.splitlines()]
    assert odd in listed
    for key in listed:
        catalog.ok("content", "show", key)


def test_show_prints_fields_ids_and_the_last_change(catalog):
    catalog.table("db.other", 1, "-m", "something else")
    document = catalog.ok("content", "view", "db.orders", "--json").json

    assert document["lastChange"]["message"] == "first tables"
    assert document["cacheKey"] == f"{document['content']['id']}:{document['valueHash']}"
    out = catalog.ok("content", "show", "db.orders").out
    for text in (
        "iceberg-table",
        document["content"]["id"],
        document["cacheKey"],
        '"first tables"',
    ):
        assert text in out


def test_without_a_workspace_one_step_commits_directly(nessie):
    nessie.ok("init", "elsewhere")
    store = str(nessie.folder / "elsewhere" / ".nessie" / "store.sqlite")

    nessie.ok("--store", store, "content", "put", "db", "--type", "namespace", "-m", "direct")
    staged = nessie("--store", store, "content", "put", "db.x", "--type", "udf")

    assert staged.code == 4
    assert "-m" in staged.err
    assert keys(nessie, "--store", store) == ["db"]


def test_a_tag_takes_no_commits(catalog):
    catalog.ok("tag", "v1")
    catalog.ok("switch", "v1")

    outcome = catalog("content", "delete", "db.orders")

    assert outcome.code == 2
    assert "v1 is a tag" in outcome.err


def test_several_processes_in_one_workspace_each_make_their_own_commit(catalog):
    def start(number):
        args = (
            "content",
            "put",
            f"db.t{number}",
            "--type",
            "udf",
            "--sql-text",
            "x",
            "-m",
            f"commit {number}",
        )
        return subprocess.Popen(
            catalog.command(*args),
            cwd=catalog.folder,
            env=catalog.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    processes = [start(number) for number in range(4)]
    outcomes = [(process.communicate(), process.returncode) for process in processes]

    assert [code for _, code in outcomes] == [0, 0, 0, 0], outcomes
    assert sorted(catalog.messages()) == [
        *(f"commit {number}" for number in range(4)),
        "first tables",
    ]
    assert len(keys(catalog)) == 6
