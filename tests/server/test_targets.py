import pytest

from nessie_cli import connect
from nessie_cli.errors import CommitNotFound, InvalidInput, ReferenceNotFound
from nessie_cli.model import (
    MAX_STEPS,
    NO_ANCESTOR,
    CommitMeta,
    ContentKey,
    IcebergTable,
    Put,
    ReferenceType,
)
from nessie_cli.server.pipeline.targets import Target, commit, parse_segment, parse_spec, read_at

HASH = "ab" * 32


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("main", Target("main")),
        ("main@", Target("main")),
        ("-", Target("trunk")),
        ("-~1", Target("trunk", None, "~1")),
        (f"-@{HASH}", Target("trunk", HASH)),
        (f"a/b@{HASH}~1^2*5", Target("a/b", HASH, "~1^2*5")),
        (f"@{HASH}", Target(None, HASH)),
        ("~3", Target(None, None, "~3")),
        (
            "main*2026-01-31T12:00:00.123456789Z",
            Target("main", None, "*2026-01-31T12:00:00.123456789Z"),
        ),
    ],
)
def test_a_segment_has_a_name_a_hash_and_relative_parts(text, target):
    assert parse_segment(text, "trunk") == target


@pytest.mark.parametrize(
    "text",
    [
        "",
        "@",
        "12345678",
        "a..b",
        "main@xyz",
        "main@1234567",
        "main~",
        "main^x",
        "main*yesterday",
        "a@b@c",
        "main~1x",
        "HEAD~",
    ],
)
def test_a_malformed_segment_is_refused(text):
    with pytest.raises(InvalidInput):
        parse_segment(text, "trunk")


@pytest.fixture
def repository():
    with connect("memory:") as found:
        for number in range(3):
            table = IcebergTable(metadata_location=f"file:/{number}", snapshot_id=number)
            found.commit(
                "main", [Put(ContentKey((f"t{number}",)), table)], CommitMeta(f"c{number}")
            )
        yield found


def test_abbreviated_hashes_are_refused(repository):
    head = repository.reference("main").hash
    with pytest.raises(CommitNotFound, match=head[:8]):
        commit(repository, Target(None, head[:8]), "Expected hash")
    with pytest.raises(InvalidInput, match="multiple of two"):
        commit(repository, Target(None, head[:9]), "Expected hash")


def test_a_name_may_look_like_an_abbreviated_hash(repository):
    head = repository.reference("main").hash
    with pytest.raises(ReferenceNotFound):
        read_at(repository, Target("a" + head[1:8]), "Expected hash")


def test_all_relative_parts_are_applied(repository):
    log = [entry.hash for entry in repository.log("main")]
    assert read_at(repository, Target("main", None, "~1^1"), "x").hash == log[2]
    assert read_at(repository, Target("main", log[0], "~2^1"), "x").hash == NO_ANCESTOR


def test_a_time_selects_the_newest_commit_that_is_not_younger(repository):
    entries = list(repository.log("main"))
    middle = entries[1].meta.commit_time
    millis = int(middle.timestamp() * 1000) + 1
    at = read_at(repository, Target("main", None, f"*{millis}"), "x")
    assert at.hash in (entries[0].hash, entries[1].hash)
    assert read_at(repository, Target("main", None, "*0"), "x").hash == NO_ANCESTOR
    assert (
        read_at(repository, Target("main", None, "*99999999999999999"), "x").hash == entries[0].hash
    )
    with pytest.raises(InvalidInput):
        read_at(repository, Target("main", None, "*99999999999999999999"), "x")


@pytest.mark.parametrize(
    "steps", ["~0", "^0", "~2147483648", "~" + "9" * 5000, "~2026-01-01T00:00:00Z"]
)
def test_an_impossible_relative_part_is_refused(repository, steps):
    with pytest.raises(InvalidInput):
        read_at(repository, Target("main", None, steps), "x")


def test_a_detached_read_requires_a_commit(repository):
    with pytest.raises(InvalidInput, match=r"Expected hash must be provided\."):
        read_at(repository, Target("DETACHED"), "Expected hash")
    with pytest.raises(InvalidInput, match=r"must contain a starting commit ID\."):
        read_at(repository, Target(None, None, "~1"), "Expected hash")
    head = repository.reference("main").hash
    assert read_at(repository, Target(None, head), "x").type is ReferenceType.DETACHED


def test_an_empty_hash_is_refused():
    for text in ("", "xyz", "1234567", "@12345678"):
        with pytest.raises(InvalidInput):
            parse_spec(text, "hash")


@pytest.mark.parametrize("steps", ["~1" * (MAX_STEPS + 1), "~1" * 1_000_000, "~" + "1" * 5000])
def test_a_target_that_is_too_large_is_refused(steps):
    for parse, text in ((parse_spec, HASH + steps), (parse_segment, f"main@{HASH}{steps}")):
        with pytest.raises(InvalidInput, match="max allowed") as fault:
            parse(text, "trunk")
        assert len(fault.value.message) < 200


def test_a_target_of_the_largest_size_is_parsed():
    steps = "~1" * MAX_STEPS
    assert parse_spec(HASH + steps, "hash").steps == steps
    assert parse_segment(f"{'a' * 1024}@{HASH}{steps}", "trunk").steps == steps
