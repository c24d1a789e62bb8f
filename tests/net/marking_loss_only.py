# SPDX-License-Identifier: BSD-2-Clause
"""Alternate marking without a clock (--loss-only): loss is what the middle dropped, to the packet, and no record has a time. A marker
or a meter that stands still, or is killed beside its pins, leaves its program with an old block: no loss is told of that time.

usage: marking_loss_only.py PATHLINE [TEST…]
"""
import os
import signal
import struct
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import marking  # noqa: E402
from marking import B, Middle, NS, PERIOD, Receiver, lab, marker, meter, network, pathline, quiet, send, sums, warm  # noqa: E402
from lib import tap  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

UNTIMED, LATE = 256, 512  # of mark_flags
PORT = 6030


def rule(*more):
    return "--loss-only", "--rule", f"take proto=udp dport={PORT}", *more


def compared(files):
    """Results between the points of two files."""
    run = pathline.run("meter", "-o", "jsonl", *[x for name, path in files.items() for x in ("--read", f"{name}={path}")])
    return [row for row in pathline.jsonl(run.stdout) if row.get("dport") == PORT]


def paths(word):
    return {name: lab.path(f"{word}-{name}.mark128") for name in ("sent", "came")}


def now():
    return int(time.clock_gettime(time.CLOCK_TAI) // PERIOD)


def test_exact():
    """Loss is what the middle dropped, at a meter without clock and at one with."""
    m = Middle(lambda frame, n: frame[12] == 8 and frame[36:38] == PORT.to_bytes(2, "big") and n % 20 in (3, 4))
    files, r = paths("exact"), Receiver(B, PORT)
    timed = meter("--rule", f"take proto=udp dport={PORT}", name="timed")
    k, s, _ = warm(meter(*rule("--to", "file:" + files["came"])), marker(*rule("--to", "file:" + files["sent"])), timed)
    n = 0
    while n < 3000:
        send(B, PORT, 500, 0.001)
        n += 500
    ok(wait(lambda: sums(s, PORT) == n and quiet(s, PORT)), "the marker has what was sent", sums(s, PORT))
    ok(wait(lambda: r.take() == n - m.dropped), "what the middle did not drop came", (n, r.got, m.dropped))
    for node in (k, timed):
        ok(wait(lambda node=node: sums(node, PORT) == n - m.dropped and quiet(node, PORT)), f"{node.name} has it", sums(node, PORT))
    sent, _, _ = s.end(), k.end(), timed.end()
    eq(sent["pulses"], 0, "no packet is marked for a delay")
    rows = [row for node in (s, k) for row in node.blocks()]
    eq({row["mark_flags"] & UNTIMED for row in rows}, {UNTIMED}, "records say that they have no times")
    eq({(row["sum_ns"], row["first_ns"], row["pulse_ns"]) for row in rows}, {(0, 0, 0)}, "and have none")
    eq({row["mark_flags"] & UNTIMED for row in timed.blocks()}, {0}, "those of a meter with a clock do not")
    rows = compared(files)
    eq([row for row in rows if {"delay_ns", "mean_ns", "first_ns", "jitter_ns"} & set(row)], [], "no result has a delay")
    told = [row["loss"] for row in rows if "loss" in row]
    ok(told and min(told) >= 0, "no block has more than was sent", told)
    # This machine may have stood still for an eighth of the period: then no loss is told of such blocks.
    if not any("late-change" in (row.get("alarms") or "") for row in rows):
        eq(sum(told), m.dropped, "the results have what the middle dropped")
    m.end()
    r.close()


def test_stream():
    """TCP whose segments the NIC is to make, through a queue that drops: loss is what the queue counted."""
    one = "--loss-only", "--rule", "take proto=tcp"
    k, s = warm(meter(*one, dev="eth1"), marker(*one, dev="eth1"))
    NS["a"].sh("tc qdisc add dev eth1 root tbf rate 200mbit burst 1600 limit 40000")
    ok(marking.WIRE.tcp_transfer(6_000_000, 5002), "a TCP transfer is whole")
    ok(wait(lambda: quiet(s, 5002) and quiet(k, 5002)), "its blocks are read")
    ok(marking.drops() > 5, "the queue dropped some", marking.drops())
    eq(sums(s, 5002) - sums(k, 5002), marking.drops(), "loss by marking is what the queue dropped")
    ok(sums(s, 5002) > 6_000_000 // 1448, "packets are those on the wire", sums(s, 5002))
    eq([v for v in marking.loss(s, k, 5002).values() if v < 0 and not late_of(s, k)], [], "no block has more than was sent")
    NS["a"].sh("tc qdisc del dev eth1 root")
    s.end()
    k.end()


def late_of(*nodes):
    """Whether a block was changed too late, because this machine stood still."""
    return any(row["mark_flags"] & LATE for node in nodes for row in node.blocks())


def old_block(word, begin, end):
    """Nothing is lost while a program has an old block from begin(nodes) to end(nodes): no result says that something was."""
    m, files, r = Middle(), paths(word), Receiver(B, PORT)
    nodes = warm(meter(*rule("--to", "file:" + files["came"]), name=word + "-meter"), marker(*rule("--to", "file:" + files["sent"]), name=word + "-marker"))
    n = 0

    def more(until):
        nonlocal n
        while now() < until:
            send(B, PORT, 10, 0.002)
            n += 10
    more(now() + 2)
    at = now()
    begin(nodes)
    more(at + 5)
    nodes = end(nodes)
    more(now() + 3)
    ok(wait(lambda: r.take() == n), "all came", (n, r.got))
    ok(wait(lambda: all(quiet(x, PORT) for x in nodes)), "blocks are read")
    for x in nodes:
        x.end()
    m.end()
    r.close()
    rows = compared(files)
    late = [row for row in rows if "late-change" in (row.get("alarms") or "")]
    ok(late and all("loss" not in row for row in late), "blocks of that time have an alarm, and no loss", rows)
    eq([row for row in rows if row.get("loss", 0) != 0], [], "no loss is told where nothing was lost")
    ok(any(row.get("sent", 0) > 0 for row in rows), "blocks before or behind it have their numbers", rows)
    return nodes


def test_marker_stopped():
    old_block("stopped", lambda nodes: nodes[1].p.send_signal(signal.SIGSTOP), lambda nodes: (nodes[1].p.send_signal(signal.SIGCONT), nodes)[1])


def test_meter_stopped():
    old_block("deaf", lambda nodes: nodes[0].p.send_signal(signal.SIGSTOP), lambda nodes: (nodes[0].p.send_signal(signal.SIGCONT), nodes)[1])


def test_killed():
    """kill -9 of a marker with pins: its program goes on with the colour that it had; the next process knows."""
    bpf = lab.path("bpf")
    os.mkdir(bpf)
    network.sh(f"mount -t bpf bpf {bpf}")
    lab.undo("umount", bpf)
    m, files, r = Middle(), paths("killed"), Receiver(B, PORT)
    pin = "--pin", bpf + "/marker"
    k, s = warm(meter(*rule("--to", "file:" + files["came"]), name="k"), marker(*rule("--to", "file:" + files["sent"], *pin), name="s"))
    n = 0

    def more(until):
        nonlocal n
        while now() < until:
            send(B, PORT, 10, 0.002)
            n += 10
    more(now() + 2)
    at = now()
    s.p.kill()
    s.p.wait()
    more(at + 3)
    again = lab.path("killed-again.mark128")
    t = marker(*rule("--to", "file:" + again, *pin), name="t")
    ok("going on" in t.errors(), "the next one goes on", t.errors())
    more(now() + 3)
    ok(wait(lambda: r.take() == n), "all came", (n, r.got))
    # Flows of before it have no packets in its own blocks.
    ok(wait(lambda: quiet(k, PORT) and all(of[-1]["packets"] == 0 for of in marking.flows(t, PORT).values())), "blocks are read")
    t.end()
    k.end()
    m.end()
    r.close()
    with open(files["sent"], "ab") as f, open(again, "rb") as more_records:
        whole = os.path.getsize(files["sent"]) // 128 * 128
        f.truncate(whole)
        f.seek(whole)
        f.write(more_records.read())
    rows = compared(files)
    late = [row for row in rows if "late-change" in (row.get("alarms") or "")]
    ok(late and all("loss" not in row for row in late), "blocks of that time have an alarm, and no loss", rows)
    eq([row for row in rows if row.get("loss", 0) != 0], [], "no loss is told where nothing was lost")


def test_apart():
    """Flows in blocks that were changed too late do not speak of clocks that are seconds apart."""
    late, files = UNTIMED | LATE, paths("apart")

    def records(point, at):
        for sport in range(1, 12):
            for block in range(100, 116):
                mine = block == (110 if sport == 11 else at)
                flags = (UNTIMED if sport == 11 or not 103 < block < 109 else late) | (point == 1)
                yield struct.pack("<Q16s16sHHBBHQQQQqqqIIIIIHH", block * 10**9, bytes(10) + b"\xff\xff\x0a\0\0\x01", bytes(10) + b"\xff\xff\x0a\0\0\x02",
                                  sport, PORT, 17, 1, flags, block, 10**9, 5 * mine, 500 * mine, 0, 0, 0, point, 0, 0, 0, 2**32 - 1, 0, 0)
    for point, (path, at) in enumerate(zip(files.values(), (104, 107)), 1):
        with open(path, "wb") as f:
            f.write(b"".join(records(point, at)))
    rows = compared(files)
    eq([(r.get("sent"), r.get("loss")) for r in rows if r["sport"] == 11 and r["block"] == 110], [(5, 0)], "a block beside them has its numbers")
    eq({r.get("alarms") for r in rows if r["sport"] == 1 and r["block"] in (104, 107)}, {"clock-unsynced+late-change"}, "theirs have their own alarm")


def main():
    marking.build()
    lab.run(test_apart, test_exact, test_stream, test_marker_stopped, test_meter_stopped, test_killed)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
