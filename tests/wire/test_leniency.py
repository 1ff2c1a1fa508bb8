import pytest

from nessie_cli.errors import InvalidInput
from nessie_cli.wire.decode import (
    decode_commit_meta,
    decode_content_value,
    decode_key,
    decode_merge,
)
from nessie_cli.wire.validation import lenient

TABLE = {
    "type": "ICEBERG_TABLE",
    "metadataLocation": "file:/x",
    "snapshotId": 1,
    "schemaId": 2,
    "specId": 3,
    "sortOrderId": 4,
}


@pytest.mark.parametrize(
    ("given", "read"), [("17", 17), (" -3 ", -3), (1.9, 1), (-1.9, -1), (None, 0), ("", 0)]
)
def test_an_integer_is_read_from_other_scalars(given, read):
    data = TABLE | {"snapshotId": given}
    with lenient():
        assert decode_content_value(data).snapshot_id == read
    assert data["snapshotId"] == given


@pytest.mark.parametrize("given", [True, "x", "1.5", [], {}, float("inf"), 2**63, "9" * 40])
def test_other_values_are_not_converted_to_integers(given):
    with lenient(), pytest.raises(InvalidInput, match="snapshotId"):
        decode_content_value(TABLE | {"snapshotId": given})


@pytest.mark.parametrize(("given", "read"), [(12, "12"), (1.5, "1.5"), (True, "true")])
def test_a_text_is_read_from_other_scalars(given, read):
    with lenient():
        assert decode_content_value(TABLE | {"metadataLocation": given}).metadata_location == read
        assert decode_key({"elements": ["a", given]}).elements == ("a", read)
        assert decode_commit_meta({"message": given}).message == read


def test_null_is_not_a_text():
    with lenient(), pytest.raises(InvalidInput):
        decode_key({"elements": [None]})


@pytest.mark.parametrize(
    ("given", "read"), [("true", True), ("False", False), (1, True), (0, False)]
)
def test_a_truth_value_is_read_from_other_scalars(given, read):
    with lenient():
        assert decode_merge({"fromRefName": "dev", "isDryRun": given}).dry_run is read


def test_a_behavior_may_be_a_number():
    with lenient():
        assert (
            decode_merge({"fromRefName": "dev", "defaultKeyMergeMode": 1}).default_behavior
            == "FORCE"
        )
        with pytest.raises(InvalidInput):
            decode_merge({"fromRefName": "dev", "defaultKeyMergeMode": 3})


def test_decoding_is_strict_by_default():
    with lenient():
        pass
    for data in (
        TABLE | {"snapshotId": "17"},
        TABLE | {"specId": None},
        TABLE | {"metadataLocation": 12},
    ):
        with pytest.raises(InvalidInput):
            decode_content_value(data)
