"""`nessie fsck`."""

from itertools import chain, islice

import typer

from nessie_cli.cli.context import Invocation
from nessie_cli.render.problems import print_problems
from nessie_cli.wire.facts import problem

EXAMPLES = ("nessie fsck", "nessie fsck --json")
PROBLEMS_FOUND = 1


def fsck(ctx: typer.Context) -> None:
    """Verify every object, reference and link of the store.

    Also verifies the files, the reflog, the settings and the request ids. Problems are printed as they are found; the
    exit status is 1 if there are any.
    """
    call = Invocation.of(ctx)
    problems = call.repository().check()
    first = list(islice(problems, 1))
    problems = chain(first, problems)
    if call.wants_json:
        call.answer_listing("problems", map(problem, problems), clean=not first)
    elif first:
        print_problems(problems, call.out)
    else:
        call.say("clean: every object, reference and link is as it should be")
    if first:
        raise typer.Exit(PROBLEMS_FOUND)
