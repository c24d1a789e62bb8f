# SPDX-License-Identifier: BSD-2-Clause
"""Hosts as INT nodes: a source and a sink on a wire between two namespaces, with UDP of all lengths and TCP of the kernel's own
stacks, its offloads on; what goes over the wire by tshark, which adds up every checksum; packets that a middle drops, and to which it
adds a hop, against what the sink and a daemon say; the MTU's edge; forged INT; rules that change; kill -9.

usage: int_hosts.py PATHLINE [TEST…]
"""
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, network, pathline, tap, tapping  # noqa: E402
from lib.pathline import PATHLINE  # noqa: E402
from lib.roce import ones_sum, packet_socket  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import LIMIT, wait  # noqa: E402

A, B = "10.81.0.1", "10.81.0.2"
A1, B1 = "10.82.0.1", "10.82.0.2"
A6, B6 = "fd81::1", "fd81::2"
GROWTH = 32
SO_RCVBUFFORCE = 33
WIRE = tapping.Wire("inth", A, B)
NS = WIRE.ns


class Node(tapping.Printing):
    """`pathline int` in a namespace, up."""

    def __init__(self, role, side, *args, dev="eth0", name=None):
        self.role = role
        super().__init__(NS[side], name or role, role, "INT " + role, "int", role, "--dev", dev, "--stats", *args)

    def paths(self):
        return [line for line in self.lines() if line.get("kind") == "path"]

    def look(self):
        """Its counters now."""
        return super().look()[self.role]

    def end(self):
        self.p.send_signal(signal.SIGTERM)
        eq(self.p.wait(timeout=2 * LIMIT), 0, f"{self.role} ends well")
        self.all = self.lines()[-1]
        self.stats = self.all[self.role]
        closes(self.role, self.stats)
        return self.stats


def closes(role, s):
    if role == "source":
        eq(s["packets"], sum(s[k] for k in s if k != "packets"), "source: packets are accounted for")
    else:
        eq(s["packets"], sum(s[k] for k in ("stripped", "copies", "plain", "malformed", "outside", "failed")), "sink: packets are accounted for")
        eq(s["stripped"] + s["copies"] + s["failed"], s["reports"] + s["not_reported"] + s["ring_full"], "sink: so are reports")


def sink(*args, **kwargs):
    return Node("sink", "b", "--node", "2", *args, **kwargs)


def source(*args, **kwargs):
    return Node("source", "a", "--node", "1", *args, **kwargs)


class Receiver:
    """Takes datagrams in b."""

    def __init__(self, address, port):
        with NS["b"]:
            self.s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
            self.s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
            self.s.bind((address, port))
        self.s.setblocking(False)
        self.got = []

    def take(self):
        try:
            while True:
                self.got.append(self.s.recv(65536))
        except BlockingIOError:
            return self.got

    def close(self):
        self.s.close()
        return self.got


def send(address, port, payloads, pause=0.0):
    with NS["a"]:
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as s:
            for p in payloads:
                s.sendto(p, (address, port))
                if pause:
                    time.sleep(pause)


def dump(side, name, dev="eth0"):
    pcap = lab.path(name + ".pcap")
    p = lab.start(NS[side].command("tcpdump", "-i", dev, "-B", "32768", "-Z", "root", "-U", "-w", pcap), log=lab.path(name + ".dump"))
    ok(wait(lambda: "listening on" in lab.read(name + ".dump")), "tcpdump is up")
    return p, pcap


def checksums(pcap):
    """Of each packet with INT: the states of its checksums by tshark (1: good), lengths and protocol."""
    out = subprocess.run(["tshark", "-r", pcap, "-o", "udp.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE",
                          "-o", "ip.check_checksum:TRUE", "-Y", "ip.dsfield.dscp==23 or ipv6.tclass.dscp==23", "-T", "fields",
                          "-e", "ip.checksum.status", "-e", "udp.checksum.status", "-e", "tcp.checksum.status", "-e", "frame.len"],
                         capture_output=True, text=True, check=True, timeout=4 * LIMIT).stdout
    return [line.split("\t") for line in out.splitlines()]


def programs(side):
    return NS[side].sh("bpftool net show", check=False) + NS[side].ip("link show eth0")


def gone(side):
    return "pl_host" not in programs(side) and "prog/xdp" not in programs(side)


def test_datagrams():
    """UDP of every length, IPv4 and IPv6, is what was sent; on the wire it has INT, with right checksums."""
    k, s = sink("-o", "jsonl"), source("--rule", "take proto=udp")
    p, pcap = dump("a", "datagrams")
    payloads = [bytes([n % 251]) * n for n in range(1441)]
    receivers = [Receiver(B, 6000), Receiver(B6, 6001)]
    send(B, 6000, payloads, 0.0005)
    send(B6, 6001, payloads, 0.0005)
    ok(wait(lambda: len(receivers[0].take()) == 1441 and len(receivers[1].take()) == 1441), "all come")
    eq([r.close() == payloads for r in receivers], [True, True], "and are what was sent")
    sent, came = s.end(), k.end()
    # 1440 bytes, 8 of UDP, 20 of IPv4 and INT are 1500; of IPv6, whose header is longer, the last 20 are too long.
    eq(sent["instrumented"], 2 * 1441 - 20, "but for those of IPv6 that would be longer than the MTU all got INT")
    eq((sent["over_mtu"], came["stripped"], came["malformed"], came["failed"]), (20, sent["instrumented"], 0, 0), "and lost it at the sink")
    eq((came["skipped_numbers"], came["late"], came["duplicates"], came["flows"]), (0, 0, 0, 2), "numbers are whole")
    ok(wait(lambda: len(checksums(pcap)) == sent["instrumented"]), "tshark sees as many")
    p.send_signal(signal.SIGTERM)
    p.wait(LIMIT)
    rows = checksums(pcap)
    eq({tuple(r[:3]) for r in rows}, {("1", "1", ""), ("", "1", "")}, "and no checksum that is wrong")
    eq(max(int(r[3]) for r in rows), 1514, "the longest is as long as the MTU")
    paths = k.paths()
    eq(len(paths), sent["instrumented"], "every packet is reported")
    eq({tuple(h["node"] for h in r["hops"]) for r in paths}, {(1, 2)}, "from node 1 to node 2")
    eq(sorted(r["flow_seq"] for r in paths if r["flow"]["dport"] == 6000), list(range(1441)), "with its number")
    late = [r["hops"][1].get("link_latency_ns") for r in paths]
    # More than two seconds are no latency, and a machine may stand still for as long.
    ok(any(late) and all(v is None or v > 0 for v in late), "and its latency", [v for v in late if not v][:3])
    eq({r["flow"]["dscp"] for r in paths}, {0}, "the DSCP is the sender's again")
    ok(wait(lambda: gone("a") and gone("b")), "the programs are gone", programs("a") + programs("b"))


def test_streams():
    """TCP whose segments the NIC is to make stays as it was, and is counted; the other packets carry INT."""
    k, s = sink("-o", "jsonl"), source("--rule", "take proto=tcp")
    p, pcap = dump("a", "streams")
    ok(WIRE.tcp_transfer(5_000_000), "a TCP transfer is whole")
    sent, came = s.end(), k.end()
    ok(wait(lambda: len(checksums(pcap)) == sent["instrumented"]), "tshark sees as many packets with INT")
    p.send_signal(signal.SIGTERM)
    p.wait(LIMIT)
    ok(sent["segments"] > 20, "segments were left to the NIC", sent)
    ok(sent["instrumented"] >= 3, "SYN, ACK and FIN have INT", sent)
    eq(came["stripped"], sent["instrumented"], "and lose it at the sink")
    eq({r[2] for r in checksums(pcap)}, {"1"}, "no checksum on the wire is wrong")


def test_each_segment():
    """With one segment to a send, and room for INT by the route's MTU, every segment carries INT."""
    NS["a"].ip("link set eth0 gso_max_segs 1")
    NS["a"].ip(f"route replace 10.81.0.0/24 dev eth0 src {A} mtu lock {1500 - GROWTH}")
    k, s = sink("-o", "jsonl", "--every", "100"), source("--rule", "take proto=tcp")
    p, pcap = dump("a", "segments")
    ok(WIRE.tcp_transfer(2_000_000, 5001), "a TCP transfer is whole")
    sent, came = s.end(), k.end()
    ok(wait(lambda: len(checksums(pcap)) == sent["instrumented"]), "tshark sees as many packets with INT")
    p.send_signal(signal.SIGTERM)
    p.wait(LIMIT)
    NS["a"].ip("link set eth0 gso_max_segs 65535")
    NS["a"].ip(f"route replace 10.81.0.0/24 dev eth0 src {A}")
    eq((sent["segments"], sent["over_mtu"]), (0, 0), "nothing is left out")
    ok(sent["instrumented"] > 1300, "all segments have INT", sent)
    eq(came["stripped"], sent["instrumented"], "and lose it at the sink")
    eq((came["skipped_numbers"], came["flows"]), (0, 1), "none is missing")
    eq(came["reports"], (came["stripped"] + 99) // 100, "every hundredth is reported")
    ok(not any("flow_seq" in r for r in k.paths()), "without numbers, whose gaps would be no losses")
    rows = checksums(pcap)
    eq({r[2] for r in rows}, {"1"}, "no checksum on the wire is wrong")
    eq(max(int(r[3]) for r in rows), 1514, "the longest is as long as the MTU")


def test_tunnel():
    """A tunnel's packets have a checksum of their own, right once the NIC has summed the packet inside: they stay as they are."""
    NS["a"].sh("ethtool -K eth0 tx off")
    for side, local, remote, inner in (("a", A6, B6, "10.83.0.1"), ("b", B6, A6, "10.83.0.2")):
        NS[side].ip(f"link add vx type vxlan id 5 local {local} remote {remote} dstport 4789 dev eth0")
        NS[side].ip("link set vx mtu 1300")
        NS[side].up("vx", inner + "/24")
    k, s = sink("-o", "jsonl"), source("--rule", "take proto=udp port=4789")
    r = Receiver("10.83.0.2", 6012)
    payloads = [bytes([n]) * n for n in range(100)]
    send("10.83.0.2", 6012, payloads, 0.001)
    ok(wait(lambda: len(r.take()) == 100), "all come through the tunnel", len(r.got))
    eq(r.close(), payloads, "and are what was sent")
    sent, came = s.end(), k.end()
    ok(sent["checksum"] >= 100, "none of them had INT", sent)
    eq((came["stripped"], came["failed"]), (sent["instrumented"], 0), "what had some, such as ARP inside, lost it")
    for side in "ab":
        NS[side].ip("link del vx")
    NS["a"].sh("ethtool -K eth0 tx on")


def test_edge():
    """The longest packet that has room for INT, and the next one."""
    k, s = sink("-o", "jsonl"), source("--rule", "take proto=udp", "--mtu", "1400")
    r = Receiver(B, 6002)
    room = 1400 - GROWTH - 28
    send(B, 6002, [bytes(room), bytes(room + 1), bytes(room)])
    ok(wait(lambda: len(r.take()) == 3), "all come")
    r.close()
    sent, came = s.end(), k.end()
    eq((sent["instrumented"], sent["over_mtu"], came["stripped"]), (2, 1, 2), "one byte decides")
    eq([p["flow_seq"] for p in k.paths()], [0, 1], "what has no INT has no number")


class Middle:
    """Hands frames from one wire to the other, past the host; those with INT by way of change(frame, number), None: dropped."""

    def __init__(self, change):
        self.change, self.n, self.stop = change, 0, False
        self.sockets = [packet_socket(NS["m"], dev) for dev in ("left", "right")]
        for s in self.sockets:
            s.settimeout(0.05)
            s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        self.threads = [threading.Thread(target=self.carry, args=(self.sockets[i], self.sockets[1 - i]), daemon=True) for i in (0, 1)]
        for t in self.threads:
            t.start()

    def carry(self, come, go):
        while not self.stop:
            try:
                frame, address = come.recvfrom(65536)
            except socket.timeout:
                continue
            if address[2] == socket.PACKET_OUTGOING:
                continue
            if frame[12:14] == b"\x08\0" and frame[15] >> 2 == 23:
                frame = self.change(frame, self.n)
                self.n += 1
            if frame is not None:
                go.send(frame)

    def end(self):
        self.stop = True
        for t in self.threads:
            t.join(LIMIT)
        for s in self.sockets:
            s.close()


def test_loss():
    """What the middle drops is missing at the sink, and the daemon that gets the reports tells of as many packets lost."""
    dropped = [n for n in range(50, 900) if n % 97 in (3, 4) or n == 500]
    m = Middle(lambda frame, n: None if n in dropped else frame)
    port, web = lab.free_udp_port(), lab.free_port()
    d = pathline.Daemon(lab.write("loss.yaml", f"sources: [{{uri: 'udp://127.0.0.1:{port}'}}]\nweb: {{listen: '127.0.0.1:{web}'}}\n"
                                  f"outputs: [{{path: {lab.path('loss.jsonl')}, paths: false}}]\ndetect: {{loss_hold: 2s}}\n"),
                        "loss", prefix=NS["b"].command())
    k, s = sink("--to", f"udp://127.0.0.1:{port}", dev="eth1"), source("--rule", "take proto=udp port=6003", dev="eth1")
    r = Receiver(B1, 6003)
    send(B1, 6003, [struct.pack(">I", n) * 20 for n in range(1000)], 0.001)
    ok(wait(lambda: len(r.take()) == 1000 - len(dropped)), "all but what the middle dropped come", len(r.got))

    def lost():
        values = NS["b"].call(d.metrics)
        return pathline.total(values, "pathline_flow_lost_packets_total")
    ok(wait(lambda: lost() == len(dropped)), f"the daemon counts {len(dropped)} packets lost", lost())

    def told():
        return sum(e["value"] for e in pathline.jsonl(lab.read("loss.jsonl"))
                   if e["kind"] == "event" and e["event"] == "packet_loss" and e["phase"] == "end")
    ok(wait(lambda: told() == len(dropped), 2 * LIMIT), "and its events tell of as many", told())
    eq({p[:8] for p in r.close()}, {struct.pack(">I", n) * 2 for n in range(1000) if n not in dropped}, "the others are what was sent")
    sent, came = s.end(), k.end()
    m.end()
    eq(sent["instrumented"], 1000, "all had INT")
    eq((came["skipped_numbers"] - came["late"], came["stripped"]), (len(dropped), 1000 - len(dropped)), "the sink counts the same")
    output = k.all["output"]
    eq((output["taken"], output["sent"], output["failed"]), (came["reports"], came["reports"], 0), "all reports are sent")
    ok(output["datagrams"] < output["sent"], "several in a datagram", output)
    d.stop()


def test_reports_missing():
    """Reports that the sink had no room for, and packets that came while there was none, are no losses to the daemon."""
    port, web = lab.free_udp_port(), lab.free_port()
    d = pathline.Daemon(lab.write("missing.yaml", f"sources: [{{uri: 'udp://127.0.0.1:{port}'}}]\nweb: {{listen: '127.0.0.1:{web}'}}\n"
                                  f"outputs: [{{path: {lab.path('missing.jsonl')}, paths: false}}]\ndetect: {{loss_hold: 2s}}\n"),
                        "missing", prefix=NS["b"].command())
    to = "--to", f"udp://127.0.0.1:{port}"
    with NS["a"]:
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def burst(payloads, pause):
        """All of one flow."""
        for p in payloads:
            one.sendto(p, (B, 6013))
            time.sleep(pause)

    def total(what):
        """Reports of a first datagram, which could be anybody's, are not among them."""
        return pathline.total(NS["b"].call(d.metrics), f"pathline_flow_{what}_packets_total")
    s, r = source("--rule", "take proto=udp port=6013"), Receiver(B, 6013)
    k = sink(*to)
    burst([b"a"] * 30, 0.02)
    ok(wait(lambda: total("numbered") >= 20), "packets are reported")
    k.end()
    burst([b"b"] * 20, 0.001)
    k = sink("--ring", "64KiB", *to, name="sink2")
    burst([b"c"] * 30, 0.1)
    ok(wait(lambda: total("numbered") >= 45), "and others, when another sink took its place")
    # Those that find no room, and those that come behind them, on different processors.
    processors = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, processors[:1])
    k.p.send_signal(signal.SIGSTOP)
    burst([b"d"] * 1500, 0.0002)
    k.p.send_signal(signal.SIGCONT)
    os.sched_setaffinity(0, processors[-1:])
    ok(wait(lambda: k.look()["stripped"] == 1530), "all come while the sink sleeps")
    burst([b"e"] * 30, 0.1)
    os.sched_setaffinity(0, processors)
    s.end()
    came = k.end()
    ok(came["ring_full"] > 100, "the ring had no room for many", came)
    ok(wait(lambda: total("numbered") >= came["reports"]), "the others are reported")
    ok(wait(lambda: total("unsure") + total("lost") >= came["ring_full"]), "the daemon knows of what is missing", came)
    eq(total("lost"), 0, "and takes none of it for lost packets")
    r.close()
    one.close()
    d.stop()


def with_hop(frame, _):
    """As an INT switch of node 50 would hand it on."""
    frame = bytearray(frame)
    frame[42 + 1] += 3
    frame[42 + 7] -= 1
    frame[58:58] = struct.pack(">IQ", 50, time.time_ns())
    frame[16:18] = struct.pack(">H", len(frame) - 14)
    frame[38:42] = struct.pack(">HH", len(frame) - 34, 0)
    frame[24:26] = b"\0\0"
    frame[24:26] = struct.pack(">H", ones_sum(bytes(frame[14:34])))
    pseudo = bytes(frame[26:34]) + struct.pack(">HH", 17, len(frame) - 34)
    frame[40:42] = struct.pack(">H", ones_sum(pseudo + bytes(frame[34:])) or 0xffff)
    return bytes(frame)


def test_switch_between():
    """A switch adds its hop: the path has three nodes, and the packet is the sender's again."""
    m = Middle(with_hop)
    k, s = sink("-o", "jsonl", dev="eth1"), source("--rule", "take proto=udp port=6004", dev="eth1")
    r = Receiver(B1, 6004)
    payloads = [bytes([n]) * n for n in range(200)]
    send(B1, 6004, payloads, 0.001)
    ok(wait(lambda: len(r.take()) == 200), "all come")
    eq(r.close(), payloads, "and are what was sent")
    s.end()
    came = k.end()
    m.end()
    eq((came["stripped"], came["malformed"]), (200, 0), "INT of two nodes is taken off")
    eq({tuple(h["node"] for h in p["hops"]) for p in k.paths()}, {(1, 50, 2)}, "the path has the switch")


def test_forged():
    """Bytes that are no INT behind its DSCP go on as they are or are dropped, as told; so is INT from where no rule lets it in."""
    seen = {}
    for what, malformed, outside in (("passed on", "pass", "pass"), ("dropped", "drop", "drop")):
        k = sink("-o", "jsonl", "--malformed", malformed, "--outside", outside, "--rule", "take src=192.0.2.0/24")
        s = source("--rule", "take proto=udp port=6005")
        r = Receiver(B, 6005), Receiver(B, 6006)
        send(B, 6005, [b"instrumented"])
        with NS["a"]:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plain:
                plain.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 23 << 2)
                for payload in (b"", b"x", b"\x10", bytes(19), bytes(40), bytes([0x10, 255]) + bytes(60),
                                bytes.fromhex("10070000 20000308 84000000") + b"\x50\x4c\x80\0" + bytes(4)):
                    plain.sendto(payload, (B, 6006))
        wait(lambda: k.look()["malformed"] == 7 and k.look()["outside"] == 1)
        if malformed == "pass":
            wait(lambda: len(r[0].take()) == 1 and len(r[1].take()) == 7)
        seen[what] = len(r[0].take()), len(r[1].take())
        for one in r:
            one.close()
        s.end()
        came = k.end()
        eq((came["malformed"], came["outside"], came["stripped"]), (7, 1, 0), f"{what}: each is counted by its cause")
    eq(seen, {"passed on": (1, 7), "dropped": (0, 0)}, "and does what was asked")


def test_rules_change():
    """A file of rules is read again while packets flow; a fault leaves those in force."""
    rules = lab.write("rules", "take proto=udp port=6007\n")
    k, s = sink("-o", "jsonl"), source("--rules", rules)
    r = Receiver(B, 6008)
    send(B, 6008, [b"a"])
    ok(wait(lambda: len(r.take()) == 1) and s.look()["instrumented"] == 0, "another port is not chosen")
    lab.write("rules", "take proto=udp port=6008 sample=2\n")
    s.p.send_signal(signal.SIGHUP)
    ok(wait(lambda: "in force: 1" in s.errors()), "the file is read again", s.errors())
    send(B, 6008, [b"b"] * 10)
    ok(wait(lambda: len(r.take()) == 11) and s.look()["instrumented"] == 5, "every other packet is chosen now", s.look())
    lab.write("rules", "take proto=what\n")
    s.p.send_signal(signal.SIGHUP)
    ok(wait(lambda: "stay as they are" in s.errors()), "a fault is told", s.errors())
    send(B, 6008, [b"c"] * 10)
    ok(wait(lambda: len(r.take()) == 21) and s.look()["instrumented"] == 10, "and changes nothing", s.look())
    r.close()
    s.end()
    eq(k.end()["stripped"], 10, "the sink took INT off all of them")


def test_changes_only():
    """With --change a flow's first packet is reported, and hardly another one while its latency stays."""
    k, s = sink("-o", "jsonl", "--change", "10s", "--refresh", "1h"), source("--rule", "take proto=udp port=6009")
    r = Receiver(B, 6009)
    send(B, 6009, [b"x" * 100] * 300)
    ok(wait(lambda: len(r.take()) == 300), "all come")
    r.close()
    s.end()
    came = k.end()
    eq((came["stripped"], came["reports"], came["not_reported"]), (300, 1, 299), "one report of 300 packets")


def test_kill():
    """kill -9 of both leaves no program; traffic goes on as before, and the next start finds nothing in its way."""
    k, s = sink("-o", "jsonl"), source("--rule", "take")
    for node in (s, k):
        node.p.kill()
        node.p.wait(LIMIT)
    ok(wait(lambda: gone("a") and gone("b")), "the programs are gone", programs("a") + programs("b"))
    ok(WIRE.tcp_transfer(200_000, 5002), "a TCP transfer is whole")
    k, s = sink("-o", "jsonl"), source("--rule", "take")
    ok(WIRE.tcp_transfer(200_000, 5003), "and with new ones")
    sent, came = s.end(), k.end()
    ok(sent["instrumented"] > 0 and came["stripped"] == sent["instrumented"], "which take part", (sent, came))


def test_rights():
    """Once open, both are another user's without rights; the generic mode takes INT off as well; the pages have the counters."""
    web = lab.free_port()
    k = sink("-o", "jsonl", "--user", "nobody", "--mode", "generic", "--web", f"127.0.0.1:{web}")
    s = source("--rule", "take proto=udp port=6010", "--user", "nobody")
    for node in (k, s):
        with open(f"/proc/{node.p.pid}/status", encoding="ascii") as f:
            status = dict(line.split(":", 1) for line in f.read().splitlines())
        ok(status["Uid"].split()[1] != "0" and int(status["CapEff"], 16) == 0, f"{node.role} has no rights left", status["CapEff"])
    r = Receiver(B, 6010)
    payloads = [bytes([n]) * (7 * n) for n in range(200)]
    send(B, 6010, payloads, 0.001)
    ok(wait(lambda: len(r.take()) == 200), "all come")
    eq(r.close(), payloads, "and are what was sent")

    def page():
        with urllib.request.urlopen(f"http://127.0.0.1:{web}/metrics", timeout=LIMIT) as answer:
            return pathline.samples(answer.read().decode())
    ok(wait(lambda: pathline.total(NS["b"].call(page), "pathline_int_sink_stripped_total") == 200), "the page has the sink's counters")
    s.end()
    eq(k.end()["stripped"], 200, "the sink took INT off all of them")
    ok(wait(lambda: gone("a") and gone("b")), "the programs are gone", programs("a") + programs("b"))


def test_usage():
    """What is missing or wrong is said."""
    for args, words in ((["source"], "--dev"), ([], "say source"), (["both"], "say source"), (["sink", "--dev", "eth0"], "--node"),
                        (["source", "--dev", "eth0", "--node", "1"], "--rule"),
                        (["source", "--dev", "eth0", "--node", "1", "--rule", "take", "--dscp", "64"], "too large"),
                        (["source", "--dev", "eth0", "--node", "1", "--rule", "take", "--instructions", "0x0001"], "instructions"),
                        (["sink", "--dev", "nothing0", "--node", "1"], "nothing0"),
                        (["source", "--dev", "eth0", "--node", "1", "--rule", "take", "--to", "udp://127.0.0.1:1"], "option of int sink"),
                        (["source", "--dev", "eth0", "--node", "1", "--rule", "take", "--mode", "generic"], "option of int sink"),
                        (["sink", "--dev", "eth0", "--node", "1", "--mtu", "1400"], "option of int source"),
                        (["sink", "--dev", "eth0", "--node", "1", "--every", "2", "--change", "1ms"], "give one"),
                        (["sink", "--dev", "eth0", "--node", "1", "--rule", "take port=1 sample_flows=2"], "rules cannot sample"),
                        (["sink", "--dev", "eth0", "--node", "1", "--rules", lab.write("sampling", "take sample=2\n")],
                         "rules cannot sample")):
        p = subprocess.run(NS["a"].command(PATHLINE, "int", *args), capture_output=True, text=True, timeout=LIMIT, check=False)
        ok(p.returncode != 0 and words in p.stderr, f"int {' '.join(args)}: is told what is missing", (p.returncode, p.stderr))


def main():
    if os.geteuid() != 0:
        tap.skip_all("missing: root")
    for program in ("tcpdump", "tshark", "bpftool"):
        if shutil.which(program) is None:
            tap.skip_all(f"missing: {program}")
    for side in "abm":
        NS[side] = network.Namespace(f"inth-{side}")
    network.join(NS["a"], "eth0", NS["b"], "eth0")
    network.join(NS["a"], "eth1", NS["m"], "left")
    network.join(NS["m"], "right", NS["b"], "eth1")
    NS["a"].up("eth0", A + "/24", A6 + "/64")
    NS["b"].up("eth0", B + "/24", B6 + "/64")
    for dev in ("left", "right"):
        NS["m"].up(dev)
    NS["a"].up("eth1", A1 + "/24")
    NS["b"].up("eth1", B1 + "/24")
    network.wait_for_carrier(*[(NS[side], dev) for side in "ab" for dev in ("eth0", "eth1")])
    lab.run(test_usage, test_datagrams, test_streams, test_each_segment, test_tunnel, test_edge, test_loss, test_reports_missing, test_switch_between, test_forged,
            test_rules_change, test_changes_only, test_rights, test_kill)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
