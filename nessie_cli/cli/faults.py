"""Whatever can go wrong as one of this package's errors, so that it can be told in one line and in one document."""

from __future__ import annotations

from nessie_cli import errors


def fault_of(error: BaseException) -> errors.NessieError:
    """The error itself, or what stands for one that is none of ours."""
    if isinstance(error, errors.NessieError):
        return error
    if isinstance(error, KeyboardInterrupt):
        return errors.Interrupted("interrupted")
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else "the result could not be written: "
        return errors.NessieError(f"{where}{error.strerror}")
    return errors.NessieError(f"internal error: {type(error).__name__}: {error}; run with --debug to see where")
