"""The records of runs: an extension to REST v2.

Callers need the right `MANAGE_RUNS` on the branch of the run, and see and change their own runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from nessie_cli.errors import InvalidInput, NotAllowed
from nessie_cli.model.runs import PipelineRun, RunState, check_run_id
from nessie_cli.repository.runs import RunRecord, RunRecords, run_not_found
from nessie_cli.server.auth.authorized import caller_of, require_runs
from nessie_cli.server.nessie.extensions import require_extensions
from nessie_cli.server.pipeline.call import NO_CONTENT, Answer, Call
from nessie_cli.server.pipeline.table import WRITES_FILES, Doc, Endpoint
from nessie_cli.wire.runs import RunAnswer, RunRequest, RunsAnswer
from nessie_cli.wire.validation import checked

_PATH = "/api/v2/runs/{run}"


class Runs:
    """Answers requests for the records of runs."""

    def __init__(self, records: RunRecords) -> None:
        self._records = records

    @property
    def endpoints(self) -> Sequence[Endpoint]:
        """The endpoints. Those that write may wait for the store."""
        return (
            Endpoint("GET", "/api/v2/runs", self.get_runs, doc=Doc("The runs of the caller")),
            Endpoint("GET", _PATH, self.get_run, doc=Doc("A run")),
            Endpoint(
                "PUT", _PATH, self.put_run, WRITES_FILES, body="json", doc=Doc("Change a run")
            ),
            Endpoint("DELETE", _PATH, self.delete_run, WRITES_FILES, doc=Doc("Delete a run")),
        )

    def get_runs(self, call: Call) -> Answer:
        """The runs of the caller (in a state)."""
        require_extensions(call)
        state = call.text("state")
        try:
            records = self._records.all(RunState(state) if state else None)
        except ValueError:
            raise InvalidInput(f"state: {state!r} is none of a run") from None
        own = [record for record in records if _is_own(call, record.run)]
        return Answer(RunsAnswer([_answer(record) for record in own]))

    def get_run(self, call: Call) -> Answer:
        """A run of the caller."""
        record = self._own(call)
        return Answer(RunAnswer(None) if record is None else _answer(record))

    def put_run(self, call: Call) -> Answer:
        """Stores the next version of a record, with the caller of the request and its roles."""
        given = checked(RunRequest, call.needed_json("run"), "")
        run, record = given.run, self._own(call)
        if run.id != call.segments["run"]:
            raise InvalidInput("run.id: differs from that of the path")
        name, roles = caller_of(call.repository, call.caller)
        if record is not None and _constant(record.run) != _constant(run):
            raise InvalidInput("run: what a run begins with cannot change")
        stored = self._records.put(RunRecord(replace(run, who=name, roles=roles), given.version))
        return Answer(RunAnswer(None) if stored is None else _answer(stored))

    def delete_run(self, call: Call) -> Answer:
        """Deletes a record."""
        if self._own(call) is None:
            raise run_not_found(call.segments["run"])
        self._records.delete(call.segments["run"])
        return NO_CONTENT

    def _own(self, call: Call) -> RunRecord | None:
        """Returns the record that a request names. Raises `NotAllowed` for another caller's."""
        require_extensions(call)
        id_ = check_run_id(call.segments["run"])
        record = self._records.get(id_)
        require_runs(call.repository, f"run/{id_}")
        if record is not None and not _is_own(call, record.run):
            raise NotAllowed(f"run {id_} was begun by another caller")
        return record


def _is_own(call: Call, run: PipelineRun) -> bool:
    return call.caller is None or call.caller == run.who


def _answer(record: RunRecord) -> RunAnswer:
    return RunAnswer(replace(record.run, roles=()), record.version)


def _constant(run: PipelineRun) -> tuple[object, ...]:
    """Returns the part of a record that never changes."""
    return run.id, run.target, run.base, run.key, run.began
