"""The message for an unknown command: a similar command, or the equivalent of a git command."""

from __future__ import annotations

from collections.abc import Sequence

from nessie_cli.cli.errors.suggestions import did_you_mean
from nessie_cli.cli.git_habits import hint_for_command
from nessie_cli.cli.help.pages import topics
from nessie_cli.errors import NessieError


def unknown_command(arguments: Sequence[str], commands: Sequence[str], path: str) -> str:
    """Returns the message for unknown words.

    `path` is the command before them, such as `nessie content`.
    """
    word = arguments[0]
    of_root = path == "nessie"
    if of_root and (hint := hint_for_command(arguments)):
        return f"no such command '{word}': {hint}"
    if of_root and word in topics():
        return (
            f"no such command '{word}': it is a topic of the manual; `nessie help {word}` shows it"
        )
    return (
        "no such command"
        f" '{word}'{did_you_mean(word, [*commands, *(_own_words() if of_root else ())])}"
    )


def _own_words() -> Sequence[str]:
    """Returns aliases and plug-ins. Errors in the settings are ignored; commands report them."""
    from nessie_cli.cli.app.aliases import aliases
    from nessie_cli.cli.app.plugins import plugins
    from nessie_cli.workspace.folder import working_folder

    try:
        return [*aliases(working_folder()), *plugins()]
    except NessieError:
        return list(plugins())
