"""Messages of errors for people.

Errors of a repository have the texts of Nessie's API, which JSON and the server send unchanged.
This module replaces those that a person meets often.
"""

from __future__ import annotations

import re

from nessie_cli.errors import NessieError, ReferenceConflict

MOST_CONFLICTS = 50
"""The number of conflicts printed for people. JSON has all of them."""

_TEXTS = (
    (r"Named reference '(.*)' not found", r"no branch or tag '\1'"),
    (r"Named reference '(.*)' already exists\.", r"'\1' already exists"),
    (r"Commit '(.*)' not found", r"no commit '\1'"),
    (
        r"Could not find commit '(.*)' in reference '(.*)'\.",
        r"commit '\1' is not in the first-parent history of '\2'",
    ),
    (r"Could not find content for key '(.*)' in reference '(.*)'\.", r"no key '\1' on '\2'"),
    (r"No common ancestor in parents of (\S+) and (\S+)", r"commits \1 and \2 share no history"),
    (
        r"Named-reference '(.*)' is not at expected hash '(.*)', but at '(.*)'\.",
        r"'\1' is not at the expected commit \2, but at \3",
    ),
    (
        r"The merge behavior for key (.*) has an unused resolvedContent attribute\.",
        (
            r"--resolve \1: the source has no content with this key. Hint: decide by --ours or"
            r" --theirs"
        ),
    ),
)
"""Texts of the API, and those for people."""


def message_for_people(error: NessieError, *, with_blocks: bool = False) -> str:
    """Returns the message of an error.

    `with_blocks` is set if a block for each conflict follows.
    """
    if isinstance(error, ReferenceConflict) and any(conflict.key for conflict in error.conflicts):
        return _of_conflicts(error, with_blocks=with_blocks)
    return text_for_people(error.message)


def text_for_people(message: str) -> str:
    """Returns the text for people that stands for a message of the API, or the message itself."""
    for pattern, text in _TEXTS:
        if match := re.fullmatch(pattern, message):
            return match.expand(text)
    return message


def _of_conflicts(error: ReferenceConflict, *, with_blocks: bool) -> str:
    from nessie_cli.render.text import counted

    if error.left:
        keys = ", ".join(map(str, error.left))
        return f"{counted(len(error.left), 'conflict')} left: {keys}; nothing was committed"
    count = len(error.conflicts) + error.more
    shown = f", of which {MOST_CONFLICTS} are shown" if count > MOST_CONFLICTS else ""
    if with_blocks or shown:
        return f"{counted(count, 'conflict')}{shown}; nothing was written"
    return error.message
