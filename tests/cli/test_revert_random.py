"""Random conflicts of reverts and random restorations, by the command line."""

import random
import re
import shlex

import pytest

from tests.repository.test_inverse import random_history, state_of, values

from .conftest import key


def by_id(state) -> dict[str, str]:
    return {content.id: str(name) for name, content in state.items()}


@pytest.mark.parametrize("seed", range(30))
def test_every_printed_resolution_of_a_random_revert_does_what_it_says(
    nessie, catalog, seed
) -> None:
    rng, repository = random.Random(seed), catalog.repository
    for hash_ in random_history(rng, repository, 12):
        head, before = repository.reference("main").hash, state_of(repository)
        ran = nessie("revert", hash_, "--json")
        if ran.code == 0:
            changed = {item.key for item in repository.diff(head, "main")}
            listed = {tuple(item["key"]["elements"]) for item in ran.json["operations"]}
            assert listed == {name.elements for name in changed}
            reset(repository, head)
            dry = nessie("revert", hash_, "--json", "--dry-run")
            assert dry.json["operations"] == ran.json["operations"]
        elif ran.code == 3:
            for conflict in ran.error["errorDetails"]["conflicts"]:
                for line, effect in zip(conflict["resolutions"], conflict["effects"], strict=True):
                    check(nessie, repository, line, effect, conflict)
                    reset(repository, head)
        elif not names_second_entry(ran, before, state_of(repository, f"{hash_}~1")):
            assert "there is nothing to revert" in str(ran.error), ran
        assert state_of(repository) == before


def reverted(line: str) -> str:
    return shlex.split(line)[2]


def reset(repository, head: str) -> None:
    repository.assign_reference("main", head, expected_hash=repository.reference("main").hash)


def names_second_entry(ran, now, earlier) -> bool:
    """Returns whether a refusal names a present table with the file of one that would come back."""
    match = re.search(r"(\S+): (\S+) has the same metadata file", ran.err)
    if match is None:
        return False
    came_back, present = (key(name) for name in match.groups())
    assert earlier[came_back].metadata_location == now[present].metadata_location, ran
    assert earlier[came_back].id not in by_id(now), ran
    return True


def check(nessie, repository, line: str, effect: str, conflict) -> None:
    """Runs a line. It decides its conflict, and no content disappears that it does not name."""
    now = state_of(repository)
    before = by_id(now)
    ran = nessie(*shlex.split(line)[1:], "--json")
    if ran.code == 3:
        left = ran.error["errorDetails"]["conflicts"]
        assert conflict["contentId"] not in [c.get("contentId") for c in left], line
        return
    if ran.code == 2 and names_second_entry(ran, now, state_of(repository, f"{reverted(line)}~1")):
        return
    assert ran.code == 0 or "nothing is left" in str(ran.error), (line, ran)
    after = by_id(state_of(repository))
    about = conflict.get("contentId")
    if "--ours" in line and about in before:
        assert after.get(about) == before[about], line
    if "--theirs" in line and about in before:
        theirs = conflict["theirsKey"]
        assert after.get(about) == (theirs and ".".join(theirs["elements"])), line
    name = ".".join(conflict["key"]["elements"])
    if "--theirs" in line and name in [n for i, n in before.items() if i not in after]:
        assert f"deletes {name}" in effect or f"deletes the present {name}" in effect, (
            line,
            effect,
        )


@pytest.mark.parametrize("seed", range(100, 130))
def test_random_keys_are_restored_or_nothing_is(nessie, catalog, seed) -> None:
    rng, repository = random.Random(seed), catalog.repository
    random_history(rng, repository, 12)
    history = [entry.hash for entry in repository.log("main")]
    for _ in range(6):
        at, head = rng.choice(history), repository.reference("main").hash
        then, now = state_of(repository, at), state_of(repository)
        names = rng.sample(sorted(then | now), min(len(then | now), rng.randrange(1, 4)))
        words = [str(name) for name in names]
        ran = nessie("restore", *words, "--at", at, "-m", "back")
        after = state_of(repository)
        if ran.code != 0:
            assert after == now
            assert names_second_entry(ran, now, then) or any(
                text in ran.err
                for text in ("has another content now", "nothing to commit", "namespace")
            ), ran
            nessie("reset")
            continue
        for name in names:
            if name in then:
                assert values(after)[name] == values(then)[name], (words, at)
            elif name in after:
                assert after[name].id in by_id(then) or name in now
        kept = {c.id for n, c in now.items() if n not in names}
        assert kept <= by_id(after).keys(), "a content whose key is not named is never lost"
        reset(repository, head)
        assert key("db") in state_of(repository)
