"""A completion request: the kind of a word, its prefix, and where to look up candidates."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.completion.kinds import Kind

_GLOBAL = {"--store": "store", "--profile": "profile", "--ref": "ref", "-C": "directory"}


class Request(NamedTuple):
    """A word to complete.

    `prefix` precedes the word and is kept, such as `--at=`. `revision` is the value of `--at` or
    `--source` in the line. `words` are the words before this one.
    """

    kind: Kind
    word: str
    app: Invocation
    prefix: str = ""
    revision: str | None = None
    words: Sequence[str] = ()


def request_of_kind(kind: Kind, arguments: Sequence[str]) -> Request:
    """Returns the request for the last word after `nessie`, if a script knows its kind.

    Reads only options that affect where candidates are looked up.
    """
    app = Invocation(())
    app.options.quiet = True
    revision = None
    before, last = arguments[:-1], arguments[-1] if arguments else ""
    for word, following in pairwise([*before, ""]):
        if word == "--":
            break
        name, equals, value = word.partition("=")
        if word.startswith("-C") and len(word) > len("-C"):
            name, equals, value = "-C", "=", word[len("-C") :]
        value = value if equals else following
        if name in _GLOBAL and value:
            app.options.take(_GLOBAL[name], [value] if name == "-C" else value)
        elif name in ("--at", "--source"):
            revision = value
    prefix = ""
    if last.startswith("--") and "=" in last:
        option, equals, last = last.partition("=")
        prefix = option + equals
    return Request(kind, last, app, prefix, revision, before)
