# SPDX-License-Identifier: BSD-2-Clause
"""A guest with Linux soft-RoCE under QEMU's software emulation, without KVM and without a network of the host.

Its interface is a pair of Unix datagram sockets, a frame to a datagram: guest.wire is where whoever plays the wire binds,
guest.port where it sends to. Commands go to the agent (agent.c) over a serial line."""
import atexit
import os
import select
import shutil
import socket
import subprocess
import tempfile
import time

MTU = 4200
NO_OFFLOADS = ('csum', 'guest_csum', 'gso', 'guest_tso4', 'guest_tso6', 'guest_ufo', 'host_tso4', 'host_tso6', 'host_ufo')


class Guest:
    mac = '52:54:00:00:00:01'
    address4, address6 = '10.77.0.1', 'fd00:77::1'

    def __init__(self, image):
        self.dir = tempfile.mkdtemp(prefix='rxe-')
        self.port, self.wire = os.path.join(self.dir, 'port'), os.path.join(self.dir, 'wire')
        self.console = os.path.join(self.dir, 'console')
        line = os.path.join(self.dir, 'line')
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(line)
        listener.listen(1)
        words = 'console=ttyS0 quiet loglevel=4 panic=-1 random.trust_cpu=on address4=%s/24 address6=%s/64 mtu=%d' % (
            self.address4, self.address6, MTU)
        self.process = subprocess.Popen(
            ['qemu-system-x86_64', '-accel', 'tcg', '-cpu', 'max', '-m', '256', '-nodefaults', '-display', 'none',
             '-no-reboot', '-kernel', os.path.join(image, 'vmlinuz'), '-initrd', os.path.join(image, 'initrd'),
             '-append', words, '-serial', 'file:' + self.console, '-serial', 'unix:' + line,
             '-netdev', 'dgram,id=net,local.type=unix,local.path=%s,remote.type=unix,remote.path=%s' % (
                 self.port, self.wire),
             '-device', 'virtio-net-pci,netdev=net,mac=%s,host_mtu=%d,%s' % (
                 self.mac, MTU, ','.join(name + '=off' for name in NO_OFFLOADS))],
            stdin=subprocess.DEVNULL)
        atexit.register(self.close)
        listener.settimeout(30)
        self.line = listener.accept()[0]
        listener.close()
        self.text = b''

    def ready(self, seconds=120):
        """Waits until the agent has its device."""
        return self.answer(seconds)

    def answer(self, seconds, end='ok'):
        """Lines up to the one that begins with `end`; raises with the console's end when there is none in time."""
        until, lines = time.monotonic() + seconds, []
        while True:
            while b'\n' in self.text:
                line, self.text = self.text.split(b'\n', 1)
                lines.append(line.decode(errors='replace').strip())
                if lines[-1].startswith('error'):
                    raise RuntimeError('\n'.join(lines))
                if lines[-1].startswith(end):
                    return lines
            if not select.select([self.line], [], [], max(0.0, until - time.monotonic()))[0]:
                raise TimeoutError('no answer but %r\n%s' % (lines, self.console_end()))
            data = self.line.recv(65536)
            if not data:
                raise EOFError('the guest ended\n' + self.console_end())
            self.text += data

    def console_end(self):
        with open(self.console, errors='replace') as f:
            return f.read()[-2000:]

    def send(self, *words):
        self.line.sendall((' '.join(str(w) for w in words) + '\n').encode())

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

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)
