"""A protected branch refuses the same changes through every API of the server.

That also holds for callers who may do everything.
"""

from __future__ import annotations

from tests.server.client import Client, put, table
from tests.server.iceberg_rest.lake import lake

OURS = {"nessie-cli": "1"}


def requests(main: str, dev: str, theirs: dict[str, object]) -> dict[str, tuple[str, str, object]]:
    """Requests that change `main` in another way than by a plain merge."""
    commit = {"commitMeta": {"message": "m"}, "operations": [put("u")]}
    copied = {"fromRefName": "dev", "hashesToTransplant": [dev]}
    resolved = {
        "fromRefName": "dev",
        "fromHash": dev,
        "keyMergeModes": [
            {
                "key": {"elements": ["t"]},
                "mergeBehavior": "NORMAL",
                "expectedTargetContent": theirs,
                "resolvedContent": {**theirs, "metadataLocation": "file:/t/of-nobody.json"},
            }
        ],
    }
    to_dev = {"type": "BRANCH", "name": "dev", "hash": dev}
    return {
        "commit v2": ("POST", f"/api/v2/trees/main@{main}/history/commit", commit),
        "commit to - v2": ("POST", f"/api/v2/trees/-@{main}/history/commit", commit),
        "commit v1": ("POST", f"/api/v1/trees/branch/main/commit?expectedHash={main}", commit),
        "transplant v2": ("POST", f"/api/v2/trees/main@{main}/history/transplant", copied),
        "transplant v1": (
            "POST",
            f"/api/v1/trees/branch/main/transplant?expectedHash={main}",
            copied,
        ),
        "resolved merge v2": ("POST", f"/api/v2/trees/main@{main}/history/merge", resolved),
        "resolved merge v1": (
            "POST",
            f"/api/v1/trees/branch/main/merge?expectedHash={main}",
            resolved,
        ),
        "assign v2": ("PUT", f"/api/v2/trees/main@{main}", to_dev),
        "assign v1": ("PUT", f"/api/v1/trees/branch/main?expectedHash={main}", to_dev),
        "namespace v1": (
            "PUT",
            "/api/v1/namespaces/namespace/main/n",
            {"type": "NAMESPACE", "elements": ["n"]},
        ),
    }


def test_a_merge_only_branch_is_protected_in_every_api(tmp_path) -> None:
    with lake(tmp_path / "warehouse") as served:
        served.main.namespace("db")
        served.main.create("db", "t")
        client = Client(served.url)
        head = client.commit("main", client.head(), put("t")).body["targetBranch"]["hash"]
        served.branch("dev")
        theirs = client.get("/api/v2/trees/main/contents/t").body["content"]
        changed = put("t", content={**table(2), "id": theirs["id"]})
        dev = client.commit("dev", head, changed).body["targetBranch"]["hash"]
        ours = put("t", content={**table(3), "id": theirs["id"]})
        main = client.commit("main", head, ours).body["targetBranch"]["hash"]
        theirs = client.get("/api/v2/trees/main/contents/t").body["content"]
        served.repository.put_setting("protect.main", "merge-only")
        for name, (method, path, body) in requests(main, dev, theirs).items():
            answer = client.send(method, path, body)
            assert answer.status == 403, (name, answer)
            assert "protect.main = merge-only" in answer.body["message"], name
            assert client.head() == main, name
        files = served.files()
        for answer in (
            served.main.namespace("other"),
            served.main.create("db", "u"),
            served.main.set_properties("db", "t"),
            served.main.send("DELETE", "/namespaces/db/tables/t"),
            served.main.view("db", "v"),
        ):
            assert answer.status == 403, answer
            assert "merge-only" in answer.body["error"]["message"]
        assert (client.head(), served.files()) == (main, files)
        merge = {"fromRefName": "dev", "fromHash": dev, "defaultKeyMergeMode": "FORCE"}
        answer = client.send("POST", f"/api/v2/trees/main@{main}/history/merge", merge)
        assert answer.status == 200, answer
