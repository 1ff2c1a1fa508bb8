"""Merges of runs that combine the tables which both sides changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from nessie_cli.errors import ReferenceConflict
from nessie_cli.model import CombinationRules, MergeResult
from nessie_cli.repository.base import Repository
from nessie_cli.repository.changes import MergeOptions
from nessie_cli.runs.publication import Combine


def combine_by(
    repository: Repository, rules: CombinationRules | None, properties: Mapping[str, str]
) -> Combine:
    """Returns a function that performs a merge and combines tables (None: never).

    A server with warehouses combines the tables in them; other files are read and written here,
    with the `properties` of PyIceberg's FileIO.
    """

    def combine(
        merge: Callable[[MergeOptions], MergeResult], options: MergeOptions, description: str
    ) -> MergeResult:
        if rules is None:
            return merge(options)
        try:
            return merge(options)
        except ReferenceConflict as error:
            conflict = error
        if repository.combining_server is not None:
            options = replace(options, combination=rules)
        try:
            from nessie_cli.iceberg.combination.file_combiner import FileCombiner
            from nessie_cli.iceberg.combination.merging import TableMerger
            from nessie_cli.iceberg.files import Files
        except ImportError:
            raise conflict from None
        combiner = FileCombiner(Files(properties), description, rules)
        return TableMerger([combiner]).merge(merge, options)

    return combine
