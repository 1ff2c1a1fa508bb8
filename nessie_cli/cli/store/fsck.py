"""`nessie fsck`."""

from collections.abc import Iterator
from itertools import chain, islice
from typing import Self

from msgspec import Struct, structs

from nessie_cli import model
from nessie_cli.cli.app.global_options import carried
from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Listing, Records, Result
from nessie_cli.cli.errors.resolutions import command_line
from nessie_cli.render.problems import print_problems
from nessie_cli.repository.store_repository import require_store

EXAMPLES = ("nessie fsck", "nessie fsck --json")


class Options(Struct, frozen=True, kw_only=True):
    """Verify every object, reference and link of the store.

    A link leads from an object to another one, such as from a commit to its parent. Also verifies
    the SQLite file, the reflog, the settings and the request ids. Problems are printed as they are
    found. The exit status is 1 if there are any, and 7 if the store is too damaged to be opened. If
    the objects are intact, also searches for content ids under several keys, in all references
    (with the command that repairs a branch) and in history. Repair every branch: a merge or
    transplant from it can pass the second key on. Needs direct access to the store.
    `nessie audit` checks the files of tables.
    """


class Problem(Struct):
    """A defect that `nessie fsck` found; `where` is an object id or a reference name."""

    kind: str
    where: str
    message: str

    @classmethod
    def of(cls, problem: model.Problem) -> Self:
        """Returns the struct of a problem."""
        return cls(problem.kind.value, problem.where, problem.message)


class Checked(Listing, frozen=True, kw_only=True):
    """The problems of the store; `clean` if there are none."""

    listing = "problems"
    clean: bool
    problems: Records[Problem]


class CheckedResult(Result, frozen=True):
    """The problems of the store."""

    document: Checked
    problems: Iterator[model.Problem]

    @property
    def exit_code(self) -> int:
        """1 if there are problems."""
        return 0 if self.document.clean else 1


def run(options: Options, app: Invocation) -> CheckedResult:  # noqa: ARG001 - the shape of a command
    """Verifies the store until the first problem.

    The others are found while the result is printed.
    """
    repository = app.repository()
    store = require_store(
        repository,
        f"server {repository.url}: a server's store is checked where it is, by `nessie fsck --store"
        " URL` there",
    )
    problems = (_with_hint(app, problem) for problem in store.check())
    first = list(islice(problems, 1))
    every = chain(first, problems)
    return CheckedResult(Checked(clean=not first, problems=map(Problem.of, every)), every)


def _with_hint(app: Invocation, problem: model.Problem) -> model.Problem:
    """Adds the command that repairs a problem to its message, if there is one."""
    if problem.replaceable is None:
        return problem
    branch, key = problem.replaceable
    replacement = ["content", "replace", "-m", "new content id", "--ref", branch, "--", str(key)]
    command = command_line(*carried(app.options), *replacement)
    hint = f"Hint: `{command}` gives {key} a new content id"
    return structs.replace(problem, message=f"{problem.message}. {hint}")


def show(result: CheckedResult, output: Output) -> None:
    """Prints a line for each problem."""
    if result.document.clean:
        output.say("clean: every object, reference and link is intact")
    else:
        print_problems(result.problems, output.out)
