"""Small files that are replaced atomically, and the lock of their writers.

All of them are regular files of limited size. A pipe or device in their place is an error: reading
it may never end.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import BinaryIO

from nessie_cli.errors import InvalidInput, NotAllowed, StoreUnavailable
from nessie_cli.workspace import environment

MIB = 1 << 20
LARGEST = 1 * MIB
"""The default limit of a file, in bytes."""
LARGEST_BATCH = 256 * MIB
"""The limit of a file of staged operations, about 200,000 of them."""


def read_text(path: Path, *, limit: int = LARGEST) -> str | None:
    """Returns the text of a file, or None if it does not exist.

    Raises `InvalidInput` if it is not a regular file, has more than `limit` bytes or is not UTF-8,
    and `NotAllowed` without permission.
    """
    try:
        with os.fdopen(_open_regular(path, os.O_RDONLY), "rb") as file:
            data = file.read(limit + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise NotAllowed(f"{path} cannot be read: {error.strerror}") from None
    _check_size(path, len(data), limit)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8 text (byte {error.start})") from None


def _open_regular(path: Path, flags: int) -> int:
    """Returns the descriptor of a file. Raises `InvalidInput` if it is not a regular file."""
    # Without O_NONBLOCK, opening a named pipe waits for its other end.
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    raise InvalidInput(
        f"{path} cannot be used: it is not a regular file",
        hint="remove it, and restore the file if you have a copy",
    )


def _check_size(path: Path, size: int, limit: int) -> None:
    if size > limit:
        raise InvalidInput(f"{path} is too large: the limit is {limit // MIB} MiB")


def replace_text(path: Path, text: str, *, limit: int = LARGEST) -> None:
    """Replaces a file atomically and durably.

    Raises `InvalidInput` if `read_text` would refuse the text with this `limit`, and
    `StoreUnavailable` if writing fails (a full disk, no permission); then the old text remains.
    """
    data = text.encode()
    _check_size(path, len(data), limit)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        # A link at this path, such as one in a clone, is not followed.
        temporary.unlink(missing_ok=True)
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        _remove_if_possible(temporary)
        raise StoreUnavailable(f"{path} cannot be written: {error.strerror}") from None
    except KeyboardInterrupt:
        _remove_if_possible(temporary)
        raise


def _remove_if_possible(path: Path) -> None:
    with suppress(OSError):
        path.unlink(missing_ok=True)


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
                    f"{path.parent} cannot be changed while its hook {hook} runs",
                    hint="use a post- hook",
                )
            with waiting():
                _lock(file, wait=True)
        yield


@contextmanager
def locked_if_free(path: Path) -> Iterator[bool]:
    """Returns `locked` without waiting: False if another process holds the lock."""
    with _opened(path) as file:
        yield _lock(file, wait=False)


def _opened(path: Path) -> BinaryIO:
    try:
        return os.fdopen(_open_regular(path, os.O_RDWR | os.O_CREAT), "rb+", buffering=0)
    except OSError as error:
        raise StoreUnavailable(f"{path} cannot be opened: {error.strerror}") from None


def _lock(file: BinaryIO, *, wait: bool) -> bool:
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True
