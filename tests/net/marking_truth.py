# SPDX-License-Identifier: BSD-2-Clause
"""Alternate marking against the truth in namespaces: TCP whose segments the NIC is to make (TSO), put together again behind the wire
(GRO), and UDP of IPv4 and IPv6, through a link that draws random loss, bursts of loss, and delays by which packets overtake each
other. The link's book of each flow and block is the witness: what two commands tell is what it says, to the packet.

usage: marking_truth.py PATHLINE [TEST…]
"""
import collections
import heapq
import json
import os
import random
import select
import socket
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import marking  # noqa: E402
from marking import A, A6, B, B6, Host, NS, Receiver  # noqa: E402
from lib import lab, tap  # noqa: E402
from lib.roce import packet_socket  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import LIMIT, wait  # noqa: E402

TCP, UDP, UDP6 = 5006, 6050, 6051
TWO = "--bit", "dscp:0", "--bit", "dscp:1", "--delay", "200ms"  # of a period of 1 s
HEAD = 10  # octets of virtio's header, which carries checksums that are not made yet
# A row with one of these has no number that is vouched for; this machine may have stood still.
UNSOUND = {"partial", "beyond-guard", "no-room", "clock-stepped", "clock-fault"}


class Link:
    """Between a and b. Packets of our ports are lost and held back by what a seed says, and booked by port and block: the block is
    that of the packet's colour, its time the one here."""

    def __init__(self, seed, loss=0.01, to_bad=0.001, to_good=0.2, reorder=0.1):
        self.dice, self.bad, self.stop = random.Random(seed), False, False
        self.loss, self.to_bad, self.to_good, self.reorder = loss, to_bad, to_good, reorder
        self.came, self.lost, self.overtaken = collections.Counter(), collections.Counter(), 0
        self.waiting, self.n, self.last = [], 0, 0
        self.sockets = [packet_socket(NS["m"], dev) for dev in ("left", "right")]
        for s in self.sockets:
            s.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)
            s.setsockopt(263, 15, 1)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.stop:
            until = self.waiting[0][0] - time.monotonic() if self.waiting else 0.1
            for s in select.select(self.sockets, [], [], min(max(until, 0), 0.1))[0]:
                frame, address = s.recvfrom(HEAD + 65600)
                if address[2] != socket.PACKET_OUTGOING:
                    self.one(self.sockets.index(s), frame)
            while self.waiting and self.waiting[0][0] <= time.monotonic():
                n = heapq.heappop(self.waiting)
                self.overtaken += n[1] < self.last
                self.last = max(self.last, n[1])
                self.sockets[1].send(n[2])

    def one(self, i, frame):
        port, tos = port_of(frame[HEAD:])
        if i == 1 or port not in (TCP, UDP, UDP6):
            self.sockets[1 - i].send(frame)
            return
        # A packet of the network stack may still be two of the wire, if both are short enough for the queue's burst.
        kind, head, size = struct.unpack("<xBHH", frame[:6])
        packets = -(-(len(frame) - HEAD - head) // size) if kind else 1
        block = nearest(tos >> 2 & 1, time.clock_gettime(time.CLOCK_TAI))
        self.came[port, block] += packets
        self.n += 1
        self.bad = self.dice.random() >= self.to_good if self.bad else self.dice.random() < self.to_bad
        if self.dice.random() < (0.5 if self.bad else self.loss):
            self.lost[port, block] += packets
            return
        more = self.dice.random() * 0.015 if self.dice.random() < self.reorder else 0
        heapq.heappush(self.waiting, (time.monotonic() + 0.002 + more, self.n, frame))

    def sums(self, port):
        """(packets that came, packets that were lost)."""
        return tuple(sum(v for (p, _), v in book.items() if p == port) for book in (self.came, self.lost))

    def end(self):
        self.stop = True
        self.thread.join(LIMIT)
        for s in self.sockets:
            s.close()


def port_of(frame):
    """(destination port of TCP or UDP, ToS or traffic class); (None, 0) of others."""
    if frame[12:14] == b"\x08\0" and frame[23] in (6, 17):
        return int.from_bytes(frame[36:38], "big"), frame[15]
    if frame[12:14] == b"\x86\xdd" and frame[20] in (6, 17):
        return int.from_bytes(frame[56:58], "big"), int.from_bytes(frame[14:16], "big") >> 4 & 255
    return None, 0


def nearest(colour, now):
    """The block of this colour whose middle is nearest, of blocks of a second."""
    block = int(now)
    return block if block & 1 == colour else block - 1 if now % 1 < 0.5 else block + 1


def alarms(row):
    return set(row["alarms"].split("+")) if row.get("alarms") else set()


def check(link, rows, port):
    """Each block that is vouched for is what the link's book says, and so is the sum of all."""
    told = {r["block"]: r for r in rows if "loss" in r}
    unsound = {r["block"] + k for r in rows if alarms(r) & UNSOUND for k in (-2, -1, 0, 1, 2)}
    wrong = {b: (r["sent"], r["loss"], link.came[port, b], link.lost[port, b]) for b, r in told.items()
             if b not in unsound and (r["sent"], r["loss"]) != (link.came[port, b], link.lost[port, b])}
    eq(wrong, {}, f"port {port}: every block of {len(told)} is as the link's book has it ({len(unsound)} not vouched for)")
    sound = {b for p, b in link.came if p == port} - unsound
    ok(sound, f"port {port}: some blocks are vouched for", (sorted(unsound), rows))
    eq({b for b in sound if b not in told}, set(), f"port {port}: each of them is told")


def paced(address, port, n):
    """n datagrams from one port, about 1000 in a second."""
    with NS["a"]:
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as s:
            for i in range(n):
                s.sendto(bytes(200), (address, port))
                if i % 8 == 7:
                    time.sleep(0.008)


def transfer(seed, size, datagrams):
    """`size` octets of TCP and so many datagrams of each family, at the same time. Loss of every block is the link's."""
    NS["a"].sh("ethtool -K eth0 tx on tso on")
    ok("tcp-segmentation-offload: on" in NS["a"].sh("ethtool -k eth0"), "the NIC is to make TCP's segments")
    NS["b"].sh("ethtool -K eth0 gro on")
    # Each segment is in the queue by itself, which has room for all: the link loses, and nobody else.
    NS["a"].sh("tc qdisc add dev eth0 root tbf rate 300mbit burst 1600 limit 40000000")
    link = Link(seed)
    ends = {family: (Host("b", "meter", "--from", f"{here}:{port}" if family == 4 else f"[{here}]:{port}", *TWO, "-o", "jsonl", name=f"meter-{family}"),
                     Host("a", "mark", "--to", f"{there}:{port}" if family == 4 else f"[{there}]:{port}", "--check", "0", *TWO, name=f"mark-{family}"))
            for family, here, there, port in ((4, A, B, 40051), (6, A6, B6, 40052))}
    marking.warm(period=1)
    receivers = {UDP: Receiver(B, UDP), UDP6: Receiver(B6, UDP6)}
    threads = [threading.Thread(target=paced, args=(address, port, datagrams)) for address, port in ((B, UDP), (B6, UDP6))]
    for t in threads:
        t.start()
    ok(marking.WIRE.tcp_transfer(size, TCP, B), "a TCP transfer is whole")
    while any(t.is_alive() for t in threads):
        time.sleep(0.1)
        for r in receivers.values():
            r.take()
    for port, r in receivers.items():
        ok(wait(lambda port=port, r=r: r.take() == datagrams - link.sums(port)[1]), "what the link did not lose came", (port, r.got, link.sums(port)))
    for port, family in ((TCP, 4), (UDP, 4), (UDP6, 6)):
        k = ends[family][0]
        ok(wait(lambda k=k, port=port: {b for p, b in link.came if p == port} <= {r["block"] for r in k.rows(port)}), f"port {port}: all blocks are told",
           (link.sums(port), k.rows(port), k.errors()))
        check(link, k.rows(port), port)
        ok(link.sums(port)[1] > 0, "the link lost some", link.sums(port))
        ok(any("delay_ns" in r for r in k.rows(port)) or port == TCP, "delays are told")
    link.end()
    ok(link.overtaken > 20, "packets overtook each other", link.overtaken)
    eq([q["drops"] for q in json.loads(NS["a"].sh("tc -s -j qdisc show dev eth0")) if q["kind"] == "tbf"], [0], "the queue dropped none")
    NS["a"].sh("tc qdisc del dev eth0 root")
    for k, s in ends.values():
        s.end()
        k.end()
    for r in receivers.values():
        r.close()
    tap.comment(f"{link.n} packets, {sum(link.lost.values())} lost, {link.overtaken} overtaken")


def test_truth():
    """A few blocks."""
    transfer(1, 6_000_000, 3000)


def test_truth_long():
    """A minute of it."""
    transfer(2, 80_000_000, 40_000)


def test_queue():
    """Two commands, and a queue of the kernel that drops: loss is what the queue has counted, less records of the marker that it dropped,
    too."""
    port = 5007
    k = Host("b", "meter", "--from", marking.A1, *TWO, "-o", "jsonl", dev="eth1")
    s = Host("a", "mark", "--to", marking.B1, "--check", "0", *TWO, dev="eth1")
    marking.warm(period=1)
    NS["a"].sh("tc qdisc add dev eth1 root tbf rate 200mbit burst 1600 limit 40000")
    ok(marking.WIRE.tcp_transfer(8_000_000, port), "a TCP transfer is whole")
    # The next block's rows come behind all of the transfer's.
    last = int(time.clock_gettime(time.CLOCK_TAI)) + 1
    beat = marking.Receiver(marking.B1, port + 1)
    with NS["a"], socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        ok(wait(lambda: sock.sendto(b"", (marking.B1, port + 1)) == 0 and any(r["block"] > last for r in k.rows(port + 1))), "its blocks are told", k.errors())
    beat.close()
    told = [r for r in k.rows(port) if "loss" in r]
    sent, heard = s.end()["to"]["sent"], k.end()["between"]["heard"]
    dropped, records = marking.drops(), sent["datagrams"] + sent["again"] - heard["datagrams"]
    NS["a"].sh("tc qdisc del dev eth1 root")
    ok(dropped > 5, "the queue dropped some", dropped)
    eq(sum(r["loss"] for r in told), dropped - records, f"what was lost of {sum(r['sent'] for r in told)} packets is what the queue counted")
    ok(all(r["loss"] >= 0 for r in told), "in no block more came than was sent", told)


def main():
    marking.build()
    lab.run(test_queue, test_truth, test_truth_long)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
