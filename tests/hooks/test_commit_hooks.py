"""`pre-commit` can refuse every commit; `post-commit` is notified."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.hooks.conftest import RUN

TABLE = ("--type", "iceberg-table", "--metadata-location", "s3://lake/9.json", "--snapshot-id", "9")


def key(text):
    return {"elements": text.split(".")}


def test_the_hook_gets_each_change_with_contents_before_and_after(catalog, hooks, head):
    hooks.add("pre-commit")
    catalog.ok("content", "put", "db.new", *TABLE)
    catalog.table("db.orders", 5)
    catalog.ok("content", "unmodified", "db")
    begun = head("main")
    catalog.ok("commit", "-m", "three", "--author", "Ada <ada@example.org>", "--property", "run=42")

    given = hooks.given("pre-commit")

    assert list(given) == [
        "hook",
        "operation",
        "branch",
        "hash",
        "expectedHash",
        "commitMeta",
        "operations",
    ]
    assert (given["hook"], given["operation"], given["branch"], given["hash"]) == (
        "pre-commit",
        "commit",
        "main",
        begun,
    )
    meta = given["commitMeta"]
    assert (meta["message"], meta["authors"], meta["allProperties"]) == (
        "three",
        ["Ada <ada@example.org>"],
        {"run": ["42"]},
    )
    operations = {".".join(o["key"]["elements"]): o for o in given["operations"]}
    assert {name: o["type"] for name, o in operations.items()} == {
        "db.new": "PUT",
        "db.orders": "PUT",
        "db": "UNCHANGED",
    }
    assert (operations["db.new"]["before"], operations["db.new"]["after"]["snapshotId"]) == (
        None,
        9,
    )
    orders = operations["db.orders"]
    assert (orders["before"]["snapshotId"], orders["after"]["snapshotId"]) == (1, 5)
    assert orders["before"]["id"] == orders["after"]["id"]
    assert operations["db"]["before"] == operations["db"]["after"] != None  # noqa: E711


def test_a_deletion_has_no_content_after_it(catalog, hooks):
    hooks.add("pre-commit")
    catalog.ok("content", "delete", "db.orders", "-m", "gone")

    (operation,) = hooks.given("pre-commit")["operations"]

    assert (operation["type"], operation["before"]["snapshotId"], operation["after"]) == (
        "DELETE",
        1,
        None,
    )


def test_a_refused_commit_changes_nothing_and_stays_staged(catalog, hooks, head):
    hooks.add("pre-commit", "echo 'orders are frozen' >&2; exit 3")
    catalog.table("db.orders", 2)
    before = head("main")

    refused = catalog("commit", "-m", "second")

    assert (refused.code, refused.out) == (6, "")
    assert "orders are frozen" in refused.err
    assert "nessie: the hook pre-commit refuses: exit code 3" in refused.err
    assert head("main") == before
    assert catalog.staged() == [("PUT", "db.orders")]

    hooks.add("pre-commit")
    catalog.ok("commit", "-m", "second")
    assert catalog.messages() == ["second", "first tables"]


def test_the_refusal_is_the_only_document_on_stdout(catalog, hooks):
    hooks.add("pre-commit", "echo told; exit 1")
    refused = catalog("content", "put", "db.new", *TABLE, "-m", "second", "--json")

    assert refused.code == 6
    assert (refused.error["status"], refused.error["errorCode"]) == (403, "FORBIDDEN")
    assert "told" in refused.err


@pytest.mark.parametrize(
    "args",
    [
        ("content", "put", "db.new", *TABLE, "-m", "x"),
        ("content", "delete", "db.orders", "-m", "x"),
        ("content", "rename", "db.orders", "db.renamed", "-m", "x"),
        ("content", "replace", "db.orders", *TABLE, "-m", "x"),
        ("commit", "--batch", "-", "-m", "x"),
    ],
    ids=lambda args: " ".join(args[:2]),
)
def test_every_way_to_commit_runs_the_hook_unless_no_verify_is_given(catalog, hooks, head, args):
    hooks.add("pre-commit", "exit 1")
    hooks.add("post-commit")
    given = json.dumps([{"type": "DELETE", "key": key("db.orders")}])
    before = head("main")

    assert catalog(*args, stdin=given).code == 6
    assert head("main") == before
    assert hooks.ran == ["pre-commit"]

    catalog("reset")
    catalog.ok(*args, "--no-verify", stdin=given)
    assert head("main") != before
    assert hooks.ran == ["pre-commit", "post-commit"]


def test_post_commit_gets_the_result_and_its_failure_changes_nothing(catalog, hooks, head):
    hooks.add("pre-commit")
    hooks.add("post-commit", "echo broken pipe to the bot >&2; exit 9")

    done = catalog.ok("content", "put", "db.new", *TABLE, "-m", "second", "--json")

    given = hooks.given("post-commit")
    assert given["result"] == {k: v for k, v in done.json.items() if k != "wasRepeated"}
    assert given["result"]["targetBranch"]["hash"] == head("main")
    assert {**given, "hook": "pre-commit"} == {
        **hooks.given("pre-commit"),
        "result": given["result"],
    }
    assert (
        "broken pipe to the bot\nnessie: the hook post-commit failed: exit code 9; the change"
        " is kept" in done.err
    )
    assert hooks.ran == ["pre-commit", "post-commit"]


def test_a_hook_runs_in_the_workspace_with_store_and_branch_in_its_environment(catalog, hooks):
    hooks.add("pre-commit", "pwd; env | grep NESSIE_ | sort")
    inner = catalog.folder / "inner"
    inner.mkdir()
    catalog.ok("branch", "dev")

    done = catalog.ok("content", "put", "db.new", *TABLE, "-m", "x", "--ref", "dev", cwd=inner)

    store = f"sqlite:///{catalog.folder}/.nessie/store.sqlite"
    assert done.err.splitlines() == [
        str(catalog.folder),
        "NESSIE_HOOK=pre-commit",
        "NESSIE_REF=dev",
        f"NESSIE_STORE={store}",
    ]


def test_invalid_commits_are_refused_before_any_hook_runs(catalog, hooks):
    hooks.add("pre-commit")
    catalog.table("db.orders", 5)
    catalog.ok(
        "commit",
        "--batch",
        "-",
        "-m",
        "meanwhile",
        "--no-verify",
        stdin=json.dumps([{"type": "DELETE", "key": key("db.orders")}]),
    )

    assert catalog("commit", "-m", "mine").code == 3
    assert (
        catalog(
            "commit",
            "--batch",
            "-",
            "-m",
            "x",
            "--ref",
            "absent",
            stdin=json.dumps([{"type": "DELETE", "key": key("db")}]),
        ).code
        == 4
    )
    assert (
        catalog(
            "commit",
            "--batch",
            "-",
            "-m",
            "x",
            stdin=json.dumps([{"type": "DELETE", "key": key("absent")}]),
        ).code
        != 0
    )
    assert hooks.ran == []


def test_no_hook_runs_for_a_dry_run_or_for_status(catalog, hooks):
    for name in ("pre-commit", "post-commit"):
        hooks.add(name)
    catalog.table("db.orders", 5)
    catalog.ok("commit", "-m", "x", "--dry-run")
    catalog.ok("status")

    assert hooks.ran == []


def test_a_hook_that_is_not_executable_is_ignored_with_a_hint(catalog, hooks):
    hooks.add("pre-commit", "exit 1").chmod(0o644)

    done = catalog.ok("content", "put", "db.new", *TABLE, "-m", "x")

    path = ".nessie/hooks/pre-commit"
    assert (
        done.err
        == f"hint: the hook {path} is ignored because it is not executable; `chmod +x {path}`\n"
    )


def test_a_hook_that_cannot_run_refuses_with_the_reason(catalog, hooks):
    hooks.write("pre-commit", "exit 0\n")
    refused = catalog("content", "put", "db.new", *TABLE, "-m", "x")

    assert refused.code == 6
    assert "pre-commit: the hook cannot be run: Exec format error" in refused.err

    (hooks.folder / "pre-commit").rename(hooks.folder / "post-commit")
    done = catalog.ok("commit", "-m", "x")
    assert "post-commit: the hook cannot be run" in done.err


def test_a_hook_that_ends_by_a_signal_refuses(catalog, hooks):
    hooks.add("pre-commit", "kill -KILL $$")
    refused = catalog("content", "put", "db.new", *TABLE, "-m", "x")

    assert refused.code == 6
    assert "ended by SIGKILL" in refused.err


def test_a_hook_need_not_read_its_input(catalog, hooks):
    hooks.write("pre-commit", "#!/bin/sh\nexit 0\n")
    many = [
        {
            "type": "PUT",
            "key": key(f"space{n}"),
            "content": {"type": "NAMESPACE", "elements": [f"space{n}"]},
        }
        for n in range(2000)
    ]

    catalog.ok("commit", "--batch", "-", "-m", "many", stdin=json.dumps(many))


def test_pre_commit_can_read_the_catalog_but_not_stage(catalog, hooks):
    hooks.add(
        "pre-commit",
        f"{RUN} content show db.orders; {RUN} status; {RUN} content put late --type namespace;"
        " echo code $?",
    )
    catalog.table("db.orders", 2)

    done = catalog.ok("commit", "-m", "x")

    assert "iceberg-table" in done.err
    assert "update     db.orders" in done.err
    assert "cannot be changed while its hook pre-commit runs" in done.err
    assert "code 6" in done.err


def test_post_commit_can_commit_without_running_hooks(catalog, hooks):
    for name in ("pre-commit", "post-commit"):
        hooks.add(
            name,
            f"{RUN} content put log --type namespace -m 'by hook'" if name == "post-commit" else "",
        )
    catalog.ok("content", "put", "db.new", *TABLE, "-m", "mine")

    assert catalog.messages() == ["by hook", "mine", "first tables"]
    assert hooks.ran == ["pre-commit", "post-commit"]


def hanging(nessie, *args):
    """Starts the command in its own process group, and waits until its hook runs. Returns the
    file in which the hook wrote its process id."""
    marker = nessie.folder / "pid"
    process = subprocess.Popen(
        nessie.command(*args),
        cwd=nessie.folder,
        env=nessie.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    deadline = time.monotonic() + 60
    while not (marker.exists() and marker.read_text().strip()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return process, int(marker.read_text())


@pytest.mark.parametrize("whom", ["nessie", "its process group, as a terminal does"])
def test_ctrl_c_ends_a_hanging_hook_and_commits_nothing(catalog, hooks, head, whom):
    # exec, so that the process id is that of the hanging program.
    hooks.write("pre-commit", "#!/bin/sh\necho $$ > pid\nexec sleep 600\n")
    catalog.table("db.orders", 2)
    before = head("main")
    process, hook = hanging(catalog, "commit", "-m", "x")

    # Meanwhile, the workspace can be read.
    assert catalog.staged() == [("PUT", "db.orders")]

    (os.kill if whom == "nessie" else os.killpg)(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=120)

    assert (process.returncode, out, err) == (130, "", "")
    assert is_over(hook)
    assert head("main") == before
    (hooks.folder / "pre-commit").unlink()
    catalog.ok("commit", "-m", "x")


def test_a_hook_that_ignores_sigterm_is_killed(catalog, hooks):
    hooks.write(
        "pre-commit", "#!/bin/sh\ntrap '' INT TERM\necho $$ > pid\nwhile :; do sleep 0.2; done\n"
    )
    catalog.table("db.orders", 2)
    process, hook = hanging(catalog, "commit", "-m", "x")

    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=120)

    assert process.returncode == 130
    assert is_over(hook)


def is_over(process):
    """Returns whether a process has exited, or is a zombie."""
    try:
        return (
            Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
            == "Z"
        )
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_without_hooks_their_modules_are_not_loaded(catalog):
    program = (
        "import sys\nfrom nessie_cli.cli.main import run\ncode = run(sys.argv[1:])\nprint(code,"
        " 'nessie_cli.cli.hooks' in sys.modules)"
    )

    def loaded():
        command = [
            *catalog.command()[:1],
            "-c",
            program,
            "content",
            "put",
            "log",
            "--type",
            "namespace",
            "-m",
            "x",
        ]
        return subprocess.run(
            command,
            cwd=catalog.folder,
            env=catalog.environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    assert loaded().splitlines()[-1] == "0 False"
    (catalog.folder / ".nessie/hooks").mkdir()
    assert loaded().splitlines()[-1].endswith("True")


def test_a_setting_of_the_repository_runs_no_hook(catalog, hooks):
    hooks.add("post-commit")
    catalog.ok("config", "set", "protect.release/*", "no-delete", "--repository")
    assert hooks.ran == []
