"""Tables that a revert or a restoration would put into the catalog a second time.

On servers without our extensions, a deleted table that comes back has another content id. So its id
does not show that it is in the catalog already, under another key; its metadata file does. The same
holds for a metadata file that was registered again. Two entries would write one table, and dropping
one could delete the files of both.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from nessie_cli.errors import InvalidInput
from nessie_cli.model import Content, ContentKey, metadata_file

State = Mapping[ContentKey, Content]
Edits = Mapping[ContentKey, Content | None]


def refuse_second_entries(state: State, edits: Edits, options: Sequence[str] = ()) -> None:
    """Raises `InvalidInput` if edits of a state create a table that is there under another key.

    `options` are the global options of the command line in the hint.
    """
    for key, other in second_entries(state, edits):
        line = shlex.join(["nessie", *options, "content", "rename", str(other), str(key)])
        raise InvalidInput(
            f"{key}: {other} has the same metadata file, and one table would have two keys",
            hint=f"`{line}` gives the present entry this key; the deleted one can come back after"
            f" {other} has been deleted",
        )


def second_entries(state: State, edits: Edits) -> Iterator[tuple[ContentKey, ContentKey]]:
    """Yields the keys of tables that edits of a state create, with their keys in the state."""
    present = {content.id for content in state.values()} - {None}
    after = {key: content for key, content in {**state, **edits}.items() if content is not None}
    keys = {metadata_file(content): key for key, content in after.items() if content.id in present}
    staged = {metadata_file(content): key for key, content in state.items() if key not in edits}
    for key, content in edits.items():
        if content is None or content.id in present or (file := metadata_file(content)) is None:
            continue
        other = keys.get(file) or staged.get(file)
        if other is not None and other != key:
            yield key, other
