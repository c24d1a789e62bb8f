# SPDX-License-Identifier: BSD-2-Clause
"""Alternate marking between two hosts: a marker and meters on a wire between two namespaces, whose middle drops packets that it
counts. Loss is what the middle dropped, to the packet, for UDP and for TCP whose segments the NIC is to make; delay is what the
middle holds packets for. Bits in use, unmarking, restarts with and without pins, kill -9.

usage: marking.py PATHLINE [TEST…]
"""
import collections
import heapq
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, network, pathline, pcap, tap, tapping  # noqa: E402
from lib.pathline import PATHLINE  # noqa: E402
from lib.roce import packet_socket  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import LIMIT, wait  # noqa: E402

A, B = "10.84.0.1", "10.84.0.2"
A1, B1 = "10.85.0.1", "10.85.0.2"
A6, B6 = "fd84::1", "fd84::2"
PERIOD = 0.5
BEYOND = 32  # of mark_flags: packets outside the guard band, because this machine stood still
WIRE = tapping.Wire("mark", A1, B1)
NS = WIRE.ns


class Node(tapping.Printing):
    """`pathline mark`, `meter` or `unmark` in a namespace, up."""
    WORDS = {"mark": "marker", "meter": "meter", "unmark": "edge"}

    def __init__(self, command, side, *args, name=None, dev="eth0", up="on "):
        periods = [] if command == "unmark" or "--period" in args else ["--period", f"{PERIOD}s"]
        super().__init__(NS[side], name or command, self.WORDS[command], up, command, "--dev", dev, "--stats", *periods, *args)

    def blocks(self):
        return [line for line in self.lines() if "block" in line]

    def look(self):
        """Its counters now."""
        return super().look()[self.word]

    def end(self):
        self.p.send_signal(signal.SIGTERM)
        eq(self.p.wait(timeout=2 * LIMIT), 0, f"{self.name} ends well")
        self.all = self.lines()[-1]
        self.stats = s = self.all[self.word]
        taken = {"marker": ("marked", "fragments", "checked", "not_ip", "broken", "unread", "skipped", "overflow", "no_place", "over_mtu"),
                 "meter": ("counted", "fragments", "not_ip", "broken", "unread", "skipped", "overflow", "unmarked"),
                 "edge": ("cleared", "clean", "not_ip", "broken", "unread", "skipped")}[self.word]
        eq(s["packets"], sum(s[k] for k in taken), f"{self.name}: packets are accounted for")
        return s


def marker(*args, **kwargs):
    return Node("mark", "a", "--check", "0", "--point", "1", "-o", "jsonl", *args, **kwargs)


def meter(*args, **kwargs):
    return Node("meter", "b", "--point", "2", "-o", "jsonl", *args, **kwargs)


class Middle:
    """Hands frames from a to b and back. IP packets of a that choose(frame, number) takes are dropped, and counted; the others wait
    for `hold` seconds."""

    def __init__(self, choose=lambda frame, n: False, hold=0.0):
        self.choose, self.hold, self.n, self.dropped, self.stop = choose, hold, 0, 0, False
        self.waiting, self.held, self.lock = [], 0, threading.Lock()
        self.sockets = [packet_socket(NS["m"], dev) for dev in ("left", "right")]
        for s in self.sockets:
            s.settimeout(0.01)
            s.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)
        self.threads = [threading.Thread(target=self.carry, args=(0,), daemon=True), threading.Thread(target=self.carry, args=(1,), daemon=True)]
        for t in self.threads:
            t.start()

    def carry(self, i):
        come, go = self.sockets[i], self.sockets[1 - i]
        while not self.stop:
            try:
                frame, address = come.recvfrom(65600)
                if address[2] != socket.PACKET_OUTGOING:
                    self.one(i, frame, go)
            except socket.timeout:
                pass
            except OSError:  # the interface is not up yet, or goes
                time.sleep(0.01)
            while self.waiting and i == 0 and self.waiting[0][0] <= time.monotonic():
                go.send(heapq.heappop(self.waiting)[2])

    def one(self, i, frame, go):
        if i == 1 or frame[12:14] not in (b"\x08\0", b"\x86\xdd"):
            go.send(frame)
            return
        self.n += 1
        if self.choose(frame, self.n):
            self.dropped += 1
        elif self.hold:
            heapq.heappush(self.waiting, (time.monotonic() + self.hold, self.n, frame))
        else:
            go.send(frame)

    def end(self):
        self.stop = True
        for t in self.threads:
            t.join(LIMIT)
        for s in self.sockets:
            s.close()


class Receiver:
    """Takes datagrams in b."""

    def __init__(self, address, port):
        with NS["b"]:
            self.s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
            self.s.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)
            self.s.bind((address, port))
        self.s.setblocking(False)
        self.got = 0

    def take(self):
        try:
            while True:
                self.s.recv(65536)
                self.got += 1
        except BlockingIOError:
            return self.got

    def close(self):
        self.s.close()


def send(address, port, n, pause=0.0, size=200, tos=0):
    """From one port; the socket's."""
    with NS["a"]:
        six = ":" in address
        with socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.setsockopt(socket.IPPROTO_IPV6 if six else socket.IPPROTO_IP, socket.IPV6_TCLASS if six else socket.IP_TOS, tos)
            s.bind((A6 if six else A, 0))
            for _ in range(n):
                s.sendto(bytes(size), (address, port))
                if pause:
                    time.sleep(pause)
            return s.getsockname()[1]


def warm(*nodes, period=PERIOD):
    """Blocks that all nodes see whole have begun."""
    begin = time.clock_gettime(time.CLOCK_TAI) // period + 3
    wait(lambda: time.clock_gettime(time.CLOCK_TAI) // period >= begin)
    return nodes


def flows(node, port):
    """The rows of each flow to that port, in the order of blocks."""
    rows = collections.defaultdict(list)
    for r in node.blocks():
        if r["dport"] == port:
            rows[r["src"], r["sport"], r.get("flow_id")].append(r)
    return rows


def sums(node, port):
    """Packets of all blocks that were read."""
    return sum(r["packets"] for rows in flows(node, port).values() for r in rows)


def quiet(node, port):
    """Whether all flows have had packets, and none in the last block that was read."""
    rows = flows(node, port).values()
    return bool(rows) and all(r[-1]["packets"] == 0 and any(x["packets"] for x in r) for r in rows)


def loss(sent, came, port):
    """By flow and block, from the records of two points, of blocks against which nothing speaks."""
    rows = {n.name: {(f, r["block"]): r for f, of in flows(n, port).items() for r in of} for n in (sent, came)}
    lost, outside = {}, set()
    for f, b in set(rows[sent.name]) | set(rows[came.name]):
        s, r = (rows[n.name].get((f, b), {"packets": 0, "mark_flags": 0}) for n in (sent, came))
        lost[f, b] = s["packets"] - r["packets"]
        if (s["mark_flags"] | r["mark_flags"]) & BEYOND:
            outside |= {(f, b + k) for k in (-2, -1, 0, 1, 2)}
    return {k: v for k, v in lost.items() if k not in outside}


def test_loss():
    """UDP of IPv4 and IPv6: loss is what the middle dropped, to the packet; delay is what it held packets for."""
    hold, dropped = 0.03, collections.Counter()

    def choose(frame, n):
        """Of our two flows some, alone and in a row."""
        port = int.from_bytes(frame[36:38] if frame[12] == 8 else frame[56:58], "big")
        if port not in (6000, 6001) or not (n % 50 in (3, 4, 31) or 400 < n % 2000 < 460):
            return False
        dropped[port] += 1
        return True
    m = Middle(choose, hold)
    two = "--bit", "dscp:0", "--bit", "dscp:1"
    files = {name: lab.path(f"{name}.mark128") for name in ("sent", "came")}
    k, s = warm(meter(*two, "--to", "file:" + files["came"]), marker("--rule", "take proto=udp", *two, "--to", "file:" + files["sent"]))
    r = {6000: Receiver(B, 6000), 6001: Receiver(B6, 6001)}
    n = 0

    def both():
        """(at the marker, at the meter) of blocks with a packet for delay at both."""
        rows = {x.name: {(f, row["block"]): row for f, of in flows(x, 6000).items() for row in of} for x in (s, k)}
        return [(a, rows["meter"][b]) for b, a in rows["mark"].items() if a["pulses"] and rows["meter"].get(b, {}).get("pulses")
                and not rows["meter"][b]["mark_flags"] & BEYOND]

    def more():
        """Traffic until there are such blocks."""
        nonlocal n
        send(B, 6000, 300, 0.001)
        send(B6, 6001, 300, 0.001)
        n += 300
        return n >= 900 and both()
    ok(wait(more), "blocks have a packet for delay at both points")
    ok(wait(lambda: all(sums(s, p) == n and quiet(s, p) for p in r)), "the marker has what was sent", [sums(s, p) for p in r])
    ok(wait(lambda: all(r[p].take() == n - dropped[p] for p in r)), "what the middle did not drop came")
    ok(wait(lambda: all(sums(k, p) == n - dropped[p] for p in r)), "the meter has it", [(n, sums(k, p), dropped[p]) for p in r])
    ok(all(dropped[p] > 20 for p in r), "some were dropped", dropped)
    ok(all(v >= 0 for p in r for v in loss(s, k, p).values()), "no block has more than was sent", [loss(s, k, p) for p in r])
    delays = [b["pulse_ns"] - a["pulse_ns"] for a, b in both() if a["pulses"] == b["pulses"]]
    ok(delays and all(d >= 0.99 * hold * 1e9 for d in delays), "no delay is less than what the middle holds packets for", delays)
    eq({a["pulses"] for a, _ in both()}, {1}, "one packet of a block is marked for it")
    eq({row["mark_flags"] & (8 | 16 | 64 | 128) for row in s.blocks() + k.blocks()}, {0}, "nothing speaks against the results")
    eq({row["point"] for row in s.blocks()} | {row["mark_flags"] & 1 for row in s.blocks()}, {1}, "the marker is told as one")
    for x in r.values():
        x.close()
    sent, came = s.end(), k.end()
    m.end()
    eq((sent["in_use"], sent["overflow"], came["overflow"]), (0, 0, 0), "the accounts are clean")
    run = pathline.run("meter", "-o", "jsonl", *[x for name, path in files.items() for x in ("--read", f"{name}={path}")])
    rows = [row for row in pathline.jsonl(run.stdout) if "loss" in row]
    eq({p: (sum(row["sent"] for row in rows if row["dport"] == p), sum(row["loss"] for row in rows if row["dport"] == p)) for p in r},
       {p: (n, dropped[p]) for p in r}, "the files of both points compared: what was sent, and what the middle dropped")
    delays = [row["delay_ns"] for row in rows if "delay_ns" in row]
    ok(delays and all(d >= 0.99 * hold * 1e9 for d in delays), "with its delay", delays)


def test_cyclic():
    """Colours of two bits: packets that take longer than a block are counted in their own."""
    hold, dropped = 0.6, collections.Counter()

    def choose(frame, n):
        if int.from_bytes(frame[36:38], "big") != 6003 or n % 20 not in (3, 4, 11):
            return False
        dropped[6003] += 1
        return True
    m = Middle(choose, hold)
    one = "--method", "cyclic", "--bit", "dscp:0", "--bit", "dscp:1", "--delay", "610ms", "--deviation", "20ms"
    files = {name: lab.path(f"cyclic-{name}.mark128") for name in ("sent", "came")}
    k, s = warm(meter(*one, "--to", "file:" + files["came"]), marker("--rule", "take proto=udp", *one, "--to", "file:" + files["sent"]))
    r = Receiver(B, 6003)
    for _ in range(4):
        send(B, 6003, 300, 0.002)
    ok(wait(lambda: sums(s, 6003) == 1200 and quiet(s, 6003)), "the marker has what was sent", sums(s, 6003))
    ok(wait(lambda: r.take() == 1200 - dropped[6003]), "what the middle did not drop came")
    ok(wait(lambda: sums(k, 6003) == 1200 - dropped[6003] and quiet(k, 6003)), "the meter has it", (sums(k, 6003), dropped))
    r.close()
    sent, came = s.end(), k.end()
    m.end()
    eq((sent["overflow"], came["overflow"]), (0, 0), "the accounts are clean")
    ok(came["late"] > came["counted"] // 2, "packets came when the next block, or the one after it, had begun", came)
    run = pathline.run("meter", "-o", "jsonl", *[x for name, path in files.items() for x in ("--read", f"{name}={path}")])
    rows = [row for row in pathline.jsonl(run.stdout) if row["dport"] == 6003 and "loss" in row]
    eq((sum(row["sent"] for row in rows), sum(row["loss"] for row in rows)), (1200, dropped[6003]), "loss is what the middle dropped")
    ok(all(row["loss"] >= 0 for row in rows), "in each block", rows)
    p = subprocess.run(NS["a"].command(PATHLINE, "mark", "--dev", "eth0", "--rule", "take", "--period", "500ms", "--delay", "610ms"),
                       capture_output=True, text=True, timeout=LIMIT, check=False)
    ok(p.returncode == 2 and "half of the period" in p.stderr, "one bit does not bear such a delay, and is refused", p.stderr)


class Host(tapping.Printing):
    """One of two commands that are told nothing but the other host."""

    def __init__(self, side, *args, dev="eth0", name=None):
        command = args[0]
        super().__init__(NS[side], name or f"host-{command}", Node.WORDS[command], f"on {dev}", *args, "--stats")

    def rows(self, port):
        return [r for r in self.lines() if r.get("dport") == port]

    def end(self, code=0):
        self.p.send_signal(signal.SIGTERM)
        eq(self.p.wait(timeout=2 * LIMIT), code, f"{self.name} ends well")
        return self.lines()[-1]


def test_two_commands():
    """`mark --to HOST` and `meter --from HOST`, and no more: loss of every block to the packet, and delay, while both run."""
    hold, dropped = 0.02, collections.Counter()

    def choose(frame, n):
        port = int.from_bytes(frame[36:38] if frame[12] == 8 else frame[56:58], "big")
        if port not in (6004, 6005) or n % 25 not in (3, 4, 17):
            return False
        dropped[port] += 1
        return True

    m = Middle(choose, hold)
    for there, here, port in ((B, A, 6004), (B6, A6, 6005)):
        k = Host("b", "meter", "--from", here, "-o", "jsonl")
        s = Host("a", "mark", "--to", there, "--check", "0")
        warm(period=1)
        r, n = Receiver(there, port), 0

        def told():
            """Blocks with a delay, told while traffic goes on."""
            nonlocal n
            send(there, port, 200, 0.002)
            n += 200
            return n >= 1000 and [x for x in k.rows(port) if "delay_ns" in x and x.get("sent")]
        ok(wait(told), f"{there}: loss and delay are told while both run", k.errors() + s.errors())
        ok(wait(lambda: r.take() == n - dropped[port]), "what the middle did not drop came")
        ok(wait(lambda: sum(x.get("sent", 0) for x in k.rows(port)) == n), "all blocks are told", (n, k.rows(port)))
        rows = [x for x in k.rows(port) if x.get("sent")]
        eq(sum(x["loss"] for x in rows), dropped[port], "loss is what the middle dropped")
        ok(all(x["loss"] >= 0 and x["sent"] == x["received"] + x["loss"] for x in rows), "in each block", rows)
        ok(all(x["delay_ns"] >= 0.99 * hold * 1e9 for x in rows if "delay_ns" in x), "no delay is less than what the middle holds packets for")
        eq({(x["from"], x["to"]) for x in rows}, {(here, "here")}, "from one host to the other")
        r.close()
        sent, stats = s.end()["to"]["sent"], k.end()["between"]
        eq((stats["heard"]["strangers"], stats["heard"]["unreadable"], stats["heard"]["other_terms"], stats["correlate"]["without_room"]),
           (0, 0, 0, 0), "the accounts are clean")
        eq((sent["datagrams"], sent["given_up"]), (sent["answered"], 0), "every datagram with records is answered")
        ok(f"{here} to here: sent" in k.errors(), "totals are told at the end", k.errors())
    m.end()


def test_two_commands_surplus():
    """Packets of a marked flow that come in a block in which the marker sent none of it: they are in a row, and an alarm."""
    frames = []

    def choose(frame, n):
        if frame[12:14] == b"\x08\0" and frame[36:38] == (6013).to_bytes(2, "big"):
            frames.append(frame)
        return False
    m = Middle(choose)
    k = Host("b", "meter", "--from", A, "-o", "jsonl")
    s = Host("a", "mark", "--to", B, "--check", "0")
    warm(period=1)
    send(B, 6013, 20, 0.01)

    def seen():
        """Another one sends as the marker would."""
        frame = bytearray(frames[0])
        frame[15] = frame[15] & ~4 | int(time.clock_gettime(time.CLOCK_TAI)) % 2 * 4
        m.sockets[1].send(frame)
        time.sleep(0.02)
        return [x for x in k.rows(6013) if x.get("sent") == 0 and x.get("received")]
    ok(wait(seen), "what the marker did not send is told", k.rows(6013))
    rows = seen()
    ok(all("negative-loss" in x["alarms"] and x["loss"] == -x["received"] for x in rows), "as more than was sent", rows)
    s.end()
    k.end()
    m.end()


def test_two_commands_refused():
    """What the two commands cannot know, or what does not go together, is said."""
    for args, words in ((["mark", "--to", A], "an address of this host"), (["mark", "--to", "203.0.113.9"], "no route"),
                        (["meter", "--from", "b.example"], "the address of the host"), (["meter", "--from", "0.0.0.0"], "the address of the host"),
                        (["mark", "--to", "b.example"], "no address of a host"), (["mark", "--to", "fe80::1%nothing0"], "no interface nothing0"),
                        (["mark", "--to", "fe80::1%eth0", "--dev", "eth1"], "another interface"), (["mark", "--to", "10.84.0.2%eth0"], "no address"),
                        (["meter", "--from", "fe80::1"], "needs its interface"), (["meter", "--from", B, "--pin", "/sys/fs/bpf/x"], "leave out --pin"),
                        (["mark", "--to", B, "--to", B1], "one host"), (["mark", "--to", B, "--point", "7"], "--point"),
                        (["mark", "--to", B, "--flows", "73729"], "73728 at most"), (["meter", "--from", B, "--flows", "1000000"], "73728 at most"),
                        (["meter", "--from", B, "--read", "x.pcap"], "option for captures")):
        p = subprocess.run(NS["a"].command(PATHLINE, *args), capture_output=True, text=True, timeout=LIMIT, check=False)
        ok(p.returncode == 2 and words in p.stderr, f"{' '.join(args)}: refused", (p.returncode, p.stderr))
    k = Host("b", "meter", "--from", A)
    p = subprocess.run(NS["b"].command(PATHLINE, "meter", "--from", A), capture_output=True, text=True, timeout=LIMIT, check=False)
    ok(p.returncode != 0 and "port 40051 is in use" in p.stderr and "--from HOST:PORT" in p.stderr, "a second meter says what to do", p.stderr)
    k.p.send_signal(signal.SIGTERM)
    eq(k.p.wait(timeout=2 * LIMIT), 3, "a meter that compared nothing says so by its exit code")
    ok(f"nothing was compared: no records of {A} came" in k.errors(), "and in words", k.errors())
    # A marker that is not asked.
    m = Middle()
    s = Host("a", "mark", "--to", B, "--check", "0")
    k = Host("b", "meter", "--from", A1, "--dev", "eth0", "-o", "jsonl")
    ok(wait(lambda: send(B, 6006, 1) and f"records of {A} are left out: only those of {A1}" in k.errors()), "records of another host are told", k.errors())
    ok(wait(lambda: f"{B} does not answer" in s.errors()), "and the marker that nobody answers it", s.errors())
    with NS["a"], socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((A1, 0))
        ok(wait(lambda: sock.sendto(b"TPK1" + bytes(156), (B1, 40051)) and "none of a marker" in k.errors()), "what cannot be read is told", k.errors())
    heard = k.end(3)["between"]["heard"]
    ok(heard["strangers"] > 0 and heard["unreadable"] > 0, "and counted", heard)
    eq(heard["datagrams"], sum(heard[x] for x in ("accepted", "duplicates", "other_terms", "strangers", "unreadable")), "the accounts close")
    s.end()
    m.end()


def test_two_commands_terms():
    """Two hosts that mark and count by other bits, flows, periods or methods: both say so with what they have, and no number is told.
    With other rules flows that one of them does not know are missing, not lost."""
    m = Middle()
    usual = "--method multiplexed --bit dscp:0 --by flow --period 1s"
    for at, args, there in (("a", ("--bit", "dscp:2"), usual.replace("dscp:0", "dscp:2")), ("b", ("--bit", "tos:2"), usual.replace("dscp:0", "tos:2")),
                            ("a", ("--by", "hosts"), usual.replace("by flow", "by hosts")), ("b", ("--period", "2s"), usual.replace("1s", "2s")),
                            ("b", ("--method", "step"), usual.replace("multiplexed", "step")),
                            ("a", ("--bit", "dscp:0", "--bit", "dscp:1"), usual.replace("multiplexed --bit dscp:0", "double --bit dscp:0 --bit dscp:1"))):
        k = Host("b", "meter", "--from", A, "-o", "jsonl", *(args if at == "b" else ()))
        s = Host("a", "mark", "--to", B, "--check", "0", *(args if at == "a" else ()))
        marks, counts = (there, usual) if at == "a" else (usual, there)
        ok(wait(lambda: f"marker has {marks}, this meter {counts}" in k.errors()), f"{' '.join(args)}: the meter says what both have", k.errors())
        ok(wait(lambda: f"has {counts}, this marker {marks}" in s.errors()), "so does the marker", s.errors())
        ok(wait(lambda: send(B, 6009, 20, 0.005) and k.rows(6009)), "blocks are told")
        s.end()
        stats = k.end(3)["between"]
        eq([r for r in k.rows(6009) if "loss" in r or "delay_ns" in r], [], "without numbers")
        ok(stats["heard"]["other_terms"] > 0, "it is counted", stats)
        ok("marks otherwise" in k.errors(), "and told at the end", k.errors())
    k = Host("b", "meter", "--from", A, "--rule", "take proto=udp dport=6011", "-o", "jsonl")
    s = Host("a", "mark", "--to", B, "--check", "0", "--by", "flow")
    ok(wait(lambda: send(B, 6010, 20, 0.005) and send(B, 6011, 20, 0.005) and any(r.get("sent") for r in k.rows(6011)) and k.rows(6010)), "flows that both choose, and one that only the marker does",
       k.lines())
    s.end()
    k.end()
    ok("by other rules" in k.errors() and "by other rules" in s.errors(), "other rules are told", k.errors())
    eq({(r.get("loss"), r.get("missing")) for r in k.rows(6010)}, {(None, "here")}, "what the meter does not choose is missing, not lost")
    k = Host("b", "meter", "--from", A, "-o", "jsonl")
    s = Host("a", "mark", "--to", B, "--check", "0", "--rule", "take proto=udp dport=6011")
    ok(wait(lambda: send(B, 6010, 20, 0.005) and send(B, 6011, 20, 0.005) and any(r.get("sent") for r in k.rows(6011))), "flows that both choose", k.lines())
    s.end()
    k.end()
    eq([r for r in k.rows(6010) if "loss" in r], [], "what the marker does not choose has no numbers")
    m.end()


def test_two_commands_lossy():
    """The path loses a third of the records, too: they are sent until they are answered, and every block is told, to the packet."""
    dropped, records = collections.Counter(), [0, 0]

    def choose(frame, n):
        port = int.from_bytes(frame[36:38], "big")
        if port == 40051:
            records[0] += 1
            records[1] += n % 3 == 0
            return n % 3 == 0
        if port != 6012 or n % 25 not in (3, 4, 17):
            return False
        dropped[port] += 1
        return True
    m = Middle(choose)
    k = Host("b", "meter", "--from", A, "--clock-error", "2ms", "-o", "jsonl")
    s = Host("a", "mark", "--to", B, "--clock-error", "2ms", "--check", "0")
    warm(period=1)
    r, n = Receiver(B, 6012), 0

    def more():
        nonlocal n
        send(B, 6012, 100, 0.002)
        n += 100
        return n >= 1000 and records[1] >= 5
    ok(wait(more), "records are lost on their way", records)
    ok(wait(lambda: r.take() == n - dropped[6012]), "what the middle did not drop came")
    ok(wait(lambda: sum(x.get("sent", 0) for x in k.rows(6012)) == n), "all blocks are told", (n, k.rows(6012)))
    rows = [x for x in k.rows(6012) if x.get("sent")]
    eq(sum(x["loss"] for x in rows), dropped[6012], "loss is what the middle dropped")
    eq({x.get("clock_error_ns") for x in rows if "delay_ns" in x}, {2_000_000}, "beside each delay is by how much it may be wrong")
    eq([x for x in k.rows(6012) if "missing" in x and x["block"] >= rows[0]["block"]], [], "no block is missing")
    r.close()
    sent, heard = s.end()["to"]["sent"], k.end()["between"]["heard"]
    m.end()
    ok(sent["again"] >= records[1] and sent["given_up"] == 0, "they were sent again", (sent, records))
    eq((heard["lost"], heard["accepted"]), (0, sent["datagrams"]), "and each came once")


def test_two_commands_link_local():
    """Hosts that have nothing but link-local addresses."""
    for side in "ab":
        NS[side].sysctl("ipv6.conf.eth1.disable_ipv6", 0)

    def address(side):
        found = [x for x in NS[side].ip("-j addr show dev eth1 scope link").split('"') if x.startswith("fe80::")]
        return found[0] if found else None
    ok(wait(lambda: address("a") and address("b") and "tentative" not in NS["a"].ip("addr show dev eth1") + NS["b"].ip("addr show dev eth1")), "there are some")
    a, b = address("a"), address("b")
    k = Host("b", "meter", "--from", f"{a}%eth1", "-o", "jsonl", dev="eth1")
    s = Host("a", "mark", "--to", f"[{b}%eth1]:40051", "--check", "0", dev="eth1")
    warm(period=1)
    n = 0
    with NS["a"], socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
        def more():
            nonlocal n
            for _ in range(50):
                sock.sendto(bytes(100), (b, 6013, 0, socket.if_nametoindex("eth1")))
                n += 1
            return [x for x in k.rows(6013) if "delay_ns" in x]
        ok(wait(more), "loss and delay are told", k.errors() + s.errors())
    ok(wait(lambda: sum(x.get("sent", 0) for x in k.rows(6013)) == n), "all blocks are told", (n, k.rows(6013)))
    eq({(x["from"], x.get("loss")) for x in k.rows(6013) if x.get("sent")}, {(a, 0)}, "nothing was lost")
    s.end()
    k.end()
    for side in "ab":
        NS[side].sysctl("ipv6.conf.eth1.disable_ipv6", 1)


def test_terms():
    """Records of points that have the mark in another bit, or count other flows, give no numbers: not from files, not by the daemon."""
    m = Middle()
    for word, args in (("bit", ("--bit", "dscp:2")), ("by", ("--by", "hosts"))):
        files = {name: lab.path(f"terms-{word}-{name}.mark128") for name in ("sent", "came")}
        k, s = warm(meter("--to", "file:" + files["came"], *args), marker("--rule", "take proto=udp", "--to", "file:" + files["sent"]))
        send(B, 6014, 300, 0.005)
        ok(wait(lambda: quiet(s, 6014) and (quiet(k, 6014) or word == "by")), "blocks are read")
        s.end()
        k.end()
        run = pathline.run("meter", "-o", "jsonl", *[x for name, path in files.items() for x in ("--read", f"{name}={path}")])
        rows = pathline.jsonl(run.stdout)
        ok(rows and all("settings" in r["alarms"] and "loss" not in r for r in rows if "missing" not in r), f"another --{word}: no numbers", rows[:3])
        ok("lost 0 in 0 of" in run.stderr, "and no totals", run.stderr)
    m.end()


def drops():
    """Of the queue behind the marker, by its own books."""
    text = json.loads(NS["a"].sh("tc -s -j qdisc show dev eth1"))
    return next(q["drops"] for q in text if q["kind"] == "tbf")


def stream(port, *mode):
    """TCP whose segments the NIC is to make, through a queue that drops: loss is what the queue counted. One bit, multiplexed."""
    one = "--method", "multiplexed", "--bit", "dscp:2", "--rule", "take proto=tcp"
    k, s = warm(meter(*one, *mode, dev="eth1"), marker(*one, dev="eth1"))
    # The burst has no room for two segments: each is in the queue by itself, and a drop is one packet.
    NS["a"].sh("tc qdisc add dev eth1 root tbf rate 200mbit burst 1600 limit 40000")
    ok(WIRE.tcp_transfer(6_000_000, port), "a TCP transfer is whole")
    ok(wait(lambda: quiet(s, port) and quiet(k, port)), "its blocks are read")
    ok(drops() > 5, "the queue dropped some", drops())
    eq(sums(s, port) - sums(k, port), drops(), "loss by marking is what the queue dropped")
    eq(sum(v for v in loss(s, k, port).values() if v < 0), 0, "no block has more than was sent")
    ok(sums(s, port) > 6_000_000 // 1448, "packets are those on the wire", sums(s, port))
    NS["a"].sh("tc qdisc del dev eth1 root")
    s.end()
    k.end()


def test_stream():
    stream(5000)


def test_native():
    """At a meter of XDP, which sees packets as they came."""
    stream(5003, "--mode", "native")


def six(side, address):
    """IPv6 on the direct wire, whose neighbour is known."""
    other = "b" if side == "a" else "a"
    NS[side].sysctl("ipv6.conf.eth1.disable_ipv6", 0)
    NS[side].ip(f"addr add {address[side]}/64 dev eth1 nodad")
    NS[side].ip(f"neigh replace {address[other]} lladdr {NS[other].mac('eth1').hex(':')} dev eth1 nud permanent")


def test_option_stream():
    """The option of RFC 9343 in TCP whose segments the NIC is to make, each in the queue by itself: marker and meter count the same
    packets, the edge takes the option out, and the stream is whole."""
    address = {"a": "fd85::1", "b": "fd85::2"}
    for side in "ab":
        six(side, address)
    one = "--bit", "altmark", "--method", "multiplexed", "--rule", "take proto=tcp"
    # What comes last stands first: the meter sees packets before the edge.
    edge = Node("unmark", "b", "--direction", "in", "--bit", "altmark", "--rule", "take proto=tcp", dev="eth1")
    k, s = warm(meter(*one, dev="eth1"), marker(*one, dev="eth1"))
    NS["a"].sh("tc qdisc add dev eth1 root tbf rate 200mbit burst 1600 limit 8000000")
    ok(WIRE.tcp_transfer(3_000_000, 5001, address["b"]), "a TCP transfer is whole")
    ok(wait(lambda: quiet(s, 0) and quiet(k, 0)), "its blocks are read")
    eq(drops(), 0, "the queue dropped none")
    NS["a"].sh("tc qdisc del dev eth1 root")
    sent, came, cleared = s.end(), k.end(), edge.end()
    eq(sums(k, 0), sums(s, 0), "both points count the same packets")
    ok(sums(s, 0) > 3_000_000 // 1448, "which are those on the wire", sums(s, 0))
    eq((sent["in_use"], sent["no_place"], sent["overflow"]), (0, 0, 0), "all had a place for it")
    eq(came["unmarked"], sent["over_mtu"], "those without room in the MTU went on without it")
    eq((cleared["cleared"], cleared["clean"]), (came["counted"], came["unmarked"]), "the edge took out every one")
    ids = {(row["flow_id"], row["sport"], row["dport"]) for row in s.blocks() + k.blocks() if row["packets"]}
    ok(len(ids) == 1, "one flow, by its id", ids)
    for side in "ab":
        NS[side].sysctl("ipv6.conf.eth1.disable_ipv6", 1)


def test_option():
    """The option of RFC 9343 in datagrams: loss is what the middle dropped; tshark reads the option, and finds checksums right."""
    seen, dropped = [], 0

    def choose(frame, n):
        nonlocal dropped
        if frame[20] != 0 or frame[54] != 17 or frame[64:66] != (6010).to_bytes(2, "big"):
            return False
        seen.append(frame)
        dropped += n % 5 == 0
        return n % 5 == 0
    m = Middle(choose)
    two = "--bit", "altmark", "--method", "double", "--rule", "take proto=udp port=6010"
    files = {name: lab.path(f"option-{name}.mark128") for name in ("sent", "came")}
    k, s = warm(meter(*two, "--to", "file:" + files["came"]), marker(*two, "--to", "file:" + files["sent"]))
    r, n = Receiver(B6, 6010), 0

    def more():
        nonlocal n
        send(B6, 6010, 200, 0.001)
        n += 200
        return n >= 600 and any(row["pulses"] for row in s.blocks())
    ok(wait(more), "blocks have a packet for delay")
    send(B6, 6010, 3, size=1452)
    ok(wait(lambda: len(seen) == n and r.take() == n + 3 - dropped), "what the middle did not drop came", (n, len(seen), r.got, dropped))
    ok(wait(lambda: quiet(s, 0) and quiet(k, 0)), "blocks are read")
    r.close()
    sent, came = s.end(), k.end()
    m.end()
    eq((sent["marked"], sent["over_mtu"], came["counted"]), (n, 3, n - dropped), "packets as long as the MTU go on unmarked")
    run = pathline.run("meter", "-o", "jsonl", *[x for name, path in files.items() for x in ("--read", f"{name}={path}")])
    rows = [row for row in pathline.jsonl(run.stdout) if "loss" in row]
    eq((sum(row["sent"] for row in rows), sum(row["loss"] for row in rows)), (n, dropped), "compared: what was sent, and dropped")
    path = lab.path("option.pcap")
    pcap.write(path, seen)
    read = network.sh(f"tshark -r {path} -o udp.check_checksum:TRUE -T fields -e ipv6.opt.type -e ipv6.opt.length -e ipv6.hopopts.len_oct -e udp.checksum.status "
                      "-e ipv6.opt.unknown")
    lines = [line.split("\t") for line in read.splitlines()]
    eq({tuple(line[:4]) for line in lines}, {("0x12", "4", "8", "1")}, "tshark finds the option, and checksums right")
    words = [int(line[4].replace(":", ""), 16) for line in lines]
    eq({w >> 12 for w in words}, {row["flow_id"] for row in s.blocks()}, "with the id of the flow")
    eq({w & 1023 for w in words}, {0}, "its reserved bits are 0")
    eq(sum(w >> 10 & 1 for w in words), sent["pulses"], "and packets for delay by their bit")
    eq(collections.Counter(w >> 11 & 1 for w in words),
       collections.Counter({c: v for c in (0, 1) if (v := sum(row["packets"] for row in s.blocks() if row["block"] % 2 == c))}), "the colours too")


def test_in_use():
    """A bit that packets have already is told, and nothing is marked."""
    stop = threading.Event()
    port = 6004
    r = Receiver(B, port)

    def traffic():
        while not stop.is_set():
            send(B, port, 1, tos=4)
            time.sleep(0.01)
    m = Middle()
    t = threading.Thread(target=traffic, daemon=True)
    t.start()
    p = subprocess.run(NS["a"].command(PATHLINE, "mark", "--dev", "eth0", "--rule", "take proto=udp", "--check", "60s"),
                       capture_output=True, text=True, timeout=3 * LIMIT, check=False)
    ok(p.returncode != 0 and "have a marking bit set already" in p.stderr, "the marker refuses a bit that is in use", p.stderr)
    s = Node("mark", "a", "--rule", "take proto=udp", "--bit", "dscp:1", "--check", "1s", up="marking begins")
    ok(wait(lambda: s.look()["marked"] > 0), "and takes one that is not")
    stop.set()
    t.join(LIMIT)
    stats = s.end()
    eq(stats["in_use"], 0, "which nobody had")
    ok(stats["checked"] > 0, "as it saw before")
    r.close()
    m.end()


def test_unmark():
    """At the domain's edge packets have their bits no more; their other bits stay."""
    seen = []

    def look(frame, _):
        if frame[23] == 17 and frame[36:38] == (6005).to_bytes(2, "big"):
            seen.append(frame[15])
        return False
    m = Middle(look)
    e = Node("unmark", "a", "--rule", "take proto=udp port=6005", "--bit", "dscp:0", "--bit", "dscp:1")
    r = Receiver(B, 6005)
    for tos in (0, 4, 8, 12, 0xb8, 0xbc, 0xfc):
        send(B, 6005, 1, tos=tos)
    ok(wait(lambda: r.take() == 7), "all come", r.got)
    r.close()
    stats = e.end()
    m.end()
    eq(sorted(seen), sorted([0, 0, 0, 0, 0xb0, 0xb0, 0xf0]), "without the marking bits")
    eq((stats["cleared"], stats["clean"]), (6, 1), "the edge counts them")


def test_behind_generic():
    """Generic XDP may give the stack a copy whose MAC header is in front of its data: bits and options are found there too."""
    t = tapping.Tap(NS["b"], "generic", "-o", "jsonl", "xdp:eth0?mode=generic")
    m, r, r6 = Middle(), Receiver(B, 6020), Receiver(B6, 6020)
    rule = "--rule", "take proto=udp port=6020"
    nodes = [meter("--by", "none", *rule), Node("unmark", "b", "--direction", "in", *rule)]
    send(B, 6020, 20, tos=4)
    ok(wait(lambda: r.take() == 20), "all with a bit come", r.got)
    counted, cleared = (n.end() for n in nodes)
    eq((counted["counted"], cleared["cleared"], cleared["clean"]), (20, 20, 0), "metered, and cleared")
    # Options are taken out in front of a meter on the same interface.
    option = "--bit", "altmark", *rule
    mark, came = marker(*option), 0
    for start, word in ((lambda: meter(*option), "counted"), (lambda: Node("unmark", "b", "--direction", "in", *option), "cleared")):
        node = start()
        send(B6, 6020, 20, size=64)
        came += 20
        ok(wait(lambda: r6.take() == came), "all with an option come", r6.got)
        eq(node.end()[word], 20, word)
    eq(mark.end()["marked"], came, "marked")
    t.end()
    m.end()
    r.close()
    r6.close()


def test_pins():
    """A meter that is killed goes on counting by its pins: the next one has every block and every packet."""
    bpf = lab.path("bpf")
    os.mkdir(bpf)
    network.sh(f"mount -t bpf bpf {bpf}")
    lab.undo("umount", bpf)
    period = 2
    args = "--period", f"{period}s", "--rule", "take proto=udp port=6006"
    pin = args + ("--pin", bpf + "/meter")
    before = programs()
    p = subprocess.run(NS["b"].command(PATHLINE, "meter", "--dev", "eth1", *pin, "--to", "file:/nonexistent/x.mark128"),
                       capture_output=True, text=True, timeout=LIMIT, check=False)
    ok(p.returncode != 0 and not os.listdir(bpf + "/meter"), "one that cannot begin leaves no pins", p.stderr)
    ok(wait(lambda: not programs() - before), "nor its program", programs())
    k, s = warm(meter(*pin, dev="eth1", name="first"), marker(*args, dev="eth1"), period=period)
    r = Receiver(B1, 6006)
    with NS["a"], socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((A1, 0))
        for i in range(600):
            sock.sendto(bytes(100), (B1, 6006))
            time.sleep(0.005)
            if i == 300:
                k.p.kill()
                k.p.wait(LIMIT)
                ok(programs() - before, "the program stays when its process is killed")
            if i == 400:
                after = meter(*pin, dev="eth1", name="second")
    ok("going on" in after.errors(), "the next one goes on", after.errors())
    ok(wait(lambda: quiet(s, 6006) and quiet(after, 6006)), "blocks are read")
    eq(sums(s, 6006), 600, "the marker has what was sent")
    blocks = {row["block"]: row["packets"] for row in k.blocks() + after.blocks() if row["dport"] == 6006}
    eq(sum(blocks.values()), 600, "both meters together have it too")
    eq({b: v for b, v in blocks.items() if v}, {row["block"]: row["packets"] for row in s.blocks() if row["packets"]}, "block by block")
    eq(r.take(), 600, "as many came")
    r.close()
    s.end()
    after.end()
    p = subprocess.run(NS["b"].command(PATHLINE, "meter", "--dev", "eth1", "--period", "1s", "--pin", bpf + "/meter"),
                       capture_output=True, text=True, timeout=LIMIT, check=False)
    ok(p.returncode != 0 and "another period" in p.stderr, "one with other options is refused", p.stderr)
    state = ["/usr/sbin/bpftool", "-j", "map", "lookup", "pinned", bpf + "/meter/state", "key", "hex", "00", "00", "00", "00"]
    value = json.loads(subprocess.run(state, capture_output=True, text=True, check=True).stdout)["value"]
    value[0] = f"{int(value[0], 16) + 1:02x}"
    subprocess.run(["/usr/sbin/bpftool", "map", "update", *state[4:], "value", "hex", *(v[-2:] for v in value)], check=True)
    p = subprocess.run(NS["b"].command(PATHLINE, "meter", "--dev", "eth1", *pin), capture_output=True, text=True, timeout=LIMIT, check=False)
    ok(p.returncode != 0 and "another release of pathline" in p.stderr, "pins of another version of their layout are refused", p.stderr)
    ours = programs() - before
    ok(ours, "the program is still there")
    shutil.rmtree(bpf + "/meter")
    ok(wait(lambda: not programs() & ours), "and goes with its pins", programs())


def test_flags_outlive():
    """What a killed meter knew of blocks that it had not read yet is kept with its pins: the next one says so, too."""
    period = 2
    bpf = lab.path("bpf-flags")
    os.mkdir(bpf)
    network.sh(f"mount -t bpf bpf {bpf}")
    lab.undo("umount", bpf)
    args = "--period", f"{period}s", "--rule", "take proto=udp", "--flows", "1", "--pin", bpf + "/meter"
    k = meter(*args, dev="eth1", name="first")
    with NS["a"]:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.bind((A1, 0))

    def flagged(node, port):
        sock.sendto(b"", (B1, 6010))
        if port:
            sock.sendto(b"", (B1, port))
        time.sleep(0.01)
        return {row["block"] for row in node.blocks() if row["mark_flags"] & 16}
    ok(wait(lambda: flagged(k, 6011)), "a packet of a second flow has no room")
    k.p.kill()
    k.p.wait(LIMIT)
    # At the time when a block is read the next two have begun, or can have early packets.
    last = max(row["block"] for row in k.blocks() if row["mark_flags"] & 16) + 2
    after = meter(*args, dev="eth1", name="second")
    ok("going on" in after.errors(), "the next one goes on", after.errors())

    def later():
        flagged(after, None)
        return any(row["block"] > last for row in after.blocks())
    ok(wait(later), "blocks are read")
    rows = {row["block"]: row["mark_flags"] & 16 for row in after.blocks()}
    eq({b: f for b, f in rows.items() if b <= last and not f}, {}, f"all up to {last} lack packets")
    ok(any(b <= last for b in rows), "which there are", rows)
    sock.close()
    after.end()
    shutil.rmtree(bpf + "/meter")


def test_gone_meanwhile():
    """The interface of a killed meter goes, and its program with it: what the next one has of that time is partial."""
    period = 2
    bpf = lab.path("bpf-gone")
    os.mkdir(bpf)
    network.sh(f"mount -t bpf bpf {bpf}")
    lab.undo("umount", bpf)

    def make():
        NS["a"].ip("link add gone0 type veth peer name gone1")
        for dev in ("gone0", "gone1"):
            NS["a"].sysctl(f"ipv6.conf.{dev}.disable_ipv6", 1, check=False)
            NS["a"].up(dev)

    def counted(node, least):
        with packet_socket(NS["a"], "gone1") as s:
            s.send(bytes.fromhex("ffffffffffff 020000000001 0800 4500001c000000004011 0000 0a000001 0a000002 1777 1778 0008 0000".replace(" ", "")))
        time.sleep(0.01)
        return any(row["block"] > least for row in node.blocks())
    make()
    args = "meter", "a", "-o", "jsonl", "--period", f"{period}s", "--pin", bpf + "/meter"
    k = Node(*args, name="first", dev="gone0")
    ok(wait(lambda: counted(k, 0)), "packets are counted")
    k.p.kill()
    k.p.wait(LIMIT)
    NS["a"].ip("link del gone0")
    make()
    begun = time.clock_gettime(time.CLOCK_TAI) // period
    after = Node(*args, name="second", dev="gone0")
    ok(wait(lambda: counted(after, begun + 3)), "and again by the next one", after.errors())
    rows = {row["block"]: row["mark_flags"] & 8 for row in after.blocks()}
    ok(any(b <= begun for b in rows) and all(f for b, f in rows.items() if b <= begun), "blocks until then are partial", (begun, rows))
    eq(rows[max(rows)], 0, "later ones are whole")
    after.end()
    shutil.rmtree(bpf + "/meter")
    NS["a"].ip("link del gone0")


def test_long_headers():
    """Frames whose first 64 bytes alone lie in one piece: a meter reads headers of hundreds of bytes all the same, and where they are
    too long for it, it counts them as such, and the block is partial."""
    NS["a"].ip("link add long0 mtu 9000 type veth peer name long1 mtu 9000")
    for dev in ("long0", "long1"):
        NS["a"].sysctl(f"ipv6.conf.{dev}.disable_ipv6", 1, check=False)
        NS["a"].up(dev)

    def frame(pads):
        """Options hop by hop: padding of 122 bytes each, and AltMark behind it."""
        options = (bytes((1, 120)) + bytes(120)) * pads + bytes.fromhex("120400007800")
        options += bytes(-(len(options) + 2) % 8)
        rest = bytes((17, (len(options) + 2) // 8 - 1)) + options + struct.pack(">HHHH", 1000, 2000, 4508, 0) + bytes(4500)
        return bytes(12) + b"\x86\xdd" + struct.pack(">IHBB", 0x60000000, len(rest), 0, 64) + bytes(15) + b"\1" + bytes(15) + b"\2" + rest
    # The head of virtio says how much of the frame is to lie in one piece.
    with packet_socket(NS["a"], "long1") as s:
        s.setsockopt(263, 15, 1)
        k = Node("meter", "a", "-o", "jsonl", "--bit", "altmark", name="long", dev="long0")
        for _ in range(10):
            s.send(struct.pack("<BBHHHH", 0, 0, 64, 0, 0, 0) + frame(1))
            s.send(struct.pack("<BBHHHH", 0, 0, 64, 0, 0, 0) + frame(3))
        c = k.look()
        eq((c["counted"], c["unread"], c["unmarked"], c["broken"]), (20, 0, 0, 0), "headers of 130 and 370 bytes are read")
        ok(wait(lambda: any(not r["mark_flags"] & 8 for r in k.blocks())), "their blocks are whole", k.blocks())

        def partial():
            s.send(struct.pack("<BBHHHH", 0, 0, 64, 0, 0, 0) + frame(4))
            time.sleep(0.01)
            s.send(struct.pack("<BBHHHH", 0, 0, 64, 0, 0, 0) + frame(1))
            return any(r["mark_flags"] & 8 for r in k.blocks())
        ok(wait(partial), "behind headers of 500 bytes the flow is not found: the block is partial", k.look())
        ok(k.end()["unread"] > 0, "and such packets are counted")
        # Of ports nothing is known there: a rule that may choose the packet counts, one of other addresses does not.
        for rule, counts in (("take proto=tcp port=7", True), ("take src=2001:db8::/32", False)):
            k = Node("meter", "a", "--bit", "altmark", "--rule", rule, name=f"long-{counts}", dev="long0")
            for _ in range(5):
                s.send(struct.pack("<BBHHHH", 0, 0, 64, 0, 0, 0) + frame(4))
            c = k.end()
            eq((c["unread"], c["skipped"]), (5, 0) if counts else (0, 5), f"rule \"{rule}\": headers that are too long {'count' if counts else 'are skipped'}")


def test_room():
    """A meter without room for a flow says so in every block that lacks packets of it, the one in which it gets room, too."""
    period = 0.2
    args = "--period", f"{period}s", "--rule", "take proto=udp"
    k, s = warm(meter("--flows", "1", *args, dev="eth1"), marker(*args, dev="eth1"), period=period)
    r = Receiver(B1, 6007)
    with NS["a"], socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((A1, 0))
        sock.sendto(b"first", (B1, 6008))

        def more():
            sock.sendto(bytes(100), (B1, 6007))
            return sums(k, 6007) > 0
        ok(wait(more), "a flow gets room when the one before it is idle")
    ok(wait(lambda: quiet(s, 6007) and quiet(k, 6007)), "its blocks are read")
    rows = {n.name: {row["block"]: row for of in flows(n, 6007).values() for row in of} for n in (s, k)}
    lost = {b: v for (_, b), v in loss(s, k, 6007).items() if v and b in rows["meter"]}
    ok(lost and all(rows["meter"][b]["mark_flags"] & 16 for b in lost), "blocks that lack packets are marked", (lost, rows["meter"]))
    r.close()
    s.end()
    ok(k.end()["overflow"] > 0, "the meter counts packets without room")


def test_back():
    """An interface that went and came back: what passed before it was taken up again is no loss, blocks of that time are partial."""
    def make():
        NS["a"].ip("link add mark0 type veth peer name mark1")
        for dev in ("mark0", "mark1"):
            NS["a"].sysctl(f"ipv6.conf.{dev}.disable_ipv6", 1, check=False)
            NS["a"].up(dev)
    make()
    k = Node("meter", "a", "-o", "jsonl", name="back", dev="mark0")
    frame = bytes.fromhex("ffffffffffff 020000000001 0800 4500001c000000004011 0000 0a000001 0a000002 1777 1778 0008 0000".replace(" ", ""))
    sent, unsure = [], set()

    def now():
        return int(time.clock_gettime(time.CLOCK_TAI) // PERIOD)

    def send_one():
        block = now()
        with packet_socket(NS["a"], "mark1") as s:
            s.send(frame[:15] + bytes([block % 2 * 4]) + frame[16:])
        sent.append(block)
        # A packet that leaves long behind its block is counted in another one of its colour.
        if now() > block:
            unsure.update(range(block, now() + 2))

    def counted(n):
        time.sleep(0.02)
        send_one()
        return sum(row["packets"] for row in k.blocks()) >= n
    ok(wait(lambda: counted(10)), "packets are counted")
    NS["a"].ip("link del mark0")
    make()
    for _ in range(20):
        send_one()
    before = sum(row["packets"] for row in k.blocks())
    ok(wait(lambda: counted(before + 10)), "and again when the interface is back", k.errors())
    ok(wait(lambda: max(row["block"] for row in k.blocks()) > max(sent)), "blocks are read")
    got = {row["block"]: row for row in k.blocks()}
    want = collections.Counter(sent)
    short = [b for b, row in got.items() if row["packets"] != want[b] and b not in unsure]
    whole = [b for b, row in got.items() if not row["mark_flags"] & (8 | BEYOND)]
    eq([b for b in short if b in whole], [], "no block that lacks packets is told as whole")
    ok(len(whole) > 2 and any(row["mark_flags"] & 8 for row in got.values()), "those of the outage are partial", got)
    k.end()


def test_begun_pulse():
    """In pulse marking the first block of a meter ends a count that it has a part of: it is partial, and no later one is."""
    k = meter("--method", "pulse", "--rule", "take proto=udp port=6009", dev="eth1")

    with NS["a"]:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def three():
        sock.sendto(b"", (B1, 6009))
        time.sleep(0.01)
        return len({row["block"] for row in k.blocks()}) >= 3
    ok(wait(three), "blocks are read")
    first, *others = sorted({(row["block"], row["mark_flags"] & 8) for row in k.blocks()})
    ok(first[1] == 8 and {f for _, f in others} == {0}, "the first one is partial", k.blocks())
    sock.close()
    k.end()


def programs():
    """The numbers of our programs that the kernel has, of all namespaces."""
    return {p["id"] for p in json.loads(network.sh("bpftool -j prog show")) if p.get("name", "").startswith("pl_mark_")}


def test_kill():
    """kill -9 leaves no program, and a new start finds nothing in its way."""
    before = programs()
    k, s = meter(), marker("--rule", "take")
    ok("Lower Effort" in s.errors() and "Lower Effort" not in k.errors(), "a marker says to what its bit turns best effort", s.errors())
    ours = programs() - before
    ok(len(ours) >= 2, "programs are loaded", ours)
    for node in (s, k):
        node.p.kill()
        node.p.wait(LIMIT)
    ok(wait(lambda: not programs() & ours), "the programs are gone", programs())
    k, s = meter(), marker("--rule", "take")
    ours = programs() - before
    s.end()
    k.end()
    ok(ours and wait(lambda: not programs() & ours), "and go with those that end", ours)


def test_daemon():
    """The daemon correlates what marker and meter send: loss at the right link by its books, its event, hostile datagrams by cause, and
    a meter that is killed is told as missing, until it is there again."""
    dropped, to = [0], ("--to", f"udp://{B1}:6020")

    def choose(frame, n):
        if frame[12] != 8 or frame[36:38] != (6010).to_bytes(2, "big") or n % 40 not in (3, 4):
            return False
        dropped[0] += 1
        return True
    events, page = lab.path("marks.jsonl"), "domain=\"lab\",segment=\"sender>receiver\""
    config = f"""sources: []
marks:
  - {{name: lab, sources: ["udp://{B1}:6020"], points: [sender=1, receiver=2], period: {PERIOD}s, wait: 2s, loss_above: 1, end_after: 1,
     to: ["file:{lab.path('lab.seg192')}"]}}
outputs:
  - {{type: jsonl, path: {events}}}
web: {{listen: "127.0.0.1:0"}}
"""
    d = pathline.Daemon(lab.write("marks.yaml", config), name="marks", prefix=NS["b"].command())

    def metric(name, labels=page):
        return NS["b"].call(d.metrics).get(f"pathline_{name}{{{labels}}}", 0)

    def told(kind, phase):
        if not os.path.exists(events):
            return []
        with open(events, encoding="utf-8") as f:
            return [e for e in pathline.jsonl(f.read()) if (e["event"], e["phase"]) == (kind, phase)]
    m = Middle(choose)
    k, s = warm(meter(*to), marker("--rule", "take proto=udp dport=6010", *to))
    r = Receiver(B, 6010)
    send(B, 6010, 2000, 0.001)
    ok(wait(lambda: told("segment_loss", "begin")), "loss is told", d.log())
    event = told("segment_loss", "begin")[0]
    eq((event["key"], event["flow"]["dport"]), ("lab/sender>receiver", 6010), "at its link, with its flow")
    ok(wait(lambda: told("segment_loss", "end")), "and its end")
    ok(wait(lambda: metric("segment_sent_packets_total") == 2000 or metric("segment_withheld_total") > 0), "all packets are in the sums")
    now = NS["b"].call(d.metrics)
    sent, came, lost, surplus = (now.get(f"pathline_segment_{x}_packets_total{{{page}}}", 0) for x in ("sent", "received", "lost", "surplus"))
    ok((sent, lost) == (2000, dropped[0]) or metric("segment_withheld_total") > 0, "loss is what the middle dropped", (sent, lost, dropped))
    eq(sent, came + lost - surplus, "the sums of packets close")
    answer = json.loads(NS["b"].call(lambda: d.get("/api/v1/segments")[1]))
    eq([p["point"] for p in answer["points"] if p["records"] > 0], ["sender", "receiver"], "the table has both points")
    k.p.kill()
    k.p.wait(LIMIT)

    def traffic(until):
        def more():
            send(B, 6010, 50, 0.001)
            return until()
        return wait(more)

    def missing(phase):
        # The marker began after the meter, and may have been missing before.
        return [e for e in told("point_missing", phase) if e["key"] == "lab/receiver"]
    before = len(missing("begin")), len(missing("end"))
    ok(traffic(lambda: len(missing("begin")) > before[0]), "a meter that was killed is missing, by its name")
    k = meter(*to, name="again")
    ok(traffic(lambda: len(missing("end")) > before[1]), "until it is there again")
    head = b"TPK1" + struct.pack("<BBHIIQQ", 1, 6, 1, 9, 0, 0, 0)
    hostile = {"short": b"TPK", "bad_magic": bytes(160), "bad_version": b"TPK1\2" + head[5:] + bytes(128), "bad_length": head + bytes(100)}
    with NS["a"], socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for n in range(20):
            for datagram in (*hostile.values(), head[:12] + struct.pack("<I", n) + head[16:] + bytes(128)):
                sock.sendto(datagram, (B1, 6020))
    ok(wait(lambda: metric("mark_domain_other_settings_total", 'domain="lab"') == 20), "records of no method are left out")
    eq({cause: metric(f"tmpkt_{cause}_total", 'tap="lab"') for cause in hostile}, dict.fromkeys(hostile, 20), "hostile datagrams are counted by cause")
    for x in (s, k):
        x.end()
    m.end()
    r.close()
    eq(d.stop(), 0, "the daemon ends well")
    account = re.search(r"lab: (\d+) block records = (\d+) correlated \+ (\d+) left out; (\d+) results", d.log())
    eq(os.path.getsize(lab.path("lab.seg192")), 192 * int(account.group(4)), "each result is a record in the file")


def test_usage():
    """What is missing or wrong is said."""
    for args, words in ((["mark"], "--dev"), (["meter"], "--read"), (["meter", "--dev", "eth0", "--read", "x"], "option for captures"), (["meter", "--pin", "x"], "by --dev"), (["unmark"], "--dev"), (["mark", "--dev", "eth0"], "--rule"),
                        (["mark", "--dev", "eth0", "--rule", "take length=0-100"], "take out length"),
                        (["mark", "--dev", "eth0", "--rule", "take", "--bit", "dscp:6"], "dscp"),
                        (["mark", "--dev", "eth0", "--rule", "take", "--bit", "dscp:1", "--bit", "dscp:1"], "the same one"),
                        (["mark", "--dev", "eth0", "--rule", "take", "--bit", "altmark", "--bit", "dscp:1"], "no other beside it"),
                        (["mark", "--dev", "eth0", "--rule", "take", "--method", "double"], "bit"),
                        (["meter", "--dev", "eth0", "--period", "100ms", "--clock-error", "1ms", "--delay", "20ms", "--deviation", "5ms",
                          "--method", "multiplexed"], "0.036"),
                        (["mark", "--dev", "eth0", "--rule", "take", "--loss-only", "--method", "multiplexed"], "method multiplexed needs"),
                        (["mark", "--dev", "eth0", "--rule", "take", "--loss-only", "--bit", "dscp:0", "--bit", "dscp:1"], "method double needs"),
                        (["meter", "--dev", "eth0", "--loss-only", "--method", "pulse"], "method pulse needs"),
                        (["meter", "--dev", "eth0", "--loss-only", "--period", "200ms"], "0.106"),
                        (["meter", "--loss-only", "--read", "x", "--read", "y"], "by --dev"),
                        (["meter", "--dev", "nothing0"], "nothing0"), (["meter", "--dev", "eth0", "--flows", "0"], "--flows"),
                        (["meter", "--dev", "eth0", "--mode", "native", "--direction", "out"], "enter only"),
                        (["meter", "--dev", "eth0", "--mode", "generic"], "tc, native"),
                        (["meter", "--dev", "eth0", "--pin", "/tmp/no-such/there"], "BPF file system")):
        p = subprocess.run(NS["a"].command(PATHLINE, *args), capture_output=True, text=True, timeout=LIMIT, check=False)
        ok(p.returncode != 0 and words in p.stderr, f"{' '.join(args)}: is told what is missing", (p.returncode, p.stderr))


def build():
    """Two hosts, with a middle between them and a wire beside it."""
    if os.geteuid() != 0:
        tap.skip_all("missing: root")
    for program in ("bpftool", "ethtool", "tc", "tshark"):
        if shutil.which(program) is None:
            tap.skip_all(f"missing: {program}")
    for side in "abm":
        NS[side] = network.Namespace(f"mark-{side}")
    network.join(NS["a"], "eth0", NS["m"], "left")
    network.join(NS["m"], "right", NS["b"], "eth0")
    network.join(NS["a"], "eth1", NS["b"], "eth1")
    NS["a"].up("eth0", A + "/24", A6 + "/64")
    NS["b"].up("eth0", B + "/24", B6 + "/64")
    for dev in ("left", "right"):
        NS["m"].up(dev)
    for side, address in (("a", A1), ("b", B1)):
        NS[side].sysctl("ipv6.conf.eth1.disable_ipv6", 1, check=False)
        NS[side].up("eth1", address + "/24")
    network.wait_for_carrier(*[(NS[side], dev) for side in "ab" for dev in ("eth0", "eth1")])
    # What a packet socket takes and sends again has its checksums.
    for side in "ab":
        NS[side].sh("ethtool -K eth0 tx off")
    # Nothing but what a test sends is to be in the queue of eth1.
    NS["a"].ip(f"neigh replace {B1} lladdr {NS['b'].mac('eth1').hex(':')} dev eth1 nud permanent")
    NS["b"].ip(f"neigh replace {A1} lladdr {NS['a'].mac('eth1').hex(':')} dev eth1 nud permanent")


def main():
    build()
    lab.run(test_usage, test_loss, test_cyclic, test_two_commands, test_two_commands_surplus, test_two_commands_refused, test_two_commands_terms, test_two_commands_lossy, test_two_commands_link_local, test_terms, test_stream, test_native, test_option, test_option_stream, test_in_use, test_unmark, test_behind_generic, test_room, test_long_headers, test_back, test_begun_pulse, test_pins, test_flags_outlive, test_gone_meanwhile, test_kill, test_daemon)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
