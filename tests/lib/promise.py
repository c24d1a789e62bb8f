# SPDX-License-Identifier: BSD-2-Clause
"""Promises: answers within a time, no packet lost at a rate, memory that stays flat. They depend on the machine, so they are
functions promise_x of a test program, which run only when they are named: in suite `promise`, alone on the machine. A broken
promise counts only when the machine gave the same before and after it."""
import hashlib
import os
import threading
import time

from . import tap

SECONDS, DIFFERENCE, TIMES = 0.5, 0.1, 3


def ceiling():
    """Bytes per second that all processors hash."""
    data, done = bytes(1 << 20), []

    def hash_on():
        until, n = time.monotonic() + SECONDS, 0
        while time.monotonic() < until:
            hashlib.sha256(data)  # without Python's lock
            n += len(data)
        done.append(n)
    threads = [threading.Thread(target=hash_on) for _ in range(os.cpu_count() or 1)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / (time.monotonic() - began)


def promise(what, attempt):
    """One point. attempt() returns (whether the promise was kept, what was measured). Where it was broken on a machine whose
    ceiling changed by more than a tenth meanwhile it is tried again, and at last the point is n/a."""
    for _ in range(TIMES):
        before = ceiling()
        kept, measured = attempt()
        after = ceiling()
        changed = abs(after - before) / max(after, before)
        tap.comment(f"{what}: {measured}; ceiling {before / 1e6:.0f} MB/s before, {after / 1e6:.0f} after")
        if kept or changed <= DIFFERENCE:
            return tap.ok(kept, what, measured)
    return tap.skip(what, f"not measurable here: the ceiling changed by {changed:.0%}")
