# SPDX-License-Identifier: BSD-2-Clause
"""Taps of a host that leaves segmentation to its NIC and joins what comes in, beside a wire on which each packet is by itself: a
bridge between two hosts takes frames apart in software (net/core/gso.c), tcpdump and the counters of the far host's interface
say what it made. Every packet has its record, with the values that the kernel wrote into it.

usage: wire_packets.py PATHLINE [TEST…]
"""
import collections
import json
import os
import shutil
import signal
import socket
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import collectors, lab, network, pathline, shark, tap, tapping  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.tapping import closes  # noqa: E402
from lib.wait import LIMIT, wait  # noqa: E402

ADDRESSES = {4: {"a": "10.81.0.1", "b": "10.81.0.2"}, 6: {"a": "fd00:81::1", "b": "fd00:81::2"}}
INNER = {"a": "10.82.0.1", "b": "10.82.0.2"}
NS = {}
FIELDS = ("src", "dst", "sport", "dport", "ttl", "tos", "tcp_seq", "tcp_ack", "tcp_flags", "tcp_win", "wire_len", "pay_len",
          "tsval", "tsecr", "mss", "tcp_opts", "ip_id", "frag_off", "vlan")
SHORT = ("src", "dst", "sport", "dport", "ttl", "tos", "tcp_seq", "tcp_ack", "tcp_flags", "tcp_win", "wire_len", "pay_len")
UDP_SEGMENT = 103


def make():
    """a - middle - b. Behind the middle's port to b nothing is left to a NIC; a has segmentation and joining of its own."""
    for name in ("a", "middle", "b"):
        NS[name] = network.Namespace(f"wire-{name}", ipv6=False)
    network.join(NS["a"], "eth0", NS["middle"], "left")
    network.join(NS["b"], "eth0", NS["middle"], "right")
    NS["middle"].ip("link add bridge type bridge mcast_snooping 0")
    for port in ("left", "right"):
        NS["middle"].ip(f"link set {port} master bridge")
        NS["middle"].up(port)
        NS["middle"].sh(f"ethtool -K {port} tso off gso off gro off tx-udp-segmentation off")
    NS["middle"].up("bridge")
    NS["b"].sh("ethtool -K eth0 tso off gso off gro off tx-udp-segmentation off")
    NS["a"].sh("ethtool -K eth0 tso on gso on gro on tx-udp-segmentation on")
    for side, other in ("ab", "ba"):
        NS[side].sysctl("ipv6.conf.eth0.router_solicitations", 0, check=False)
        NS[side].up("eth0", ADDRESSES[4][side] + "/24")
        NS[side].ip(f"neigh add {ADDRESSES[4][other]} lladdr {mac(other)} dev eth0 nud permanent")
    network.wait_for_carrier((NS["a"], "eth0"), (NS["middle"], "left"), (NS["middle"], "right"), (NS["b"], "eth0"))


def mac(side, interface="eth0"):
    return ":".join(f"{byte:02x}" for byte in NS[side].mac(interface))


def with_ipv6():
    for side, other in ("ab", "ba"):
        NS[side].sysctl("ipv6.conf.eth0.disable_ipv6", 0)
        NS[side].ip(f"addr add {ADDRESSES[6][side]}/64 dev eth0 nodad", check=False)
        NS[side].ip(f"neigh replace {ADDRESSES[6][other]} lladdr {mac(other)} dev eth0 nud permanent")


def transfer(n_bytes, port, sender="a", version=4):
    """Of TCP, all of it read; each side closes."""
    wire = tapping.Wire("", *(ADDRESSES[version][side] for side in (sender, "b" if sender == "a" else "a")))
    wire.ns = {"a": NS[sender], "b": NS["b" if sender == "a" else "a"]}
    return wire.tcp_transfer(n_bytes, port)


def datagrams(n_bytes, each, port, times=5, version=4):
    """Left to the NIC to be taken apart: as QUIC's servers send."""
    with NS["a"], socket.socket(socket.AF_INET6 if version == 6 else socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, each)
        for _ in range(times):
            s.sendto(os.urandom(n_bytes), (ADDRESSES[version]["b"], port))


def dump(side, name, what="tcp or udp"):
    """tcpdump, up."""
    path = lab.path(name + ".pcap")
    p = lab.start(NS[side].command("tcpdump", "-i", "eth0", "-s", "200", "-B", "65536", "-Z", "root", "-U", "-w", path, what), log=lab.path(name))
    ok(wait(lambda: "listening on" in lab.read(name)), f"tcpdump of {side} is up")
    p.path = path
    return p


def closed(p, port):
    """The witness has a connection to its end: both sides' FIN and what acknowledges the later one."""
    of = [r for r in shark.records(p.path) if r is not None and port in (r["sport"], r["dport"])]
    fins = {r["dport"] == port: (r["tcp_seq"] + r["pay_len"] + 1) % 2**32 for r in of if r["tcp_flags"] & 1}
    return len(fins) == 2 and all(any((r["dport"] == port) != way and r["tcp_ack"] == after for r in of) for way, after in fins.items())


def end(p):
    p.send_signal(signal.SIGTERM)
    p.wait(LIMIT)
    return [r for r in shark.records(p.path) if r is not None]


def tap_of(side, name, *args):
    return tapping.Tap(NS[side], name, *args)


def transports(records):
    return [r for r in records if r["proto"] in (6, 17)]


def as_many(taps, path):
    """Every tap has as many records of TCP and UDP as there are packets in the witness's file, which has no more than before."""
    seen = []

    def whole():
        seen.append([len(transports([r for r in t.lines() if "src" in r])) for t in taps] + [sum(r is not None for r in shark.records(path))])
        return len(seen) > 1 and seen[-1] == seen[-2] and len(set(seen[-1])) == 1
    return wait(whole)


def count(records, keys):
    return collections.Counter(tuple(r[k] for k in keys) for r in records)


def same(what, got, want, keys=FIELDS):
    got, want = count(transports(got), keys), count(want, keys)
    missing, more = want - got, got - want
    eq((sum(missing.values()), sum(more.values()), list(missing)[:3], list(more)[:3]), (0, 0, [], []), f"{what}: the {sum(want.values())} packets of the wire, each value")


def counters():
    """(packets, bytes) that b's interface sent and received."""
    statistics = json.loads(NS["b"].sh("ip -j -s link show dev eth0"))[0]["stats64"]
    return [sum(statistics[way][what] for way in ("rx", "tx")) for what in ("packets", "bytes")]


def joined(records, side):
    """Whether the host's own tcpdump has frames of that side's that are longer than its wire carries."""
    return any(r["wire_len"] > 1500 and r["src"] in (ADDRESSES[4][side], ADDRESSES[6][side]) for r in records)


def whole(version):
    """Traffic of all kinds, both ways."""
    ok(transfer(4_000_000, 5001, "a", version), "a TCP transfer that leaves")
    ok(transfer(4_000_000, 5002, "b", version), "a TCP transfer that enters")
    # The last datagram is as long as the others, shorter, and the only one.
    for n_bytes, each in ((20_000, 1000), (20_001, 1000), (1000, 1000), (1, 1)):
        datagrams(n_bytes, each, 6000, version=version)


def check_wire(version, sources):
    witness, host = dump("b", f"witness-{version}"), dump("a", f"host-{version}")
    taps = [tap_of("a", f"v{version}-{i}", "-o", "jsonl", source) for i, source in enumerate(sources)]
    before = counters()
    whole(version)
    as_many(taps, witness.path)
    packets, bytes_ = (now - then for now, then in zip(counters(), before))
    want, frames = end(witness), end(host)
    ok(joined(frames, "a") and joined(frames, "b"), "frames of several packets left and entered the host", (len(frames), len(want)))
    ok(len(frames) < len(want) / 3, f"{len(frames)} frames of {len(want)} packets")
    for t, source in zip(taps, sources):
        stats = t.end()
        short = "pkt64" in source
        same(source, t.records, want, SHORT if short else FIELDS)
        closes(stats, source)
        eq((stats["tap"]["joined"], stats["tap"]["ring_full"], stats["ports"]["kernel_drops"]), (0, 0, 0), f"{source}: no frame was left whole, none missed")
        if version == 4:
            eq(stats["tap"]["packets"], packets, f"{source}: as many packets as the far interface counts")
            eq(sum(r["wire_len"] + 14 for r in t.records), bytes_, f"{source}: and bytes")
        ok(len({r["ts_ns"] for r in t.records}) < len(t.records), f"{source}: packets of a frame have one time")


SOURCES = ("tc:eth0?ring=32MiB", "packet:eth0?ring=131072", "tc:eth0?ring=32MiB&record=pkt64")


def test_wire():
    check_wire(4, SOURCES)


def test_ipv6():
    with_ipv6()
    check_wire(6, SOURCES)


def test_flows_and_questions():
    """Flows, and packets that are counted in the kernel by key, have the wire's numbers."""
    question = "SELECT src, dst, sport, dport, count(*) AS n, sum(wire_len) AS bytes, sum(pay_len) AS payload FROM packets WHERE tcp GROUP BY src, dst, sport, dport"
    witness = dump("b", "witness-flows")
    flows = [tap_of("a", f"flows-{i}", "-o", "jsonl", "--flows", "--rule", "take proto=tcp", "--rule", "skip", source)
             for i, source in enumerate(("tc:eth0?ring=32MiB", "packet:eth0?ring=131072"))]
    asked = tapping.Printing(NS["a"], "asked", "tap", "asking", "query", "-o", "jsonl", "--stats", question, "tc:eth0?ring=32MiB")
    ok(transfer(3_000_000, 5003) and transfer(3_000_000, 5004, "b"), "transfers both ways")
    for t in flows:
        ok(wait(lambda t=t: sum(r.get("end_reason") == "finished" for r in t.lines()) == 2), "records of both flows")
    ok(wait(lambda: closed(witness, 5003) and closed(witness, 5004)), "the witness has them whole")
    want = end(witness)
    asked.p.send_signal(signal.SIGTERM)
    asked.p.wait(LIMIT)

    def numbers(src, sport, dst, dport):
        of = [r for r in want if (r["src"], r["sport"], r["dst"], r["dport"]) == (src, sport, dst, dport)]
        return len(of), sum(r["wire_len"] for r in of), sum(r["pay_len"] for r in of)

    def repeated(src, sport, dst, dport):
        of = [r["tcp_seq"] for r in want if (r["src"], r["sport"], r["dst"], r["dport"]) == (src, sport, dst, dport) and r["pay_len"]]
        return len(of) - len(set(of))
    for t in flows:
        t.end()
        eq(len(t.records), 2, "a record for each connection")
        for r in t.records:
            forth, back = (r["src"], r["sport"], r["dst"], r["dport"]), (r["dst"], r["dport"], r["src"], r["sport"])
            eq(((r["pkts_fwd"], r["bytes_fwd"]), (r["pkts_rev"], r["bytes_rev"])), (numbers(*forth)[:2], numbers(*back)[:2]), "its packets and bytes are the wire's")
            eq(r["retrans_fwd"] + r["retrans_rev"] == 0, repeated(*forth) + repeated(*back) == 0, "nothing looks sent twice that was not")
    rows = [r for r in asked.lines() if "payload" in r]
    ok(any("counted" in line.get("tap", {}) and line["tap"]["counted"] > 1000 for line in asked.lines()), "packets were counted in the kernel")
    got = collections.Counter()
    for r in rows:
        got[(r["src"], r["sport"], r["dst"], r["dport"]), "n"] += r["n"]
        got[(r["src"], r["sport"], r["dst"], r["dport"]), "bytes"] += r["bytes"]
        got[(r["src"], r["sport"], r["dst"], r["dport"]), "payload"] += r["payload"]
    for key in {key for key, _ in got}:
        eq((got[key, "n"], got[key, "bytes"], got[key, "payload"]), numbers(*key), f"the question has the wire's numbers of {key[1]}")
    eq(len({key for key, _ in got}), 4, "of each direction")


def handshakes(path):
    """Of tshark, in microseconds: from SYN to the ACK of the SYN-ACK, by the port of the client."""
    said = network.sh(f"tshark -n -r {path} -Y tcp.analysis.initial_rtt -T fields -e tcp.srcport -e tcp.dstport -e tcp.analysis.initial_rtt")
    rows = [line.split("\t") for line in said.splitlines()]
    return {int(one if other == "5201" else other): float(rtt) * 1e6 for one, other, rtt in rows}


def test_to_collector():
    """iperf3 both ways through one wire: what nfdump keeps of the taps at one end is the packets and bytes that the interface of the
    other end counts, and round-trip times are tshark's."""
    missing = [tool for tool in ("iperf3", "nfcapd", "nfdump", "tshark") if shutil.which(tool) is None]
    if missing:
        tap.skip("iperf3 to nfdump", "missing: " + " ".join(missing))
        return
    host = lab.path("host-iperf.pcap")
    witness = lab.start(NS["a"].command("tcpdump", "-i", "eth0", "-s", "200", "-B", "65536", "-Z", "root", "-U", "--time-stamp-precision=nano", "-w", host, "tcp"),
                        log=lab.path("host-iperf"))
    ok(wait(lambda: "listening on" in lab.read("host-iperf")), "tcpdump is up")
    taps = {}
    for port, source in ((2055, "tc:eth0?ring=32MiB"), (2056, "packet:eth0?ring=131072")):
        nfdump = collectors.Nfdump(port, NS["b"])
        taps[source] = nfdump, tap_of("a", f"to-{port}", "-o", "jsonl", "--flows", "--flow-idle", "1h", "--flow-active", "1h", "--rule", "skip proto=udp",
                                      "--to", f"ipfix://{ADDRESSES[4]['b']}:{port}", source)
    server = lab.start(NS["b"].command("iperf3", "-s", "-p", "5201"), log=lab.path("iperf3"))
    ok(wait(lambda: "listening" in NS["b"].sh("ss -Hltn sport = :5201 | sed 's/.*/listening/'")), "iperf3 is up")
    before = counters()
    for way in ((), ("--reverse",)):
        run = lab.start(NS["a"].command("iperf3", "-c", ADDRESSES[4]["b"], "-p", "5201", "-n", "20M", *way), log=lab.path("client"))
        eq(run.wait(LIMIT), 0, f"iperf3 {way} {lab.read('client')}")
    # Nothing is sent any more once each connection has both FINs and the last acknowledgement.
    seen = []

    def whole():
        seen.append(tuple([t.look()["tap"]["records"] for _, t in taps.values()] + [n - then for n, then in zip(counters(), before)]))
        return len(seen) > 2 and len(set(seen[-3:])) == 1 and len(set(seen[-1][:3])) == 1
    ok(wait(whole), "the taps have as many packets as the far interface counts", seen[-3:])
    *_, packets, octets = seen[-1]
    ok(wait(lambda: len(handshakes(host)) == 4), "tshark has the handshakes of four connections")
    witness.send_signal(signal.SIGTERM)
    witness.wait(LIMIT)
    theirs = handshakes(host)
    for source, (nfdump, t) in taps.items():
        closes(t.end(), source)
        kept = nfdump.flows()
        eq((len(kept), {f["proto"] for f in kept}), (8, {6}), f"{source}: nfdump has both directions of two connections for each run")
        eq(sum(f["in_packets"] for f in kept), packets, f"{source}: its packets are those of the interface")
        eq(sum(f["in_bytes"] + 14 * f["in_packets"] for f in kept), octets, f"{source}: and bytes, with the headers of Ethernet")
        ours = {r["sport"]: r["hs_external_us"] + r["hs_internal_us"] for r in t.records}
        eq((ours.keys(), len(ours)), (theirs.keys(), 4), f"{source}: a handshake of each connection")
        if source.startswith("packet:"):
            # Both read the kernel's stamps of the same packets. Each of our two times is in whole microseconds, rounded up.
            wrong = {port: (us, theirs[port]) for port, us in ours.items() if not -0.5 < us - theirs[port] < 2.5}
            eq(wrong, {}, f"{source}: handshakes take as long as tshark says, to the microsecond")
    server.terminate()
    server.wait(LIMIT)


def test_rules():
    """Rules look at each packet of the wire: those that are full, one in ten and the ends, and the one with FIN."""
    witness = dump("b", "witness-rules")
    rules = (("full", "take proto=tcp dport=5005 payload=1448"), ("tenth", "take proto=tcp dport=5005 sample=10"), ("fin", "take proto=tcp dport=5005 flags=1/1"))
    taps = {(name, source): tap_of("a", f"{name}-{source[:2]}", "-o", "jsonl", "--rule", rule, "--rule", "skip", source)
            for name, rule in rules for source in ("tc:eth0?dir=out&ring=32MiB", "packet:eth0?ring=131072")}
    ok(transfer(2_000_000, 5005), "a transfer")
    ok(wait(lambda: closed(witness, 5005)), "the witness has it whole")
    ok(wait(lambda: all(any("src" in r and r["tcp_flags"] & 1 for r in t.lines()) for (name, _), t in taps.items() if name == "fin")), "the taps have seen its end")
    want = [r for r in end(witness) if r["dport"] == 5005]
    full, fin = [r for r in want if r["pay_len"] == 1448], [r for r in want if r["tcp_flags"] & 1]
    for (name, source), t in taps.items():
        closes(t.end(), source)
        if name == "full":
            same(f"{source}: full ones", t.records, full)
        elif name == "fin":
            same(f"{source}: the one with FIN", t.records, fin)
        else:
            edges, keys = [r for r in want if r["tcp_flags"] & 7], [k for k in FIELDS if k != "mss"]
            eq(len(t.records), len(edges) + (len(want) - len(edges) + 9) // 10, f"{source}: SYN and FIN, and every tenth of {len(want)} packets")
            got = sorted(count(t.records, keys) - count(want, keys))
            eq(got[:2], [], f"{source}: each is one of the wire")
            eq(list(count(edges, keys) - count(t.records, keys)), [], f"{source}: with the {len(edges)} packets that begin and end it")
            eq({r["mss"] for r in t.records if not r["tcp_flags"] & 7} | {r["mss"] for r in t.records if r["tcp_flags"] & 1}, {10, 1}, f"{source}: weights")


def test_tunnel():
    """TCP in VXLAN, which is taken apart behind its outer headers: the tap by a packet socket reads the inner ones, for the outer packets
    and with --inner for the inner ones; the tap in the kernel counts the frames that it cannot take apart."""
    for side, other in ("ab", "ba"):
        NS[side].ip(f"link add vxlan type vxlan id 5 local {ADDRESSES[4][side]} remote {ADDRESSES[4][other]} dstport 4789 dev eth0")
        NS[side].up("vxlan", INNER[side] + "/24")
    for side, other in ("ab", "ba"):
        NS[side].ip(f"neigh add {INNER[other]} lladdr {mac(other, 'vxlan')} dev vxlan nud permanent")
    witness = dump("b", "witness-tunnel")
    outer, inner = (tap_of("a", name, "-o", "jsonl", *args, "packet:eth0?ring=131072") for name, *args in (("outer",), ("inner", "--inner")))
    kernel = tap_of("a", "tunnel-kernel", "-o", "jsonl", "tc:eth0?ring=32MiB")
    wire = tapping.Wire("", INNER["a"], INNER["b"])
    wire.ns = NS
    ok(wire.tcp_transfer(2_000_000, 5007), "a transfer through a tunnel")
    as_many([outer], witness.path)
    want = end(witness)
    stats, whole = outer.end(), inner.end()
    same("outer packets", outer.records, want, ("src", "dst", "ttl", "wire_len", "ip_id"))
    eq((stats["tap"]["joined"], whole["tap"]["joined"]), (0, 0), "all frames were taken apart")
    segments = [r for r in inner.records if r["src"] == INNER["a"] and r["dport"] == 5007]
    # shark.records has the inner TCP of each, and the outer IP.
    got, of_wire = (count(records, ("tcp_seq", "tcp_flags", "tsval", "pay_len")) for records in (segments, [r for r in want if r["dport"] == 5007]))
    eq(list((got - of_wire) + (of_wire - got))[:3], [], f"the {len(segments)} segments within")
    stats = kernel.end()
    ok(0 < stats["tap"]["joined"] < len(kernel.records) < len(want), "in the kernel they are left whole, and counted", stats["tap"])
    closes(stats, "tunnel")
    for side in "ab":
        NS[side].ip("link del vxlan")


def set_big(namespace, interface, n_bytes=200_000):
    """The longest frames of an interface, for IPv6 and for IPv4 (rtnetlink: IFLA_GSO_MAX_SIZE, IFLA_GRO_MAX_SIZE, and of IPv4); False:
    this kernel has them not. iproute2 of Debian 12 has no words for the latter."""
    with namespace, socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as s:
        attributes = b"".join(struct.pack("=HHI", 8, kind, n_bytes) for kind in (41, 58, 63, 64))
        message = struct.pack("=BxHiII", 0, 0, socket.if_nametoindex(interface), 0, 0) + attributes
        s.send(struct.pack("=IHHII", 16 + len(message), 16, 5, 1, 0) + message)
        return struct.unpack_from("=i", s.recv(4096), 16)[0] == 0


def test_big():
    """Frames of more than 64 KiB (BIG TCP), whose IP headers cannot say how long they are."""
    with_ipv6()
    if not all([set_big(NS["a"], "eth0"), set_big(NS["middle"], "left")]):
        tap.skip("frames of more than 64 KiB", "this kernel has none")
        return
    for version in (4, 6):
        witness, host = dump("b", f"witness-big-{version}"), dump("a", f"host-big-{version}", "ip or ip6")
        taps = [tap_of("a", f"big-{version}-{i}", "-o", "jsonl", source) for i, source in enumerate(SOURCES[:2])]
        ok(transfer(12_000_000, 5006, "a", version), "a transfer")
        as_many(taps, witness.path)
        end(host)
        want = end(witness)
        longest = max(size for size in frame_lengths(host.path))
        ok(longest > 66_000, f"a frame of {longest} bytes")
        for t, source in zip(taps, SOURCES):
            closes(t.end(), source)
            same(f"{source}, IPv{version}", t.records, want)


def frame_lengths(path):
    return [int(line) for line in network.sh(f"tshark -n -r {path} -T fields -e frame.len").split()]


if shutil.which("tcpdump") is None or shutil.which("ethtool") is None:
    tap.skip_all("missing: tcpdump or ethtool")
make()
lab.run(test_wire, test_ipv6, test_flows_and_questions, test_to_collector, test_rules, test_tunnel, test_big)
sys.exit(tap.end())
