# SPDX-License-Identifier: BSD-2-Clause
"""Records of packets, against tshark on the same captures: packets that scapy makes, of every kind that a record tells of,
and genuine ones of soft-RoCE.

usage: tap.py PATHLINE FOLDER_OF_CAPTURES
"""
import collections
import glob
import os
import random
import shutil
import socket
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, pathline, shark, tap  # noqa: E402
from lib.tap import eq, ok  # noqa: E402

CAPTURES = sys.argv[2]
SEED = 20261124


def differences(path):
    """Between what pathline and tshark say of a capture."""
    run = pathline.run("tap", "-o", "jsonl", path)
    ours, theirs = pathline.jsonl(run.stdout), [r for r in shark.records(path) if r is not None]
    found = [] if len(ours) == len(theirs) else [f"{len(ours)} records, tshark has {len(theirs)} packets of IP"]
    for n, (a, b) in enumerate(zip(ours, theirs), 1):
        found += [f"record {n}: {name} {a.get(name)}, tshark {value}" for name, value in b.items()
                  if value is not None and a.get(name) != value]
    return found, len(ours)


def scapy_packets():
    from scapy.all import (Dot1AD, Dot1Q, Ether, ICMP, IP, IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, PadN,
                           Raw, TCP, UDP)
    from scapy.contrib.mpls import MPLS
    from scapy.layers.inet6 import ICMPv6EchoRequest

    dice = random.Random(SEED)
    options = [[], [("MSS", 1460), ("SAckOK", b""), ("Timestamp", (dice.getrandbits(32), dice.getrandbits(32))), ("NOP", None),
                    ("WScale", 7)], [("NOP", None), ("NOP", None), ("Timestamp", (1, 0))], [("MSS", 536)],
               [("NOP", None), ("NOP", None), ("SAck", (1, 2))]]

    def network(version):
        if version == 4:
            return IP(src=f"10.{dice.randrange(256)}.0.1", dst="192.0.2.7", ttl=dice.randrange(1, 256), tos=dice.randrange(256),
                      id=dice.randrange(65536))
        return IPv6(src=f"2001:db8::{dice.randrange(1, 65536):x}", dst="2001:db8:1::2", hlim=dice.randrange(1, 256),
                    tc=dice.randrange(256))

    def transport(kind):
        ports = {"sport": dice.randrange(1024, 65536), "dport": dice.randrange(20000, 30000)}
        if kind == "tcp":
            return TCP(seq=dice.getrandbits(32), ack=dice.getrandbits(32), flags=dice.randrange(256), window=dice.randrange(65536),
                       options=dice.choice(options), **ports)
        return UDP(**ports)

    for _ in range(300):
        version = dice.choice((4, 6))
        packet = network(version)
        if version == 6 and dice.random() < 0.3:
            packet /= IPv6ExtHdrHopByHop(options=[PadN(optdata=b"\0" * 4)])
        if version == 6 and dice.random() < 0.2:
            packet /= IPv6ExtHdrDestOpt(options=[PadN(optdata=b"\0" * 12)])
        packet /= transport(dice.choice(("tcp", "udp"))) / Raw(b"x" * dice.randrange(0, 1200))
        link = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
        tags = dice.choice((0, 0, 0, 1, 2, 3))
        if tags == 1:
            link /= Dot1Q(vlan=dice.randrange(1, 4095))
        elif tags == 2:
            link /= Dot1AD(vlan=dice.randrange(1, 4095)) / Dot1Q(vlan=dice.randrange(1, 4095))
        elif tags == 3:
            link /= MPLS(label=dice.randrange(16, 1 << 20), s=0) / MPLS(label=dice.randrange(16, 1 << 20), s=1)
        yield link / packet
    for kind in (ICMP(type=8), ICMP(type=3, code=1)):
        yield Ether() / IP(dst="192.0.2.7") / kind / Raw(b"y" * 56)
    yield Ether() / IPv6(dst="2001:db8::2") / ICMPv6EchoRequest(data=b"z" * 8)
    header = b"\x30\x39\x30\x3a\x11\x58\0\0"  # of the datagram: 12345 > 12346, 4440 bytes
    for more, offset in ((1, 0), (1, 185), (0, 370)):
        payload = Raw(header + bytes(8 * 184) if offset == 0 else bytes(8 * 185))
        yield Ether() / IP(dst="192.0.2.7", proto=17, id=77, flags=more, frag=offset) / payload
        yield Ether() / IPv6(dst="2001:db8::2") / IPv6ExtHdrFragment(nh=17, id=0x12345678, m=more, offset=offset) / payload
    yield Ether(type=0x0806) / Raw(bytes(28))
    yield Ether(type=0x88cc) / Raw(bytes(40))


def test_made():
    from scapy.all import PcapNgWriter

    path = lab.path("made.pcapng")
    with PcapNgWriter(path) as out:
        for n, packet in enumerate(scapy_packets()):
            packet.time = 1700000000 + n / 1000
            out.write(packet)
    found, n = differences(path)
    eq(found[:8], [], "tshark says the same of packets of every kind")
    eq(n, 309, "a record of each that is IP")


def test_genuine():
    for path in sorted(glob.glob(os.path.join(CAPTURES, "*.pcap"))):
        found, n = differences(path)
        eq(found[:8], [], f"tshark says the same of {os.path.basename(path)}")
        ok(n > 0, f"{os.path.basename(path)}: {n} records")


def tshark(path, *args):
    return subprocess.run(["tshark", "-n", "-r", path, *args], capture_output=True, text=True, check=True).stdout.splitlines()


def shark_flows(path, flows):
    """What flow288 adds, flow by flow and direction by direction, by tshark's fields."""
    fields = ("ip.src", "tcp.srcport", "ip.dst", "tcp.dstport", "tcp.len", "tcp.flags", "tcp.analysis.duplicate_ack", "tcp.analysis.zero_window",
              "tcp.analysis.ack_rtt")
    names = [arg for name in fields for arg in ("-e", name)]
    segments, duplicates, zeros = collections.Counter(), collections.Counter(), collections.Counter()
    rtts, opened = collections.defaultdict(list), {}
    for line in tshark(path, "-Y", "tcp", "-T", "fields", *names):
        src, sport, dst, dport, length, flags, duplicate, zero, rtt = line.split("\t")
        way, back, flags = (src, int(sport), dst, int(dport)), (dst, int(dport), src, int(sport)), int(flags, 16)
        if flags & 4 == 0:
            segments[way] += int(length) > 0 or flags & 3 != 0
        duplicates[way] += duplicate != ""
        zeros[way] += zero != ""
        if rtt:
            rtts[back].append(float(rtt) * 1e6)
        if flags & 18 == 2:
            opened.setdefault(frozenset((way, back)), way)
    wrong, near, times = collections.Counter(), 0, 0
    for f in (f for f in flows if f["proto"] == 6):
        way, back = (f["src"], f["sport"], f["dst"], f["dport"]), (f["dst"], f["dport"], f["src"], f["sport"])
        for one, fwd, side in ((way, "fwd", "dst"), (back, "rev", "src")):
            for method in ("seq", "ts"):
                wrong["segments"] += f[f"rtt_{method}_{side}_n"] + f[f"rtt_{method}_{side}_missed"] != segments[one]
            wrong["duplicate ACKs"] += f[f"dup_acks_{fwd}"] != duplicates[one]
            wrong["zero windows"] += f[f"zero_win_{fwd}"] != zeros[one]
            if f[f"rtt_seq_{side}_n"] > 0:
                times += 1
                near += any(abs(t - f[f"rtt_seq_{side}_min_us"]) <= 1.5 for t in rtts[one])
        client = opened.get(frozenset((way, back)))
        if client is not None:
            wrong["roles"] += (f["role"], f["role_by"]) != ("client" if client == way else "server", "syn")
    eq(+wrong, collections.Counter(), "segments, duplicate ACKs, windows and roles are those that tshark finds")
    eq(near, times, "every least round-trip time by numbers is among those of tshark")
    return times, len(opened), sum(duplicates.values()), sum(zeros.values())


def lossy_packets(connections):
    """Connections whose servers send segments of which some are lost before the tap, are answered by duplicate ACKs and sent again;
    some clients close their window for a while."""
    from scapy.all import Ether, IP, Raw, TCP

    dice, now, packets = random.Random(SEED), 1.7e9, []

    def add(back, port, flags, seq, ack, length=0, window=1000):
        nonlocal now
        now += dice.uniform(1e-5, 2e-3)
        addresses = ("192.0.2.2", "192.0.2.1") if back else ("192.0.2.1", "192.0.2.2")
        ports = (443, port) if back else (port, 443)
        stamp = int(now * 1000) & 0xffffffff
        packet = Ether() / IP(src=addresses[0], dst=addresses[1], id=0) / TCP(sport=ports[0], dport=ports[1], flags=flags, seq=seq, ack=ack, window=window,
                                                                           options=[("NOP", None), ("NOP", None), ("Timestamp", (stamp, 1))])
        if length:
            packet /= Raw(b"x" * length)
        packet.time = now
        packets.append(packet)

    for port in range(40000, 40000 + connections):
        add(False, port, "S", 100, 0)
        add(True, port, "SA", 500, 101)
        add(False, port, "A", 101, 501)
        add(False, port, "PA", 101, 501, 50)
        add(True, port, "A", 501, 151)
        lost = dice.randrange(2, 9) if dice.random() < 0.7 else None
        acked = 501
        for i in range(10):
            if i == lost:
                continue
            add(True, port, "A", 501 + 100 * i, 151, 100)
            if lost is None or i < lost:
                acked = 501 + 100 * (i + 1)
            add(False, port, "A", 151, acked)
        if lost is not None:
            now += 0.3
            add(True, port, "A", 501 + 100 * lost, 151, 100)
            add(False, port, "A", 151, 1501)
        if dice.random() < 0.5:
            add(True, port, "A", 1501, 151, 10)
            for _ in range(dice.randrange(1, 4)):
                add(False, port, "A", 151, 1511, window=0)
            add(False, port, "A", 151, 1511)
            add(True, port, "FA", 1511, 151)
        else:
            add(True, port, "FA", 1501, 151)
        add(False, port, "R", 151, 0)
    return packets


def test_lossy():
    """Duplicate ACKs and windows of zero, which the traffic of `pathline gen packets` has not."""
    from scapy.all import PcapWriter

    path = lab.path("lossy.pcap")
    with PcapWriter(path, nano=True) as writer:
        writer.write(lossy_packets(200))
    flows = pathline.jsonl(pathline.run("tap", "--flows", "--flow-idle", "1h", "--flow-active", "1h", "-o", "jsonl", path).stdout)
    times, opened, duplicates, zeros = shark_flows(path, flows)
    ok(times > 300 and opened == 200 and duplicates > 300 and zeros > 50, "which are not few", (times, opened, duplicates, zeros))


def test_flows():
    """Traffic of `pathline gen packets`: whole packets to tshark, and what its TCP analysis finds is what the flow cache does."""
    path = lab.path("traffic.pcap")
    eq(pathline.run("gen", "packets", "--duration", "20s", "--loss", "0.02", "--seed", str(SEED), "-w", path).returncode, 0, "traffic")
    bad = tshark(path, "-o", "tcp.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE",
                 "-Y", "_ws.malformed || tcp.checksum.status == 0 || udp.checksum.status == 0 || ip.checksum.status == 0")
    eq([line for line in bad if "DNS" not in line][:3], [], "no packet is malformed, every checksum is right")
    flows = pathline.jsonl(pathline.run("tap", "--flows", "--flow-idle", "1h", "--flow-active", "1h", "-o", "jsonl", path).stdout)
    again = tshark(path, "-Y", "tcp.analysis.retransmission", "-T", "fields", "-e", "tcp.stream")
    eq(sum(f["retrans_fwd"] + f["retrans_rev"] for f in flows), len(again), "as many retransmissions as tshark finds")
    ok(len(again) > 50, "which are not few", len(again))
    times, opened, _, _ = shark_flows(path, flows)
    ok(times > 1000 and opened > 1000, "which are not few", (times, opened))
    rtts = {}
    for line in tshark(path, "-Y", "tcp.flags == 0x10 && tcp.seq == 1 && tcp.ack == 1 && tcp.analysis.initial_rtt", "-T", "fields", "-e", "ip.src",
                       "-e", "tcp.srcport", "-e", "ip.dst", "-e", "tcp.analysis.initial_rtt"):
        src, sport, dst, rtt = line.split("\t")
        rtts.setdefault((src, int(sport), dst), float(rtt) * 1e6)
    wrong = [(f, rtts[key]) for f in flows if (key := (f["src"], f["sport"], f["dst"])) in rtts and f["hs_external_us"] > 0 and
             abs(f["hs_external_us"] + f["hs_internal_us"] - rtts[key]) > 3]
    ok(len(rtts) > 1000 and not wrong, f"handshakes take as long as tshark says, in {len(rtts)} connections", wrong[:2])
    count = lambda rows, key: len([f for f in rows if f["proto"] == key])  # noqa: E731
    eq(count(flows, 6), len(set(tshark(path, "-Y", "tcp", "-T", "fields", "-e", "tcp.stream"))), "as many TCP flows as streams")


def test_community():
    """Community IDs: of every type of ICMP, of both versions of IP, of transports and others, both ways; and of genuine captures."""
    from scapy.all import Ether, ICMP, IP, IPv6, PcapWriter, Raw, SCTP, TCP, UDP

    path, packets = lab.path("ids.pcap"), []
    for a, b in ((1, 2), (2, 1)):
        v4, v6 = IP(src=f"192.0.2.{a}", dst=f"192.0.2.{b}"), IPv6(src=f"2001:db8::{a}", dst=f"2001:db8::{b}")
        for kind in range(256):
            packets += [v4 / ICMP(type=kind, code=0) / Raw(bytes(8)), v6.__class__(src=v6.src, dst=v6.dst, nh=58) / Raw(bytes((kind, 1)) + bytes(30))]
        for ip in (v4, v6):
            packets += [ip / layer(sport=a, dport=b) / Raw(b"x" * 20) for layer in (TCP, UDP, SCTP)]
            packets += [ip / TCP(sport=70 + a, dport=70 + a), ip / UDP(sport=0, dport=0)]
        packets += [IP(src=v4.src, dst=v4.dst, proto=99) / Raw(b"x" * 20)]
    with PcapWriter(path) as writer:
        writer.write([Ether() / p for p in packets])
    for name in (path, *sorted(glob.glob(os.path.join(CAPTURES, "*.pcap")))):
        records = pathline.jsonl(pathline.run("tap", "--community-id", "-o", "jsonl", name).stdout)
        ours = ["" if r["obs"] & 1024 else r.get("community_id", "") for r in records]
        # Its dissectors of what RoCE carries put queue pairs in the place of ports; it has no ports of a first fragment, and no ID
        # where it calls ICMP malformed.
        theirs = tshark(name, "--enable-protocol", "communityid", "-d", "udp.port==4791,data", "-Y", "ip or ipv6", "-T", "fields", "-e", "communityid")
        wrong = [(i, *pair) for i, pair in enumerate(zip(ours, theirs)) if pair[0] != pair[1] and "" not in pair]
        eq((len(ours), wrong[:3]), (len(theirs), []), f"{os.path.basename(name)}: the IDs of tshark")
        ok(theirs.count("") < 9 and ours.count("") < 9, "and both have one for nearly all", (theirs.count(""), ours.count("")))
    flows = pathline.jsonl(pathline.run("tap", "--flows", "--community-id", "-o", "jsonl", path).stdout)
    of_packets = {r.get("community_id") for r in pathline.jsonl(pathline.run("tap", "--community-id", "-o", "jsonl", path).stdout)}
    of_flows = {f["community_id"] for f in flows if "community_id" in f}
    eq((of_flows - of_packets, of_packets - of_flows), (set(), set()), "flows have those of their packets")
    for args, says in ((["--dns"], "is of packets and flows"), (["--to", f"file:{path}.pkt64"], "give -o")):
        run = pathline.run("tap", "--community-id", *args, path)
        ok(run.returncode == 2 and says in run.stderr, f"--community-id {args[0]}: {says}", run.stderr)
    for kind, these in (([], of_packets), (["--flows"], of_flows)):
        lines = f"{path}.jsonl"
        pathline.run("tap", *kind, "--to", f"jsonl:{lines}?community_id=yes", path)
        with open(lines, encoding="utf-8") as f:
            eq({r.get("community_id") for r in pathline.jsonl(f.read())} - {None}, these - {None}, f"JSON lines have them {kind}")
        os.unlink(lines)
        stream = "flows" if kind else "packets"

        def ask(question):
            return pathline.jsonl(pathline.run("query", "-o", "jsonl", question, path).stdout)
        eq({r["community_id"] for r in ask(f"SELECT community_id, count() AS n FROM {stream} GROUP BY community_id") if r["community_id"] is not None},
           these - {None}, f"a question groups {stream} by it")
        one = sorted(these - {None})[7]
        rows = ask(f"SELECT src, dst, sport, dport, community_id FROM {stream} WHERE community_id = '{one}'")
        ok(rows and {r["community_id"] for r in rows} == {one}, f"and finds {stream} by it", rows)
    for target, says in (("--dns", "of packets and flows"), ("--flows", "community_id=yes or")):
        run = pathline.run("tap", target, "--to", f"jsonl:{path}.x?community_id={'yes' if target == '--dns' else 'perhaps'}", path)
        ok(run.returncode == 2 and says in run.stderr, f"jsonl: {says}", run.stderr)


def test_dns():
    """Messages that scapy makes and those of our own traffic, as tshark reads them."""
    from scapy.all import DNS, DNSQR, DNSRR, Ether, IP, IPv6, UDP, PcapWriter

    dice = random.Random(SEED)
    own, made = lab.path("traffic.pcap"), lab.path("dns.pcap")
    with PcapWriter(made) as out:
        for n in range(200):
            name = ".".join("".join(dice.choice("abcXYZ019-") for _ in range(dice.randrange(2, 20))) for _ in range(dice.randrange(1, 6)))
            kind = dice.choice(("A", "AAAA", "TXT", "MX", "RRSIG", "ALL"))
            answers = None
            for i in range(dice.randrange(0, 4)):
                rr = DNSRR(rrname=name, type="A", rdata=f"192.0.2.{i}") if dice.random() < 0.5 else \
                    DNSRR(rrname=name, type="CNAME", rdata="alias.example.net")
                answers = rr if answers is None else answers / rr
            back = dice.random() < 0.6
            dns = DNS(id=dice.randrange(65536), qr=back, rd=1, rcode=dice.choice((0, 0, 3)) if back else 0,
                      qd=DNSQR(qname=name, qtype=kind), an=answers if back else None)
            network = IP(src="192.0.2.53", dst="10.0.0.1") if dice.random() < 0.5 else IPv6(src="2001:db8::53", dst="2001:db8::1")
            packet = Ether() / network / UDP(sport=53 if back else 40000, dport=40000 if back else 53) / dns
            packet.time = 1700000000 + n
            out.write(packet)
    names = ["dns.id", "dns.flags", "dns.qry.type", "dns.count.answers", "dns.count.auth_rr", "dns.qry.name.len", "dns.count.labels", "dns.a"]
    for path, what in ((own, "our own"), (made, "scapy's")):
        rows = pathline.jsonl(pathline.run("tap", "--dns", "-o", "jsonl", path).stdout)
        seen = [dict(zip(names, line.split("\t"))) for line in tshark(path, "-Y", "dns", "-T", "fields", "-E", "separator=/t",
                                                                      *[word for n in names for word in ("-e", n)])]
        number = lambda text: int(text.split(",")[0], 0) if text else 0  # noqa: E731
        want = [(number(s["dns.id"]), number(s["dns.flags"]), number(s["dns.qry.type"]),
                 (number(s["dns.flags"]) & 15) << 12 | number(s["dns.count.answers"]) << 6 | number(s["dns.count.auth_rr"]),
                 number(s["dns.qry.name.len"]) + 2, number(s["dns.count.labels"]),
                 struct.unpack(">I", socket.inet_aton(s["dns.a"].split(",")[0]))[0] if s["dns.a"] else 0) for s in seen]
        got = [tuple(r[k] for k in ("id", "dns_flags", "qtype", "counts", "name_len", "labels", "answer")) for r in rows]
        ok(len(rows) > 100 and got == want, f"{len(rows)} of {what} DNS messages are as tshark says",
           [pair for pair in zip(got, want) if pair[0] != pair[1]][:3])


def test_demo():
    """Everything at once, without privileges: what was done is found, and the accounts close."""
    without = ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all", "--no-new-privs"] if os.getuid() == 0 else []
    run = subprocess.run([*without, pathline.PATHLINE, "demo", "packets", "--headless", "-o", "json", "-d", "65s"], capture_output=True, text=True,
                         check=False)
    answer = pathline.jsonl(run.stdout)[0]
    eq((run.returncode, answer["right"]), (0, True), "it says that it is right")
    eq((answer["scans_found"], answer["floods_found"], answer["storms_found"], answer["false_alarms"]), (2, 2, 2, 0), "each attack of two rounds and no other")
    eq(answer["packets"], answer["packets_in_flows"], "every packet is in a flow")
    out = lab.path("demo.pkt64")
    run = pathline.run("demo", "packets", "--headless", "-o", "json", "--to", f"file:{out}")
    eq(os.path.getsize(out), 64 * pathline.jsonl(run.stdout)[0]["records"], "and into an output")


def test_file():
    """The bytes of a file are the records: read here by the format's page alone."""
    source, out = lab.path("made.pcapng"), lab.path("records.pkt64")
    eq(pathline.run("tap", "--to", f"file:{out}", source).returncode, 0, "into a file")
    with open(out, "rb") as f:
        data = f.read()
    rows = pathline.jsonl(pathline.run("tap", "-o", "jsonl", source).stdout)
    eq(len(data), 64 * len(rows), "64 bytes a record")
    names = ["sport", "dport", "proto", "tcp_flags", "ttl", "tos", "tcp_seq", "tcp_ack", "tcp_win", "wire_len", "pay_len", "obs"]
    wrong = []
    for n, row in enumerate(rows):
        record = data[64 * n:64 * n + 64]
        got = dict(zip(names, struct.unpack("<HHBBBBIIHHHH", record[40:])))
        wrong += [f"record {n}: {k} {v} {row[k]}" for k, v in got.items() if v != row[k]]
        wrong += [f"record {n}: time"] if struct.unpack("<Q", record[:8])[0] != row["ts_ns"] else []
    eq(wrong[:8], [], "fields stand where the format's page says")
    eq(pathline.run("tap", "--to", f"file:{out}", source).returncode, 0, "once more")
    eq(os.path.getsize(out), 2 * len(data), "it is appended to")
    odd = pathline.run("tap", lab.write("x", "y"))
    ok(odd.returncode != 0 and "not a pcap" in odd.stderr, "a file that is no capture is refused", odd.stderr)
    with open(out, "ab") as f:
        f.write(b"half")
    refused = pathline.run("tap", "--to", f"file:{out}", source)
    ok(refused.returncode == 2 and "no whole number of pkt64 records" in refused.stderr, "a file of something else is refused", refused.stderr)


def test_region():
    """Records in a region's lists: dumped, and read by a question, as they are printed."""
    trace, path, flows = lab.path("region.pcap"), lab.path("packets.plr"), lab.path("flows.plr")
    pathline.run("gen", "packets", "--duration", "3s", "-w", trace)
    eq(pathline.run("tap", "--to", f"region:{path}?kind=pkt96&entries=8192", trace).returncode, 0, "into a region, which is made")
    printed = pathline.run("tap", "-o", "jsonl", trace).stdout
    eq(pathline.run("region", "dump", "-o", "jsonl", path).stdout, printed, "a dump of it is what the tap prints")
    question = "SELECT src, count(*) AS n, sum(wire_len) AS bytes FROM packets TUMBLE(ts, 500ms) GROUP BY src"
    answers = [sorted(pathline.run("query", "-o", "csv", question, source).stdout.splitlines()) for source in (trace, f"region:{path}")]
    ok(len(answers[0]) > 100 and answers[0] == answers[1], f"a question has the same {len(answers[0])} rows")
    pathline.run("tap", "--flows", "--to", f"region:{flows}?lists=7&entries=512", trace)
    question = "SELECT dport, count(*) AS n FROM flows TUMBLE(ts, 500ms) GROUP BY dport"
    answers = [sorted(pathline.run("query", "--lateness", "120s", "-o", "csv", question, source).stdout.splitlines()) for source in (trace, f"region:{flows}")]
    ok(len(answers[0]) > 10 and answers[0] == answers[1], "so it has of flows in seven lists")
    # One that is too small keeps the newest.
    small = lab.path("small.plr")
    pathline.run("tap", "--to", f"region:{small}?kind=pkt96&entries=512", trace)
    kept = pathline.run("region", "dump", "-o", "jsonl", small).stdout.splitlines()
    ok(0 < len(kept) <= 512 and kept == printed.splitlines()[-len(kept):], f"{len(kept)} of 512 entries: the newest")
    for target, says in ((flows, "holds other entries"), (f"{path}.new?entries=1000", "multiple"), (f"{path}.new?lists=0", "lists=0")):
        run = pathline.run("tap", "--to", f"region:{target}", trace)
        ok(run.returncode == 2 and says in run.stderr, f"refused: {says}", f"{run.returncode} {run.stderr}")
    run = pathline.run("query", "SELECT count(*) AS n FROM packets", f"region:{flows}")
    ok(run.returncode == 2 and "does not read flows" in run.stderr, "a question about something else is refused", run.stderr)


if shutil.which("tshark") is None:
    tap.skip_all("missing: tshark")
try:
    import scapy.all  # noqa: F401  pylint: disable=unused-import
except ImportError:
    # Debian's scapy belongs to Debian's python, which need not be the first in PATH.
    if sys.executable != "/usr/bin/python3" and os.path.exists("/usr/bin/python3"):
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])
    tap.skip_all("missing: scapy")
lab.run(test_made, test_genuine, test_flows, test_lossy, test_community, test_dns, test_demo, test_file, test_region)
sys.exit(tap.end())
