"""The table of commands, so that `nessie --help` and a typo import no command.

To add a command:

1. Copy `store/backup.py` into the folder of its feature. The first sentence of the docstring of
   `Options` is the help of the command. `EXAMPLES` are the command lines that `--help` shows.
   `app/command.py` explains the four parts of the module.
2. Add a line here with the same first sentence.
3. Run `make docs`.

The group adds the global options (`--json`, `--store`, ...) to every command.
"""

from collections.abc import Mapping
from typing import NamedTuple


class CommandEntry(NamedTuple):
    """One command: its module below `nessie_cli.cli`, its first sentence of help, its section.

    A group has no module. `children` is its own table, `default` is the child that runs if no
    command is given, and `examples` are the command lines that its `--help` shows.
    """

    module: str
    help: str
    section: str
    children: Mapping[str, "CommandEntry"] | None = None
    hidden: bool = False
    examples: tuple[str, ...] = ()
    default: str = ""

    @property
    def text(self) -> str:
        """The help of a group after its first sentence."""
        return f"Without a command: {self.default}." if self.default else ""


WORKSPACE = "Workspace"
CONTENT = "Contents and commits"
REFERENCES = "Branches and tags"
HISTORY = "History"
ADMINISTRATION = "Administration"
HELP = "Help"
STAGING = "Stage"
READING = "Read"
SETTINGS = "Settings"
TOKENS = "Tokens"
COLLECTING = "Collect"
MAINTENANCE = "Maintenance"

CONTENT_COMMANDS: Mapping[str, CommandEntry] = {
    "put": CommandEntry("content.put", "Stage the content of a key.", STAGING),
    "delete": CommandEntry("content.delete", "Stage the deletion of keys.", STAGING),
    "rename": CommandEntry(
        "content.rename",
        "Stage a rename: move a content to another key.",
        STAGING,
    ),
    "replace": CommandEntry(
        "content.replace",
        "Stage a replacement: delete a key's content, and create a new one with a new content id.",
        STAGING,
    ),
    "expire": CommandEntry(
        "content.expire",
        "Remove old snapshots from the metadata of Iceberg tables, in one commit.",
        MAINTENANCE,
    ),
    "unmodified": CommandEntry(
        "content.unmodified",
        "Stage a check that keys are unmodified when the batch is committed.",
        STAGING,
    ),
    "show": CommandEntry(
        "content.show",
        "Show a key's content, its cache key, and the last commit that wrote it.",
        READING,
    ),
    "view": CommandEntry(
        "content.show",
        "Show a key's content, its cache key, and the last commit that wrote it.",
        READING,
        hidden=True,
    ),
    "history": CommandEntry(
        "content.history",
        "Show the commits that changed the content of a key, newest first, with the changed"
        " fields.",
        READING,
    ),
    "list": CommandEntry(
        "content.list",
        "List keys with content type and content id.",
        READING,
    ),
}

CONFIG_COMMANDS: Mapping[str, CommandEntry] = {
    "list": CommandEntry(
        "config.list", "List the settings that have a value: name, value and scope.", SETTINGS
    ),
    "get": CommandEntry("config.get", "Print the value of a setting.", SETTINGS),
    "set": CommandEntry("config.set", "Change a setting.", SETTINGS),
    "unset": CommandEntry("config.unset", "Remove a setting.", SETTINGS),
}

STASH_COMMANDS: Mapping[str, CommandEntry] = {
    "push": CommandEntry(
        "staging.stash_push", "Stash the staged batch, or the operations of some keys.", STAGING
    ),
    "list": CommandEntry("staging.stash_list", "List the stashed batches, newest first.", READING),
    "show": CommandEntry("staging.stash_show", "Show the operations of a stashed batch.", READING),
    "pop": CommandEntry(
        "staging.stash_pop",
        "Stage a stashed batch, and delete it from the stash.",
        STAGING,
    ),
    "apply": CommandEntry(
        "staging.stash_apply",
        "Stage a stashed batch, and keep it in the stash.",
        STAGING,
    ),
    "drop": CommandEntry("staging.stash_drop", "Delete a stashed batch.", STAGING),
}

GC_COMMANDS: Mapping[str, CommandEntry] = {
    "mark": CommandEntry(
        "gc.mark", "Begin a run: find every table file that a live commit can reach.", COLLECTING
    ),
    "plan": CommandEntry(
        "gc.plan",
        "Find the candidates of a marked run: unreachable files older than the grace period.",
        COLLECTING,
    ),
    "show": CommandEntry(
        "gc.show",
        "Show a run: its settings, counts, candidates by location, and unreadable contents.",
        READING,
    ),
    "approve": CommandEntry(
        "gc.approve", "Approve the deletion of the candidates of a run.", COLLECTING
    ),
    "apply": CommandEntry(
        "gc.apply",
        "Delete those candidates of a run that are still unreachable.",
        COLLECTING,
    ),
    "list": CommandEntry(
        "gc.list", "List the runs, newest first: state, time and counts.", READING
    ),
}

TOKEN_COMMANDS: Mapping[str, CommandEntry] = {
    "new": CommandEntry(
        "serve.token_new",
        "Create a token for a caller of `nessie serve`, and print it once.",
        TOKENS,
    ),
    "list": CommandEntry(
        "serve.token_list",
        "List the tokens of a file: id, name, roles, creation and expiry.",
        TOKENS,
    ),
    "revoke": CommandEntry(
        "serve.token_revoke",
        "Remove tokens from a file.",
        TOKENS,
    ),
}

DEMO_COMMANDS: Mapping[str, CommandEntry] = {
    "lake": CommandEntry(
        "demo.lake", "Make an example lake: a workspace with Iceberg tables on two branches.", HELP
    ),
}
STORE_COMMANDS: Mapping[str, CommandEntry] = {
    "backup": CommandEntry(
        "store.backup", "Write one consistent state of the store to a new SQLite file.", MAINTENANCE
    ),
    "load": CommandEntry(
        "store.load", "Load a backup, or any SQLite store, into an empty store.", MAINTENANCE
    ),
    "maintain": CommandEntry(
        "store.maintain",
        "Delete old unreachable objects, and expired reflog entries, request ids and runs.",
        MAINTENANCE,
    ),
}

COMMANDS: Mapping[str, CommandEntry] = {
    "init": CommandEntry(
        "workspace.init",
        "Create a workspace (.nessie/), and its store if it does not exist.",
        WORKSPACE,
    ),
    "status": CommandEntry(
        "staging.status",
        "Show the current reference, the staged batch, and the conflicts that a commit would"
        " cause.",
        WORKSPACE,
    ),
    "switch": CommandEntry(
        "references.switch", "Change the workspace's current reference.", WORKSPACE
    ),
    "login": CommandEntry(
        "workspace.login", "Trust a server with credentials, and store a token for it.", WORKSPACE
    ),
    "config": CommandEntry(
        "",
        "List, read and change settings, profiles and aliases.",
        WORKSPACE,
        CONFIG_COMMANDS,
        examples=("nessie config list", "nessie config set author 'Ada <ada@example.org>'"),
    ),
    "content": CommandEntry(
        "",
        "Show contents, and stage changes for the next commit.",
        CONTENT,
        CONTENT_COMMANDS,
        examples=(
            "nessie content list db.sales --type iceberg-table",
            "nessie content show db.orders",
            "nessie content put finance --type namespace -m 'add finance'",
        ),
    ),
    "reset": CommandEntry(
        "staging.reset",
        "Remove operations from the staged batch.",
        CONTENT,
    ),
    "commit": CommandEntry(
        "staging.commit",
        "Commit the staged batch, or the operations of a file.",
        CONTENT,
    ),
    "restore": CommandEntry(
        "staging.restore", "Restore contents from an earlier revision, as staged changes.", CONTENT
    ),
    "revert": CommandEntry(
        "merge.revert",
        "Commit the inverse of a commit.",
        CONTENT,
    ),
    "stash": CommandEntry(
        "",
        "Set the staged batch aside, and stage it again later.",
        CONTENT,
        STASH_COMMANDS,
        examples=("nessie stash", "nessie stash list", "nessie stash pop"),
        default="push",
    ),
    "log": CommandEntry("log.log", "Show the history, newest commit first.", HISTORY),
    "show": CommandEntry("log.show", "Show a commit's metadata and changes.", HISTORY),
    "diff": CommandEntry(
        "log.diff", "Show the contents that differ between two revisions, field by field.", HISTORY
    ),
    "branch": CommandEntry(
        "references.branch", "List, create, delete, rename or assign branches.", REFERENCES
    ),
    "tag": CommandEntry(
        "references.tag", "List, create, delete, rename or assign tags.", REFERENCES
    ),
    "merge": CommandEntry(
        "merge.merge", "Merge the changes of a branch into another, as one commit.", REFERENCES
    ),
    "run": CommandEntry(
        "run.run",
        "Run a command on a branch, check what it wrote, and publish all of it or nothing.",
        REFERENCES,
    ),
    "resolve": CommandEntry(
        "merge.resolve",
        "Resolve the conflicts of the batch, of a merge, transplant or revert, one by one.",
        REFERENCES,
    ),
    "transplant": CommandEntry(
        "merge.transplant",
        "Copy commits onto a branch, each as a new commit (cherry-pick).",
        REFERENCES,
    ),
    "cherry-pick": CommandEntry(
        "merge.transplant",
        "Same as transplant.",
        REFERENCES,
    ),
    "blame": CommandEntry("log.blame", "Show the commit that last changed each key.", HISTORY),
    "reflog": CommandEntry(
        "undo.reflog",
        "Show the operations on a reference, newest first.",
        HISTORY,
    ),
    "undo": CommandEntry(
        "undo.undo",
        "Undo your last operation on the store, or the last operation on a reference.",
        HISTORY,
    ),
    "import": CommandEntry(
        "importing.import_",
        "Import tables, views and namespaces from another catalog, Nessie server or folder.",
        ADMINISTRATION,
    ),
    "serve": CommandEntry(
        "serve.serve",
        "Serve the store over Nessie's REST API and, with --warehouse, Iceberg REST.",
        ADMINISTRATION,
    ),
    "ui": CommandEntry(
        "serve.ui",
        "Open the pages of the store in a browser, for you alone.",
        ADMINISTRATION,
    ),
    "token": CommandEntry(
        "",
        "Create, list and revoke access tokens for `nessie serve`.",
        ADMINISTRATION,
        TOKEN_COMMANDS,
        examples=(
            "nessie token new ada --roles reader,writer --file tokens",
            "nessie token list --file tokens",
        ),
    ),
    "export": CommandEntry(
        "exporting.export",
        "Register the tables of a revision in another Iceberg catalog.",
        ADMINISTRATION,
    ),
    "gc": CommandEntry(
        "",
        "Find table files that no live commit needs (live: kept by a retention policy or the"
        " reflog), and delete them after approval.",
        ADMINISTRATION,
        GC_COMMANDS,
        examples=(
            "nessie gc mark --default-cutoff P30D",
            "nessie gc plan --warehouse s3://lake/warehouse",
            "nessie gc list",
        ),
    ),
    "store": CommandEntry(
        "",
        "Back up, load and maintain a store.",
        ADMINISTRATION,
        STORE_COMMANDS,
        examples=(
            "nessie store backup lake.backup",
            "nessie store load lake.backup --store sqlite:////srv/catalog.sqlite",
            "nessie store maintain --dry-run",
        ),
    ),
    "fsck": CommandEntry(
        "store.fsck", "Verify every object, reference and link of the store.", ADMINISTRATION
    ),
    "audit": CommandEntry(
        "audit.audit",
        "Check the files of every table and view at a revision.",
        ADMINISTRATION,
    ),
    "doctor": CommandEntry(
        "doctor.doctor",
        "Check the installation, and the store that a command would use.",
        ADMINISTRATION,
    ),
    "stats": CommandEntry(
        "log.stats",
        "Count commits by author, by day and by key.",
        ADMINISTRATION,
    ),
    "demo": CommandEntry(
        "",
        "Make example data to try nessie on.",
        HELP,
        DEMO_COMMANDS,
        examples=("nessie demo lake lake",),
    ),
    "help": CommandEntry("help.help", "Show the manual page of a command or topic.", HELP),
    "completion": CommandEntry(
        "completion.completion", "Print the completion script of a shell.", HELP
    ),
    "version": CommandEntry(
        "help.version",
        "Print the versions of nessie and Python, and the newest store format that nessie"
        " supports.",
        HELP,
    ),
}
"""Every command, in the order of `nessie --help`."""
EXAMPLES = ("nessie init", "nessie status", "nessie log -n 5 --oneline", "nessie branch feature")
"""The command lines that `nessie --help` shows."""
