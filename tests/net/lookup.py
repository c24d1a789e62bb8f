#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`pathline region lookup roce://…`: collectors in one namespace, filled by a translator in another and asked from there.
What comes over the network is what the file says, of each primitive, by TCP and by RDMA-CM, through sockets and packet
sockets; with two collectors the one that has a key is asked and no other; who may only read cannot write; epochs that begin,
collectors that are killed, refusals and what their messages say. usage: lookup.py PATHLINE"""
import collections
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, network, roce, tap  # noqa: E402
from lib.pathline import PATHLINE, region  # noqa: E402
from lib.roce import Collector  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.translate import Translator, device  # noqa: E402
from lib.wait import LIMIT, wait  # noqa: E402

NS = {}
IP = {4: {"a": "10.79.0.1", "b": "10.79.0.2"}, 6: {"a": "fd79::1", "b": "fd79::2"}}
FIRST, SECOND = IP[4]["b"], "10.79.0.3"  # of two collectors
TCP, DTA = 22371, 22340
KEYS = 1000
REGIONS = {
    "last": "--primitive key-write --slots 4096 --value-bytes 20 --copies 2",  # some are overwritten
    "wide": "--primitive key-write --slots 4096 --value-bytes 1000 --copies 2",
    "lists": "--primitive append --slots 512 --lists 3 --value-bytes 8",
    "bare": "--primitive append --slots 512 --lists 3 --value-bytes 8 --unsealed",
    "sums": "--primitive counters --slots 700 --rows 3",
    "paths": "--primitive postcards --slots 2048 --hops 5",
    "sketch": "--primitive sketch --slots 900 --rows 4 --cell-bytes 4",
    "many": "--primitive sketch --kind hyperloglog --slots 5000",
    "olds": "--primitive key-write --hash dta --slots 4096 --value-bytes 4 --copies 4",
}
STORES = list(REGIONS)
STREAMS = {
    "last": "--value-bytes 20 -n 1500", "wide": "--value-of-key --value-bytes 1000 -n 1500",
    "lists": "--stream append --lists 3 --value-bytes 8 -n 1800", "bare": "--stream append --lists 3 --value-bytes 8 -n 1800",
    "sums": "--stream increment --value-of-key -n 3000 --keys 900", "paths": "--stream postcards --lengths --hops 5 -n 3600",
    "sketch": "--stream sketch --value-of-key --columns 900 --rows 4 --cell-bytes 4 -n 200",
    "many": "--stream sketch --value-of-key --columns 5000 --rows 1 --cell-bytes 1 -n 200", "olds": "--value-of-key -n 1500",
}
NUMBERS = [str(k) for k in range(300, 300 + KEYS)]


def files(*names, prefix=""):
    return [f"{name}={lab.path(prefix + name + '.plr')}" for name in names]


def fill(uri, stores=None):
    """Streams of the generator into stores of a translator."""
    t = Translator(NS["a"], DTA, uri)
    for number, store in enumerate(stores or STORES):
        subprocess.run([*NS["a"].command(), PATHLINE, "gen", "dta", "--store", str(number), "--rate", "6k",
                        *STREAMS[store].split(), f"udp://127.0.0.1:{DTA}"], check=True, capture_output=True, timeout=LIMIT)
    return t.end()


def look(where, *args, namespace=True, **kwargs):
    """A lookup from the host of the translator, or of a file."""
    command = NS["a"].command() if namespace else []
    return subprocess.run([*command, PATHLINE, "region", "lookup", "-o", "jsonl", where, *args], capture_output=True, text=True,
                          timeout=LIMIT, check=False, **kwargs)


def uri(store, kind="udp", servers=f"{FIRST}:{TCP}", more="", address=IP[4]["a"]):
    return f"roce://{servers}/{store}?dev={device(kind, address)}{more}"


def keys_of(store):
    """What is asked of a store: a thousand keys, or all there is to be asked."""
    if store in ("lists", "bare"):
        return ["--list", "1", *(str(n) for n in range(KEYS))]
    return [] if store == "many" else ["--key-form", "be32", *NUMBERS]


def says(run, code, *words):
    """Whether it ended with this code and said these words, and what it did otherwise."""
    ok(run.returncode == code and all(w in run.stderr for w in words), f"exit code {code}: {', '.join(words)}",
       (run.returncode, run.stderr, run.stdout[:300]))


# ---- one collector ----

def compare(what, where):
    for store in STORES:
        file, far = look(lab.path(store + ".plr"), *keys_of(store), namespace=False), look(where(store), *keys_of(store))
        rows = far.stdout.splitlines()
        ok(len(rows) == (1 if store == "many" else KEYS) and rows == file.stdout.splitlines() and
           far.returncode == file.returncode, f"{what}: {store} says what its file says, {len(rows)} times",
           (far.returncode, far.stderr, rows[:2], file.returncode, file.stdout[:300]))
    found = [json.loads(row) for row in look(where("last"), *keys_of("last")).stdout.splitlines()]
    right = [r for r in found if r["answer"] == "found" and int(r["value"], 16) == int(r["key"])]
    ok(0.6 * KEYS < len(right) < KEYS, f"{what}: values are those that were sent, and some are gone", len(right))


TAKEN = {"ok", "duplicate", "gap", "gap_again", "management"}
# Of a READ that was sent again, as its answer came late, when the answer is not kept any more or the connection is closed.
AGAIN = {"forgotten", "busy", "unknown_qp"}


def test_same_answers():
    for kind in ("udp", "packet"):
        roce.make_regions(**REGIONS)
        c = Collector(NS["b"], "--read", "--listen", f"{FIRST}:{TCP}", device(kind, FIRST), *files(*STORES))
        out = fill(uri(",".join(STORES), kind))["out"]
        ok(out["given"] > 0 and out["lost"] == 0, f"{kind}: regions are filled", out)
        compare(kind, lambda store, kind=kind: uri(store, kind))
        table = subprocess.run([*NS["a"].command(), PATHLINE, "region", "lookup", uri("sums", kind), "--key-form", "be32", "7"],
                               capture_output=True, text=True, timeout=LIMIT, check=False)
        eq(table.stdout, subprocess.run([PATHLINE, "region", "lookup", lab.path("sums.plr"), "--key-form", "be32", "7"],
                                        capture_output=True, text=True, timeout=LIMIT, check=False).stdout, "as a table")
        if kind == "packet":
            compare("RDMA-CM", lambda store: uri(store, "packet", f"{FIRST}:7471", "&connect=cm"))
        account = c.stop()
        ok(set(k for k, n in account["causes"].items() if n) <= TAKEN | AGAIN, f"{kind}: no READ is refused", account["causes"])


# ---- several ----

def test_two_collectors():
    stores = ("last", "sums", "paths", "lists")
    all_keys = {s: keys_of(s) for s in stores}
    collectors = {}
    for name, address in (("c1", FIRST), ("c2", SECOND)):
        roce.make_regions(**{f"{name}-{s}": REGIONS[s] for s in stores})
        collectors[name] = Collector(NS["b"], "--read", "--listen", f"{address}:{TCP}", device("udp", address),
                                     *files(*stores, prefix=name + "-"))
    servers = f"{FIRST}:{TCP},{SECOND}:{TCP}"
    fill(uri(",".join(stores), servers=servers), stores)
    for number, store in enumerate(stores):
        before = {n: c.counters()["reads"] for n, c in collectors.items()}
        far = look(uri(",".join(stores), servers=servers), "--store", str(number), *all_keys[store])
        one = look(uri(store, servers=servers), "--store", str(number), *all_keys[store])
        eq(one.stdout, far.stdout, f"{store}: the translator's URI, or the one name with its number")
        reads = {n: c.counters()["reads"] - before[n] for n, c in collectors.items()}
        near = look(lab.path(f"c1-{store}.plr"), "--collector", lab.path(f"c2-{store}.plr"), "--store", str(number),
                    *all_keys[store], namespace=False)
        rows, want = ([json.loads(line) for line in run.stdout.splitlines()] for run in (far, near))
        ok(all(r.pop("server") == servers.split(",")[r["collector"]] for r in rows), f"{store}: it says who answered", rows[:2])
        for r in want:
            r.pop("elsewhere", None)  # others are not asked
        def is_found(row):
            """Others than these have sums by chance, of which a file asks all collectors."""
            return int(row["key"]) < 900 if "value" in row and "answer" not in row else row["answer"] == "found"

        found = [r for r in want if is_found(r)]
        ok(len(found) > 100 and [r for r in rows if is_found(r)] == found,
           f"{store}: {len(found)} answers are those of the files", (far.stderr, rows[:2], want[:2]))
        if store == "lists":
            ok(min(reads.values()) == 0 < max(reads.values()), "a list is at one of them, and the other is not read", reads)
        else:
            ok(min(reads.values()) > 0, f"{store}: both have keys", reads)
    # One key: one collector is asked.
    key = ["--key-form", "be32", "1234"]
    row = json.loads(look(uri("last", servers=servers), *key).stdout)
    other = collectors["c1" if row["collector"] == 1 else "c2"]
    before = other.counters()["reads"]
    look(uri("last", servers=servers), *key)
    eq(other.counters()["reads"], before, "for a key of one collector the other is not read")
    rows = [json.loads(line) for line in look(uri("sums", servers=servers), "--store", "1", "--all", *all_keys["sums"]).stdout.splitlines()]
    want = region("lookup", lab.path("c1-sums.plr"), "--collector", lab.path("c2-sums.plr"), "--store", "1", *all_keys["sums"])
    ok([{k: v for k, v in r.items() if k != "server"} for r in rows] == want, "--all: what all count, as of files", rows[:1])
    one_is_gone(collectors, servers, all_keys["last"])


def one_is_gone(collectors, servers, keys):
    whole = {r["key"]: r for r in map(json.loads, look(uri("last", servers=servers), *keys).stdout.splitlines())}
    collectors["c2"].stop(signal.SIGKILL)
    far = look(uri("last", servers=servers), *keys)
    rows = [json.loads(line) for line in far.stdout.splitlines()]
    eq({r["collector"] for r in rows}, {0}, "the keys of the other are answered")
    ok(all(r == whole[r["key"]] for r in rows) and len(rows) < KEYS, "as before", rows[:2])
    says(far, 69, f"{SECOND}:{TCP}", "left out", "--all")
    far = look(uri("last", servers=servers), "--all", *keys)
    says(far, 69, f"{SECOND}:{TCP}")
    eq(len(far.stdout.splitlines()), KEYS, "--all: every key has an answer of the one that is left")
    # The first is gone: the second says what the store is.
    collectors["c1"].stop()
    says(look(uri("last", servers=servers), *keys[:3]), 69, f"{FIRST}:{TCP}")


# ---- who may what ----

def test_rights():
    roce.make_regions(last="--primitive key-write --hash dta --copies 1 --slots 1024")
    file = lab.path("last.plr")
    where, keys = uri("last"), ["--key-form", "u32", "7"]
    on = ("--listen", f"{FIRST}:{TCP}", device("udp", FIRST), f"last={file}")
    c = Collector(NS["b"], *on)
    says(look(where, *keys), 77, "--read")
    says(look(uri("lost"), *keys), 1, "no store of the name 'lost'")
    c.stop()
    c = Collector(NS["b"], "--allow", "10.79.0.77/32", "--read", *on)
    says(look(where, *keys), 77, "--allow")
    c.stop()
    c = Collector(NS["b"], "--allow", "10.79.0.77/32", "--allow-read", IP[4]["a"] + "/32", *on)
    says(look(where, *keys), 3)
    macs = NS["b"].mac("eth0"), NS["a"].mac("eth0")
    for what, access in (("all", 7), ("READ", 1), ("WRITE", 2)):
        with NS["a"]:
            tcp = socket.create_connection((FIRST, TCP), LIMIT)
        qp = roce.QueuePair(tcp, roce.request("last", roce.RC, IP[4]["a"], macs[1], access=access), roce.RC, IP[4]["a"],
                            FIRST, macs)
        if what == "WRITE":
            ok(qp.refusal == 2, "who may only read and asks to write is refused", qp.answer)
            continue
        eq(qp.answer[71], 1, f"asked for {what}, a reader gets READ")
        wire = roce.packet_socket(NS["a"], "eth0", 0)
        place, entry = roce.entry(7, 99, 1024)
        before = c.counters()
        wire.send(qp.write(place, entry, ack=True))
        ok(wait(lambda before=before: c.counters()["packets"] > before["packets"]), "a WRITE comes")
        after = c.counters()
        ok(after["writes"] == before["writes"] == 0 and after["causes"]["ok"] == before["causes"]["ok"], "and is refused",
           after["causes"])
    eq(region("lookup", file, *keys)[0]["answer"], "not_found", "nothing was written")
    says(look(where, *keys), 3)
    c.stop()
    by_cm_read_only(file)


def by_cm_read_only(file):
    """RDMA-CM: a reader asks for READ alone there too."""
    c = Collector(NS["b"], "--allow", "10.79.0.77/32", "--allow-read", IP[4]["a"] + "/32", "--listen", "none",
                  device("udp", FIRST), f"last={file}")
    says(look(uri("last", "udp", f"{FIRST}:7471", "&connect=cm"), "--key-form", "u32", "7"), 3)
    says(look(uri("lost", "udp", f"{FIRST}:7471", "&connect=cm"), "--key-form", "u32", "7"), 77, "no such store")
    c.stop()


# ---- what goes wrong ----

class Reading:
    """A lookup that has read its first 64 keys, and waits for others."""

    def __init__(self, store, more=""):
        self.process = lab.start(NS["a"].command(PATHLINE, "region", "lookup", "-o", "jsonl", "--key-form", "be32",
                                                 uri(store, more=more), "-"),
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.give(range(64))

    def give(self, keys):
        self.process.stdin.write("".join(f"{k}\n" for k in keys))
        self.process.stdin.flush()

    def end(self):
        return self.process.communicate(timeout=LIMIT)

    def code(self):
        return self.process.returncode


def test_killed_in_the_middle():
    """A reader that has half of its keys; the collector ends with, or without, a word."""
    roce.make_regions(last=REGIONS["last"])
    for how in (signal.SIGKILL, signal.SIGTERM):
        c = Collector(NS["b"], "--read", "--listen", f"{FIRST}:{TCP}", device("udp", FIRST), *files("last"))
        reader = Reading("last")
        ok(wait(lambda c=c: c.counters()["reads"] >= 128), "the first keys are read")
        c.stop(how)
        reader.give(range(64, 200))
        out, err = reader.end()
        ok(reader.code() == 69 and "ended the connection while it was read" in err and FIRST in err,
           f"{how.name}: it says that the collector is gone", (reader.code(), err))
        eq([json.loads(line)["key"] for line in out.splitlines()], [str(k) for k in range(64)], "answers until then stand")


def test_silent():
    """A collector that stands still, while its connection stands: for a while, and for good."""
    roce.make_regions(last=REGIONS["last"])
    c = Collector(NS["b"], "--read", "--listen", f"{FIRST}:{TCP}", device("udp", FIRST), *files("last"))
    fill(uri("last"), ("last",))
    for wakes in (True, False):
        before = c.counters()["reads"]
        reader = Reading("last", more="&timeout=60s" if wakes else "&timeout=5s")
        ok(wait(lambda before=before: c.counters()["reads"] >= before + 128), "the first keys are read")
        c.process.send_signal(signal.SIGSTOP)
        wire = roce.packet_socket(NS["b"], "eth0")
        reader.give(range(300, 1300))
        if wakes:
            asked = collections.Counter()

            def is_asked_again():
                """a READ came once more, by its queue pair and number"""
                while select.select([wire], [], [], 0)[0]:
                    one = wire.recv(4096)
                    asked[one[47:50] + one[51:54]] += roce.is_roce(one) and one[42] == 0x0c
                return max(asked.values(), default=0) > 1
            ok(wait(is_asked_again), "READs are sent again")
            c.process.send_signal(signal.SIGCONT)
            out, err = reader.end()
            want = look(lab.path("last.plr"), "--key-form", "be32", *map(str, [*range(64), *range(300, 1300)]), namespace=False)
            ok(out == want.stdout, "what was asked for again is there", err)
            continue
        _, err = reader.end()
        ok(reader.code() == 69 and "does not answer READs" in err, "a reader gives up, and says why", err)
        c.process.send_signal(signal.SIGCONT)
    c.stop()
    says(look(uri("last"), "7"), 69, f"{FIRST}:{TCP}")


def test_epochs():
    roce.make_regions(turn=REGIONS["last"] + " --halves 2")
    c = Collector(NS["b"], "--read", "--listen", f"{FIRST}:{TCP}", device("udp", FIRST), *files("turn"))
    says(look(uri("turn"), "--epoch", "0", "--key-form", "u32", "7"), 3)
    says(look(uri("turn"), "--epoch", "4", "7"), 3, "epoch 4", "--keep-epochs")
    says(look(uri("turn"), "--epoch", "x", "7"), 2, "--epoch needs a number")
    reader = Reading("turn")
    ok(wait(lambda: c.counters()["reads"] >= 128), "the first keys are read")
    c.process.send_signal(signal.SIGUSR2)
    ok(wait(lambda: region("info", lab.path("turn.plr"))[0].get("epoch") == 1), "an epoch begins")
    reader.give([64])
    _, err = reader.end()
    ok(reader.code() == 1 and "has begun epoch 1" in err and "again" in err, "a reader is told", (reader.code(), err))
    says(look(uri("turn"), "--epoch", "1", "--key-form", "u32", "7"), 3)
    c.stop()


def test_other_answers():
    """Who answers is no collector."""
    with NS["b"]:
        server = socket.create_server((FIRST, TCP))
    for what, words in ((b"HTTP/1.0 400\r\n\r\n", "malformed"), (b"PLRX\x09" + bytes(95), "another version")):
        run = lab.start(NS["a"].command(PATHLINE, "region", "lookup", uri("last"), "7"), stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE, text=True)
        tcp, _ = server.accept()
        roce_ask = tcp.recv(512)
        eq(struct.unpack_from(">4sBB", roce_ask), (b"PLRX", 1, roce.RC), "it asks for a reliable queue pair")
        eq(roce_ask[71], 1, "that may READ and nothing else")
        tcp.sendall(what)
        _, err = run.communicate(timeout=LIMIT)
        ok(run.returncode == 1 and words in err, f"{words} is said", (run.returncode, err))
        tcp.close()
    server.close()


def test_refused_arguments():
    for where, words in ((f"roce://{FIRST}:{TCP}/last", "missing interface"), (f"roce://{FIRST}/last?dev=udp://{IP[4]['a']}", "address and port"),
                         (f"roce://{FIRST}:{TCP}?dev=packet:eth0", "missing stores"), (uri("last", more="&x=1"), "invalid 'x=1'"),
                         (uri("last", more="&timeout=2h"), "timeout=100ms to 60s"),
                         (f"roce://{FIRST}:{TCP}/last?dev=verbs:mlx5_0", "software NIC"), (uri("l" * 25), "1 to 24 bytes")):
        says(look(where, "7"), 2, words)
    says(look(uri("a,b"), "--store", "2", "7"), 2, "stores 0 to 1")
    says(look(uri("a"), "--collector", "x.plr", "7"), 2, "--collector names files")
    for word in ("info", "dump", "verify"):
        run = subprocess.run([PATHLINE, "region", word, uri("a")], capture_output=True, text=True, timeout=LIMIT, check=False)
        says(run, 2, "lookup only")


def main():
    if os.geteuid() != 0:
        tap.skip_all("needs root")
    NS.update(network.pair("lk", IP))
    subprocess.run([*NS["b"].command(), "ip", "address", "add", SECOND + "/24", "dev", "eth0"], check=True)
    lab.run(test_refused_arguments, test_same_answers, test_two_collectors, test_rights, test_killed_in_the_middle,
            test_silent, test_epochs, test_other_answers)
    return tap.end()


sys.exit(main())
