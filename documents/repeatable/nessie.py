"""The command `nessie` of a documents session: its clock is that of the session."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.main import main

if __name__ == "__main__":
    Invocation.now = property(lambda _: datetime.fromtimestamp(time.time(), UTC))  # type: ignore[assignment,method-assign]
    sys.argv[0] = "nessie"
    main()
