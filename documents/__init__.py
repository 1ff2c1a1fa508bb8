"""Outputs and pictures of `docs/`: runs each console block and shows what it printed."""
