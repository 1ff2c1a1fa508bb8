"""What to say to a word that is no command: the nearest command or alias, or what another program's word is called here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from nessie_cli.cli.suggestions import did_you_mean
from nessie_cli.errors import NessieError

ELSEWHERE: Mapping[str, str] = {
    "add": "content put",
    "annotate": "blame",
    "assign": "branch -f",
    "assign-branch": "branch -f",
    "assign-tag": "tag -f",
    "cat": "content show",
    "checkout": "switch",
    "clone": "init --store",
    "create": "branch",
    "describe": "show",
    "drop": "content delete",
    "get": "content show",
    "ls": "content list",
    "mv": "content rename",
    "put": "content put",
    "rebase": "transplant",
    "remote": "config get store",
    "remote add": "config set store URL",
    "remote set-head": "switch",
    "remote set-url": "config set store URL",
    "remote show": "config get store",
    "rename": "content rename",
    "rm": "content delete",
    "unstage": "reset",
    "use": "switch",
    "view": "content show",
    "whatchanged": "log --stat",
}
"""What users of git, Dolt, lakeFS and the original's clients type, and the command that does it here."""
INSIDE_CONTENT: Mapping[str, str] = {
    "add": "content put",
    "commit": "content put KEY --content FILE -m MSG",
    "drop": "content delete",
    "get": "content show",
    "ls": "content list",
    "mv": "content rename",
    "remove": "content delete",
    "rm": "content delete",
    "log": "content history",
}
"""The same behind `nessie content`."""


def unknown_command(words: Sequence[str], known: Sequence[str], path: str) -> str:
    """The message for a word that is no command, and the words behind it; `path` is the command so far, such as `nessie content`."""
    word = words[0]
    of_root = path == "nessie"
    table = ELSEWHERE if of_root else INSIDE_CONTENT if path.endswith(" content") else {}
    for said in (" ".join(words[:2]), word):
        if said in table:
            return f"no such command '{said}'; it is `nessie {table[said]}` here"
    return f"no such command '{word}'{did_you_mean(word, [*known, *(_own_words() if of_root else ())])}"


def _own_words() -> Sequence[str]:
    """Aliases and plug-ins. Faults of the settings are told by the commands that need them."""
    from nessie_cli.cli.aliases import aliases
    from nessie_cli.cli.plugins import plugins

    try:
        return [*aliases(Path.cwd()), *plugins()]
    except NessieError:
        return list(plugins())
