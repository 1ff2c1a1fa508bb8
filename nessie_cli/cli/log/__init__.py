"""The commands that read history."""
