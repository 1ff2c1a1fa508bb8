"""Globs of keys: `db.*` where keys are listed, deleted, restored, unstaged or put aside."""

import pytest

from nessie_cli.model import ContentKey, Namespace, Put
from nessie_cli.model.key_patterns import KeyPattern

from .conftest import key, staged, table


@pytest.fixture
def wide(catalog):
    """A catalog with keys on two levels, one of them with a star in its name."""
    puts = [Put(key("db.sales"), Namespace(elements=("db", "sales")))]
    puts += [
        Put(ContentKey(("db", "sales", name)), table(name, 1)) for name in ("orders", "items", "a*")
    ]
    catalog.commit("main", "wide", *puts)
    return catalog


@pytest.mark.parametrize(
    ("glob", "matching", "others"),
    [
        ("db.*", ["db.a", "db.a.b", 'db."a.b"'], ["db", "dbx.a", "x.db.a"]),
        ("*.orders", ["db.orders", "db.sales.orders"], ["orders", "db.orders.x"]),
        ("db.?", ["db.a"], ["db.ab", "db"]),
        ('db."a.b".*', ['db."a.b".c'], ["db.a.b.c"]),
        ('db."*".?', ['db."*".c'], ["db.a.c"]),
        ("db.[a]*", ["db.[a]", "db.[a].c"], ["db.a"]),
    ],
)
def test_a_glob_matches_whole_keys_across_their_dots(glob, matching, others) -> None:
    pattern = KeyPattern.parse(glob)
    assert [
        text for text in [*matching, *others] if pattern.matches(ContentKey.parse(text))
    ] == matching


@pytest.mark.parametrize("text", ["db", "db.[a]", 'db."a*"', '"*?"'])
def test_quoted_wildcards_and_brackets_make_no_glob(text) -> None:
    assert KeyPattern.parse(text) is None


def test_a_key_with_a_wildcard_is_printed_in_quotes_so_that_output_is_input(nessie, wide) -> None:
    assert [row[0] for row in nessie("content", "list", "db.sales.*").rows] == [
        'db.sales."a*"',
        "db.sales.items",
        "db.sales.orders",
    ]
    assert (
        nessie("content", "delete", 'db.sales."a*"', "db.orders").out
        == 'delete     db.sales."a*"  iceberg-table\ndelete     db.orders  iceberg-table\n'
    )


def test_a_glob_lists_the_matching_keys_possibly_none(nessie, wide) -> None:
    assert [row[0] for row in nessie("content", "list", "*.orders").rows] == [
        "db.orders",
        "db.sales.orders",
    ]
    assert [row[0] for row in nessie("content", "list", "*.orders", "--at", "v1").rows] == [
        "db.orders"
    ]
    assert nessie("content", "list", "x.*") == (0, "", "")


def test_a_glob_deletes_the_matching_keys_of_branch_and_batch(nessie, wide) -> None:
    nessie("content", "delete", "db.sales.items")
    nessie("content", "put", "db.sales.new", "--type", "namespace")
    assert nessie("content", "delete", "db.sales.?*").code == 0
    assert sorted(staged(nessie)) == ["db.sales.a*", "db.sales.items", "db.sales.orders"]
    assert nessie("content", "delete", "db.sales", "-m", "empty").code == 2
    assert nessie("content", "delete", "db.sales").code == 0
    assert nessie("commit", "-m", "all of sales").code == 0
    assert nessie("content", "list", "db.sales.*").out == ""


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["content", "delete", "x.*"], "no key of main matches 'x.*'"),
        (["content", "unmodified", "x.*"], "no key of main matches 'x.*'"),
        (["reset", "x.*"], "no staged key matches 'x.*'"),
        (["stash", "push", "x.*"], "no staged key matches 'x.*'"),
        (
            ["restore", "x.*", "--at", "v1"],
            "no key matches 'x.*', neither on the branch nor at the revision",
        ),
    ],
)
def test_a_glob_that_matches_nothing_is_an_error(nessie, wide, argv, said) -> None:
    nessie("content", "delete", "db.orders")
    ran = nessie(*argv)
    ran.expect(4, said, out="")
    assert staged(nessie) == ["db.orders"]


def test_a_glob_unstages_the_matching_keys(nessie, wide) -> None:
    nessie("content", "delete", "db.sales.*", "db.orders")
    assert nessie("reset", "db.sales.*").out == "unstaged 3 operations, 1 still staged\n"
    assert staged(nessie) == ["db.orders"]


def test_a_glob_stashes_the_matching_keys(nessie, wide) -> None:
    nessie("content", "delete", "db.sales.*", "db.orders")
    assert (
        nessie("stash", "push", "db.sales.*", "-m", "sales").out
        == "stashed: 3 keys; 1 operation still staged\n"
    )
    assert staged(nessie) == ["db.orders"]
    assert nessie("commit", "-m", "drop orders").code == 0
    assert nessie("stash", "pop").code == 0
    assert sorted(staged(nessie)) == ["db.sales.a*", "db.sales.items", "db.sales.orders"]


def test_both_keys_of_a_rename_are_stashed(nessie, catalog) -> None:
    nessie("content", "rename", "db.orders", "db.sales")
    nessie("content", "delete", "db.items")
    assert nessie("stash", "push", "db.orders").out == "stashed: 2 keys; 1 operation still staged\n"
    assert staged(nessie) == ["db.items"]


def test_a_glob_restores_the_matching_keys_that_differ(nessie, wide) -> None:
    assert nessie("restore", "db.s*", "--at", "v1").code == 0
    assert sorted(staged(nessie)) == [
        "db.sales",
        "db.sales.a*",
        "db.sales.items",
        "db.sales.orders",
    ]
    assert nessie("reset").code == 0
    assert nessie("restore", "db.o*", "--at", "v1").out == "nothing to stage\n"
    assert nessie("restore", "db.o*", "--at", "v1", "-m", "nothing").code == 2


def test_a_recursive_restore_reverts_staged_changes(nessie, wide) -> None:
    nessie("content", "delete", "db.sales.orders")
    assert nessie("restore", "db.sales", "--recursive", "--at", "HEAD").code == 0
    assert staged(nessie) == []


@pytest.mark.parametrize("command", [["log"], ["diff", "v1", "main"], ["show"]])
def test_a_command_without_globs_refuses_one(nessie, catalog, command) -> None:
    ran = nessie(*command, "--", "db.s*")
    assert ran.code == 2
    assert ran.err.startswith("nessie: 'db.s*' is a glob")
    assert "Hint: 'db' includes all keys below it" in ran.err
    assert nessie(*command, "--", 'db."s*"').code == 0
