"""The message for an unknown command: the nearest command, or its counterpart here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from nessie_cli.cli.errors.suggestions import did_you_mean
from nessie_cli.errors import NessieError

ELSEWHERE: Mapping[str, str] = {
    "add": "content put",
    "annotate": "blame",
    "assign": "branch -f",
    "assign-branch": "branch -f",
    "assign-tag": "tag -f",
    "cat": "content show",
    "cat-file": "content show KEY [REV]",
    "checkout": "switch",
    "checkout -": "switch -",
    "checkout --": "reset KEY",
    "checkout -B": "switch -c",
    "checkout -b": "switch -c",
    "clone": "init --store",
    "create": "branch",
    "describe": "tag --merged REV",
    "drop": "content delete",
    "for-each-ref": "branch -l` or `nessie tag -l",
    "get": "content show",
    "grep": "content list --filter CEL",
    "ls": "content list",
    "ls-files": "content list",
    "ls-remote": "branch",
    "ls-tree": "content list --at REV",
    "merge-base": "diff A...B",
    "mv": "content rename",
    "name-rev": "branch --contains REV",
    "put": "content put",
    "remote": "config get store",
    "remote add": "config set store URL",
    "remote set-head": "switch",
    "remote set-url": "config set store URL",
    "remote show": "config get store",
    "rename": "content rename",
    "rev-list": "log --format %H REV",
    "rev-list --count": "log --format %H REV | wc -l",
    "rev-parse": "log -n 1 --format %H REV",
    "rev-parse --abbrev-ref": "branch --show-current",
    "rm": "content delete",
    "shortlog": "log --format %an | sort | uniq -c",
    "show-branch": "log --graph --all",
    "show-ref": "branch -l` or `nessie tag -l",
    "symbolic-ref": "branch --show-current",
    "unstage": "reset",
    "update-ref": "branch -f NAME TARGET",
    "use": "switch",
    "view": "content show",
    "whatchanged": "log --stat",
}
"""Commands of git, Dolt, lakeFS and pynessie, and their counterparts here."""
_NOTHING_TO_COPY = "a catalog is worked on where it is, so there is nothing to copy; --store URL or `nessie config set store URL` names it"
NOT_HERE: Mapping[str, str] = {
    "am": "`nessie commit --batch FILE` commits the operations of a file",
    "apply": "`nessie commit --batch FILE` commits the operations of a file",
    "archive": "`nessie content list --jsonl -v` writes out a state",
    "bisect": "`nessie log -- KEY` and `nessie content history KEY` find the commit that changed a content",
    "clean": "`nessie reset` empties the batch; nothing else is unfinished",
    "fetch": _NOTHING_TO_COPY,
    "filter-branch": "a commit never changes; `nessie revert` commits its inverse",
    "format-patch": "`nessie diff A B --json` and `nessie show --json` say what has changed",
    "notes": "a commit takes properties: `nessie commit --property K=V`",
    "pull": _NOTHING_TO_COPY,
    "push": _NOTHING_TO_COPY,
    "rebase": "a commit stays where it is; `nessie merge main` takes over what is there, `nessie transplant main..BRANCH --onto NEW` repeats commits",
    "submodule": _NOTHING_TO_COPY,
    "worktree": "a folder in which `nessie init --store URL` was run is a workspace of its own on the same store",
}
"""Commands without a counterpart, and what to do instead."""
INSIDE_STASH: Mapping[str, str] = {"branch": "switch -c NAME` and `nessie stash pop", "clear": "stash drop"}
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
"""The counterparts of words after `nessie content`."""


def unknown_command(words: Sequence[str], known: Sequence[str], path: str) -> str:
    """Returns the message for unknown words.

    `path` is the command before them, such as `nessie content`.
    """
    word = words[0]
    of_root = path == "nessie"
    table = ELSEWHERE if of_root else INSIDE_CONTENT if path.endswith(" content") else INSIDE_STASH if path.endswith(" stash") else {}
    if of_root and word in NOT_HERE:
        return f"no such command '{word}': {NOT_HERE[word]}"
    for said in (" ".join(words[:2]), word):
        if said in table:
            return f"no such command '{said}'; it is `nessie {table[said]}` here"
    return f"no such command '{word}'{did_you_mean(word, [*known, *(_own_words() if of_root else ())])}"


def _own_words() -> Sequence[str]:
    """Returns aliases and plug-ins. The commands that need the settings report their errors."""
    from nessie_cli.cli.aliases import aliases
    from nessie_cli.cli.plugins import plugins

    try:
        return [*aliases(Path.cwd()), *plugins()]
    except NessieError:
        return list(plugins())
