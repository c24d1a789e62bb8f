#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What others on the network can do to pathline collect and its peers without seeing their traffic: claim a queue pair that
is another's, have READs answered to somebody who asked for nothing, end a connection by a forged request, use up what is for
those who are allowed, use another's key. Frames are forged byte by byte. usage: rdma_attacks.py PATHLINE"""
import os
import socket
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import cm, lab, network, pathline, roce, tap  # noqa: E402
from lib.pathline import region  # noqa: E402
from lib.roce import RC, UC, bth, raw  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import LIMIT, wait  # noqa: E402

NS, MAC = {}, {}
IP = {4: {"a": "10.82.0.1", "b": "10.82.0.2"}, 6: {"a": "fd00:82::1", "b": "fd00:82::2"}}
BOB, MALLORY, STRANGER, HERE = IP[4]["a"], "10.82.0.66", "10.99.0.1", IP[4]["b"]
TCP, CM, SLOTS = 22471, 22472, 1 << 12
READ_REQUEST = 0x0c


def collector(*args, allow="10.82.0.0/24"):
    roce.make_regions(last=f"--primitive key-write --slots {SLOTS} --value-bytes 4 --copies 1 --hash dta")
    return roce.Collector(NS["b"], "--listen", f"{HERE}:{TCP}", "--cm-port", CM, "--allow", allow, *args, "packet:eth0",
                          lab.path("last.plr"))


class Wire:
    """Frames in and out of this side, past the host."""

    def __init__(self):
        self.socket = roce.packet_socket(NS["a"], "eth0")
        self.socket.settimeout(0.05)

    def send(self, body, src):
        self.socket.send(roce.frame(MAC["b"], MAC["a"], roce.packet(src, HERE, body)))

    def want(self, dst, which, seconds=LIMIT):
        """The first packet of RoCE to this address that is so, from its BTH on; None."""
        def look():
            while True:
                try:
                    one = self.socket.recv(65536)
                except (TimeoutError, BlockingIOError):
                    return None
                if one[6:12] == MAC["b"] and roce.is_roce(one) and one[30:34] == raw(dst) and which(one[42:]):
                    return one[42:]
        return wait(look, seconds, 0)

    def comes(self, dst):
        """Bytes of RoCE to this address until there is a pause."""
        n = 0
        while True:
            try:
                one = self.socket.recv(65536)
            except (TimeoutError, BlockingIOError):
                return n
            if one[6:12] == MAC["b"] and roce.is_roce(one) and one[30:34] == raw(dst):
                n += len(one)


def offer(source, gid, qpn, service=RC):
    """A queue pair asked for over TCP from an address, for an address."""
    with NS["a"]:
        tcp = socket.create_connection((HERE, TCP), timeout=LIMIT, source_address=(source, 0))
    return roce.QueuePair(tcp, roce.request("last", service, gid, MAC["a"], qpn=qpn), service, gid, HERE, (MAC["b"], MAC["a"]))


def is_cm(kind, remote=None):
    """Of a packet from its BTH on: a message of this kind, to this communication id."""
    return lambda p: p[0] == 0x64 and struct.unpack(">H", p[36:38])[0] == kind and \
        (remote is None or struct.unpack(">I", p[48:52])[0] == remote)


def req(src, number, qpn):
    return cm.datagram(cm.mad(cm.REQ, number, number, cm.req(src, HERE, qpn, "last", CM, transport=1)))


class Connected:
    """By RDMA-CM."""

    def __init__(self, wire, src, number, qpn):
        self.wire, self.src, self.number = wire, src, number
        wire.send(req(src, number, qpn), src)
        got = wire.want(src, is_cm(cm.REP, number))
        self.remote, = struct.unpack(">I", got[44:48])
        told = got[80:]
        self.va, = struct.unpack(">Q", told[32:40])
        self.key, self.qpn, self.psn = struct.unpack(">III", told[56:68])
        wire.send(cm.datagram(cm.mad(cm.RTU, number, number, struct.pack(">I", self.remote))), src)

    def write(self, key, value):
        at, data = roce.entry(key, value, SLOTS)
        self.wire.send(bth(UC | 0x0a, self.qpn, self.psn) + struct.pack(">QII", self.va + at, self.key, len(data)) + data, self.src)
        self.psn = (self.psn + 1) & 0xffffff


def values(*keys):
    rows = region("lookup", lab.path("last.plr"), "--key-form", "u32", *keys)
    return {int(r["key"], 0): int(r["value"], 16) for r in rows if r.get("answer") == "found"}


# ---- attacks ----

def test_claimed_first():
    """Somebody claims the queue pair of a peer that has not come yet."""
    c = collector()
    claim = offer(MALLORY, BOB, 0x11)
    eq(claim.refusal, 8, "a queue pair of another address than the connection's is refused")
    own = offer(BOB, BOB, 0x11)
    eq(own.refusal, 0, "whose it is gets it")
    eq(offer(MALLORY, STRANGER, 0x11).refusal, 8, "nor for an address that is not allowed")
    c.stop()
    c = collector("--proxy", f"{MALLORY}/32")
    claim = offer(MALLORY, BOB, 0x11)
    eq(claim.refusal, 0, "a proxy may ask for others")
    own = offer(BOB, BOB, 0x11)
    eq(own.refusal, 0, "whose it is gets it all the same")
    eq(claim.tcp.recv(1), b"", "and what the proxy asked for ends")
    eq(offer(MALLORY, BOB, 0x11).refusal, 4, "which it cannot take back")
    eq(offer(MALLORY, STRANGER, 0x12).refusal, 2, "an address that is not allowed is not by a proxy either")
    s = c.stop()
    eq((s["stale"], s["control"]["denied"]), (1, 0), "each is counted")


def test_amplified():
    """READs from a forged address: their answers would be many times what asks for them."""
    c, wire = collector("--read"), Wire()
    eq(offer(MALLORY, BOB, 0x77).refusal, 8, "nobody but itself has a READ answered to an address")
    own = offer(BOB, BOB, 0x78)
    wire.send(bth(READ_REQUEST, own.qpn, own.psn) + struct.pack(">QII", own.va, own.key, 1024), BOB)
    ok(wire.want(BOB, lambda p: p[0] in (0x0d, 0x10) and len(p) > 1024), "who asked by itself reads")
    c.stop()
    c = collector("--read", "--proxy", f"{MALLORY}/32")
    claim = offer(MALLORY, BOB, 0x77)
    eq((claim.refusal, claim.answer[71]), (0, 6), "by a proxy there are writes and atomics, no READs")
    wire.comes(BOB)
    body = bth(READ_REQUEST, claim.qpn, claim.psn) + struct.pack(">QII", claim.va, claim.key, SLOTS * 8)
    wire.send(body, BOB)
    ok(wait(lambda: c.counters()["causes"]["qp_access"] == 1), "a READ by it is refused")
    came = wait(lambda: wire.comes(BOB))
    ok(0 < came <= len(body) + 46, "and brings no more than it was", came)
    eq(c.stop()["read_responses"], 0, "nothing was read")


def test_forged_request():
    """A request for a connection by the address, queue pair and nothing else of a peer that is connected."""
    c, wire = collector(), Wire()
    bob = Connected(wire, BOB, 0x1234, 0x11)
    bob.write(1, 10)
    ok(wait(lambda: values(1) == {1: 10}), "connected")
    wire.send(req(BOB, 0xdead, 0x11), BOB)
    ok(wire.want(BOB, is_cm(cm.REP, 0xdead)), "what is forged is answered to the peer, who did not ask")
    bob.write(2, 20)
    ok(wait(lambda: values(2) == {2: 20}), "its connection stands")
    s = c.counters()
    eq((s["cm"]["stale"], s["causes"].get("unknown_qp", 0)), (0, 0), "nothing ended")
    wire.send(cm.datagram(cm.mad(cm.REJ, 0xdead, 0xdead, struct.pack(">IBBH", 0, 1 << 6, 0, 6))), BOB)
    bob.write(3, 30)
    ok(wait(lambda: values(3) == {3: 30}), "then too")
    c.stop()


def test_refused_flood():
    """Requests from addresses that are not allowed, or from one that is, take nothing from the others."""
    c, wire = collector(), Wire()
    n, bob = 0, 0
    for call in range(6):
        for _ in range(700):
            wire.send(req(STRANGER, 0x9000 + n, 0x500 + n), STRANGER)
            n += 1
        wire.send(req(BOB, 0x100 + call, 0x700 + call), BOB)
        # Once: it is not sent again.
        bob += bool(wire.want(BOB, is_cm(cm.REP, 0x100 + call)))
    eq(bob, 6, "each request of an allowed peer is answered behind hundreds of others'")
    ok(wait(lambda: c.counters()["cm"]["denied"] == n), "these are counted", c.counters()["cm"])
    for i in range(300):
        wire.send(req(MALLORY, 0xa000 + i, 0xa00 + i), MALLORY)
    wire.send(req(BOB, 0x200, 0x800), BOB)
    ok(wire.want(BOB, is_cm(cm.REP, 0x200)), "one that is allowed has a share of its own, too")
    s = c.stop()
    ok(s["cm"]["limited"] > 0, "what is beyond it is counted", s["cm"])


def test_keys():
    """Every queue pair has a key of its own, which is worth nothing by another one."""
    c, wire = collector(), Wire()
    peers = [offer(BOB, BOB, 0x100 + i, UC) for i in range(8)] + [offer(MALLORY, MALLORY, 0x100 + i, UC) for i in range(8)]
    eq(len({p.key for p in peers}), 16, "sixteen queue pairs of one region have sixteen keys")
    by_cm = [Connected(wire, BOB, 0x300 + i, 0x300 + i) for i in range(4)]
    eq(len({p.key for p in peers + by_cm}), 20, "those by RDMA-CM are others")
    mallory, (at, data) = peers[-1], roce.entry(5, 50, SLOTS)
    for victim in (peers[0], by_cm[0], peers[-2]):
        wire.socket.send(mallory.write(at, data, key=victim.key))
    at, data = roce.entry(6, 60, SLOTS)
    wire.socket.send(mallory.write(at, data))
    ok(wait(lambda: values(6) == {6: 60}), "by its own key a peer writes")
    eq(values(5), {}, "by those of others it does not")
    s = c.counters()
    eq((s["causes"]["domain"], s["guesses"]), (3, 3), "which counts as guessing")
    key, qpn = peers[0].key, peers[0].qpn
    peers[0].tcp.close()
    ok(wait(lambda: sum(p["connected"] for p in c.counters()["peers"]) == 19), "one ends")
    wire.socket.send(mallory.write(*roce.entry(7, 70, SLOTS), key=key))
    ok(wait(lambda: c.counters()["causes"]["key"] == 1), "and its key is none any more")
    ok(qpn not in {p.qpn for p in peers[1:]} and values(7) == {}, "it writes nothing")
    c.stop()


def test_who_may():
    """Beyond the loopback it is to be said."""
    file = lab.path("last.plr")
    r = pathline.run("collect", "udp://127.0.0.1", file, "--allow", "nonsense")
    ok(r.returncode == 2 and '"--allow": "nonsense"' in r.stderr, "a prefix that is none is refused", r.stderr)
    with NS["b"]:
        for uri in ("packet:eth0", f"udp://{HERE}"):
            r = pathline.run("collect", uri, file)
            ok(r.returncode == 2 and "--allow 10.0.0.0/24" in r.stderr, f"{uri} without --allow: what to write", r.stderr)
    for uri in ("udp://127.0.0.1", "packet:lo"):
        with NS["b"]:
            p = lab.start([pathline.PATHLINE, "collect", "--listen", f":{TCP}", "--cm-port", "0", uri, file], stderr=-1, text=True)
        ok("collecting on" in p.stderr.readline(), f"{uri} needs none")
        eq(knock(IP[4]["a"], "a", HERE), None, "but takes nobody from elsewhere")
        if uri.startswith("udp"):
            eq(knock("127.0.0.5", "b", "127.0.0.1"), 0, "and this host")
        p.terminate()
        p.wait(LIMIT)


def knock(source, side, address):
    """The answer to who asks for himself; None where the connection is closed."""
    with NS[side]:
        tcp = socket.create_connection((address, TCP), timeout=LIMIT, source_address=(source, 0))
    try:
        tcp.sendall(roce.request("last", UC, source, bytes(6)))
        answer = roce.answer_from(tcp)
    except (BrokenPipeError, ConnectionResetError):
        answer = b""
    tcp.close()
    return answer[40] if len(answer) > 40 else None


def main():
    if os.geteuid() != 0:
        tap.skip_all("needs root")
    NS.update(network.pair("ra", IP))
    for side in "ab":
        MAC[side] = NS[side].mac("eth0")
    NS["a"].ip(f"addr add {MALLORY}/24 dev eth0")
    lab.run(test_claimed_first, test_amplified, test_forged_request, test_refused_flood, test_keys, test_who_may)
    return tap.end()


sys.exit(main())
