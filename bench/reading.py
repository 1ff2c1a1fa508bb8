"""The first page of every reading command, in a large repository.

It has a hundred thousand commits, ten thousand tables and a thousand branches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from bench import corpus
from bench.commands import How, Measured, ratios
from bench.lake import lake, moment
from bench.report import Line

GOAL = 10.0
_TABLE = str(corpus.table_key(10))
_COMMANDS = f"""
log
log -n 20 --json
log --oneline
log --graph
log --graph --all --oneline
log --all
log --stat
log --name-status -n 20
log -p -n 10
log --first-parent
log --merges
log --author writer-7
log --since SINCE --until UNTIL
log --until UNTIL
log --reverse -n 20
log -n 20 --skip 1000
log main~50000
log main~100..main
log BRANCH..main
log BRANCH...main
log -- {_TABLE}
log -- area_0000
show
show main~1000
show --json
diff main~10
diff main~1000 --stat
diff v0 main --name-status
diff BRANCH main --json
diff main...BRANCH
status
status --json
branch
branch --json
branch -v
branch -v --json
branch --contains main~1000
branch --no-contains main~1000
branch --merged
branch --no-merged
branch --points-at main
branch --sort -time
branch --sort ahead
branch --sort -behind
branch --list team/feature-9*
branch --show-current
tag
tag -v
tag --contains main~1000
tag --sort -time
content list
content list -v
content list --json
content list --tree
content show {_TABLE}
content show {_TABLE} v0
content history {_TABLE}
content history {_TABLE} -n 5 --json
blame
blame area_0000
blame {_TABLE}
reflog
reflog --all
reflog BRANCH
stash list
stash show
config list
config get author
help log
log --help
"""


def measure(scratch: Path, how: How) -> Iterator[Line]:
    """Returns the ratios to `python -c pass`."""
    return ratios(lake(scratch, small=how.small), dict(_lines(how)), how)


def _lines(how: How) -> Iterator[tuple[str, Measured]]:
    """Returns the command lines. BRANCH is an unmerged branch that leaves half-way in history."""
    stands_for: Mapping[str, str] = {
        "SINCE": moment(0.5, small=how.small),
        "UNTIL": moment(0.6, small=how.small),
    }
    branch = f"team/feature-{25 if how.small else 501}"
    for line in _COMMANDS.split("\n"):
        words = [stands_for.get(word, word.replace("BRANCH", branch)) for word in line.split()]
        if words:
            yield f"nessie {line}", Measured(words, GOAL)
