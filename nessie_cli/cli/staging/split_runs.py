"""The warning about runs of which a command reverts some tables only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import UNSET, Struct, UnsetType

from nessie_cli.inspection.split_runs import SplitRun
from nessie_cli.inspection.text import short_hash, visible
from nessie_cli.model import ContentKey
from nessie_cli.wire.contents import Key
from nessie_cli.wire.scalars import Hash
from nessie_cli.workspace.staging import StagedList, proposed

MOST_NAMED = 5
"""The number of tables that a warning names; the others are counted."""


class SplitRunDocument(Struct, rename="camel"):
    """A run, published as the commit `hash`: the keys that are reverted, and the others."""

    run: str
    hash: Hash
    keys: list[Key]
    other_keys: list[Key]


def split_documents(runs: Iterable[SplitRun]) -> list[SplitRunDocument] | UnsetType:
    """Returns the runs as JSON; UNSET if there are none."""
    documents = [
        SplitRunDocument(run.id, run.commit, _keys(run.reverted), _keys(run.others)) for run in runs
    ]
    return documents or UNSET


def split_notes(runs: Iterable[SplitRun]) -> list[str]:
    """Returns a warning for each run."""
    return [
        f"warning: this reverts {_names(run.reverted)} of run {run.id}"
        f" ({short_hash(run.commit)}), but not {_names(run.others)}"
        for run in runs
    ]


def ids_of(staged: StagedList) -> set[str | None]:
    """Returns the ids of the contents that operations change."""
    contents = (content for item in staged for content in (item.seen, proposed(item)))
    return {content.id for content in contents if content is not None}


def _keys(keys: Iterable[ContentKey]) -> list[Key]:
    return [Key.of(key) for key in keys]


def _names(keys: Sequence[ContentKey]) -> str:
    names = [visible(str(key)) for key in keys[:MOST_NAMED]]
    if len(keys) > MOST_NAMED:
        names.append(f"{len(keys) - MOST_NAMED} more")
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
