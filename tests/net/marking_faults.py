# SPDX-License-Identifier: BSD-2-Clause
"""Alternate marking of two hosts beside witnesses: loss from captures of the same run, delay from tcpdump at both hosts. And where
something goes wrong: marker, meter and collector killed with kill -9 at random instants, two markers on one path, marks that
strangers forge. A number that is told is right; what is not known is named.

usage: marking_faults.py PATHLINE [TEST…]
"""
import os
import random
import re
import socket
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import marking  # noqa: E402
from marking import A, A1, B, B1, Host, Middle, NS, Receiver, lab, network, pathline  # noqa: E402
from lib import tap, tapping  # noqa: E402
from lib.pathline import PATHLINE  # noqa: E402
from lib.roce import packet_socket  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import LIMIT, wait  # noqa: E402

PORT = 6040
PERIOD = 1
# A row with one of these has no number that is vouched for.
UNSOUND = {"partial", "beyond-guard", "no-room", "clock-stepped", "clock-fault"}


class Traffic:
    """One flow of UDP from a, until it is told to end."""

    def __init__(self, address, port, pause=0.001):
        self.n, self.stop = 0, False
        with NS["a"]:
            self.s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.s.bind((A if address == B else A1, 0))
        self.to, self.pause = (address, port), pause
        self.t = threading.Thread(target=self.run, daemon=True)
        self.t.start()

    def run(self):
        while not self.stop:
            self.s.sendto(self.n.to_bytes(4, "big") + bytes(96), self.to)
            self.n += 1
            time.sleep(self.pause)

    def end(self):
        self.stop = True
        self.t.join(LIMIT)
        self.s.close()
        return self.n


def pinned(command, side, bpf, number, to):
    """A marker or meter that goes on where the last one was killed."""
    role = ("--check", "0", "--point", "1", "--rule", f"take proto=udp dport={PORT}") if command == "mark" else \
        ("--point", "2", "--rule", f"take proto=udp dport={PORT}")
    return tapping.Printing(NS[side], f"{command}-{number}", "marker" if command == "mark" else "meter", "on eth1", command, "--dev", "eth1",
                            "--period", f"{PERIOD}s", "--pin", f"{bpf}/{command}", "--to", f"udp://{B1}:6041", "-o", "jsonl", *role, *to)


def collector(number):
    config = f"""sources: []
marks:
  - {{name: lab, sources: ["udp://{B1}:6041"], points: [sender=1, receiver=2], period: {PERIOD}s, wait: 1s,
     to: ["file:{lab.path(f'kill-{number}.seg192')}"]}}
web: {{listen: "127.0.0.1:0"}}
"""
    return pathline.Daemon(lab.write(f"kill-{number}.yaml", config), name=f"kill-{number}", prefix=NS["b"].command())


def alarms(row):
    return set(row["alarms"].split("+")) if row.get("alarms") else set()


def results(*args):
    run = pathline.run("meter", "-o", "jsonl", *args)
    return pathline.jsonl(run.stdout), run.stderr


def check_rows(rows, n, what):
    """Nothing was lost: no row says that something was, unless it says that it is not vouched for."""
    told = [r for r in rows if r.get("loss") is not None and not alarms(r) & UNSOUND]
    eq([r for r in told if r["loss"] != 0], [], f"{what}: no number that is told is wrong")
    ok(all(r.get("missing") or alarms(r) for r in rows if r.get("loss") is None), f"{what}: what has no number is named", rows)
    ok(len(told) > 3 and sum(r["sent"] for r in told) <= n, f"{what}: blocks are told ({len(told)} of {len(rows)})", rows)
    return sum(r["sent"] for r in told), len(rows) - len(told)


def test_killed_at_random():
    """Marker, meter and daemon die by kill -9 one after the other, at instants that are drawn, and are started again."""
    bpf, dice = lab.path("bpf-kill"), random.Random(9341)
    os.mkdir(bpf)
    network.sh(f"mount -t bpf bpf {bpf}")
    lab.undo("umount", bpf)
    r = Receiver(B1, PORT)
    files = {"mark": [], "meter": []}

    def start(command, number):
        files[command].append(lab.path(f"kill-{command}-{number}.mark128"))
        return pinned(command, "a" if command == "mark" else "b", bpf, number, ("--to", "file:" + files[command][-1]))
    alive = {"daemon": collector(0), "meter": start("meter", 0), "mark": start("mark", 0)}
    marking.warm(period=PERIOD)
    traffic = Traffic(B1, PORT)
    time.sleep(3 * PERIOD)
    victims = ["mark", "meter", "daemon"] * 3
    dice.shuffle(victims)
    for number, victim in enumerate(victims, 1):
        time.sleep(dice.random() * 1.5 * PERIOD)
        alive[victim].p.kill()
        alive[victim].p.wait(LIMIT)
        time.sleep(dice.random() * PERIOD / 2)
        alive[victim] = collector(number) if victim == "daemon" else start(victim, number)
    time.sleep(4 * PERIOD)
    n = traffic.end()
    ok(wait(lambda: r.take() == n), "all packets came", (n, r.got))
    time.sleep(3 * PERIOD)
    for node in alive.values():
        node.p.terminate()
        node.p.wait(2 * LIMIT)
    # What the processes left, of each point in one file.
    joined = {}
    for command, parts in files.items():
        joined[command] = lab.path(f"kill-{command}.mark128")
        with open(joined[command], "wb") as f:
            for part in parts:
                with open(part, "rb") as p:
                    data = p.read()
                f.write(data[:len(data) // 128 * 128])
    rows, said = results("--read", "sent=" + joined["mark"], "--read", "came=" + joined["meter"])
    sent, without = check_rows(rows, n, "files")
    ok(without > 0 or sent == n, "files: packets that are in no sum are of blocks that are named", (sent, n, said))
    rows = []
    for number in (0, *(i for i, v in enumerate(victims, 1) if v == "daemon")):
        path = lab.path(f"kill-{number}.seg192")
        with open(path, "rb") as f:
            data = f.read()
        with open(path, "wb") as f:
            f.write(data[:len(data) // 192 * 192])
        run = pathline.run("query", "-o", "jsonl", "SELECT * FROM segments", path)
        rows += [row | {"alarms": "+".join(w for w in words(row))} for row in pathline.jsonl(run.stdout)]
    check_rows(rows, n, "daemons")
    r.close()


def words(row):
    """The names of a record's alarms."""
    names = ["missing", "clock-domain", "settings", "negative-loss", "beyond-guard", "pulses", "clock-fault", "partial", "no-room", "clock-stepped",
             "clock-unsynced", "bit-in-use", "late-change"]
    value = row.get("alarms") or 0
    return [name for bit, name in enumerate(names) if value >> bit & 1] if isinstance(value, int) else value.split("+")


def test_hosts_killed():
    """`mark --to HOST` and `meter --from HOST` die by kill -9 in turn, at instants that are drawn, and are started again."""
    dice, meters, number = random.Random(9342), [], 0
    r = Receiver(B1, PORT)

    def start(command):
        nonlocal number
        number += 1
        role = ("a", "mark", "--to", B1, "--check", "0") if command == "mark" else ("b", "meter", "--from", A1, "-o", "jsonl")
        node = Host(*role, dev="eth1", name=f"killed-{command}-{number}")
        meters.extend([node] if command == "meter" else [])
        return node
    alive = {"meter": start("meter"), "mark": start("mark")}
    marking.warm(period=1)
    traffic = Traffic(B1, PORT)
    time.sleep(3)
    for victim in ["meter", "mark"] * 3:
        time.sleep(dice.random() * 1.5)
        alive[victim].p.kill()
        alive[victim].p.wait(LIMIT)
        time.sleep(dice.random() / 2)
        alive[victim] = start(victim)
    last = len(meters[-1].rows(PORT))
    ok(wait(lambda: len([x for x in meters[-1].rows(PORT)[last:] if x.get("sent") and x.get("loss") == 0]) >= 3), "the last two measure",
       (alive["mark"].errors(), alive["meter"].errors(), meters[-1].rows(PORT)))
    n = traffic.end()
    ok(wait(lambda: r.take() == n), "all packets came", (n, r.got))
    alive["mark"].end()
    alive["meter"].end()
    check_rows([row for node in meters for row in node.rows(PORT)], n, "all meters")
    r.close()


def test_two_markers():
    """A second marker on the path finds the bit in use and does not begin; one that is told not to look says so in every block."""
    m, r = Middle(), Receiver(B, PORT)
    k = Host("b", "meter", "--from", A, "-o", "jsonl")
    s = Host("a", "mark", "--to", B, "--check", "0")
    traffic = Traffic(B, PORT, 0.005)
    ok(wait(lambda: any(x.get("sent") for x in k.rows(PORT))), "one marker marks")
    second = ("--dev", "eth0", "--rule", "take proto=udp")
    p = subprocess.run(NS["a"].command(PATHLINE, "mark", *second, "--check", "60s"), capture_output=True, text=True, timeout=3 * LIMIT, check=False)
    ok(p.returncode != 0 and "have a marking bit set already" in p.stderr, "the second one sees it, and ends", p.stderr)
    other = tapping.Printing(NS["a"], "second", "marker", "on eth0", "mark", *second, "--check", "0", "-o", "jsonl")
    ok(wait(lambda: any(x.get("packets") and x["mark_flags"] & 128 for x in other.lines())), "or says so in its records", other.errors())
    other.p.terminate()
    eq(other.p.wait(LIMIT), 0, "and ends well")
    traffic.end()
    s.end()
    k.end()
    m.end()
    r.close()


def frame(sport, dport, tos):
    """UDP as from A, with a mark."""
    ip = bytearray(bytes.fromhex("45000024000040004011 0000".replace(" ", "")) + socket.inet_aton(A) + socket.inet_aton(B))
    ip[1] = tos
    total = sum(int.from_bytes(ip[i:i + 2], "big") for i in range(0, 20, 2))
    total = (total & 0xffff) + (total >> 16)
    ip[10:12] = ((total & 0xffff) + (total >> 16) ^ 0xffff).to_bytes(2, "big")
    udp = sport.to_bytes(2, "big") + dport.to_bytes(2, "big") + (16).to_bytes(2, "big") + bytes(2) + bytes(8)
    return NS["b"].mac("eth0") + NS["a"].mac("eth0") + b"\x08\x00" + bytes(ip) + udp


def test_forged():
    """A stranger on the path sends packets with marks as if they came from the marker's host: those of a flow that the marker does not have
    are in no sum; those of one that it has are more than was sent, which is an alarm."""
    m, r = Middle(), Receiver(B, PORT)
    k = Host("b", "meter", "--from", A, "-o", "jsonl")
    s = Host("a", "mark", "--to", B, "--check", "0")
    traffic = Traffic(B, PORT, 0.01)
    sport = traffic.s.getsockname()[1]
    ok(wait(lambda: any(x.get("sent") for x in k.rows(PORT))), "blocks are told")
    forged = 0
    with packet_socket(NS["m"], "right") as out:
        def more():
            nonlocal forged
            for i in range(20):
                out.send(frame(sport, PORT, 4 * (i & 1)))
                out.send(frame(9, PORT + 1, 4 * (i & 1)))
                forged += 1
                time.sleep(0.01)
            return any("negative-loss" in x.get("alarms", "") for x in k.rows(PORT))
        ok(wait(more), "more than was sent is an alarm", k.rows(PORT))
    time.sleep(3)
    traffic.end()
    s.end()
    k.end()
    # Their marks fit the time of none of the clocks: such blocks have alarms, and are in no sum.
    rows = [x for x in k.rows(PORT + 1) if "loss" in x]
    ok(all(x["loss"] < 0 and "beyond-guard" in alarms(x) for x in rows), "no block of a flow that the marker does not have is without an alarm", rows)
    said = [int(line.split()[1]) for line in k.errors().splitlines() if "does not mark are in no row" in line]
    ok(rows or said, "its packets are told", k.errors())
    told = re.search(r"here: sent (\d+), received (\d+), lost (-?\d+)", k.errors())
    eq(told.group(1), told.group(2), "no sum has them")
    ok(all(x["loss"] <= 0 for x in k.rows(PORT) if "loss" in x), "and nothing is told as lost", k.rows(PORT))
    m.end()
    r.close()


class Taken(Middle):
    """Keeps what comes and goes, with its time: captures of both sides of what it drops."""

    def __init__(self, choose):
        self.came, self.went = [], []
        super().__init__(choose)

    def one(self, i, frame, go):
        dropped = self.dropped
        if i == 0:
            self.came.append((time.time_ns(), frame))
        super().one(i, frame, go)
        if i == 0 and self.dropped == dropped:
            self.went.append((time.time_ns(), frame))


def capture(name, packets):
    path = lab.path(name)
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xa1b23c4d, 2, 4, 0, 0, 262144, 1))
        for ns, data in packets:
            f.write(struct.pack("<IIII", *divmod(ns, 10**9), len(data), len(data)) + data)
    return path


def test_captures_of_the_run():
    """A link drops 1 % of what two commands measure: they tell loss to the packet within two blocks of the end, and the captures of both
    sides of the link tell the same of every block."""
    m = Taken(lambda frame, n: frame[12:14] == b"\x08\0" and frame[36:38] == PORT.to_bytes(2, "big") and n % 100 == 50)
    r = Receiver(B, PORT)
    k = Host("b", "meter", "--from", A, "-o", "jsonl")
    s = Host("a", "mark", "--to", B, "--check", "0")
    marking.warm(period=1)
    traffic = Traffic(B, PORT, 0.002)
    ok(wait(lambda: m.dropped >= 20 and len([x for x in k.rows(PORT) if "delay_ns" in x]) >= 3), "loss and delay are told", k.errors())
    n, end = traffic.end(), time.clock_gettime(time.CLOCK_TAI)
    ok(wait(lambda: sum(x.get("sent", 0) for x in k.rows(PORT)) == n), "all packets are told", (n, k.rows(PORT)))
    live = {x["block"]: (x["sent"], x["received"], x["loss"]) for x in k.rows(PORT) if x.get("sent")}
    ok(max(live) <= int(end), "the last block is that of the last packet, or the one before it", (live, end))
    eq((sum(x[2] for x in live.values()), r.take()), (m.dropped, n - m.dropped), "loss is what the link dropped")
    came, ahead = len(m.came), round(time.clock_gettime(time.CLOCK_TAI) - time.time())
    s.end()
    k.end()
    m.end()
    rows, said = results("--method", "multiplexed", "--tai-offset", str(ahead), "--rule", f"take proto=udp dport={PORT}",
                         "--read", "in=" + capture("run-in.pcap", m.came[:came]), "--read", "out=" + capture("run-out.pcap", m.went))
    sound = {x["block"]: (x["sent"], x["received"], x["loss"]) for x in rows if x.get("sent") and not alarms(x) & UNSOUND}
    eq({b: v for b, v in sound.items() if live.get(b) != v}, {}, "the captures tell the same, block by block")
    ok(len(sound) >= len(live) - 2, "of all but the first and the last block", (sound, live, said))
    r.close()


def dumped(side, name):
    """tcpdump of what a host sends (a) or takes (b) on eth0, with nanoseconds."""
    path = lab.path(name + ".pcap")
    p = lab.start(NS[side].command("tcpdump", "-i", "eth0", "--nano", "-Z", "root", "-U", "-w", path, f"udp dst port {PORT}"), log=lab.path(name + ".log"))
    ok(wait(lambda: "listening on" in lab.read(name + ".log")), "tcpdump is up")
    return p, path


def delay_packets(path):
    """Of the packets that are marked for delay (the second bit of the DSCP), by tshark: number in the payload -> ns."""
    out = network.sh(f"tshark -r {path} -T fields -e frame.time_epoch -e ip.dsfield.dscp -e udp.payload")
    rows = [line.split("\t") for line in out.splitlines()]
    return {payload[:8]: int(t.replace(".", "")) for t, dscp, payload in rows if int(dscp) & 2}


class Timed(Traffic):
    """With the times, in ns of TAI, before a datagram is handed to the kernel of a and after it was read in b, by its number."""

    def __init__(self, address, port, pause):
        self.before, self.after = {}, {}
        with NS["b"]:
            self.r = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.r.bind((address, port))
        self.r.settimeout(0.2)
        self.reader = threading.Thread(target=self.read, daemon=True)
        super().__init__(address, port, pause)
        self.reader.start()

    def run(self):
        while not self.stop:
            self.before[self.n] = time.clock_gettime_ns(time.CLOCK_TAI)
            self.s.sendto(self.n.to_bytes(4, "big") + bytes(96), self.to)
            self.n += 1
            time.sleep(self.pause)

    def read(self):
        while not self.stop or len(self.after) < self.n:
            try:
                data = self.r.recv(2048)
                self.after[int.from_bytes(data[:4], "big")] = time.clock_gettime_ns(time.CLOCK_TAI)
            except socket.timeout:
                pass


def test_delay():
    """The two times of a delay are those of its packet, on the one clock that the two hosts have. Each is between two times that others
    take of the same packet: at the sender, before it is handed to the kernel and as tcpdump sees it go; at the receiver, as tcpdump sees
    it come and when it was read. This holds however long the machine stands still in between; by how much our delay is longer than
    tcpdump's is told, and is in docs/benchmarks.md."""
    m = Middle(hold=0.02)
    dumps = [dumped("a", "delay-out"), dumped("b", "delay-in")]
    two = "--bit", "dscp:0", "--bit", "dscp:1", "--rule", f"take proto=udp port={PORT}"
    k, s = marking.warm(marking.meter(*two), marking.marker(*two))
    traffic = Timed(B, PORT, 0.002)

    def both():
        """(at the marker, at the meter) of blocks with a packet for delay at both, in ns of TAI."""
        at = [{row["block"]: row["block"] * int(marking.PERIOD * 1e9) + row["pulse_ns"] for rows in marking.flows(x, PORT).values() for row in rows if row["pulses"]} for x in (s, k)]
        return [(at[0][b], at[1][b]) for b in at[0] if b in at[1]]
    ok(wait(lambda: len(both()) >= 15), "blocks have a packet for delay at both points", (s.errors(), k.errors()))
    n, ours, ahead = traffic.end(), both(), round(time.clock_gettime(time.CLOCK_TAI) - time.time()) * 10**9
    ok(wait(lambda: len(traffic.after) == n), "all packets came", (n, len(traffic.after)))
    # Datagrams go one after the other: a delay is of the last one that was handed to the kernel before its time.
    numbers = [max(i for i, t in traffic.before.items() if t <= sent) for sent, _ in ours]
    ok(wait(lambda: all(f"{i:08x}" in seen for _, path in dumps for seen in [delay_packets(path)] for i in numbers)), "tcpdump has them all")
    for p, _ in dumps:
        p.terminate()
        p.wait(LIMIT)
    s.end()
    k.end()
    m.end()
    traffic.r.close()
    out, came = (delay_packets(path) for _, path in dumps)
    slack, apart, outside = 1000, [], []  # of clocks that are read one after the other
    for i, (sent, received) in zip(numbers, ours):
        went, arrived = (seen[f"{i:08x}"] + ahead for seen in (out, came))
        times = traffic.before[i], sent, went, arrived, received, traffic.after[i]
        outside += [times] if any(a > b + slack for a, b in zip(times, times[1:])) else []
        apart.append((received - sent) - (arrived - went))
    eq(outside, [], f"the times of {len(ours)} delays are in the order of what happened")
    apart.sort()
    tap.comment("longer than tcpdump's by, in ns: " + ", ".join(f"{word} {apart[min(int(len(apart) * part), len(apart) - 1)]}"
                for word, part in (("least", 0), ("median", 0.5), ("most", 1))) + f" ({len(apart)} packets)")


def test_company():
    """Several points on one host, beside a tap and INT's source and sink on the same interfaces: each meter has what the marker has, of
    packets with INT and of others."""
    def it(role, side, *args):
        return tapping.Printing(NS[side], f"int-{role}", role, "INT " + role, "int", role, "--dev", "eth1", "--stats", *args)
    rule = "--bit", "ipv4-reserved", "--rule", f"take proto=udp port={PORT}-{PORT + 1}"
    sink = it("sink", "b", "--node", "2")
    source = it("source", "a", "--node", "1", "--rule", f"take proto=udp dport={PORT + 1}")
    t = tapping.Tap(NS["b"], "beside", "-o", "jsonl", "tc:eth1")
    nodes = [marking.meter("--direction", "in", *rule, dev="eth1", name=f"meter-{i}") for i in (1, 2)]
    s = marking.marker(*rule, dev="eth1")
    marking.warm(s, *nodes)
    r = [Receiver(B1, PORT), Receiver(B1, PORT + 1)]
    traffic = [Traffic(B1, PORT, 0.002), Traffic(B1, PORT + 1, 0.002)]
    time.sleep(3)
    n = [x.end() for x in traffic]
    ok(wait(lambda: [x.take() for x in r] == n), "all come", n)
    for i in (0, 1):
        ok(wait(lambda i=i: marking.sums(s, PORT + i) == n[i] and marking.quiet(s, PORT + i)), "the marker has what was sent", (n, marking.sums(s, PORT + i)))
        for node in nodes:
            ok(wait(lambda i=i, node=node: marking.sums(node, PORT + i) == n[i]), f"{node.name} has it", (n, marking.sums(node, PORT + i)))
            eq([v for v in marking.loss(s, node, PORT + i).values() if v], [], "in every block")
    t.end()
    for node in (s, *nodes):
        node.end()
    for node in (source, sink):
        node.p.terminate()
        eq(node.p.wait(2 * LIMIT), 0, f"{node.name} ends well")
    sent, came = source.lines()[-1]["source"], sink.lines()[-1]["sink"]
    eq((sent["instrumented"], came["stripped"] + came["copies"]), (n[1], n[1]), "packets had INT on their way")
    for x in r:
        x.close()


def main():
    marking.build()
    lab.run(test_captures_of_the_run, test_delay, test_company, test_killed_at_random, test_hosts_killed, test_two_markers, test_forged)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
