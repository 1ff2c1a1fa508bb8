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


def is_interrupt(error: BaseException | None) -> bool:
    """Also an error that Python made of an interrupt, such as the RuntimeError where a class was being made, or that came while one was told."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False
