"""The records of runs: an extension to REST v2.

Callers need the right `MANAGE_RUNS` on the branch of the run, and see and change their own runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from threading import Lock

from msgspec.structs import replace

from nessie_cli.errors import AlreadyExists, InvalidInput, NotAllowed, ReferenceNotFound
from nessie_cli.model.runs import MOST_TEXT, PipelineRun, RunState, check_record, check_run_id
from nessie_cli.repository.runs import RunRecord, StoredRuns, run_not_found
from nessie_cli.server.auth.authorized import caller_of, may_have_runs, require_runs
from nessie_cli.server.auth.run_credentials import credentials_of
from nessie_cli.server.http.streams import ListingBody
from nessie_cli.server.nessie.extensions import require_extensions
from nessie_cli.server.pipeline.call import Answer, Call
from nessie_cli.server.pipeline.table import WRITES_FILES, Doc, Endpoint
from nessie_cli.wire.runs import RunAnswer, RunRequest
from nessie_cli.wire.validation import checked

MOST_RUNS = 1000
"""The most records of one caller: each merge reads those of failed runs."""
_PATH = "/api/v2/runs/{run}"


class Runs:
    """Answers requests for the records of runs."""

    def __init__(self, records: StoredRuns) -> None:
        self._records = records
        self._counting = Lock()
        """Counting reads the records of all callers, for some tenths of a second."""

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
        """The runs of the caller."""
        require_extensions(call)
        own = [
            record
            for record in self._records.all()
            if _is_own(call, record.run) and may_have_runs(call.repository, record.run.branch)
        ]
        # Each is encoded by itself, and all of them are in memory until the last one was sent.
        size = MOST_TEXT * len(own)
        return Answer(ListingBody("runs", map(_answer, own), dict, held=lambda: size))

    def get_run(self, call: Call) -> Answer:
        """A run of the caller."""
        _, record = self._own(call)
        return Answer(RunAnswer(None) if record is None else _answer(record))

    def put_run(self, call: Call) -> Answer:
        """Stores the next version of a record, with the caller of the request and its roles."""
        given = checked(RunRequest, call.needed_json("run"), "")
        run, (id_, record) = given.run, self._own(call)
        if run.id != id_:
            raise InvalidInput("run.id: differs from that of the path")
        if (record.version if record else 0) != given.version:
            return Answer(RunAnswer(None))
        name, roles = caller_of(call.repository, call.caller)
        # Without authentication, everybody may change everything anyway.
        is_remote = call.caller is not None
        before = record.run.credentials if record else {}
        run = check_record(
            replace(
                run,
                who=name,
                roles=roles,
                is_remote=is_remote,
                credentials=credentials_of(run.tokens, before, call.credential),
            )
        )
        if record is None:
            with self._counting:
                self._check_new(call, run)
        elif _constant(record.run) != _constant(run):
            raise InvalidInput("run: what a run begins with cannot change")
        stored = self._records.put(RunRecord(run, given.version))
        return Answer(RunAnswer(None) if stored is None else _answer(stored))

    def _check_new(self, call: Call, run: PipelineRun) -> None:
        """Raises `InvalidInput` if a record is not that of a new run, or one too many.

        Raises `AlreadyExists` if there is a branch of this name, which belongs to others: the
        branch of a run is deleted when its record expires.
        """
        if run.state is not RunState.RUNNING or run.head or run.result:
            raise InvalidInput("run: a new run is running, and has published nothing")
        with suppress(ReferenceNotFound):
            call.repository.reference(run.branch)
            raise AlreadyExists(f"Named reference '{run.branch}' already exists.", run.branch)
        if sum(_is_own(call, record.run) for record in self._records.each()) >= MOST_RUNS:
            raise InvalidInput(
                f"there are {MOST_RUNS} runs of this caller",
                hint="`nessie store maintain` deletes those that have expired",
            )

    def delete_run(self, call: Call) -> Answer:
        """Deletes a record."""
        id_, record = self._own(call)
        if record is None:
            raise run_not_found(id_)
        self._records.delete(id_)
        return Answer(RunAnswer(None))

    def _own(self, call: Call) -> tuple[str, RunRecord | None]:
        """Returns the id that a request names, and its record.

        Raises `NotAllowed` for another caller's.
        """
        require_extensions(call)
        id_ = check_run_id(call.segments["run"])
        record = self._records.get(id_)
        require_runs(call.repository, f"run/{id_}")
        if record is not None and not _is_own(call, record.run):
            raise NotAllowed(f"run {id_} was begun by another caller")
        return id_, record


def _is_own(call: Call, run: PipelineRun) -> bool:
    return call.caller is None or call.caller == run.who


def _answer(record: RunRecord) -> RunAnswer:
    return RunAnswer(replace(record.run, roles=(), credentials={}), record.version)


def _constant(run: PipelineRun) -> tuple[object, ...]:
    """Returns the part of a record that never changes."""
    return run.id, run.target, run.base, run.key, run.began, run.nonce
