"""What a commit did, printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nessie_cli.cli.context import Invocation
    from nessie_cli.cli.submission import Submitted


def print_committed(call: Invocation, submitted: Submitted, branch: str) -> None:
    """One line, or the REST API's answer to a commit (with `wasApplied`, and `wasRepeated` where an earlier try had done it)."""
    result = submitted.result
    if call.wants_json:
        from nessie_cli.wire.facts import commit_with_facts

        call.answer(commit_with_facts(result) | {"wasRepeated": submitted.repeated})
        return
    from nessie_cli.render.spans import Span

    count = f"{submitted.operations} key{'' if submitted.operations == 1 else 's'}"
    if submitted.repeated:
        call.say("committed before, by a try whose answer was lost: ", Span(call.out.hash(result.reference.hash), "hash"), f" on {branch}, {count}")
    elif result.applied:
        call.say(Span(branch, "name"), " ", Span(call.out.hash(result.reference.hash), "hash"), f" {count}")
    else:
        call.say(f"would commit {count} to ", Span(branch, "name"), "; nothing was written")
