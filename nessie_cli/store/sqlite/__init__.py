"""The store in one SQLite file, by apsw."""
