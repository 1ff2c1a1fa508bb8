"""What users of git type."""

import pytest


@pytest.mark.parametrize(
    "words", [[], ["log"], ["content"], ["content", "put"], ["stash"], ["stash", "pop"], ["config"]]
)
def test_h_is_short_for_help(nessie, catalog, words) -> None:
    assert nessie(*words, "-h") == nessie(*words, "--help")
    assert nessie(*words, "-h").out.startswith(f"Usage: nessie {' '.join(words)}".rstrip())


def test_pynessie_s_configuration_is_named_if_no_store_is_found(nessie, tmp_path) -> None:
    folder = tmp_path / "home" / "config" / "nessie"
    (folder / "config.yaml").write_text("endpoint: http://x\n")
    ran = nessie("log")
    ran.expect(4, f"{folder / 'config.yaml'} belongs to pynessie")


TYPED = {
    "branch -D feature": "deleted branch feature",
    "branch -a": "*  main ",
    "branch -vv": "*  main ",
    "branch --show-current": "main\n",
    "branch -c copy": "created branch copy",
    "commit -am both": "main ",
    "commit -a -m both": "main ",
    "config --global author Ada": "author = Ada",
    "config --local author Ada": "author = Ada",
    "config alias.st status": "alias.st = status",
    "config --list": "",
    "log --oneline --decorate -1": "tables",
    "log -1 --pretty=oneline": "tables",
    "log -p -1": "commit ",
    "log main..feature --oneline": "create db.ahead",
    "merge --no-ff feature": "db.ahead",
    "merge --no-edit feature": "db.ahead",
    "reflog show": "  main  ",
    "reflog show main": "  main  ",
    "reset --hard": "unstaged 1 operation",
    "reset --hard HEAD": "unstaged 1 operation",
    "reset HEAD": "unstaged 1 operation",
    "reset HEAD db.staged": "unstaged 1 operation",
    "revert HEAD --no-edit": "main ",
    "show -p": "commit ",
    "show HEAD~1": "commit ",
    "diff HEAD~1": "created db.items",
    "diff --cached --name-status": "A\tdb.staged\n",
    "status -s": "A  db.staged\n",
    "status -sb": "## main\nA  db.staged\n",
    "status --porcelain": "A  db.staged\n",
    "tag -D v1": "deleted tag v1",
    "tag -a v2 -m two": "created tag v2",
    "tag -am two v2 HEAD": "created tag v2",
    "branch -d -f feature": "deleted branch feature",
    "branch --sort=-committerdate": "*  main ",
    "tag --sort=-v:refname": "v1    ",
    "-v": "nessie 1",
    "-V": "nessie 1",
}
"""What is typed as in git, and works; beside it something that it answers."""


@pytest.fixture
def daily(nessie, catalog):
    """A staged operation, and a branch that is a commit ahead."""
    catalog.branch("feature")
    catalog.create("feature", "db.ahead")
    assert nessie("content", "put", "db.staged", "--type", "namespace").code == 0
    return nessie


@pytest.mark.parametrize("line", TYPED)
def test_what_git_users_type_works(daily, line) -> None:
    if line.startswith("revert"):
        assert daily("reset").code == 0
    ran = daily(*line.split())
    assert TYPED[line] in ran.expect(0).out


def test_a_short_status_has_a_letter_for_each_change_and_marks_conflicts(nessie, catalog) -> None:
    assert nessie("status", "-s") == (0, "", "")
    nessie("content", "put", "db.orders", "--metadata-location", "s3://mine")
    nessie("content", "rename", "db.items", 'db."it.ems"')
    nessie("content", "put", "db.new", "--type", "namespace")
    catalog.update("main", "db.orders", 9)
    catalog.create("main", "db.new")
    assert nessie("status", "--short").lines == [
        "MC db.orders",
        'R  db.items -> db."it.ems"',
        "AC db.new",
    ]
    nessie("reset")
    nessie("content", "delete", "db.orders")
    nessie("content", "unmodified", "db.items")
    assert nessie("status", "--short").lines == ["D  db.orders", "=  db.items"]


def test_a_message_that_looks_like_an_option_of_git_s_is_one(daily) -> None:
    assert daily("commit", "-m", "-a").code == 0
    assert daily("log", "-1", "--format", "%s").out == "-a\n"


TOLD = {
    "checkout main": "nessie switch",
    "checkout -b foo": "nessie switch -c",
    "checkout -- db.orders": "nessie reset KEY",
    "rev-parse HEAD": "nessie log -n 1 --format %H REV",
    "rev-parse --abbrev-ref HEAD": "nessie log -n 1 --format %H REV",
    "fetch": "a catalog is not cloned",
    "pull --rebase": "a catalog is not cloned",
    "push origin main": "a catalog is not cloned",
    "clone http://x": "nessie init --store",
    "ls-tree -r HEAD": "nessie content list --at REV",
    "rebase -i main": "nessie transplant main..BRANCH --onto NEW",
    "add -A": "nessie content put",
    "rm db.orders": "nessie content delete",
    "mv a b": "nessie content rename",
    "branch -M a b": "nessie branch -m OLD NEW",
    "branch -u origin/main": "no remote-tracking branches",
    "commit --amend": "nessie undo",
    "cherry-pick --abort": "a command with conflicts changes nothing",
    "cherry-pick --continue": "a command with conflicts changes nothing",
    "config --global user.name Ada": "here it is called 'author'",
    "init --bare": "nessie init --store URL",
    "log --follow db.orders": "nessie content history KEY",
    "log --pretty=short": "use oneline, or a template",
    "log -S x": "--filter searches operations",
    "merge --abort": "a command with conflicts changes nothing",
    "merge --ff-only feature": "nessie branch -f BRANCH FROM",
    "merge --squash feature": "nessie restore KEY --at FROM",
    "merge -X theirs feature": "--theirs KEY",
    "reset --hard HEAD~1": "nessie branch -f BRANCH REV",
    "reset --soft HEAD~1": "nessie undo",
    "restore --staged db.orders": "nessie reset KEY",
    "revert --abort": "a command with conflicts changes nothing",
    "checkout HEAD": "nessie switch",
    "log -n": "`nessie log --help` shows",
    "log -n -1": "-1 must be 0 or more",
    "log --onelin": "; did you mean --oneline?",
    "log main@{1}": "`nessie reflog REF` lists earlier hashes of a reference",
    "tag -f v1": "1 name given",
    "switch --detach main~1": "nessie switch -c NAME REV",
    "switch main~1": "nessie switch -c NAME 'main~1'",
    "switch HEAD": "nessie switch -c NAME 'HEAD'",
}
"""Words of git, and the hints with their names here."""


@pytest.mark.parametrize("line", TOLD)
def test_a_git_command_with_another_name_gets_one_line_with_ours(daily, line) -> None:
    before = daily("log", "--json").out
    ran = daily(*line.split())
    assert (ran.code, ran.out) == (2, ""), ran
    assert TOLD[line] in ran.err
    assert "Possible options" not in ran.err
    assert daily("log", "--json").out == before


def test_a_key_in_the_place_of_a_revision_gets_a_hint(daily) -> None:
    ran = daily("log", "db.orders")
    assert (ran.code, ran.err.splitlines()[1]) == (
        4,
        "db.orders is a key; keys follow --: `-- db.orders`",
    )


def test_a_remote_tracking_branch_gets_its_name_here(daily) -> None:
    ran = daily("log", "origin/feature").expect(4)
    assert ran.err.splitlines()[1].startswith("'feature' is its name here")


def test_stashes_are_numbered_as_in_git(daily) -> None:
    assert daily("stash").code == 0
    assert "1: the stash has 1 batch" in daily("stash", "pop", "stash@{1}").err
    assert daily("stash", "show", "stash@{0}").code == 0
    assert daily("stash", "pop", "stash@{0}").code == 0


def test_git_s_parent_option_of_a_revert_is_not_a_message(daily) -> None:
    assert daily("reset").code == daily("merge", "feature").code == 0
    before = daily("log", "--json").out
    ran = daily("revert", "-m", "1", "HEAD")
    ran.expect(2, "-m sets the message here")
    assert daily("log", "--json").out == before
    assert daily("revert", "HEAD").code == 0
    assert daily("revert", "-m", "1", "HEAD").code == 0, "of no merge"


def test_an_option_with_a_hint_is_not_an_option_of_nessie() -> None:
    from manual.tree import every, read
    from nessie_cli.cli.git_habits import HINTS

    known = {" ".join(command.path): command for command in every(read())}
    for command, option in HINTS:
        assert option not in {name for one in known[command].options for name in one.names}, command


def test_an_author_without_a_commit_is_refused(nessie, catalog) -> None:
    ran = nessie("content", "delete", "db.orders", "--author", "A")
    ran.expect(2, "--author needs -m")
    assert nessie("status", "--json").json["batch"]["operations"] == []
