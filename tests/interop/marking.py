# SPDX-License-Identifier: BSD-2-Clause
"""`pathline meter --read` on captures of marked packets that scapy makes: loss and delay of every flow and block as they were
made, for each place that a mark can have, and what is wrong with captures is said.

usage: marking.py PATHLINE
"""
import collections
import functools
import json
import os
import random
import shutil
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, pathline, tap, with_scapy  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

SEED = 9341
SECOND = 10**9
ZERO = 1_700_000_000  # an even block of 1 s
BLOCKS = 6
DELAY = 10_000_000
MAC = "02:00:00:00:00:01"


def write(path, packets):
    """(ns, bytes) as a capture with nanoseconds."""
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xa1b23c4d, 2, 4, 0, 0, 65535, 1))
        for ns, data in sorted(packets):
            f.write(struct.pack("<IIII", ns // SECOND, ns % SECOND, len(data), len(data)) + data)
    return path


class Carrier:
    """A place for marks: packets of a flow with bits there, by scapy's own fields."""

    def __init__(self, name, args, make, two=False):
        self.name, self.args, self.two = name, args, two
        self.make = functools.cache(make)


def carriers():
    from scapy.all import IP, IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrHopByHop, HBHOptUnknown, Pad1, UDP, Raw, Ether

    def rest(flow):
        return UDP(sport=1000 + flow, dport=2000) / Raw(b"x" * 100)

    def v4(flow, **fields):
        return bytes(Ether(src=MAC, dst=MAC) / IP(src=f"10.0.0.{flow + 1}", dst="192.0.2.1", **fields) / rest(flow))

    def v6(flow, extension=None, **fields):
        ip = IPv6(src=f"2001:db8::{flow + 1}", dst="2001:db8:1::1", **fields)
        return bytes(Ether(src=MAC, dst=MAC) / (ip / extension if extension is not None else ip) / rest(flow))

    def option(flow, bits):
        word = (0x12300 + flow) << 12 | (bits & 1) << 11 | (bits >> 1 & 1) << 10
        return HBHOptUnknown(otype=0x12, optlen=4, optdata=struct.pack(">I", word))

    def labels(flow, bits, below):
        """Behind two labels of the way, and with another one below where asked for: S is on the last."""
        from scapy.contrib.mpls import MPLS
        marked = MPLS(label=1000 + bits, cos=5, s=0 if below else 1, ttl=60)
        stack = MPLS(label=16000, s=0, ttl=60) / MPLS(label=16001, s=0, ttl=60) / marked
        inner = IP(src=f"10.0.0.{flow + 1}", dst="192.0.2.1") / rest(flow)
        return bytes(Ether(src=MAC, dst=MAC, type=0x8847) / (stack / MPLS(label=77, s=1, ttl=60) if below else stack) / inner)

    return [
        Carrier("DSCP of IPv4", ["--bit", "dscp:0"], lambda flow, bits: v4(flow, tos=0xb8 & ~4 | (bits & 1) << 2)),
        Carrier("two bits of DSCP", ["--bit", "dscp:0", "--bit", "dscp:1"],
                lambda flow, bits: v4(flow, tos=(bits & 1) << 2 | (bits >> 1) << 3), True),
        Carrier("the reserved bit of IPv4", ["--bit", "ipv4-reserved"], lambda flow, bits: v4(flow, flags="evil" if bits & 1 else 0)),
        Carrier("the traffic class", ["--bit", "tclass:2"], lambda flow, bits: v6(flow, tc=(bits & 1) << 2)),
        Carrier("AltMark in Hop-by-Hop Options", ["--bit", "altmark"],
                lambda flow, bits: v6(flow, IPv6ExtHdrHopByHop(options=[option(flow, bits)])), True),
        Carrier("AltMark behind padding in Destination Options", ["--bit", "altmark"],
                lambda flow, bits: v6(flow, IPv6ExtHdrDestOpt(options=[Pad1(), Pad1(), option(flow, bits)])), True),
        Carrier("synonymous flow labels of MPLS", ["--bit", "sfl:1000/1001"], lambda flow, bits: labels(flow, bits & 1, False)),
        Carrier("four labels, above another one", ["--bit", "sfl:1000/1001/1002/1003"], lambda flow, bits: labels(flow, bits, True), True),
    ]


def send(dice, flows, per_block):
    """[(flow, ns)], ascending within a flow; blocks with an edge of nothing around them."""
    sent = []
    for flow in range(flows):
        for block in range(1, BLOCKS - 1):
            for i in range(per_block):
                sent.append((flow, (ZERO + block) * SECOND + (2 * i + 1) * SECOND // (2 * per_block) + dice.randrange(1000)))
    return sorted(sent, key=lambda s: s[1])


def marked(method, sent):
    """[(flow, ns, bits, pulse)] by the rules of the method."""
    pulsed, out = {}, []
    for flow, ns in sent:
        block, into = divmod(ns, SECOND)
        pulse = method != "step" and into >= SECOND // 2 and pulsed.get(flow) != block
        if pulse:
            pulsed[flow] = block
        colour = block & 1
        bits = colour ^ pulse if method == "multiplexed" else colour | (2 if pulse and method == "double" else 0)
        out.append((flow, ns, bits, pulse))
    return out


def network(dice, packets):
    """What arrives, and per flow and block: sent, lost, delay of the pulse or None."""
    arrived, truth = [], {}
    for flow, ns, bits, pulse in packets:
        t = truth.setdefault((flow, ns // SECOND), {"sent": 0, "lost": 0, "delay": None})
        t["sent"] += 1
        delay = DELAY + dice.randrange(20_000_000)  # packets overtake each other
        if dice.random() < 0.02:
            t["lost"] += 1
            continue
        if pulse:
            t["delay"] = delay
        arrived.append((flow, ns + delay, bits))
    return arrived, truth


EDGES = [(ZERO - 1) * SECOND, (ZERO + BLOCKS + 1) * SECOND]


def around():
    """Packets that are no traffic of ours: captures begin before it and end behind it."""
    from scapy.all import Ether, Raw
    return [(ns, bytes(Ether(src=MAC, dst=MAC, type=0x0806) / Raw(bytes(28)))) for ns in EDGES]


def pair(name, carrier, packets, arrived):
    a = write(lab.path(f"{name}-a.pcap"), [(ns, carrier.make(flow, bits)) for flow, ns, bits, _ in packets] + around())
    b = write(lab.path(f"{name}-b.pcap"), [(ns, carrier.make(flow, bits)) for flow, ns, bits in arrived] + around())
    return ["--read", f"in={a}", "--read", f"out={b}"]


def key_of(row):
    """Number of the flow, and block."""
    return (row["flow_id"] - 0x12300 if "flow_id" in row else row["sport"] - 1000, row["block"])


def results(*args):
    run = pathline.run("meter", "-o", "jsonl", *args)
    return pathline.jsonl(run.stdout), run


def test_carriers():
    for n, carrier in enumerate(carriers()):
        for method in ("step", "multiplexed", "double"):
            if carrier.two != (method == "double") and "altmark" not in carrier.args:
                continue
            dice = random.Random(SEED + n)
            packets = marked(method, send(dice, 2, 40))
            arrived, truth = network(dice, packets)
            rows, run = results("--method", method, *carrier.args, *pair(f"{n}-{method}", carrier, packets, arrived))
            got = {key_of(row): (row.get("sent"), row.get("loss"), row.get("delay_ns"), row.get("alarms")) for row in rows}
            want = {key: (t["sent"], t["lost"], t["delay"] if method != "step" else None, None) for key, t in truth.items()}
            eq(got, want, f"{carrier.name}, {method}: loss and delay of each block and flow")
            eq(run.returncode, 0, run.stderr.splitlines()[-1] if run.stderr else "exit code")


def test_option_by_tshark():
    """The words that pathline reads are those that tshark shows."""
    carrier = carriers()[4]
    packets = marked("double", send(random.Random(SEED), 2, 4))
    path = write(lab.path("option.pcap"), [(ns, carrier.make(flow, bits)) for flow, ns, bits, _ in packets])
    lines = subprocess.run(["tshark", "-n", "-r", path, "-Y", "ipv6.opt.type == 0x12", "-T", "fields", "-e", "ipv6.opt.type",
                            "-e", "ipv6.opt.length"], capture_output=True, text=True, check=True).stdout.splitlines()
    eq({line for line in lines}, {"18\t4"} if lines and "x" not in lines[0] else {"0x12\t4"}, "tshark finds an option of type 0x12 and length 4")
    eq(len(lines), len(packets), "in every packet")
    records = pathline.jsonl(pathline.run("meter", "--method", "double", "--bit", "altmark", "--records", "-o", "jsonl", "--read", path).stdout)
    eq(sum(r["packets"] for r in records), len(packets), "and pathline counts every one")
    eq({r["flow_id"] for r in records}, {0x12300, 0x12301}, "under its FlowMonID")


# Packets of a public capture with the option: FlowMonID, L and D by the number of the network and the host. They are those that
# gerar_pacotes.py of github.com/GiovaniGb/WinDump-trabalho makes to test a dissector (BSD-2-Clause, (c) 2026 Giovani Grazziotin
# Bazzanella); six more packets of it have IOAM or PDM alone.
PUBLIC = {(1, 1): (0xabcde, 1, 0), (1, 3): (0xabcde, 0, 1), (1, 5): (0x12345, 1, 1), (4, 1): (0xaaaaa, 1, 0), (4, 3): (0xbbbbb, 0, 1),
          (5, 1): (0xabcde, 1, 0), (5, 3): (0xabcde, 0, 1), (5, 5): (0xfedcb, 1, 1), (6, 1): (0x11111, 1, 0)}


def test_public():
    """The option as others make it, in either header, beside IOAM and PDM."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "captures", "altmark-public.pcap")
    run = pathline.run("meter", "--method", "double", "--bit", "altmark", "--records", "-o", "jsonl", "--read", path)
    rows = [r for r in pathline.jsonl(run.stdout) if r["packets"]]
    got = {tuple(int(n) for n in r["src"].removeprefix("2001:db8:").split("::")): (r["flow_id"], r["block"] % 2, r["pulses"]) for r in rows}
    eq(got, PUBLIC, "FlowMonID, L and D of each packet")
    eq(sum(r["packets"] for r in rows), len(PUBLIC), "and no other packet has one")


def test_three_points():
    carrier, dice = carriers()[0], random.Random(SEED)
    packets = marked("step", send(dice, 1, 200))
    middle = [(flow, ns + DELAY, bits) for i, (flow, ns, bits, _) in enumerate(packets) if i % 20 != 0]
    last = [(flow, ns + DELAY, bits) for i, (flow, ns, bits) in enumerate(middle) if i % 38 != 0]
    args = pair("three", carrier, packets, middle)
    c = write(lab.path("three-c.pcap"), [(ns, carrier.make(flow, bits)) for flow, ns, bits in last] + around())
    rows, run = results(*args, "--read", f"far={c}")
    eq([(r["from"], r["to"], r["loss"]) for r in rows if r["block"] == ZERO + 1],
       [("in", "out", 10), ("out", "far", 5), ("in", "far", 15)], "losses of links add up to that of the path")
    ok("in to far: sent 800" in run.stderr, "totals are told", run.stderr)


def turned(frame):
    """An IPv4 frame of the flow in the opposite direction: addresses and ports are swapped, so no checksum changes."""
    ip = frame[14:]
    return frame[:14] + ip[:12] + ip[16:20] + ip[12:16] + ip[22:24] + ip[20:22] + ip[24:]


def test_two_way():
    """Both directions of flows between two points whose clocks differ: losses of each direction, and two-way delays in which
    the clocks cancel."""
    carrier, ahead = carriers()[1], 80_000_000  # the second clock
    dice = random.Random(SEED)
    there = marked("double", send(dice, 3, 60))
    back = marked("double", send(dice, 3, 60))
    came, truth = network(dice, there)
    came_back, truth_back = network(dice, back)
    a = [(ns, carrier.make(flow, bits)) for flow, ns, bits, _ in there]
    a += [(ns - ahead, turned(carrier.make(flow, bits))) for flow, ns, bits in came_back]
    b = [(ns + ahead, carrier.make(flow, bits)) for flow, ns, bits in came]
    b += [(ns, turned(carrier.make(flow, bits))) for flow, ns, bits, _ in back]
    files = ["--read", "a=" + write(lab.path("round-a.pcap"), a + around()), "--read", "b=" + write(lab.path("round-b.pcap"), b + around())]
    usual = ["--method", "double", *carrier.args, "--clock-error", "100ms", *files]
    rows, run = results("--back", "192.0.2.0/24", *usual)
    got, got_back, rounds = {}, {}, {}
    for r in rows:
        here = got if (r["from"], r["to"]) == ("a", "b") else got_back
        key = ((r["sport"] if here is got else r["dport"]) - 1000, r["block"])
        here[key] = (r["sent"], r["loss"], r.get("delay_ns"), r.get("alarms"))
        if "two_way_ns" in r:
            rounds[key] = r["two_way_ns"]
    moved = lambda t, by: {key: (v["sent"], v["lost"], None if v["delay"] is None else v["delay"] + by, None) for key, v in t.items()}  # noqa: E731
    eq(got, moved(truth, ahead), "loss on the way there; its delay has the difference of the clocks")
    eq(got_back, moved(truth_back, -ahead), "loss on the way back, and its delay")
    want = {k: truth[k]["delay"] + truth_back[k]["delay"] for k in truth if None not in (truth[k]["delay"], truth_back[k]["delay"])}
    eq(rounds, want, "two-way delay is exact")
    ok(len(want) > 3 and "a and b: two-way delay" in run.stderr, "and told at the end", run.stderr)
    rows, _ = results("--back", "2001:db8::/32", *usual)
    ok(rows and all("two_way_ns" not in r and (r["from"], r["to"]) == ("a", "b") for r in rows), "no flow comes from elsewhere")
    for back, said in ((["2001:db8::/32"], "no packet is from the addresses"), (["10.0.0.0/24", "192.0.2.1"], "none goes the other way"),
                       (["10.0.0.0/24"], "below 0 and left out")):
        rows, run = results(*(x for b in back for x in ("--back", b)), *usual)
        ok(said in run.stderr and all(r.get("two_way_ns", 0) >= 0 for r in rows), f"--back {' '.join(back)}: {said}", run.stderr)
    # Three points: each part of the way has its two-way delay.
    middle = write(lab.path("round-m.pcap"), [(ns + DELAY // 2, d) for ns, d in a[:len(there)]] +
                   [(ns - DELAY // 2, d) for ns, d in a[len(there):]] + around())
    rows, _ = results("--back", "192.0.2.1", *usual[:-2], "--read", "m=" + middle, *usual[-2:])
    first = [r["two_way_ns"] for r in rows if r.get("two_way_ns") and {r["from"], r["to"]} == {"a", "m"}]
    whole = {(r["sport"] if r["from"] == "a" else r["dport"], r["block"]): r["two_way_ns"] for r in rows
             if "two_way_ns" in r and {r["from"], r["to"]} == {"a", "b"}}
    eq((len(first) > 3, set(first)), (True, {DELAY}), "from a to m and back it is what the packets took")
    eq({(port - 1000, block): ns for (port, block), ns in whole.items()}, want, "and of the whole way")
    bad = pathline.run("meter", "--back", "10.1.0.0/40", *files)
    eq((bad.returncode, "--back 10.1.0.0/40: a prefix of IPv4 or IPv6" in bad.stderr), (2, True), "a prefix that cannot be is refused")


def test_cyclic():
    """The number of the block modulo 4 in two bits: packets of 1.2 s in blocks of 1 s, exact where one bit is refused."""
    carrier, dice = carriers()[1], random.Random(SEED)
    sent = send(dice, 2, 60)
    packets = [(flow, ns, ns // SECOND & 3, False) for flow, ns in sent]
    kept = [p for p in packets if dice.random() > 0.03]
    arrived = [(flow, ns + SECOND + dice.randrange(400_000_000), bits) for flow, ns, bits, _ in kept]
    usual = [*carrier.args, "--delay", "1.2s", "--deviation", "60ms", *pair("cyclic", carrier, packets, arrived)]
    rows, run = results("--method", "cyclic", *usual)
    want = {}
    for flow, ns, _, _ in packets:
        want.setdefault((flow, ns // SECOND), [0, 0])[0] += 1
    for flow, ns, _, _ in set(packets) - set(kept):
        want[flow, ns // SECOND][1] += 1
    eq({key_of(r): [r["sent"], r["loss"]] for r in rows if r["sent"]}, want, "loss of each block")
    eq((run.returncode, {r.get("alarms") for r in rows}), (0, None) if not rows else (0, {None}), "without alarms")
    run = pathline.run("meter", "--method", "double", *usual)
    ok(run.returncode == 2 and "half of the period" in run.stderr, "colours of one bit are refused", run.stderr)
    for bits, words in ((["--bit", "dscp:0"], "cyclic marking has two bits"), (["--bit", "altmark"], "those of altmark have another meaning")):
        run = pathline.run("meter", "--method", "cyclic", *bits, *usual[4:])
        ok(run.returncode == 2 and words in run.stderr, f"cyclic marking with {bits[1]}: is told what is missing", run.stderr)


def test_network():
    """Two ways from a to d: the flow takes either packet by packet, and one of them loses."""
    carrier, dice = carriers()[0], random.Random(SEED)
    packets = marked("step", send(dice, 1, 200))
    ways = [dice.randrange(2) for _ in packets]
    seen = [[(flow, ns + DELAY, bits) for (flow, ns, bits, _), way in zip(packets, ways) if way == n] for n in (0, 1)]
    kept = [p for i, p in enumerate(seen[1]) if i % 10 != 0]
    lost = len(seen[1]) - len(kept)
    args = ["--read", "a=" + write(lab.path("net-a.pcap"), [(ns, carrier.make(flow, bits)) for flow, ns, bits, _ in packets] + around())]
    for name, arrived in (("b", seen[0]), ("c", seen[1]), ("d", sorted([(f, ns + DELAY, b) for f, ns, b in seen[0] + kept]))):
        args += ["--read", f"{name}=" + write(lab.path(f"net-{name}.pcap"), [(ns, carrier.make(flow, bits)) for flow, ns, bits in arrived] + around())]
    rows, run = results(*args, *(x for link in ("a>b", "a>c", "b>d", "c>d") for x in ("--link", link)))
    sums = {}
    for row in rows:
        sums[(row["from"], row["to"])] = sums.get((row["from"], row["to"]), 0) + row["loss"]
    eq(sums, {("a", "b+c"): 0, ("b+c", "d"): lost, ("a", "d"): lost}, "loss is on the cluster where it was")
    links = [x for link in ("a>b", "a>c", "b>d", "c>d") for x in ("--link", link)]
    last = write(lab.path("net-e.pcap"), sorted([(ns + DELAY, carrier.make(f, b)) for i, (f, ns, b) in enumerate(sorted(
        [(f, ns + DELAY, b) for f, ns, b in seen[0] + kept], key=lambda p: p[1])) if i % 7]) + around())
    behind = len(seen[0] + kept) - (len(seen[0] + kept) * 6 // 7)
    rows, run = results(*args, "--read", f"e={last}", *links, "--link", "d>e", "--zoom", "b+c>e", "--zoom", "a>d")
    sums = collections.Counter()
    for row in rows:
        sums[row["from"], row["to"]] += row["loss"]
    eq(sums[("a", "d")], lost, "zoomed out: the two clusters between a and d")
    ok(behind - 1 <= sums[("b+c", "e")] - lost <= behind + 1 and sums[("b+c", "e")] == sums[("b+c", "d")] + sums[("d", "e")], "and those behind b and c", sums)
    for zoom, said in (("b>d", "the part of the network is b+c>d"), ("a>x", "names of points"), ("a", "FROM>TO"), ("a+>d", "FROM>TO"), ("d>a", "d>e"), ("e>a", "no way leads")):
        run = pathline.run("meter", *args, "--read", f"e={last}", *links, "--link", "d>e", "--zoom", zoom)
        ok(run.returncode == 2 and said in run.stderr, f"--zoom {zoom} is refused", run.stderr)
    rows, run = results(*args[:2], *args[4:6], *args[6:8], "--zoom", "a>c")
    eq({(r["from"], r["to"]) for r in rows}, {("a", "c"), ("c", "d"), ("a", "d")}, "a part of a path")
    run = pathline.run("meter", *args, "--link", "a>x")
    ok(run.returncode == 2 and "a>x" in run.stderr, "a link to no capture is refused", run.stderr)


def test_segment_routing():
    """Segment Routing: the packet has another destination on each segment, and is of the same flow on all of them."""
    from scapy.all import Ether, HBHOptUnknown, IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrSegmentRouting, UDP, Raw
    first, last = "2001:db8:5::1", "2001:db8:9::1"

    def frame(flow, bits, left):
        option = HBHOptUnknown(otype=0x12, optlen=4, optdata=struct.pack(">I", (0x12300 + flow) << 12 | (bits & 1) << 11 | (bits >> 1 & 1) << 10))
        routing = IPv6ExtHdrSegmentRouting(addresses=[last, first], segleft=left, lastentry=1)
        udp = UDP(sport=1000 + flow, dport=2000, chksum=1) / Raw(b"x" * 100)
        return bytes(Ether(src=MAC, dst=MAC) / IPv6(src="2001:db8::1", dst=first if left else last) / IPv6ExtHdrDestOpt(options=[option]) / routing / udp)

    packets = marked("double", send(random.Random(SEED), 3, 40))
    arrived, truth = network(random.Random(SEED), packets)
    args = ["--read", "in=" + write(lab.path("srv6-a.pcap"), [(ns, frame(flow, bits, 1)) for flow, ns, bits, _ in packets] + around()),
            "--read", "out=" + write(lab.path("srv6-b.pcap"), [(ns, frame(flow, bits, 0)) for flow, ns, bits in arrived] + around())]
    rows, run = results("--method", "double", "--bit", "altmark", *args)
    eq({key_of(r): (r.get("sent"), r.get("loss"), r.get("delay_ns"), r.get("alarms")) for r in rows},
       {key: (t["sent"], t["lost"], t["delay"], None) for key, t in truth.items()}, "loss and delay over a segment's end: " + run.stderr)
    eq({(r["src"], r["dst"]) for r in rows}, {("2001:db8::1", last)}, "to the last segment")


def test_faults():
    carrier, dice = carriers()[0], random.Random(SEED)
    packets = marked("step", send(dice, 1, 100))
    arrived = [(flow, ns + DELAY, bits) for flow, ns, bits, _ in packets]

    unmarked = [(flow, ns, 0, False) for flow, ns, _, _ in packets]
    rows, run = results(*pair("unmarked", carrier, unmarked, [(f, ns + DELAY, 0) for f, ns, _, _ in unmarked]))
    ok(rows and all("bit-in-use" in r["alarms"] for r in rows if r["sent"] > 0), "traffic without marks is seen to have none", rows[:2])
    ok("bit-in-use" in run.stderr, "and the cause is told", run.stderr)

    late = [(flow, ns + 37 * SECOND, bits) for flow, ns, bits in arrived]
    rows, run = results(*pair("tai", carrier, packets, late))
    ok("missing" in run.stderr and "beyond-guard" in run.stderr, "clocks 37 s apart are an alarm", run.stderr)

    rows, run = results(*pair("slow", carrier, packets, [(f, ns + 300_000_000, b) for f, ns, b in arrived]))
    ok(all("beyond-guard" in r.get("alarms", "") for r in rows if r.get("received")), "a delay above the guard band is an alarm", rows[:2])
    ok(all("mean_ns" not in r for r in rows), "and has no mean delay")

    duplicated = arrived + arrived[150:155]
    rows, _ = results(*pair("twice", carrier, packets, duplicated))
    eq([r["loss"] for r in rows if r["block"] == ZERO + 2], [-5], "duplicates are negative loss")
    ok(any("negative-loss" in r.get("alarms", "") for r in rows), "which is an alarm")


def test_clocks():
    """A clock that is wrong by periods moves packets to other blocks of their colour: no numbers, whichever way it is wrong."""
    carrier, dice = carriers()[0], random.Random(SEED)
    packets = marked("step", send(dice, 3, 100))
    far = [(ns, data) for ns, (_, data) in zip([(ZERO - 60) * SECOND, (ZERO + 60) * SECOND], around())]
    for periods in (2, 4, 37, -2, -36):
        arrived = [(flow, ns + DELAY + periods * SECOND, bits) for flow, ns, bits, _ in packets]
        a = write(lab.path("clock-a.pcap"), [(ns, carrier.make(flow, bits)) for flow, ns, bits, _ in packets] + far)
        b = write(lab.path("clock-b.pcap"), [(ns, carrier.make(flow, bits)) for flow, ns, bits in arrived] + far)
        rows, run = results("--read", a, "--read", b)
        ok(rows and all("clock-fault" in r.get("alarms", "") and "loss" not in r for r in rows), f"a clock {periods} periods off is an alarm", rows[:2])
        ok("lost 0 in 0 of" in run.stderr, "and nothing is added up", run.stderr)
    # An outage at the beginning, and one at the end, are loss.
    for name, kept in (("begin", lambda ns: ns >= (ZERO + 3) * SECOND), ("end", lambda ns: ns < (ZERO + 2) * SECOND)):
        arrived = [(flow, ns + DELAY, bits) for flow, ns, bits, _ in packets if kept(ns)]
        rows, _ = results(*pair("outage-" + name, carrier, packets, arrived))
        eq((sum(r["loss"] for r in rows), {r.get("alarms") for r in rows}), (len(packets) - len(arrived), {None}), f"an outage at the {name} is loss")


def test_incomplete():
    """What a point could not count is no loss: it is told with the result."""
    carrier, dice = carriers()[0], random.Random(SEED)
    packets = marked("step", send(dice, 1, 100))
    # Another flow is at the second point only, and there before.
    arrived = [(flow, ns + delay, bits) for _, ns, bits, _ in packets for flow, delay in ((1, 0), (0, DELAY))]
    rows, _ = results("--flows", "1", *pair("room", carrier, packets, arrived))
    ok(rows and all("no-room" in r.get("alarms", "") for r in rows), "a flow without room at a point", rows[:2])

    packets = marked("step", send(dice, 1, 100))
    a = pair("back", carrier, packets, [])[1]
    # Those of one block stand behind all others in the file.
    arrived = [(ns + DELAY, carrier.make(flow, bits)) for flow, ns, bits, _ in packets]
    late = [p for p in arrived if p[0] // SECOND == ZERO + 2]
    b = write(lab.path("back-b.pcap"), [p for p in arrived if p not in late] + around())
    with open(b, "ab") as f:
        for ns, data in late:
            f.write(struct.pack("<IIII", ns // SECOND, ns % SECOND, len(data), len(data)) + data)
    rows, run = results("--read", a, "--read", b)
    ok(all("partial" in r.get("alarms", "") for r in rows if r["loss"] != 0), "packets that a capture has too late", rows)
    ok("packets not counted" in run.stderr, "are told", run.stderr)


def test_too_little():
    """A capture without a packet that can have the mark, and captures whose packets are cut: every block is partial, in no total, and the
    reason is told."""
    carrier, dice = carriers()[0], random.Random(SEED)
    packets = marked("step", send(dice, 2, 50))
    arrived = [(flow, ns + DELAY, bits) for flow, ns, bits, _ in packets]
    a, b = pair("little", carrier, packets, arrived)[1::2]
    write(lab.path("arp.pcap"), around())
    cut = lab.path("cut.pcap")
    with open(lab.path("little-b.pcap"), "rb") as f:
        whole_file = f.read()
    out, at = [whole_file[:24]], 24
    while at < len(whole_file):
        s, ns, n, wire = struct.unpack_from("<IIII", whole_file, at)
        out.append(struct.pack("<IIII", s, ns, min(n, 36), wire) + whole_file[at + 16:at + 16 + min(n, 36)])
        at += 16 + n
    with open(cut, "wb") as f:
        f.write(b"".join(out))
    for name, other, said, more in (("no marks", lab.path("arp.pcap"), "no packet can have the mark", []), ("36 bytes of a packet", cut, "cut too short", []),
                                    ("36 bytes, by hash", cut, "cut too short", ["--method", "hash"])):
        rows, run = results(*more, "--read", a, "--read", "b=" + other)
        eq({"partial" in r.get("alarms", "") for r in rows}, {True}, f"{name}: every block is partial")
        ok(said in run.stderr, "and it is told why", run.stderr)
        ok("lost 0 in 0 of" in run.stderr or more, "no total has them", run.stderr)
    rows, run = results("--read", a, "--read", b)
    eq((sum(r["loss"] for r in rows), {r.get("alarms") for r in rows}), (0, {None}), "nothing was lost")


def test_rules():
    """Packets that no rule matches are left alone, in captures as on an interface."""
    carrier = carriers()[0]
    packets = marked("step", send(random.Random(SEED), 3, 20))
    args = pair("rules", carrier, packets, [(f, ns + DELAY, b) for f, ns, b, _ in packets])
    for rules, ports in ((["take sport=1001"], {1001}), (["skip sport=1001", "take proto=udp"], {1000, 1002}), (["take proto=tcp"], set()), ([], {1000, 1001, 1002})):
        for method in ("step", "hash"):
            rows, run = results("--method", method, *[x for r in rules for x in ("--rule", r)], *args)
            eq({r["sport"] for r in rows}, ports, f"--method {method} --rule {rules}")


def test_fragments():
    """A router that makes fragments copies the mark: packets are counted once."""
    from scapy.all import Ether, IP, fragment
    carrier = carriers()[0]
    packets = marked("step", send(random.Random(SEED), 1, 50))
    a = [(ns, carrier.make(flow, bits)) for flow, ns, bits, _ in packets]
    b = []
    for ns, data in a:
        for i, part in enumerate(fragment(Ether(data)[IP], fragsize=48)):
            b.append((ns + DELAY + i, bytes(Ether(src=MAC, dst=MAC) / part)))
    rows, _ = results("--read", write(lab.path("frag-a.pcap"), a + around()), "--read", write(lab.path("frag-b.pcap"), b + around()))
    ok(len(b) > 2 * len(a), "each is several fragments")
    eq({r["loss"] for r in rows}, {0}, "and lost is none")


def test_joined():
    """Packets of TCP that a host's offloads join or have yet to take apart are fewer than the wire's: no loss is told of them."""
    from scapy.all import Ether, IP, TCP, UDP

    def frame(proto, flow, bits, size):
        return bytes(Ether(src=MAC, dst=MAC) / IP(src=f"10.0.0.{flow + 1}", dst="192.0.2.1", tos=(bits & 1) << 2) / proto(sport=1000 + flow, dport=2000) / bytes(size))

    packets = marked("step", send(random.Random(SEED), 2, 60))

    def captured(proto, joined, delay):
        made = []
        for flow in (0, 1):
            mine = [(ns, bits) for f, ns, bits, _ in packets if f == flow]
            n = joined if flow == 0 else 1
            for at in range(0, len(mine), n):
                made.append((mine[at][0] + delay, frame(proto if flow == 0 else UDP, flow, mine[at][1], (1000 if flow == 0 else 100) * n)))
        return write(lab.path(f"joined-{joined}-{delay}.pcap"), made + around())

    for proto, there, here, alarmed in ((TCP, 1, 3, True), (TCP, 3, 1, True), (UDP, 1, 3, True), (TCP, 1, 10, True), (TCP, 10, 10, True), (TCP, 1, 1, False)):
        rows, run = results("--read", captured(proto, there, 0), "--read", captured(proto, here, DELAY))
        what = f"{proto.__name__}, {there} packets in one and {here}"
        eq({("partial" in r.get("alarms", ""), r["loss"] == 0) for r in rows if r["sport"] == 1000}, {(alarmed, there == here)}, f"{what}: the blocks are not vouched for")
        if proto is TCP:
            eq({("partial" in r.get("alarms", ""), r["loss"]) for r in rows if r["sport"] == 1001}, {(False, 0)}, f"{what}: those of UDP are")
        eq("offloads" in run.stderr, alarmed, f"{what}: it is told")

    # Longer packets of another flow at one point only, and real loss: nothing is joined.
    sent = [(ns, frame(UDP, f, b, 1000)) for f, ns, b, _ in packets]
    other = [((ZERO + 2) * SECOND + i, frame(UDP, 7, 0, 9000)) for i in range(9)]
    for longer in (0, 1):
        files = [write(lab.path(f"longer-{longer}-{at}.pcap"), [(ns + at * DELAY, d) for k, (ns, d) in enumerate(sent) if at == 0 or k % 10] + around() + (other if at == longer else []))
                 for at in (0, 1)]
        rows, run = results("--read", files[0], "--read", files[1])
        eq(({"partial" in r.get("alarms", "") for r in rows if r["sport"] < 1007}, sum(r["loss"] for r in rows if r["sport"] < 1007)), ({False}, len(sent[::10])), f"longer packets at point {longer}, loss is told")
        ok("offloads" not in run.stderr, "and nothing of offloads", run.stderr)


def test_another_method():
    """Captures of multiplexed marks that are read by the default method: it is told which one is meant."""
    packets = marked("multiplexed", send(random.Random(SEED), 2, 40))
    args = pair("method", carriers()[0], packets, [(f, ns + DELAY, b) for f, ns, b, _ in packets])
    for method, told in (("step", True), ("multiplexed", False)):
        run = results("--method", method, *args)[1]
        eq("read with --method multiplexed" in run.stderr, told, f"--method {method}: {run.stderr}")


def test_refused():
    for args, words in ((("--period", "100ms", "--method", "multiplexed", "--read", "a", "--read", "b"), "must be below 0.025 s"),
                        (("--bit", "tos:0", "--read", "a", "--read", "b"), "are ECN"),
                        (("--bit", "flow-label", "--read", "a", "--read", "b"), "RFC 9343"),
                        (("--method", "double", "--read", "a", "--read", "b"), "two bits"),
                        (("--read", "a"), "two points"), (("a.pcap",), "--read")):
        run = pathline.run("meter", *args)
        ok(run.returncode == 2 and words in run.stderr, f"meter {' '.join(args)} is refused", run.stderr)
    run = pathline.run("meter", "--read", "/nonexistent/a", "--read", "/nonexistent/b")
    ok(run.returncode == 1 and "/nonexistent/a" in run.stderr, "a capture that is not there", run.stderr)


RECORD = struct.Struct("<Q16s16sHHBBHQQQQqqqIIIIIHH")  # mark128/1 of docs/formats/records.md
TS, SRC, DST, SPORT, DPORT, PROTO, METHOD, FLAGS, NUMBER, PERIOD, PACKETS, BYTES, SUM, FIRST, PULSE, POINT = range(16)


def save(name, records):
    path = lab.path(name)
    with open(path, "wb") as f:
        f.write(b"".join(RECORD.pack(*r) for r in records))
    return path


def test_record_files():
    """Records of points are compared as captures are: all points in one file, or a file of each."""
    carrier, dice = carriers()[0], random.Random(SEED)
    packets = marked("multiplexed", send(dice, 3, 60))
    arrived, truth = network(dice, packets)
    counts = lab.path("counts.mark128")
    args = ["--method", "multiplexed", *carrier.args, *pair("files", carrier, packets, arrived)]
    run = pathline.run("meter", "-o", "jsonl", "-w", counts, *args)
    want = {key: (t["sent"], t["lost"], t["delay"]) for key, t in truth.items()}
    eq({key_of(r): (r["sent"], r["loss"], r["delay_ns"]) for r in pathline.jsonl(run.stdout)}, want, "captures")
    rows, run = results("--read", counts)
    eq({key_of(r): (r["sent"], r["loss"], r["delay_ns"]) for r in rows}, want, "the records of both: the same loss and delay")
    eq({(r["from"], r["to"]) for r in rows}, {("1", "2")}, "from the marker to the other point")
    # Neither point says that its clock is synchronised.
    eq({r["alarms"] for r in rows}, {"clock-unsynced"}, "with what records say of clocks")

    with open(counts, "rb") as f:
        records = [list(r) for r in RECORD.iter_unpack(f.read())]
    for r in records:
        r[FLAGS] |= 2
        r[POINT] = 7 if r[POINT] == 1 else 3
    sent, came = ([r for r in records if r[POINT] == p] for p in (7, 3))
    rows, run = results("--read", "in=" + save("sent.mark128", sent), "--read", "out=" + save("came.mark128", came))
    eq({(r["from"], r["to"], r.get("alarms")) for r in rows}, {("in", "out", None)}, "a file of each point")
    eq(sum(r["loss"] for r in rows), sum(t["lost"] for t in truth.values()), "the same loss")
    rows, _ = results("--read", save("swapped.mark128", came + sent))
    eq({(r["from"], r["to"]) for r in rows}, {("7", "3")}, "in one file the marker is the first")

    gone = [r for r in came if r[SPORT] != 1000]
    rows, _ = results("--read", save("sent.mark128", sent), "--read", save("came.mark128", gone))
    eq({r["loss"] - r["sent"] for r in rows if r["sport"] == 1000}, {0}, "a flow that the point never had was lost")
    gone = [r for r in came if r[NUMBER] != ZERO + 2]
    rows, _ = results("--read", save("sent.mark128", sent), "--read", save("came.mark128", gone))
    eq({(r.get("loss"), r.get("missing")) for r in rows if r["block"] == ZERO + 2}, {(None, "came.mark128")},
       "a block of which a point has no record has no numbers")
    rows, run = results("--read", save("sent.mark128", sent + sent[:1]), "--read", save("came.mark128", came))
    ok("1 records of point 7" in run.stderr and "alarms" not in rows[0], "a record that came twice counts once", run.stderr)
    other = [list(r) for r in sent[:1]]
    other[0][PACKETS] += 1
    rows, run = results("--read", save("sent.mark128", sent + other), "--read", save("came.mark128", came))
    eq([r.get("alarms") for r in rows if r["block"] == other[0][NUMBER] and r["sport"] == other[0][SPORT]], ["partial"],
       "two counts of one block are none of the whole block")
    for r in came:
        r[PERIOD] *= 2
    run = results("--read", save("sent.mark128", sent), "--read", save("came.mark128", came))[1]
    ok(run.returncode == 1 and "periods differ" in run.stderr, "points of different periods", run.stderr)
    sent[0][PERIOD] = sent[1][METHOD] = 0
    run = results("--read", save("sent.mark128", sent[:3]), "--read", save("came.mark128", came))[1]
    ok(run.returncode == 1 and "2 records are none of a meter" in run.stderr, "records that no meter makes", run.stderr)
    with open(lab.path("came.mark128"), "ab") as f:
        f.write(bytes(100))
    run = results("--read", lab.path("came.mark128"))[1]
    ok("no whole mark128 record" in run.stderr and "two points" in run.stderr, "a record that is cut, and one point", run.stderr)
    for extra in (("--bit", "dscp:1"), ("--records",), ("--stats",), ("--read", "a.pcap")):
        run = pathline.run("meter", "--read", counts, *extra)
        ok(run.returncode == 2 and "captures" in run.stderr, f"with {' '.join(extra)}: refused", run.stderr)


SEGMENT = struct.Struct("<Q16s16sHHBBHQQIIIIIBBHIIIIIIQQqqqqqqQQ")  # seg192/1 of docs/formats/records.md
SEGMENT_NAMES = ("ts_ns src dst sport dport proto method tai_offset block period_ns has alarms segment from_point to_point from_count to_count"
                 " missing_count missing_point flow_id late early pulses_sent pulses_received sent received loss delay_ns mean_ns first_ns"
                 " jitter_ns loss_ppb since clock_error_ns").split()
HAS = {1: ("sent", "received", "loss"), 2: ("delay_ns",), 4: ("mean_ns",), 8: ("first_ns",), 16: ("jitter_ns",), 32: ("loss_ppb",)}


def read_segments(path):
    """As the format's page says, with None for what has no value."""
    rows = []
    with open(path, "rb") as f:
        for record in SEGMENT.iter_unpack(f.read()):
            row = dict(zip(SEGMENT_NAMES, record))
            for bit, names in HAS.items():
                row.update({n: None for n in names if row["has"] & bit == 0})
            rows.append(row)
    return rows


def question(text, *files):
    """The rows, without what they say of themselves."""
    run = pathline.run("query", "-o", "jsonl", text, *files)
    ok(run.returncode in (0, 3), text, run.stderr)
    return [{k: v for k, v in r.items() if k not in ("first_ts", "late", "incomplete")} for r in pathline.jsonl(run.stdout)]


def test_results_as_records():
    """Results in files, through UDP and a tap, and in questions, alone and joined with packets."""
    carrier, dice = carriers()[1], random.Random(SEED + 1)
    packets = marked("double", send(dice, 3, 50))
    arrived, _ = network(dice, packets)
    first, second, third = lab.path("r.seg192"), lab.path("s.seg192"), lab.path("counts.mark128")
    args = ["--method", "double", *carrier.args, *pair("results", carrier, packets, arrived)]
    shown = pathline.jsonl(pathline.run("meter", "-o", "jsonl", "-w", first, "--to", f"file:{second}", *args).stdout)
    with open(first, "rb") as a, open(second, "rb") as b:
        eq(a.read(), b.read(), "--write and --to file: the same bytes")
    rows = read_segments(first)
    numbers = ("block", "sport", "dport", "sent", "received", "loss", "delay_ns", "mean_ns", "first_ns", "jitter_ns", "late", "early", "ts_ns")
    eq([{n: r[n] for n in numbers} for r in rows], [{n: r.get(n) for n in numbers} for r in shown], "records are what is printed")
    ok(any(r["mean_ns"] is None for r in rows) and any(r["mean_ns"] is not None for r in rows), "some have no value, some have")
    eq({(r["from_point"], r["to_point"], r["from_count"], r["to_count"], r["segment"]) for r in rows}, {(1, 2, 1, 1, 1)}, "the link")
    eq([r["loss_ppb"] for r in rows], [r["loss"] * 10**9 // r["sent"] for r in rows], "loss in parts of sent")

    run = pathline.run("meter", "--to", f"file:{lab.path('quiet.seg192')}", *args)
    eq((run.returncode, run.stdout), (0, ""), "--to alone prints nothing")
    eq(len(read_segments(lab.path("quiet.seg192"))), len(rows), "and writes all")

    got = question("SELECT sum(loss) AS lost, sum(sent) AS sent, count(*) AS n FROM segments WHERE loss > 0 AND NOT incomplete", first)
    lossy = [r for r in rows if r["loss"] > 0]
    eq(got, [{"lost": sum(r["loss"] for r in lossy), "sent": sum(r["sent"] for r in lossy), "n": len(lossy)}], "a question of losses")
    for column in ("mean_ns", "jitter_ns", "delay_ns"):
        values = [r[column] for r in rows if r[column] is not None]
        got = question(f"SELECT min({column}) AS least, max({column}) AS most, count(*) AS n FROM segments WHERE exists({column})", first)
        eq(got, [{"least": min(values), "most": max(values), "n": len(values)}], f"{column}, where it is known")
        zeros = values.count(0)
        eq(question(f"SELECT count(*) AS n FROM segments WHERE {column} == 0", first), [{"n": zeros}] if zeros else [], "absent is not 0")

    tapped = lab.path("results.pkt64")
    eq(pathline.run("tap", "--to", f"file:{tapped}", lab.path("results-a.pcap")).returncode, 0, "packets of the first point")
    on = " AND ".join(f"s.{k} = p.{k}" for k in ("src", "dst", "sport", "dport", "proto"))
    got = question(f"SELECT s.sport AS sport, s.block AS block, s.loss AS loss, count(*) AS n FROM segments AS s JOIN packets AS p ON {on} WITHIN 1s GROUP BY s.sport, s.block, s.loss",
                   first, tapped)
    want = {(1000 + flow, r["block"], r["loss"]): 0 for r in rows for flow in (r["sport"] - 1000,)}
    for r in rows:
        want[r["sport"], r["block"], r["loss"]] += sum(1 for flow, ns, _, _ in packets
                                                      if 1000 + flow == r["sport"] and abs(ns - r["ts_ns"]) <= SECOND)
    eq({(r["sport"], r["block"], r["loss"]): r["n"] for r in got}, want, "joined with the packets of the flow around the block")

    eq(pathline.run("meter", "-w", third, *args).returncode, 0, "counts in a file of records")
    with open(third, "rb") as f:
        counts = [list(r) for r in RECORD.iter_unpack(f.read())]
    for r in counts:
        r[POINT] += 40
    run = pathline.run("meter", "-w", second, "--read", save("numbered.mark128", counts))
    eq({(r["from_point"], r["to_point"]) for r in read_segments(second)}, {(41, 42)}, "points have the numbers of their meters")
    gone = [r for r in counts if r[POINT] == 41 or r[NUMBER] != ZERO + 2]
    pathline.run("meter", "-w", second, "--read", save("gone.mark128", gone))
    eq({(r["loss"], r["has"] >> 9 & 1, r["missing_point"], r["missing_count"], r["alarms"] & 1) for r in read_segments(second) if r["block"] == ZERO + 2},
       {(None, 1, 42, 1, 1)}, "a point that is missing has its number")
    eq(question("SELECT sum(loss) AS lost, min(missing_point) AS gone FROM segments WHERE incomplete", second), [{"gone": 42}], "and nothing was lost there")

    got = question("lossy_segments(window=1s)", first)
    eq(sum(r["lost"] for r in got), sum(r["loss"] for r in lossy), "lossy_segments")
    got = question("slow_segments(threshold=15ms, window=1s)", first)
    eq(max(r["most_ns"] for r in got), max(r["delay_ns"] for r in rows if r["delay_ns"] is not None), "slow_segments")

    grows, log, told = lab.path("grows.seg192"), lab.path("tail.log"), lab.path("tail.out")
    with open(first, "rb") as f:
        data = f.read()
    with open(grows, "wb") as f, open(told, "w", encoding="utf-8") as out:
        f.write(data[:-300])  # the last but one is not whole yet
        f.flush()
        tail = lab.start([pathline.PATHLINE, "tail", "--from", grows, "--follow", "-o", "jsonl"], log=log, stdout=out)
        lines = lambda: lab.read(told).splitlines()  # noqa: E731
        ok(wait(lambda: len(lines()) == len(rows) - 2), "tail prints what is there")
        f.write(data[-300:])
        f.flush()
        ok(wait(lambda: len(lines()) == len(rows)), "and what comes")
    tail.terminate()
    eq(tail.wait(), 0, "until it is told to end")
    eq([(r["block"], r.get("loss"), r.get("mean_ns")) for r in pathline.jsonl(lab.read(told))],
       [(r["block"], r["loss"], r["mean_ns"]) for r in rows], "all records once")
    for extra in (["--where", "loss > 0"], ["--events"]):
        run = pathline.run("tail", "--from", first, *extra)
        ok(run.returncode == 2 and "query" in run.stderr, "tail of segments with " + extra[0] + ": refused", run.stderr)

    for extra, said in ((("-w", "x.seg192", "--records"), "--records"), (("--to", "file:x.seg192?kind=pkt96"), "packets and flows only"),
                        (("--to", "nowhere:x"), "nowhere")):
        run = pathline.run("meter", *extra, *args)
        ok(run.returncode == 2 and said in run.stderr, " ".join(extra) + ": refused", run.stderr)
    run = pathline.run("meter", "--to", "file:/nonexistent/x.seg192", *args)
    ok(run.returncode == 69 and "/nonexistent" in run.stderr, "an output that cannot be opened", run.stderr)
    run = pathline.run("query", "SELECT count(*) AS n FROM segments", lab.path("results-a.pcap"))
    ok(run.returncode == 2 and "meter --write" in run.stderr, "packets are no segments", run.stderr)


def whole(data, size):
    """Records by source address and port; flows have lanes of their own, so their order to each other may change."""
    return sorted((data[at:at + size] for at in range(0, len(data), size)), key=lambda r: (r[8:24], r[40:42]))


def test_through_a_tap():
    """Counts and results by UDP to a tap that writes files: all that was sent is there, what the tap does not want is counted."""
    carrier, dice = carriers()[1], random.Random(SEED + 2)
    packets = marked("double", send(dice, 2, 30))
    arrived, _ = network(dice, packets)
    args = ["--method", "double", *carrier.args, *pair("tapped", carrier, packets, arrived)]
    counts, lost = lab.path("direct.mark128"), lab.path("direct.seg192")
    eq(pathline.run("meter", "-w", counts, *args).returncode, 0, "counts, directly")
    direct = pathline.jsonl(pathline.run("meter", "-o", "jsonl", "-w", lost, *args).stdout)
    for flag, name, more, file in (("--marks", "mark128", ["--records"], counts), ("--segments", "seg192", [], lost)):
        size = {"mark128": RECORD, "seg192": SEGMENT}[name].size
        with open(file, "rb") as f:
            want = f.read()
        port, out, log = lab.free_udp_port(), lab.path(f"tapped.{name}"), lab.path(f"tapped.{name}.log")
        server = lab.start([pathline.PATHLINE, "tap", "--stats", flag, "--to", f"file:{out}", f"udp://127.0.0.1:{port}"], log=log)
        ok(wait(lambda: "tapping" in lab.read(log)), f"a tap with {flag}")
        # First what it has no use for.
        other = [] if more else ["--records"]
        run = pathline.run("meter", *other, "--to", f"udp://127.0.0.1:{port}", *args)
        eq((run.returncode, run.stdout), (0, ""), "records of the other kind")
        run = pathline.run("meter", *more, "--to", f"udp://127.0.0.1:{port}", *args)
        eq((run.returncode, run.stdout), (0, ""), f"records of {name}")
        wait(lambda: os.path.exists(out) and os.path.getsize(out) >= len(want))
        server.terminate()
        eq(server.wait(), 0, "the tap gave all of them away")
        with open(out, "rb") as f:
            eq(whole(f.read(), size), whole(want, size), "every record, as it was sent, those of a flow in order")
        s = json.loads([line for line in lab.read(log).splitlines() if line.startswith("{")][-1])
        output, n_other = s["outputs"][0], os.path.getsize(lost if more else counts) // (SEGMENT if more else RECORD).size
        eq(output["records"], output["written"] + output["failed"], "what the output took is accounted for")
        eq((output["written"], s["tmpkt"]["other_kinds"]), (len(want) // size, n_other), "and what was not wanted is counted")
    rows, run = results("--read", lab.path("tapped.mark128"))
    eq([(r["loss"], r["delay_ns"], r["mean_ns"] if "mean_ns" in r else None) for r in rows],
       [(r["loss"], r.get("delay_ns"), r.get("mean_ns")) for r in direct], "what came is compared as what was sent")
    for more, said in ((["x.pcap"], "udp://"), (["--dns", "udp://:9"], "one kind each"), (["--rule", "take", "udp://:9"], "--rule"),
                       (["region:x"], "udp://")):
        run = pathline.run("tap", "--marks", *more)
        ok(run.returncode == 2 and said in run.stderr, "tap --marks " + " ".join(more) + ": refused", run.stderr)


def test_top():
    """What a daemon correlates of block records, as the table of top shows it."""
    port = lab.free_udp_port()
    d = pathline.Daemon(lab.write("marks.yaml", f"""web: {{ listen: "127.0.0.1:0" }}
marks:
  - {{ name: backbone, sources: ["udp://127.0.0.1:{port}"], points: [sender=1, core=2, receiver=3], method: step, period: 1s }}
"""))
    address = bytes(10) + b"\xff\xff\x0a\0\0\x01"

    def send_block(s):
        """The block before this one, as points read it now; one that comes late, because the machine stood still, is left out."""
        block = int(time.time()) - 1
        for point, n in ((1, 100), (2, 97), (3, 97)):
            record = RECORD.pack(block * SECOND, address, address, 1, 2, 17, 1, 2 + (point == 1), block, SECOND, n, 100 * n,
                                 n * point * 1_000_000, 0, 0, point, 0, 0, 0, 0, 0, 0)
            s.sendto(struct.pack("<4sBBHIIQQ", b"TPK1", 1, 6, 1, point, 0, block * SECOND, 0) + record, ("127.0.0.1", port))

    def rows(*more):
        run = pathline.run("top", "--batch", "--screen", "segments", "-o", "json", "--url", d.web, *more)
        return json.loads(run.stdout)["rows"]

    def are_told(s):
        send_block(s)
        return sum(r["lost"] > 0 for r in rows()) == 2

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        ok(wait(lambda: are_told(s)), "top: losses of the first link, and of the whole path")
    told = rows("--sort", "lost")
    eq({r["segment"]: r["lost"] % 3 for r in told}, {"sender>core": 0, "sender>receiver": 0, "core>receiver": 0}, "whole blocks")
    eq((told[0]["lost"] >= told[1]["lost"] > 0, told[2]["segment"], told[2]["lost"]), (True, "core>receiver", 0), "the largest first")
    run = pathline.run("top", "--batch", "--screen", "segments", "--url", d.web, "--rows", "1")
    ok("sender>" in run.stdout and "core>receiver" not in run.stdout, "as text", run.stdout + run.stderr)
    run = pathline.run("top", "--batch", "--screen", "segments", "--url", d.web, "--where", "loss > 1")
    ok(run.returncode == 2 and "no filter" in run.stderr, "without a filter, and it says so", run.stderr)
    eq(d.stop(), 0, "the daemon ends")


def bob(data):
    """The hash of RFC 5475, A.2, written down a second time."""
    a = b = 0x9e3779b9
    c = 0
    m = 0xffffffff

    def mix(a, b, c):
        for x, y, z in ((13, 8, 13), (12, 16, 5), (3, 10, 15)):
            a = (a - b - c & m) ^ c >> x
            b = (b - c - a & m) ^ (a << y & m)
            c = (c - a - b & m) ^ b >> z
        return a, b, c

    at = 0
    while len(data) - at >= 12:
        x, y, z = struct.unpack_from("<III", data, at)
        a, b, c = mix(a + x & m, b + y & m, c + z & m)
        at += 12
    rest = data[at:]
    c = c + len(data) & m
    a = a + int.from_bytes(rest[:4], "little") & m
    b = b + int.from_bytes(rest[4:8], "little") & m
    c = c + (int.from_bytes(rest[8:], "little") << 8) & m
    return mix(a, b, c)[2]


def unmarked(flow, number, version, hops):
    """A frame, and the bytes of it that no router changes. The checksum of UDP is another at the sender, where hardware ends it."""
    udp = struct.pack(">HHHHII", 1000 + flow, 2000, 40, hops, number, 0xabcdef) + bytes(24)
    same = udp[:6] + bytes(2) + udp[8:16]
    ether = bytes.fromhex(MAC.replace(":", "")) * 2
    if version == 4:
        ends = bytes((10, 0, 0, flow + 1, 192, 0, 2, 1))
        ip = struct.pack(">BBHHHBBH", 0x45, hops & 4, 20 + len(udp), number & 0xffff, 0x4000, hops, 17, 0) + ends
        return ether + b"\x08\0" + ip + udp, ip[4:8] + ends + same
    ends = bytes((0x20, 1, 0x0d, 0xb8)) + bytes(11) + bytes((flow + 1, 0x20, 1, 0x0d, 0xb8)) + bytes(11) + b"\x01"
    ip = struct.pack(">IHBB", 0x60000000, len(udp), 17, hops) + ends
    return ether + b"\x86\xdd" + ip + udp, ends + b"\x11" + same


def evaluated(points, room, around=(-1, 0, 1)):
    """{(flow, block): (bits, sampled, matched, lost, doubles, delays)} by the definition: as few bits as leave a block no more
    packets than there is room for; of three blocks of the second point the most bits count."""
    counted = []
    for point in points:
        blocks = {}
        for flow, ns, h, *block in point:
            blocks.setdefault((flow, block[0] if block else ns // SECOND), []).append((h, ns))
        counted.append({key: next((b, seen) for b in range(33) if sum(h % 2**b == 0 for h, _ in seen) <= room) for key, seen in blocks.items()})
    out = {}
    for (flow, block), (bits, seen) in counted[0].items():
        near = [counted[1].get((flow, block + i), (0, [])) for i in around]
        bits = max([bits] + [b for b, _ in near])
        came = {}
        for _, there in near:
            for h, ns in there:
                came.setdefault(h, []).append(ns)
        chosen = {}
        for h, ns in seen:
            if h % 2**bits == 0:
                chosen.setdefault(h, []).append(ns)
        once = {h: t[0] for h, t in chosen.items() if len(t) == 1}
        delays = sorted(came[h][0] - ns for h, ns in once.items() if len(came.get(h, ())) == 1)
        lost = sum(h not in came for h in once)
        out[flow, block] = (bits, len(once), len(delays), lost, len(once) - len(delays) - lost, delays)
    return out


def test_chosen_by_hash():
    """Zero marking against a slow evaluation: packets that change hop limit and type of service on their way, are lost, overtake
    each other, and come twice; 1000 packets of a block with room for 16 (scenario H1)."""
    for version, room, seed in ((4, 16, 1), (6, 16, 2), (4, 300, 3)):
        dice = random.Random(seed)
        sent, came, truth = [], [], ([], [])
        for flow, ns in send(dice, 2, 1000):
            number = dice.randrange(2**32)
            frame, fixed = unmarked(flow, number, version, 64)
            h = bob(fixed)
            sent.append((ns, frame))
            truth[0].append((flow, ns, h))
            for _ in range(dice.choices((0, 1, 2), (3, 95, 2))[0]):
                later = ns + DELAY + dice.randrange(20_000_000)
                came.append((later, unmarked(flow, number, version, 58)[0]))
                truth[1].append((flow, later, h))
        args = ["--read", "in=" + write(lab.path("hash-a.pcap"), sent + around()), "--read", "out=" + write(lab.path("hash-b.pcap"), came + around())]
        run = pathline.run("meter", "--method", "hash", "--samples", str(room), "-o", "jsonl", *args)
        eq(run.returncode, 0, f"IPv{version}, room for {room}: compared")
        rows, want = {key_of(r): r for r in pathline.jsonl(run.stdout)}, evaluated(truth, room)
        names = ("bits", "sampled", "matched", "lost", "doubles")
        eq({k: tuple(r[n] for n in names) for k, r in rows.items()}, {k: w[:5] for k, w in want.items()}, "chosen, found, lost, doubled")
        eq({k: (r["least_ns"], r["mean_ns"], r["median_ns"], r["most_ns"]) for k, r in rows.items()},
           {k: (w[5][0], sum(w[5]) // len(w[5]), w[5][(len(w[5]) - 1) // 2], w[5][-1]) for k, w in want.items()}, "delays")
        if room == 16:
            ok({w[0] for w in want.values()} <= {6, 7, 8} and all(2 <= w[1] <= 16 for w in want.values()), "H1: 6 bits or a few more, up to 16 samples")
        else:
            ok(all(w[3] > 0 and w[4] > 0 for w in want.values()), "some of each block were lost, some doubled")
    for extra, said in ((["--bit", "dscp:1"], "--bit"), (["--samples", "1"], "from 2 to"), (["-w", "x.seg192"], "--write")):
        run = pathline.run("meter", "--method", "hash", *extra, *args)
        ok(run.returncode == 2 and said in run.stderr, "--method hash " + " ".join(extra) + ": refused", run.stderr)
    write(lab.path("cut.pcap"), [p for p in came if p[0] < (ZERO + 2) * SECOND])
    run = pathline.run("meter", "--method", "hash", "-o", "jsonl", *args[:2], "--read", lab.path("cut.pcap"))
    late = [r for r in pathline.jsonl(run.stdout) if r["block"] > ZERO + 2]
    eq({(r.get("lost"), r.get("alarms")) for r in late}, {(None, "partial")}, "behind the end of a capture nothing is known to be lost")


def test_chosen_beside_colour():
    """Hashed marking: the colour says which block a packet is of, also when it comes in the next one; loss is exact, and the packets
    that a hash chose have the delays that they had."""
    dice, room = random.Random(SEED), 32
    sent, came, truth, counts = [], [], ([], []), {}
    for flow, ns in send(dice, 2, 500):
        number, block = dice.randrange(2**32), ns // SECOND
        frame, fixed = unmarked(flow, number, 4, 60 if block & 1 else 64)  # dscp:0 is hops & 4
        sent.append((ns, frame))
        truth[0].append((flow, ns, bob(fixed), block))
        count = counts.setdefault((flow, block), [0, 0])
        count[0] += 1
        if dice.random() < 0.04:
            count[1] += 1
            continue
        later = ns + DELAY + dice.randrange(300_000_000)
        came.append((later, unmarked(flow, number, 4, 52 if block & 1 else 56)[0]))
        truth[1].append((flow, later, bob(fixed), block))
    args = ["--read", "in=" + write(lab.path("beside-a.pcap"), sent + around()), "--read", "out=" + write(lab.path("beside-b.pcap"), came + around())]
    usual = ["--method", "step", "--delay", "200ms", "--deviation", "50ms", *args]
    rows, run = results("--samples", str(room), *usual)
    got, want = {key_of(r): r for r in rows}, evaluated(truth, room, (0,))
    eq(run.returncode, 0, "compared: " + run.stderr)
    eq({k: [r["sent"], r["loss"]] for k, r in got.items()}, counts, "loss of every block, of all packets")
    eq({k: (r["sampled"], r["matched"]) for k, r in got.items()}, {k: w[1:3] for k, w in want.items()}, "chosen, and found in the same block")
    eq({k: (r["least_ns"], r["samples_mean_ns"], r["median_ns"], r["most_ns"]) for k, r in got.items()},
       {k: (w[5][0], sum(w[5]) // len(w[5]), w[5][(len(w[5]) - 1) // 2], w[5][-1]) for k, w in want.items()}, "their delays")
    ok(all(8 < w[1] <= room for w in want.values()), "there are many in each block", [w[1] for w in want.values()])
    ok("samples" not in results(*usual)[1].stderr and "sampled" not in results(*usual)[0][0], "none without --samples")
    ok("median_ns" in pathline.run("meter", "--samples", "9", *usual).stdout.splitlines()[0], "a table has them where they are asked for")
    for extra, said in ((["--method", "pulse"], "not for --method pulse"), (["--records"], "nor --records"), (["--samples", "70000"], "from 2 to 65536")):
        run = pathline.run("meter", "--samples", "9", *args, *extra)
        ok(run.returncode == 2 and said in run.stderr, f"--samples with {' '.join(extra)}: refused", run.stderr)


def test_forms():
    carrier = carriers()[0]
    packets = marked("step", send(random.Random(SEED), 1, 20))
    args = pair("forms", carrier, packets, [(f, ns + DELAY, b) for f, ns, b, _ in packets])
    for form in ("table", "wide", "json", "csv", "text"):
        run = pathline.run("meter", "-o", form, *args)
        ok(run.returncode == 0 and str(ZERO + 1) in run.stdout, f"-o {form}", run.stdout + run.stderr)
    run = pathline.run("meter", "--records", "-o", "csv", *args)
    eq(len(run.stdout.splitlines()), 1 + 2 * (BLOCKS - 2), "records of both points")
    counts = lab.path("counts.mark128")
    eq(pathline.run("meter", "-w", counts, *args).returncode, 0, "counts in a file of records")
    run = pathline.run("query", "-o", "jsonl", "SELECT point, sum(packets) AS n FROM marks WHERE method == step GROUP BY point", counts)
    eq(sorted((r["point"], r["n"]) for r in pathline.jsonl(run.stdout)), [(1, 80), (2, 80)], "which queries read")
    run = pathline.run("query", "SELECT count(*) AS n FROM marks", lab.path("forms-a.pcap"))
    ok(run.returncode == 2 and "meter --write" in run.stderr, "packets are no blocks, and the query says so", run.stderr)
    for name in ("counts.bin", "counts", ".mark128", "counts.mark128.gz"):
        run = pathline.run("meter", "-w", lab.path(name) if name[0] != "." else name, *args)
        ok(run.returncode == 2 and "by its name" in run.stderr and not os.path.exists(lab.path(name)), f"-w {name}: a name that says no form is refused", run.stderr)
    run = pathline.run("meter", "-w", "/nonexistent/x.mark128", *args)
    ok(run.returncode == 1 and "/nonexistent" in run.stderr, "a file that cannot be written", run.stderr)


if not with_scapy.there():
    tap.skip_all("missing: scapy")
if shutil.which("tshark") is None:
    tap.skip_all("missing: tshark")
lab.run(test_carriers, test_option_by_tshark, test_public, test_three_points, test_two_way, test_cyclic, test_network, test_segment_routing, test_faults, test_clocks, test_incomplete, test_too_little, test_rules, test_fragments, test_joined, test_another_method, test_refused, test_record_files, test_results_as_records, test_through_a_tap, test_chosen_by_hash, test_chosen_beside_colour, test_top, test_forms)
sys.exit(tap.end())
