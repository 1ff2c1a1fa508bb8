"""What becomes of the words of a command line before they are parsed.

Aliases are replaced, and what users of git and pynessie are used to type is written as this program spells it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from nessie_cli.cli.options import command_position
from nessie_cli.cli.registry import COMMANDS

Words = list[str]


def rewritten(argv: Sequence[str]) -> tuple[str, ...]:
    """The command line as it is parsed. Raises `InvalidInput` for an alias that can never work; settings are read for unknown commands only."""
    words = list(argv)
    position = command_position(words)
    if position is None:
        return tuple(words)
    if words[position] not in COMMANDS:
        from nessie_cli.cli.aliases import expansion

        words = words[:position] + expansion(words, position)
        position = command_position(words)
    habit = HABITS.get(words[position]) if position is not None else None
    return tuple(words if habit is None or position is None else words[: position + 1] + habit(words[position + 1 :]))


def _config(words: Words) -> Words:
    """`config --get K` and its like, `config K`, and options before the verb."""
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
        return [verbs[words[0]], *words[1:], *(["--add"] if words[0] == "--add" and words[1:2] and words[1] in _LISTS else []), *before]
    known = COMMANDS["config"].children or {}
    if words[0].startswith("-") or words[0] in known:
        return [words[0], *before, *_values_last(words[1:])]
    count = sum(word not in scopes for word in words)
    verbs_by_count = {1: ["get"], 2: ["set"]}
    return [*verbs_by_count.get(count, []), *_values_last(words), *before]


_LISTS = frozenset({"safe-directories", "trusted-endpoints", "allow-http"})
"""Settings that hold several values; --add sets any other one."""
_SCOPES = {"--global": "--user", "--local": "--workspace"}
"""What git calls them."""


def _values_last(words: Words) -> Words:
    """Behind `--` what cannot be an option: a value of several words that begins with one, such as that of an alias."""
    if not any(word.startswith("-") and " " in word for word in words) or "--" in words:
        return words
    options = [word for word in words if word.startswith("-") and " " not in word]
    return [*options, "--", *(word for word in words if word not in options)]


def _stash(words: Words) -> Words:
    """`stash` alone pushes, and so does git's older `stash save MSG`; `stash@{1}` is the one with this number."""
    if words[:1] == ["save"]:
        message = " ".join(word for word in words[1:] if not word.startswith("-"))
        return ["push", *(word for word in words[1:] if word.startswith("-")), *(["-m", message] if message else [])]
    words = [word[7:-1] if word.startswith("stash@{") and word.endswith("}") else word for word in words]
    return ["push", *words] if not words or (words[0].startswith("-") and words[0] not in ("--help", "-h")) else words


def _log(words: Words) -> Words:
    """`log -5`."""
    found: Words = []
    for position, word in enumerate(words):
        if word == "--":
            return found + words[position:]
        is_value = "-n" in words or (position > 0 and words[position - 1] in _LOG_VALUES)
        number = not is_value and word[:1] == "-" and word[1:].isdecimal() and word.isascii()
        found += ["-n", word[1:]] if number else [word]
    return found


_LOG_VALUES = frozenset(
    {"-n", "--skip", "--since", "--until", "--after", "--before", "--author", "--committer", "--grep", "--filter", "--format", "--pretty"}
)
_REVISION_OPTIONS = frozenset({"--merged", "--no-merged", "--contains", "--no-contains", "--points-at"})


def _listing(words: Words) -> Words:
    """`--merged` and its like without a revision mean the current reference; a deletion by force is one that does not ask."""
    found: Words = []
    if {"-d", "--delete"} & set(words) and {"-f", "--force"} & set(words):
        words = ["-D", *(word for word in words if word not in ("-d", "--delete", "-f", "--force"))]
    for position, word in enumerate(words):
        found.append(word)
        if word in _REVISION_OPTIONS:
            following = words[position + 1 : position + 2]
            found += ["HEAD"] if not following or following[0].startswith("-") else []
    return found


def _branch(words: Words) -> Words:
    """As for `tag`, unless `-c` copies a branch: then no other option says what to do."""
    other = {"-d", "-D", "--delete", "-f", "--force", "-m", "--move"} & set(words)
    return _listing(_guarded(words) if other else words)


def _tag(words: Words) -> Words:
    """`-c` is the expected hash, as in pynessie."""
    return _listing(_guarded(words))


def _guarded(words: Words) -> Words:
    end = words.index("--") if "--" in words else len(words)
    return ["--expected-hash" if word == "-c" and place < end else word for place, word in enumerate(words)]


def _content(words: Words) -> Words:
    """The `-r REF` of pynessie and its `content commit`: with `-R` a deletion, else a put of the content that stdin holds (`-i`)."""
    if words[:1] not in (["commit"], ["view"], ["list"]):
        return words
    end = words.index("--") if "--" in words else len(words)
    found = ["--ref" if word == "-r" and place < end else word for place, word in enumerate(words)]
    if found[0] != "commit":
        return found
    options = {"-c": "--expected-hash", "--condition": "--expected-hash"}
    flags = {"-R", "--remove-key", "-i", "--stdin", "-s", "--expect-same-content"}
    rest = [options.get(word, word) for word in found[1:] if word not in flags]
    if {"-R", "--remove-key"} & set(found):
        return ["delete", *rest]
    return ["put", *rest, "--content", "-"] if {"-i", "--stdin"} & set(found) else words


def _reset(words: Words) -> Words:
    """The `reset --hard`, `reset HEAD` and `reset HEAD KEY` of git: the batch is all that there is to reset."""
    end = words.index("--") if "--" in words else len(words)
    found = [word for word in words[:end] if word not in _HOW_TO_RESET]
    how = len(found) < end
    if found[:1] in (["HEAD"], ["@"]):
        found = found[1:]
    moves = how and any(not word.startswith("-") for word in found)
    return words if moves else found + words[end:]


_HOW_TO_RESET = frozenset({"--hard", "--mixed", "--soft"})


def _reflog(words: Words) -> Words:
    """`reflog show REF`."""
    return words[1:] if words[:1] == ["show"] else words


MEANT_ANYWAY: Mapping[str, Sequence[str]] = {
    "branch": ("-a", "--all", "-r", "--remotes"),
    "commit": ("-a", "--all"),
    "fsck": ("--full", "--strict"),
    "log": ("--decorate",),
    "merge": ("--no-ff", "--no-edit", "--commit"),
    "revert": ("--no-edit",),
    "show": ("-p", "--patch"),
    "stash push": ("-u", "--include-untracked"),
    "stash show": ("-p", "--patch"),
}
"""Options of git's that ask for what a command does in any case: a commit takes all that is staged, a merge is a commit, no branch is remote."""

HABITS: dict[str, Callable[[Words], Words]] = {
    "branch": _branch,
    "config": _config,
    "content": _content,
    "log": _log,
    "reflog": _reflog,
    "reset": _reset,
    "stash": _stash,
    "tag": _tag,
}
