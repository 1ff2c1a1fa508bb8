import re
import sys

import pytest

from nessie_cli.model import ReferenceType
from tests.command.process import run


@pytest.fixture
def history(catalog):
    """main: namespace, tables (v1), update items, merge of feature, rename.

    feature: update orders. stray: one more commit.
    """
    catalog.branch("feature")
    catalog.update("feature", "db.orders", 2, author="Bob <bob@example.org>")
    catalog.update("main", "db.items", 2)
    catalog.repository.merge("main", "feature")
    catalog.rename("main", "db.items", 'db."it.ems"')
    catalog.branch("stray", "v1")
    catalog.create("stray", "db.more")
    return catalog


def subjects(ran) -> list[str]:
    assert ran.code == 0, ran.err
    return [subject.partition(" at ")[0] for subject in ran.subjects]


def times_of_commits(nessie) -> list[str]:
    entries = nessie("log", "--json").json["logEntries"]
    return [entry["commitMeta"]["commitTime"] for entry in entries]


MAIN = [
    "rename db.items",
    "Merged feature",
    "update db.items",
    "update db.orders",
    "tables",
    "namespace",
]


def test_history_is_newest_first_over_all_parents(nessie, history) -> None:
    assert subjects(nessie("log")) == MAIN
    assert subjects(nessie("log", "main")) == MAIN
    assert subjects(nessie("log", "v1")) == MAIN[-2:]
    assert subjects(nessie("log", history.head("v1")[:10])) == MAIN[-2:]


def test_the_current_reference_is_the_start(nessie, history) -> None:
    assert subjects(nessie("--ref", "feature", "log")) == [
        "update db.orders",
        "tables",
        "namespace",
    ]
    assert subjects(nessie("log", "HEAD~1", "--ref", "stray")) == ["tables", "namespace"]


def test_first_parent_skips_merged_commits(nessie, history) -> None:
    assert subjects(nessie("log", "--first-parent")) == [s for s in MAIN if s != "update db.orders"]
    assert subjects(nessie("log", "v1..main", "--first-parent")) == [
        "rename db.items",
        "Merged feature",
        "update db.items",
    ]


@pytest.mark.parametrize(
    ("limit", "more"), [(0, True), (1, True), (5, True), (6, False), (7, False)]
)
def test_a_limit_says_whether_there_is_more(nessie, history, limit, more) -> None:
    ran = nessie("log", "-n", str(limit), "--json")
    assert [len(ran.json["logEntries"]), ran.json["hasMore"], ran.json["token"]] == [
        min(limit, 6),
        more,
        None,
    ]


def test_ranges(nessie, history) -> None:
    assert subjects(nessie("log", "v1..feature")) == ["update db.orders"]
    assert subjects(nessie("log", "feature..main")) == [
        "rename db.items",
        "Merged feature",
        "update db.items",
    ]
    assert subjects(nessie("log", "feature..")) == subjects(nessie("log", "feature..HEAD"))
    assert subjects(nessie("log", "stray...feature")) == ["create db.more", "update db.orders"]
    assert subjects(nessie("log", "main..main")) == []


def test_all_starts_at_every_reference_and_shows_each_commit_once(nessie, history) -> None:
    assert subjects(nessie("log", "--all")) == [
        "create db.more",
        *MAIN[:2],
        "update db.items",
        "update db.orders",
        "tables",
        "namespace",
    ]


def test_filters(nessie, history) -> None:
    assert subjects(nessie("log", "--author", "^Bob")) == ["update db.orders"]
    assert subjects(nessie("log", "--grep", "with a b.dy")) == ["tables"]
    assert subjects(nessie("log", "--grep", "update", "--author", "Eva")) == ["update db.items"]
    assert subjects(nessie("log", "-n", "1", "--grep", "update")) == ["update db.items"]
    either = nessie("log", "--grep", "with a b.dy", "--grep", "UPDATE", "-i")
    assert {subject.split()[0] for subject in subjects(either)} == {"tables", "update"}
    assert subjects(nessie("log", "--", "db.orders")) == [
        "Merged feature",
        "update db.orders",
        "tables",
    ]
    assert subjects(nessie("log", "v1", "--", "db")) == ["tables", "namespace"]
    assert subjects(nessie("log", "--", 'db."it.ems"', "db.nothing")) == ["rename db.items"]


def test_since_and_until_are_inclusive(nessie, history) -> None:
    times = times_of_commits(nessie)
    assert subjects(nessie("log", "--since", times[2])) == MAIN[:3]
    assert subjects(nessie("log", "--after", times[2], "--before", times[1])) == MAIN[1:3]
    assert subjects(nessie("log", "--until", times[4])) == MAIN[4:]
    assert subjects(nessie("log", "--since", "1 hour ago")) == []


def test_since_and_until_are_inclusive_over_the_whole_history(nessie, history) -> None:
    """In a graph, and along the first parents of a range, commits are not left out by the store."""
    times = times_of_commits(nessie)
    for options, wanted in {
        ("--since", times[2]): MAIN[:3],
        ("--until", times[4]): MAIN[4:],
    }.items():
        drawn = re.findall(
            r"[0-9a-f]{12}(?: \(.*?\))? (.*)", nessie("log", "--graph", "--oneline", *options).out
        )
        assert [subject.partition(" at ")[0] for subject in drawn] == wanted
        found = nessie("log", "--first-parent", "2e1cfa82b035c26c..main", *options)
        assert subjects(found) == [subject for subject in wanted if subject != "update db.orders"]


def test_reverse_is_applied_after_the_limit(nessie, history) -> None:
    assert subjects(nessie("log", "-n", "2", "--reverse")) == ["Merged feature", "rename db.items"]
    assert [
        e["commitMeta"]["message"]
        for e in nessie("log", "-n", "2", "--reverse", "--json").json["logEntries"]
    ][1] == "rename db.items"


def test_a_pipe_gets_the_text_of_a_terminal(nessie, history) -> None:
    head = history.head("main")[:12]
    lines = nessie("log", "-n", "1").lines
    assert lines[:2] == [f"commit {head} (HEAD -> main)", "Author: Eva <eva@example.org>"]
    assert lines[2].startswith("Date:   ")
    assert lines[3:] == ["", "    rename db.items"]
    assert nessie("log", "-n", "1", "--oneline").lines == [f"{head} (HEAD -> main) rename db.items"]


def test_stat_counts_a_rename_as_one_change(nessie, history) -> None:
    counts = [line.split()[-1] for line in nessie("log", "--stat", "--oneline").lines]
    assert counts == [">1", "~1", "~1", "~1", "+2", "+1"]
    found = nessie("log", "--stat", "-n", "1", "--json").json["logEntries"][0]["changes"]
    assert found == {"created": 0, "updated": 0, "deleted": 0, "renamed": 1}


def test_the_graph_in_a_pipe(nessie, history) -> None:
    lines = nessie("log", "--graph", "--oneline").lines
    assert [line.partition(" ")[0] if line[0] in "●◎" else line[:3] for line in lines] == [
        "●",
        "◎",
        "├─╮",
        "●",
        "│ ●",
        "├─╯",
        "●",
        "●",
    ]


def test_json_has_the_shape_of_rest(nessie, history) -> None:
    entry = nessie("log", "--json", "-n", "1").json["logEntries"][0]
    assert entry["commitMeta"]["hash"] == history.head("main")
    assert entry["parentCommitHash"] == entry["commitMeta"]["parentCommitHashes"][0]
    assert entry["operations"] is None
    keyed = nessie("log", "--json", "--", "db.orders").json["logEntries"]
    assert all(entry["operations"] for entry in keyed)


def test_jsonl_is_one_commit_per_line(nessie, history) -> None:
    import json

    assert [
        json.loads(line)["height"] for line in nessie("log", "--jsonl", "--first-parent").lines
    ] == [5, 4, 3, 2, 1]


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["nowhere"], 4, "nowhere"),
        (["mian"], 4, "Did you mean 'main'?"),
        (["main", "extra"], 2, "too many arguments: 'extra'"),
        (["--grep", "("], 2, "--grep '(' is not a regular expression"),
        (["--grep", "a", "--grep", "(?i)b"], 2, "Hint: use -i"),
        (["--since", "soon"], 2, "soon"),
        (["--graph", "--reverse"], 2, "cannot be used together"),
        ([""], 2, "an argument is empty"),
        (["--since", ""], 2, "an argument is empty"),
        (["--all", "main"], 2, "it takes no revision"),
        (["-n", "-1"], 2, "-1"),
        (["--", "a..b"], 2, "empty"),
        (["main@xyz"], 2, "xyz"),
        (["deadbeef"], 4, "deadbeef"),
    ],
)
def test_wrong_input_is_one_line_and_a_document(nessie, history, argv, code, said) -> None:
    ran = nessie("log", *argv)
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert ran.err.startswith("nessie: ")
    assert "Traceback" not in ran.err
    words = [argv[0], "--json", *argv[1:]] if argv[0] != "--" else ["--json", *argv]
    assert "error" in nessie("log", *words).json


def test_an_empty_history_has_no_commits(nessie, catalog) -> None:
    catalog.repository.create_reference(
        ReferenceType.BRANCH,
        "empty",
        "2e1cfa82b035c26cbbbdae632cea070514eb8b773f616aaeaf668e2f0be8f10d",
    )
    assert nessie("log", "empty") == (0, "", "")
    assert nessie("log", "empty", "--json").json["logEntries"] == []


UNUSED = {
    "rich",
    "pydantic",
    "requests",
    "zstandard",
    "psycopg",
    "platformdirs",
    "importlib.metadata",
}


@pytest.mark.parametrize(
    "argv",
    [
        ["log", "-n", "20", "--json"],
        ["log", "--oneline"],
        ["branch", "--json"],
        ["diff", "v1", "feature"],
        ["show"],
    ],
)
def test_reading_in_a_pipe_loads_only_the_libraries_that_it_needs(nessie, history, argv) -> None:
    program = (
        f"import sys; from nessie_cli.cli.main import run; code = run({argv}); print(*sys.modules,"
        " sep='\\n', file=sys.stderr); sys.exit(code)"
    )
    loaded = set(run(program, program=(sys.executable, "-c")).expect(0).err.split())
    assert "nessie_cli.store.sqlite" in loaded
    assert not loaded & UNUSED


def test_a_custom_template(nessie, catalog) -> None:
    head = catalog.head("main")
    assert nessie("log", "-n", "1", "--format", "%H|%h|%s|%b|%an|%ae|%cn").lines == [
        f"{head}|{head[:12]}|tables|with a body|Eva|eva@example.org|etl"
    ]
    assert (
        nessie("log", "-n", "1", "--format", "%at%x09%aI%x09%D%%")
        .lines[0]
        .endswith("\tHEAD -> main, tag: v1%")
    )
    assert nessie("log", "--pretty=format:%s%n-", "--reverse").lines == [
        "namespace",
        "-",
        "tables",
        "-",
    ]
    assert nessie("log", "-n", "1", "--format", "<%B>").lines == ["<tables", "", "with a body>"]
    assert nessie("log", "-n", "1", "--format", "%p", "v1").lines == [
        catalog.repository.resolve("main~1").hash[:12]
    ]
    for more in ([], ["--stat"], ["--json"]):
        assert (
            nessie("log", "--format", "oneline", *more).out == nessie("log", "--oneline", *more).out
        )


def test_a_template_shows_control_characters_of_the_store_escaped_and_its_own_raw(
    nessie, catalog
) -> None:
    catalog.update("main", "db.orders", 2, author="\x1b[31mEve\t")
    assert nessie("log", "-n", "1", "--format", "%x09\x1b%an").out == "\t\x1b\\x1b[31mEve\\t\n"


def test_with_keys_only_their_changes_are_shown(nessie, catalog) -> None:
    head, items = "main", "db.items"
    assert nessie("log", "-n", "1", "--name-status", "--oneline", "--", "db.orders").lines[1:] == [
        "A db.orders"
    ]
    assert nessie("log", "-n", "1", "--stat", head, "--", items).lines[-1] == "    +1"
    (entry,) = nessie("log", "-n", "1", "-p", "--json", "--", items).json["logEntries"]
    assert [diff["key"]["elements"] for diff in entry["diffs"]] == [["db", "items"]]
    assert nessie("log", "-n", "1", "--stat").lines[-1] == "    +2"


def test_the_placeholders_that_git_users_try(nessie, catalog) -> None:
    day = times_of_commits(nessie)[0][:10]
    found = nessie("log", "-n", "1", "--format", "%f|%as|%cs|%aN|%aE|%al|%cn|%ci|%x41|%ar")
    (line,) = found.lines
    subject, authored, committed, name, address, local, committer, instant, code, age = line.split(
        "|"
    )
    assert (subject, authored, committed, name, address, local) == (
        "tables",
        day,
        day,
        "Eva",
        "eva@example.org",
        "eva",
    )
    assert (committer, instant[:10], instant[-1], code) == ("etl", day, "Z", "A")
    assert age


def test_an_unknown_placeholder_gets_the_known_ones(nessie, catalog) -> None:
    ran = nessie("log", "--format", "%h %q")
    assert ran.code == 2
    assert "%q is not a placeholder" in ran.err
    assert all(name in ran.err for name in ("%H", "%an", "%xNN", "nessie help log"))
    assert "colours" in nessie("log", "--format", "%C(red)%h").err
    assert "%aq is not" in nessie("log", "--format", "%aq").err


def test_a_graph_has_the_lines_of_a_template_beside_it(nessie, history) -> None:
    plain = nessie("log", "--graph", "--oneline").lines
    own = nessie("log", "--graph", "--format", "%h%d %s").lines
    assert own == plain
    two = nessie("log", "--graph", "--format", "%h%n%s", "-n", "1").lines
    assert two == [f"● {history.head('main')[:12]}", "│ rename db.items"]
    chosen = nessie("log", "--graph", "--format", "%s", "--grep", "namespace").lines
    assert chosen == ["● namespace"]


def test_the_text_of_a_template_is_raw_beside_a_graph_too(nessie, catalog) -> None:
    catalog.update("main", "db.orders", 2, author="\x1b[31mEve")
    assert nessie("log", "--graph", "-n", "1", "--format", "\x1b[1m%an").lines == [
        "● \x1b[1m\\x1b[31mEve"
    ]


@pytest.mark.parametrize(
    "words",
    [["%q"], ["%"], ["%xzz"], ["%s", "--stat"], ["%s", "--deep"], ["%s", "--json"], ["%s", "-p"]],
)
def test_an_invalid_template_is_refused(nessie, catalog, words) -> None:
    ran = nessie("log", "--format", *words)
    ran.expect(2, "--format")


@pytest.mark.parametrize("line", ["log", "reflog", "content history db.orders"])
def test_a_number_of_many_digits_is_a_number(nessie, history, line) -> None:
    assert nessie(*line.split(), "-n", "9" * 23) == nessie(*line.split())
