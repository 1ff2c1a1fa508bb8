"""`python -m lint [PATH ...]` prints violations of the language rules; exits with 1 if any.

Without paths it checks every file that lint/exempt.txt does not list.
With paths it checks these, listed or not.
"""

from __future__ import annotations

import sys

from lint.language import ROOT, files, find, lines_of


def main(paths: list[str]) -> int:
    """Prints the findings and returns the exit code."""
    exempt = [] if paths else lines_of("exempt.txt")
    left = set(files(exempt))
    findings = find([path for path in files(paths or ["."]) if path not in left])
    sys.stdout.writelines(f"{finding}\n" for finding in findings)
    for path in exempt:
        if not (ROOT / path).exists() or not find([path]):
            sys.stdout.write(f"{path} is gone or clean: remove it from lint/exempt.txt\n")
    sys.stdout.write(f"{len(findings)} findings; lint/exempt.txt leaves out {len(left)} files\n")
    return bool(findings)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
