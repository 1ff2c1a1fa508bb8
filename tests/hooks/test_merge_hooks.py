"""`pre-merge` can refuse every merge and transplant; `post-merge` is notified."""

from __future__ import annotations

import pytest

from tests.hooks.conftest import RUN

WAYS = {
    "merge": ("merge", "dev"),
    "transplant": ("transplant", "main..dev"),
    "cherry-pick": ("cherry-pick", "dev"),
}


def details(document):
    return {
        ".".join(d["key"]["elements"]): (
            d["mergeBehavior"],
            d["target"] and d["target"]["snapshotId"],
            d["source"] and d["source"]["snapshotId"],
        )
        for d in document["details"]
    }


def test_the_hook_gets_source_target_and_the_result_of_each_key(dev, hooks, head):
    hooks.add("pre-merge")
    at = head("main")
    dev.ok("merge", "dev", "-m", "bring orders")

    given = hooks.given("pre-merge")

    assert (given["operation"], given["branch"], given["hash"], given["commonAncestor"]) == (
        "merge",
        "main",
        at,
        at,
    )
    assert given["source"] == {"type": "BRANCH", "name": "dev", "hash": head("dev")}
    assert given["commitMeta"]["message"] == "bring orders"
    assert details(given) == {"db.orders": ("NORMAL", 1, 2), "db.items": ("NORMAL", None, 7)}


def test_the_hook_of_a_transplant_gets_its_commits(dev, hooks):
    hooks.add("pre-merge")
    dev.ok("transplant", "main..dev")

    given = hooks.given("pre-merge")

    assert (given["operation"], given["commitMeta"]) == ("transplant", None)
    assert [commit["message"] for commit in given["commits"]] == ["change orders", "add items"]
    assert details(given) == {"db.orders": ("NORMAL", 1, 2), "db.items": ("NORMAL", None, 7)}


@pytest.mark.parametrize("way", WAYS)
def test_a_hook_can_refuse_unless_no_verify_is_given(dev, hooks, head, way):
    hooks.add("pre-merge", "echo not on Fridays >&2; exit 1")
    hooks.add("post-merge")
    before = head("main")

    refused = dev(*WAYS[way])

    assert (refused.code, refused.out) == (6, "")
    assert "not on Fridays\nnessie: the hook pre-merge refuses: exit code 1" in refused.err
    assert head("main") == before
    dev.ok(*WAYS[way], "--no-verify")
    assert head("main") != before
    assert hooks.ran == ["pre-merge", "post-merge"]


def test_post_merge_gets_the_result(dev, hooks, head):
    hooks.add("post-merge", "exit 1")

    done = dev.ok("merge", "dev")

    given = hooks.given("post-merge")
    assert given["result"]["wasApplied"]
    assert given["result"]["resultantTargetHash"] == head("main")
    assert "nessie: the hook post-merge failed: exit code 1; the change is kept" in done.err


def test_merges_do_not_run_commit_hooks(dev, hooks):
    for name in ("pre-commit", "post-commit"):
        hooks.add(name, "exit 1")
    dev.ok("merge", "dev")

    assert hooks.ran == []


def test_no_hook_runs_for_a_dry_run_a_conflict_or_no_change(dev, hooks):
    for name in ("pre-merge", "post-merge"):
        hooks.add(name)
    dev.ok("merge", "dev", "--dry-run")
    dev.ok("merge", "main", "--into", "dev")
    dev.table("db.orders", 3, "-m", "meanwhile")

    conflict = dev("merge", "dev")

    assert conflict.code == 3
    assert "VALUE_DIFFERS" in conflict.err
    assert hooks.ran == []


def test_the_merged_source_is_the_one_that_the_hook_saw(dev, hooks):
    hooks.add(
        "pre-merge", f"{RUN} content put late --type namespace -m 'behind the back' --ref dev"
    )
    dev.ok("merge", "dev")

    assert "behind the back" in dev.messages("dev")
    assert dev("content", "show", "late").code == 4
    assert dev.messages()[0] == "Merge branch 'dev' into main"
