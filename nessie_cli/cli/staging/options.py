"""The options that the staging verbs share."""

from typing import Annotated

import typer
from msgspec import Struct

Message = Annotated[
    list[str] | None,
    typer.Option(
        "-m",
        "--message",
        metavar="MSG",
        help="Commit immediately with this message; repeat for paragraphs. Fails if other keys are"
        " staged.",
    ),
]
Author = Annotated[
    list[str] | None,
    typer.Option("--author", metavar="A", help="With -m: an author of the commit; repeatable."),
]
ExpectedHash = Annotated[
    str | None,
    typer.Option(
        "--expected-hash",
        metavar="HASH",
        help="Use the contents at this commit as the expected contents, and replace any staged"
        " operations on the keys of the command. Some conflict messages print a command"
        " with this option that resolves the conflict.",
    ),
]


class CommitOptions(Struct, frozen=True, kw_only=True):
    """The options of a verb that stages operations, and with `-m` commits them."""

    message: Message = None
    author: Author = None


class StagingOptions(CommitOptions, frozen=True, kw_only=True):
    """The options of a verb that stages operations on the state of its keys."""

    expected_hash: ExpectedHash = None
