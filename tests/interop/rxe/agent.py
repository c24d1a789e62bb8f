# SPDX-License-Identifier: BSD-2-Clause
"""The agent (agent.c) in a guest: verbs on its soft-RoCE device by lines of words."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'guest'))
import guest  # noqa: E402  (in tests/guest)


class Agent(guest.Guest):
    def __init__(self, image, agent):
        super().__init__(image, {'/bin/agent': agent}, 'exec /bin/agent\n', wire='sockets')

    def ready(self, seconds=120):
        """Waits until the agent has its device."""
        return self.answer(seconds)

    def answer(self, seconds, end='ok'):
        """Lines up to the one that begins with `end`; raises what begins with error."""
        lines = self.lines_until(end, seconds)
        if lines[-1].startswith('error'):
            raise RuntimeError('\n'.join(lines))
        return lines

    def do(self, *words, seconds=60):
        self.send(*words)
        return self.answer(seconds)

    def values(self, *words):
        """The name=number pairs of the answer's last line; other values stay text."""
        found = dict(w.split('=', 1) for w in self.do(*words)[-1].split() if '=' in w)
        return {k: int(v, 0) if v[:1].isdigit() else v for k, v in found.items()}

    def completions(self, pair, milliseconds=2000):
        """(status, opcode, bytes, immediate) of each."""
        lines = self.do('done', pair, milliseconds)[:-1]
        return [tuple(int(w.split('=')[1], 0) for w in line.split()[1:]) for line in lines]

    def get(self, region, offset, size):
        return bytes.fromhex(self.do('get', region, offset, size)[-1].split(' ')[1])
