"""The GitHub workflow of docs/guides/ci.md, step by step, with each possible result."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.ci.conftest import GITHUB, OTHER_CLIENT, Catalog, Runner
from tests.command.outcome import Outcome

JOB = GITHUB["jobs"]["load"]
BRANCH = "load-42-1"
VALUES = {
    "vars.NESSIE_ENDPOINT": None,
    "secrets.NESSIE_TOKEN": "a-token-that-is-secret",
    "github.run_id": "42",
    "github.run_attempt": "1",
    "github.token": "a-token-of-github",
}
"""Values of the workflow's expressions. The runner provides those of the catalog."""


def filled(environment: dict[str, str]) -> dict[str, str]:
    for name, value in VALUES.items():
        environment = {
            key: text.replace(f"${{{{ {name} }}}}", value) if value else text
            for key, text in environment.items()
        }
    left = {key: text for key, text in environment.items() if "${{" not in text}
    assert environment.keys() - left.keys() <= {"NESSIE_ENDPOINT"}
    return left


class Workflow(NamedTuple):
    """The steps with commands of this job, each run as GitHub runs it."""

    runner: Runner
    output: Path

    def run(self, *, first: str = "load", branch: str = BRANCH) -> dict[str, Outcome]:
        """Returns the outcomes of the steps from this one to the first that failed."""
        ran: dict[str, Outcome] = {}
        steps = [step for step in JOB["steps"] if "run" in step]
        assert [step["name"] for step in steps] == [
            "install",
            "load",
            "check merge",
            "report conflicts",
            "merge",
        ]
        names = [step["name"] for step in steps]
        for step in steps[names.index(first) :]:
            if step.get("if") and not self.holds(step["if"]):
                continue
            environment = filled({**JOB["env"], **step.get("env", {})}) | {
                "GITHUB_OUTPUT": str(self.output),
                "BRANCH": branch,
            }
            ran[step["name"]] = self.runner.run(step["run"], **environment)
            if ran[step["name"]].code:
                break
        return ran

    def holds(self, condition: str) -> bool:
        assert condition == "steps.check.outputs.code == '3'"
        return self.output.read_text(encoding="utf-8").splitlines() == ["code=3"]


@pytest.fixture
def workflow(runner: Runner, tmp_path: Path) -> Workflow:
    """`gh` replaces GitHub's program, and stores the issue that it should open."""
    runner.program(
        runner.programs / "gh",
        'test -n "$GH_TOKEN" && printf "%s\\n" "$@" >issue && cat conflicts.md >>issue',
    )
    output = tmp_path / "output"
    output.touch()
    return Workflow(runner, output)


def test_a_load_without_conflicts_is_merged_and_tagged(
    workflow: Workflow, catalog: Catalog
) -> None:
    before = catalog.table("main")
    ran = workflow.run()

    assert {name: how.code for name, how in ran.items()} == {
        "load": 0,
        "check merge": 0,
        "merge": 0,
    }, ran
    assert ran["check merge"].out == "keys to be merged: 1\n"
    assert catalog.names() == [f"{BRANCH}-done", "main"]
    assert catalog.table("main") == catalog.table(f"{BRANCH}-done") != before


def test_conflicts_become_an_issue_whose_commands_work(
    workflow: Workflow, catalog: Catalog
) -> None:
    workflow.runner.loads(meanwhile=OTHER_CLIENT)
    ran = workflow.run()

    assert {name: how.code for name, how in ran.items()} == {
        "load": 0,
        "check merge": 0,
        "report conflicts": 3,
    }, ran
    issue = (workflow.runner.folder / "issue").read_text(encoding="utf-8").splitlines()
    assert issue[:4] == ["issue", "create", "--title", f"nightly load: conflicts on {BRANCH}"]
    assert '* `sales.orders`: VALUE_DIFFERS, changed by bob@example.org in "by hand"' in issue
    commands = [line.strip("* `") for line in issue if line.startswith("  * ")]
    heads = [command.split()[:3] for command in commands]
    assert len(heads) == 2
    for head in heads:
        assert re.fullmatch(rf"nessie merge {BRANCH}@[0-9a-f]{{12}}", " ".join(head)), head
    assert catalog.table("main").snapshot_id == 5
    assert catalog.names() == [BRANCH, "main"]
    theirs = catalog.table(BRANCH)
    assert (
        workflow.runner.run(next(command for command in commands if "--theirs" in command)).code
        == 0
    )
    assert catalog.table("main") == theirs


@pytest.mark.parametrize("catalog", ["a file"], indirect=True)
def test_a_missing_branch_is_reported_and_ends_the_job(workflow: Workflow) -> None:
    ran = workflow.run(first="check merge", branch="nowhere")

    assert {name: how.code for name, how in ran.items()} == {"check merge": 4}
    assert ran["check merge"].out == "::error::Named reference 'nowhere' not found\n"


@pytest.mark.parametrize("catalog", ["a file"], indirect=True)
def test_an_unavailable_server_is_reported_and_ends_the_job(workflow: Workflow) -> None:
    workflow.runner.environment |= {"NESSIE_STORE": "http://127.0.0.1:9/api/v2"}
    ran = workflow.run(first="check merge")

    assert {name: how.code for name, how in ran.items()} == {"check merge": 7}
    assert ran["check merge"].out.startswith("::error::server http://127.0.0.1:9/api/v2: ")


@pytest.mark.parametrize("catalog", ["a server"], indirect=True)
def test_the_secret_is_only_in_the_environment(workflow: Workflow) -> None:
    ran = workflow.run()
    secret = VALUES["secrets.NESSIE_TOKEN"]
    assert secret

    assert not [name for name, how in ran.items() if secret in how.out + how.err]
    assert not [
        path
        for path in workflow.runner.folder.iterdir()
        if secret in path.read_text(encoding="utf-8")
    ]
    assert "secrets." not in "".join(step.get("run", "") for step in JOB["steps"])
