"""Command lines of git that this program spells differently.

A git option is accepted if it requests the default behavior of a command. A few command lines are
rewritten. Everything else is an error with a hint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from nessie_cli.cli.app.global_options import command_position
from nessie_cli.cli.registry import COMMANDS

Words = list[str]

ACCEPTED: Mapping[str, Sequence[str]] = {
    "branch": ("-a", "--all"),
    "commit": ("-a", "--all"),
    "log": ("--decorate",),
    "merge": ("--no-ff", "--no-edit"),
    "revert": ("--no-edit",),
    "show": ("-p", "--patch"),
    "tag": ("-a", "--annotate"),
}
"""Options without effect: a commit takes all staged changes, a merge always commits."""

_ATOMIC = "a command with conflicts changes nothing, so there is nothing to abort or continue"
_NO_REMOTE = "branches live in the store, so there are no remote-tracking branches"
_NO_SOURCE = "a commit is found by its hash, so omit the branch that has it"
_MOVES = (
    "`nessie branch -f BRANCH REV` moves a branch, `nessie undo` undoes its last move; `nessie"
    " reset` only unstages operations"
)

HINTS: Mapping[tuple[str, str], str] = {
    ("branch", "-M"): "`nessie branch -m OLD NEW` renames a branch",
    ("branch", "-u"): _NO_REMOTE,
    ("cherry-pick", "--abort"): _ATOMIC,
    ("cherry-pick", "--continue"): _ATOMIC,
    ("cherry-pick", "-s"): _NO_SOURCE,
    ("cherry-pick", "--source"): _NO_SOURCE,
    (
        "cherry-pick",
        "-n",
    ): "--dry-run shows what would happen; `nessie restore KEY --at REV` stages",
    (
        "commit",
        "--amend",
    ): "commits are immutable; `nessie undo` undoes the last one, `nessie revert HEAD` "
    "commits its inverse",
    ("init", "--bare"): "`nessie init --store URL` creates a workspace for another store",
    ("log", "--follow"): "`nessie content history KEY` follows a content across renames",
    ("log", "-S"): "--filter searches operations: \"operations.exists(op, op.name == 'orders')\"",
    ("merge", "--abort"): _ATOMIC,
    ("merge", "--continue"): _ATOMIC,
    (
        "merge",
        "--ff-only",
    ): "a merge is always a commit; `nessie branch -f BRANCH FROM` moves a branch forward",
    (
        "merge",
        "--squash",
    ): "`nessie restore KEY --at FROM -m MSG` restores a state without its history",
    (
        "merge",
        "-X",
    ): "--theirs KEY and --ours KEY decide one key, --behavior force takes theirs for all keys",
    ("reset", "--hard"): _MOVES,
    ("reset", "--soft"): _MOVES,
    ("restore", "--staged"): "`nessie reset KEY` unstages a key",
    ("revert", "--abort"): _ATOMIC,
    (
        "switch",
        "--detach",
    ): "`nessie switch -c NAME REV` creates a branch there, --ref REV reads there",
}
"""Hints for git options that a command does not have."""

_REMOTE = "a catalog is not cloned; --store URL or `nessie config set store URL` selects it"
COMMANDS_OF_GIT: Mapping[str, str] = {
    "add": "`nessie content put` stages a content",
    "checkout": "`nessie switch` changes the current reference",
    "checkout --": "`nessie reset KEY` unstages a key",
    "checkout -b": "`nessie switch -c` creates a branch and changes to it",
    "clone": "`nessie init --store URL` creates a workspace on a store",
    "fetch": _REMOTE,
    "ls-tree": "`nessie content list --at REV` lists the keys of a commit",
    "mv": "`nessie content rename` stages a rename",
    "pull": _REMOTE,
    "push": _REMOTE,
    "rebase": (
        "commits are immutable; `nessie transplant main..BRANCH --onto NEW` applies commits again"
    ),
    "remote": "`nessie config get store` prints the store",
    "rev-parse": "`nessie log -n 1 --format %H REV` prints the hash of a revision",
    "rm": "`nessie content delete` stages a deletion",
}
"""Hints for git commands that do not exist here."""


def hint_for_option(command: str, option: str) -> str:
    """Returns the hint for a missing option, or ""."""
    command = "cherry-pick" if command == "transplant" else command
    return HINTS.get((command, option.partition("=")[0]), "")


def hint_for_command(words: Sequence[str]) -> str:
    """Returns the hint for a missing command, or ""."""
    return COMMANDS_OF_GIT.get(" ".join(words[:2])) or COMMANDS_OF_GIT.get(words[0], "")


def rewritten(words: Sequence[str]) -> list[str]:
    """Returns a git command line in the syntax of this program."""
    position = command_position(words)
    rewrite = _REWRITES.get(words[position]) if position is not None else None
    if rewrite is None or position is None:
        return list(words)
    return [*words[: position + 1], *rewrite(list(words[position + 1 :]))]


def _config(words: Words) -> Words:
    """`config KEY`, `config KEY VALUE`, `--get KEY`, `--list`, and options before the verb."""
    verbs = {"--get": "get", "--add": "set", "--unset": "unset", "-l": "list", "--list": "list"}
    scopes = ("--user", "--repository", "--workspace", "--json", "--jsonl")
    end = words.index("--") if "--" in words else len(words)
    words = [_SCOPES.get(word, word) if place < end else word for place, word in enumerate(words)]
    before = []
    while words and words[0] in scopes:
        before.append(words.pop(0))
    if not words:
        return ["list", *before] if before else []
    if words[0] in verbs:
        return [
            verbs[words[0]],
            *words[1:],
            *(["--add"] if words[0] == "--add" and words[1:2] and words[1] in _LISTS else []),
            *before,
        ]
    known = COMMANDS["config"].children or {}
    if words[0].startswith("-") or words[0] in known:
        return [words[0], *before, *_values_last(words[1:])]
    count = sum(word not in scopes for word in words)
    verbs_by_count = {1: ["get"], 2: ["set"]}
    return [*verbs_by_count.get(count, []), *_values_last(words), *before]


_LISTS = frozenset({"safe-directories", "trusted-endpoints", "allow-http"})
"""Settings with several values. --add replaces the value of any other setting."""
_SCOPES = {"--global": "--user", "--local": "--workspace"}


def _values_last(words: Words) -> Words:
    """Puts a multi-word value that begins like an option, such as that of an alias, after `--`."""
    if not any(word.startswith("-") and " " in word for word in words) or "--" in words:
        return words
    options = [word for word in words if word.startswith("-") and " " not in word]
    return [*options, "--", *(word for word in words if word not in options)]


def _branch(words: Words) -> Words:
    """Rewrites as for `tag`, unless `-c` copies a branch because no other action is given."""
    other = {"-d", "-D", "--delete", "-f", "--force", "-m", "--move"} & set(words)
    return _tag(words) if other else _listing(words)


def _tag(words: Words) -> Words:
    """`-c` is the expected hash, as in the other commands."""
    end = words.index("--") if "--" in words else len(words)
    return _listing(
        [
            "--expected-hash" if word == "-c" and place < end else word
            for place, word in enumerate(words)
        ]
    )


def _listing(words: Words) -> Words:
    """`--merged` and similar filters default to HEAD; `-d -f` deletes without confirmation."""
    if {"-d", "--delete"} & set(words) and {"-f", "--force"} & set(words):
        words = ["-D", *(word for word in words if word not in ("-d", "--delete", "-f", "--force"))]
    found: Words = []
    for word, following in zip(words, [*words[1:], ""], strict=False):
        found.append(word)
        if word in _OF_HEAD and (not following or following.startswith("-")):
            found.append("HEAD")
    return found


_OF_HEAD = frozenset({"--merged", "--no-merged", "--contains", "--no-contains", "--points-at"})


def _log(words: Words) -> Words:
    """`log -5`."""
    if not words or "-n" in words:
        return words
    end = words.index("--") if "--" in words else len(words)
    found: Words = []
    for place, word in enumerate(words):
        follows_value = place > 0 and words[place - 1] in _OPTIONS_OF_LOG
        is_count = (
            place < end
            and not follows_value
            and word[:1] == "-"
            and word[1:].isdecimal()
            and word.isascii()
        )
        found += ["-n", word[1:]] if is_count else [word]
    return found


_OPTIONS_OF_LOG = frozenset(
    {
        "--max-count",
        "--number",
        "--skip",
        "--since",
        "--until",
        "--after",
        "--before",
        "--author",
        "--committer",
        "--grep",
        "--filter",
        "--format",
        "--pretty",
    }
)


def _reset(words: Words) -> Words:
    """`reset --hard`, `reset HEAD` and `reset HEAD KEY`: only the staged batch can be reset."""
    how = {"--hard", "--mixed", "--soft"}
    end = words.index("--") if "--" in words else len(words)
    found = [word for word in words[:end] if word not in how]
    found = found[1:] if found[:1] in (["HEAD"], ["@"]) else found
    moves = (
        len(found) < end
        and bool(how & set(words[:end]))
        and any(not word.startswith("-") for word in found)
    )
    return words if moves else found + words[end:]


def _stash(words: Words) -> Words:
    """`stash` means `stash push`; `stash@{1}` is the number of a batch."""
    words = [
        word[7:-1] if word.startswith("stash@{") and word.endswith("}") else word for word in words
    ]
    return (
        ["push", *words]
        if not words or (words[0].startswith("-") and words[0] not in ("--help", "-h"))
        else words
    )


def _reflog(words: Words) -> Words:
    """`reflog show REF`."""
    return words[1:] if words[:1] == ["show"] else words


_REWRITES: Mapping[str, Callable[[Words], Words]] = {
    "branch": _branch,
    "config": _config,
    "log": _log,
    "reflog": _reflog,
    "reset": _reset,
    "stash": _stash,
    "tag": _tag,
}
