"""The export itself: the steps of a plan, in an order in which it can stop and be repeated."""

from __future__ import annotations

from nessie_cli.errors import InvalidInput, ReferenceConflict
from nessie_cli.exporting.metadata import write_files
from nessie_cli.exporting.plan import ExportAction, ExportPlace, ExportPlan, ExportStep
from nessie_cli.exporting.target import Target
from nessie_cli.model import CommitMeta, IcebergView
from nessie_cli.model.progress import Progress

_ORDER = (ExportAction.REGISTER, ExportAction.UPDATE, ExportAction.DROP)
"""A renamed table is registered before it is dropped, so that it never is missing."""


def run_export(
    plan: ExportPlan,
    place: ExportPlace,
    meta: CommitMeta,
    progress: Progress | None = None,
    *,
    allow_gap: bool = False,
) -> None:
    """Exports. An error leaves a part of it; the same export completes it.

    With `allow_gap`, tables are dropped and registered if the catalog cannot replace them. `meta`
    is the metadata of the commit on the record. Raises `ReferenceConflict` if the other catalog
    has changed since the plan, `ReferenceMoved` if another export to it has begun, and the errors
    of the target, the repository and the file system.
    """
    target, record = place.target, place.record
    write_files(plan.new_files, place.files)
    # A catalog that refuses every write does so before the record changes.
    target.prepare()
    for name, properties in plan.namespaces:
        target.create_namespace(name, properties)
    record.begin(plan.contents, plan.origins, plan.gone, meta)
    steps = sorted(plan.writes, key=lambda step: (_ORDER.index(step.action), step.name))
    for number, step in enumerate(steps):
        if progress is not None:
            progress(number, len(steps))
        _take(step, target, allow_gap=allow_gap)
    record.complete()


def _take(step: ExportStep, target: Target, *, allow_gap: bool) -> None:
    name, location = step.name.elements, step.location or ""
    if step.action is ExportAction.REGISTER:
        if step.type == IcebergView.type:
            target.register_view(name, location)
        else:
            target.register(name, location)
        return
    # No catalog compares the metadata file itself, so this keeps the time without a check short.
    if target.location(name) != step.earlier:
        raise ReferenceConflict(
            f"{step.name} has changed in {target.label} since the plan",
            hint="run the same command again to see what it would do now",
        )
    if step.action is ExportAction.DROP:
        target.drop(name)
    elif not (target.overwrites and target.overwrite(name, location)):
        if not allow_gap:
            raise InvalidInput(
                f"{target.label} cannot replace a table, so {step.name} must be dropped and"
                " registered again; readers miss it for a moment",
                hint="--allow-gap does it",
            )
        target.replace(name, location, step.earlier or "")
