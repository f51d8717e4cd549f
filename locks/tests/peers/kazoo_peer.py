"""The real kazoo, driven line by line: reads `<hand> <verb> <arguments>` and answers `<hand> <what came of it>`.

Every hand is a thread of its own. Ends with its input.
"""

import logging
import os
import queue
import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout, NodeExistsError
from kazoo.recipe.lock import Lock, ReadLock, WriteLock
from kazoo.version import __version__

PATIENCE_S = 60


class CuratorLock(Lock):
    """kazoo's Lock under the names of Curator's InterProcessMutex."""

    _NODE_NAME = "-lock-"
    _EXCLUDE_NAMES = ["-lock-"]


class CuratorWriteLock(WriteLock):
    """kazoo's WriteLock under the names of Curator's InterProcessReadWriteLock."""

    _NODE_NAME = "__WRIT__"
    _EXCLUDE_NAMES = ["__WRIT__", "__READ__"]


class CuratorReadLock(ReadLock):
    """kazoo's ReadLock under the names of Curator's InterProcessReadWriteLock."""

    _NODE_NAME = "__READ__"
    _EXCLUDE_NAMES = ["__WRIT__"]


# What docs/migration.md tells users to write.
KINDS = {
    "lock": lambda path: Lock(client, path, extra_lock_patterns=["-lock-"]),
    "write": lambda path: WriteLock(client, path, extra_lock_patterns=["__WRIT__", "__READ__"]),
    "read": lambda path: ReadLock(client, path, extra_lock_patterns=["__WRIT__"]),
    "bare-lock": lambda path: Lock(client, path),
    "curator-lock": lambda path: CuratorLock(client, path),
    "curator-write": lambda path: CuratorWriteLock(client, path),
    "curator-read": lambda path: CuratorReadLock(client, path),
}


class Violation(Exception):
    """Somebody else is inside who must not be."""


class Hand(threading.Thread):
    def __init__(self, name):
        super().__init__(name=name, daemon=True)
        self.told = queue.Queue()
        self.locks = {}
        self.start()

    def run(self):
        while True:
            verb, *arguments = self.told.get()
            try:
                answer = getattr(self, verb)(*arguments)
            except Exception as error:
                answer = f"error {error!r}"
            say(f"{self.name} {answer}")

    def acquire(self, kind, path, wait_ms):
        lock = self.locks.setdefault((kind, path), KINDS[kind](path))
        try:
            return "held" if lock.acquire(timeout=int(wait_ms) / 1000) else "timeout"
        except LockTimeout:
            return "timeout"

    def release(self, kind, path):
        return "released" if self.locks.pop((kind, path)).release() else "error not held"

    def token(self, kind, path):
        """What docs/migration.md tells users to write: the czxid of the lock's node."""
        return client.exists(f"{path}/{self.locks[kind, path].node}").czxid

    def contend(self, kind, path, turns, room):
        for turn in range(int(turns)):
            if not self.acquire_patiently(kind, path):
                return f"timeout in turn {turn}"
            try:
                self.visit(kind, room)
            except (Violation, NodeExistsError) as seen:
                return f"violation {seen!r}"
            finally:
                self.release(kind, path)
        return "done"

    def acquire_patiently(self, kind, path):
        # Before 2.9 a reader that waits and a writer that came later wait for each other (kazoo 649), until
        # the reader gives up its place.
        wait_ms = 200 if is_read(kind) else PATIENCE_S * 1000
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if self.acquire(kind, path, wait_ms) == "held":
                return True
        return False

    def visit(self, kind, room):
        """The same rules as in `witness.rs`."""
        own = f"{room}/read-{self.name}" if is_read(kind) else f"{room}/alone"
        client.create(own)
        look(kind, room)
        time.sleep(0.002)
        look(kind, room)
        client.delete(own)


def is_read(kind):
    return kind.endswith("read")


def look(kind, room):
    inside = client.get_children(room)
    if "alone" in inside if is_read(kind) else len(inside) != 1:
        raise Violation(f"{kind} found {inside}")


def say(line, mutex=threading.Lock()):
    with mutex:
        print(line, flush=True)


logging.basicConfig(level=logging.CRITICAL)
client = KazooClient(hosts=sys.argv[1], timeout=6)
client.start(timeout=20)
say(f"ready {__version__}")
hands = {}
for line in sys.stdin:
    name, *words = line.split()
    if name not in hands:
        hands[name] = Hand(name)
    hands[name].told.put(words)
os._exit(0)
