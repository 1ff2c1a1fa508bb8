"""Errors and suggestions as a person reads them."""

import pytest

from nessie_cli.cli.errors.suggestions import nearest


@pytest.mark.parametrize(
    ("argv", "lines"),
    [
        (
            ["log", "elsewhere"],
            [
                "nessie: no branch or tag 'elsewhere'",
                "`nessie branch` and `nessie tag` list the references",
            ],
        ),
        (["log", "mian"], ["nessie: no branch or tag 'mian'", "Did you mean 'main'?"]),
        (["branch", "main"], ["nessie: 'main' already exists"]),
        (
            ["content", "show", "x"],
            ["nessie: no key 'x' on 'main'", "`nessie content list` lists the keys"],
        ),
        (["show", "0123456789ab"], ["nessie: no commit '0123456789ab'"]),
    ],
)
def test_a_message_for_people_is_not_that_of_the_api(nessie, catalog, argv, lines) -> None:
    assert nessie(*argv).err.splitlines() == lines


def test_json_has_the_message_of_the_api(nessie, catalog) -> None:
    error = nessie("log", "elsewhere", "--json").error
    assert error["message"] == "Named reference 'elsewhere' not found"


def test_an_unexpected_hash_is_reported_once_with_the_way_out(nessie, catalog) -> None:
    old = catalog.branch("feature")
    head = catalog.update("feature", "db.orders", 2)
    ran = nessie("branch", "-d", "feature", "--yes", "--expected-hash", old)
    assert (ran.code, ran.err.splitlines()) == (
        5,
        [
            f"nessie: 'feature' is not at the expected commit {old}, but at {head}",
            (
                f"`nessie branch -d feature --yes --expected-hash {head[:12]}` repeats it at the"
                " current commit"
            ),
        ],
    )


@pytest.mark.parametrize(
    ("word", "known", "near"),
    [
        ("comit", ["commit", "content"], ["commit"]),
        ("stauts", ["stats", "status", "stash"], ["stats", "status"]),
        ("db.sales.order", ["db.sales.orders", "db.sales.items"], ["db.sales.orders"]),
        ("nightly", ["nightly-2026-05-01", "main"], ["nightly-2026-05-01"]),
        ("MAIN", ["main"], ["main"]),
        ("rebase", ["merge", "reset", "rename"], []),
        ("frobnicate", ["branch", "restore"], []),
        ("x", ["log", "tag"], []),
    ],
)
def test_only_near_words_are_suggested(word, known, near) -> None:
    assert sorted(nearest(word, known)) == near
