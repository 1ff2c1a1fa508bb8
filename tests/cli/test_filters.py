"""Options that filter `nessie log`, `branch` and `content list`, and filters in CEL."""

import sys

import pytest

from nessie_cli.model import Put, ReferenceType
from tests.command.outcome import Outcome
from tests.command.process import run

from .conftest import key, table

ADA = "Ada <ada@example.org>"


def subjects(ran) -> list[str]:
    return ran.subjects


@pytest.fixture
def history(catalog):
    """main: namespace, tables, ours, merge, last; dev: theirs (by Ada), merged."""
    catalog.branch("dev")
    catalog.commit("dev", "Theirs of March", Put(key("db.dev"), table("dev", 1)), author=ADA)
    catalog.update("main", "db.items", 2)
    catalog.repository.merge("main", "dev")
    catalog.commit("main", "last", Put(key("db.last"), table("last", 1)), author="Bob")
    return catalog


# -- log -----------------------------------------------------------------------------------------
def test_merges_only_or_none(nessie, history) -> None:
    assert len(subjects(nessie("log", "--merges"))) == 1
    everything = subjects(nessie("log"))
    assert len(subjects(nessie("log", "--no-merges"))) == len(everything) - 1


def test_several_authors_are_alternatives_and_case_can_be_ignored(nessie, history) -> None:
    assert subjects(nessie("log", "--author", "^Ada", "--author", "^Bob")) == [
        "last",
        "Theirs of March",
    ]
    assert subjects(nessie("log", "--author", "^ada")) == []
    assert subjects(nessie("log", "-i", "--author", "^ada")) == ["Theirs of March"]
    assert subjects(nessie("log", "-i", "--grep", "theirs OF")) == ["Theirs of March"]


def test_the_committer(nessie, history) -> None:
    assert nessie("log", "--committer", "etl").out == nessie("log").out
    assert nessie("log", "--committer", "nobody").out == ""


def test_skip_and_number(nessie, history) -> None:
    everything = subjects(nessie("log"))
    assert subjects(nessie("log", "--skip", "1", "-n", "2")) == everything[1:3]
    assert subjects(nessie("log", "-2")) == everything[:2]
    assert subjects(nessie("log", "--number", "2")) == everything[:2]
    assert [
        e["commitMeta"]["message"].partition("\n")[0]
        for e in nessie("log", "--skip", "2", "--json").json["logEntries"]
    ] == everything[2:]


def test_a_key_that_looks_like_a_number_of_commits_stays_a_key(nessie, catalog) -> None:
    catalog.commit("main", "odd", Put(key("-5"), table("t", 1)))
    assert subjects(nessie("log", "--", "-5")) == ["odd"]


def test_name_status_and_patch(nessie, history) -> None:
    ran = nessie("log", "-1", "--name-status")
    assert ran.lines[-1] == "A db.last"
    assert nessie("log", "-1", "--name-status", "--oneline").lines == [
        f"{history.head('main')[:12]} (HEAD -> main) last",
        "A db.last",
    ]
    lines = [line.split() for line in nessie("log", "-1", "-p").lines]
    assert lines[lines.index(["created", "db.last", "iceberg-table"]) + 1] == [
        "id",
        history.repository.content("main", key("db.last")).id,
    ]
    (entry,) = nessie("log", "-1", "-p", "--stat", "--json").json["logEntries"]
    assert entry["changes"]["created"] == 1
    assert entry["diffs"][0]["key"] == {"elements": ["db", "last"]}


def test_extended_json_has_the_operations(nessie, history) -> None:
    assert nessie("log", "-1", "--json").json["logEntries"][0]["operations"] is None
    assert (
        nessie("log", "-1", "-x", "--json").json["logEntries"][0]["operations"][0]["type"] == "PUT"
    )


def test_pynessies_range(nessie, history) -> None:
    assert nessie("log", "-r", "v1..dev") == nessie("log", "v1..dev")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("commit.author == 'Bob'", ["last"]),
        (
            "commit.message.startsWith('Theirs') || commit.message == 'last'",
            ["last", "Theirs of March"],
        ),
        ("operations.exists(op, op.type == 'PUT' && op.key == 'db.last')", ["last"]),
        ("commit.commitTime > timestamp('2030-01-01T00:00:00Z')", []),
    ],
)
def test_log_by_a_filter(nessie, history, text, expected) -> None:
    assert subjects(nessie("log", "--filter", text)) == expected
    assert [
        e["commitMeta"]["message"]
        for e in nessie("log", "--filter", text, "--json").json["logEntries"]
    ] == expected


# -- references ----------------------------------------------------------------------------------
def names(ran) -> list[str]:
    return [row[0] for row in ran.rows]


@pytest.fixture
def branches(history):
    """main, dev (merged), `idle` at v1, `work` two ahead of main, the tags v1 and then a2."""
    history.branch("idle", "v1")
    history.branch("work")
    history.create("work", "db.w1")
    history.create("work", "db.w2")
    history.branch("a2", type_=ReferenceType.TAG)
    return history


def test_merged_and_not_merged(nessie, branches) -> None:
    assert names(nessie("branch", "--merged")) == ["dev", "idle", "main"]
    assert names(nessie("branch", "--no-merged")) == ["work"]
    assert names(nessie("branch", "--merged", "dev")) == ["dev", "idle"]
    assert names(nessie("branch", "--no-merged", "idle")) == ["dev", "main", "work"]
    assert names(nessie("tag", "--merged", "dev")) == ["v1"]
    assert [r["name"] for r in nessie("branch", "--merged", "--json").json["references"]] == [
        "dev",
        "idle",
        "main",
    ]


def test_contains_and_points_at(nessie, branches) -> None:
    assert names(nessie("branch", "--contains", "dev")) == ["dev", "main", "work"]
    assert names(nessie("branch", "--no-contains", "dev")) == ["idle"]
    assert names(nessie("branch", "--points-at", "v1")) == ["idle"]
    assert names(nessie("tag", "--contains")) == ["a2"]


def test_sorting(nessie, branches) -> None:
    assert names(nessie("branch", "--sort", "-name")) == ["work", "main", "idle", "dev"]
    assert names(nessie("branch", "--sort", "time")) == ["idle", "dev", "main", "work"]
    assert names(nessie("branch", "--sort", "-time")) == ["work", "main", "dev", "idle"]
    assert names(nessie("branch", "--sort=-ahead"))[0] == "work"
    assert names(nessie("branch", "--sort", "-behind"))[0] in ("idle", "dev")
    assert names(nessie("tag", "--sort", "-time")) == ["a2", "v1"]


def test_patterns_combine_with_other_filters(nessie, branches) -> None:
    assert names(nessie("branch", "-l", "*i*", "--no-merged", "idle")) == ["main"]
    assert names(nessie("branch", "-l", "main", "--merged", "idle")) == []


def test_show_current(nessie, branches) -> None:
    assert nessie("branch", "--show-current").out == "main\n"
    nessie("switch", "dev")
    assert nessie("branch", "--show-current").out == "dev\n"
    assert nessie("branch", "--show-current", "--json").json["reference"]["name"] == "dev"


def test_show_current_refuses_names_and_filters(nessie, branches) -> None:
    for words in (("main",), ("-l", "main"), ("--merged",), ("--sort", "time")):
        ran = nessie("branch", "--show-current", *words)
        assert (ran.code, ran.out) == (2, "")
        assert "--show-current takes no names" in ran.err
    assert nessie("tag", "--show-current", "v1").code == 2


def test_extended_is_verbose(nessie, branches) -> None:
    assert nessie("branch", "-x") == nessie("branch", "-v")
    assert (
        nessie("branch", "-x", "--json").json["references"][-1]["metadata"]["numCommitsAhead"] == 2
    )
    assert (
        nessie("branch", "-l", "work", "-x", "--json").json["reference"]["metadata"][
            "numCommitsAhead"
        ]
        == 2
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ref.name.startsWith('i')", ["idle"]),
        ("refMeta.numCommitsAhead == 2", ["work"]),
        ("commit.author == 'Bob'", ["main"]),
        ("refType == 'TAG'", []),
    ],
)
def test_branches_by_a_filter(nessie, branches, text, expected) -> None:
    assert names(nessie("branch", "--filter", text)) == expected


def test_pynessies_hash_on_ref(nessie, branches) -> None:
    hash_ = branches.repository.resolve("main~1").hash
    assert nessie("branch", "old", "main", "-o", hash_).code == 0
    assert branches.head("old") == hash_


# -- contents ------------------------------------------------------------------------------------
def test_contents_by_a_filter(nessie, history) -> None:
    assert names(nessie("content", "list", "--filter", "entry.contentType == 'NAMESPACE'")) == [
        "db"
    ]
    assert names(
        nessie(
            "content", "list", "db", "-t", "iceberg-table", "--filter", "entry.name.contains('e')"
        )
    ) == [
        "db.dev",
        "db.items",
        "db.orders",
    ]
    assert names(
        nessie("content", "list", "-r", "v1", "--filter", "size(entry.keyElements) == 2")
    ) == ["db.items", "db.orders"]


@pytest.mark.parametrize("more", [[], ["db"], ["d*"], ["-t", "iceberg-table"]])
def test_a_filter_on_a_namespace_lists_what_is_directly_in_it(nessie, catalog, more) -> None:
    catalog.create("main", "dba")
    text = "entry.namespace == 'db'"
    assert names(nessie("content", "list", *more, "--filter", text)) == ["db.items", "db.orders"]
    assert names(nessie("content", "list", *more, "--filter", f"{text} && false")) == []


# -- wrong filters -------------------------------------------------------------------------------
@pytest.mark.parametrize("command", [["log"], ["branch"], ["tag"], ["content", "list"]])
@pytest.mark.parametrize("text", ["", "nothing(", "unknown.name == 1", "1 + 1", "'a' < 1"])
def test_a_wrong_filter_is_one_line_and_a_document(nessie, history, command, text) -> None:
    ran = nessie(*command, "--filter", text)
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1)
    assert "Traceback" not in ran.err
    document = nessie(*command, "--filter", text, "--json").json
    assert document["error"]["errorCode"] == "BAD_REQUEST"


@pytest.mark.parametrize(
    "argv",
    [
        ["branch", "--sort", "nme"],
        ["branch", "--merged", "nowhere"],
        ["tag", "--contains", ""],
        ["branch", "--merged", "-d"],
    ],
)
def test_wrong_options_of_listings(nessie, history, argv) -> None:
    ran = nessie(*argv)
    assert ran.code in (2, 4), ran
    assert ran.out == ""
    assert len(ran.err.splitlines()) <= 2


def test_a_misspelt_order_gets_a_suggestion(nessie, history) -> None:
    assert "did you mean 'time'" in nessie("branch", "--sort", "tme").err


def run_with(prelude: str, *argv: str) -> Outcome:
    program = (
        f"import sys; {prelude}; from nessie_cli.cli.main import run; code = run({list(argv)});"
        " print(*sys.modules); sys.exit(code)"
    )
    return run(program, program=(sys.executable, "-c"))


def test_the_engine_is_loaded_for_a_filter_only(nessie, history) -> None:
    assert "cel_expr_python" not in run_with("pass", "log").out
    assert "cel_expr_python" in run_with("pass", "log", "--filter", "true").out


def test_without_the_engine_one_line_says_what_to_install(nessie, history) -> None:
    ran = run_with("sys.modules['cel_expr_python'] = None", "branch", "--filter", "true")
    ran.expect(1, "pip install 'nessie-cli[filters]'")
    assert len(ran.err.splitlines()) == 1
