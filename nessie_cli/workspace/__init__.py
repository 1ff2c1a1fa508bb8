"""The folder `.nessie/`, the staged batch, settings, and the environment: the only room that reads any of them.

`folder` finds and makes the workspace, `settings` reads TOML, `user` knows the user's own configuration, `batch` keeps staged operations and
`staging` says how one more operation changes them.
"""
