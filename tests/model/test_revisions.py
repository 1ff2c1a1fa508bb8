"""Revisions: every form is parsed and printed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nessie_cli import revisions
from nessie_cli.errors import InvalidInput
from nessie_cli.model import MAX_NAME_LENGTH, MAX_REVISION_LENGTH, MAX_STEPS
from nessie_cli.revisions import (
    Revision,
    RevisionRange,
    RevisionStep,
    StepKind,
    format_time,
    parse,
    parse_range,
    parse_time,
)

HASH = "2e1cfa82b035c26cbbbdae632cea070514eb8b773f616aaeaf668e2f0be8f10d"
NOW = datetime(2026, 3, 1, 12, 30, 15, 250_000, UTC)

NAMES = st.from_regex(r"[A-Za-z]([A-Za-z0-9._/-]{0,10}[A-Za-z0-9_-])?", fullmatch=True).filter(
    lambda n: ".." not in n
) | st.just("-")
HASHES = st.from_regex(r"[0-9a-f]{4,64}", fullmatch=True)
COUNTS = st.integers(1, 2**31 - 1)
TIMES = st.datetimes(datetime(1970, 1, 1), datetime(9000, 1, 1), timezones=st.just(UTC))
STEPS = st.builds(
    RevisionStep, st.sampled_from([StepKind.ANCESTOR, StepKind.PARENT]), COUNTS
) | TIMES.map(lambda t: RevisionStep(StepKind.TIME, time=t))
SPECS = st.builds(
    Revision, NAMES, st.none() | HASHES, st.lists(STEPS, max_size=4).map(tuple)
) | st.builds(Revision, st.none(), HASHES, st.lists(STEPS, max_size=4).map(tuple))


@given(SPECS)
@example(Revision("beef"))
@example(
    Revision("a/b", HASH, (RevisionStep(StepKind.ANCESTOR, 2), RevisionStep(StepKind.PARENT, 1)))
)
def test_the_text_form_is_parsed_to_the_same_value(spec: Revision) -> None:
    assert parse(str(spec)) == spec


@given(st.text(max_size=20) | st.text(st.sampled_from("main@~^*.0123abcTZ:- "), max_size=20))
def test_any_text_is_a_revision_or_invalid_input(text: str) -> None:
    at_now = partial(parse, now=NOW)
    for read in (at_now, partial(parse_range, parse_end=at_now)):
        message = "read"
        try:
            read(text)
        except InvalidInput as fault:
            message = fault.message
        assert message
        assert "\n" not in message


ANCESTOR, PARENT = StepKind.ANCESTOR, StepKind.PARENT


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("main", Revision("main")),
        ("-", Revision("-")),
        ("-~1", Revision("-", None, (RevisionStep(ANCESTOR, 1),))),
        (f"-@{HASH}", Revision("-", HASH)),
        (f"main@{HASH}", Revision("main", HASH)),
        (f"main@{HASH.upper()}", Revision("main", HASH)),
        ("main@2e1c", Revision("main", "2e1c")),
        ("main@", Revision("main")),
        ("a/b@", Revision("a/b")),
        (f"@{HASH}", Revision(None, HASH)),
        (f"@{HASH}^2", Revision(None, HASH, (RevisionStep(PARENT, 2),))),
        (HASH, Revision(HASH)),
        ("2e1c", Revision("2e1c")),
        ("2e1cfa82~3", Revision("2e1cfa82", None, (RevisionStep(ANCESTOR, 3),))),
        ("HEAD^", Revision("HEAD", None, (RevisionStep(PARENT, 1),))),
        ("main~", Revision("main", None, (RevisionStep(ANCESTOR, 1),))),
        ("main~~", Revision("main", None, (RevisionStep(ANCESTOR, 1), RevisionStep(ANCESTOR, 1)))),
        (
            "main~2^1~3",
            Revision(
                "main",
                None,
                (RevisionStep(ANCESTOR, 2), RevisionStep(PARENT, 1), RevisionStep(ANCESTOR, 3)),
            ),
        ),
        ("main~2147483647", Revision("main", None, (RevisionStep(ANCESTOR, 2147483647),))),
        ("feature/x.y-z_1", Revision("feature/x.y-z_1")),
    ],
)
def test_every_form_is_parsed(text: str, spec: Revision) -> None:
    assert parse(text) == spec


@pytest.mark.parametrize(
    "text",
    [
        "",
        "@",
        "~1",
        "^1",
        "*2026-01-01T00:00:00Z",
        "@~1",
        "main@xyz1",
        "main@abc",
        f"main@{HASH}0",
        f"main@{HASH}@{HASH}",
        "main~0",
        "main^0",
        "main~2147483648",
        "main^99999999999",
        "main~" + "1" * 5000,
        "main~-1",
        "main~x",
        "main~1x",
        "main*",
        "main*~1",
        "main*next tuesday",
        "main~2026-01-01T00:00:00Z",
        "ma..in",
        "main.",
        "main/",
        "9lives",
        " main",
        "main ",
        "ma in",
        "ünï",
        "main\n",
        "main@2e1c\n",
    ],
)
def test_malformed_revisions_are_refused_in_one_line(text: str) -> None:
    with pytest.raises(InvalidInput) as fault:
        parse(text)
    assert "\n" not in fault.value.message


@pytest.mark.parametrize(
    "text",
    [
        "a" * (MAX_NAME_LENGTH + 1),
        "a" * (MAX_REVISION_LENGTH + 1),
        "main" + "~1" * 1_000_000,
        "main*" + "1" * MAX_REVISION_LENGTH,
        f"main@{HASH}" + "^1" * (MAX_STEPS + 1),
    ],
)
@pytest.mark.parametrize("read", [parse, parse_range])
def test_a_revision_that_is_too_large_is_refused_in_a_short_message(text: str, read: Any) -> None:
    with pytest.raises(InvalidInput, match="max allowed") as fault:
        read(text)
    assert len(fault.value.message) < 200


def test_a_revision_of_the_largest_size_is_parsed() -> None:
    name = "a" * MAX_NAME_LENGTH
    assert parse(name).name == name
    assert len(parse(f"{name}@{HASH}" + "~1" * MAX_STEPS).steps) == MAX_STEPS


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("2026-01-31T12:00:00Z", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31T12:00:00.123456Z", datetime(2026, 1, 31, 12, 0, 0, 123_456, UTC)),
        ("2026-01-31T12:00:00.123456789Z", datetime(2026, 1, 31, 12, 0, 0, 123_456, UTC)),
        ("2026-01-31T12:00:00.5Z", datetime(2026, 1, 31, 12, 0, 0, 500_000, UTC)),
        ("2026-01-31T12:00:00+02:00", datetime(2026, 1, 31, 10, tzinfo=UTC)),
        ("2026-01-31T12:00:00", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31", datetime(2026, 1, 31, tzinfo=UTC)),
        ("20260131", datetime(2026, 1, 31, tzinfo=UTC)),
        ("1769860800000", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("1769860800001", datetime(2026, 1, 31, 12, 0, 0, 1000, UTC)),
        ("now", NOW),
        ("today", datetime(2026, 3, 1, tzinfo=UTC)),
        ("yesterday", NOW - timedelta(days=1)),
        ("2 hours ago", NOW - timedelta(hours=2)),
        ("1 hour ago", NOW - timedelta(hours=1)),
        ("90 seconds ago", NOW - timedelta(seconds=90)),
        ("5 minutes ago", NOW - timedelta(minutes=5)),
        ("3 days ago", NOW - timedelta(days=3)),
        ("2 weeks ago", NOW - timedelta(weeks=2)),
        ("2.days.ago", NOW - timedelta(days=2)),
        ("2.weeks", NOW - timedelta(weeks=2)),
        ("1 hour", NOW - timedelta(hours=1)),
    ],
)
def test_times_are_parsed(text: str, when: datetime) -> None:
    assert parse_time(text, NOW) == when
    assert parse(f"main*{text}", NOW).steps == (RevisionStep(StepKind.TIME, time=when),)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tomorrow",
        "ago",
        "two hours ago",
        "2 moons",
        "-2 hours ago",
        "2026-13-01",
        "2026-01-31T25:00:00Z",
        "1" * 40,
        "9" * 5000,
        "99999999999 years ago",
        "1.5",
    ],
)
def test_malformed_times_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="time"):
        parse_time(text, NOW)


@given(TIMES)
def test_a_time_survives_its_text_form(when: datetime) -> None:
    assert parse_time(format_time(when)) == when


def test_times_are_written_in_utc() -> None:
    east = timezone(timedelta(hours=5, minutes=30))
    assert format_time(datetime(2026, 1, 31, 12, tzinfo=east)) == "2026-01-31T06:30:00.000000Z", (
        "the original wants a fraction"
    )
    assert (
        format_time(datetime(2026, 1, 31, 12, 0, 0, 120_000, UTC)) == "2026-01-31T12:00:00.120000Z"
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("main..dev", RevisionRange(Revision("main"), Revision("dev"))),
        ("main...dev", RevisionRange(Revision("main"), Revision("dev"), symmetric=True)),
        ("..dev", RevisionRange(Revision("HEAD"), Revision("dev"))),
        ("main..", RevisionRange(Revision("main"), Revision("HEAD"))),
        ("...dev", RevisionRange(Revision("HEAD"), Revision("dev"), symmetric=True)),
        ("main", Revision("main")),
        ("v1.0..v1.1", RevisionRange(Revision("v1.0"), Revision("v1.1"))),
        (
            f"main@{HASH}~2..dev^2",
            RevisionRange(
                Revision("main", HASH, (RevisionStep(ANCESTOR, 2),)),
                Revision("dev", None, (RevisionStep(PARENT, 2),)),
            ),
        ),
    ],
)
def test_ranges_are_parsed(text: str, value: RevisionRange | Revision) -> None:
    assert parse_range(text) == value


@pytest.mark.parametrize("text", ["a..b..c", "a....b", "a...b..c", "~1..b", "a..~0", "a..b.."])
def test_malformed_ranges_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_range(text)


def test_head_is_only_known_to_the_command_line() -> None:
    assert revisions.HEAD == "HEAD"
