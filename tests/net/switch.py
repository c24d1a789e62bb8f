#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A switch that writes records into a collector's list by itself, as the P4-to-RDMA collector has it: this script is the
controller, which is told where by 34 bytes and sends them back, and the switch, which writes RoCEv1 frames byte by byte by
definitions of its own, loses some, comes to the end of its 16-bit packet numbers and begins the list again.
usage: switch.py PATHLINE"""
import ctypes
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import zlib

PATHLINE = os.path.abspath(sys.argv[1])
DIR = tempfile.mkdtemp(prefix="pathline-switch-")
NS = {side: "plsw-%s%d" % (side, os.getpid()) for side in "ab"}
IP = {"a": "10.1.1.1", "b": "10.1.1.2"}
LIMIT, SLOTS, RECORD, BATCH = 60, 64, 48, 16
COUNT = FAILED = 0
RUNNING = []


def ok(good, name, detail=""):
    global COUNT, FAILED
    COUNT += 1
    FAILED += not good
    print(f"{'ok' if good else 'not ok'} {COUNT} - {name}", flush=True)
    if not good and detail != "":
        for line in str(detail).splitlines()[:30]:
            print(f"# {line[:300]}", flush=True)
    return good


def eq(got, want, name):
    return ok(got == want, name, f"got    {got!r}\nwanted {want!r}")


def sh(command, check=True):
    run = subprocess.run(command, shell=True, capture_output=True, text=True)
    if check and run.returncode != 0:
        raise RuntimeError(f"{command}: {run.stderr.strip()}")
    return run.stdout


def wait(what):
    """Until it is true, or for very long: a loaded machine is slow."""
    until = time.monotonic() + LIMIT
    while not what():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def in_namespace(side, what):
    """what() in a namespace: this thread goes there and back."""
    libc = ctypes.CDLL(None, use_errno=True)
    home, there = os.open("/proc/self/ns/net", os.O_RDONLY), os.open(f"/run/netns/{NS[side]}", os.O_RDONLY)
    try:
        if libc.setns(there, 0x40000000) != 0:
            raise OSError(ctypes.get_errno(), "setns")
        return what()
    finally:
        libc.setns(home, 0x40000000)
        os.close(home)
        os.close(there)


def make_wire():
    for side in "ab":
        sh(f"ip netns add {NS[side]}")
        sh(f"ip netns exec {NS[side]} sysctl -qw net.ipv6.conf.default.disable_ipv6=1", check=False)
    sh(f"ip link add plsa netns {NS['a']} type veth peer name plsb netns {NS['b']}")
    for side in "ab":
        sh(f"ip -n {NS[side]} addr add {IP[side]}/24 dev pls{side}")
        sh(f"ip -n {NS[side]} link set pls{side} up")
    wait(lambda: all("state UP" in sh(f"ip -n {NS[s]} link show pls{s}") for s in "ab"))


def mac(side):
    words = sh(f"ip -n {NS[side]} link show pls{side}").split()
    return bytes.fromhex(words[words.index("link/ether") + 1].replace(":", ""))


# ---- the switch ----

def gid(address):
    return b"\0" * 10 + b"\xff\xff" + socket.inet_aton(address)


def icrc(packet):
    """Over GRH and what follows, with class, flow label, hop limit and the BTH's reserved byte as ones (annex A16)."""
    p = bytearray(packet)
    p[0] |= 0x0f
    p[1:4] = b"\xff\xff\xff"
    p[7] = 0xff
    p[44] = 0xff
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(p)))


class Switch:
    def __init__(self, told):
        self.va, self.key, self.qpn = struct.unpack(">QII", told[:16])
        self.psn = self.number = 0
        self.socket = in_namespace("a", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
        in_namespace("a", lambda: self.socket.bind(("plsa", 0)))

    def record(self):
        return struct.pack(">12x4s12x4sHHIII", b"\x0a\0\0\1", b"\x0a\0\0\2", 1000 + self.number % 1000, 443,
                           self.number * 100, 0, self.number)

    def frame(self, slot, imm=None, damage=False, v2=False):
        data = self.record()
        rest = struct.pack(">QII", self.va + slot * RECORD, self.key, len(data))
        rest += (struct.pack(">I", imm) if imm is not None else b"") + data
        bth = struct.pack(">BBHII", 0x0a if imm is None else 0x0b, 0x40, 0xffff, self.qpn, 0x80000000 | self.psn)
        grh = struct.pack(">IHBB", 0x60000000, 12 + len(rest) + 4, 0x1b, 64) + gid(IP["a"]) + gid(IP["b"])
        packet = grh + bth + rest
        check = icrc(packet)
        if damage:
            check = bytes([check[0] ^ 1]) + check[1:]
        return MAC["b"] + MAC["a"] + b"\x89\x15" + packet + check

    def write(self, n=1, sent=True, **kwargs):
        """The next n records, or their loss."""
        for _ in range(n):
            if sent:
                self.socket.send(self.frame(self.number % SLOTS, **kwargs))
            self.number += 1
            self.psn = (self.psn + 1) & 0xffff


# ---- the collector ----

def path(name):
    return os.path.join(DIR, name)


def entries():
    run = subprocess.run([PATHLINE, "region", "dump", "-o", "json", path("records.plr")], capture_output=True, text=True)
    return {x["number"]: bytes.fromhex(x["value"]) for x in json.loads(run.stdout or "[]")}


def number_of(value):
    return struct.unpack(">I", value[44:])[0]


def listen():
    s = in_namespace("a", lambda: socket.create_server((IP["a"], 19876)))
    s.settimeout(LIMIT)
    return s


def start(uri, *args):
    process = subprocess.Popen(
        ["ip", "netns", "exec", NS["b"], PATHLINE, "collect", "--stats", "--controller", IP["a"] + ":19876", *args, uri,
         path("records.plr")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    RUNNING.append(process)
    return process


def end(process):
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=LIMIT)
    RUNNING.remove(process)
    return out, err


def told(server, answer=None):
    """What the collector says to the controller, which answers."""
    c, _ = server.accept()
    c.settimeout(LIMIT)
    data = b""
    while len(data) < 34:
        data += c.recv(64)
    c.sendall(data if answer is None else answer)
    return data


def run(uri):
    if os.path.exists(path("records.plr")):
        os.unlink(path("records.plr"))
    sh(f"{PATHLINE} region create --primitive append --unsealed --lists 1 --slots {SLOTS} --batch {BATCH} "
       f"--value-bytes {RECORD} {path('records.plr')}")
    with listen() as server:
        process = start(uri, "--on-immediate")
        data = told(server)
    line = process.stderr.readline()
    while "is up" in line or "is down" in line:
        line = process.stderr.readline()
    ok("collecting on" in line, f"{uri}: collects once the controller has answered", line)
    eq((len(data), data[16:18], data[18:]), (34, b"\0\0", gid(IP["b"])), "34 bytes: no LID, the collector's GID")
    s = Switch(data)
    s.write(20)
    ok(wait(lambda: len(entries()) == 20), "records are entries", len(entries()))
    eq([number_of(entries()[i]) for i in range(20)], list(range(20)), "each in its place")
    s.write(3, sent=False)
    s.write(2)
    ok(wait(lambda: len(entries()) >= 25), "after a loss the next record counts again", len(entries()))
    got = entries()
    eq([number_of(got[i]) for i in (23, 24)], [23, 24], "in its place")
    eq([got.get(i, b"\0" * RECORD) for i in (20, 21, 22)], [b"\0" * RECORD] * 3, "where a record was lost there is none")
    s.psn = 0xffff
    s.write(5)
    ok(wait(lambda: 29 in entries()), "packet numbers of 16 bits begin again", sorted(entries()))

    before = entries()
    s.socket.send(s.frame(29, damage=True))
    s.socket.send(s.frame(SLOTS + 1000))
    s.key ^= 1
    s.socket.send(s.frame(28))
    s.key ^= 1
    s.write(1)
    ok(wait(lambda: 30 in entries()), "what is right is taken after what is wrong")
    after = entries()
    eq({k: v for k, v in after.items() if k < 30}, before, "damage, another key and a place outside change nothing")
    s.write(1, imm=0x41414141)
    ok(wait(lambda: 31 in entries()), "a record with immediate")
    s.write(50)
    ok(wait(lambda: 81 in entries()), "the list begins again at its end", sorted(entries()))
    got = entries()
    eq({k: number_of(v) for k, v in got.items()}, {k: k for k in got}, "and every entry is its record")
    out, err = end(process)
    lines = [json.loads(x) for x in out.splitlines()]
    stats = lines.pop()
    causes = stats["causes"]
    eq((causes["ok"], causes["bounds"], causes["key"], causes["icrc"]), (79, 1, 1, 1), "every frame has its cause")
    eq(stats["packets"], sum(causes.values()), "and packets are their sum")
    ok(any(number_of(bytes.fromhex(x["value"])) == 31 for x in lines if "value" in x), "the immediate woke a worker", out)


def refusals():
    process = start("packet:plsb")
    _, err = end_by_itself(process)
    ok(process.returncode not in (0, -15) and "controller" in err, "without a controller it does not begin", err)
    with listen() as server:
        process = start("packet:plsb")
        told(server, b"x" * 34)
        _, err = end_by_itself(process)
    ok(process.returncode not in (0, -15) and "something else" in err, "nor when it answers something else", err)
    run_ = subprocess.run([PATHLINE, "collect", "--controller", "10.1.1.1:1", "--switch", "10.1.1.1", "packet:lo", "x"],
                          capture_output=True, text=True)
    ok(run_.returncode == 2 and "--switch" in run_.stderr, "a switch without its queue pair is refused", run_.stderr)


def end_by_itself(process):
    out, err = process.communicate(timeout=LIMIT)
    RUNNING.remove(process)
    return out, err


def main():
    global MAC
    if os.geteuid() != 0:
        print("1..0 # SKIP needs root")
        return
    try:
        make_wire()
        MAC = {side: mac(side) for side in "ab"}
        run("packet:plsb")
        if "afxdp" in sh(f"{PATHLINE} help collect"):
            run("afxdp:plsb")
        refusals()
    finally:
        for process in RUNNING:
            process.kill()
            process.wait()
        for side in "ab":
            sh(f"ip netns del {NS[side]}", check=False)
        shutil.rmtree(DIR, ignore_errors=True)
    print(f"1..{COUNT}")
    sys.exit(FAILED > 0)


MAC = {}
main()
