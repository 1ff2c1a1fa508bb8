"""A catalog in which one text is in every place that a user can fill, and all of its pages."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlencode

from nessie_cli.model import (
    UDF,
    CommitMeta,
    Content,
    ContentKey,
    Delete,
    DeltaLakeTable,
    IcebergTable,
    IcebergView,
    Namespace,
    Put,
    ReferenceType,
)
from nessie_cli.repository.base import Repository
from nessie_cli.wire.keys import encode_canonical

_IN_KEY = 160
"""Characters of the text in one element of a key. A key has at most 500."""


class ForeignText:
    """Fills a repository. `branch` is a name, because only some characters are allowed in it."""

    def __init__(self, repository: Repository, text: str, branch: str) -> None:
        self.repository, self.text, self.branch = repository, text, branch
        self.default = repository.config().default_branch
        self.name = "".join(each for each in text if each.isprintable() or each == "\u202e")[
            :_IN_KEY
        ]
        self.table = ContentKey((self.name, f"t{self.name}"))
        self.view = ContentKey((self.name, f"v{self.name}"))
        self.tag = f"{branch[:-1]}.tag"
        self._fill()

    def _fill(self) -> None:
        namespace = Namespace(elements=(self.name,), properties={self.text: self.text})
        others = (
            DeltaLakeTable(
                metadata_location_history=(self.text,),
                checkpoint_location_history=(self.text,),
                last_checkpoint=self.text,
            ),
            UDF(version_id=self.text, signature_id=self.text),
        )
        self._put(
            self.default,
            {
                ContentKey((self.name,)): namespace,
                self.table: self._table(1),
                self.view: IcebergView(
                    metadata_location=self.text,
                    version_id=1,
                    schema_id=1,
                    sql_text=f"select '{self.text}'\nfrom {self.text}",
                    dialect=self.text,
                ),
                **{ContentKey((f"{n}{self.name}",)): each for n, each in enumerate(others)},
            },
        )
        head = self.repository.reference(self.default).hash
        self.repository.create_reference(ReferenceType.BRANCH, self.branch, head)
        self.repository.create_reference(ReferenceType.TAG, self.tag, head, message=self.text)
        id_ = self._id_of(self.table)
        self._put(self.default, {self.table: self._table(2, id_)})
        self._put(self.branch, {self.table: self._table(3, id_)})
        # A view with another name.
        view = self.repository.content(self.branch, self.view)
        renamed = ContentKey((self.name, f"w{self.name}"))
        self.repository.commit(self.branch, [Delete(self.view), Put(renamed, view)], self._meta())

    def _put(self, branch: str, contents: dict[ContentKey, Content]) -> None:
        operations = [Put(key, content) for key, content in contents.items()]
        self.repository.commit(branch, operations, self._meta())

    def _table(self, snapshot: int, id_: str | None = None) -> IcebergTable:
        location = f"{self.text}{snapshot}"
        return IcebergTable(id=id_, metadata_location=location, snapshot_id=snapshot)

    def _id_of(self, key: ContentKey) -> str | None:
        return self.repository.content(self.default, key).id

    def _meta(self) -> CommitMeta:
        return CommitMeta(
            f"{self.text}\n\n{self.text}",
            authors=(f"{self.text} <a@example.org>", self.text),
            properties={self.text: (self.text, self.text)},
        )

    def pages(self) -> Iterator[tuple[str, str]]:
        """Yields the name and the address of every page that shows some of the text."""
        default, branch, key = self.default, self.branch, encode_canonical(self.table)
        head = self.repository.reference(branch).hash
        for name, path, query in (
            ("branches", "branches", {"q": branch[:5]}),
            ("tags", "tags", {}),
            ("reflog", "reflog", {}),
            ("reflog of a branch", "reflog", {"ref": branch}),
            ("server", "server", {"ref": branch, "key": key}),
            ("history", "history", {"ref": branch}),
            ("history of a commit", "history", {"ref": head}),
            ("filtered history", "history", {"ref": branch, "message": self.text[:5]}),
            ("commit", "commit", {"ref": default}),
            ("commit with a rename", "commit", {"ref": head}),
            ("revert", "revert", {"ref": head, "into": branch}),
            ("catalog", "catalog", {"ref": default, "changes": 1}),
            (
                "namespace",
                "catalog",
                {"ref": default, "changes": 1, "key": self._encoded(self.name)},
            ),
            (
                "content of a namespace",
                "content",
                {"ref": default, "key": self._encoded(self.name)},
            ),
            ("table", "content", {"ref": branch, "key": key}),
            ("view", "content", {"ref": default, "key": encode_canonical(self.view)}),
            ("search", "search", {"ref": branch, "q": self.name}),
            ("search of all branches", "search", {"ref": branch, "q": self.name, "all": 1}),
            ("compare", "compare", {"from": default, "to": branch}),
            (
                "compare since the merge base",
                "compare",
                {"from": default, "to": branch, "base": "merge"},
            ),
            (
                "changed rows",
                "compare",
                {"from": default, "to": branch, "rows": key, "where": self.text},
            ),
            ("merge", "merge", {"source": branch, "into": default}),
            ("no such page", self.branch, {}),
            ("no such branch", "history", {"ref": f"x{branch}"}),
        ):
            yield name, f"/ui/{path}?{urlencode(query)}"

    def _encoded(self, *elements: str) -> str:
        return encode_canonical(ContentKey(elements))
