"""All pages: those of the commands, from the command tree and `texts/`, and others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from manual.document import (
    Block,
    Code,
    Item,
    Items,
    Page,
    Paragraph,
    Section,
    blocks,
    read_page,
    sections,
)
from manual.tree import HELP, VERSION, Command, Option, every
from nessie_cli.workspace.known import KNOWN, REPOSITORY, Scope

TEXTS = Path(__file__).with_name("texts")
CONCEPTS = ("revisions", "filters", "conflicts", "stores", "access", "json", "exit-status")
"""The pages of section 7."""
_GLOBAL_ELSEWHERE = (
    "Global options, such as `--store`, `--ref` and `--json`, work before or after the command."
    " nessie(1) lists them."
)


def every_page(tree: Command) -> list[Page]:
    """Returns all pages: `nessie`, its commands in the order of help, the concepts."""
    commands = [
        command
        for command in every(tree)
        if command.path and not command.hidden and not command.alias_of
    ]
    return [_overview(tree), *(_command_page(command, tree) for command in commands), *concepts()]


def concepts() -> list[Page]:
    """Returns the pages of section 7."""
    return [
        read_page((TEXTS / f"nessie-{name}.md").read_text(encoding="utf-8")) for name in CONCEPTS
    ]


def page_name(path: Iterable[str]) -> str:
    """Returns the name of a command's page."""
    return "-".join(("nessie", *path))


# -- one command -----------------------------------------------------------------------------------


def _command_page(command: Command, tree: Command) -> Page:
    written = _written(command)
    parts = [
        Section("SYNOPSIS", (Code("", _synopsis(command)),)),
        Section("DESCRIPTION", (*_description(command), *written.pop("", ()))),
        *_commands(command),
        *_options(command),
        *(Section(title, found) for title, found in written.items()),
        *_settings(command),
        *(
            [
                Section(
                    "EXAMPLES", (Code("console", tuple(f"$ {line}" for line in command.examples)),)
                )
            ]
            if command.examples
            else []
        ),
        Section(
            "EXIT STATUS",
            (
                Paragraph(
                    "0 if the command succeeds. nessie-exit-status(7) lists the other exit codes."
                ),
            ),
        ),
        Section("SEE ALSO", (Paragraph(_see_also(command, tree)),)),
    ]
    aliases = tuple(
        page_name(other.path) for other in every(tree) if other.alias_of == command.path
    )
    return Page(page_name(command.path), 1, _summary(command.summary), tuple(parts), aliases)


def _written(command: Command) -> dict[str, tuple[Block, ...]]:
    """Returns the hand-written text of a command, by section.

    The part without a title belongs to the description.
    """
    file = TEXTS / f"{page_name(command.path)}.md"
    return (
        {part.title: part.blocks for part in sections(file.read_text(encoding="utf-8"))}
        if file.is_file()
        else {}
    )


def _summary(sentence: str) -> str:
    """Returns a sentence as the summary of a page."""
    words = sentence.rstrip(".")
    return words[:1].lower() + words[1:] if not words[:2].isupper() else words


def _synopsis(command: Command) -> tuple[str, ...]:
    if command.children:
        return (f"{command.name} {'[COMMAND]' if command.has_default else 'COMMAND'} ...",)
    words = " ".join(word.metavar for word in command.words)
    return (
        " ".join(filter(None, (command.name, "[OPTION]..." if command.options else "", words))),
    )


def _description(command: Command) -> Iterator[Block]:
    yield Paragraph(command.summary)
    yield from blocks(command.text)


def _commands(command: Command) -> Iterator[Section]:
    if command.children:
        yield Section("COMMANDS", (Items(tuple(_command_items(command))),))


def _command_items(command: Command) -> Iterator[Item]:
    for child in command.children:
        if not child.hidden:
            yield Item(f"{page_name(child.alias_of or child.path)}(1)", child.summary)


def _options(command: Command) -> Iterator[Section]:
    words = [Item(f"`{word.metavar}`", word.help) for word in command.words if word.help]
    options = [_option(option) for option in command.options]
    if not command.children:
        yield Section(
            "OPTIONS",
            (
                *([Items((*words, *options))] if words or options else []),
                Paragraph(_GLOBAL_ELSEWHERE),
            ),
        )


def _settings(command: Command) -> Iterator[Section]:
    if command.path == ("config",):
        scopes = {
            (Scope.WORKSPACE, Scope.USER): "Of the workspace and of the user:",
            (Scope.WORKSPACE,): "Of the workspace only:",
            (Scope.USER,): "Of the user only:",
            (Scope.REPOSITORY,): "Of the repository, with `--repository`:",
        }
        found = [
            (
                Paragraph(title),
                Items(
                    tuple(
                        Item(f"`{one.name.replace('*', 'NAME')}`", one.help)
                        for one in (*KNOWN, *REPOSITORY)
                        if one.scopes == some
                    )
                ),
            )
            for some, title in scopes.items()
        ]
        yield Section("SETTINGS", tuple(block for pair in found for block in pair))


def _option(option: Option) -> Item:
    value = f" {option.metavar}" if option.metavar else ""
    default = f" Default: `{option.default}`." if option.default else ""
    repeats = " It can be repeated." if option.many and "repeat" not in option.help.lower() else ""
    return Item(
        ", ".join(f"`{name}{value}`" for name in option.names), f"{option.help}{default}{repeats}"
    )


def _see_also(command: Command, tree: Command) -> str:
    above = page_name(command.path[:-1]) if len(command.path) > 1 else "nessie"
    siblings = [
        page_name(other.path)
        for other in every(tree)
        if other.path in _RELATED.get(command.path, ())
    ]
    concepts = [f"nessie-{name}(7)" for name in _CONCEPTS_OF.get(command.path[0], ())]
    return ", ".join([f"{above}(1)", *(f"{name}(1)" for name in siblings), *concepts])


_RELATED: dict[tuple[str, ...], tuple[tuple[str, ...], ...]] = {
    ("merge",): (("transplant",), ("diff",)),
    ("transplant",): (("merge",),),
    ("commit",): (("status",), ("content",)),
    ("status",): (("commit",), ("reset",)),
    ("branch",): (("tag",), ("switch",)),
    ("tag",): (("branch",),),
    ("undo",): (("reflog",),),
    ("reflog",): (("undo",),),
    ("log",): (("show",), ("diff",)),
    ("show",): (("log",),),
    ("diff",): (("log",), ("show",)),
    ("store", "backup"): (("store", "load"),),
    ("store", "load"): (("store", "backup"), ("init",)),
    ("audit",): (("fsck",), ("stats",)),
    ("stats",): (("log",), ("audit",)),
    ("doctor",): (("config",), ("version",)),
}
_CONCEPTS_OF: dict[str, tuple[str, ...]] = {
    "merge": ("conflicts", "revisions"),
    "transplant": ("conflicts", "revisions"),
    "commit": ("conflicts",),
    "status": ("conflicts",),
    "resolve": ("conflicts",),
    "log": ("revisions", "filters"),
    "show": ("revisions",),
    "diff": ("revisions",),
    "blame": ("revisions",),
    "branch": ("revisions", "filters"),
    "tag": ("revisions", "filters"),
    "content": ("revisions", "filters"),
    "init": ("stores", "access"),
    "serve": ("stores",),
    "ui": ("stores",),
    "store": ("stores",),
    "fsck": ("stores",),
    "doctor": ("stores", "access"),
    "audit": ("revisions",),
    "stats": ("revisions",),
    "config": ("stores",),
}


# -- nessie itself ---------------------------------------------------------------------------------


def _overview(tree: Command) -> Page:
    written = {
        part.title: part.blocks
        for part in sections((TEXTS / "nessie.md").read_text(encoding="utf-8"))
    }
    by_section: dict[str, list[Item]] = {}
    for child, item in zip(
        (c for c in tree.children if not c.hidden), _command_items(tree), strict=True
    ):
        if not child.alias_of:
            by_section.setdefault(child.section, []).append(item)
    commands: list[Block] = []
    for title, items in by_section.items():
        commands += [Paragraph(f"**{title}**"), Items(tuple(items))]
    parts = [
        Section(
            "SYNOPSIS", (Code("", ("nessie [GLOBAL OPTION]... COMMAND [OPTION]... [WORD]...",)),)
        ),
        Section("DESCRIPTION", (Paragraph(tree.summary), *written.pop(""))),
        Section("COMMANDS", tuple(commands)),
        Section(
            "GLOBAL OPTIONS",
            (
                Paragraph(_GLOBAL),
                Items(tuple(_option(option) for option in (*tree.options, HELP, VERSION))),
            ),
        ),
        *(Section(title, found) for title, found in written.items()),
        Section("SEE ALSO", (Paragraph(", ".join(f"nessie-{name}(7)" for name in CONCEPTS)),)),
    ]
    return Page("nessie", 1, _summary("Git for a data lake's catalog"), tuple(parts))


_GLOBAL = (
    "They stand before the command or behind it and mean the same in both places; of an option"
    " that is given twice the last one counts."
)
