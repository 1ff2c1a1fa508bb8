"""Extensions to REST v2, between our own client and our own server only.

Our client sends the header `Nessie-Cli` with each request. Our server then announces the extensions
in its configuration and adds attributes to its answers. Other clients, which may refuse unknown
attributes, never see them. With a server that announces nothing, the client uses plain v2. The
extensions are:

* `Nessie-Request-Id`, a header that names a write, and `GET requests/{id}`, its result;
* `isDryRun` of a commit; a commit, merge or transplant without an expected hash (HEAD);
* `anyOrder` of a transplant: its commits need not be neighbours;
* `message` of a new tag, and `GET messages?ref=`, the messages of tags;
* `POST trees/{ref}/rename?name=`, `GET reflog`, `GET divisions`;
* `GET caller`, the name of the authenticated caller, under which the reflog has its operations;
* `key=` for a log: only the commits of this key, without reading the others;
* `whole=true` of a diff: it is refused if it would show only one key of a renamed content;
* `GET trees/{from}/rows/{to}?key=`, the changed rows of a table, if `ROWS` is announced;
* the settings of the repository, as a configuration object, and the values that an update expects;
* `restoredFrom` of a Put: a deleted content comes back under its id;
* `allowFailedRun` of a merge or transplant, and as a parameter of an assignment: whether commits of
  a failed run are allowed;
* `perContent` of a merge or transplant, and `contentId` and `commit` of its decisions;
* `hasSeveralBases` of the answer to a merge; `actualAt`, `proposedAt` and `changedKey` of its
  conflicts, and those contents that are in no commit;
* `POST trees/{ref}/history/combining-merge` and `combining-transplant` with `combination`: the
  server combines the tables that both sides changed; `combination`, `resolvedContent` and
  `collisions` of the answer;
* the height of a commit in a log, the renames behind a merge conflict, unknown contents.
"""

from __future__ import annotations

HEADER = "Nessie-Cli"
"""The header of our client: the version of the extensions that it knows."""

VERSION = "1"

ANNOUNCED = "nessie-cli"
"""The additional property of the configuration: the version of the server's extensions."""

ROWS = "nessie-cli-rows"
"""The additional property of a server that reads rows. It has warehouses."""

REQUEST_HEADER = "Nessie-Request-Id"
"""The header that names a write. A repetition returns the first result."""

ANY_ORDER = "anyOrder"
"""The attribute of a transplant whose commits need not be neighbours."""

COMBINES = "nessie-cli-combines"
"""The additional property of a server that combines tables in merges and transplants."""

COMBINATION = "combination"
"""The attribute of a merge or transplant that says how tables combine."""

ALLOW_FAILED_RUN = "allowFailedRun"
"""The attribute of a merge, and parameter of an assignment, about commits of failed runs."""

MESSAGE = "message"
"""The attribute of a new tag that has a message."""

WHOLE = "whole"
"""The parameter of a diff that must not show only one key of a renamed content."""

HIDDEN = "hasHidden"
"""The attribute of the settings if the caller may not read them."""

SETTINGS = "NESSIE_CLI_SETTINGS"
"""The type of the configuration object that holds the repository's settings."""
