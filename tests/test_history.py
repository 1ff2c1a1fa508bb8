"""The history checker accepts what one order explains, and refuses every other history."""

from __future__ import annotations

import pytest

from tests.history import Event, History, Row

LOG = [Row("", 0), Row("a", 1), Row("b", 2), Row("c", 1)]


def history(*events: tuple[float, float, int, str | None]) -> History:
    found = History()
    for called, answered, state, write in events:
        found.add("r", called, state, write=write)
        found._events["r"][-1] = Event(called, answered, state, write)
    return found


WRITES = ((0, 1, 1, "a"), (2, 3, 2, "b"), (4, 5, 1, "c"))


@pytest.mark.parametrize(
    "reads",
    [
        [(1, 2, 1, None), (3, 4, 2, None), (5, 6, 1, None)],
        # While a write is under way, a read may see the state before or after.
        [(2, 3, 1, None)],
        [(2, 3, 2, None)],
        [(0, 1, 0, None), (0.5, 1, 1, None)],
        # Two reads at once may be in either order.
        [(2, 3, 2, None), (2.1, 2.9, 1, None)],
    ],
)
def test_a_possible_history(reads: list[tuple[float, float, int, str | None]]) -> None:
    assert history(*WRITES, *reads).check("r", LOG) == 3 + len(reads)


@pytest.mark.parametrize(
    ("reads", "reason"),
    [
        ([(3.5, 3.6, 1, None)], "seen the future"),
        ([(1.5, 1.6, 0, None)], "did not see"),
        ([(1.5, 1.6, 7, None)], "never committed"),
        ([(0.1, 0.2, 2, None)], "seen the future"),
        # The second read goes back behind the first.
        ([(2.1, 2.2, 2, None), (2.3, 2.9, 1, None)], "seen the future"),
    ],
)
def test_an_impossible_read(reads: list[tuple[float, float, int, str | None]], reason: str) -> None:
    with pytest.raises(AssertionError, match=reason):
        history(*WRITES, *reads).check("r", LOG)


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        (LOG[:3], "is missing"),
        ([*LOG, Row("d", 4)], "nobody made"),
        ([*LOG, Row("a", 1)], "done twice"),
        ([LOG[0], LOG[2], LOG[1], LOG[3]], "before what was acknowledged"),
        ([LOG[0], Row("a", 9), *LOG[2:]], "another state"),
    ],
)
def test_an_impossible_log(log: list[Row], reason: str) -> None:
    with pytest.raises(AssertionError, match=reason):
        history(*WRITES).check("r", log)


def test_refused_and_unknown_writes() -> None:
    found = history(*WRITES[:2])
    with pytest.raises(AssertionError, match="nobody made"):
        found.check("r", LOG)
    found.unknown.add("c")
    assert found.check("r", LOG) == found.check("r", LOG[:3]) == 2
    found.refused.add("c")
    with pytest.raises(AssertionError, match="refused"):
        found.check("r", LOG)
