"""Tables that a server combines for a revert, whose operations the command itself computes."""

from __future__ import annotations

from nessie_cli.iceberg.combination.merging import Combiner, TableStates
from nessie_cli.iceberg.locations import LocationRefused
from nessie_cli.model import CombinationRules, CombinedTable, ContentPlace, IcebergTable
from nessie_cli.repository.base import CombiningServer
from nessie_cli.repository.changes import TablePlaces
from nessie_cli.repository.inverse import InvertedCommits


class ServerCombiner(Combiner):
    """Lets a server with warehouses combine tables on a branch, for a revert of commits."""

    def __init__(
        self,
        server: CombiningServer,
        branch: str,
        commits: InvertedCommits,
        rules: CombinationRules,
        description: str,
        *,
        dry_run: bool,
    ) -> None:
        self._server = server
        self._branch = branch
        self._commits = commits
        self._rules = rules
        self._description = description
        self._dry_run = dry_run

    def combine(self, states: TableStates) -> CombinedTable:
        """Combines a table. See `Combiner.combine`."""
        places = TablePlaces(
            self._branch,
            base=ContentPlace(self._commits.last, states.base_key),
            ours=ContentPlace(states.head, states.key),
            theirs=ContentPlace(self._commits.before, states.theirs_key),
            description=self._description,
            dry_run=self._dry_run,
        )
        table = self._server.combine_table(places, self._rules)
        if table.content is None and not table.collisions:
            raise LocationRefused(f"{states.key}: its files are not in a warehouse of the server")
        return table

    def discard(self, content: IcebergTable) -> None:
        """Leaves the files of a table to garbage collection: a client cannot remove them."""
