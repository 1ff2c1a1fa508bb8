"""Candidates of a word, by its position."""

from __future__ import annotations

import pytest

from nessie_cli import connect, create
from nessie_cli.runs.lifecycle import RunPlan, begin


def test_the_first_word_is_a_command(here, said):
    found = said("")

    assert found["merge"] == "Merge the changes of a branch into another, as one commit."
    assert {"init", "content", "log", "completion"} <= found.keys()


def test_only_candidates_that_begin_with_the_word_are_offered(here, words):
    assert words("sw") == ["switch"]
    assert words("no-such") == []


def test_hidden_commands_are_not_offered_but_their_options_are(here, words):
    assert "view" not in words("content", "")
    assert words("content", "view", "db.o") == ["db.orders"]


def test_a_group_offers_its_commands(here, words):
    assert {"put", "delete", "list"} <= set(words("content", ""))


def test_options_are_offered_with_their_help(here, said):
    assert said("log", "--one") == {
        "--oneline": "Show the hash and subject of each commit on one line."
    }
    theirs = (
        "Take the source's state of this content. A glob decides all conflicts that match."
        " Repeatable."
    )
    assert said("merge", "--theirs")["--theirs"] == theirs


def test_two_dashes_offer_long_options_and_one_dash_all(here, words):
    assert "-n" in words("log", "-")
    assert all(word.startswith("--") for word in words("log", "--"))
    assert words("-C") == ["-C"]


def test_a_given_option_is_only_offered_again_if_it_is_repeatable(here, words):
    assert "--graph" not in words("log", "--graph", "--")
    assert "--max-count" not in words("log", "-n", "3", "--")
    assert "--theirs" in words("merge", "--theirs", "db.orders", "--")


def test_global_options_are_offered_before_and_after_the_command(here, words):
    assert (
        words("--col") == words("log", "--col") == words("content", "put", "--col") == ["--color"]
    )
    assert words("--color", "a") == words("log", "--color", "a") == ["auto", "always"]
    assert words("--color=n") == ["--color=never"]
    assert "--version" in words("--")
    assert "--version" not in words("log", "--")
    assert words("log", "--hel") == ["--help"]


def test_a_command_is_found_after_global_options_and_their_values(here, words):
    assert words("--ref", "main", "-q", "--color=never", "--json", "log", "--one") == ["--oneline"]
    assert words("-qv", "content", "sh") == ["show"]
    assert words("-C", ".", "content", "sh") == ["show"]
    assert words("-C.", "content", "sh") == ["show"]


def test_no_options_are_offered_after_two_dashes(here, words):
    assert words("log", "--", "--one") == []
    assert words("log", "--", "db.or") == ["db.orders"]


def test_choices_are_offered(here, words):
    assert words("merge", "--behavior", "") == ["normal", "force", "drop"]
    assert words("merge", "--behavior=f") == ["--behavior=force"]
    assert words("content", "put", "x", "--type", "iceberg-") == ["iceberg-table", "iceberg-view"]
    assert words("completion", "") == ["bash", "zsh", "fish"]


def test_settings_are_offered_by_name(here, said):
    assert said("config", "get", "st")["store"].startswith("The store")
    assert {"alias.", "profile.", "author", "protect."} <= said("config", "set", "").keys()


def test_aliases_and_plug_ins_are_commands(here, said, words, tmp_path, monkeypatch):
    (tmp_path / "config/nessie").mkdir(parents=True)
    (tmp_path / "config/nessie/config.toml").write_text(
        '[alias]\nlg = "log --oneline"\nloud = "commit -m \'it is loud\'"\nlog = "show"\n'
    )
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/nessie-lost-and-found").write_text("#!/bin/sh\n")
    assert "lost-and-found" not in words("l")
    (tmp_path / "bin/nessie-lost-and-found").chmod(0o755)
    monkeypatch.setenv("PATH", f"/no/such:{tmp_path / 'bin'}")
    assert said("l") == {
        "log": "Show the history, newest commit first.",
        "login": "Trust a server with credentials, and store a token for it.",
        "lg": "alias: log --oneline",
        "loud": "alias: commit -m 'it is loud'",
        "lost-and-found": "plug-in",
    }
    assert words("lg", "--grap") == ["--graph"]
    assert words("lg", "--one") == []
    assert words("lg", "ma") == ["main"]
    assert words("-C", "inner", "lg", "ma") == ["main"]
    assert words("loud", "--dry") == ["--dry-run"]


def test_sort_orders_are_not_mistaken_for_keys(here, words):
    assert words("branch", "--sort", "-t") == ["-time"]


def test_an_optional_value_is_offered(here, words):
    assert words("branch", "--merged", "v") == ["v1.0"]
    assert words("branch", "--merged", "--sor") == ["--sort"]
    assert words("branch", "--merged", "--sort", "ti") == ["time"]


def test_manual_pages_are_offered(here, said):
    assert said("help", "rev")["revisions"] == "syntax of revisions, ranges, times and keys"
    assert {"merge", "content", "exit-status"} <= said("help", "").keys()
    assert {"put", "delete"} <= said("help", "content", "").keys()
    assert said("help", "merge", "") == said("help", "no-such", "") == {}


def test_a_free_value_has_no_candidates(here, words):
    assert words("commit", "-m", "") == []
    assert words("log", "-n", "") == []
    assert words("log", "--since", "") == []


def test_references_are_offered(here, said):
    found = said("switch", "")

    assert list(found) == ["feature/new-orders", "feature/old", "main", "v1.0"]
    assert found["feature/old"] == "branch: add éclair"
    assert found["v1.0"].startswith("tag: ")


def test_branches_and_tags_are_offered_separately(here, words):
    assert words("branch", "-d", "") == ["feature/new-orders", "feature/old", "main"]
    assert words("branch", "-d", "main", "") == ["feature/new-orders", "feature/old", "main"]
    assert words("tag", "-d", "") == ["v1.0"]
    assert words("branch", "new-name", "v") == ["v1.0"]
    assert words("--ref", "v") == ["v1.0"]


def test_deleted_references_are_offered_for_restoring(here, said, words):
    assert said("undo", "g") == {"gone": "deleted"}
    assert words("switch", "g") == []
    assert words("undo", "main", "--to", "")[0] == str(
        max(map(int, words("undo", "main", "--to", "")))
    )


def test_revisions_are_references_hashes_and_relative_parts(here, said, words):
    with connect(str(here / ".nessie/store.sqlite")) as repository:
        head = repository.resolve("main~1").hash
    assert words("log", "H") == ["HEAD"]
    assert said("log", head[:6]) == {head[:12]: "add éclair"}
    assert words("log", head[:3]) == []
    assert words("log", head[:13]) == [head]
    assert said("log", "main~")["main~2"] == 'add web."it\'s ""new"""'
    assert words("log", "main~1") == ["main~1"]
    assert said("log", "main^")["main^2"] == "only on the branch"
    assert said("log", "main^2~")["main^2~1"] == "no sweets"
    assert said("log", f"{head[:8]}~1~")[f"{head[:8]}~1~1"] == "add web"
    assert (
        said("log", "~")["~1"]
        == said("log", "@~")["@~1"]
        == said("log", "HEAD~")["HEAD~1"]
        == "add éclair"
    )
    assert said("log", f"main@{head[:5]}") == {f"main@{head[:12]}": "add éclair"}
    assert len(words("log", "main@")) == 10


def test_impossible_relative_parts_have_no_candidates(here, words):
    for revision in (
        "main~0",
        "main^0",
        "main~5000",
        "main~²",
        "main^9",
        "main~99999999999999999999",
        "no-such",
    ):
        assert words("log", f"{revision}~") == []


def test_the_second_revision_of_a_range_is_completed(here, words):
    assert words("log", "main..v") == ["main..v1.0"]
    assert words("diff", "main...fea") == ["main...feature/new-orders", "main...feature/old"]
    assert "main..main~1" in words("transplant", "main..main~")


def test_an_expected_hash_offers_the_newest_commits(here, said, words):
    newest = said("commit", "--expected-hash", "")

    assert list(newest.values())[1] == "add éclair"
    assert all(len(hash_) == 12 for hash_ in newest)
    first = next(iter(newest))
    assert words("commit", "--expected-hash", first[:8]) == [first]
    assert words("merge", "x", f"--expected-hash={first[:8]}") == [f"--expected-hash={first}"]


def test_keys_are_completed_element_by_element(here, said):
    assert said("content", "show", "") == {
        "db.": "namespace",
        "later": "iceberg-table",
        "web.": "namespace",
    }
    assert said("content", "show", "db.") == {
        'db."order.lines"': "iceberg-table",
        "db.orders": "iceberg-table",
        "db.sales.": "namespace",
    }
    assert list(said("content", "show", "db.sales.i")) == ["db.sales.items"]
    assert said("content", "show", "db.orders.") == {}
    assert said("content", "show", "nothing.") == {}


def test_quoted_elements_are_completed(here, words):
    assert words("content", "show", 'db."') == ['db."order.lines"']
    assert words("content", "show", 'db."order.l') == ['db."order.lines"']
    assert words("content", "show", "web.") == ['web."it\'s ""new"""']
    assert words("content", "show", 'db."order.lines".') == []
    assert words("content", "show", '"db".') == ['"db"."order.lines"', '"db".orders', '"db".sales.']


def test_keys_are_those_of_the_given_revision(here, words):
    assert (
        words("content", "list", "--at", "v1.0", "é")
        == words("--ref", "v1.0", "content", "show", "é")
        == ["éclair"]
    )
    assert words("content", "list", "--at", "feature/new-orders~2", "é") == ["éclair"]
    assert words("content", "show", "é") == []


def test_keys_with_files_are_completed(here, words):
    assert words("merge", "x", "--resolve", "db.") == [
        'db."order.lines"=',
        "db.orders=",
        "db.sales.",
    ]
    assert words("merge", "x", "--resolve", "db.orders=ta") == ["db.orders=tables/"]
    assert words("merge", "x", "--resolve=db.orders=tables/") == [
        "--resolve=db.orders=tables/orders.json"
    ]


def test_staged_keys_are_offered_for_unstaging(here, said):
    assert said("reset", "") == {"db.sales.units": "delete"}


def test_files_and_folders_are_offered(here, words):
    assert words("commit", "-F", "") == ["inner/", "my notes.txt", "tables/"]
    assert words("commit", "-F", ".h") == [".hidden"]
    assert words("commit", "--file=tables/") == ["--file=tables/orders.json"]
    assert words("-C", "") == words("init", "") == ["inner/", "tables/"]
    assert words("commit", "-F", "no/such/") == []


def test_a_tilde_is_kept(here, words, tmp_path):
    (tmp_path / "batch.json").write_text("[]")
    assert words("commit", "--batch", "~/b") == ["~/batch.json"]


def test_stores_are_offered(here, words):
    assert "sqlite:///" in words("--store", "")
    assert words("--store", "sqlite:///ta") == ["sqlite:///tables/"]


def test_given_stores_references_and_folders_are_used(here, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = str(here / ".nessie/store.sqlite")
    assert words("switch", "ma") == []
    assert (
        words("--store", store, "switch", "ma")
        == words("switch", "--store", f"sqlite:///{store}", "ma")
        == ["main"]
    )
    assert words("-C", str(here / "inner"), "switch", "ma") == ["main"]
    monkeypatch.setenv("NESSIE_STORE", store)
    monkeypatch.setenv("NESSIE_REF", "v1.0")
    assert words("content", "show", "é") == ["éclair"]


@pytest.mark.parametrize(
    "setting",
    [
        'store = "elsewhere/s.sqlite"\n',
        'store = "sqlite:///elsewhere/s.sqlite"',
        "author = 'a'\nstore = 'elsewhere/s.sqlite'",
    ],
)
def test_the_store_of_the_settings_is_used(here, words, tmp_path, monkeypatch, setting):
    (tmp_path / ".nessie").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".nessie/config.toml").write_text(setting)
    (tmp_path / "elsewhere/s.sqlite").write_bytes((here / ".nessie/store.sqlite").read_bytes())
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert words("switch", "ma") == ["main"]


@pytest.mark.parametrize(
    "option", ["--show", "--resume", "--discard", "--publish", "--join", "--run-checks"]
)
def test_runs_are_offered(here, said, tmp_path, option):
    store = tmp_path / "runs.sqlite"
    with create(str(store)) as repository:
        start = repository.reference("main").hash
        plan = RunPlan("main", start, key="nightly", command=("python", "load.py"))
        active = begin(repository, plan, "ada")

    assert said("--store", str(store), "run", option, "night") == {
        active.run.id: "running: python load.py"
    }
    assert said("--store", str(store), "run", option, "daily") == {}


def test_profiles_are_offered(here, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config/nessie").mkdir(parents=True)
    (tmp_path / "config/nessie/config.toml").write_text(
        f'default-profile = "home"\n[profile.work]\nstore = "{here}/.nessie/store.sqlite"\nref = "v1.0"\n[profile.home]\nstore = "nowhere"\n'
    )
    assert words("--profile", "") == ["home", "work"] or words("--profile", "") == ["work", "home"]
    assert words("switch", "ma") == []
    assert words("--profile", "work", "switch", "ma") == ["main"]
    assert words("--profile", "work", "content", "show", "é") == ["éclair"]
    monkeypatch.setenv("NESSIE_PROFILE", "work")
    assert words("content", "show", "é") == ["éclair"]


def test_fixed_words_are_offered(here, words):
    assert words("resolve", "") == ["merge", "transplant", "revert"]
    assert words("resolve", "merge", "feat") == words("merge", "feat") != []
