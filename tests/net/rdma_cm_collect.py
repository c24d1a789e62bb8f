#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""RDMA-CM on the wire, over IPv4 and IPv6: pathline collect on one side of a veth pair, on the other this script, which writes
management datagrams and RoCE frames byte by byte by definitions of its own. Connections are made, used and ended; messages are
lost, repeated and forged; what is refused is refused for its reason, and every queue pair ends with its connection, or when
its peer has vanished. The interface changes under it.
usage: rdma_cm_collect.py PATHLINE"""
import os
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import cm, lab, network, pathline, roce, tap  # noqa: E402
from lib.cm import DREP, DREQ, QKEY, REJ, REP, REQ, RTU  # noqa: E402
from lib.pathline import region  # noqa: E402
from lib.roce import RC, UC, bth, gid, icrc, raw  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import LIMIT, wait  # noqa: E402

NS, MAC = {}, {}
IF = {"a": "plcma", "b": "plcmb"}
IP = {4: {"a": "10.81.0.1", "b": "10.81.0.2", "other": "10.81.0.9", "second": "10.81.0.10"},
      6: {"a": "fd00:81::1", "b": "fd00:81::2", "other": "fd00:81::9"}}
PORT, TCP = 21490, 21491
SLOTS = 1 << 12


def make_wire():
    for side in "ab":
        NS[side] = network.Namespace("cm-" + side)
        NS[side].sysctl("ipv6.conf.default.accept_dad", 0, check=False)
    join_sides()


def join_sides():
    network.join(NS["a"], IF["a"], NS["b"], IF["b"])
    for side in "ab":
        NS[side].up(IF[side], IP[4][side] + "/24", IP[6][side] + "/64")
        MAC[side] = NS[side].mac(IF[side])
    network.wait_for_carrier(*[(NS[side], IF[side]) for side in "ab"])


# ---- frames ----

def frame(version, body, src=None, dst=None, break_icrc=False):
    packet = roce.packet(src or IP[version]["a"], dst or IP[version]["b"], body, damaged=break_icrc)
    return roce.frame(MAC["b"], MAC["a"], packet)


class Got:
    """A RoCE frame from over there."""

    def __init__(self, one):
        self.version = one[14] >> 4
        at = 14 + (20 if self.version == 4 else 40)
        self.src, self.dst = (one[26:30], one[30:34]) if self.version == 4 else (one[22:38], one[38:54])
        self.macs, self.good = one[:12], one[-4:] == icrc(one[14:-4])
        self.opcode, self.qpn = one[at + 8], int.from_bytes(one[at + 13:at + 16], "big")
        self.rest = one[at + 20:-4]
        self.mad = self.kind = None
        if self.opcode == 0x64 and self.qpn == 1:
            self.qkey, self.src_qpn = struct.unpack(">II", self.rest[:8])
            self.mad = self.rest[8:]
            self.transaction, self.kind = struct.unpack(">QH", self.mad[8:18])
            self.local, self.remote = struct.unpack(">II", self.mad[24:32])


class Wire:
    """Frames in and out of this side, past the host."""

    def __init__(self):
        self.socket = roce.packet_socket(NS["a"], IF["a"])
        self.socket.settimeout(0.05)
        self.kept = []

    def send(self, *frames):
        for one in frames:
            self.socket.send(one)

    def take(self):
        """What came is kept until somebody wants it."""
        while True:
            try:
                one = self.socket.recv(4096)
            except (TimeoutError, BlockingIOError):
                return
            if one[6:12] == MAC["b"] and roce.is_roce(one):
                self.kept.append(Got(one))

    def want(self, which, seconds=LIMIT):
        """The first that is so; None."""
        until = time.monotonic() + seconds
        while True:
            for i, got in enumerate(self.kept):
                if which(got):
                    return self.kept.pop(i)
            if time.monotonic() > until:
                return None
            self.take()

    def forget(self):
        self.take()
        self.kept.clear()


# ---- a peer ----

NUMBER = 0


class Peer:
    """The active side of one connection (InfiniBand architecture 1.x, 12.6)."""

    def __init__(self, wire, version, service=UC):
        global NUMBER
        NUMBER += 1
        self.wire, self.version, self.service = wire, version, service
        self.id, self.transaction, self.remote = 0x51000000 + NUMBER, 0x7100000000 + NUMBER, 0
        self.own_qpn = 0x300 + NUMBER

    def mad(self, kind, body, local=None, head=0x01070203):
        return cm.mad(kind, self.transaction, self.id if local is None else local, body, head)

    def datagram(self, mad, qkey=cm.QKEY, **kwargs):
        return frame(self.version, cm.datagram(mad, NUMBER, qkey), **kwargs)

    def req(self, name, port=PORT, transport=None, **kwargs):
        addresses = IP[self.version]
        transport = {UC: 1, RC: 0}[self.service] if transport is None else transport
        return self.mad(REQ, cm.req(addresses["a"], addresses["b"], self.own_qpn, name, port, transport=transport, **kwargs))

    def about(self, kind, body=b"", local=None, remote=None):
        return self.mad(kind, struct.pack(">I", self.remote if remote is None else remote) + body, local)

    def mine(self, *kinds):
        return lambda got: got.kind in kinds and got.remote == self.id

    def ask(self, name, **kwargs):
        """Asks; what is answered."""
        self.wire.send(self.datagram(self.req(name, **kwargs)))
        return self.take_answer()

    def ask_until_answered(self, name, **kwargs):
        """For somebody who comes back; the answer."""
        return wait(lambda: self.wire.send(self.datagram(self.req(name), **kwargs)) or self.wire.want(self.mine(REP, REJ), 0.3), pause=0)

    def take_answer(self):
        got = self.wire.want(self.mine(REP, REJ))
        if got and got.kind == REP:
            self.remote = got.local
            self.qpn, self.psn = (int.from_bytes(got.mad[at:at + 3], "big") for at in (36, 44))
            self.told = got.mad[60:]
            self.va, = struct.unpack(">Q", self.told[32:40])
            self.key, = struct.unpack(">I", self.told[56:60])
        return got

    def reason(self, got):
        return struct.unpack(">H", got.mad[34:36])[0] if got and got.kind == REJ else None

    def ready(self):
        self.wire.send(self.datagram(self.about(RTU)))

    def connect(self, name):
        got = self.ask(name)
        self.ready()
        return got

    def end(self):
        """Says that it is over; the answer."""
        self.wire.send(self.datagram(self.about(DREQ, struct.pack(">I", self.qpn << 8))))
        return self.wire.want(self.mine(DREP))

    def write(self, key, value, ack=False):
        at, data = roce.entry(key, value, SLOTS)
        head = bth(self.service | 0x0a, self.qpn, self.psn, ack)
        self.psn = (self.psn + 1) & 0xffffff
        return frame(self.version, head + struct.pack(">QII", self.va + at, self.key, len(data)) + data)


# ---- a collector ----

def values(*keys):
    """What is found: {key: value}."""
    rows = region("lookup", lab.path("last.plr"), "--key-form", "u32", *keys)
    return {int(r["key"], 0): int(r["value"], 16) for r in rows if r.get("answer") == "found"}


def found(key, value):
    return wait(lambda: values(key) == {key: value})


class Collector(roce.Collector):
    def __init__(self, uri, *args):
        for name in ("last", "other"):
            if not os.path.exists(lab.path(name + ".plr")):
                roce.make_regions(**{name: f"--primitive key-write --slots {SLOTS} --value-bytes 4 --copies 1 --hash dta"})
        super().__init__(NS["b"], "--listen", "none", "--cm-port", PORT, *args, uri, lab.path("last.plr"), lab.path("other.plr"))
        ok(f"RDMA-CM on {IP[4]['b']}, {IP[6]['b']}" in self.line, f"{uri}: answers for both addresses", self.line)

    def comes_to(self, counter, n):
        return wait(lambda: self.counters()["cm"][counter] >= n)


def run_made(wire, v):
    """Made, used and ended, with messages lost and repeated."""
    p = Peer(wire, v)
    name = f"IPv{v}"
    got = p.ask("last")
    if not ok(got is not None and got.kind == REP, f"{name}: a request is answered by REP", got and got.kind):
        return
    eq((got.src, got.dst, got.macs), (raw(IP[v]["b"]), raw(IP[v]["a"]), MAC["a"] + MAC["b"]), "from where it was asked to who asked")
    eq((got.good, got.qkey, got.src_qpn, got.transaction), (True, QKEY, 1, p.transaction), "a right management datagram")
    eq((p.told[:4], struct.unpack(">H", p.told[6:8])[0], p.told[8:24], int.from_bytes(p.told[61:64], "big")),
       (b"PLRX", 184, gid(IP[v]["b"]), p.qpn), "its private data say where the store is")
    first = (p.remote, p.qpn, p.psn)
    again = p.take_answer()
    ok(again and (p.remote, p.qpn, p.psn) == first, "without an RTU the REP comes again, and is the same")
    again = p.ask("last")
    ok(again and (p.remote, p.qpn, p.psn) == first, "a request that is repeated makes no other connection")
    p.ready()
    wire.send(p.write(v * 100, 7))
    ok(found(v * 100, 7), "what it writes is found")
    r = Peer(wire, v, RC)
    ok(r.connect("last") and r.qpn != p.qpn, "another connection, a reliable one")
    wire.send(r.write(v * 100 + 1, 8, ack=True))
    ack = wire.want(lambda g: g.opcode == 0x11 and g.qpn == r.own_qpn)
    ok(ack and ack.good and ack.src == raw(IP[v]["b"]), "its write is acknowledged, to the queue pair of the request")
    ok(found(v * 100 + 1, 8), "and found")
    wire.forget()
    ok(p.end(), "DREQ is answered by DREP")
    ok(p.end(), "and again, should that have been lost")
    wire.send(p.write(v * 100 + 2, 9), r.write(v * 100 + 3, 10))
    ok(found(v * 100 + 3, 10) and values(v * 100 + 2) == {}, "the queue pair ended, the other did not")
    ok(r.end(), "it is ended too")
    # A peer asks and rejects the answer. The answer to a peer that asked later, and says nothing, comes again.
    p, q = Peer(wire, v), Peer(wire, v)
    p.ask("last")
    wire.send(p.datagram(p.about(REJ, struct.pack(">BBH", 1 << 6, 0, 28))))
    wire.forget()
    q.ask("last")
    ok(q.take_answer() and not any(p.mine(REP)(g) for g in wire.kept), "a REP that is rejected does not come again")
    wire.send(q.datagram(q.about(REJ, struct.pack(">BBH", 1 << 6, 0, 28))))
    wire.send(p.write(v * 100 + 4, 1))


def run_refused(wire, v):
    for what, reason, kwargs in (("a port that nobody listens on", 8, {"port": PORT + 1}),
                                 ("private data without addresses", 8, {"ip": False}),
                                 ("a service that is none", 9, {"transport": 2}),
                                 ("an MTU that is none", 26, {"mtu": 6}),
                                 ("an MTU larger than frames here can have", 26, {"mtu": 5}),
                                 ("a store that is not there", 28, {"name": "nothing"})):
        p = Peer(wire, v)
        got = p.ask(**{"name": "last", **kwargs})
        eq(p.reason(got), reason, f"IPv{v}: {what} is rejected for its reason")
        if reason == 26:
            eq(got.mad[33:37], bytes([1 << 1, 0, 26, 3]), "and told that 1024 is the largest")


def run_forged(wire, v, c):
    """Nothing of this is answered, changes anything or goes uncounted."""
    before = c.counters()
    p, q = Peer(wire, v), Peer(wire, v)
    p.connect("last")
    request, end = q.req("last"), p.about(DREQ, struct.pack(">I", p.qpn << 8))
    wire.forget()
    wire.send(q.datagram(request, break_icrc=True),
              q.datagram(request)[:-40],
              q.datagram(request, qkey=QKEY + 1),
              q.datagram(request, dst=IP[v]["other"]),
              q.datagram(request[:-4]),
              q.datagram(q.mad(REQ, request[28:], head=0x01030203)),
              q.datagram(q.mad(0x20, request[28:])),
              p.datagram(end, src=IP[v]["other"]),
              p.datagram(p.about(DREQ, struct.pack(">I", p.qpn << 8), local=p.id + 1)))
    x = Peer(wire, 10 - v)
    x.id, x.transaction, x.remote = p.id, p.transaction, p.remote
    wire.send(x.datagram(end))  # The right numbers by the other address of the same host.
    wire.send(p.datagram(p.about(RTU)), p.datagram(p.about(RTU, remote=p.remote ^ 0x5555)))
    ok(c.comes_to("unknown", before["cm"]["unknown"] + 1), f"IPv{v}: forged messages are read to the end")
    # A REP to who is connected may have come again before its RTU was read.
    other = lambda g: g.kind is not None and not p.mine(REP)(g)
    eq(p.reason(wire.want(other)), 6, "that of a connection that is not known is told so")
    wire.send(p.write(v * 100 + 10, 5))
    ok(found(v * 100 + 10, 5), "the connection that they named lives")
    now = c.counters()
    eq({k: now["cm"][k] - before["cm"][k] for k in ("malformed", "foreign", "unknown", "repeated")},
       {"malformed": 5, "foreign": 3, "unknown": 1, "repeated": 1}, "each is counted by what is wrong with it")
    ok(now["causes"]["icrc"] - before["causes"]["icrc"] >= 1, "the damaged one before that", now["causes"])
    y = Peer(wire, v)
    wire.send(y.datagram(y.about(DREQ, struct.pack(">I", 0x999 << 8), remote=0x12345678)))
    ok(wire.want(y.mine(DREP)), "the end of a connection that is not known is confirmed")
    ok(not any(other(g) for g in wire.kept), "and nobody else was answered before", [g.kind for g in wire.kept])
    ok(p.end(), "the true end ends it")


def run(uri):
    for name in ("last", "other"):
        if os.path.exists(lab.path(name + ".plr")):
            os.unlink(lab.path(name + ".plr"))
    c, wire = Collector(uri), Wire()
    for v in (4, 6):
        run_made(wire, v)
        run_refused(wire, v)
        run_forged(wire, v, c)
    s = c.stop()
    eq({(p["peer"], p["store"]): (p["connected"], p["cm"], p["tcp"], p["packets"]) for p in s["peers"]},
       {(IP[v]["a"], "last"): (0, 3, 0, 4) for v in (4, 6)}, "connections and packets are accounted for by address, none is left")
    eq((s["causes"]["ok"], s["causes"]["unknown_qp"], s["failed"]), (2 * 4, 2 * 2, 0), "as are what came for queue pairs that ended")


def run_silent(uri):
    """Who vanishes loses the queue pair, who answers or writes does not."""
    silent = 10
    c, wire = Collector(uri, "--silent", f"{silent}s"), Wire()
    gone, idle, busy = ([Peer(wire, v) for v in (4, 6)] for _ in range(3))
    begun, asked, ended, n = time.monotonic(), 0, {}, 0
    for p in gone + idle + busy:
        p.connect("last")
    wire.forget()

    def are_told():
        """those who vanished are given up, and those who are idle were asked again and again"""
        nonlocal asked, n
        n += 1
        wire.send(*[p.write(p.version * 100 + 20, n) for p in busy])
        wire.take()
        for p in idle:
            for got in [g for g in wire.kept if p.mine(REP)(g)]:
                asked += got.local == p.remote and got.good
                p.ready()
        for p in gone + idle + busy:
            if any(p.mine(DREQ)(g) for g in wire.kept):
                ended.setdefault(p.id, time.monotonic() - begun)
        wire.kept = [g for g in wire.kept if g.kind not in (REP, DREQ)]
        return len(ended) >= 2 and asked >= 2 * 3
    ok(wait(are_told, pause=0.1), f"{uri}: who vanished is given up, who is idle is asked, again and again, and answers", (ended, asked))
    eq(sorted(ended), sorted(p.id for p in gone), "who vanished is told of the end, by both addresses; nobody else is")
    ok(all(t >= silent for t in ended.values()), "not before the time is over", ended)
    wire.send(*[p.write(p.version * 100 + 21, 1) for p in gone], *[p.write(p.version * 100 + 22, 2) for p in idle])
    ok(wait(lambda: values(422, 622) == {422: 2, 622: 2}), "who was idle writes", values(422, 622))
    eq(values(420, 620), {420: n, 620: n}, "so did who never was")
    eq(values(421, 621), {}, "who was given up does not")
    again = Peer(wire, 4)
    ok(again.connect("last").kind == REP, "and asks anew")
    s = c.stop()
    eq((s["silent"], s["failed"], s["causes"]["unknown_qp"]), (2, 0, 2), "each is counted")
    ok(s["cm"]["asked"] >= asked + 2 * 8, "as are the questions", (s["cm"], asked))
    ok(all(f"peer {IP[v]['a']} is silent" in c.line + c.err for v in (4, 6)) or "2 peers are silent" in c.err, "and told", c.err)
    for args, why in ((["--silent", "10ms", uri], "at least 1s"), (["--silent", "1m", "verbs:rxe0"], "RDMA NIC")):
        bad = pathline.run("collect", *args, lab.path("last.plr"))
        ok(bad.returncode == 2 and why in bad.stderr, f"{' '.join(args)} is refused", bad.stderr)


def exchange(source):
    """A queue pair over TCP; None where the connection is closed."""
    with NS["a"]:
        tcp = socket.create_connection((IP[4]["b"], TCP), timeout=LIMIT, source_address=(source, 0))
    answer = b""
    try:
        tcp.sendall(roce.request("last", UC, source, MAC["a"]))
        answer = roce.answer_from(tcp)
    except (BrokenPipeError, ConnectionResetError):
        pass
    return tcp, answer[40] if len(answer) > 40 else None


def run_flood(uri):
    """Requests from forged addresses take nothing from those who confirm, or connect over TCP."""
    c, wire = Collector(uri, "--listen", f":{TCP}"), Wire()
    old, early, own = (Peer(wire, 4) for _ in range(3))
    old.connect("last")
    early.ask("last")
    wire.send(*[p.datagram(p.req("last"), src=f"10.81.0.{20 + i}") for i, p in enumerate(Peer(wire, 4) for _ in range(70))])
    got = own.ask("last")
    ok(got and got.kind == REP, f"{uri}: behind seventy requests that nobody confirms there is room", got and own.reason(got))
    own.ready()
    tcp, refusal = exchange(IP[4]["a"])
    eq(refusal, 0, "over TCP too")
    tcp.close()
    wire.forget()
    early.ready()
    eq(early.reason(wire.want(early.mine(REJ))), 6, "whose place was taken learns so when it confirms")
    time.sleep(1.1)  # No more than fifty requests of one address are taken in a second.
    wire.send(*[p.datagram(p.req("nothing")) for p in (Peer(wire, 4) for _ in range(40))])
    late = Peer(wire, 4)
    got = late.ask("last")
    ok(got and got.kind == REP, "nor does it matter that forty were rejected", got and late.reason(got))
    wire.send(late.datagram(late.about(REJ, struct.pack(">BBH", 1 << 6, 0, 28))))
    time.sleep(1.1)
    # One address has its share of those places: who asked before it keeps its own.
    q = Peer(wire, 4)
    wire.send(q.datagram(q.req("last"), src=IP[4]["other"]))
    got = q.take_answer()
    ok(got and got.kind == REP, "another address asks")
    wire.send(*[p.datagram(p.req("last")) for p in (Peer(wire, 4) for _ in range(30))])
    wire.send(q.datagram(q.about(RTU), src=IP[4]["other"]))
    ok(wait(lambda: {p["peer"]: p["connected"] for p in c.counters()["peers"]} == {IP[4]["a"]: 2, IP[4]["other"]: 1}),
       "and confirms behind thirty of one address", c.counters())
    wire.send(old.write(7, 70), own.write(8, 80))
    ok(wait(lambda: values(7, 8) == {7: 70, 8: 80}), "who was connected writes, before and after", values(7, 8))
    s = c.counters()
    ok(s["displaced"] >= 1 + 70 - 16 and s["no_room"] == s["crowded"] == 0, "places taken are counted", s)
    eq([p["cm"] for p in s["peers"]], [2, 1], "who never confirmed has no account")
    c.stop()


def run_each(uri):
    """One address has at most a share of all queue pairs, and of the connections of the control server."""
    for args, most in (((), 6), (("--peers-each", 2), 2)):
        c, wire = Collector(uri, "--listen", f":{TCP}", "--peers", 8, *args), Wire()
        held = [exchange(IP[4]["a"]) for _ in range(most + 10)]
        eq([refusal for _, refusal in held], [0] * most + [3] * 8 + [None] * 2, f"{uri} {args}: {most} of 8 over TCP, the others are refused")
        p = Peer(wire, 4)
        eq(p.reason(p.ask("last")), 3, "RDMA-CM from there is too")
        held.append(exchange(IP[4]["second"]))
        eq(held[-1][1], 0, "another address is not")
        s = c.counters()
        eq((s["crowded"], s["control"]["crowded"]), (9, 2), "each is counted")
        held[0][0].close()
        ok(wait(lambda: p.reason(Peer.ask(p, "last")) is None), "one ends, there is room")
        for tcp, _ in held:
            tcp.close()
        c.stop()
    for args in (["--peers", "4", "--peers-each", "5"],):
        bad = pathline.run("collect", *args, uri, lab.path("last.plr"))
        ok(bad.returncode == 2 and "peers_each is more than peers" in bad.stderr, f"{' '.join(args)} is refused", bad.stderr)


def run_guesses(uri):
    """Who guesses is told by name, once, and is in the account by what was guessed at."""
    for kind, what, who in (("unknown_qp", "to unknown queue pairs", "10.81.0.77"), ("peer", "to other peers' queue pairs", IP[4]["other"])):
        c, wire, n = Collector(uri), Wire(), 0
        p = Peer(wire, 4)
        p.connect("last")

        def guess():
            nonlocal n
            body = struct.pack(">QII", p.va, 1, 8) + bytes(8)
            qpns = [p.qpn if kind == "peer" else (p.qpn + 1 + i) & 0xffffff or 2 for i in range(200)]
            wire.send(*[frame(4, bth(UC | 0x0a, qpn, p.psn) + body, src=who) for qpn in qpns])
            n += 200
            return c.counters()["alarms"] == 1

        ok(wait(guess), f"{uri}: many requests {what} are an alarm")
        wire.send(p.write(30, n))
        ok(found(30, n), "the peer writes all the same")
        s = c.stop()
        eq([(x["address"], x["guesses"] == x[kind] == s["guesses"] == n) for x in s["suspects"]], [(who, True)], "the account names it, with what it guessed at")
        eq([line.count(f"{who} guesses: requests ") for line in c.err.splitlines() if "guesses" in line], [1], "standard error too, once")
        ok(what in c.err, "and says what it guessed at", c.err)


def run_other_mac(uri):
    """What a mirrored port brings is not for this machine."""
    other = bytes.fromhex("0200c0ffee01")
    c, wire = Collector(uri), Wire()
    p, q = Peer(wire, 4), Peer(wire, 4)
    p.connect("last")
    wire.send(other + p.write(40, 4)[6:], other + q.datagram(q.req("last"))[6:])
    wire.send(p.write(41, 5))
    ok(found(41, 5) and values(40) == {}, f"{uri}: what is sent to another MAC address is not executed")
    wire.take()
    ok(not any(q.mine(REP, REJ)(got) for got in wire.kept), "nor answered")
    # The interface gets another address: what goes there is for it.
    NS["b"].ip(f"link set dev {IF['b']} address {other.hex(':')}")
    n = 0

    def takes():
        nonlocal n
        n += 1
        wire.send(other + p.write(42, 6)[6:])
        return values(42) == {42: 6}

    ok(wait(takes), "an interface whose address is changed takes what is sent to that")
    NS["b"].ip(f"link set dev {IF['b']} address {MAC['b'].hex(':')}")
    causes = c.stop()["causes"]
    ok(causes["other_mac"] >= 2 and causes["other_mac"] + causes["ok"] == 2 + 1 + n, "each is counted", (causes, n))
    c = Collector(uri, "--any-mac")
    p = Peer(wire, 4)
    p.connect("last")
    wire.send(other + p.write(43, 7)[6:])
    ok(found(43, 7), "--any-mac takes them all")
    eq(c.stop()["causes"]["other_mac"], 0, "and counts none")
    bad = pathline.run("collect", "--any-mac", "verbs:rxe0", lab.path("last.plr"))
    ok(bad.returncode == 2 and "RDMA NIC" in bad.stderr, "with a NIC it is refused", bad.stderr)


def told_mac():
    """The MAC address that an exchange over TCP tells; the host that asks has forgotten the one before."""
    NS["a"].ip(f"neigh flush dev {IF['a']}")
    with NS["a"], socket.create_connection((IP[4]["b"], TCP), timeout=LIMIT) as tcp:
        tcp.settimeout(LIMIT)
        tcp.sendall(roce.request("last", UC, IP[4]["a"], MAC["a"]))
        return roce.answer_from(tcp)[24:30]


def host_is_silent(wire):
    """A datagram for RoCE's port is not answered by the host, one for another port is."""
    body = roce.ipv4(IP[4]["a"], IP[4]["b"], 17, struct.pack(">HHHH", 0xc111, 4790, 8, 0))
    mine = roce.ipv4(IP[4]["a"], IP[4]["b"], 17, struct.pack(">HHHH", 0xc112, 4791, 8, 0))
    seen = []

    def refused():
        wire.send(*[MAC["b"] + MAC["a"] + b"\x08\x00" + one for one in (mine, body)])
        while True:
            try:
                one = wire.socket.recv(4096)
            except (TimeoutError, BlockingIOError):
                break
            if one[6:12] == MAC["b"] and one[12:14] == b"\x08\x00" and one[23] == 1 and one[34:36] == b"\x03\x03":
                seen.append(int.from_bytes(one[62:64], "big"))
        return 0xc111 in seen
    return wait(refused) and 0xc112 not in seen


def run_changes(uri):
    """The interface gets another address, another MAC address, and is made anew: what holds now is used."""
    c, wire = Collector(uri, "--listen", f":{TCP}"), Wire()
    p = Peer(wire, 4, RC)
    p.connect("last")
    for v in (4, 6):
        IP[v]["late"] = IP[v]["b"] + "2"
        NS["b"].ip(f"addr add {IP[v]['late']}/{24 if v == 4 else 64} dev {IF['b']}" + ("" if v == 4 else " nodad"))
        q = Peer(wire, v)
        # The kernel tells the collector of addresses when it has told us already: who asks asks again.
        got = q.ask_until_answered("last", dst=IP[v]["late"])
        eq(got and (got.kind, got.src), (REP, raw(IP[v]["late"])), f"{uri}: a request to an address added later")
        NS["b"].ip(f"addr del {IP[v]['late']}/{24 if v == 4 else 64} dev {IF['b']}")
        q, before = Peer(wire, v), c.counters()["cm"]["malformed"]

        def foreign():
            wire.send(q.datagram(q.req("last"), dst=IP[v]["late"]))
            return c.counters()["cm"]["malformed"] > before
        ok(wait(foreign), "and once it is taken away, it is no longer ours")
    MAC["b"] = bytes.fromhex("02aabbccdd01")
    NS["b"].ip(f"link set dev {IF['b']} address {MAC['b'].hex(':')}")
    wire.forget()

    def answered():
        """From the new address, which the collector is told of in its time."""
        wire.send(p.write(470, 1, ack=True))
        ack = wire.want(lambda g: g.opcode == 0x11 and g.qpn == p.own_qpn, 1)
        return ack and (ack.macs[6:], ack.good) == (MAC["b"], True)
    ok(wait(answered), "a connection that was there answers from the new MAC address")
    eq(Peer(wire, 4).ask("last").macs, MAC["a"] + MAC["b"], "so does the connection manager")
    eq(told_mac(), MAC["b"], "the exchange over TCP tells it")
    NS["b"].ip(f"link del {IF['b']}")
    join_sides()
    wire = Wire()
    before = bytes.fromhex("02aabbccdd01")
    q = Peer(wire, 4)
    ok(MAC["b"] != before and q.ask_until_answered("last"), "the interface is another one, which answers")
    eq(told_mac(), MAC["b"], "its MAC address is told")
    got = Peer(wire, 4).ask("last")
    eq(got and got.macs, MAC["a"] + MAC["b"], "and is where answers come from")
    if uri.startswith("packet"):
        ok(host_is_silent(wire), "the host is silent there, too")
    NS["b"].ip(f"link set dev {IF['b']} down")
    NS["b"].ip(f"link set dev {IF['b']} name {IF['b']}x")
    NS["b"].up(IF["b"] + "x", IP[6]["b"] + "/64")
    network.wait_for_carrier((NS["b"], IF["b"] + "x"))
    q = Peer(wire, 4)
    ok(q.ask_until_answered("last"), "under another name it is the same")
    eq(told_mac(), MAC["b"], "with its MAC address")
    NS["b"].ip(f"link set dev {IF['b']}x down")
    NS["b"].ip(f"link set dev {IF['b']}x name {IF['b']}")
    NS["b"].up(IF["b"], IP[6]["b"] + "/64")
    network.wait_for_carrier((NS["b"], IF["b"]))
    c.stop()


def run_rules(uri):
    """What is asked of requests beyond addresses: the first of each list complies, the others do not."""
    stranger = bytes.fromhex("0200c0ffee02")

    def tagged(one, tci):
        return one[:12] + struct.pack(">HH", 0x8100, tci) + one[12:]

    def hops(one, n):
        """The TTL is outside of the ICRC, the checksum of the header is not."""
        head = one[14:22] + bytes([n]) + one[23:24] + bytes(2) + one[26:34]
        return one[:14] + head[:10] + struct.pack(">H", roce.ones_sum(head)) + head[12:] + one[34:]

    for args, tag, cause, good, bad in (
            (["--check-mac"], None, "link", [lambda one: one], [lambda one: one[:6] + stranger + one[12:]]),
            (["--min-ttl", 255], None, "link", [lambda one: hops(one, 255)], [lambda one: hops(one, 254), lambda one: one]),
            (["--vlan", 5], 5, "link", [lambda one: tagged(one, 5), lambda one: tagged(one, 0x6005)],
             [lambda one: one, lambda one: tagged(one, 6)]),
            (["--vlan", 0], None, "link", [lambda one: one, lambda one: tagged(one, 0)], [lambda one: tagged(one, 5)]),
            ([], None, "link", [lambda one: hops(one, 1)], [lambda one: tagged(one, 5)])):
        c, wire = Collector(uri, "--listen", f":{TCP}", *args), Wire()
        name = f"{uri} {' '.join(map(str, args)) or 'no rule'}"
        p = Peer(wire, 4)
        if tag is not None:
            wire.send(p.datagram(p.req("last")))
            eq(p.reason(p.take_answer()), 28, f"{name}: a request for a queue pair without the tag is rejected")
            p = Peer(wire, 4)
        request = p.datagram(p.req("last"))
        wire.send(request if tag is None else tagged(request, tag))
        got = p.take_answer()
        if not ok(got and got.kind == REP, f"{name}: a queue pair", got and p.reason(got)):
            continue
        p.ready()
        for i, change in enumerate(good + bad):
            wire.send(change(p.write(60 + i, 0x600 + i)))
        wire.send(good[0](p.write(70, 0x700)))
        ok(found(70, 0x700), f"{name}: what complies is executed")
        eq(values(*range(60, 60 + len(good) + len(bad))), {60 + i: 0x600 + i for i in range(len(good))}, f"{name}: nothing else is")
        tcp, refusal = exchange(IP[4]["a"])
        eq(refusal, 0, f"{name}: over TCP too")
        tcp.close()
        eq(c.stop()["causes"][cause], len(bad), f"{name}: each is counted")
        roce.make_regions(last=f"--primitive key-write --slots {SLOTS} --value-bytes 4 --copies 1 --hash dta")
    c, wire = Collector(uri, "--max-jump", 100), Wire()
    p = Peer(wire, 4)
    p.connect("last")
    for jump, key in ((100, 80), (102, 81), (-102, 82)):
        p.psn = (p.psn + jump) & 0xffffff
        wire.send(p.write(key, key))
        p.psn = (p.psn - jump - 1) & 0xffffff if jump != 100 else p.psn
    wire.send(p.write(83, 83))
    ok(found(83, 83), f"{uri}: --max-jump: the next number is taken")
    eq(values(80, 81, 82), {80: 80}, "a jump of 100 is, of more is not, forward or back")
    eq(c.stop()["causes"]["window"], 2, "which is counted")
    for bad in (["--min-ttl", "256"], ["--vlan", "4096"], ["--max-jump", "9000000"]):
        refused = pathline.run("collect", *bad, uri, lab.path("last.plr"))
        ok(refused.returncode == 2 and bad[0] in refused.stderr, f"{' '.join(bad)} is refused", refused.stderr)
    for rule in (["--check-mac"], ["--min-ttl", "1"], ["--vlan", "0"], ["--max-jump", "1"]):
        refused = pathline.run("collect", *rule, "verbs:rxe0", lab.path("last.plr"))
        ok(refused.returncode == 2 and "RDMA NIC" in refused.stderr, f"{rule[0]} is refused with a NIC", refused.stderr)


def run_stale(uri):
    """A peer that begins anew with what it has in a connection: that one ends once the new one is confirmed, and the peer is
    told."""
    c, wire = Collector(uri, "--listen", f":{TCP}", "--proxy", f"{IP[4]['second']}/32", "--allow", "10.0.0.0/8", "--allow", "fd00::/8"), Wire()
    for same in ("queue pair", "communication id"):
        old, other = Peer(wire, 4, RC), Peer(wire, 6, RC)
        other.own_qpn = old.own_qpn
        old.connect("last")
        other.connect("last")
        anew = Peer(wire, 4, RC)
        if same == "queue pair":
            anew.own_qpn = old.own_qpn
        else:
            anew.id = old.id
        wire.forget()
        got = anew.ask("last")
        ok(got and got.kind == REP, f"{uri}: a request by a {same} that is connected is answered", got and anew.reason(got))
        n = 90 + anew.own_qpn % 100
        wire.send(old.write(n, n))
        ok(found(n, n), "and takes nothing from the connection, for it proves nothing")
        anew.ready()
        end = wire.want(lambda got: got.kind == DREQ and got.remote == old.id and got.local == old.remote)
        ok(end and int.from_bytes(end.mad[32:35], "big") == old.own_qpn, "once it is confirmed the old connection is ended")
        wire.send(old.datagram(old.about(DREP)))
        wire.send(old.write(n, 1), anew.write(n + 200, n), other.write(n + 100, n))
        ok(wait(lambda: values(n, n + 100, n + 200) == {n: n, n + 100: n, n + 200: n}),
           "with its queue pair; the new one writes, as does another host's with the same number")
        ok(anew.end() and other.end(), "both end")
    s = c.counters()
    eq((s["cm"]["stale"], s["failed"]), (2, 0), "each is counted")

    def offer(source, service=RC, tcp=None, gid=None):
        if tcp is None:
            with NS["a"]:
                tcp = socket.create_connection((IP[4]["b"], TCP), timeout=LIMIT, source_address=(source, 0))
        tcp.sendall(roce.request("last", service, gid or source, MAC["a"], qpn=0x4321))
        return tcp, roce.answer_from(tcp)[40]

    first, refusal = offer(IP[4]["a"])
    eq((refusal, offer(IP[4]["a"], tcp=first)[1]), (0, 4), "over TCP: twice by one connection is refused")
    second, refusal = offer(IP[4]["a"])
    eq(refusal, 0, "offered by another connection it is taken")
    eq(first.recv(1), b"", "and the old connection ends")
    eq(offer(IP[4]["second"], gid=IP[4]["a"])[1], 4, "by a proxy it is refused")
    held = [offer(IP[4]["a"], UC) for _ in range(2)]
    eq([refusal for _, refusal in held], [0, 0], "unreliable ones may share a number")
    ok(wait(lambda: c.counters()["peers"][0]["connected"] == 3), "one reliable, two others", c.counters()["peers"])
    for tcp in (second, *[tcp for tcp, _ in held]):
        tcp.close()
    eq(c.stop()["stale"], 1, "which is counted")


def test_cm():
    run(f"packet:{IF['b']}")
    if "afxdp" in pathline.run("help", "collect").stdout:
        run(f"afxdp:{IF['b']}")


def test_changes():
    run_changes(f"packet:{IF['b']}")
    if "afxdp" in pathline.run("help", "collect").stdout:
        run_changes(f"afxdp:{IF['b']}")


def test_silent():
    run_silent(f"packet:{IF['b']}")


def test_guesses():
    run_guesses(f"packet:{IF['b']}")


def test_other_mac():
    run_other_mac(f"packet:{IF['b']}")
    if "afxdp" in pathline.run("help", "collect").stdout:
        run_other_mac(f"afxdp:{IF['b']}")


def test_rules():
    run_rules(f"packet:{IF['b']}")
    if "afxdp" in pathline.run("help", "collect").stdout:
        run_rules(f"afxdp:{IF['b']}")


def test_jumbo():
    """Where frames may be long, so may be what they carry; but not what is answered, and a READ would be."""
    for side in "ab":
        NS[side].ip(f"link set {IF[side]} mtu 9000")
    for options, largest in (((), 5), (("--read",), 3)):
        c, wire, v = Collector(f"packet:{IF['b']}", *options), Wire(), 4
        p = Peer(wire, v)
        got = p.ask("last", mtu=5)
        if largest == 5:
            p.ready()
            data = bytes(range(256)) * 12
            head = bth(UC | 0x0a, p.qpn, p.psn)
            wire.send(frame(v, head + struct.pack(">QII", p.va, p.key, len(data)) + data))
            ok(wait(lambda: c.counters()["write_bytes"] == len(data)), "a path MTU of 4096: 3072 bytes in a packet are written")
            with open(lab.path("last.plr"), "rb") as f:
                ok(data in f.read(), "and are there")
            ok(p.end(), "it ends")
        else:
            eq((p.reason(got), got.mad[33:37]), (26, bytes([1 << 1, 0, 26, largest])),
               "who may READ is told that 1024 is the largest")
        c.stop()
    for side in "ab":
        NS[side].ip(f"link set {IF[side]} mtu 1500")


def test_stale():
    run_stale(f"packet:{IF['b']}")


def test_shares():
    run_flood(f"packet:{IF['b']}")
    run_each(f"packet:{IF['b']}")


def main():
    if os.geteuid() != 0:
        tap.skip_all("needs root")
    make_wire()
    NS["a"].ip(f"addr add {IP[4]['second']}/24 dev {IF['a']}")
    lab.run(test_cm, test_silent, test_shares, test_guesses, test_other_mac, test_rules, test_jumbo, test_stale, test_changes)
    return tap.end()


sys.exit(main())
