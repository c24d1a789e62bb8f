#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The way through a lab of switches, hop by hop, as traceroute finds it: the kernel of a host sends datagrams with small hop limits
and reads who dropped them; every switch of the path says so, once, from an address of its own. usage: lab_route.py PATHLINE"""
import json
import os
import subprocess
import sys

# As in labs.py: a leak is looked for by a process that cannot see its parent.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, tap  # noqa: E402
from lib.pathline import PATHLINE  # noqa: E402
from lib.tap import eq, ok  # noqa: E402

NAME = f"r{os.getpid()}"
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
# Offender, errno and ICMP type of each hop limit, until somebody has no listener.
TRACE = r'''
import errno, os, select, socket, struct, sys
to = sys.argv[1]
six = ":" in to
level, recverr, hops = (socket.IPPROTO_IPV6, 25, socket.IPV6_UNICAST_HOPS) if six else (socket.IPPROTO_IP, 11, socket.IP_TTL)
for n in range(1, 20):
    s = socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(level, recverr, 1)
    s.setsockopt(level, hops, n)
    s.sendto(b"trace", (to, 33434))
    poll = select.poll()
    poll.register(s, 0)
    if not poll.poll(60000):
        print("nobody")
        break
    data = s.recvmsg(2000, 500, socket.MSG_ERRQUEUE)[1][0][2]
    code, _, kind = struct.unpack_from("=IBB", data)
    who = socket.inet_ntop(s.family, data[24:40] if six else data[20:24])
    print(who, kind, code)
    if code == errno.ECONNREFUSED:
        break
'''


def run(*words):
    return subprocess.run([PATHLINE, "lab", *words], capture_output=True, text=True, timeout=200, check=False)


def test_route():
    path = lab.write("net.yaml", f"name: {NAME}\nshape: leaf-spine:2x1x1\n")
    up = run("up", path)
    ok(up.returncode == 0, "the lab is up", up.stderr)
    lab.undo(PATHLINE, "lab", "down", NAME)
    shown = json.loads(run("show", NAME, "-o", "json").stdout)
    hosts = [n for n in shown["nodes"] if n["kind"] == "host"]
    text = json.dumps(shown)
    for to in (hosts[1]["ipv4"], hosts[1]["ipv6"]):
        got = run("exec", NAME, hosts[0]["name"], "--", PYTHON, "-c", TRACE, to)
        hops = [line.split() for line in got.stdout.splitlines()]
        tap.comment(got.stdout.replace("\n", "; ") + got.stderr)
        eq(len(hops), 4, f"{to}: three switches, and the host")
        eq([h[0] for h in hops[3:]], [to], f"{to}: the host is the last one")
        eq({h[1] for h in hops[:3]}, {"3" if ":" in to else "11"}, f"{to}: time exceeded from the others")
        switches = [h[0] for h in hops[:3]]
        eq(len(set(switches)), 3, f"{to}: each from an address of its own")
        ok(all(f'"{a}"' in text or f'"{a}/' in text for a in switches), f"{to}: which the lab shows", switches)
    eq(run("down", NAME).returncode, 0, "the lab is down")


def main():
    if os.geteuid() != 0:
        tap.skip_all("needs root")
    lab.run(test_route)
    return tap.end()


sys.exit(main())
