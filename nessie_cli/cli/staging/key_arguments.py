"""The key arguments of staging verbs: keys, or globs of existing keys."""

from collections.abc import Iterable, Sequence

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.key_patterns import named_keys
from nessie_cli.cli.errors.suggestions import did_you_mean
from nessie_cli.cli.staging.submission import head_of_branch
from nessie_cli.errors import ContentNotFound
from nessie_cli.model import ContentKey
from nessie_cli.model.key_patterns import KeyPattern
from nessie_cli.workspace.staging import StagedList, proposed


def staged_now(app: Invocation) -> StagedList:
    """Returns the staged operations; none without a workspace."""
    batch = app.batch_file().read() if app.store.workspace is not None else None
    return batch.staged if batch else ()


def existing_keys(
    app: Invocation, arguments: Sequence[str], expected_hash: str | None
) -> tuple[ContentKey, ...]:
    """Returns the keys that arguments select.

    A glob matches keys that exist on the branch with the batch applied, or at the expected commit.
    Raises `ContentNotFound` if there are none.
    """

    def existing(pattern: KeyPattern) -> Iterable[ContentKey]:
        repository = app.repository()
        head = (
            app.revision(expected_hash)
            if expected_hash
            else head_of_branch(repository, app.reference_name())
        )
        keys = {entry.key for entry in repository.entries(head, pattern.keys)}
        for item in () if expected_hash else staged_now(app):
            if proposed(item) is None:
                keys.discard(item.key)
            else:
                keys.add(item.key)
        return sorted(keys)

    where = expected_hash or app.reference_name()
    return tuple(named_keys(arguments, existing, f"key of {where}"))


def staged_keys(arguments: Sequence[str], staged: Sequence[ContentKey]) -> list[ContentKey]:
    """Returns the selected staged keys. Raises `ContentNotFound` if nothing is staged for one."""
    keys, staged_set = named_keys(arguments, lambda _: staged, "staged key"), set(staged)
    for key in keys:
        if key not in staged_set:
            near = did_you_mean(str(key), map(str, staged))
            raise ContentNotFound(f"nothing is staged for key '{key}'{near}", key)
    return keys
