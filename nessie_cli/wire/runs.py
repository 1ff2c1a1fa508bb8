"""The records of runs as JSON, between our client and our server."""

from __future__ import annotations

from msgspec import Struct

from nessie_cli.model.runs import PipelineRun


class RunAnswer(Struct, frozen=True):
    """A run and the version of its record; null if there is none, or if it was not stored."""

    run: PipelineRun | None
    version: int = 0


class RunsAnswer(Struct, frozen=True):
    """The records of runs."""

    runs: list[RunAnswer]


class RunRequest(Struct, frozen=True):
    """A record to store in place of the one with this version (0: there is none)."""

    run: PipelineRun
    version: int
