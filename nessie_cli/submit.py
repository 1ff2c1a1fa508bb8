"""The command `nessie` as a program of spark-submit: `spark-submit --master ... nessie_cli/submit.py gc mark --default-cutoff P30D`.

Words, options and exit codes are those of the command line; the session is the one that spark-submit makes, and `--engine` is `spark` unless it
is given.
"""

import sys
from pathlib import Path


def main() -> None:
    """Run the words behind the program's name as a command, on Spark."""
    # Python looks for modules beside a program first: there are rooms of this package, no modules of that name.
    beside = str(Path(__file__).parent)
    sys.path[:] = [place for place in sys.path if place != beside]
    from nessie_cli.cli.main import main as nessie
    from nessie_cli.workspace.environment import spark_by_default

    spark_by_default()
    nessie()


if __name__ == "__main__":
    main()
