#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`pathline translate …&connect=cm`: collectors that are reached by RDMA-CM and have no TCP port. Made, used and ended, ended by
either side with and without a word, refused; by packet and UDP sockets, IPv4 and IPv6. usage: rdma_cm_translate.py PATHLINE [TEST…]"""
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, network, roce, tap  # noqa: E402
from lib.pathline import PATHLINE, region, run  # noqa: E402
from lib.stalls import attempt  # noqa: E402
from lib.tap import comment, eq, ok  # noqa: E402
from lib.translate import Translator, device, host  # noqa: E402
from lib.wait import LIMIT, wait  # noqa: E402

NS = {}
IP = {4: {"a": "10.79.0.1", "b": "10.79.0.2"}, 6: {"a": "fd79::1", "b": "fd79::2"}}
CM, DTA = 7471, 22141
REGIONS = {"last": "--primitive key-write --slots 65536", "sums": "--primitive counters --slots 65536 --rows 2",
           "lists": "--primitive append --slots 4096 --lists 3 --value-bytes 4"}
STORES = ",".join(REGIONS)


def collector(*args, uri="packet:eth0", stores=tuple(REGIONS)):
    """Without a TCP port; READs are allowed, for the heads of lists."""
    return roce.Collector(NS["b"], "--listen", "none", "--cm-port", CM, "--read", *args, uri,
                          *(lab.path(s + ".plr") for s in stores))


def address(version=4, query="", dev="packet:eth0", stores=STORES, port=CM):
    return f"roce://{host(IP[version]['b'])}:{port}/{stores}?dev={dev}&connect=cm{query}"


def generate(*args):
    subprocess.run(NS["a"].command(PATHLINE, "gen", "dta", "--rate", "4k", *map(str, args), f"udp://127.0.0.1:{DTA}"),
                   check=True, capture_output=True, timeout=LIMIT)


def report(first, n=20):
    """Values of the keys from `first` on: their own number."""
    subprocess.run(NS["a"].command(PATHLINE, "report", "key-write", "-k", str(first), "--key-form", "be32", "--step-key", "-d",
                                   str(first), "--data-form", "be32", "--step-data", "--count", str(n),
                                   f"udp://127.0.0.1:{DTA}"), check=True, capture_output=True, timeout=LIMIT)


def found(first, n=20):
    rows = region("lookup", "--key-form", "be32", lab.path("last.plr"), *map(str, range(first, first + n)))
    return [r["key"] for r in rows if r["answer"] == "found" and int(r["value"], 16) == int(r["key"])]


def arrive(translator, first, n=20):
    """What is reported now arrives. With a connection that is given up, after 5 s without an acknowledgement, goes what
    waited for it."""
    def there():
        """all keys are found"""
        return len(found(first, n)) == n

    def reported():
        report(first, n)
        return wait(there) or comment(translator.account()["out"])
    return attempt(f"values from {first} on", reported, lambda arrived: not arrived, limit=1)


def by_cm(account):
    return {(p["store"], p["tcp"], p["cm"], p["connected"]) for p in account["peers"]}


def pass_through(version, ours, theirs):
    """Values, additions and entries into fresh regions: the accounts of the translator and of the collector."""
    roce.make_regions(**REGIONS)
    c = collector(uri=device(theirs, IP[version]["b"]))
    t = Translator(NS["a"], DTA, address(version, dev=device(ours, IP[version]["a"])))
    generate("-n", 600)
    generate("-n", 300, "--stream", "increment", "--store", 1, "--value-of-key")
    generate("-n", 300, "--stream", "append", "--store", 2, "--lists", 3)
    return t.end()["out"], c.stop()


def lost_connection(accounts):
    """Of what pass_through returns."""
    there = accounts[0]["collectors"][0]
    return there["tries_failed"] + there["connections_lost"] > 0


def test_chain():
    """All primitives' kinds of stores. Each is called twice: to read heads of lists, and to write."""
    for version, ours, theirs in ((4, "packet", "packet"), (6, "packet", "packet"), (4, "udp", "packet"), (4, "packet", "udp"),
                                  (6, "packet", "udp"), (6, "udp", "udp")):
        what = f"IPv{version}, {ours} to {theirs}"
        # A connection is given up after 5 s without an acknowledgement, a call after 1 s.
        out, account = attempt(what, lambda: pass_through(version, ours, theirs), lost_connection, limit=1)
        there = out["collectors"][0]
        eq((there["lost"], there["connections"], there["tries_failed"], there["done"]), (0, 1, 0, out["given"]),
           f"{what}: nothing is lost")
        eq(account["writes"] + account["adds"], out["writes"] + out["adds"], f"{what}: what was sent was executed")
        eq(by_cm(account), {(s, 0, 2, 0) for s in REGIONS}, f"{what}: by RDMA-CM, and all was ended")
        eq(account["cm"]["unknown"] + account["cm"]["malformed"] + account["cm"]["foreign"], 0, f"{what}: no message too many")
        rows = region("lookup", "--key-form", "be32", lab.path("last.plr"), *map(str, range(0, 600, 7)))
        ok(sum(r["answer"] == "found" for r in rows) > 80, f"{what}: values are found")
        eq([r["value"] for r in region("dump", lab.path("lists.plr"), "--list", "1")][:3], ["00000002", "00000005", "00000008"],
           f"{what}: entries too")


def test_lists_go_on():
    """A translator's lists go on where the collector has them, which it reads by reliable connections of RDMA-CM."""
    roce.make_regions(**REGIONS)
    c = collector()
    for _ in range(2):
        t = Translator(NS["a"], DTA, address())
        generate("-n", 30, "--stream", "append", "--store", 2, "--lists", 3)
        t.end()
    c.stop()
    eq([r["number"] for r in region("dump", lab.path("lists.plr"), "--list", "0")], list(range(20)), "entries of two translators")


def test_collector_goes():
    """With a word, which is heard at once; without, which is found out by what is not acknowledged."""
    roce.make_regions(**REGIONS)
    c = collector()
    t = Translator(NS["a"], DTA, address())
    ok(arrive(t, 100), "values arrive")
    c.stop()
    ok(t.says("lost (") and "ended the connection" in t.said[-1], "a collector that ends says so", t.said[-1])
    c = collector()
    ok(t.says("connected"), "and is connected again when it is back", t.said[-1])
    ok(arrive(t, 200), "values arrive again")
    c.stop(signal.SIGKILL)
    report(300)
    ok(t.says("lost (") and "not acknowledged" in t.said[-1], "a killed one gives no answers", t.said[-1])
    c = collector()
    ok(t.says("connected"), "it is back", t.said[-1])
    ok(arrive(t, 400), "values arrive once more")
    out = t.end()["out"]["collectors"][0]
    ok(out["connections"] - 1 == out["connections_lost"] >= 2, "counted", out)
    eq(out["given"], out["done"] + out["lost"] + out["full"] + out["down"] + out["outside"], "what was lost as well")
    c.stop()


def test_translator_goes():
    """Killed, and started anew; without one, its queue pairs end by its silence."""
    roce.make_regions(**REGIONS)
    c = collector("--silent", "8s", "--peers", 6)
    t = Translator(NS["a"], DTA, address())
    ok(arrive(t, 100), "values arrive")
    t.end(signal.SIGKILL)
    t = Translator(NS["a"], DTA, address())
    ok(arrive(t, 200), "another one is connected")
    t.end(signal.SIGKILL)

    def nobody():
        """nobody is connected"""
        return {p["connected"] for p in c.counters()["peers"]} == {0}
    ok(wait(nobody), "both are given up by their silence")
    ok(c.stop()["silent"] >= 3, "counted")


def test_smaller_frames():
    """The path MTU is the caller's word; where it is too large the answer says which is not, and that one is asked for."""
    roce.make_regions(**REGIONS)
    NS["b"].ip("link set eth0 mtu 700")
    c = collector(stores=("last",))
    t = Translator(NS["a"], DTA, address(stores="last"))
    ok(arrive(t, 100), "values arrive with the smaller one")
    ok(t.end()["out"]["collectors"][0]["tries_failed"] > 0, "not at the first try")
    c.stop()
    NS["b"].ip("link set eth0 mtu 1500")


def fails(words, what, **where):
    r = subprocess.run(NS["a"].command(PATHLINE, "translate", f"udp://127.0.0.1:{DTA}", address(**where)), capture_output=True,
                       text=True, timeout=LIMIT, check=False)
    ok(r.returncode == 69 and words in r.stderr, what, r.stderr)


def test_refused():
    roce.make_regions(**REGIONS)
    c = collector(stores=("last",))
    fails("no such store", "a store that is not there", stores="other")
    fails("no collector listens", "a port that nobody listens to", port=CM + 1)
    c.stop()
    c = collector("--allow", "10.99.0.0/16", stores=("last",))
    fails("does not allow this host", "an address that may not", stores="last")
    c.stop()
    c = roce.Collector(NS["b"], "--listen", f"{IP[4]['b']}:{CM}", "--cm-port", "0", "packet:eth0", lab.path("last.plr"))
    fails("no answer", "a collector without RDMA-CM", stores="last")
    c.stop()
    r = run("translate", f"udp://127.0.0.1:{DTA}", address(query="&service=uc"))
    ok(r.returncode == 2 and "service=rc" in r.stderr, "unacknowledged writes are refused", r.stderr)
    r = run("translate", f"udp://127.0.0.1:{DTA}", address(query="&connect=carrier-pigeon"))
    ok(r.returncode == 2 and "connect=tcp or cm" in r.stderr, "an unknown way", r.stderr)


def main():
    NS.update(network.pair("cc", IP))
    lab.run(test_chain, test_lists_go_on, test_collector_goes, test_translator_goes, test_smaller_frames, test_refused)
    return tap.end()


sys.exit(main())
