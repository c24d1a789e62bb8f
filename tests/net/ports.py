#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Ports on network interfaces, over a veth pair between two namespaces: every driver hands over exactly what was
sent, the same records as from a capture file; everything that is no report stays the host's (a real sshd answers
over the same interface); what is lost is counted; interfaces that go, come back and change their names; programs of
others. The sender is a packet socket of Python's. usage: ports.py PATHLINE [XDP_OBJECT [TEST…]]"""

import json
import os
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, network, pathline, pcap, tap  # noqa: E402
from lib.lab import DIR  # noqa: E402
from lib.network import sh  # noqa: E402
from lib.pathline import PATHLINE  # noqa: E402
from lib.roce import ones_sum, packet_socket  # noqa: E402
from lib.tap import eq, ok, skip  # noqa: E402
from lib.wait import LIMIT, wait  # noqa: E402

OBJECT = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else None
NS = {}
IF = {"a": "plna", "b": "plnb"}


# ---- namespaces ----

def ns(side, command, check=True):
    return NS[side].sh(command, check)


def make_wire(queues=1):
    """A fresh pair; addresses 10.77.0.1 and .2, fd77::1 and ::2."""
    ns("a", f"ip link del {IF['a']}", check=False)
    network.join(NS["a"], IF["a"], NS["b"], IF["b"], queues)
    for i, side in enumerate("ab"):
        # Segments and checksums as they would be on a wire.
        ns(side, f"ethtool -K {IF[side]} gro off tso off gso off tx off", check=False)
        NS[side].up(IF[side], f"10.77.0.{i + 1}/24", f"fd77::{i + 1}/64")
        MACS[side] = NS[side].mac(IF[side])
    network.wait_for_carrier(*[(NS[side], IF[side]) for side in "ab"])


def make_namespaces():
    for side in "ab":
        NS[side] = network.Namespace("net-" + side)
        for key in ("ipv4.conf.all.rp_filter", "ipv4.conf.default.rp_filter", "ipv6.conf.default.router_solicitations"):
            NS[side].sysctl(key, 0, check=False)


# ---- frames ----

def payload_of(frame):
    return frame[14 + (frame[14] & 15) * 4 + 8:]


def frame4(payload, src="10.255.0.9", dst="10.77.0.2", sport=40000, dport=32766, tags=(), options=b"",
           frag=0x4000, proto=17, ethertype=0x0800):
    udp = struct.pack(">HHHH", sport, dport, 8 + len(payload), 0) + payload
    ip = struct.pack(">BBHHHBBH4s4s", 0x45 + len(options) // 4, 0, 20 + len(options) + len(udp), 0, frag, 64,
                     proto, 0, socket.inet_aton(src), socket.inet_aton(dst)) + options
    ip = ip[:10] + struct.pack(">H", ones_sum(ip)) + ip[12:]
    eth = MACS["b"] + MACS["a"] + b"".join(struct.pack(">HH", t, v) for t, v in tags)
    return eth + struct.pack(">H", ethertype) + ip + udp


def frame6(payload, src="fd77::9", dst="fd77::2", dport=32766, tags=(), extension=b"", next_header=17):
    udp = struct.pack(">HHHH", 40000, dport, 8 + len(payload), 0) + payload
    s, d = (socket.inet_pton(socket.AF_INET6, x) for x in (src, dst))
    total = s + d + struct.pack(">II", len(udp), 17) + udp
    udp = udp[:6] + struct.pack(">H", ones_sum(total) or 0xffff) + udp[8:]
    ip = struct.pack(">IHBB", 6 << 28, len(extension) + len(udp), next_header, 64) + s + d + extension
    eth = MACS["b"] + MACS["a"] + b"".join(struct.pack(">HH", t, v) for t, v in tags)
    return eth + struct.pack(">H", 0x86dd) + ip + udp


def send(frames, pause_every=64, pause=0.002, again=True):
    """All of them, in order; how many the interface took. again: what the other end of the pair had no room for, as on a
    busy machine it has at times, is sent again. That can be told while nobody else sends."""
    s = packet_socket(NS["a"], IF["a"], 0)
    taken, dropped = 0, dropped_by_wire() if again else 0
    for i, frame in enumerate(frames):
        while True:
            try:
                took = s.send(frame) > 0
            except OSError:
                took = False
            if not again or (before := dropped) == (dropped := dropped_by_wire()):
                break
            time.sleep(0.001)
        taken += took
        if pause_every and i % pause_every == pause_every - 1:
            time.sleep(pause)
    s.close()
    return taken


def dropped_by_wire():
    """Frames that the peer had no room for: the sender's end of a veth counts them."""
    with NS["a"], open("/proc/thread-self/net/dev", encoding="ascii") as f:
        return next(int(line.split(":")[1].split()[11]) for line in f if line.strip().startswith(IF["a"] + ":"))


def reports(count, name="r", *options):
    path = os.path.join(DIR, name + ".pcap")
    pathline.run("gen", "int", "--count", count, *options, "-w", path, check=True)
    return pcap.frames_of(path)


# ---- pathline listen ----

class Listen:
    def __init__(self, uri, *options, form="jsonl"):
        self.args = NS["b"].command(PATHLINE, "listen", "-o", form, "--stats", *options, uri)
        ends = time.monotonic() + LIMIT
        self.start()
        # The kernel clears up behind a process that was killed, on a loaded machine some time later.
        while "AF_XDP socket of another process" in self.errors() and time.monotonic() < ends:
            self.p.wait()
            time.sleep(0.2)
            self.start()

    def start(self):
        self.out, self.err = (tempfile.mktemp(dir=DIR, suffix=suffix) for suffix in (".out", ".err"))
        with open(self.out, "w") as out:
            self.p = lab.start(self.args, log=self.err, stdout=out)
        self.up = wait(lambda: "listening on" in self.errors() or self.p.poll() is not None) and self.p.poll() is None

    def errors(self):
        return open(self.err).read()

    def records(self):
        return sum(line.startswith('{"kind":"path"') for line in open(self.out))

    def settle(self, n=None, some=False):
        """Until n records are there, or nothing more comes. some: there is at least one."""
        if n is not None:
            wait(lambda: self.records() >= n)
            return
        if some:
            wait(lambda: self.records() > 0)
        last = [-1, self.records()]

        def still():
            """it sleeps, which it does not while there is something to read, and no more records are there than at the last look"""
            last[:] = last[1], self.records()
            with open(f"/proc/{self.p.pid}/stat", encoding="ascii") as f:
                return last[0] == last[1] and f.read().rpartition(")")[2].split()[0] == "S"
        wait(still, pause=0.4)

    def take(self, frames):
        """Sends all of them, and never more at a time than its ring has room for: how many."""
        sent = 0
        for at in range(0, len(frames), 256):
            sent += send(frames[at:at + 256])
            self.settle(sent)
        return sent

    def stop(self, sig=signal.SIGINT):
        if self.p.poll() is None:
            self.p.send_signal(sig)
        self.p.wait(timeout=LIMIT)
        rows = [json.loads(line) for line in open(self.out) if line.startswith("{")]
        stats = rows.pop() if rows and rows[-1].get("kind") == "stats" else {}
        return [r for r in rows if r["kind"] == "path"], stats | {k: v for k, v in stats.get("port", {}).items() if k not in stats}


def stripped(rows):
    """Without the time of arrival, which only the machine knows."""
    return [{k: v for k, v in r.items() if k != "ts_ns"} for r in rows]


def from_file(path):
    return stripped(pathline.jsonl(pathline.run("read", "-o", "jsonl", path, check=True).stdout))


DRIVERS = [("afxdp native", "afxdp:plnb?mode=native"), ("afxdp generic", "afxdp:plnb?mode=generic"),
           ("packet", "packet:plnb"), ("udp", "udp://10.77.0.2:32766")]
INTERFACE_DRIVERS = DRIVERS[:3]


def first_difference(got, want):
    for i, (g, w) in enumerate(zip(got, want)):
        if g != w:
            return f"record {i}\n{g}\n{w}"
    return f"{len(got)} records, wanted {len(want)}"


# ---- the tests ----

def test_same_records():
    """Plain reports: five ways in, the same records out."""
    frames = [frame4(payload_of(f), src=socket.inet_ntoa(f[26:30])) for f in reports(3000)]
    want = from_file(pcap.write(os.path.join(DIR, "plain.pcap"), frames))
    eq(len(want), 3000, "the capture file has a record for each report")
    for name, uri in DRIVERS:
        # A bound socket, so that the host answers nothing where reports are copies.
        l = Listen(uri)
        if not ok(l.up, f"{name}: listens", l.errors()):
            continue
        sent = l.take(frames)
        got, stats = l.stop()
        got = stripped(got)
        ok(got == want, f"{name}: exactly the records of the capture file", first_difference(got, want))
        eq((stats.get("packets"), stats.get("kernel_drops")), (sent, 0), f"{name}: received = sent, no drops")


def test_wire_forms():
    """VLAN tags, IPv6, options; only interface ports see frames."""
    base = [payload_of(f) for f in reports(8, "forms")]
    forms = [frame4(base[0], tags=[(0x8100, 10)]), frame4(base[1], tags=[(0x88a8, 20), (0x8100, 10)]),
             frame4(base[2], tags=[(0x8100, 0x6000 | 30)]), frame6(base[3]), frame6(base[4], tags=[(0x8100, 10)]),
             frame6(base[5], extension=bytes([17, 0, 1, 4, 0, 0, 0, 0]), next_header=0),
             frame4(base[6], options=b"\x01" * 8), frame4(base[7], dport=54321)]
    want = from_file(pcap.write(os.path.join(DIR, "forms.pcap"), forms))
    eq(len(want), len(forms), "each form has a record in the capture file")
    tags = [{10}, {20, 10}, {30}, set(), {10}, set(), set(), set()]
    cases = [("", lambda i: True), ("port=54321", lambda i: i == 7), ("vlan=10", lambda i: 10 in tags[i]),
             ("vlan=20,30", lambda i: tags[i] & {20, 30}), ("dst=fd77::2", lambda i: i in (3, 4, 5)),
             ("dst=10.77.0.2,fd77::1", lambda i: i not in (3, 4, 5)),
             ("dst=10.77.0.3", lambda i: False), ("vlan=10&dst=fd77::2", lambda i: i == 4)]
    for name, uri in INTERFACE_DRIVERS:
        for keys, wanted in cases:
            l = Listen(uri + ("&" if "?" in uri else "?") + (keys or "port=32766,54321"))
            send(forms)
            expect = [w for i, w in enumerate(want) if wanted(i)]
            l.settle(len(expect) if expect else None)
            got, stats = l.stop()
            drop = ("report_id", "seq")
            def plain(rows):
                return [{k: v for k, v in r.items() if k not in drop} for r in rows]
            got, expect = plain(stripped(got)), plain(expect)
            ok(got == expect, f"{name}: forms with {keys or 'no keys'}",
               first_difference(got, expect) + "\n" + l.errors())


def test_others_pass():
    """What is no report reaches the host; what is, does not."""
    base = payload_of(reports(1, "others")[0])
    others = {"another UDP port": frame4(b"hello", dport=9999), "a fragment": frame4(base, frag=0x2000),
              "a later fragment": frame4(base, frag=0x0010), "TCP": frame4(base, proto=6),
              "ARP": MACS["b"] + MACS["a"] + b"\x08\x06" + bytes(46), "a cut IP header": frame4(base)[:30] + b"",
              "IPv6 fragment": frame6(base, extension=bytes([17, 0, 0, 1, 0, 0, 0, 1]), next_header=44),
              "an IPv4 header that lies": frame4(base)[:14] + b"\x43" + frame4(base)[15:]}
    for name, uri in INTERFACE_DRIVERS[:2]:
        l = Listen(uri)
        s = packet_socket(NS["b"], IF["b"])
        s.settimeout(LIMIT)
        seen = []
        send(list(others.values()) + [frame4(base)])
        end = time.monotonic() + LIMIT
        while time.monotonic() < end and any(f not in seen for f in others.values()):
            try:
                seen.append(s.recv(2048))
            except socket.timeout:
                break
        s.close()
        l.settle(1)
        got, stats = l.stop()
        missing = [k for k, f in others.items() if f not in seen]
        eq(missing, [], f"{name}: the host has every other frame, byte for byte")
        ok(frame4(base) not in seen, f"{name}: the host does not have the report")
        ok(len(got) == 1 and stats["left_to_host"] >= len(others),
           f"{name}: one record, the others counted", (len(got), stats))


def test_fragments():
    """Datagrams in pieces are counted: by a packet socket those that are asked for, by their first fragments."""
    base = payload_of(reports(1, "others")[0])
    first6 = bytes([17, 0, 0, 1, 0, 0, 0, 1])
    wanted = [frame4(base, frag=0x2000), frame6(base, extension=first6, next_header=44)]
    others = [frame4(base, frag=0x2000, dport=9999), frame4(base, frag=0x0010), frame4(base, frag=0x2010),
              frame6(base, extension=bytes([17, 0, 0, 9, 0, 0, 0, 1]), next_header=44),
              frame6(base, extension=bytes([6, 0, 0, 1, 0, 0, 0, 1]), next_header=44)]
    for name, uri in INTERFACE_DRIVERS:
        l = Listen(uri + ("?ring=256" if name == "packet" else ""))  # Of two blocks, which are full of fragments again and again.
        # A veth takes 256 frames at a time; of the packet ring's two blocks a listener that does not run misses some, or the report.
        for _ in range(10):
            send(wanted * 30)
            time.sleep(0.05)
        send(others)
        sent = 0

        def comes():
            """a report is there"""
            nonlocal sent
            sent += send([frame4(base)])
            return l.records() > 0
        wait(comes, pause=0.2)
        l.settle()
        got, stats = l.stop()
        want = sent + (600 if name == "packet" else 600 + len(others))
        ok(0 < len(got) <= sent and stats.get("fragments", 0) > 0 and len(got) + stats["fragments"] + stats.get("kernel_drops", 0) == want,
           f"{name}: what is in pieces is counted", (len(got), want, stats))


def test_ssh():
    """A real sshd over the interface that reports flood."""
    sshd = shutil.which("sshd") or "/usr/sbin/sshd"
    if not os.path.exists(sshd) or shutil.which("ssh") is None:
        skip("ssh over the same interface", "missing: openssh-server or openssh-client")
        return
    keys, port = os.path.join(DIR, "ssh"), lab.free_port()
    os.mkdir(keys, 0o700)
    for key in ("host", "user"):
        sh(f"ssh-keygen -q -t ed25519 -N '' -f {keys}/{key}")
    shutil.copy(f"{keys}/user.pub", f"{keys}/authorized")
    os.makedirs("/run/sshd", 0o755, exist_ok=True)
    with open(f"{keys}/config", "w") as f:
        f.write(f"ListenAddress 10.77.0.2:{port}\nHostKey {keys}/host\nAuthorizedKeysFile {keys}/authorized\n"
                f"PermitRootLogin yes\nStrictModes no\nUsePAM no\nPidFile none\n")
    server = lab.start(NS["b"].command(sshd, "-D", "-f", f"{keys}/config"), log=f"{keys}/log")
    payload = os.urandom(1 << 20)
    blob = os.path.join(DIR, "blob")
    open(blob, "wb").write(payload)
    ssh = NS["a"].command("ssh", "-p", str(port), "-i", f"{keys}/user", "-o", "BatchMode=yes",
                          "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", f"ConnectTimeout={LIMIT}",
                          "root@10.77.0.2")

    def once(command, stdin=None):
        try:
            return subprocess.run(ssh + [command], input=stdin, capture_output=True, timeout=2 * LIMIT)
        except subprocess.TimeoutExpired as e:
            return subprocess.CompletedProcess(ssh, 124, b"", str(e).encode())

    wait(lambda: once("true").returncode == 0)
    frames = [frame4(payload_of(f)) for f in reports(2000, "ssh")]
    for name, uri in INTERFACE_DRIVERS[:2]:
        l, stop, sent = Listen(uri), threading.Event(), [0]

        def load():
            while not stop.is_set():
                sent[0] += send(frames, again=False)

        before = dropped_by_wire()

        loader = threading.Thread(target=load, daemon=True)
        loader.start()
        wait(lambda: sent[0] > 0)
        down = once(f"cat {blob}")
        up = once(f"cmp - {blob} && echo same", payload)
        stop.set()
        loader.join()
        # What the pair had no room for may have been of ssh, or a report.
        dropped = dropped_by_wire() - before
        l.settle(some=True)
        _, stats = l.stop()
        ok(down.stdout == payload, f"{name}: ssh gets 1 MiB over the interface, under load", down.stderr.decode())
        ok(b"same" in up.stdout, f"{name}: and puts 1 MiB", up.stderr.decode())
        ok(0 < sent[0] - dropped <= stats["packets"] + stats["kernel_drops"] <= sent[0],
           f"{name}: the reports meanwhile are all accounted for", (stats, sent, dropped))
    server.terminate()
    server.wait()


def xdp_id():
    # "prog/xdp id 55" behind "xdp" or "xdpgeneric"
    m = re.search(r"prog/xdp id (\d+)", ns("b", f"ip -d link show {IF['b']}"))
    return int(m.group(1)) if m else 0


def test_programs():
    """One program fits; who has it is said; it goes with its process."""
    l = Listen("afxdp:plnb")
    ok(xdp_id() != 0, "a program is attached while one listens")
    second = Listen("afxdp:plnb")
    ok(not second.up and second.p.wait() == 69, "a second one on the interface ends", second.errors())
    ok(re.search(rf"plnb has an XDP program already: 'pl_collect' \(id \d+, native\), held by process "
                 rf"{pid_of(l)} \(pathline\); .*, or use packet:plnb", second.errors()) is not None,
       "and says who has it", second.errors() + f"pid {pid_of(l)}")
    os.kill(pid_of(l), signal.SIGKILL)
    l.p.wait()
    ok(wait(lambda: xdp_id() == 0), "after kill -9 the program is gone")
    l = Listen("afxdp:plnb")
    ok(l.up, "and one can start again at once", l.errors())
    send([frame4(payload_of(reports(1, "kill")[0]))])
    l.settle(1)
    got, _ = l.stop()
    eq((len(got), xdp_id()), (1, 0), "it receives, and its end takes the program off")
    l = Listen("afxdp:plnb")
    l.stop(signal.SIGTERM)
    eq(xdp_id(), 0, "so does SIGTERM")
    if OBJECT is None or shutil.which("bpftool", path=os.environ["PATH"] + ":/usr/sbin") is None:
        skip("another's XDP program", "missing: bpftool, or a build with kernel programs")
        return
    pin = f"/sys/fs/bpf/pln-{os.getpid()}"
    lab.undo("rm", "-f", pin)
    sh(f"PATH=$PATH:/usr/sbin; bpftool prog load {OBJECT} {pin}")
    try:
        ns("b", f"sh -c 'PATH=$PATH:/usr/sbin; mount -t bpf none /sys/fs/bpf; bpftool net attach xdp pinned {pin} "
                f"dev plnb'", check=False)
        foreign = xdp_id()
        if foreign == 0:
            # ip netns exec has a /sys of its own; attach by number instead.
            number = re.match(r"(\d+)", sh(f"PATH=$PATH:/usr/sbin; bpftool prog show pinned {pin}")).group(1)
            ns("b", f"sh -c 'PATH=$PATH:/usr/sbin; bpftool net attach xdp id {number} dev plnb'")
            foreign = xdp_id()
        ok(foreign != 0, "another's program is attached")
        l = Listen("afxdp:plnb")
        ok(not l.up and re.search(rf"has an XDP program already: .*\(id {foreign}, native\)", l.errors()),
           "it is named, and ours does not start", l.errors())
        l = Listen("packet:plnb")
        ok(l.up, "packet: works beside it", l.errors())
        l.stop()
        eq(xdp_id(), foreign, "the other's program is still there")
    finally:
        ns("b", "sh -c 'PATH=$PATH:/usr/sbin; bpftool net detach xdp dev plnb'", check=False)
        os.unlink(pin)


def pid_of(l):
    """Of pathline: ip netns exec becomes it."""
    return l.p.pid


def test_interface_changes():
    """Down and up, removed and back, renamed: said, and survived."""
    one = [frame4(payload_of(f)) for f in reports(50, "changes")]
    for name, uri in INTERFACE_DRIVERS:
        make_wire()
        l, total, mark = Listen(uri), 0, [0]

        def told(text, what):
            """In what was said since the last time."""
            def found():
                at = l.errors().find(text, mark[0])
                if at >= 0:
                    mark[0] = at + len(text)
                return at >= 0
            ok(wait(found), f"{name}: {what}", l.errors()[mark[0]:])

        def news(listener):
            """what it said of the interface: not of rights, nor the hint of the first seconds, which a busy machine may see"""
            return [line for line in listener.errors().splitlines() if "nothing received so far" not in line and "locked memory" not in line]

        def receives(interface, what):
            nonlocal total
            wait(lambda: "LOWER_UP" in ns("a", f"ip link show {IF['a']}") and
                 "LOWER_UP" in ns("b", f"ip link show {interface}"))
            # The last news is that it is up.
            wait(lambda: news(l)[-1].endswith(("is up", "now called " + interface, uri.split("?")[0], "queues=0")))
            total += send([MACS["b"] + MACS["a"] + f[12:] for f in one])
            l.settle(total)
            eq(l.records(), total, f"{name}: {what}")

        receives("plnb", "receives")
        ns("b", "ip link set plnb down")
        told("interface plnb is down", "says that it is down")
        ns("b", "ip link set plnb up")
        told("plnb is up", "says that it is up")
        receives("plnb", "receives again")

        ns("b", "ip link set plnb down")
        ns("b", "ip link set plnb name plnc")
        ns("b", "ip link set plnc up")
        told("plnb is now called plnc", "says the new name")
        told("plnc is up", "and takes up under it")
        receives("plnc", "receives under the new name")

        ns("b", "ip link del plnc")
        told("plnc is gone", "says that it is gone")
        IF["b"] = "plnc"
        make_wire()
        IF["b"] = "plnb"
        told("plnc is up", "takes up again when it is back")
        receives("plnc", "receives over the new interface")

        ns("b", f"ip link set plnc netns {NS['a']}")
        told("plnc is gone", "moved to another namespace is gone")
        ns("a", f"ip link set plnc netns {NS['b']}")
        ns("b", "ip link set plnc up")
        told("plnc is up", "and takes up when it is moved back")
        receives("plnc", "receives")
        got, stats = l.stop()
        eq((len(got), stats["packets"]), (total, total), f"{name}: all that was sent while it was up")
        ok(stats["outages"] >= 3, f"{name}: outages are counted", stats["outages"])
    make_wire()


def test_overload():
    """A reader that stands still: received + drops = what the interface delivered."""
    frames = [frame4(payload_of(f)) for f in reports(1000, "load")] * 20
    cases = [("afxdp native", "afxdp:plnb?mode=native&ring=256"), ("afxdp generic", "afxdp:plnb?mode=generic&ring=256"),
             ("packet", "packet:plnb?ring=256"), ("udp", "udp://10.77.0.2:32766?rcvbuf=64KiB")]
    for name, uri in cases:
        l = Listen(uri)
        before = dropped_by_wire()
        os.kill(pid_of(l), signal.SIGSTOP)
        sent = send(frames, again=False)
        os.kill(pid_of(l), signal.SIGCONT)
        l.settle(some=True)
        _, stats = l.stop()
        lost_before = dropped_by_wire() - before
        ok(stats["kernel_drops"] > 0, f"{name}: a reader that stands still loses some", stats)
        eq(stats["packets"] + stats["kernel_drops"] + lost_before, sent,
           f"{name}: received + drops = sent")


def test_unsegmented():
    """What the sender leaves to its NIC to take apart: rows of datagrams in one frame, over veth as they are."""
    ns("a", "ethtool -K plna tx on gso on tx-udp-segmentation on", check=False)
    l = Listen("packet:plnb")
    ns("b", "ip link set lo up")
    with NS["a"]:
        run = pathline.run("gen", "int", "--flood", "--count", 3000, "udp://10.77.0.2:32766?gso=on")
    l.settle(3000)
    got, stats = l.stop()
    eq((run.returncode, len(got), sum(e["lost"] for e in stats["exporters"])), (0, 3000, 0),
       "packet: datagrams that arrive in one frame are told apart")
    make_wire()


def test_queues():
    """Four queues: all of them, some of them, a group."""
    make_wire(queues=4)
    frames = [frame4(payload_of(f), src=f"10.255.{i % 7}.{i % 31}", sport=40000 + i % 97)
              for i, f in enumerate(reports(4000, "queues"))]
    for name, uri, part in (("all queues", "afxdp:plnb", False), ("two queues of four", "afxdp:plnb?queues=0,2", True),
                            ("all queues, generic", "afxdp:plnb?mode=generic", False),
                            ("a group of four", "packet:plnb?fanout=4", False)):
        l = Listen(uri)
        if part:
            sent = send(frames)
            l.settle(some=True)
        else:
            sent = l.take(frames)
        _, stats = l.stop()
        got = stats.get("packets", 0)
        if part:
            ok(0 < got < sent, f"{name}: some of the reports", (got, stats, l.errors()))
            eq(got + stats["no_socket"] + stats["kernel_drops"], sent, f"{name}: the others are the host's, counted")
        else:
            eq((got, stats.get("kernel_drops")), (sent, 0), f"{name}: every report once")
    make_wire()


def test_sending():
    """pathline gen through each driver; a packet socket of Python's receives."""
    def received(uri, count, options):
        """The generator's end, the frames, and how many the pair had no room for, as when the machine is busy."""
        s, before = packet_socket(NS["b"], IF["b"]), dropped_by_wire()
        s.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
        with NS["a"]:
            run = pathline.run("gen", "int", "--count", count, *options, uri)
        s.setblocking(False)
        got = []

        def all_came():
            """each frame came, or the pair had no room for it"""
            while select.select([s], [], [], 0)[0]:
                frame = s.recv(4096)
                if frame[12:14] == b"\x08\x00" and frame[36:38] in (b"\x7f\xfe", b"\xd4\x31"):
                    got.append(frame)
            return len(got) + dropped_by_wire() - before >= count
        wait(all_came)
        s.close()
        return run, got, dropped_by_wire() - before

    for name, uri in (("packet", "packet:plna"), ("afxdp", "afxdp:plna")):
        options = ["--seed", "7", "--rate", "50k"]
        for _ in range(10):
            run, got, lost = received(uri, 2000, options)
            if lost == 0:
                break
        want = reports(2000, "sent", *options)
        eq((run.returncode, len(got)), (0, len(want)), f"gen to {name}: every frame arrives")
        # Times differ, nothing else: so lengths and addresses agree frame by frame.
        ok([(len(f), f[:12], f[26:40]) for f in got] == [(len(f), f[:12], f[26:40]) for f in want],
           f"gen to {name}: in order, as in the file")


def test_messages():
    """What is wrong is said in one line."""
    def says(uri, pattern, code, name, prefix=()):
        run = subprocess.run(NS["b"].command(*prefix, PATHLINE, "listen", uri), capture_output=True, text=True, timeout=60)
        ok(run.returncode == code and re.search(pattern, run.stderr) and len(run.stderr.splitlines()) == 1,
           name, f"{run.returncode}: {run.stderr}")

    unprivileged = ("setpriv", "--reuid=65534", "--clear-groups", "--bounding-set=-all")
    ns("b", "ip link add plnx type veth peer name plny")
    for scheme in ("afxdp", "packet"):
        says(f"{scheme}:none0", "there is no interface 'none0'", 69, f"{scheme}: an unknown interface")
        says(f"{scheme}:plnx", "plnx is down", 69, f"{scheme}: an interface that is down")
        says(f"{scheme}:plnb?qeues=1", "unknown key 'qeues'", 2, f"{scheme}: an unknown key")
        says(f"{scheme}:plnb?port=70000", "not a UDP port", 2, f"{scheme}: a port that is none")
        says(f"{scheme}:plnb?vlan=5000", "not a VLAN id", 2, f"{scheme}: a VLAN that is none")
        says(f"{scheme}:plnb?dst=10.0.0", "not an IPv4 or IPv6 address", 2, f"{scheme}: an address that is none")
        says(f"{scheme}:plnb?ring=1000", "not a power of two", 2, f"{scheme}: a ring that is none")
        says(f"{scheme}:plnb", "needs .*CAP_NET_RAW", 77, f"{scheme}: without privilege", unprivileged)
    says("afxdp:plnb?queues=7", "plnb has 1 queue, there is no queue 7", 2, "afxdp: a queue that is none")
    says("afxdp:plnb?queues=2-1", "not a number or N-M", 2, "afxdp: a range backwards")
    says("afxdp:plnb?copy=zero", "no zero-copy", 69, "afxdp: zero-copy that is not there")
    says("afxdp:plnb?mode=fast", "auto, native or generic", 2, "afxdp: a mode that is none")
    eq(xdp_id(), 0, "none of them left a program behind")
    ns("b", "ip link del plnx")


MACS = {}


def main():
    if os.geteuid() != 0 or shutil.which("ip") is None:
        tap.skip_all("needs root and iproute2")
    version = pathline.run("listen", "afxdp:none0").stderr
    if "built without" in version:
        tap.skip_all(version.strip())
    try:
        make_namespaces()
    except RuntimeError as e:
        tap.skip_all(f"no network namespaces here: {e}")
    make_wire()
    lab.run(test_same_records, test_wire_forms, test_others_pass, test_fragments, test_ssh, test_programs, test_interface_changes,
            test_overload, test_unsegmented, test_queues, test_sending, test_messages)
    return tap.end()


sys.exit(main())
