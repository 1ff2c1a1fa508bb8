"""Retention policies: their syntax, and the policy of a reference."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from nessie_cli.errors import InvalidInput
from nessie_cli.gc.policies import Defaults, RetentionPolicy, policies, policy, repository_defaults
from nessie_cli.model import RepositoryConfig
from nessie_cli.model.durations import parse_duration
from nessie_cli.wire.repository_config import GARBAGE_COLLECTOR

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("NONE", RetentionPolicy("NONE")),
        ("none", RetentionPolicy("NONE")),
        ("10", RetentionPolicy("10", commits=10)),
        ("P30D", RetentionPolicy("P30D", since=NOW - timedelta(days=30))),
        ("pt36h", RetentionPolicy("pt36h", since=NOW - timedelta(hours=36))),
        ("P1DT0.5S", RetentionPolicy("P1DT0.5S", since=NOW - timedelta(days=1, seconds=0.5))),
        ("PT0S", RetentionPolicy("PT0S", since=NOW)),
        ("365000d", RetentionPolicy("365000d", since=NOW - timedelta(days=365000))),
        ("30d", RetentionPolicy("30d", since=NOW - timedelta(days=30))),
        ("1w 2d", RetentionPolicy("1w 2d", since=NOW - timedelta(days=9))),
        (
            "2026-01-01T00:00:00Z",
            RetentionPolicy("2026-01-01T00:00:00Z", since=datetime(2026, 1, 1, tzinfo=UTC)),
        ),
        (
            "2026-01-01T02:00:00+02:00",
            RetentionPolicy("2026-01-01T02:00:00+02:00", since=datetime(2026, 1, 1, tzinfo=UTC)),
        ),
        (" 5 ", RetentionPolicy("5", commits=5)),
        ("999w", RetentionPolicy("999w", since=NOW - timedelta(weeks=999))),
    ],
)
def test_a_policy_is_a_number_a_duration_an_instant_or_none(
    text: str, meant: RetentionPolicy
) -> None:
    assert policy(text, NOW) == meant


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "000",
        "-5",
        "-P1D",
        "P",
        "PT",
        "P1Y",
        "1x",
        "10 commits",
        "yesterday",
        "2026-01-01",
        "2026-01-01T00:00:00",
        "9" * 10,
        "99999999d",
    ],
)
def test_an_invalid_policy_is_quoted(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        policy(text, NOW)
    assert f"retention policy {text!r}" in refused.value.message


def test_the_first_pattern_that_matches_the_whole_name_decides() -> None:
    found = policies(
        "NONE", [("main", "10"), ("release/.*", "P30D"), (".*", "5"), ("dev", "1")], NOW
    )
    assert [found.of(name).text for name in ("main", "release/1", "main2", "dev")] == [
        "10",
        "P30D",
        "5",
        "5",
    ]
    assert policies("3", [("main", "10")], NOW).of("maintenance").text == "3"


def test_an_invalid_pattern_is_refused() -> None:
    with pytest.raises(
        InvalidInput, match=r"pattern '\(' of a retention policy is not a regular expression"
    ):
        policies("NONE", [("(", "10")], NOW)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("P3D", timedelta(3)),
        ("3d", timedelta(3)),
        ("1d 12h", timedelta(1.5)),
        ("PT0S", timedelta(0)),
        ("0s", timedelta(0)),
    ],
)
def test_a_duration(text: str, meant: timedelta) -> None:
    assert parse_duration(text) == meant


@pytest.mark.parametrize("text", ["", "3", "-P3D", "three days", "P9999999999D"])
def test_an_invalid_duration_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"^duration"):
        parse_duration(text)


def config(text: str | None) -> RepositoryConfig:
    settings = {} if text is None else {f"repository-config.{GARBAGE_COLLECTOR}": text}
    return RepositoryConfig("main", None, "1", settings)


def test_the_repository_has_defaults() -> None:
    said = (
        '{"type":"GARBAGE_COLLECTOR","defaultCutoffPolicy":"P30D","newFilesGracePeriod":"PT3H",'
        '"perRefCutoffPolicies":[{"referenceNamePattern":"main","policy":"10"}],"expectedFileCountPerContent":5}'
    )
    assert repository_defaults(config(said)) == Defaults("P30D", (("main", "10"),), 3 * 3600)
    assert repository_defaults(config("{}")) == repository_defaults(config(None)) == Defaults()
    for damaged in ("[]", '{"defaultCutoffPolicy":5}', '{"newFilesGracePeriod":"x"}', "{"):
        with pytest.raises(InvalidInput):
            repository_defaults(config(damaged))
