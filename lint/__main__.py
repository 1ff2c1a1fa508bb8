"""`python -m lint [PATH ...]` prints violations of the language rules; exits with 1 if any.

Without paths it checks every file of the project.
"""

from __future__ import annotations

import sys

from lint.language import files, find


def main(paths: list[str]) -> int:
    """Prints the findings and returns the exit code."""
    findings = find(files(paths or ["."]))
    sys.stdout.writelines(f"{finding}\n" for finding in findings)
    sys.stdout.write(f"{len(findings)} findings\n")
    return bool(findings)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
