"""What to say to an option that a command has elsewhere and not here. Loaded on the way to an error only."""

from __future__ import annotations

from collections.abc import Mapping

_ATOMIC = "nothing is ever half done here: a command with conflicts changes nothing, so there is nothing to take up or to give up"
_MOVES = "`nessie branch -f BRANCH REV` moves a branch, `nessie undo` takes its last move back; `nessie reset` only empties the batch"
_NO_REMOTE = "branches are where the store is; nothing is tracked or copied"
_ONE_LOG = "`nessie log -n 1 --stat REV` and its like show one commit in these forms"
_SETTINGS = "`nessie config list` shows what is set, `nessie config set KEY VALUE` sets it"

SAID: Mapping[str, Mapping[str, str]] = {
    "branch": {
        "-M": "`nessie branch -m OLD NEW` renames; `nessie branch -f NAME TARGET` points one elsewhere",
        "-u": _NO_REMOTE,
        "--set-upstream-to": _NO_REMOTE,
        "--unset-upstream": _NO_REMOTE,
        "--track": _NO_REMOTE,
        "-t": _NO_REMOTE,
        "--edit-description": "a branch has no description; commits have messages and properties",
    },
    "tag": {
        "-a": "a tag has no message of its own: `nessie tag NAME [REV]`",
        "--annotate": "a tag has no message of its own: `nessie tag NAME [REV]`",
        "-s": "tags are not signed: `nessie tag NAME [REV]`",
        "-n": "`nessie tag -v` lists tags with their commits",
    },
    "commit": {
        "--amend": "a commit never changes: `nessie undo` takes the last one back, `nessie revert HEAD` commits its inverse",
        "--fixup": "a commit never changes: `nessie revert COMMIT` commits its inverse",
        "-s": "--signed-off-by 'NAME <ADDRESS>' says who signed it off",
        "--signoff": "--signed-off-by 'NAME <ADDRESS>' says who signed it off",
        "--allow-empty": "a commit changes something; `nessie tag NAME` marks a state",
        "--date": "--author-time TIME says when the change was made",
        "-n": "--no-verify leaves the hooks out",
        "-C": "-F FILE reads the message from a file",
        "-c": "-F FILE reads the message from a file",
        "-p": "operations are staged one by one: `nessie reset KEY` takes one out",
        "--patch": "operations are staged one by one: `nessie reset KEY` takes one out",
    },
    "merge": {
        "--abort": _ATOMIC,
        "--continue": _ATOMIC,
        "--quit": _ATOMIC,
        "--ff-only": "a merge is always one commit with two parents; `nessie branch -f BRANCH FROM` moves a branch forward",
        "--ff": "a merge is always one commit with two parents; `nessie branch -f BRANCH FROM` moves a branch forward",
        "--squash": "`nessie restore KEY --source FROM -m MSG` takes a state over without its history; a merge keeps it",
        "--no-commit": "--dry-run shows what a merge would do, and writes nothing",
        "-X": "--theirs KEY and --ours KEY decide a key, --behavior force takes the source's side of all, --behavior drop the target's",
        "-s": "--behavior drop keeps the target's side of all keys, --behavior force takes the source's",
        "--strategy": "--behavior drop keeps the target's side of all keys, --behavior force takes the source's",
        "--allow-unrelated-histories": "--unrelated merges histories that share nothing",
    },
    "cherry-pick": {
        "--abort": _ATOMIC,
        "--continue": _ATOMIC,
        "--skip": _ATOMIC,
        "--quit": _ATOMIC,
        "-x": "messages are taken over as they are; -m MSG gives another one",
        "-e": "-m MSG gives another message",
        "--edit": "-m MSG gives another message",
        "-n": "--dry-run shows what would happen; `nessie restore KEY --source REV` stages",
        "--no-commit": "--dry-run shows what would happen; `nessie restore KEY --source REV` stages",
    },
    "revert": {"--abort": _ATOMIC, "--continue": _ATOMIC, "--skip": _ATOMIC, "-e": "-m MSG gives the message", "--edit": "-m MSG gives the message"},
    "reset": {"--hard": _MOVES, "--soft": _MOVES, "--mixed": _MOVES, "--keep": _MOVES, "--merge": _MOVES, "-p": "`nessie reset KEY` takes one out"},
    "restore": {"--staged": "`nessie reset KEY` takes what is staged for a key out", "-S": "`nessie reset KEY` takes what is staged for a key out"},
    "status": {"-u": "only what is staged has changed", "--ignored": "only what is staged has changed"},
    "switch": {
        "-d": "the current reference is a branch or a tag; `nessie switch -c NAME REV` makes a branch there, --ref REV reads there",
        "--detach": "the current reference is a branch or a tag; `nessie switch -c NAME REV` makes a branch there, --ref REV reads there",
        "-t": _NO_REMOTE,
        "--track": _NO_REMOTE,
        "-f": "what is staged comes along; `nessie stash` puts it aside first",
        "-m": "what is staged comes along always",
        "--orphan": "a branch without history begins at the empty one: `nessie switch -c NAME 2e1cfa82b035c26cbbbdae632cea0705`",
    },
    "diff": {
        "--numstat": "--stat tells which fields differ, and counts",
        "--shortstat": "--stat tells which fields differ, and counts",
        "--word-diff": "what differs is told field by field anyway; --color always",
        "--color-words": "what differs is told field by field anyway; --color always",
        "--merge-base": "A...B starts at the merge base",
    },
    "show": dict.fromkeys(("--stat", "--name-status", "--name-only", "--oneline", "--format", "--pretty", "-s", "--no-patch"), _ONE_LOG),
    "log": {
        "-S": "--filter CEL looks into operations: \"operations.exists(op, op.name == 'orders')\"",
        "-G": "--filter CEL looks into operations: \"operations.exists(op, op.name == 'orders')\"",
        "--follow": "`nessie content history KEY` follows a content through its renames",
        "--name-only": "--name-status tells the keys of each commit",
        "--shortstat": "--stat counts what each commit changed",
        "--numstat": "--stat counts what each commit changed",
        "--abbrev-commit": "hashes are short on a terminal and whole elsewhere; --format '%h %s' chooses",
        "--not": "A..B leaves out of B what A has",
        "--left-right": "A..B shows one side of A...B, B..A the other",
        "--cherry-mark": "A..B shows one side of A...B, B..A the other",
        "--date": "times are relative on a terminal and ISO elsewhere; --format '%ad %s' chooses",
        "--branches": "--all shows the commits of every branch and tag",
        "--tags": "--all shows the commits of every branch and tag",
        "--remotes": _NO_REMOTE,
        "-L": "`nessie content history KEY` shows the history of one content",
        "-g": "`nessie reflog` shows where a reference has been",
        "--walk-reflogs": "`nessie reflog` shows where a reference has been",
    },
    "init": {
        "--bare": "`nessie init --store URL` makes a workspace on a store that is elsewhere",
        "-b": "--default-branch NAME names it",
        "--initial-branch": "--default-branch NAME names it",
    },
    "config": {"--system": "--user is for your own settings", "-e": _SETTINGS, "--edit": _SETTINGS, "--get-regexp": _SETTINGS},
    "blame": {"-L": "`nessie blame PREFIX` shows the last commit of each key at and below it"},
}  # fmt: skip
"""By command, and by option."""
_EVERYWHERE: Mapping[str, str] = {"--no-color": "--color never is how it is said here, and NO_COLOR=1 in the environment"}
_OF_ROOT: Mapping[str, str] = {
    "-c": "`nessie config set KEY VALUE` keeps a setting; for one call there are options and variables of the environment",
    "-p": "long listings go through the pager anyway, on a terminal; NESSIE_PAGER says which",
}
_SAME = {"transplant": "cherry-pick"}
_WITHOUT_SOURCE = "--source REV says which state comes back; `nessie reset KEY` takes out what is staged for a key"


def hint_for(path: str, option: str | None, message: str) -> str:
    """The line for an option that a command has not, such as `nessie merge` and `--abort`; an empty text where there is none."""
    command = path.removeprefix("nessie ")
    if option is None:
        return _WITHOUT_SOURCE if command == "restore" and "--source" in message else ""
    name, _, _ = option.partition("=")
    said = _OF_ROOT if command == "nessie" else SAID.get(_SAME.get(command, command), {})
    return said.get(name) or _EVERYWHERE.get(name, "")
