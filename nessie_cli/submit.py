"""The command `nessie` as a program for spark-submit.

For example: `spark-submit --master ... nessie_cli/submit.py gc mark --default-cutoff P30D`. Words,
options and exit codes are those of the command line. The session is the one of spark-submit, and
`--engine` is `spark` unless it is given.
"""

import sys
from pathlib import Path


def main() -> None:
    """Runs the command line on Spark."""
    # Python searches the folder of a program first: it contains packages of ours, not modules of
    # those names.
    folder = str(Path(__file__).parent)
    sys.path[:] = [place for place in sys.path if place != folder]
    from nessie_cli.cli.main import main as nessie
    from nessie_cli.workspace.environment import spark_by_default

    spark_by_default()
    nessie()


if __name__ == "__main__":
    main()
