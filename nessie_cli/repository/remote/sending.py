"""Sends each type of change by its request."""

from __future__ import annotations

from typing import Any, TypeVar

from msgspec import structs

from nessie_cli.errors import InvalidInput
from nessie_cli.kernel.commits import check_client_meta
from nessie_cli.repository.changes import (
    AssignReference,
    Change,
    Commit,
    CreateReference,
    DeleteReference,
    Merge,
    MergeOptions,
    PutSettings,
    RenameReference,
    Transplant,
)
from nessie_cli.repository.remote import revisions
from nessie_cli.repository.remote.server import Server

A = TypeVar("A")
T = TypeVar("T", CreateReference, AssignReference)


def send(server: Server, change: Change[A], request_id: str | None = None) -> A:
    """Returns the answer of the server to a change, or to its dry run."""
    server.check_supported(change)
    answer: A = _sent(server, change, request_id)
    return answer


def _sent(server: Server, change: Change[Any], request_id: str | None) -> Any:  # noqa: PLR0911 - a table of types
    """Sends a change with complete hashes."""
    match change:
        case Commit():
            check_client_meta(change.meta)
            return server.commit(change, request_id)
        case Merge():
            _check_meta(change.options)
            source = revisions.resolve(server.session, change.source)
            return server.merge(change, source, request_id)
        case Transplant():
            _check_meta(change.options)
            if not change.commits:
                raise InvalidInput("No hashes given to transplant.")
            commits = [revisions.existing(server.session, hash_) for hash_ in change.commits]
            return server.transplant(structs.replace(change, commits=commits), request_id)
        case CreateReference():
            return server.create_reference(_with_target(server, change), request_id)
        case AssignReference():
            return server.assign_reference(_with_target(server, change), request_id)
        case RenameReference():
            return server.rename_reference(change, request_id)
        case DeleteReference():
            return server.delete_reference(change, request_id)
        case PutSettings():
            return server.put_settings(change, request_id)
    raise AssertionError(change)


def _check_meta(options: MergeOptions) -> None:
    if options.meta is not None:
        check_client_meta(options.meta)


def _with_target(server: Server, change: T) -> T:
    return structs.replace(change, target=revisions.existing(server.session, change.target))
