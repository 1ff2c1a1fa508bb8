"""The figures of the released tests, at the end of the run."""

from __future__ import annotations

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, []):
            for title, figures in report.user_properties:
                terminalreporter.write_line(f"{title}: {figures}")
