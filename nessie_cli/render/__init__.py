"""Renders results as lines, tables and JSON. Only this package knows terminals.

Modules here create lines of labelled spans; `terminal` writes them.
"""
