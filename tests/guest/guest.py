# SPDX-License-Identifier: BSD-2-Clause
"""A machine under QEMU's software emulation, without KVM: the kernel of Debian's package (`image` builds it, with what
is common to all), programs of ours with their libraries, and one script that is run in it. What the script reads and
writes comes and goes over a serial line."""
import os
import re
import select
import shutil
import socket
import subprocess
import tempfile
import time

from lib import lab

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = ('qemu-system-x86_64', 'busybox', 'cpio', 'modinfo')
ADDRESS4, ADDRESS6, MAC = '10.77.0.1', 'fd00:77::1', '52:54:00:00:00:01'
MTU = 4200
NO_OFFLOADS = ('csum', 'guest_csum', 'gso', 'guest_tso4', 'guest_tso6', 'guest_ufo', 'host_tso4', 'host_tso6', 'host_ufo')
# Lines of shell in, their output and "exit CODE NUMBER" out: for Guest.shell. Who reads the lines has no children but the one
# that it waits for: busybox's `read` forgets what it has of a line when a child ends meanwhile.
SHELL = 'n=0; echo ready; while read -r line; do (eval "$line") </dev/null 2>&1; code=$? n=$((n + 1)); echo "exit $code $n"; done\n'


def missing(*more):
    """The first program that is needed and not there, or None."""
    path = os.environ['PATH'] + ':/usr/sbin:/sbin'
    return next((p for p in PROGRAMS + more if shutil.which(p, path=path) is None), None)


def make_image(folder):
    """The kernel and the files that all guests have, into `folder`; quick when they are there."""
    run = subprocess.run([os.path.join(HERE, 'image'), folder], capture_output=True, text=True,
                         preexec_fn=lab.into_machine_network)
    if run.returncode != 0:
        raise RuntimeError('the image of the guest cannot be made\n' + run.stdout + run.stderr)


def write_archive(path, programs, script):
    """`programs` (name in the guest: file here) with their libraries, and `script` as /run."""
    with tempfile.TemporaryDirectory() as root:
        os.chmod(root, 0o755)  # it becomes the guest's
        def put(source, name):
            target = root + name
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy(source, target)

        for name, program in programs.items():
            put(program, name)
            ldd = subprocess.run(['ldd', program], capture_output=True, text=True, check=True)
            for line in ldd.stdout.splitlines():
                found = re.search(r'(/\S+) \(', line)
                if found:
                    put(os.path.realpath(found.group(1)), found.group(1))
        with open(root + '/run', 'w') as f:
            f.write(script)
        names = subprocess.run(['find', '.'], cwd=root, capture_output=True, check=True).stdout
        with open(path, 'wb') as out:
            subprocess.run(['cpio', '--quiet', '-o', '-H', 'newc', '-R', '0:0'], cwd=root, input=names, stdout=out,
                           check=True)


class Stalls:
    """Measures the longest time for which nothing ran in a guest, in seconds, while the block runs; for guests whose script
    is SHELL."""

    LOOP = ('rm -f /tmp/awake /tmp/longest; (longest=0; last=; while [ ! -e /tmp/awake ]; do read -r up rest </proc/uptime; '
            'now=${up%.*}${up#*.}; gap=$((now - ${last:-$now})); [ $gap -le $longest ] || longest=$gap; last=$now; sleep 0.05; '
            'done; echo $longest >/tmp/longest.new; mv /tmp/longest.new /tmp/longest) & echo')

    def __init__(self, guest):
        self.guest, self.longest = guest, 0

    def __enter__(self):
        self.guest.shell(self.LOOP)
        return self

    def __exit__(self, *_):
        self.guest.shell('touch /tmp/awake; while [ ! -e /tmp/longest ]; do sleep 0.05; done')
        self.longest = int(self.guest.shell('cat /tmp/longest')[1]) / 100


class Guest:
    """wire: None, no network; 'sockets', a pair of Unix datagram sockets, a frame to a datagram: guest.wire is where
    whoever plays the wire binds, guest.port where it sends to; else the name of a tap interface. With a network the guest
    has the addresses above and soft-RoCE as rxe0."""

    def __init__(self, image, programs, script, wire=None, mebibytes=256):
        self.dir = lab.folder()
        self.process = None
        self.port, self.wire = os.path.join(self.dir, 'port'), os.path.join(self.dir, 'wire')
        self.console = os.path.join(self.dir, 'console')
        line, initrd = os.path.join(self.dir, 'line'), os.path.join(self.dir, 'initrd')
        # The kernel unpacks archives that lie one behind the other.
        write_archive(os.path.join(self.dir, 'added'), programs, script)
        with open(initrd, 'wb') as out:
            for part in (os.path.join(image, 'initrd'), os.path.join(self.dir, 'added')):
                with open(part, 'rb') as f:
                    shutil.copyfileobj(f, out)
                out.write(bytes(-out.tell() % 512))
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(line)
        listener.listen(1)
        net, words = [], 'console=ttyS0 quiet loglevel=4 panic=-1 random.trust_cpu=on'
        if wire is not None:
            words += ' address4=%s/24 address6=%s/64 mtu=%d' % (ADDRESS4, ADDRESS6, MTU)
            net = ['-device', 'virtio-net-pci,netdev=net,mac=%s,host_mtu=%d,%s' % (
                MAC, MTU, ','.join(name + '=off' for name in NO_OFFLOADS)), '-netdev']
            if wire == 'sockets':
                net.append('dgram,id=net,local.type=unix,local.path=%s,remote.type=unix,remote.path=%s' % (
                    self.port, self.wire))
            else:
                net.append('tap,id=net,ifname=%s,script=no,downscript=no' % wire)
        self.process = lab.start(
            ['qemu-system-x86_64', '-accel', 'tcg', '-cpu', 'max', '-m', str(mebibytes), '-nodefaults', '-display', 'none',
             '-no-reboot', '-kernel', os.path.join(image, 'vmlinuz'), '-initrd', initrd, '-append', words,
             '-serial', 'file:' + self.console, '-serial', 'unix:' + line] + net,
            stdin=subprocess.DEVNULL)
        listener.settimeout(60)
        self.line = listener.accept()[0]
        listener.close()
        self.text, self.lines = b'', None

    def next_line(self, seconds):
        """The next line of the script's output; None at its end. Raises with the console's end when none comes."""
        until = time.monotonic() + seconds
        while b'\n' not in self.text:
            if not select.select([self.line], [], [], max(0.0, until - time.monotonic()))[0]:
                raise TimeoutError('the guest says nothing\n' + self.console_end())
            data = self.line.recv(65536)
            if not data:
                return None
            self.text += data
        line, self.text = self.text.split(b'\n', 1)
        return line.decode(errors='replace').rstrip('\r')

    def lines_until(self, end, seconds):
        """Lines up to the one that begins with `end` or with "error", which is the last."""
        until, lines = time.monotonic() + seconds, []
        while not lines or not lines[-1].startswith((end, 'error')):
            line = self.next_line(max(0.0, until - time.monotonic()))
            if line is None:
                raise EOFError('the guest ended\n' + '\n'.join(lines) + self.console_end())
            lines.append(line)
        return lines

    def send(self, *words):
        self.line.sendall((' '.join(str(w) for w in words) + '\n').encode())

    def shell(self, command, seconds=120):
        """(exit code, output) of a line of shell; for guests whose script is SHELL. Lines do not share variables."""
        until, output = time.monotonic() + seconds, []
        if self.lines is None:
            # What is sent before has nobody who reads it.
            self.lines_until('ready', seconds)
            self.lines = 0
        self.lines += 1
        self.send(command)
        while True:
            line = self.next_line(max(0.0, until - time.monotonic()))
            if line is None:
                raise EOFError('the guest ended\n' + '\n'.join(output) + self.console_end())
            found = re.fullmatch(r'(.*)exit (\d+) (\d+)', line)
            if not found:
                output.append(line)
            elif int(found.group(3)) == self.lines:
                # The last line of output has no end, maybe.
                return int(found.group(2)), '\n'.join(output + [found.group(1)] * (found.group(1) != ''))
            else:
                # Of a line that was not waited for to its end.
                output = []

    def console_end(self):
        with open(self.console, errors='replace') as f:
            return f.read()[-2000:]

    def close(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
