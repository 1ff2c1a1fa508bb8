"""The records of runs at a server."""

from __future__ import annotations

from typing import Any

from msgspec import convert, to_builtins

from nessie_cli.model.runs import RunState
from nessie_cli.repository.remote.session import RestSession, understood
from nessie_cli.repository.remote.transport import segment
from nessie_cli.repository.runs import RunRecord
from nessie_cli.wire.runs import RunAnswer, RunRequest, RunsAnswer


class RemoteRuns:
    """The `RunRecords` of a server: those of the caller."""

    def __init__(self, session: RestSession) -> None:
        self._transport = session.transport

    def get(self, id_: str) -> RunRecord | None:
        """Returns the record of a run, or None."""
        return _record(self._transport.get(f"runs/{segment(id_)}"))

    def all(self, state: RunState | None = None) -> list[RunRecord]:
        """Returns the records of all runs (in a state), the oldest first."""
        answer = self._transport.get("runs", {"state": state})

        def decode(answer: Any) -> list[RunRecord]:
            runs = convert(answer, RunsAnswer).runs
            return [RunRecord(each.run, each.version) for each in runs if each.run is not None]

        return understood(answer, decode, "the runs")

    def put(self, record: RunRecord) -> RunRecord | None:
        """Stores a record, and returns it with its new version, or None.

        The server answers a repetition with None, so a lost answer is never a success.
        """
        body = to_builtins(RunRequest(record.run, record.version))
        return _record(self._transport.send("PUT", f"runs/{segment(record.run.id)}", None, body))

    def delete(self, id_: str) -> None:
        """Deletes a record."""
        self._transport.send("DELETE", f"runs/{segment(id_)}")


def _record(answer: Any) -> RunRecord | None:
    def decode(answer: Any) -> RunRecord | None:
        decoded = convert(answer, RunAnswer)
        return None if decoded.run is None else RunRecord(decoded.run, decoded.version)

    return understood(answer, decode, "a run")
