#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Interfaces that are born and gone by the thousand under a tap of each kind (packet:, tc:, xdp:) and under a daemon with such
taps: afterwards each looks at the interface that is there, and holds no descriptor, no program and no memory more than before.
usage: interface_churn.py PATHLINE [TEST…]"""
import os
import re
import signal
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, network, tap, tapping  # noqa: E402
from lib.pathline import Daemon  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import LIMIT, wait  # noqa: E402

A, B = "10.81.0.1", "10.81.0.2"
BATCH = 50  # births in one go, quicker than anybody follows
WARM = 4  # batches after which everything was allocated that is kept
NS = {}


def births(n):
    """So many deaths and births of the wire between a and b, as fast as the kernel makes them."""
    lines = []
    for _ in range(n):
        lines += ["link del eth0", f"link add eth0 type veth peer name eth0 netns {NS['b']}"]
    subprocess.run(["ip", "-n", str(NS["a"]), "-batch", "-"], input="\n".join(lines), text=True, check=True, timeout=10 * LIMIT)
    for side, address in (("a", A), ("b", B)):
        NS[side].up("eth0", address + "/24")
    network.wait_for_carrier((NS["a"], "eth0"), (NS["b"], "eth0"))


def send():
    with NS["b"], socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.sendto(b"x", (A, 9))


def held(pid):
    """What a process holds: descriptors by what they are, programs of BPF that are attached, KiB of memory of its own."""
    fds, programs = {}, set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            what = re.sub(r"\d+", "", os.readlink(f"/proc/{pid}/fd/{fd}"))
            with open(f"/proc/{pid}/fdinfo/{fd}", encoding="ascii") as f:
                programs.update(re.findall(r"^prog_id:\s*(\d+)", f.read(), re.M))
        except FileNotFoundError:
            continue
        fds[what] = fds.get(what, 0) + 1
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return fds, len(programs), int(re.search(r"RssAnon:\s*(\d+)", f.read()).group(1))


def churn(process, records, rounds):
    """records(): how many it has made. It sees the interface that is there behind each batch, and holds no more in the end. Gives
    the KiB of memory by which it grew."""
    for number in range(WARM + rounds):
        births(BATCH)
        before = records()

        def sees():
            """a datagram over the newest interface is seen by every source"""
            send()
            return all(now > then for then, now in zip(before, records()))
        if not wait(sees):
            ok(False, f"behind batch {number} every source sees the new interface", (before, records()))
            return 0
        if number == WARM - 1:
            was = held(process.pid)
    ok(True, f"behind each of {WARM + rounds} batches of {BATCH} births every source sees the new interface")
    now = held(process.pid)
    eq(now[:2], was[:2], "it holds no more descriptors and programs than after the first births")
    return now[2] - was[2]


def one(kind, rounds):
    t = tapping.Tap(NS["a"], kind, "--to", f"file:{lab.path(kind + '.pkt64')}", f"{kind}:eth0")

    def records():
        return [t.look()["tap"]["records"]]
    churn(t.p, records, rounds)
    t.p.send_signal(signal.SIGTERM)
    eq(t.p.wait(2 * LIMIT), 0, f"{kind}: it ends well")
    ok(wait(lambda: "prog" not in NS["a"].sh("bpftool net show dev eth0", check=False)), f"{kind}: no program stays")


def many(rounds):
    """A daemon with a tap of each kind."""
    with open(lab.path("churn.yaml"), "w", encoding="utf-8") as f:
        f.write("web: {listen: '127.0.0.1:0'}\ntaps:\n")
        for kind in ("packet", "tc", "xdp"):
            f.write(f"  - {{name: {kind}, sources: ['{kind}:eth0'], to: ['file:{lab.path('daemon-' + kind + '.pkt64')}']}}\n")
    # Its page is asked for in its namespace.
    d = Daemon(lab.path("churn.yaml"), prefix=tuple(NS["a"].command()))

    def records():
        with NS["a"]:
            page = d.metrics()
        return [page[f'pathline_tap_records_total{{tap="{kind}"}}'] for kind in ("packet", "tc", "xdp")]
    grown = churn(d.p, records, rounds)
    eq(d.stop(), 0, "the daemon ends well")
    return grown


def prepare():
    for side in "ab":
        NS[side] = network.Namespace(f"churn-{side}", ipv6=False)
    network.join(NS["a"], "eth0", NS["b"], "eth0")
    for side, address in (("a", A), ("b", B)):
        NS[side].up("eth0", address + "/24")
    network.wait_for_carrier((NS["a"], "eth0"), (NS["b"], "eth0"))


def test_daemon():
    """400 births under a daemon."""
    many(4)


def test_taps():
    """600 births under each kind of tap."""
    for kind in ("packet", "tc", "xdp"):
        one(kind, 8)


def promise_memory():
    """10,000 births under a daemon: less than 27 bytes for each."""
    grown = many(10_000 // BATCH - WARM)
    ok(grown < 256, f"it takes no more memory than after the first births: {grown} KiB")


prepare()
lab.run(test_daemon, test_taps, promise_memory)
sys.exit(tap.end())
