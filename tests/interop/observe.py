# SPDX-License-Identifier: BSD-2-Clause
"""`pathline meter --method quic` on captures of connections that are simulated here, byte by byte: two ends that set the spin bit,
the square bit and the loss event bit, and a network that loses and overtakes. Round-trip times and loss are those that packet
numbers give, which the observer does not see; what is a short header, and where it spins, is also what tshark says.

usage: observe.py PATHLINE
"""
import heapq
import os
import random
import shutil
import socket
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, pathline, tap  # noqa: E402
from lib.tap import eq, ok  # noqa: E402

SEED = 9506
MS = 10**6
START = 1_700_000_000 * 10**9
SPIN, SQUARE, LOSS = 0x20, 0x10, 0x08
BITS = ("--bit", "spin:5", "--bit", "square:4", "--bit", "loss:3")
CLIENT, SERVER = b"CCCC", b"SSSSSSSS"  # connection ids that each end takes for itself
UP, DOWN = 8 * MS, 15 * MS  # client to observer, observer to server, each way


def frame(way, port, payload, client_port=40000):
    """Ethernet, IPv4 and UDP around a datagram of the client (0) or the server (1)."""
    hosts, ports = ("10.1.0.1", "192.0.2.1"), (client_port, port)
    udp = struct.pack("!HHHH", ports[way], ports[1 - way], 8 + len(payload), 0) + payload
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, socket.inet_aton(hosts[way]), socket.inet_aton(hosts[1 - way]))
    return bytes(12) + b"\x08\0" + ip + udp


def long_header(way, kind):
    """Initial (0) or Handshake (2) of version 1."""
    to, own = (SERVER, CLIENT) if way == 0 else (CLIENT, SERVER)
    token = b"\0" if kind == 0 else b""
    return bytes([0xC0 | kind << 4]) + b"\0\0\0\1" + bytes([len(to)]) + to + bytes([len(own)]) + own + token + b"\x40\x40" + bytes(64)


def write(path, packets):
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xa1b23c4d, 2, 4, 0, 0, 65535, 1))
        for ns, data in sorted(packets, key=lambda p: p[0]):
            f.write(struct.pack("<IIII", *divmod(ns, 10**9), len(data), len(data)) + data)
    return path


class Connection:
    """loss: of the half before and behind the observer, for packets of either way; overtaking within `jitter`."""

    def __init__(self, seed, loss=(0, 0), jitter=0, spins=True, seconds=3, gap=MS):
        self.dice, self.loss, self.jitter, self.spins = random.Random(seed), loss, jitter, spins
        self.seen, self.queue = [], []
        self.ends = [{"spin": 0, "largest": -1, "unreported": 0, "next": 0} for _ in range(2)]
        self.lost = [[0, 0], [0, 0]]
        for i in range(seconds * 10**9 // gap):
            for way in (0, 1):
                heapq.heappush(self.queue, (START + 100 * MS + i * gap + way * gap // 2, len(self.queue), "send", way, None))
        n = len(self.queue)
        while self.queue:
            at, _, what, way, packet = heapq.heappop(self.queue)
            n += 1
            getattr(self, what)(at, n, way, packet)

    def put(self, at, n, what, way, packet):
        part = 0 if what == "observe" else 1
        if self.dice.random() < self.loss[part]:
            self.lost[way][part] += 1
            self.ends[way]["unreported"] += 1
        else:
            heapq.heappush(self.queue, (at, n, what, way, packet))

    def send(self, at, n, way, _):
        end = self.ends[way]
        byte = 0x40 | (SPIN if end["spin"] and self.spins else 0)
        byte |= SQUARE if end["next"] // 64 % 2 else 0
        if end["unreported"]:
            end["unreported"] -= 1
            byte |= LOSS
        self.put(at + (UP, DOWN)[way] + self.dice.randrange(self.jitter + 1), n, "observe", way, (end["next"], byte))
        end["next"] += 1

    def observe(self, at, n, way, packet):
        self.seen.append((at, way, *packet))
        self.put(at + (DOWN, UP)[way], n, "receive", way, packet)

    def receive(self, at, n, way, packet):
        end, (number, byte) = self.ends[1 - way], packet
        if number > end["largest"]:
            end["largest"], end["spin"] = number, (byte & SPIN != 0) ^ way

    def times(self, way):
        """By packet numbers: intervals between edges, of packets that are the largest so far."""
        largest, edges, last = -1, [], None
        for at, w, number, byte in self.seen:
            if w != way or number < largest:
                continue
            if last is not None and byte & SPIN != last:
                edges.append(at)
            largest, last = number, byte & SPIN
        return [b - a for a, b in zip(edges, edges[1:])]

    def upstream(self, way):
        """Blocks that are whole here: all but the first and the two last."""
        numbers = [number for _, w, number, _ in self.seen if w == way]
        last = max(numbers) // 64
        return 1 - sum(1 for n in numbers if 1 <= n // 64 < last - 1) / (64 * (last - 2))

    def edges(self, way):
        spins = [byte & SPIN for _, w, _, byte in self.seen if w == way]
        return sum(a != b for a, b in zip(spins, spins[1:]))

    def packets(self, port=443, handshake=True, client_port=40000):
        out = []
        if handshake:
            for at, way, kind in ((0, 0, 0), (30, 1, 0), (46, 0, 2)):
                out.append((START + at * MS, frame(way, port, long_header(way, kind), client_port)))
        for at, way, number, byte in self.seen:
            out.append((at, frame(way, port, bytes([byte]) + (SERVER, CLIENT)[way] + struct.pack("!I", number) + bytes(20), client_port)))
        return out


def observe(path, *args):
    run = pathline.run("meter", "--method", "quic", "-o", "jsonl", "--read", path, *args)
    return pathline.jsonl(run.stdout), run


def near(got, want, error, what):
    ok(got is not None and abs(got - want) <= error, what, (got, want))


def test_connections():
    for seed, loss, jitter in ((1, (0, 0), 0), (2, (0.03, 0.02), 0), (3, (0.02, 0.02), 4 * MS)):
        c = Connection(SEED + seed, loss, jitter)
        name = f"loss {loss}, {jitter / MS:g} ms of overtaking"
        rows, run = observe(write(lab.path(f"quic-{seed}.pcap"), c.packets()), *BITS)
        eq((run.returncode, len(rows)), (0, 2), f"{name}: two directions")
        for way, row in enumerate(rows):
            sent = c.ends[way]["next"]
            eq((row["src"], row["sender"], row["spin"], row["packets"], row["edges"]),
               (("10.1.0.1", "192.0.2.1")[way], ("client", "server")[way], "spins", sum(s[1] == way for s in c.seen), c.edges(way)),
               f"{name}: who spins")
            truth = c.times(way)
            near(row["rtt_ns"], sum(truth) / len(truth), sum(truth) / len(truth) * (0.05 if jitter else 0.02), f"{name}: round-trip time")
            near(row["half_ns"], 2 * (DOWN, UP)[way] + jitter / 2, 3 * MS, f"{name}: half of it, beyond the observer")
            eq(row["handshake_ns"], 46 * MS, f"{name}: that of the handshake")
            if not any(loss):
                eq((row["uloss"], row["eloss"], row["dloss"], row["square"]), (0, 0, 0, 64), f"{name}: no loss")
                continue
            near(row["uloss"], min(c.upstream(way), row["eloss"]), 1e-5 + 64 * 0.1 / sent, f"{name}: loss before the observer")
            near(row["eloss"], sum(c.lost[way]) / sent, 0.006, f"{name}: from end to end")
            near(row["dloss"], c.lost[way][1] / sent, 0.012, f"{name}: behind it")


def test_tshark():
    """tshark takes the same packets for short headers, and sees them spin the same."""
    c = Connection(SEED, jitter=2 * MS, seconds=1)
    path = write(lab.path("shark.pcap"), c.packets())
    out = subprocess.run(["tshark", "-n", "-r", path, "-d", "udp.port==443,quic", "-Y", "quic.spin_bit", "-T", "fields", "-e", "ip.src", "-e", "quic.spin_bit"],
                         capture_output=True, text=True, check=True).stdout.split("\n")
    rows, _ = observe(path)
    for row in rows:
        spins = [line.split("\t")[1] for line in out if line.startswith(row["src"] + "\t")]
        eq((row["packets"], row["edges"]), (len(spins), sum(a != b for a, b in zip(spins, spins[1:]))), f"{row['sender']}: as tshark has it")


def test_others():
    """What does not spin, what is no QUIC, what cannot be known to be."""
    quiet, busy = Connection(SEED, spins=False, seconds=1), Connection(SEED, seconds=1)
    path = write(lab.path("quiet.pcap"), quiet.packets())
    rows, run = observe(path)
    eq({(r["spin"], r.get("rtt_ns"), r["notes"]) for r in rows}, {("constant", None, "no-spin")}, "a connection that does not spin")
    ok("the spin bit is off" in run.stderr, "is told in words", run.stderr)
    rows, _ = observe(path, "--bit", "square:3")
    eq({(r.get("spin"), r.get("uloss"), r.get("notes")) for r in rows}, {(None, None, None)}, "a bit that never changes is no square")

    path = write(lab.path("port.pcap"), busy.packets(port=4433, handshake=False))
    rows, run = observe(path, "--stats")
    ok(run.returncode == 3 and rows == [] and f"other_short {len(busy.seen)}" in run.stderr, "another port without a handshake", run.stderr)
    rows, _ = observe(path, "--rule", "take port=4433")
    eq([(r["spin"], r["sender"]) for r in rows], [("spins", "client"), ("spins", "server")], "chosen by a rule: who is client is seen by what it inverts")
    rows, _ = observe(write(lab.path("known.pcap"), busy.packets(port=4433)))
    eq([r["spin"] for r in rows], ["spins", "spins"], "behind a handshake")

    mixed = busy.packets() + quiet.packets(client_port=40001) + [(START, frame(0, 53, b"dns" * 9)), (START, bytes(14) + b"no IP"), (START, frame(0, 443, b"\xc0\0\0\0\1\xff"))]
    rows, run = observe(write(lab.path("mixed.pcap"), mixed), "--stats", "--flows", "1")
    eq([r["sport"] for r in rows], [40000, 443], "more connections than --flows")
    ok(f"without_room {len(quiet.seen) + 3}" in run.stderr and "broken 1" in run.stderr and "1 no IP" in run.stderr, "are counted, and so is the rest", run.stderr)
    for form in ("table", "wide", "json", "csv", "text"):
        ok(pathline.run("meter", "--method", "quic", "-o", form, "--read", path, "--rule", "take").returncode == 0, f"-o {form}")


def test_refused():
    for args, words in ((("--read", "a", "--read", "b"), "one capture"), ((), "one capture"), (("--read", "a", "--bit", "dscp:0"), "of QUIC spin:N"),
                        (("--read", "a", "--bit", "spin:7"), "3 to 6"), (("--read", "a", "--bit", "loss:4", "--bit", "square:4"), "another one's"),
                        (("--read", "a", "--bit", "reflection:4"), "needs the square bit"), (("--read", "a", "--bit", "trip:4"), "needs the spin bit"),
                        (("--read", "a", "--square", "100"), "power of two"), (("--read", "a", "--reorder", "32"), "at most 31"),
                        (("--read", "a", "--period", "2s"), "--period"), (("--read", "a", "--records"), "--records"),
                        (("--dev", "lo"), "for captures")):
        run = pathline.run("meter", "--method", "quic", *args)
        ok(run.returncode == 2 and words in run.stderr, f"meter {' '.join(args)} is refused", run.stderr)
    run = pathline.run("meter", "--square", "64", "--read", "a", "--read", "b")
    ok(run.returncode == 2 and "--method quic" in run.stderr, "an option of QUIC without it", run.stderr)
    run = pathline.run("meter", "--method", "quic", "--read", "/nonexistent/a")
    ok(run.returncode == 1 and "/nonexistent/a" in run.stderr, "a capture that is not there", run.stderr)


if shutil.which("tshark") is None:
    tap.skip_all("missing: tshark")
lab.run(test_connections, test_tshark, test_others, test_refused)
sys.exit(tap.end())
