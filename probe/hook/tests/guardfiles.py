"""A folder a run works in, with the save-guard armed: what the save-guard's tests share."""

from __future__ import annotations

import hashlib

import pytest


class Stopped(BaseException):
    """Where the run would have parked."""


class Files:
    """Files that were there before the guard was armed. What is called "new" or "log…" does not count."""

    def __init__(self, root):
        self.root = root
        root.mkdir()
        for name in ("last.ckpt", "optimizer.pt", "checkpoint-10/model.bin", "keep/a.txt", "notes.txt", "old.lock"):
            path = root / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(b"weights of %s" % name.encode())
        (root / "empty").mkdir()
        (root / "empty.txt").touch()
        (root / "link").symlink_to(root / "last.ckpt")
        (root / "log.csv").write_text("step,loss\n")
        self.before = self.digest()

    def digest(self):
        found = {}
        for path in sorted(self.root.rglob("*")):
            if "new" in str(path) or path.name.startswith("log") or path.suffix == ".lock":
                continue
            found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        return found

    def new(self, name="new.tmp"):
        path = self.root / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(b"scratch")
        return path

    def held(self, stops, action, call, name=None):
        """action is stopped before it does anything."""
        with pytest.raises(Stopped):
            action()
        ((got, target),) = stops
        assert got == call
        assert name is None or name in target
        assert self.digest() == self.before
