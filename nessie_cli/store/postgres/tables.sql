-- The tables of a store, in a schema of their own (the first one of search_path).
-- Text is compared by code point: COLLATE "C" in a database whose encoding is UTF8.

CREATE TABLE store (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    format bigint NOT NULL,
    settings_version bigint NOT NULL DEFAULT 0
);

-- Each call that writes takes one value and numbers its rows from there (see commit.sql). No CACHE:
-- a session that holds values back would give a descendant a lower number than its ancestor.
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
    target bytea NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX refs_by_kind ON refs (kind, name);

CREATE TABLE reflog (
    number bigint PRIMARY KEY,
    time bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    before bytea,
    after bytea,
    who text COLLATE "C" NOT NULL,
    operation text COLLATE "C" NOT NULL,
    message text COLLATE "C" NOT NULL,
    request_id text COLLATE "C" NOT NULL
);
CREATE INDEX reflog_by_name ON reflog (name, number);

-- A row without a result is a tombstone: the commit attempts in `excluded` were given up by their
-- clients and can no longer succeed, others may still take the id.
CREATE TABLE requests (
    id text COLLATE "C" PRIMARY KEY,
    time bigint NOT NULL,
    caller text COLLATE "C" NOT NULL DEFAULT '',
    digest bytea NOT NULL DEFAULT '',
    result bytea,
    attempt bytea,
    excluded bytea[]
);

CREATE TABLE settings (
    name text COLLATE "C" PRIMARY KEY,
    value text COLLATE "C" NOT NULL
);
