# SPDX-License-Identifier: BSD-2-Clause
"""How long the machine stood still. A virtual machine may be paused for seconds, and what has a time limit then ends
without being wrong. Only what the clock shows excuses a second attempt."""
import threading
import time

from . import tap

PAUSE = 0.05


class Stalls:
    """Measures the longest time for which nothing ran here, in seconds, while the block runs."""

    def __enter__(self):
        self.longest, self.ended = 0, threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def watch(self):
        last = time.monotonic()
        while not self.ended.wait(PAUSE):
            now = time.monotonic()
            self.longest, last = max(self.longest, now - last - PAUSE), now

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()


def attempt(what, attempted, broke, limit, stalls=Stalls):
    """What `attempted` returns. When `broke` says of it that a time limit ended it, the machine must have stood still for
    `limit` seconds meanwhile, which is a point of the test, and there is one more attempt, whose result counts."""
    with stalls() as clock:
        result = attempted()
    if not broke(result):
        return result
    if not tap.ok(clock.longest >= limit, f"{what}: broke off, and the machine stood still for {limit} s meanwhile",
                  f"it stood still for {clock.longest:.2f} s at most"):
        return result
    return attempted()
