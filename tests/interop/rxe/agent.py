# SPDX-License-Identifier: BSD-2-Clause
"""Both ends of the wire, by lines of words: a program in the guest (agent.c, driver.c), and peer.c on our side."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
from guest import guest  # noqa: E402
from lib import lab  # noqa: E402

OURS = {4: '10.77.0.254', 6: 'fd00:77::fe'}
THEIRS = {4: guest.ADDRESS4, 6: guest.ADDRESS6}


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
        return {k: int(v, 0) if re.fullmatch(r'\d+|0x[0-9a-f]+', v) else v for k, v in found.items()}

    def completions(self, pair, milliseconds=50000):
        """(status, opcode, bytes, immediate) of each, once there is one."""
        lines = self.do('done', pair, milliseconds)[:-1]
        return [tuple(int(w.split('=')[1], 0) for w in line.split()[1:]) for line in lines]

    def get(self, region, offset, size):
        return bytes.fromhex(self.do('get', region, offset, size)[-1].split(' ')[1])


class Peer:
    """peer.c: a line in, a line out."""

    def __init__(self, program, guest, interface=None):
        self.capture = os.path.join(guest.dir, 'all.pcap')
        wire = (guest.wire, guest.port) if interface is None else ('-', interface)
        self.process = lab.start([program, *wire, self.capture], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                 bufsize=1)

    def do(self, *words):
        self.process.stdin.write(' '.join(str(w) for w in words) + '\n')
        line = self.process.stdout.readline().strip()
        if not line.startswith('ok'):
            raise RuntimeError('%r: %s' % (words, line))
        return line

    def values(self, *words):
        return {k: int(v, 0) for k, v in (w.split('=', 1) for w in self.do(*words).split() if '=' in w)}

    def get(self, offset, size):
        return bytes.fromhex(self.do('get', offset, size).split(' ')[1])

    def close(self):
        self.process.stdin.close()
        return self.process.wait(30)
