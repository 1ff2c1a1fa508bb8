"""Candidates for a kind of word, each with a description."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import closing, suppress

from nessie_cli.cli.completion.request import Request
from nessie_cli.errors import NessieError
from nessie_cli.repository.base import Repository
from nessie_cli.workspace.locations import home

Candidates = list[tuple[str, str]]
"""Candidates and their descriptions ("" for none)."""

OPEN = ("/", ".", "=")
"""A candidate with this ending is incomplete: shells do not add a space after it."""
PATIENCE = 1.0
"""The time limit of a server, in seconds. A local store has none, even on a busy machine."""
_SQLITE = "sqlite:///"
_SERVERS = ("http://", "https://", "postgresql://", "postgres://")


def is_open(candidate: str) -> bool:
    """Whether the candidate is incomplete."""
    return candidate.endswith(OPEN)


def answer(request: Request) -> Candidates:
    """Returns printable candidates for a request. Returns nothing if the store fails."""
    if isinstance(request.kind, tuple):
        candidates: Candidates = [(choice, "") for choice in request.kind]
    elif request.kind in _LOCAL:
        candidates = _LOCAL[request.kind](request)
    elif request.kind in _STORED:
        candidates = _looked_up(request)
    else:
        candidates = []
    return [
        (request.prefix + text, description)
        for text, description in shown(candidates, request.word)
    ]


def shown(candidates: Candidates, word: str) -> Candidates:
    """Returns the printable candidates that begin with the word."""
    return [
        (text, _one_line(description))
        for text, description in candidates
        if text.startswith(word) and text.isprintable()
    ]


def _one_line(description: str) -> str:
    return (
        description
        if description.isprintable()
        else "".join(c if c.isprintable() else " " for c in description)
    )


# -- from the command line, the disk and the settings ---------------------------------------------


def _commands(request: Request) -> Candidates:
    """The commands of a group; for `nessie` itself also aliases and plug-ins."""
    from nessie_cli.cli.app.aliases import aliases
    from nessie_cli.cli.app.plugins import plugins
    from nessie_cli.cli.registry import COMMANDS
    from nessie_cli.workspace.folder import working_folder

    table = COMMANDS
    for name in request.words:
        table = table[name].children or {}
    candidates = [(name, entry.help) for name, entry in table.items() if not entry.hidden]
    if request.words:
        return candidates
    own = sorted(aliases(working_folder()).items())
    candidates += [(name, f"alias: {text}") for name, text in own if name not in COMMANDS]
    names = {name for name, _ in candidates}
    return [*candidates, *((name, "plug-in") for name in plugins() if name not in names)]


def _pages(request: Request) -> Candidates:
    """Commands and topics; after a command its subcommands."""
    from nessie_cli.cli.help.pages import topics
    from nessie_cli.cli.registry import COMMANDS

    arguments = [
        argument
        for argument in request.words
        if not argument.startswith("-") and argument != "help"
    ]
    table = COMMANDS
    for argument in arguments:
        entry = table.get(argument)
        table = (entry.children if entry else None) or {}
    pages = [(name, entry.help) for name, entry in table.items() if not entry.hidden]
    return pages if arguments else [*pages, *topics().items()]


def _settings(_: Request) -> Candidates:
    from nessie_cli.workspace.known import KNOWN, REPOSITORY

    return list(
        {
            setting.name.partition("*")[0]: setting.help
            for setting in reversed((*KNOWN, *REPOSITORY))
        }.items()
    )


def _files(request: Request) -> Candidates:
    return _paths(request.word)


def _folders(request: Request) -> Candidates:
    return [path for path in _paths(request.word) if path[0].endswith("/")]


def _paths(word: str) -> Candidates:
    """Files and folders; folders end with a slash.

    Hidden ones only if the word begins with a dot.
    """
    above, name = word[: word.rfind("/") + 1], word[word.rfind("/") + 1 :]
    try:
        with os.scandir(home(above or ".")) as entries:
            children = [
                (entry.name, entry.is_dir()) for entry in entries if entry.name.startswith(name)
            ]
    except OSError:
        return []
    visible = [
        entry for entry in sorted(children) if name.startswith(".") or not entry[0].startswith(".")
    ]
    return [(f"{above}{name}{'/' if is_folder else ''}", "") for name, is_folder in visible]


def _stores(request: Request) -> Candidates:
    if request.word.startswith(_SQLITE):
        return [
            (_SQLITE + path, description)
            for path, description in _paths(request.word[len(_SQLITE) :])
        ]
    return [(_SQLITE, "a SQLite store"), *_paths(request.word)]


def _staged(request: Request) -> Candidates:
    workspace = request.app.workspace
    batch = request.app.batch_file().read() if workspace else None
    return (
        [(str(item.key), type(item.operation).__name__.lower()) for item in batch.staged]
        if batch
        else []
    )


def _profiles(_: Request) -> Candidates:
    from nessie_cli.workspace.user import profile_names

    return [(name, "") for name in profile_names()]


def _runs(request: Request) -> Candidates:
    workspace = request.app.workspace
    folder = workspace.batch_path.with_name("gc") if workspace else None
    return (
        [(path.name, "") for path in sorted(folder.iterdir(), reverse=True)]
        if folder and folder.is_dir()
        else []
    )


_LOCAL: Mapping[str, Callable[[Request], Candidates]] = {
    "command": _commands,
    "file": _files,
    "folder": _folders,
    "page": _pages,
    "profile": _profiles,
    "run": _runs,
    "setting": _settings,
    "staged": _staged,
    "store": _stores,
}


# -- from the store -------------------------------------------------------------------------------


def _looked_up(request: Request) -> Candidates:
    try:
        url = request.app.store.url()
        if not url.startswith(_SERVERS):
            return _of_store(request)
        return _of_server(request) if request.app.store.is_chosen_by_user(url) else []
    except NessieError:
        return []


def _of_store(request: Request) -> Candidates:
    with closing(request.app):
        return _of_repository(request, request.app.repository())


def _of_server(request: Request) -> Candidates:
    """Returns the candidates of a server, or none if it does not answer within `PATIENCE`."""
    from threading import Thread

    candidates: Candidates = []

    def work() -> None:
        with suppress(NessieError):
            candidates.extend(_of_store(request))

    # A request that is still running ends with the process.
    thread = Thread(target=work, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    return list(candidates)


def _of_repository(request: Request, repository: Repository) -> Candidates:
    from nessie_cli.cli.completion.revisions import Revisions

    kind, word = str(request.kind), request.word
    names = Revisions(repository, str(request.app.head))
    of_kind: Mapping[str, Callable[[str], Candidates]] = {
        "reference": names.references,
        "branch": lambda word: names.references(word, "BRANCH"),
        "tag": lambda word: names.references(word, "TAG"),
        "moved": names.moved,
        "move": lambda _: names.moves(
            next(
                (word for word in request.words if word != "undo" and not word.startswith("-")),
                None,
            )
        ),
        "revision": names.revisions,
        "range": names.range,
        "hash": lambda word: names.hashes(word) or names.revisions(word),
    }
    if kind in of_kind:
        return of_kind[kind](word)
    if kind == "pipeline-run":
        return _pipeline_runs(repository)
    from nessie_cli.cli.completion.keys import keys

    key, equals, path = word.partition("=")
    if kind == "key=file" and equals:
        return [(f"{key}={name}", description) for name, description in _paths(path)]
    candidates = keys(repository, names.resolve(request.revision or "HEAD"), word)
    return [
        (text if kind == "key" or is_open(text) else f"{text}=", description)
        for text, description in candidates
    ]


def _pipeline_runs(repository: Repository) -> Candidates:
    """The ids of the runs of pipelines, the newest first."""
    runs = [record.run for record in reversed(repository.runs.all())]
    return [(run.id, f"{run.state}: {' '.join(run.command) or run.target}") for run in runs]


_STORED = frozenset(
    {
        "reference",
        "branch",
        "tag",
        "moved",
        "move",
        "revision",
        "range",
        "hash",
        "key",
        "key=file",
        "pipeline-run",
    }
)
