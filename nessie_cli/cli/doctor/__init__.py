"""The check of the installation and of the chosen store."""
