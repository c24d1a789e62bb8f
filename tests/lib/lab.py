# SPDX-License-Identifier: BSD-2-Clause
"""What a test has for itself while it runs: a folder, processes, and what has to be undone. All of it goes when the test
ends, by whatever way but SIGKILL."""
import atexit
import ctypes
import errno
import fcntl
import itertools
import os
import re
import shlex
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import traceback

from . import tap

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x00020000, 0x10000000, 0x40000000
MS_REC, MS_PRIVATE = 0x4000, 0x40000
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
libc = ctypes.CDLL(None, use_errno=True)
machine = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
running = []
undone = []


def own_namespaces():
    """A network and mounts of the test's own: ports, interfaces, pinned programs, and names of networks (`ip netns`) that
    nobody else has, neither tests at the same time nor the machine. Who is not root gets them in a user namespace, under the
    same user. False: without the right to have them the test uses the machine's."""
    user, group = os.getuid(), os.getgid()
    if libc.unshare(CLONE_NEWNET | CLONE_NEWNS | (CLONE_NEWUSER if user != 0 else 0)) != 0:
        return False
    if user != 0:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as f:
                f.write(text)
    libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None)
    for what, where in ((b"tmpfs", b"/run/netns"), (b"bpf", b"/sys/fs/bpf")):
        if os.path.isdir(where):
            libc.mount(what, where, what, 0, None)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
    return True


def into_machine_network():
    """For a program that fetches something: as `preexec_fn`, it is started in the machine's network."""
    libc.setns(machine, CLONE_NEWNET)


OWN_NETWORK = own_namespaces()


def undo(*command):
    """A command that is run at the end, the last one first."""
    undone.append(shlex.join(command))


def folder(parent=None):
    name = os.path.splitext(os.path.basename(sys.argv[0]))[0]
    made = tempfile.mkdtemp(prefix=f"pathline-{name}-", dir=parent)
    undo("rm", "-rf", made)
    return made


def clean_up():
    for signo in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(signo, signal.SIG_IGN)
    for process in running:
        if process.poll() is None:
            process.kill()
    for process in running:
        process.wait()
    # Who ends a test gives it half a second: what undoes it is not of its session, and goes on.
    script = "\n".join(reversed(undone))
    subprocess.run(["sh", "-c", script], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   start_new_session=True, check=False)


def ended_by(signo, _):
    """By the ordinary way out, through everybody's `finally`."""
    sys.exit(128 + signo)


atexit.register(clean_up)
for _signo in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(_signo, ended_by)
DIR = folder()


def path(name):
    return os.path.join(DIR, name)


def write(name, text):
    """A file of the test's folder, which is there as a whole or not at all."""
    with open(path(name + ".new"), "w", encoding="utf-8") as f:
        f.write(text)
    os.rename(path(name + ".new"), path(name))
    return path(name)


def read(name):
    with open(path(name), encoding="utf-8", errors="replace") as f:
        return f.read()


FIRST_PORT = 10000
numbers = itertools.count(os.getpid() * 97)


def free_port(kind=socket.SOCK_STREAM):
    """Below those that the system gives to whoever asks for any: until it is used no other process gets it by chance. Tests
    that run at the same time begin at different ones."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as f:
        room = int(f.read().split()[0]) - FIRST_PORT
    while True:
        with socket.socket(socket.AF_INET, kind) as s:
            try:
                s.bind(("127.0.0.1", FIRST_PORT + next(numbers) % room if room > 1000 else 0))
            except OSError as e:
                if e.errno != errno.EADDRINUSE:
                    raise
                continue
            return s.getsockname()[1]


def free_udp_port():
    return free_port(socket.SOCK_DGRAM)


def mount(where, size):
    """A small file system in a folder that is made; whether that may be."""
    os.makedirs(where)
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", where], capture_output=True, check=False)
    if made.returncode == 0:
        undo("umount", "-l", where)
    return made.returncode == 0


# ---- processes ----

def start(args, log=None, **kwargs):
    """A process that does not outlive the test. log: the file that takes what it says."""
    if log is not None:
        with open(log, "a", encoding="utf-8") as f:
            process = subprocess.Popen(args, **{"stdout": f, "stderr": f} | kwargs)
    else:
        process = subprocess.Popen(args, **kwargs)
    process.log = log
    running.append(process)
    return process


def pid_in(folder, words):
    """The process with these words in its command line that runs in the folder. It is not the helper that a program forks:
    that has the same command line, and may have the lower number, as numbers of processes begin anew."""
    parents = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                line = f.read().replace(b"\0", b" ").decode(errors="replace")
            if words in line and os.readlink(f"/proc/{pid}/cwd") == folder:
                with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
                    parents[int(pid)] = int(f.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
    first = [pid for pid, parent in parents.items() if parent not in parents]
    if not first:
        raise LookupError(f"no process of {folder} has {words!r}")
    return first[0]


def said_by(process):
    """What is left of its words."""
    if process.log is not None:
        with open(process.log, encoding="utf-8", errors="replace") as f:
            return f.read()[-4000:]
    words = ""
    for stream in (process.stdout, process.stderr):
        try:
            if stream is not None and not stream.closed:
                os.set_blocking(stream.fileno(), False)
                more = stream.read()
                words += more.decode(errors="replace") if isinstance(more, bytes) else more or ""
        except (OSError, TypeError, ValueError):
            pass
    # A sanitizer tells the cause first, and much behind it.
    cause = re.search(r"^.*(WARNING|ERROR): \w+Sanitizer", words, re.M)
    return words[cause.start():][:8000] if cause else words[-4000:]


def tell_deaths():
    """Tells of processes that failed while nobody looked; whether there were any."""
    found = False
    for process in running:
        if process.returncode is None and process.poll():
            found = True
            tap.comment(f"{shlex.join(map(str, process.args))}: ended with {process.returncode}\n{said_by(process)}")
    return found


def is_test(name):
    """Whether the program under way has a test or a promise of this name: it may run its tests in several calls."""
    return name.startswith(("test_", "promise_")) and callable(getattr(sys.modules["__main__"], name, None))


def run(*tests, given=()):
    """Each test, or those that are named behind the program's other arguments; one that breaks is a failed point. A promise
    (promise.py) runs only when it is named. given: what each is called with."""
    chosen = [word for word in sys.argv[2:] if is_test(word) or is_test("test_" + word)]
    for test in tests:
        name = test.__name__
        if name.startswith("promise_") and name not in chosen:
            continue
        if chosen and name not in chosen and name.removeprefix("test_") not in chosen:
            continue
        tap.comment(test.__name__)
        begun = time.monotonic()
        try:
            test(*given)
        except Exception as e:
            # The cause stands in the name of the point: of a long trace a reader may have only the beginning.
            cause = " ".join(f"{type(e).__name__}: {e}".split())[:200]
            tap.ok(False, f"{test.__name__} runs to its end: {cause}", traceback.format_exc())
            tell_deaths()
        tap.comment(f"{test.__name__} took {time.monotonic() - begun:.1f} s")
