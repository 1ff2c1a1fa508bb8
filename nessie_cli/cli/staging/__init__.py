"""The commands that change, show and commit the staged batch."""
