"""The columns of what a run of garbage collection writes down, each dataset Parquet files."""

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
"""The tables and views of the history, each state of each once: `reference` and `commit` are where it was found first. `live` ones come first."""

LIVE = pa.schema([("path", pa.string()), ("kind", pa.string()), ("content_id", pa.string())])
"""Every file that a live content needs, by the normal form of its location; `content_id` is one of those that need it."""

BASES = pa.schema([("base", pa.string()), ("content_id", pa.string()), ("key", pa.string())])
"""Where tables lie, those that nobody has any more included; normal forms."""

LISTED = pa.schema(
    [
        ("path", pa.string()),
        ("location", pa.string()),
        ("size", pa.int64()),
        ("modified", _TIME),
        ("base", pa.string()),
    ]
)
"""What is there: `path` is the normal form, `location` the name by which the file system knows it."""

CANDIDATES = LISTED.append(pa.field("content_ids", pa.list_(pa.string())))
"""What is there and not needed; `content_ids` are those that have, or had, their place around it."""

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
"""What is not as it should be. Nothing below the `base` of a BROKEN one is collected."""
