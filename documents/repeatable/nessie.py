"""The command `nessie` of a session: it has the session's clock, and shows no progress."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.main import main
from nessie_cli.render import busy

if __name__ == "__main__":
    fixed = property(lambda _: datetime.fromtimestamp(time.time(), UTC))
    Invocation.now = fixed  # type: ignore[assignment,method-assign]
    busy.QUIET = float("inf")
    sys.argv[0] = "nessie"
    main()
