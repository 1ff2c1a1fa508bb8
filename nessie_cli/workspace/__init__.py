"""The folder `.nessie/`, the staged batch, settings, and the environment.

Only this package reads any of them. `folder` finds and creates the workspace, `settings` reads
TOML, `user` is the user's own configuration, `batch` stores staged operations, and `staging` adds
operations to them.
"""
