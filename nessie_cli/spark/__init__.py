"""A repository in Spark: `register(spark)`, then `spark.read.format("nessie")`.

Needs the extra `spark`.
"""

from __future__ import annotations

# Names are loaded on first use, so that a command loads only the modules that it needs.
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

_HOME = {
    "register": "nessie_cli.spark.source",
    "NessieDataSource": "nessie_cli.spark.source",
    "nessie_errors": "nessie_cli.spark.errors",
    "failure_of": "nessie_cli.spark.errors",
    "session": "nessie_cli.spark.engine",
    "java_home": "nessie_cli.workspace.java",
    "audited": "nessie_cli.spark.audit",
    "history_of": "nessie_cli.spark.stats",
    "sizes_of": "nessie_cli.spark.stats",
    "gc_mark": "nessie_cli.spark.mark",
    "gc_plan": "nessie_cli.spark.plan",
    "SparkEngine": "nessie_cli.spark.combination",
    "SparkRows": "nessie_cli.spark.row_merge",
}


def __getattr__(name: str) -> Any:
    """Loads a public name on first use."""
    from importlib import import_module

    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
