# SPDX-License-Identifier: BSD-2-Clause
"""One flow at several interfaces of a router: a bridge's port, the bridge, two ways on. A tap at each writes its packets down; then a
flow cache gets all of them in turns of its sources, and says what the sender and the kernel say.

usage: places.py PATHLINE [TEST…]
"""
import collections
import os
import random
import socket
import struct
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, network, pathline, tap, tapping  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import LIMIT, wait  # noqa: E402

CLIENT, SERVER = "10.79.0.1", "10.79.9.9"
ECHO, STREAM = 7001, 7002
OUT = 4096
POINTS = {"p0": 1, "br0": 2, "p1": 3, "p2": 4}
SEED = 20261129
NS = {side: network.Namespace(f"places-{side}", ipv6=False) for side in "arb"}


def make():
    """a - (p0, br0) r (p1, p2) - b: b's address is behind p1 until the route says p2."""
    network.join(NS["a"], "eth0", NS["r"], "p0")
    network.join(NS["r"], "p1", NS["b"], "eth1")
    network.join(NS["r"], "p2", NS["b"], "eth2")
    NS["r"].ip("link add br0 type bridge")
    NS["r"].ip("link set p0 master br0")
    NS["r"].up("p0")
    NS["r"].up("br0", "10.79.0.254/24")
    NS["a"].up("eth0", CLIENT + "/24")
    NS["a"].ip("route add default via 10.79.0.254")
    NS["b"].ip(f"addr add {SERVER}/32 dev lo")
    for i in (1, 2):
        NS["r"].up(f"p{i}", f"10.79.{i}.254/24")
        NS["b"].up(f"eth{i}", f"10.79.{i}.2/24")
    NS["b"].ip("route add default via 10.79.1.254")
    NS["r"].ip(f"route add {SERVER} via 10.79.1.2")
    NS["r"].sysctl("ipv4.ip_forward", 1)
    for side in "rb":
        NS[side].sysctl("ipv4.conf.all.rp_filter", 0)
        NS[side].sysctl("ipv4.conf.default.rp_filter", 0)
        for interface in ("p1", "p2") if side == "r" else ("eth1", "eth2"):
            NS[side].sysctl(f"ipv4.conf.{interface}.rp_filter", 0)
    network.wait_for_carrier((NS["a"], "eth0"), (NS["r"], "p0"), (NS["b"], "eth1"), (NS["b"], "eth2"))
    ok(wait(lambda: NS["a"].sh(f"ping -q -c 1 -W 1 {SERVER}", check=False).find(" 1 received") > 0), "the router forwards")


def tapped(name, interfaces, rule, traffic):
    """What a tap at each interface wrote down while there was traffic: point to records."""
    taps = {i: tapping.Tap(NS["r"], f"{name}-{i}", "--point", str(POINTS[i]), "--rule", f"take net={SERVER} proto=1", "--rule", rule, "--rule", "skip",
                           "--to", f"file:{lab.path(f'{name}-{i}.pkt96')}?kind=pkt96", f"packet:{i}?ring=65536") for i in interfaces}
    traffic()
    NS["a"].sh(f"ping -q -c 1 {SERVER}")
    ok(wait(lambda: all(one.look()["rules"][0]["matches"] > 0 for one in taps.values())), f"{name}: the echo behind it is at all of them")
    for i, one in taps.items():
        stats = one.end()
        eq(stats["ports"]["kernel_drops"], 0, f"{name}: {i} loses nothing")
    found = {}
    for i in interfaces:
        with open(lab.path(f"{name}-{i}.pkt96"), "rb") as f:
            data = f.read()
        found[i] = [r for r in (data[at:at + 96] for at in range(0, len(data), 96)) if r[44] != 1]
    return found


def time_of(record):
    return struct.unpack("<Q", record[:8])[0]


def in_turns(rings, dice):
    """Parts of each interface's records, one interface after the other, none half a second ahead of another."""
    rings = [list(ring) for ring in rings.values()]
    while any(rings):
        limit = min(time_of(ring[0]) for ring in rings if ring) + 500_000_000
        ring = dice.choice([ring for ring in rings if ring])
        for _ in range(dice.randrange(1, 80)):
            if ring and time_of(ring[0]) < limit:
                yield ring.pop(0)


def flows_of(name, rings, seed):
    """Records of the flows, and counters, of a flow cache that gets them as datagrams of a tap elsewhere."""
    port = lab.free_udp_port()
    t = tapping.Printing(NS["r"], f"{name}-flows-{seed}", "tap", "tapping", "tap", "--stats", "-o", "jsonl", "--flows", f"udp://127.0.0.1:{port}")
    records, sent = list(in_turns(rings, random.Random(seed))), 0
    with NS["r"], socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect(("127.0.0.1", port))
        for at in range(0, len(records), 10):
            some = records[at:at + 10]
            s.send(struct.pack("<IBBHIIQQ", 0x314B5054, 1, 2, len(some), 1, sent, time_of(some[0]), 0) + b"".join(some))
            sent += 1
            if sent % 100 == 0:
                wait(lambda n=sent: t.look()["tmpkt"]["datagrams"] >= n)
    wait(lambda: t.look()["tmpkt"]["datagrams"] >= sent)
    tapping.Tap.end(t)
    eq(t.stats["tmpkt"]["accepted"], sent, f"{name}: the cache got all of them")
    n = t.stats["flows"]
    eq(n["packets"], sum(r["records"] for r in t.records) + n["elsewhere"], f"{name}: every packet is in a record, or was counted elsewhere")
    return t.records, n


def echoes(sizes):
    """A datagram of each size, and as many bytes back."""
    def serve():
        with NS["b"], socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.bind((SERVER, ECHO))
            s.settimeout(LIMIT)
            ready.set()
            for _ in sizes:
                data, peer = s.recvfrom(2048)
                s.sendto(data, peer)

    ready, thread = threading.Event(), threading.Thread(target=serve)
    thread.start()
    ready.wait(LIMIT)
    with NS["a"], socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(LIMIT)
        s.connect((SERVER, ECHO))
        for size in sizes:
            s.send(bytes(size))
            s.recv(2048)
    thread.join(LIMIT)


def retransmitted(side):
    lines = NS[side].sh("cat /proc/net/snmp").splitlines()
    names, values = (line.split() for line in lines if line.startswith("Tcp:"))
    return int(values[names.index("RetransSegs")])


def tcp_transfer(n_bytes):
    def serve():
        with NS["b"], socket.create_server((SERVER, STREAM)) as server:
            ready.set()
            s, _ = server.accept()
            with s:
                while data := s.recv(1 << 16):
                    got.append(len(data))

    got, ready = [], threading.Event()
    thread = threading.Thread(target=serve)
    thread.start()
    ready.wait(LIMIT)
    with NS["a"], socket.create_connection((SERVER, STREAM)) as s:
        s.sendall(bytes(n_bytes))
    thread.join(LIMIT)
    eq(sum(got), n_bytes, "a TCP transfer is whole")


def test_one_flow():
    """At a veth, at its bridge and at the way on: one flow, with the bytes of one interface."""
    dice = random.Random(SEED)
    sizes = [dice.randrange(1, 1400) for _ in range(300)]
    before = retransmitted("a") + retransmitted("b")

    def traffic():
        echoes(sizes)
        tcp_transfer(2_000_000)
    rings = tapped("one", ("p0", "br0", "p1"), f"take net={SERVER}", traffic)
    resent = retransmitted("a") + retransmitted("b") - before
    ok(all(len(ring) > 2 * len(sizes) for ring in rings.values()), f"all three saw them: {[len(r) for r in rings.values()]}")
    for seed in range(3):
        flows, n = flows_of("one", rings, seed)
        eq(sorted((f["proto"], f["pkts_fwd"] > 0, f["pkts_rev"] > 0) for f in flows), [(6, True, True), (17, True, True)], f"{seed}: two flows")
        tcp, udp = sorted(flows, key=lambda f: f["proto"])
        want = sum(sizes) + 28 * len(sizes)
        eq((udp["pkts_fwd"], udp["bytes_fwd"], udp["pkts_rev"], udp["bytes_rev"]), (300, want, 300, want), f"{seed}: as the sender counted")
        eq((udp["elsewhere_fwd"], udp["elsewhere_rev"]), (600, 600), f"{seed}: the others' are told apart")
        sums = [sum(struct.unpack_from("<H", r, 58)[0] for r in ring if r[44] == 6) for ring in rings.values()]
        eq({tcp["bytes_fwd"] + tcp["bytes_rev"]}, set(sums), f"{seed}: TCP has the bytes that each interface saw")
        # Segments that overtook each other may be told as out of order instead.
        ok(tcp["retrans_fwd"] + tcp["retrans_rev"] <= resent, f"{seed}: no more retransmissions than the kernel made", (tcp, resent))
        for f in flows:
            places = [f[f"also_{i}"] for i in range(1, 7) if f[f"also_{i}"] != 0]
            eq(sorted([f["obs"], f["obs_rev"], *places]), sorted(p | way for p in (1, 2, 3) for way in (0, OUT)), f"{seed}: all places are named")
            eq(f["also_more"], 0, f"{seed}: and no more")
        eq(n["moved"], 0, f"{seed}: nothing moved")


def test_moves():
    """The route changes in the midst of a flow: what left by one interface and what leaves by the other is one flow, and whole."""
    sent = collections.Counter()

    def traffic():
        pause = threading.Event()
        with NS["b"]:
            sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sink.bind((SERVER, ECHO))
        with sink, NS["a"], socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.connect((SERVER, ECHO))
            for way in ("10.79.1.2", "10.79.2.2"):
                NS["r"].ip(f"route replace {SERVER} via {way}")
                for i in range(180):
                    size = 100 + i
                    s.send(bytes(size))
                    sent["packets"] += 1
                    sent["bytes"] += size + 28
                    pause.wait(0.02)
    rings = tapped("moves", ("p1", "p2"), f"take net={SERVER} proto=17 dport={ECHO}", traffic)
    NS["r"].ip(f"route replace {SERVER} via 10.79.1.2")
    eq([len(ring) for ring in rings.values()], [180, 180], "half of them by each way")
    for seed in range(3):
        flows, n = flows_of("moves", rings, seed)
        eq([(f["pkts_fwd"], f["bytes_fwd"]) for f in flows], [(sent["packets"], sent["bytes"])], f"{seed}: one flow, as the sender counted")
        eq([(f["obs"], f["also_1"], f["elsewhere_fwd"]) for f in flows], [(3 | OUT, 4 | OUT, 0)], f"{seed}: both places are told")
        eq(n["moved"], 1, f"{seed}: it moved once")


make()
lab.run(test_one_flow, test_moves)
sys.exit(tap.end())
