"""The contract's modules are tests, so their assertions explain themselves."""

import pytest

pytest.register_assert_rewrite(
    "tests.repository.contract",
    *(
        f"tests.repository.contract_{part}"
        for part in ("commits", "conflicts", "merge", "merge_base", "reading", "references", "renames", "revisions", "transplant")
    ),
    "tests.repository.vocabulary",
)
