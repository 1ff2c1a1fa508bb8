"""What every command builds on: its shape, and the output of its result."""
