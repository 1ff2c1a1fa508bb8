"""The columns of the datasets of a run, which are Parquet files."""

from __future__ import annotations

import pyarrow as pa

_TIME = pa.timestamp("us", tz="UTC")

CONTENTS = pa.schema(
    [
        ("content_id", pa.string()),
        ("key", pa.string()),
        ("type", pa.string()),
        ("metadata_location", pa.string()),
        ("snapshot_id", pa.int64()),
        ("live", pa.bool_()),
        ("reference", pa.string()),
        ("commit", pa.string()),
    ]
)
"""The states of tables and views in the history, each once, `live` ones first.

`reference` and `commit` are those where a state was found first.
"""

LIVE = pa.schema([("path", pa.string()), ("kind", pa.string()), ("content_id", pa.string())])
"""Every live file by the normal form of its location. `content_id` is one that needs it."""

BASES = pa.schema([("base", pa.string()), ("content_id", pa.string()), ("key", pa.string())])
"""The locations of tables in their normal form, deleted tables included."""

LISTED = pa.schema(
    [
        ("path", pa.string()),
        ("location", pa.string()),
        ("size", pa.int64()),
        ("modified", _TIME),
        ("base", pa.string()),
    ]
)
"""Listed files: `path` is the normal form, `location` the name in the file system."""

CANDIDATES = LISTED.append(pa.field("content_ids", pa.list_(pa.string())))
"""Files that are not live. `content_ids` have, or had, a location that contains the file."""

FINDINGS = pa.schema(
    [
        ("kind", pa.string()),
        ("content_id", pa.string()),
        ("key", pa.string()),
        ("reference", pa.string()),
        ("location", pa.string()),
        ("base", pa.string()),
        ("message", pa.string()),
    ]
)
"""Problems. No file below the `base` of a BROKEN content is collected."""
