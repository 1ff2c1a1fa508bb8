"""The order of the pages of branches and tags."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

from nessie_cli.model import Reference, ReferenceType
from nessie_cli.server.pages.references import newest_first
from tests.server.longest_call import ATTEMPTS, MOST_SECONDS, LongestCall

REFERENCES = 100_000
START = datetime(2026, 1, 1, tzinfo=UTC)


def references(count: int) -> list[tuple[Reference, datetime | None]]:
    random = Random(1)
    return [
        (
            Reference(ReferenceType.BRANCH, f"b{number:06}", "00" * 32),
            START + timedelta(minutes=random.randrange(count)) if number % 7 else None,
        )
        for number in range(count)
    ]


def test_the_default_branch_comes_first_then_the_newest_then_names() -> None:
    timed = references(REFERENCES // 4)
    default, rest = timed[70], timed[:70] + timed[71:]
    rest.sort(key=lambda pair: pair[1] or datetime.min.replace(tzinfo=UTC), reverse=True)

    assert newest_first(timed, default[0].name) == [default, *rest]


def test_many_references_are_sorted_by_short_calls() -> None:
    timed = references(REFERENCES)

    def longest() -> float:
        with LongestCall() as call:
            newest_first(timed, "main")
        return call.seconds

    assert min(longest() for _ in range(ATTEMPTS)) < MOST_SECONDS
