# SPDX-License-Identifier: BSD-2-Clause
"""`pathline meter --read` against a slow evaluation of the same captures, written from RFC 9341, and from the compact form of
alternate marking for one bit: it reads the files by itself, and of each packet looks for the block of its colour whose middle is nearest
among all that there are. Captures are drawn: loss, bursts, duplicates, reordering, clocks that differ, idle blocks, several flows.

usage: marking_slow.py PATHLINE [SEEDS]
"""
import collections
import fractions
import os
import random
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, pathline, tap  # noqa: E402
from lib.tap import eq, ok  # noqa: E402

SECOND = 10**9
ZERO = 1_700_000_000
BLOCKS = 8
SEEDS = int(next((word for word in sys.argv[2:] if word.isdigit()), 40))
MASKS = {"step": (4, 0), "multiplexed": (4, 0), "double": (4, 8), "cyclic": (4, 8)}


# ---- traffic ----

def frame(flow, bits, masks):
    tos = (masks[0] if bits & 1 else 0) | (masks[1] if bits & 2 else 0)
    udp = struct.pack(">HHHH", 1000 + flow, 2000, 28, 0) + bytes(20)
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, tos, 20 + len(udp), 0, 0, 64, 17, 0, bytes((10, 0, 0, 1)), bytes((192, 0, 2, 1)))
    return bytes(12) + b"\x08\0" + ip + udp


def draw(dice, method, guard):
    """[(flow, ns, bits)] as a marker sends them."""
    sent, pulsed = [], set()
    for flow in range(dice.randint(1, 3)):
        ns = ZERO * SECOND + SECOND + dice.randrange(SECOND)
        while ns < (ZERO + BLOCKS - 1) * SECOND:
            sent.append((flow, ns))
            ns += dice.randrange(1, SECOND // 20)
            if dice.random() < 0.01:
                ns += dice.randrange(2 * SECOND)
    marked = []
    for flow, ns in sorted(sent, key=lambda s: s[1]):
        block, into = divmod(ns, SECOND)
        until = SECOND * 3 // 4 - guard if method == "multiplexed" else SECOND - guard
        pulse = method in ("double", "multiplexed") and SECOND // 2 <= into < until and (flow, block) not in pulsed
        if pulse:
            pulsed.add((flow, block))
        bits = block % 4 if method == "cyclic" else block % 2 ^ (pulse and method == "multiplexed") | (2 if pulse and method == "double" else 0)
        marked.append((flow, ns, bits))
    return marked


def carry(dice, sent, spread, offset):
    """What arrives, by the clock of the second point."""
    loss, copies, burst, out = dice.choice((0, 0.01, 0.2)), dice.choice((0, 0, 0.02)), 0, []
    for flow, ns, bits in sent:
        burst = dice.randrange(1, 40) if not burst and dice.random() < 0.01 else max(burst - 1, 0)
        if burst or dice.random() < loss:
            continue
        for _ in range(1 + (dice.random() < copies)):
            out.append((flow, ns + offset + dice.randrange(spread), bits))
    return sorted(out, key=lambda p: p[1])


def write(path, packets, masks):
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xa1b23c4d, 2, 4, 0, 0, 65535, 1))
        edges = [((ZERO - 2) * SECOND, bytes(12) + b"\x08\x06" + bytes(28)), ((ZERO + BLOCKS + 2) * SECOND, bytes(12) + b"\x08\x06" + bytes(28))]
        for ns, data in edges[:1] + [(ns, frame(flow, bits, masks)) for flow, ns, bits in packets] + edges[1:]:
            f.write(struct.pack("<IIII", ns // SECOND, ns % SECOND, len(data), len(data)) + data)
    return path


# ---- the slow evaluation ----

def read(path):
    """(ns, tos, source port) of UDP packets."""
    with open(path, "rb") as f:
        data = f.read()
    at = 24
    while at < len(data):
        s, ns, n, _ = struct.unpack_from("<IIII", data, at)
        packet, at = data[at + 16:at + 16 + n], at + 16 + n
        if packet[12:14] == b"\x08\0":
            yield s * SECOND + ns, packet[15], int.from_bytes(packet[34:36], "big")


def block_of(method, ns, tos, masks):
    """(block, whether it is the pulse): of all blocks with this colour the one whose middle is nearest; where two are as near, the
    one behind. With one bit for both, a bit that is not the colour's in the middle half of a block is the pulse."""
    colour = int(bool(tos & masks[0]))
    number = ns // SECOND
    if method == "multiplexed" and SECOND // 4 <= ns % SECOND < SECOND * 3 // 4:
        return number, colour != number % 2
    if method == "cyclic":
        colour, cycle = colour | (2 if tos & masks[1] else 0), 4
    else:
        cycle = 2
    near = [k for k in range(number - 4, number + 5) if k % cycle == colour]
    best = min(near, key=lambda k: (abs(2 * ns - (2 * k + 1) * SECOND), -k))
    return best, method == "double" and bool(tos & masks[1])


def meter(path, method, masks):
    """{(flow, block): [(offset from the block's begin, pulse)]}."""
    cells = collections.defaultdict(list)
    for ns, tos, sport in read(path):
        block, pulse = block_of(method, ns, tos, masks)
        cells[sport - 1000, block].append((ns - block * SECOND, pulse))
    return cells


def evaluate(a, b, key):
    """(sent, received, loss, late, early, delay of the pulse, difference of means, of first packets)."""
    sent, came = a.get(key, []), b.get(key, [])
    pulses = [[offset for offset, pulse in cell if pulse] for cell in (sent, came)]
    delay = pulses[1][0] - pulses[0][0] if len(pulses[0]) == len(pulses[1]) == 1 else None
    whole = len(sent) == len(came) > 0
    means = [fractions.Fraction(sum(offset for offset, _ in cell), len(cell)) if cell else None for cell in (sent, came)]
    return (len(sent), len(came), len(sent) - len(came), sum(offset >= SECOND for offset, _ in came), sum(offset < 0 for offset, _ in came), delay,
            round(float(means[1] - means[0])) if whole else None, min(came)[0] - min(sent)[0] if whole else None)


def test_drawn():
    wrong, packets, rows_told, lost = [], 0, 0, 0
    for seed in range(1, SEEDS + 1):
        dice = random.Random(seed)
        method = dice.choice(list(MASKS))
        limit = {"multiplexed": SECOND // 4, "cyclic": SECOND * 3 // 2}.get(method, SECOND // 2)
        guard = dice.randrange(limit // 4, limit * 7 // 8)
        spread = 1 + guard // 4 * dice.randrange(1, 4)
        offset = dice.randrange(-guard + 1, guard - spread)
        sent = draw(dice, method, guard)
        came = carry(dice, sent, spread, offset)
        paths = [write(lab.path(f"slow-{x}.pcap"), p, MASKS[method]) for x, p in (("a", sent), ("b", came))]
        bits = ["--bit", "dscp:0"] + (["--bit", "dscp:1"] if MASKS[method][1] else [])
        run = pathline.run("meter", "--method", method, *bits, "--clock-error", f"{guard}ns", "--delay", "0s", "--deviation", "0s", "-o", "jsonl",
                           "--read", "a=" + paths[0], "--read", "b=" + paths[1])
        cells = [meter(path, method, MASKS[method]) for path in paths]
        got = {(r["sport"] - 1000, r["block"]): r for r in pathline.jsonl(run.stdout)}
        if run.returncode != 0 or set(got) < set(cells[0]) | set(cells[1]):
            wrong.append((seed, method, "rows", run.stderr[-200:]))
            continue
        for key, r in got.items():
            want = evaluate(*cells, key)
            told = (r.get("sent"), r.get("received"), r.get("loss"), r.get("late", 0), r.get("early", 0), r.get("delay_ns"), r.get("mean_ns"), r.get("first_ns"))
            # A number that is not told is none that is wrong; loss always is.
            good = told[:5] == want[:5] and all(t is None or (w is not None and abs(t - w) <= 1) for t, w in zip(told[5:], want[5:]))
            good &= want[5] is None or told[5] is not None
            good &= want[6] is None or told[6] is not None
            if not good:
                wrong.append((seed, method, key, told, want, r.get("alarms")))
            rows_told += 1
            lost += max(want[2], 0)
        packets += len(sent)
    eq(wrong[:3], [], f"{SEEDS} pairs of captures, {packets} packets, {lost} lost: {rows_told} blocks of flows are as the slow evaluation has them")
    ok(rows_told > SEEDS * 4 and lost > 0, "there were some")


lab.run(test_drawn)
sys.exit(tap.end())
