"""Pages as Markdown for `docs/reference/commands/`, with links between them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from manual.document import INLINE, Block, Code, Page, Paragraph

NOTE = "<!-- Written by `make docs`; the texts are in manual/ and in the commands. -->\n"


def page(of: Page) -> str:
    """Returns the whole file."""
    lines = [
        NOTE,
        f"# {of.title}",
        "",
        f"{linked(of.summary)[:1].upper()}{linked(of.summary)[1:]}",
        "",
    ]
    if of.aliases:
        lines += [
            "Also: " + ", ".join(f"`{alias.replace('-', ' ', 1)}`" for alias in of.aliases),
            "",
        ]
    for section in of.sections:
        heading = [f"## {section.title.capitalize()}", ""] if section.title else []
        lines += [*heading, *_blocks(section.blocks)]
    return "\n".join(lines).rstrip("\n") + "\n"


def index(pages: Sequence[Page]) -> str:
    """Returns the list of all pages, with the table of contents of the site."""
    lines = [
        NOTE,
        "# Commands",
        "",
        "Every page is also a manual page: `nessie help log`, `man nessie-log`.",
        "",
        "```{toctree}",
        ":hidden:",
        "",
        *(f"{p.name.replace('-', ' ')} <{p.name}>" if p.number == 1 else p.name for p in pages),
        "```",
        "",
    ]
    for number, title in ((1, "Commands"), (7, "Topics")):
        lines += [f"## {title}", ""]
        lines += [
            f"- [{p.title}]({p.name}.md): {linked(p.summary)}" for p in pages if p.number == number
        ]
        lines.append("")
    return "\n".join(lines)


def _blocks(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        if isinstance(block, Paragraph):
            yield linked(block.text)
        elif isinstance(block, Code):
            yield from _code(block, "")
        else:
            for item in block.items:
                yield (
                    f"- {linked(item.term)}: {linked(item.text)}"
                    if item.term
                    else f"- {linked(item.text)}"
                )
                for code in item.blocks:
                    yield from _code(code, "  ")
        yield ""


def _code(block: Code, indent: str) -> Iterator[str]:
    yield f"{indent}```{block.language}"
    yield from (indent + line for line in block.lines)
    yield f"{indent}```"


def linked(text: str) -> str:
    """Returns a text with links to the pages it mentions; words in angle brackets are unchanged."""
    return (
        INLINE.sub(_link, text).replace("<", "&lt;")
        if "<" in re.sub(r"`[^`]*`", "", text)
        else INLINE.sub(_link, text)
    )


def _link(mark: re.Match[str]) -> str:
    return f"[{mark['page']}]({mark['page'][:-3]}.md)" if mark["page"] else mark[0]
