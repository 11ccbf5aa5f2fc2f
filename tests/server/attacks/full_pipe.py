"""A log that nobody reads: a named pipe that is full."""

import contextlib
import os
import tempfile


class FullPipe:
    """Whoever writes to `path` waits, while this lives or until lines() reads."""

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self._folder.name, "log")
        os.mkfifo(self.path)
        self._pipe = os.open(self.path, os.O_RDWR | os.O_NONBLOCK)
        for piece in (b"x" * 1000, b"x"):
            with contextlib.suppress(BlockingIOError):
                while True:
                    os.write(self._pipe, piece)

    def read(self):
        """What comes next of what was written."""
        try:
            return os.read(self._pipe, 1 << 16).lstrip(b"x").decode()
        except BlockingIOError:
            return ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self._pipe)
        self._folder.cleanup()
