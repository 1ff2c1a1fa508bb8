"""Pipelines' runs: work on a branch that is published as one commit, or not at all.

`begin` (`runs/lifecycle.py`) makes the branch and the record of a run. `ActiveRun` is the run in
the hands of a process: it checks, publishes, fails or discards.
"""
