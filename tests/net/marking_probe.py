# SPDX-License-Identifier: BSD-2-Clause
"""Probes of a marker (--probe) between two hosts that send nothing else: every block has loss and delay, what the middle drops is lost, an
interface that goes down is told by cause, and the stream goes on as the same flow.

usage: marking_probe.py PATHLINE [TEST…]
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import marking  # noqa: E402
from marking import B, B1, B6, Middle, NS, lab, marker, meter, pathline, warm  # noqa: E402
from lib import tap  # noqa: E402
from lib.pathline import PATHLINE  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import LIMIT, wait  # noqa: E402

TWO = "--bit", "dscp:0", "--bit", "dscp:1"
CAUSES = "sent", "unreachable", "down", "full", "refused", "failed", "missed"


def compared(files, port):
    run = pathline.run("meter", "-o", "jsonl", *[x for name, path in files.items() for x in ("--read", f"{name}={path}")])
    return [row for row in pathline.jsonl(run.stdout) if row.get("dport") == port and row.get("sent", 0) > 0]


def probes(node):
    """Its counters now."""
    before = len(node.stats_lines())
    node.look()
    return node.stats_lines()[before]["probes"]


def two_hosts(word, address, port, *args, more=()):
    """Files of a marker that probes and a meter; what the middle dropped; the marker's own counters."""
    files = {name: lab.path(f"{word}-{name}.mark128") for name in ("sent", "came")}
    k = meter(*args, "--rule", f"take proto=udp dport={port}", "--to", "file:" + files["came"], name=word + "-meter")
    s = marker(*args, *more, "--probe", f"[{address}]:{port}" if ":" in address else f"{address}:{port}", "--to", "file:" + files["sent"],
               name=word + "-marker")
    warm(k, s)
    ok(wait(lambda: len([r for r in s.blocks() if r["packets"] > 0]) >= 5 and len([r for r in k.blocks() if r["packets"] > 0]) >= 4),
       "blocks have packets", (s.blocks(), k.blocks()))
    s.end()
    last = max(r["block"] for r in s.blocks())
    ok(wait(lambda: max(r["block"] for r in k.blocks()) > last + 1), "the meter has read them")
    k.end()
    return files, s, k


def test_idle():
    """Both versions of IP: each block of an idle path has its probes, all arrive, and one of them has its delay measured."""
    hold = 0.01
    m = Middle(hold=hold)
    for word, address, port in (("four", B, 6041), ("six", B6, 6042)):
        files, s, _ = two_hosts(word, address, port, *TWO)
        account = s.all["probes"]
        ok(account["sent"] >= 10 and sum(account[c] for c in CAUSES) == account["sent"] + account["missed"], "probes are sent", account)
        eq(s.stats["marked"], account["sent"], "each is marked, and nothing else")
        rows = compared(files, port)
        # Of the last block the marker ended before it was over.
        ok(len(rows) >= 3 and all(r["loss"] == 0 for r in rows[:-1]), "nothing is lost", rows)
        sound = [r for r in rows[:-1] if not (r.get("alarms") or "").strip("clock-unsynced, ")]
        ok(sound and all(r["delay_ns"] >= 0.99 * hold * 1e9 for r in sound), "every block has a delay, which is that of the middle", rows)
        eq(len({r["sport"] for r in rows}), 1, "they are one flow")
        ok(max(r["sent"] for r in rows) <= 10, "no block has more than it should", rows)
    m.end()


def test_drops():
    """A path that drops is seen by its probes alone, to the packet."""
    dropped = []

    def choose(frame, n):
        if frame[12] != 8 or frame[36:38] != (6043).to_bytes(2, "big") or n % 3:
            return False
        dropped.append(n)
        return True
    m = Middle(choose)
    files, s, k = two_hosts("drops", B, 6043, more=("--probes", "50"))
    m.end()
    rows = compared(files, 6043)
    ok(len(dropped) > 10 and sum(r["loss"] for r in rows) > 0, "loss is told", (dropped, rows))
    eq(s.stats["marked"] - k.stats["counted"], len(dropped), "it is what the middle dropped")


def test_down():
    """An interface that goes down and comes back: causes are counted, and the flow is the same."""
    s = marker("--probe", f"{B1}:6044", "--probes", "20", dev="eth1", name="down")
    ok(wait(lambda: probes(s)["sent"] > 20), "probes are sent")
    NS["a"].ip("link set eth1 down")
    ok(wait(lambda: probes(s)["down"] + probes(s)["unreachable"] > 5), "those that cannot be are counted", probes(s))
    NS["a"].up("eth1")
    NS["a"].ip(f"neigh replace {B1} lladdr {NS['b'].mac('eth1').hex(':')} dev eth1 nud permanent")
    before = probes(s)["sent"]
    ok(wait(lambda: probes(s)["sent"] > before + 20), "and they go on")
    ok(wait(lambda: any(r["dport"] == 6044 and r["packets"] for r in s.blocks())), "a block of them is read")
    s.end()
    eq(len({r["sport"] for r in s.blocks() if r["dport"] == 6044}), 1, "as the same flow")


def test_words():
    for args, words in ((["--probe", "10.0.0.1", "--bit", "altmark"], "no such --bit"), (["--probe", "::1", "--bit", "tos:3"], "no such --bit"),
                        (["--probe", "10.0.0.1", "--probes", "0"], "from 1 on"), (["--probe", "10.0.0.1", "--probes", "1001"], "1000 a second"),
                        (["--rule", "take", "--probes", "5"], "by --probe"), (["--probe", "no such host"], "not a host name")):
        p = subprocess.run(NS["a"].command(PATHLINE, "mark", "--dev", "eth0", *args), capture_output=True, text=True, timeout=LIMIT, check=False)
        ok(p.returncode != 0 and words in p.stderr, f"{' '.join(args)}: is told what is wrong", (p.returncode, p.stderr))


def main():
    marking.build()
    lab.run(test_words, test_idle, test_drops, test_down)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
