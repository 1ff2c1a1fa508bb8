"""Reads that every front end needs: changes, histories and conflicts, as values."""
