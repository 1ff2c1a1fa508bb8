"""The main job, start to end, on real Iceberg tables; `make demo` runs it, and the transcript in README.md is generated from it."""
