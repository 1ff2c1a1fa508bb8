-- The logins of browsers. Stores that older versions made get this table when a server needs it.

CREATE TABLE IF NOT EXISTS sessions (
    id bytea PRIMARY KEY,
    data bytea NOT NULL,
    ends bigint NOT NULL
);
