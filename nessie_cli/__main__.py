"""`python -m nessie_cli` is the command `nessie`."""

from nessie_cli.cli.main import main

if __name__ == "__main__":
    main()
