"""`nessie fsck`."""

import typer

from nessie_cli.cli.context import Invocation
from nessie_cli.render.problems import print_problems
from nessie_cli.wire.facts import problem

EXAMPLES = ("nessie fsck", "nessie fsck --json")
PROBLEMS_FOUND = 1


def fsck(ctx: typer.Context) -> None:
    """Verify every object, reference and link of the store.

    Exits with 1 and the list when something is wrong.
    """
    call = Invocation.of(ctx)
    problems = list(call.repository().check())
    if call.wants_json:
        call.answer({"clean": not problems, "problems": [problem(found) for found in problems]})
    elif problems:
        print_problems(problems, call.out)
    else:
        call.say("clean: every object, reference and link is as it should be")
    if problems:
        raise typer.Exit(PROBLEMS_FOUND)
