-- The records of pipelines' runs. Stores that older versions made get this table with their first run.

CREATE TABLE IF NOT EXISTS runs (
    id text COLLATE "C" PRIMARY KEY,
    state text COLLATE "C" NOT NULL,
    data bytea NOT NULL,
    version bigint NOT NULL
);
