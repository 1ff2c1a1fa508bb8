"""Checks of the language of this project, run by `make lint-language`."""
