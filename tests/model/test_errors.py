"""The hint of an error is an attribute, and the end of its message."""

import pytest

from nessie_cli.errors import (
    AlreadyExists,
    ContentNotFound,
    DamagedObject,
    InvalidInput,
    NessieError,
    NotAllowed,
    OutcomeUnknown,
    ReferenceConflict,
    ReferenceNotFound,
)
from nessie_cli.revisions import parse


@pytest.mark.parametrize(
    "error",
    [
        InvalidInput("it failed", hint="do this"),
        NotAllowed("it failed", hint="do this"),
        ReferenceNotFound("it failed", "x", hint="do this"),
        ContentNotFound("it failed", "db.x", hint="do this"),
        AlreadyExists("it failed", "x", hint="do this"),
        ReferenceConflict("it failed", hint="do this"),
        DamagedObject("it failed", hint="do this"),
        OutcomeUnknown("it failed", "id", hint="do this"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_the_message_ends_with_the_hint(error: NessieError) -> None:
    assert (error.message, error.hint) == ("it failed. Hint: do this", "do this")
    assert str(error) == error.message


def test_without_a_hint_the_message_is_as_given() -> None:
    error = InvalidInput("it failed")
    assert (error.message, error.hint) == ("it failed", "")


def test_a_reflog_index_of_git_gets_a_hint() -> None:
    with pytest.raises(InvalidInput) as caught:
        parse("main@{1}")
    assert caught.value.hint.startswith("`nessie reflog REF` lists")
    with pytest.raises(InvalidInput) as caught:
        parse("main@zz")
    assert caught.value.hint == ""
