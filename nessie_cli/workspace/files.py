"""Small files that are replaced atomically, and the lock of their writers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TextIO

from nessie_cli.errors import InvalidInput, NotAllowed, StoreUnavailable
from nessie_cli.workspace import environment


def read_text(path: Path) -> str | None:
    """Returns the text of a file, or None if it does not exist.

    Raises `InvalidInput` if it is not UTF-8, and `NotAllowed` without permission.
    """
    try:
        return path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise NotAllowed(f"{path} cannot be read: {error.strerror}") from None


def replace_text(path: Path, text: str) -> None:
    """Replaces a file atomically and durably.

    Raises `StoreUnavailable` if that is not possible (a full disk, no permission); then the old
    text remains.
    """
    beside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with beside.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise StoreUnavailable(f"{path} cannot be written: {error.strerror}") from None
    except KeyboardInterrupt:
        beside.unlink(missing_ok=True)
        raise


def remove(path: Path) -> None:
    """Removes a file durably, if it exists."""
    try:
        path.unlink(missing_ok=True)
        _sync_folder(path.parent)
    except OSError as error:
        raise StoreUnavailable(f"{path} cannot be removed: {error.strerror}") from None


def _sync_folder(folder: Path) -> None:
    """Makes a rename or removal durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked(
    path: Path, waiting: Callable[[], AbstractContextManager[object]] = nullcontext
) -> Iterator[None]:
    """Holds the lock file `path`. Waits for other processes in a block of `waiting`.

    The system releases it when a process ends. Raises `NotAllowed` within a hook that the holder of
    the lock waits for: both would wait forever.
    """
    hook = environment.variable(environment.HOOK) or ""
    with _opened(path) as file:
        if not _lock(file, wait=False):
            if hook.startswith("pre-"):
                raise NotAllowed(
                    f"{path.parent} cannot be changed while its hook {hook} runs. Hint: use a"
                    " post- hook"
                )
            with waiting():
                _lock(file, wait=True)
        yield


@contextmanager
def locked_if_free(path: Path) -> Iterator[bool]:
    """Returns `locked` without waiting: False if another process holds the lock."""
    with _opened(path) as file:
        yield _lock(file, wait=False)


def _opened(path: Path) -> TextIO:
    try:
        return path.open("a", encoding="utf-8")
    except OSError as error:
        raise StoreUnavailable(f"{path} cannot be opened: {error.strerror}") from None


def _lock(file: TextIO, *, wait: bool) -> bool:
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True
