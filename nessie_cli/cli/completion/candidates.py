"""What the last word of a line may become, with a description where there is one."""

from __future__ import annotations

from nessie_cli.cli.completion.line import Line
from nessie_cli.cli.completion.table import COMMANDS, SETTINGS, SHARED, TOPICS

# Importing `typing` takes longer than a keystroke may; checkers know this name without the import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nessie_cli.cli.completion.catalog import Catalog
    from nessie_cli.cli.completion.line import Kind
    from nessie_cli.workspace.glance import Place

    Candidates = list[tuple[str, str]]

OPEN = ("/", ".", "=")
"""A candidate that ends so is not the whole word yet: shells put no space behind it."""
_NAMES_FOLLOW = {"-d", "--delete"}
_SQLITE = "sqlite:///"


def candidates(words: Sequence[str]) -> Candidates:
    """All that the last of the words behind `nessie` may become; what a terminal cannot show as it is stays out."""
    line = Line(words, COMMANDS, SHARED, lambda line: _place(line).aliases())
    return [(text, _one_line(said)) for text, said in _candidates(line) if text.startswith(line.last) and text.isprintable()]


def _one_line(said: str) -> str:
    """A description without what would act on a terminal or break the lines of an answer."""
    return said if said.isprintable() else "".join(c if c.isprintable() else " " for c in said)


def is_open(candidate: str) -> bool:
    """Whether more of the word has to follow."""
    return candidate.endswith(OPEN)


def _candidates(line: Line) -> Candidates:
    last = line.last
    if line.asked is not None and not line.goes_on(last):
        return _of_kind(line.asked[1], last, line)
    if last.startswith("-") and not line.behind_dashes:
        name, equals, value = last.partition("=")
        option = line.option(name) if equals else None
        if option is not None and option[1]:
            return [(f"{name}={text}", said) for text, said in _of_kind(option[1], value, line)]
        return _options(line)
    if line.expects_command:
        return [*line.command[0].items(), *(() if line.path else _of_the_user(line))]
    return _of_kind(_kind_of_word(line), last, line)


def _of_the_user(line: Line) -> Candidates:
    """Aliases and plug-ins: commands that are not ours."""
    place = _place(line)
    aliases = [(name, f"alias: {text}") for name, text in sorted(place.aliases().items()) if name not in COMMANDS]
    known = {*COMMANDS, *(name for name, _ in aliases)}
    return [*aliases, *((name, "plug-in") for name in sorted(set(place.plugins()) - known))]


def _kind_of_word(line: Line) -> Kind:
    _, _, kinds, many, behind = line.command
    position = len(line.words)
    if line.behind_dashes and behind:
        return behind
    if line.path in ("branch", "tag") and line.given & _NAMES_FOLLOW:
        return line.path
    if position < len(kinds):
        return kinds[position]
    return kinds[-1] if kinds and many else ""


def _options(line: Line) -> Candidates:
    """Options that can still be given; where only one dash has been typed the short ones as well."""
    short = not line.last.startswith("--")
    found = []
    for option in line.options:
        names, _, many, said = option
        if many or not line.given & set(names):
            found += [(name, said) for name in _worth_showing(names, short=short)]
    return found


def _worth_showing(names: tuple[str, ...], *, short: bool) -> Sequence[str]:
    long = [name for name in names if name.startswith("--")]
    return names if short or not long else long


def _of_kind(kind: Kind, word: str, line: Line) -> Candidates:
    if isinstance(kind, tuple):
        return [(choice, "") for choice in kind]
    kind = kind.removesuffix("?")
    if kind in _FROM_LINE:
        return _FROM_LINE[kind](word, line)
    if kind in _FROM_DISK:
        return _FROM_DISK[kind](word, _place(line))
    look = _FROM_STORE.get(kind)
    return _looked_up(look, word, line) if look else []


def _looked_up(look: Callable[[Catalog, str, Line], Candidates], word: str, line: Line) -> Candidates:
    place = _place(line)
    url = place.store()
    if not url:
        return []
    if url.startswith(("http://", "https://")):
        from nessie_cli.cli.completion.server import using_server

        return using_server(place, url, lambda server: look(server, word, line))
    from nessie_cli.cli.later import postpone

    # What the repository seldom uses is not loaded: somebody waits for this keystroke.
    postpone()
    from nessie_cli.cli.completion.catalog import using

    return using(place, url, lambda catalog: look(catalog, word, line))


def _place(line: Line) -> Place:
    """Where the line is to be looked up; goes to the folder of `-C`, once."""
    from nessie_cli.workspace.glance import Place

    if line.place is None:
        options: dict[str, str] = {name: line.values[name][-1] for name in ("--store", "--profile", "--ref") if name in line.values}
        line.place = Place(options, line.values.get("-C", ()))
    return line.place


# -- what the line itself and the tables tell -------------------------------------------------------------------------------------------


def _pages(_: str, line: Line) -> Candidates:
    """Commands and topics; behind a command those below it."""
    command = COMMANDS.get(" ".join(line.words))
    return [*(command[0].items() if command else ()), *(TOPICS.items() if not line.words else ())]


def _settings(_: str, __: Line) -> Candidates:
    return list(SETTINGS.items())


def _contents_by_key(word: str, line: Line) -> Candidates:
    key, equals, path = word.partition("=")
    if equals:
        return [(f"{key}={found}", said) for found, said in _files(path)]
    return [(text if is_open(text) else f"{text}=", said) for text, said in _of_kind("key", word, line)]


_FROM_LINE: Mapping[str, Callable[[str, Line], Candidates]] = {"page": _pages, "setting": _settings, "key=file": _contents_by_key}


# -- what is looked up on the disk ----------------------------------------------------------------------------------------------------


def _files(word: str, _: Place | None = None, *, folders_only: bool = False) -> Candidates:
    from nessie_cli.cli.completion.files import files

    return files(word, folders_only=folders_only)


def _folders(word: str, _: Place) -> Candidates:
    return _files(word, folders_only=True)


def _stores(word: str, _: Place) -> Candidates:
    if word.startswith(_SQLITE):
        return [(_SQLITE + path, said) for path, said in _files(word[len(_SQLITE) :])]
    return [(_SQLITE, "a SQLite store"), *_files(word)]


def _staged(_: str, place: Place) -> Candidates:
    from nessie_cli.cli.completion.keys import text_of

    return [(".".join(map(text_of, elements)), type_.lower()) for type_, elements in place.staged()]


def _profiles(_: str, place: Place) -> Candidates:
    return [(name, "") for name in place.profiles()]


def _runs(_: str, place: Place) -> Candidates:
    return [(name, "") for name in place.runs()]


_FROM_DISK: Mapping[str, Callable[[str, Place], Candidates]] = {
    "file": _files,
    "folder": _folders,
    "store": _stores,
    "staged": _staged,
    "profile": _profiles,
    "run": _runs,
}


# -- what is looked up in the store -----------------------------------------------------------------------------------------------------


def _keys(catalog: Catalog, word: str, line: Line) -> Candidates:
    return catalog.keys(word, line.value("--at") or line.value("--source"))


def _moves(catalog: Catalog, _: str, line: Line) -> Candidates:
    return catalog.moves(line.words[0] if line.words else None)


_FROM_STORE: Mapping[str, Callable[[Catalog, str, Line], Candidates]] = {
    "reference": lambda catalog, word, _: catalog.references(word),
    "branch": lambda catalog, word, _: catalog.references(word, "BRANCH"),
    "tag": lambda catalog, word, _: catalog.references(word, "TAG"),
    "moved": lambda catalog, word, _: catalog.moved(word),
    "move": _moves,
    "revision": lambda catalog, word, _: catalog.revisions(word),
    "range": lambda catalog, word, _: catalog.range(word),
    "hash": lambda catalog, word, _: catalog.hashes(word) or catalog.revisions(word),
    "key": _keys,
}
