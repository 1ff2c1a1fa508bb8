"""Every command and option, for completion. Written by `make docs` from the command tree; not to be edited.

A command is: the commands below it with their help, its options, what its words are, whether the last of them repeats, what stands behind `--`.
An option is: its names, what its value is (nothing for a flag; with `?` it may be left out), whether it can be repeated, its help.
"""
# ruff: noqa: E501
# fmt: off

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nessie_cli.cli.completion.line import Command, Option

SHARED: Sequence[Option] = (
    (("--store",), "store", False, "The store: sqlite:///path, a bare path, postgresql://..., http(s)://host/api/v2."),
    (("--profile",), "profile", False, "The store and reference of this profile of your configuration."),
    (("--ref",), "reference", False, "The reference to work on instead of the workspace's."),
    (("--color",), ("auto", "always", "never"), False, "Colour: auto, always or never."),
    (("-C",), "folder", True, "Work as if started in DIR."),
    (("--json",), "", False, "Print the result as one JSON document."),
    (("--jsonl",), "", False, "Print a listing as JSON, one document per line."),
    (("--no-pager",), "", False, "Never pipe a long listing into a pager."),
    (("-q", "--quiet"), "", False, "Print no remarks, only the result."),
    (("-v", "--verbose"), "", False, "Print more."),
    (("--debug",), "", False, "Show the traceback of a failure."),
    (("--help",), "", False, "Show what the command takes, with examples, and end."),
)

COMMANDS: Mapping[str, Command] = {
    "": (
        {"init": "Make a workspace here and, when there is none, its store.", "status": "Show the current reference, the staged batch, and what would conflict if it were committed now.", "switch": "Change the workspace's current reference.", "config": "List, read and change settings, profiles and aliases.", "content": "Show contents, and stage what the next commit does to them.", "reset": "Take operations out of the staged batch; nothing in the store changes.", "commit": "Commit the staged batch: all of it, or, when there is a conflict, nothing, and the batch stays.", "restore": "Stage what keys were at an earlier revision; -m commits it.", "revert": "Commit the inverse of a commit; what has changed since is a conflict.", "stash": "Put the staged batch aside, and take it up again.", "log": "Show the history, newest commit first.", "show": "Show one commit: what is said about it, and each content before and after.", "diff": "Show the contents that differ between two revisions, field by field.", "branch": "List, create, delete, rename or assign branches.", "tag": "List, create, delete, rename or assign tags.", "merge": "Merge the changes of a branch into another, as one commit.", "transplant": "Apply commits to a branch once more, each as a commit of its own.", "cherry-pick": "Apply commits to a branch once more, each as a commit of its own.", "blame": "Show for each key the commit that changed it last.", "reflog": "Show where a reference has been, by whom and why, newest first.", "undo": "Take the last move of a reference back, or bring a deleted one back.", "serve": "Serve the store by Nessie's REST API, v2 and v1, until the process is stopped.", "fsck": "Verify every object, reference and link of the store.", "help": "Show the manual page of a command or topic; without one that of nessie itself.", "completion": "Print the script that completes nessie's commands in a shell.", "version": "Print the versions of nessie, of Python and of the store's format."},
        (
            (("--version",), "", False, "Print the versions of nessie, of Python and of the store's format, and end."),
        ),
        (),
        False,
        "",
    ),
    "init": (
        {},
        (
            (("--default-branch",), "-", False, "The default branch of a store that is made."),
        ),
        ("folder",),
        False,
        "",
    ),
    "status": (
        {},
        (
        ),
        (),
        False,
        "",
    ),
    "switch": (
        {},
        (
            (("-c", "--create"), "-", False, "Make this branch first, at START or HEAD."),
        ),
        ("reference",),
        False,
        "",
    ),
    "config": (
        {"list": "List settings: name, value, and whose they are; without an option those of the workspace and yours.", "get": "Print the value of one setting; that of the workspace goes before yours.", "set": "Set one setting; comments and everything else in the file stay. Secrets are refused: they are never written.", "unset": "Remove one setting; everything else in the file stays."},
        (
        ),
        (),
        False,
        "",
    ),
    "config list": (
        {},
        (
            (("--user",), "", False, "Your own settings, for every workspace."),
            (("--workspace",), "", False, "The settings of this workspace."),
            (("--repository",), "", False, "The settings of the repository, which every client meets."),
        ),
        (),
        False,
        "",
    ),
    "config get": (
        {},
        (
            (("--user",), "", False, "Your own settings, for every workspace."),
            (("--workspace",), "", False, "The settings of this workspace."),
            (("--repository",), "", False, "The settings of the repository, which every client meets."),
        ),
        ("setting",),
        False,
        "",
    ),
    "config set": (
        {},
        (
            (("--user",), "", False, "Your own settings, for every workspace."),
            (("--workspace",), "", False, "The settings of this workspace."),
            (("--repository",), "", False, "The settings of the repository, which every client meets."),
        ),
        ("setting", "-"),
        False,
        "",
    ),
    "config unset": (
        {},
        (
            (("--user",), "", False, "Your own settings, for every workspace."),
            (("--workspace",), "", False, "The settings of this workspace."),
            (("--repository",), "", False, "The settings of the repository, which every client meets."),
        ),
        ("setting",),
        False,
        "",
    ),
    "content": (
        {"put": "Stage a content: create the key, or update it under the content id that it has.", "delete": "Stage the deletion of keys.", "rename": "Stage a rename: the content leaves one key for another and keeps its content id.", "replace": "Stage a drop and re-creation of one key: another content with its own id takes the place of the one there is.", "unmodified": "Stage the demand that keys are still as they are now when the batch is committed.", "show": "Show one content: its fields, content id, cache key, and its last change.", "history": "Show the commits that changed one content, newest first, with the fields that changed.", "list": "List the keys of the catalog with content type and content id; with -v or JSON the contents as well."},
        (
        ),
        (),
        False,
        "",
    ),
    "content put": (
        {},
        (
            (("--type",), ("iceberg-table", "iceberg-view", "namespace", "delta-table", "udf"), False, "iceberg-table, iceberg-view, namespace, delta-table or udf."),
            (("--metadata-location",), "file", True, "The metadata file; several for the history of a delta-table."),
            (("--snapshot-id",), "-", False, "iceberg-table: the current snapshot."),
            (("--schema-id",), "-", False, "iceberg-table and -view: the current schema."),
            (("--spec-id",), "-", False, "iceberg-table: the default partition spec."),
            (("--sort-order-id",), "-", False, "iceberg-table: the default sort order."),
            (("--version-id",), "-", False, "iceberg-view and udf: the current version."),
            (("--sql-text",), "-", False, "iceberg-view and udf: the definition."),
            (("--dialect",), "-", False, "iceberg-view and udf: the SQL dialect."),
            (("--signature-id",), "-", False, "udf: the signature."),
            (("--checkpoint-location",), "file", True, "delta-table: checkpoints, oldest first."),
            (("--last-checkpoint",), "file", False, "delta-table: the last checkpoint."),
            (("--property",), "-", True, "namespace: a property; repeat it."),
            (("--from-metadata",), "file", False, "Take everything from an Iceberg metadata file."),
            (("--content",), "file", False, "Take the content from a file of REST JSON."),
            (("--id",), "-", False, "The content id."),
            (("--new",), "", False, "Insist on creating: the key must not exist."),
            (("--existing",), "", False, "Insist on updating: the key must exist."),
            (("--expected-hash",), "hash", False, "Expect the key as it is at this commit, whatever was staged for it before; resolves a conflict."),
            (("-m", "--message"), "-", True, "Commit the whole batch in the same step."),
        ),
        ("key",),
        False,
        "",
    ),
    "content delete": (
        {},
        (
            (("--expected-hash",), "hash", False, "Expect the key as it is at this commit, whatever was staged for it before; resolves a conflict."),
            (("-m", "--message"), "-", True, "Commit the whole batch in the same step."),
        ),
        ("key",),
        True,
        "",
    ),
    "content rename": (
        {},
        (
            (("--expected-hash",), "hash", False, "Expect the key as it is at this commit, whatever was staged for it before; resolves a conflict."),
            (("-m", "--message"), "-", True, "Commit the whole batch in the same step."),
        ),
        ("key", "key"),
        False,
        "",
    ),
    "content replace": (
        {},
        (
            (("--type",), ("iceberg-table", "iceberg-view", "namespace", "delta-table", "udf"), False, "iceberg-table, iceberg-view, namespace, delta-table or udf."),
            (("--metadata-location",), "file", True, "The metadata file; several for the history of a delta-table."),
            (("--snapshot-id",), "-", False, "iceberg-table: the current snapshot."),
            (("--schema-id",), "-", False, "iceberg-table and -view: the current schema."),
            (("--spec-id",), "-", False, "iceberg-table: the default partition spec."),
            (("--sort-order-id",), "-", False, "iceberg-table: the default sort order."),
            (("--version-id",), "-", False, "iceberg-view and udf: the current version."),
            (("--sql-text",), "-", False, "iceberg-view and udf: the definition."),
            (("--dialect",), "-", False, "iceberg-view and udf: the SQL dialect."),
            (("--signature-id",), "-", False, "udf: the signature."),
            (("--checkpoint-location",), "file", True, "delta-table: checkpoints, oldest first."),
            (("--last-checkpoint",), "file", False, "delta-table: the last checkpoint."),
            (("--property",), "-", True, "namespace: a property; repeat it."),
            (("--from-metadata",), "file", False, "Take everything from an Iceberg metadata file."),
            (("--content",), "file", False, "Take the content from a file of REST JSON."),
            (("--id",), "-", False, "The content id."),
            (("--expected-hash",), "hash", False, "Expect the key as it is at this commit, whatever was staged for it before; resolves a conflict."),
            (("-m", "--message"), "-", True, "Commit the whole batch in the same step."),
        ),
        ("key",),
        False,
        "",
    ),
    "content unmodified": (
        {},
        (
            (("--expected-hash",), "hash", False, "Expect the key as it is at this commit, whatever was staged for it before; resolves a conflict."),
            (("-m", "--message"), "-", True, "Commit the whole batch in the same step."),
        ),
        ("key",),
        True,
        "",
    ),
    "content show": (
        {},
        (
        ),
        ("key", "revision"),
        False,
        "",
    ),
    "content view": (
        {},
        (
        ),
        ("key", "revision"),
        False,
        "",
    ),
    "content history": (
        {},
        (
            (("-n", "--max-count"), "-", False, "At most N commits."),
        ),
        ("key", "revision"),
        False,
        "",
    ),
    "content list": (
        {},
        (
            (("--type", "-t"), ("iceberg-table", "iceberg-view", "namespace", "delta-table", "udf"), False, "Only contents of this type."),
            (("--filter",), "-", False, "Only keys that this is true for, about `entry`."),
            (("--tree",), "", False, "Show the keys as a tree."),
            (("--at", "-r"), "revision", False, "Where to look; HEAD, when it is left out."),
        ),
        ("key",),
        False,
        "",
    ),
    "reset": (
        {},
        (
        ),
        ("staged",),
        True,
        "",
    ),
    "commit": (
        {},
        (
            (("-m", "--message"), "-", True, "The message; several are paragraphs."),
            (("-F", "--file"), "file", False, "Read the message from a file."),
            (("--batch",), "file", False, "Commit the operations of a file instead of the staged ones."),
            (("--author",), "-", True, "An author; repeat it."),
            (("--signed-off-by",), "-", True, "Who signed it off; repeat it."),
            (("--property",), "-", True, "A property; repeat it."),
            (("--author-time",), "-", False, "When the change was made, such as 2026-01-31T12:00:00Z."),
            (("--expected-hash",), "hash", False, "The commit you started from; what changed since conflicts."),
            (("--dry-run",), "", False, "Tell what would happen, write nothing."),
        ),
        (),
        False,
        "",
    ),
    "restore": (
        {},
        (
            (("--source", "-s"), "revision", False, "The revision that has the wanted state."),
            (("--recursive", "-r"), "", False, "All that is below the keys as well."),
            (("-m", "--message"), "-", True, "Commit the whole batch in the same step."),
        ),
        ("key",),
        True,
        "",
    ),
    "revert": (
        {},
        (
            (("-m", "--message"), "-", True, "The message."),
            (("--no-commit", "-n"), "", False, "Only stage it."),
            (("--ours",), "key", True, "Keep the target's state of this key."),
            (("--theirs",), "key", True, "Take the source's state of this key."),
            (("--dry-run",), "", False, "Say what would happen, and write nothing."),
        ),
        ("revision",),
        False,
        "",
    ),
    "stash": (
        {"push": "Put the staged batch aside; nothing is staged then.", "list": "List the batches that were put aside, newest first.", "show": "Show the operations of a batch that was put aside.", "pop": "Stage a batch that was put aside, and forget that it was.", "apply": "Stage a batch that was put aside, and keep it aside as well.", "drop": "Forget a batch that was put aside."},
        (
        ),
        (),
        False,
        "",
    ),
    "stash push": (
        {},
        (
            (("-m", "--message"), "-", False, "What it is, for the list."),
        ),
        (),
        False,
        "",
    ),
    "stash list": (
        {},
        (
        ),
        (),
        False,
        "",
    ),
    "stash show": (
        {},
        (
        ),
        ("-",),
        False,
        "",
    ),
    "stash pop": (
        {},
        (
        ),
        ("-",),
        False,
        "",
    ),
    "stash apply": (
        {},
        (
        ),
        ("-",),
        False,
        "",
    ),
    "stash drop": (
        {},
        (
        ),
        ("-",),
        False,
        "",
    ),
    "log": (
        {},
        (
            (("-n", "--max-count", "--number"), "-", False, "At most N commits."),
            (("--skip",), "-", False, "Leave the first N out."),
            (("--oneline",), "", False, "One line per commit."),
            (("--graph",), "", False, "Draw how the commits hang together."),
            (("--stat",), "", False, "Count what each commit created (+), updated (~), deleted (-), renamed (>)."),
            (("--name-status",), "", False, "The keys of each commit: A created, M updated, D deleted, R renamed."),
            (("-p", "--patch"), "", False, "What each commit changed, field by field."),
            (("--all",), "", False, "The commits of every branch and tag."),
            (("--since", "--after"), "-", False, "Commits made then or later."),
            (("--until", "--before"), "-", False, "Commits made then or earlier."),
            (("--author",), "-", True, "An author matches this regular expression; repeat it."),
            (("--committer",), "-", True, "The committer matches; repeat it."),
            (("--grep",), "-", False, "The message matches this regular expression."),
            (("-i", "--ignore-case"), "", False, "Upper and lower case are the same in these expressions."),
            (("--filter",), "-", False, "This expression holds, about `commit` and `operations`."),
            (("--merges", "--no-merges"), "", False, "Only merges, or none."),
            (("--first-parent",), "", False, "Do not follow merged branches."),
            (("--reverse",), "", False, "Oldest first."),
            (("-x", "--extended"), "", False, "The operations as well, in JSON."),
        ),
        ("range",),
        False,
        "key",
    ),
    "show": (
        {},
        (
            (("--deep",), "", False, "Also what the metadata files of Iceberg contents say: columns, rows, files."),
        ),
        ("revision",),
        False,
        "key",
    ),
    "diff": (
        {},
        (
            (("--stat",), "", False, "Only which fields differ."),
            (("--name-status",), "", False, "Only keys: A created, M updated, D deleted, R renamed."),
            (("--deep",), "", False, "Also what the metadata files of Iceberg contents say: columns, rows, files."),
            (("--exit-code",), "", False, "Exit with 1 where anything differs."),
        ),
        ("range", "revision"),
        False,
        "key",
    ),
    "branch": (
        {},
        (
            (("-l", "--list"), "", False, "List; with a name or a pattern only those."),
            (("--contains",), "revision", False, "List those that have this commit."),
            (("--no-contains",), "revision", False, "List those that have it not."),
            (("--merged",), "revision?", False, "List those that are merged into this one (HEAD)."),
            (("--no-merged",), "revision?", False, "List those that are not."),
            (("--points-at",), "revision", False, "List those that stand at this commit."),
            (("--filter",), "-", False, "List those that this is true for: `ref`, `commit`, `refMeta`."),
            (("--sort",), ("name", "-name", "time", "-time", "ahead", "-ahead", "behind", "-behind"), False, "List by name, time, ahead or behind; -time: newest first."),
            (("--show-current",), "", False, "Print the name of the current reference."),
            (("-x", "--extended"), "", False, "List with ahead, behind and last commit, as -v does."),
            (("-d", "--delete"), "", False, "Delete the named ones."),
            (("-m", "--move"), "", False, "Rename: OLD NEW."),
            (("-f", "--force"), "", False, "Point elsewhere: NAME TARGET."),
            (("--if-exists",), "", False, "A name that does not exist is no error."),
            (("--if-not-exists",), "", False, "A name that exists already is no error."),
            (("--expected-hash", "-c"), "hash", False, "Only if it stands at this commit now."),
            (("--yes", "-y"), "", False, "Do not ask, even where commits are lost from sight."),
            (("--dry-run",), "", False, "Say what would be deleted, renamed or assigned, and do nothing."),
        ),
        ("branch", "revision"),
        False,
        "",
    ),
    "tag": (
        {},
        (
            (("-l", "--list"), "", False, "List; with a name or a pattern only those."),
            (("--contains",), "revision", False, "List those that have this commit."),
            (("--no-contains",), "revision", False, "List those that have it not."),
            (("--merged",), "revision?", False, "List those that are merged into this one (HEAD)."),
            (("--no-merged",), "revision?", False, "List those that are not."),
            (("--points-at",), "revision", False, "List those that stand at this commit."),
            (("--filter",), "-", False, "List those that this is true for: `ref`, `commit`, `refMeta`."),
            (("--sort",), ("name", "-name", "time", "-time", "ahead", "-ahead", "behind", "-behind"), False, "List by name, time, ahead or behind; -time: newest first."),
            (("--show-current",), "", False, "Print the name of the current reference."),
            (("-x", "--extended"), "", False, "List with ahead, behind and last commit, as -v does."),
            (("-d", "--delete"), "", False, "Delete the named ones."),
            (("-m", "--move"), "", False, "Rename: OLD NEW."),
            (("-f", "--force"), "", False, "Point elsewhere: NAME TARGET."),
            (("--if-exists",), "", False, "A name that does not exist is no error."),
            (("--if-not-exists",), "", False, "A name that exists already is no error."),
            (("--expected-hash", "-c"), "hash", False, "Only if it stands at this commit now."),
            (("--yes", "-y"), "", False, "Do not ask, even where commits are lost from sight."),
            (("--dry-run",), "", False, "Say what would be deleted, renamed or assigned, and do nothing."),
        ),
        ("tag", "revision"),
        False,
        "",
    ),
    "merge": (
        {},
        (
            (("--into", "-b"), "reference", False, "The branch to merge into (the current one)."),
            (("-m", "--message"), "-", False, "The message of the commit."),
            (("--dry-run",), "", False, "Say what would happen, and write nothing."),
            (("--behavior",), ("normal", "force", "drop"), False, "For keys not named: merge, take the source's, keep the target's."),
            (("--ours",), "key", True, "Keep the target's state of this key."),
            (("--theirs",), "key", True, "Take the source's state of this key."),
            (("--resolve",), "key=file", True, "Write this content (REST JSON; - is stdin)."),
            (("--follow-renames",), "", False, "Combine a rename on one side with a change on the other."),
            (("--expected-hash", "-c"), "hash", False, "A commit that the target must have."),
        ),
        ("revision",),
        False,
        "",
    ),
    "transplant": (
        {},
        (
            (("--onto", "-b"), "reference", False, "The branch to write to (the current one)."),
            (("--source", "-s"), "reference", False, "The branch that hashes are taken from."),
            (("-m", "--message"), "-", False, "The message of the commit."),
            (("--dry-run",), "", False, "Say what would happen, and write nothing."),
            (("--behavior",), ("normal", "force", "drop"), False, "For keys not named: merge, take the source's, keep the target's."),
            (("--ours",), "key", True, "Keep the target's state of this key."),
            (("--theirs",), "key", True, "Take the source's state of this key."),
            (("--resolve",), "key=file", True, "Write this content (REST JSON; - is stdin)."),
            (("--follow-renames",), "", False, "Combine a rename on one side with a change on the other."),
            (("--expected-hash", "-c"), "hash", False, "A commit that the target must have."),
        ),
        ("range",),
        True,
        "",
    ),
    "cherry-pick": (
        {},
        (
            (("--onto", "-b"), "reference", False, "The branch to write to (the current one)."),
            (("--source", "-s"), "reference", False, "The branch that hashes are taken from."),
            (("-m", "--message"), "-", False, "The message of the commit."),
            (("--dry-run",), "", False, "Say what would happen, and write nothing."),
            (("--behavior",), ("normal", "force", "drop"), False, "For keys not named: merge, take the source's, keep the target's."),
            (("--ours",), "key", True, "Keep the target's state of this key."),
            (("--theirs",), "key", True, "Take the source's state of this key."),
            (("--resolve",), "key=file", True, "Write this content (REST JSON; - is stdin)."),
            (("--follow-renames",), "", False, "Combine a rename on one side with a change on the other."),
            (("--expected-hash", "-c"), "hash", False, "A commit that the target must have."),
        ),
        ("range",),
        True,
        "",
    ),
    "blame": (
        {},
        (
            (("--at",), "revision", False, "Where to look; HEAD, when it is left out."),
        ),
        ("key",),
        False,
        "",
    ),
    "reflog": (
        {},
        (
            (("--all",), "", False, "Every reference."),
            (("-n",), "-", False, "At most N moves."),
        ),
        ("moved",),
        False,
        "",
    ),
    "undo": (
        {},
        (
            (("--to",), "move", False, "To where the move N of the reflog left it."),
            (("--dry-run",), "", False, "Say what would be done, and do nothing."),
        ),
        ("moved",),
        False,
        "",
    ),
    "serve": (
        {},
        (
            (("--host",), "-", False, "The address to listen on."),
            (("--port",), "-", False, "The port to listen on; 0 takes a free one."),
            (("--insecure",), "", False, "Listen on an address that others reach, though nobody is asked who they are."),
            (("--access-log",), "", False, "Write one JSON line for each request to stdout."),
        ),
        (),
        False,
        "",
    ),
    "fsck": (
        {},
        (
        ),
        (),
        False,
        "",
    ),
    "help": (
        {},
        (
        ),
        ("page",),
        True,
        "",
    ),
    "completion": (
        {},
        (
        ),
        (("bash", "zsh", "fish"),),
        False,
        "",
    ),
    "version": (
        {},
        (
        ),
        (),
        False,
        "",
    ),
}

TOPICS: Mapping[str, str] = {"revisions": "how commits, ranges and keys are named", "conflicts": "what each conflict means and how it is resolved", "stores": "where a repository is kept, and how it is named", "json": "the JSON that nessie prints", "exit-status": "what the exit codes of nessie mean"}

SETTINGS: Mapping[str, str] = {"protect.": "Rules of a branch or pattern of branches: no-delete, no-rewind, merge-only.", "require-expected-content": "true: an update of a content has to carry the content it expects.", "profile.": "The store of a profile.", "default-profile": "The profile that is used where nothing nearer names a store.", "alias.": "A command of your own: the words that it stands for.", "author": "The author of commits where none is named.", "store": "The store: sqlite:///path, a bare path, postgresql://..., http(s)://host/api/v2."}
