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


def hint_for_command(arguments: Sequence[str]) -> str:
    """Returns the hint for a missing command, or ""."""
    return COMMANDS_OF_GIT.get(" ".join(arguments[:2])) or COMMANDS_OF_GIT.get(arguments[0], "")


def rewritten(arguments: Sequence[str]) -> list[str]:
    """Returns a git command line in the syntax of this program."""
    position = command_position(arguments)
    rewrite = _REWRITES.get(arguments[position]) if position is not None else None
    if rewrite is None or position is None:
        return list(arguments)
    return [*arguments[: position + 1], *rewrite(list(arguments[position + 1 :]))]


def _config(arguments: Words) -> Words:
    """`config KEY`, `config KEY VALUE`, `--get KEY`, `--list`, and options before the verb."""
    verbs = {"--get": "get", "--add": "set", "--unset": "unset", "-l": "list", "--list": "list"}
    scopes = ("--user", "--repository", "--workspace", "--json", "--jsonl")
    end = arguments.index("--") if "--" in arguments else len(arguments)
    arguments = [
        _SCOPES.get(argument, argument) if place < end else argument
        for place, argument in enumerate(arguments)
    ]
    before = []
    while arguments and arguments[0] in scopes:
        before.append(arguments.pop(0))
    if not arguments:
        return ["list", *before] if before else []
    if arguments[0] in verbs:
        return [
            verbs[arguments[0]],
            *arguments[1:],
            *(
                ["--add"]
                if arguments[0] == "--add" and arguments[1:2] and arguments[1] in _LISTS
                else []
            ),
            *before,
        ]
    children = COMMANDS["config"].children or {}
    if arguments[0].startswith("-") or arguments[0] in children:
        return [arguments[0], *before, *_values_last(arguments[1:])]
    count = sum(argument not in scopes for argument in arguments)
    verbs_by_count = {1: ["get"], 2: ["set"]}
    return [*verbs_by_count.get(count, []), *_values_last(arguments), *before]


_LISTS = frozenset({"safe-directories", "trusted-endpoints", "allow-http"})
"""Settings with several values. --add replaces the value of any other setting."""
_SCOPES = {"--global": "--user", "--local": "--workspace"}


def _values_last(arguments: Words) -> Words:
    """Puts a multi-word value that begins like an option, such as that of an alias, after `--`."""
    if (
        not any(argument.startswith("-") and " " in argument for argument in arguments)
        or "--" in arguments
    ):
        return arguments
    options = [
        argument for argument in arguments if argument.startswith("-") and " " not in argument
    ]
    return [*options, "--", *(argument for argument in arguments if argument not in options)]


def _branch(arguments: Words) -> Words:
    """Rewrites as for `tag`, unless `-c` copies a branch because no other action is given."""
    other = {"-d", "-D", "--delete", "-f", "--force", "-m", "--move"} & set(arguments)
    return _tag(arguments) if other else _listing(arguments)


def _tag(arguments: Words) -> Words:
    """`-c` is the expected hash, as in the other commands."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return _listing(
        [
            "--expected-hash" if argument == "-c" and place < end else argument
            for place, argument in enumerate(arguments)
        ]
    )


def _listing(arguments: Words) -> Words:
    """`--merged` and similar filters default to HEAD; `-d -f` deletes without confirmation."""
    if {"-d", "--delete"} & set(arguments) and {"-f", "--force"} & set(arguments):
        arguments = [
            "-D",
            *(
                argument
                for argument in arguments
                if argument not in ("-d", "--delete", "-f", "--force")
            ),
        ]
    rewritten_arguments: Words = []
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=False):
        rewritten_arguments.append(argument)
        if argument in _OF_HEAD and (not following or following.startswith("-")):
            rewritten_arguments.append("HEAD")
    return rewritten_arguments


_OF_HEAD = frozenset({"--merged", "--no-merged", "--contains", "--no-contains", "--points-at"})


def _log(arguments: Words) -> Words:
    """`log -5`."""
    if not arguments or "-n" in arguments:
        return arguments
    end = arguments.index("--") if "--" in arguments else len(arguments)
    rewritten_arguments: Words = []
    for place, argument in enumerate(arguments):
        follows_value = place > 0 and arguments[place - 1] in _OPTIONS_OF_LOG
        is_count = (
            place < end
            and not follows_value
            and argument[:1] == "-"
            and argument[1:].isdecimal()
            and argument.isascii()
        )
        rewritten_arguments += ["-n", argument[1:]] if is_count else [argument]
    return rewritten_arguments


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


def _reset(arguments: Words) -> Words:
    """`reset --hard`, `reset HEAD` and `reset HEAD KEY`: only the staged batch can be reset."""
    how = {"--hard", "--mixed", "--soft"}
    end = arguments.index("--") if "--" in arguments else len(arguments)
    rest = [argument for argument in arguments[:end] if argument not in how]
    rest = rest[1:] if rest[:1] in (["HEAD"], ["@"]) else rest
    moves = (
        len(rest) < end
        and bool(how & set(arguments[:end]))
        and any(not argument.startswith("-") for argument in rest)
    )
    return arguments if moves else rest + arguments[end:]


def _stash(arguments: Words) -> Words:
    """`stash` means `stash push`; `stash@{1}` is the number of a batch."""
    arguments = [
        argument[7:-1] if argument.startswith("stash@{") and argument.endswith("}") else argument
        for argument in arguments
    ]
    return (
        ["push", *arguments]
        if not arguments or (arguments[0].startswith("-") and arguments[0] not in ("--help", "-h"))
        else arguments
    )


def _reflog(arguments: Words) -> Words:
    """`reflog show REF`."""
    return arguments[1:] if arguments[:1] == ["show"] else arguments


_REWRITES: Mapping[str, Callable[[Words], Words]] = {
    "branch": _branch,
    "config": _config,
    "log": _log,
    "reflog": _reflog,
    "reset": _reset,
    "stash": _stash,
    "tag": _tag,
}
