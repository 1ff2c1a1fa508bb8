"""The contract's modules are tests, so their assertions explain themselves."""

import pytest

_PARTS = "commits conflicts grouping key_log merge merge_base reading references renames revisions transplant"

pytest.register_assert_rewrite(
    "tests.repository.contract", *(f"tests.repository.contract_{part}" for part in _PARTS.split()), "tests.repository.vocabulary"
)
