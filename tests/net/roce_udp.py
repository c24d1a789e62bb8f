#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""RoCE through UDP sockets, for who has no right to frames: `collect udp://ADDRESS` and `translate …?dev=udp://ADDRESS`, each
against the other and against packet sockets, which see whole headers; what is on the wire, by definitions of our own. usage: roce_udp.py PATHLINE"""
import os
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, network, roce, tap  # noqa: E402
from lib.pathline import PATHLINE, region  # noqa: E402
from lib.roce import Collector  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.translate import Translator, device, host  # noqa: E402
from lib.wait import LIMIT, wait  # noqa: E402

NS = {}
IP = {4: {"a": "10.78.0.1", "b": "10.78.0.2"}, 6: {"a": "fd78::1", "b": "fd78::2"}}
TCP, DTA = 22171, 22140
KEYS = 600


def generate(prefix, *args):
    subprocess.run([*prefix, PATHLINE, "gen", "dta", "-n", str(KEYS), "--rate", "4k", *args, f"udp://127.0.0.1:{DTA}"],
                   check=True, capture_output=True, timeout=LIMIT)


def chain(what, collector, translator, prefix):
    """Values, and additions, which are answered: nothing may be missing, as nothing is lost on this wire. On a machine that
    stands still an answer may come too late, and what it is to is sent again."""
    generate(prefix)
    generate(prefix, "--stream", "increment", "--store", "1", "--value-of-key")
    out = translator.end()["out"]
    account = collector.stop()
    causes = {cause: n for cause, n in account["causes"].items() if n > 0}
    ok(set(causes) <= {"ok", "duplicate", "gap", "gap_again"}, f"{what}: every packet is whole and good", causes)
    ok(out["given"] == out["writes"] + out["adds"] == account["writes"] + account["adds"] and
       0 < out["adds"] <= out["atomic_acks"], f"{what}: all is executed, additions are answered", (out, account))
    rows = region("lookup", "--key-form", "be32", lab.path("last.plr"), *[str(k) for k in range(0, KEYS, 7)])
    found = [r for r in rows if r.get("answer") == "found"]
    ok(len(found) > len(rows) * 0.98 and all(int(r["value"], 16) == int(r["key"]) for r in found),
       f"{what}: {len(found)} of {len(rows)} values are found, and right", rows[:2])


def test_against_each_other():
    for version, ours, theirs in ((4, "udp", "udp"), (6, "udp", "udp"), (4, "udp", "packet"), (4, "packet", "udp"),
                                  (6, "packet", "udp"), (6, "udp", "packet")):
        roce.make_regions(last="--primitive key-write --slots 65536",
                          sums="--primitive counters --slots 65536 --rows 2")
        a, b = IP[version]["a"], IP[version]["b"]
        what = f"IPv{version}, translator by {ours}, collector by {theirs}"
        c = Collector(NS["b"], "--listen", f"{host(b)}:{TCP}", device(theirs, b), f"last={lab.path('last.plr')}",
                      f"sums={lab.path('sums.plr')}")
        t = Translator(NS["a"], DTA, f"roce://{host(b)}:{TCP}/last,sums?dev={device(ours, a)}")
        chain(what, c, t, NS["a"].command())


# ---- on the wire ----

def seen(sniffer, wanted):
    """RoCE packets from the IP header on."""
    packets = []
    sniffer.settimeout(LIMIT)
    while len(packets) < wanted:
        frame = sniffer.recv(65536)
        if len(frame) > 58 and roce.is_roce(frame):
            packets.append(frame[14:])
    return packets


def test_on_the_wire():
    for version in (4, 6):
        roce.make_regions(last="--primitive key-write --slots 65536")
        a, b = IP[version]["a"], IP[version]["b"]
        sniffer = roce.packet_socket(NS["b"], "eth0")
        c = Collector(NS["b"], "--listen", f"{host(b)}:{TCP}", device("udp", b), f"last={lab.path('last.plr')}")
        t = Translator(NS["a"], DTA, f"roce://{host(b)}:{TCP}/last?dev={device('udp', a)}")
        generate(NS["a"].command())
        packets = seen(sniffer, 100)
        t.end()
        c.stop()
        sniffer.close()
        wrong = [p for p in packets if roce.icrc(p[:-4]) != p[-4:]]
        ok(not wrong, f"IPv{version}: ICRCs are those of the packets as the kernel sent them", wrong[:1])
        if version == 4:
            ok(all(p[4:8] == b"\0\0\x40\0" for p in packets), "no identification, no fragments", packets[0])


def test_damaged():
    """Packets by hand: any identification is found, what is damaged or too long is counted and nothing is written."""
    roce.make_regions(last="--primitive key-write --hash dta --copies 1 --slots 1024")
    file = lab.path("last.plr")
    c = Collector(NS["b"], "--listen", f"{IP[4]['b']}:{TCP}", device("udp", IP[4]["b"]), f"last={file}")
    with NS["a"]:
        tcp = socket.create_connection((IP[4]["b"], TCP), LIMIT)
    macs = NS["b"].mac("eth0"), NS["a"].mac("eth0")
    qp = roce.QueuePair(tcp, roce.request("last", roce.UC, IP[4]["a"], macs[1]), roce.UC, IP[4]["a"], IP[4]["b"], macs)
    wire = roce.packet_socket(NS["a"], "eth0", 0)
    place, entry = roce.entry(7, 99, 1024)
    wire.send(qp.write(place, entry))  # its identification is 7
    ok(wait(lambda: c.counters()["writes"] == 1), "an identification that the socket does not tell is no obstacle")
    eq(region("lookup", file, "--key-form", "u32", "7")[0].get("value"), "00000063", "and the value is there")
    bad = 0
    for at in range(54, 58):  # of the address
        frame = bytearray(qp.write(place, roce.entry(7, 1, 1024)[1]))
        frame[at] ^= 0x55
        wire.send(bytes(frame))
        bad += 1
    with NS["a"]:
        by_socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for size in (0, 3, 12, 20, 8000, 60000):
        by_socket.sendto(os.urandom(size), (IP[4]["b"], roce.PORT))
        bad += 1
    ok(wait(lambda: c.counters()["packets"] == 1 + bad), f"all {bad} bad ones have come")
    account = c.stop()
    ok(account["writes"] == 1 and account["causes"]["icrc"] >= 4 and account["causes"]["ip_length"] >= 3,
       "and have their causes", account["causes"])
    eq(region("lookup", file, "--key-form", "u32", "7")[0].get("value"), "00000063", "the value is as it was")


def main():
    if os.geteuid() != 0:
        tap.skip_all("needs root")
    NS.update(network.pair("ru", IP))
    lab.run(test_against_each_other, test_on_the_wire, test_damaged)
    return tap.end()


sys.exit(main())
