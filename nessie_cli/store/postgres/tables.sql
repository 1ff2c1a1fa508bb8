-- The tables of a store, in a schema of their own (the first one of search_path).
-- Text is compared by code point: COLLATE "C" in a database whose encoding is UTF8.
-- Rows have the checksums and chains of `store/rows.py` and `store/chain.py`.

CREATE TABLE store (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    format bigint NOT NULL
);

-- Each statement that stores objects takes one value and numbers them from there (see rows.py).
-- No CACHE: a session that holds values back would give a descendant a lower number than its
-- ancestor.
CREATE SEQUENCE numbers;

-- Data is packed and checked by the program, so PostgreSQL does not compress it again. Rows up to
-- a page stay in one piece: most objects are below 8 kB, and a look-up reads one row.
CREATE TABLE objects (
    number bigint NOT NULL,
    written bigint NOT NULL,
    kind smallint NOT NULL,
    id bytea NOT NULL PRIMARY KEY,
    data bytea NOT NULL
) WITH (toast_tuple_target = 8160);
ALTER TABLE objects ALTER COLUMN data SET STORAGE EXTERNAL;
CREATE INDEX objects_by_kind ON objects (kind, number);

CREATE TABLE index_entries (
    number bigint NOT NULL,
    entry bytea NOT NULL,
    id bytea NOT NULL,
    PRIMARY KEY (entry, number)
);
CREATE INDEX index_entries_by_number ON index_entries (number);

-- Room on each page for the new version of a row: moving a reference touches no index.
CREATE TABLE refs (
    name text COLLATE "C" PRIMARY KEY,
    kind text COLLATE "C" NOT NULL,
    target bytea NOT NULL,
    newest bytea NOT NULL,
    check_sum bigint NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX refs_by_kind ON refs (kind, name);

-- A commit takes the numbers of its moves after it has locked their references.
CREATE SEQUENCE reflog_numbers;

CREATE TABLE reflog (
    number bigint PRIMARY KEY,
    name text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    before bytea,
    after bytea,
    time bigint NOT NULL,
    who text COLLATE "C" NOT NULL,
    operation text COLLATE "C" NOT NULL,
    message text COLLATE "C" NOT NULL,
    request_id text COLLATE "C" NOT NULL,
    previous bytea NOT NULL,
    digest bytea NOT NULL
);
CREATE INDEX reflog_by_name ON reflog (name, number);

CREATE TABLE anchors (
    name text COLLATE "C" PRIMARY KEY,
    digest bytea NOT NULL,
    check_sum bigint NOT NULL
);

CREATE TABLE requests (
    id text COLLATE "C" PRIMARY KEY,
    caller text COLLATE "C" NOT NULL,
    digest bytea NOT NULL,
    result bytea NOT NULL,
    time bigint NOT NULL,
    check_sum bigint NOT NULL
);

-- A setting that was removed keeps its row, without a value: the highest version is the version of
-- all settings. `newest` is the digest of the newest entry of its chain in the reflog.
CREATE TABLE settings (
    name text COLLATE "C" PRIMARY KEY,
    value text COLLATE "C",
    version bigint NOT NULL,
    newest bytea NOT NULL,
    check_sum bigint NOT NULL
);

-- Each commit inserts its attempt. A client that has lost the answer inserts the same row: either
-- it is there, then the commit is done, or the commit can no longer succeed.
CREATE TABLE attempts (
    time bigint NOT NULL,
    id bytea NOT NULL,
    PRIMARY KEY (time, id)
);
