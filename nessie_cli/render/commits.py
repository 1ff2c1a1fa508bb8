"""A commit in one line."""

from __future__ import annotations

from nessie_cli.inspection.text import name_of, short_hash, visible
from nessie_cli.model import CommitMeta
from nessie_cli.render.spans import Span
from nessie_cli.render.terminal import Terminal
from nessie_cli.render.text import cells, shorten_end

_LEAST_SUBJECT = 8


def commit_spans(meta: CommitMeta, terminal: Terminal, *, room: int) -> list[Span]:
    """Returns hash, subject, author and time of a commit.

    The subject is shortened to fit into `room` columns.
    """
    hash_ = Span(short_hash(meta.hash or ""), "hash")
    tail = Span(
        ", ".join(
            filter(
                None,
                [
                    visible(name_of(meta.author or meta.committer or "")),
                    terminal.time(meta.commit_time),
                ],
            )
        ),
        "author",
    )
    left = room - cells(hash_.text) - cells(tail.text) - len(' "" ')
    subject = shorten_end(visible(meta.subject), max(left, _LEAST_SUBJECT))
    return [hash_, Span(f' "{subject}" '), tail]


def commit_lines(meta: CommitMeta, terminal: Terminal, *, room: int) -> list[list[Span]]:
    """Returns the same on one line, or on two lines on a narrow terminal."""
    hash_, subject, tail = commit_spans(meta, terminal, room=room)
    if cells(hash_.text + subject.text + tail.text) <= room:
        return [[hash_, subject, tail]]
    return [commit_spans(meta, terminal, room=room + cells(tail.text))[:2], [tail]]
