"""The contract is asserted from modules that pytest does not collect: have it explain their assertions as well."""

import pytest

pytest.register_assert_rewrite("tests.store.contract", "tests.store.contract_concurrency", "tests.store.samples")
