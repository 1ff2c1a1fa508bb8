"""The command line: parses options, calls the repository and prints the result."""
