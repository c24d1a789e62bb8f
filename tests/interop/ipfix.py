# SPDX-License-Identifier: BSD-2-Clause
"""Flows as IPFIX to collectors of others: nfdump, pmacct, tshark, and one of this test for what they do not show. The same
flows, packet for packet; over UDP and TCP; a collector that is away, closes, comes back, or takes nothing.

usage: ipfix.py PATHLINE [TEST…]
"""
import collections
import json
import os
import shutil
import socket
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import collectors, lab, network, pathline, pcap, tap, tapping  # noqa: E402
from lib.collectors import Nfdump, Pmacct, Tcp, ms  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import LIMIT, wait  # noqa: E402

A, B = "10.79.0.1", "10.79.0.2"
WIRE = tapping.Wire("ipfix", A, B)
NS = WIRE.ns
LONG = ("--flow-idle", "1h", "--flow-active", "1h")


# ---- flows ----

def address(text):
    return int.from_bytes(socket.inet_aton(text), "big")


def directions(flow):
    """(source, destination, ports, protocol, packets, bytes, ms of its begin and end) of each that had packets."""
    times = flow["first_ts"] // 1000000, flow["last_ts"] // 1000000
    there = flow["src"], flow["dst"], flow["sport"], flow["dport"], flow["proto"], flow["pkts_fwd"], flow["bytes_fwd"], *times
    back = flow["dst"], flow["src"], flow["dport"], flow["sport"], flow["proto"], flow["pkts_rev"], flow["bytes_rev"], *times
    return [d for d in (there, back) if d[5] > 0]


def of_reader(r):
    def text(n):
        return socket.inet_ntoa(struct.pack(">I", n))
    return text(r[8]), text(r[12]), r[7], r[11], r[4], r[2], r[1], r[152], r[153]


def traffic(name, *options):
    path = lab.path(name + ".pcap")
    eq(pathline.run("gen", "packets", "--seed", "7", *options, "-w", path).returncode, 0, "traffic")
    flows = pathline.jsonl(pathline.run("tap", "--flows", *LONG, "-o", "jsonl", path).stdout)
    return path, flows, collections.Counter(d for f in flows for d in directions(f))


def export(path, *outputs):
    """The accounts of the outputs."""
    args = [x for o in outputs for x in ("--to", o)]
    run = pathline.run("tap", "--flows", *LONG, "--stats", *args, path)
    return json.loads(run.stdout.splitlines()[-1])["outputs"], run


def test_collectors():
    """What nfdump and pmacct kept is what the flow cache made, direction by direction."""
    os.environ["TZ"] = "UTC"
    path, flows, want = traffic("small", "--connections", "20", "--duration", "3s")
    ok(100 < len(flows) < 700, f"{len(flows)} flows: their messages fit into a socket's buffer")
    nfdump, pmacct = Nfdump(lab.free_port(socket.SOCK_DGRAM)), Pmacct(lab.free_port(socket.SOCK_DGRAM))
    outputs, run = export(path, *(f"ipfix://127.0.0.1:{c}" for c in (nfdump.at, pmacct.at)))
    eq([(o["records"], o["sent"], o["failed"], o["dropped"]) for o in outputs], [(len(flows), len(flows), 0, 0)] * 2, "all are sent")
    wait(lambda: len(pmacct.flows()) >= sum(want.values()))
    got = collections.Counter((f["ip_src"], f["ip_dst"], f["port_src"], f["port_dst"], {"tcp": 6, "udp": 17}[f["ip_proto"]], f["packets"], f["bytes"],
                               round(float(f["timestamp_start"]) * 1000), round(float(f["timestamp_end"]) * 1000)) for f in pmacct.flows())
    eq((got - want, want - got), (collections.Counter(), collections.Counter()), f"pmacct has the {sum(want.values())} directions of {len(flows)} flows")
    got = collections.Counter((f["src4_addr"], f["dst4_addr"], f["src_port"], f["dst_port"], f["proto"], f["in_packets"], f["in_bytes"], ms(f["first"]),
                               ms(f["last"])) for f in nfdump.flows())
    eq((got - want, want - got), (collections.Counter(), collections.Counter()), "and so has nfdump")


def ipv6_frames():
    """UDP both ways, a connection, echoes and a neighbour's solicitation."""
    one, two = (socket.inet_pton(socket.AF_INET6, f"2001:db8::{i}") for i in (1, 2))

    def frame(back, proto, payload):
        src, dst = (two, one) if back else (one, two)
        return bytes(12) + b"\x86\xdd" + struct.pack(">IHBB", 6 << 28, len(payload), proto, 64) + src + dst + payload

    def udp(back, n):
        return frame(back, 17, struct.pack(">HHHH", *((53, 4000) if back else (4000, 53)), 8 + n, 0) + bytes(n))

    def tcp(back, flags, seq, ack):
        return frame(back, 6, struct.pack(">HHIIBBHHH", *((443, 5000) if back else (5000, 443)), seq, ack, 0x50, flags, 1000, 0, 0))

    def icmp(back, kind):
        return frame(back, 58, struct.pack(">BBHHH", kind, 0, 0, 1, 1) + bytes(24))
    return [udp(False, 20), udp(True, 500), udp(False, 30), tcp(False, 2, 0, 0), tcp(True, 18, 9, 1), tcp(False, 16, 1, 10), tcp(False, 17, 1, 10),
            tcp(True, 17, 10, 2), tcp(False, 16, 2, 11), icmp(False, 128), icmp(True, 129), icmp(False, 128), icmp(True, 129), icmp(False, 135)]


def test_ipv6():
    """The same over IPv6."""
    path = pcap.write(lab.path("ipv6.pcap"), ipv6_frames(), step_ns=7_000_000)
    flows = pathline.jsonl(pathline.run("tap", "--flows", *LONG, "-o", "jsonl", path).stdout)
    want = collections.Counter(d for f in flows for d in directions(f))
    eq((len(flows), sum(d[5] for d in want.elements())), (4, 14), "four flows, of all packets")
    nfdump, pmacct = Nfdump(lab.free_port(socket.SOCK_DGRAM)), Pmacct(lab.free_port(socket.SOCK_DGRAM))
    outputs, _ = export(path, *(f"ipfix://127.0.0.1:{c}" for c in (nfdump.at, pmacct.at)))
    eq([o["sent"] for o in outputs], [4, 4], "all are sent")

    def transports(counter):
        """Types and codes of ICMP are told by each in its own way."""
        return collections.Counter({d: n for d, n in counter.items() if d[4] != 58})
    wait(lambda: len(pmacct.flows()) >= sum(want.values()))
    got = collections.Counter((f["ip_src"], f["ip_dst"], f["port_src"], f["port_dst"], {"tcp": 6, "udp": 17}.get(f["ip_proto"], 58), f["packets"], f["bytes"],
                               round(float(f["timestamp_start"]) * 1000), round(float(f["timestamp_end"]) * 1000)) for f in pmacct.flows())
    eq(transports(got), transports(want), "pmacct has their directions")
    kept = nfdump.flows()
    got = collections.Counter((f["src6_addr"], f["dst6_addr"], f.get("src_port", 0), f.get("dst_port", 0), f["proto"], f["in_packets"], f["in_bytes"],
                               ms(f["first"]), ms(f["last"])) for f in kept)
    eq(transports(got), transports(want), "and so has nfdump")
    eq({(f["src6_addr"][-1], f["icmp_type"], f["icmp_code"]): f["in_packets"] for f in kept if f["proto"] == 58},
       {("1", 128, 0): 2, ("2", 129, 0): 2, ("1", 135, 0): 1}, "with the types of ICMPv6")


def test_both_directions():
    """RFC 5103: nfdump reads both directions out of one record, and tshark has nothing to say against it."""
    path, flows, want = traffic("both", "--connections", "20", "--duration", "3s")
    nfdump = Nfdump(lab.free_port(socket.SOCK_DGRAM))
    outputs, _ = export(path, f"ipfix://127.0.0.1:{nfdump.at}?biflow=yes")
    eq(outputs[0]["sent"], len(flows), "all are sent")
    got = collections.Counter()
    for f in nfdump.flows():
        times = ms(f["first"]), ms(f["last"])
        there = f["src4_addr"], f["dst4_addr"], f["src_port"], f["dst_port"]
        for ends, packets, octets in ((there, f["in_packets"], f["in_bytes"]),
                                      ((there[1], there[0], there[3], there[2]), f.get("out_packets", 0), f.get("out_bytes", 0))):
            if packets:
                got[(*ends, f["proto"], packets, octets, *times)] += 1
    eq((got - want, want - got), (collections.Counter(), collections.Counter()), "nfdump has both directions of every flow")


def test_tshark():
    """Every message is well formed to tshark, with elements that it knows, in each form of time."""
    if shutil.which("tshark") is None:
        tap.skip("tshark", "missing: tshark")
        return
    path, flows, _ = traffic("shark", "--connections", "5", "--duration", "1s")
    for at, keys in ((4739, ""), (4740, "?biflow=yes&time=us"), (4741, "?time=ns&pen=64512")):
        sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sink.bind(("127.0.0.1", at))
        sink.settimeout(LIMIT)
        outputs, _ = export(path, f"ipfix://127.0.0.1:{at}{keys}")
        out = lab.path(f"ipfix-{at}.pcap")
        collectors.write_capture(out, [sink.recv(65536) for _ in range(outputs[0]["messages"])], at)
        sink.close()
        said = subprocess.run(["tshark", "-n", "-r", out, "-d", f"udp.port=={at},cflow", "-V"], capture_output=True, text=True, check=True).stdout
        bad = [line.strip() for line in said.splitlines() if "alformed" in line or "xpert" in line or "No template found" in line]
        if "pen" not in keys:
            bad += [line.strip() for line in said.splitlines() if "nknown" in line and "nknown" in line.split(":")[0]]
        eq(bad[:3], [], f"tshark finds no fault ({keys or 'as it is by itself'})")
        ok(said.count("Flow ") >= len(flows), "and as many flows")
        if "biflow" in keys:
            roles = collections.Counter({"client": 1, "server": 2}.get(f["role"], 0) for f in flows)
            told = subprocess.run(["tshark", "-n", "-r", out, "-d", f"udp.port=={at},cflow", "-T", "fields", "-e", "cflow.biflow_direction"],
                                  capture_output=True, text=True, check=True).stdout
            eq(collections.Counter(int(v) for v in told.replace(",", " ").split()), roles, "biflowDirection says the roles")
            ok(roles[1] > 5, "which are not few", roles)


def test_tcp():
    """A collector that is not there yet, that closes the connection, and that comes back: what waits outlives it."""
    path, flows, want = traffic("tcp", "--connections", "400", "--duration", "3s")
    collector = Tcp()
    outputs, _ = export(path, f"ipfix://127.0.0.1:{collector.at}?transport=tcp")
    eq((outputs[0]["sent"], outputs[0]["connections"]), (len(flows), 1), "over one connection")
    wait(lambda: len(collector.records()) == sum(want.values()))
    eq(collections.Counter(map(of_reader, collector.records())) == want, True, f"all {len(flows)} flows, direction by direction")
    eq(collector.faults(), [], "numbers in sequence, every template known")
    eq([a[166] for a in collector.sessions[0].accounts], [0], "the account says that nothing was lost")
    eq([r for r in collector.records() if 61 in r], [], "and no direction, of which a capture says nothing")
    collector.close()


def test_tcp_again():
    """Traffic goes on while the collector is away: no flow is lost but those in messages of the connection that broke."""
    spot = Tcp()
    at = spot.at
    spot.close()
    rules = ("--flow-idle", "5s", "--flow-active", "1h", "--rate", "4000")
    trace, _, _ = traffic("again", "--connections", "50", "--duration", "30s")
    with open(lab.path("again.err"), "w", encoding="utf-8") as err:
        p = lab.start([pathline.PATHLINE, "tap", "--flows", "--stats", *rules, "--to", f"ipfix://127.0.0.1:{at}?transport=tcp", trace],
                      stdout=subprocess.PIPE, stderr=err, text=True)
    ok(wait(lambda: "Connection refused" in lab.read("again.err")), "a collector that is away is told")
    first = Tcp(at)
    ok(wait(lambda: len(first.records()) > 50), "flows come when it is there")
    first.end()
    ok(wait(lambda: "closed the connection" in lab.read("again.err")), "that it is gone is told", lab.read("again.err"))
    second = Tcp(at)
    last = json.loads(p.communicate(timeout=4 * LIMIT)[0].splitlines()[-1])
    said = last["outputs"][0]
    packets = last["tap"]["records"]

    def told():
        return sum(r[2] for r in first.records() + second.records())
    ok(said["connections"] == 2 and wait(lambda: len(second.sessions) == 1 and second.sessions[0].accounts), "the next one gets the rest")
    eq((said["sent"] + said["failed"], said["dropped"]), (said["records"], 0), "the account closes, and nothing found no room")
    lost = second.sessions[0].accounts[0]
    ok(wait(lambda: told() + lost[167] == packets), "packets that the collectors have, and that the account says were lost, are all that there were",
       f"{told()} + {lost} = {packets}")
    eq(second.faults() + first.faults(), [], "each session begins with its templates, and at number 0")
    eq((first.sessions[0].numbers[0], second.sessions[0].numbers[0]), (0, 0), "numbers begin anew")
    second.close()


def test_nobody():
    """Without a collector flows wait, are dropped at the end, and counted."""
    spot = Tcp()
    at = spot.at
    spot.close()
    path, flows, _ = traffic("full", "--connections", "50", "--duration", "2s")
    outputs, run = export(path, f"ipfix://127.0.0.1:{at}?transport=tcp")
    eq((outputs[0]["sent"], outputs[0]["dropped"]), (0, len(flows)), "with nobody there all are dropped, and counted")
    ok(run.returncode != 0, "and the exit code says so", run.returncode)
    outputs, run = export(path, f"ipfix://127.0.0.1:{at}")
    ok(outputs[0]["refused"] > 0 and "nothing listens" in run.stderr, "over UDP it is told that nothing listens", f"{outputs} {run.stderr}")


def test_live():
    """Real TCP and UDP between two hosts: what nfdump keeps of a tap at one of them is what the interface counted."""
    nfdump = Nfdump(4739, NS["a"])
    # The interface counts a frame that is left to the NIC to take apart as one packet; the tap its packets on the wire.
    WIRE.single()

    def moved():
        """packets and bytes that eth0 received and sent"""
        return [sum(int(NS["a"].sh(f"cat /sys/class/net/eth0/statistics/{d}_{what}")) for d in ("rx", "tx")) for what in ("packets", "bytes")]
    # Neighbours are known for good, so that nothing but IP passes.
    for side, other, to in (("a", "b", B), ("b", "a", A)):
        mac = ":".join(f"{x:02x}" for x in NS[other].mac("eth0"))
        NS[side].ip(f"neigh replace {to} lladdr {mac} dev eth0 nud permanent")
    with NS["a"]:
        directed = Tcp()
    t = tapping.Tap(NS["a"], "live", "--flows", *LONG, "--to", "ipfix://127.0.0.1", "--to", f"ipfix://127.0.0.1:{directed.at}?transport=tcp",
                    "packet:eth0?ring=65536")
    before = moved()
    ok(WIRE.tcp_transfer(5_000_000), "a TCP transfer is whole")
    WIRE.udp_send(400)
    NS["a"].sh(f"ping -q -c 3 -i 0.2 {B}")
    wait(lambda: t.look()["tap"]["records"] >= moved()[0] - before[0])
    packets, octets = (now - then for now, then in zip(moved(), before))
    stats = t.end()
    eq(stats["ports"]["kernel_drops"], 0, "the tap saw every packet")
    flows = nfdump.flows()
    eq(sum(f["in_packets"] for f in flows), packets, "packets of nfdump are those of the interface")
    eq(sum(f["in_bytes"] for f in flows) + 14 * packets, octets, "and bytes, with the header of Ethernet")
    echoes = {(f["icmp_type"], f["icmp_code"]): f["in_packets"] for f in flows if f["proto"] == 1}
    eq((echoes[8, 0], echoes[0, 0]), (3, 3), "three echoes, and as many answers")
    ok(wait(lambda: sum(r[2] for r in directed.records()) == packets), "another collector has them, too")
    # TCP comes back within the flow, ICMP as a flow of its own.
    eq({(r[4], r[8] == address(A), r.get(61)) for r in directed.records()},
       {(6, True, 1), (6, False, 0), (17, True, 1), (1, True, 1), (1, False, 0)},
       "flowDirection: egress and ingress, of the way back too")
    eq(directed.faults(), [], "every template known")


def test_words():
    cases = (
        (["--to", "ipfix://127.0.0.1", "packet:lo"], 2, "tap --flows"),
        (["--flows", "--to", "ipfix://", "packet:lo"], 2, "ipfix://HOST[:PORT]"),
        (["--flows", "--to", "ipfix://h/x", "packet:lo"], 2, "ipfix://HOST[:PORT]"),
        (["--flows", "--to", "ipfix://::1", "packet:lo"], 2, "ipfix://[::1]"),
        (["--flows", "--to", "ipfix://127.0.0.1:99999", "packet:lo"], 2, "ipfix: '127.0.0.1:99999'"),
        (["--flows", "--to", "ipfix://no.such.invalid", "packet:lo"], 69, "ipfix://no.such.invalid:4739"),
        (["--flows", "--to", "ipfix://127.0.0.1:0", "packet:lo"], 2, "ipfix: a collector has a port"),
        (["--flows", "--to", "ipfix://:4739", "packet:lo"], 2, "ipfix://HOST[:PORT]"),
        (["--flows", "--to", "ipfix://127.0.0.1?transport=sctp", "packet:lo"], 2, "udp or tcp"),
        (["--flows", "--to", "ipfix://127.0.0.1?time=s", "packet:lo"], 2, "ms, us or ns"),
        (["--flows", "--to", "ipfix://127.0.0.1?pen=0", "packet:lo"], 2, "pen"),
        (["--flows", "--to", "ipfix://127.0.0.1?pen=29305", "packet:lo"], 2, "RFC 5103"),
        (["--flows", "--to", "ipfix://127.0.0.1?biflow=both", "packet:lo"], 2, "biflow"),
        (["--flows", "--to", "ipfix://127.0.0.1?colour=red", "packet:lo"], 2, "colour"),
    )
    for args, code, says in cases:
        run = pathline.run("tap", *args)
        ok(run.returncode == code and says in run.stderr and "udp:" not in run.stderr, f"tap {' '.join(args)}: {code}", f"{run.returncode} {run.stderr}")
    config = lab.write("tap.yaml", "taps: [{name: f, sources: ['packet:lo'], records: packets, to: ['ipfix://127.0.0.1']}]\n")
    run = pathline.run("config", "check", config)
    ok(run.returncode != 0 and "records: flows" in run.stderr, "config check: packets are not exported as IPFIX", run.stderr)


WIRE.make()
lab.run(test_collectors, test_ipv6, test_both_directions, test_tshark, test_tcp, test_tcp_again, test_nobody, test_live, test_words)
sys.exit(tap.end())
