"""The setting `namespace-validation`: `false` allows keys without a namespace."""

from __future__ import annotations

import pytest

from nessie_cli.errors import ReferenceConflict
from nessie_cli.repository.base import Repository
from tests.repository.vocabulary import NS, Catalog, delete, found, put, table

SETTING = "namespace-validation"


class NamespaceValidation:
    def test_without_validation_keys_need_no_namespace(self, catalog: Catalog) -> None:
        catalog.repository.put_setting(SETTING, "false")
        catalog.write("main", {"ns": NS, "ns.t": 1, "table": 1})
        catalog.commit(
            "main", put("absent.deep.t", table(1)), put("table.t", table(1)), delete("ns")
        )
        assert catalog.numbers() == {"absent.deep.t": 1, "ns.t": 1, "table": 1, "table.t": 1}
        # A key without a namespace can be read, changed and deleted.
        catalog.write("main", {"absent.deep.t": 2, "ns.t": None})
        assert catalog.numbers() == {"absent.deep.t": 2, "table": 1, "table.t": 1}

    @pytest.mark.parametrize("verb", ["merge", "transplant"])
    def test_without_validation_merges_need_no_namespace(
        self,
        catalog: Catalog,
        verb: str,
    ) -> None:
        catalog.write("main", {"ns": NS})
        catalog.branch("dev")
        brought = catalog.write("dev", {"ns.t": 1})
        catalog.write("main", {"ns": None})

        def bring(request_id: str | None = None) -> None:
            if verb == "merge":
                catalog.merge("dev", request_id=request_id)
            else:
                catalog.transplant([brought], request_id=request_id)

        with pytest.raises(ReferenceConflict) as refused:
            bring()
        assert found(refused) == [("NAMESPACE_ABSENT", "ns")]
        catalog.repository.put_setting(SETTING, "false")
        bring("one")
        head = catalog.head()
        assert catalog.numbers() == {"ns.t": 1}
        # A repeated request is not validated again, whatever the setting is now.
        catalog.repository.put_setting(SETTING, None)
        bring("one")
        assert catalog.head() == head

    @pytest.mark.parametrize("value", ["true", None])
    def test_any_other_value_validates_namespaces(
        self,
        catalog: Catalog,
        repository: Repository,
        value: str | None,
    ) -> None:
        repository.put_setting(SETTING, "false")
        repository.put_setting(SETTING, value)
        with pytest.raises(ReferenceConflict) as refused:
            catalog.commit("main", put("ns.t", table(1)))
        assert found(refused) == [("NAMESPACE_ABSENT", "ns")]
