#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Several sources of one question are merged by time, whatever their order and length; rules of the command mark packets. The
counts are those of Python over the printed records. usage: query_sources.py PATHLINE"""
import os
import resource
import signal
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import tap  # noqa: E402
from lib.lab import path  # noqa: E402
from lib.pathline import jsonl, run  # noqa: E402
from lib.tap import eq, ok  # noqa: E402

SECOND = 10**9
QUESTION = "SELECT count(*) AS n, sum(wire_len) AS bytes FROM packets TUMBLE(ts, 1s)"


def counts(records):
    """Packets and bytes of each second."""
    found = {}
    for r in records:
        n, size = found.get(r["ts_ns"] // SECOND * SECOND, (0, 0))
        found[r["ts_ns"] // SECOND * SECOND] = (n + 1, size + r["wire_len"])
    return found


def ask(*args):
    answer = run("query", "-o", "jsonl", "--stats", QUESTION, "--lateness", "1us", *args)
    rows = jsonl(answer.stdout)
    return {r["window_start"]: (r["n"], r["bytes"]) for r in rows if "n" in r}, answer.stderr


def copy(source, target, later=0, without=None):
    """The packets of a capture, these seconds later, but those of one port."""
    with open(source, "rb") as f:
        data = f.read()
    out, at = [data[:24]], 24
    while at < len(data):
        seconds, part, kept, length = struct.unpack_from(">IIII", data, at)
        frame = data[at + 16:at + 16 + kept]
        at += 16 + kept
        if without not in struct.unpack_from(">HH", frame, 14 + 20):
            out.append(struct.pack(">IIII", seconds + later, part, kept, length) + frame)
    with open(target, "wb") as f:
        f.write(b"".join(out))


packets = []
for name, seed, rate, duration in (("a", 1, 100, 5), ("b", 2, 400, 3), ("c", 3, 20, 6)):
    made = run("gen", "packets", "--duration", f"{duration}s", "--seed", seed, "--connections", rate, "-w", path(f"{name}.pcap"))
    ok(made.returncode == 0, "traffic is made", made.stderr)
    packets += jsonl(run("tap", "-o", "jsonl", path(f"{name}.pcap")).stdout)
    for kind in "pkt64", "pkt96":
        written = run("tap", "--to", f"file:{path(name)}.{kind}{'?kind=pkt96' if kind == 'pkt96' else ''}", path(f"{name}.pcap"))
        ok(written.returncode == 0, "records are written", written.stderr)
wanted = counts(packets)
for kind in "pcap", "pkt64", "pkt96":
    files = [path(f"{name}.{kind}") for name in "abc"]
    for given in (files, files[::-1], [x for file in files for x in ("--from", file)]):
        got, said = ask(*given)
        eq(got, wanted, f"{kind}: three files are one source")
        ok("too late" not in said, "and none makes the records of another late", said)
regions = [f"region:{path(name)}.region" for name in "abc"]
for name, region in zip("abc", regions):
    written = run("tap", "--to", region, path(f"{name}.pcap"))
    ok(written.returncode == 0, "a region is written", written.stderr)
for given in (regions, regions[::-1]):
    got, said = ask(*given)
    eq(got, wanted, "three regions are one source")
    ok("too late" not in said, "and none makes the records of another late", said)
copy(path("a.pcap"), path("d.pcap"), without=53)
narrow = "SELECT count(*) AS n FROM dns TUMBLE(ts, 2ms)", "--lateness", "1us", "-o", "csv"
alone, both = run("query", *narrow, path("b.pcap")), run("query", *narrow, path("d.pcap"), path("b.pcap"))
ok(alone.stdout.count("\n") > 1026, "there are more windows than may be open at a time", alone.stderr)
ok(alone.stdout == both.stdout, "a capture without records of the question keeps none of them open", both.stderr)
hours = [path("c.pcap")] + [path(f"{n}0.pcap") for n in range(1, 6)]
for n, name in enumerate(hours[1:], 1):
    copy(hours[0], name, later=10 * n)
for kind in "pcap", "pkt64":
    files = [f"{name.removesuffix('pcap')}{kind}" for name in hours]
    for name in hours[1:] if kind == "pkt64" else ():
        written = run("tap", "--to", f"file:{name.removesuffix('pcap')}pkt64", name)
        ok(written.returncode == 0, "records are written", written.stderr)
    narrow = "SELECT count(*) AS n FROM packets TUMBLE(ts, 1ms)", "--lateness", "1us", "-o", "csv"
    each = [run("query", *narrow, name).stdout.splitlines() for name in files]
    ok(len(each[0]) > 1026, "there are more windows than may be open at a time", str(len(each[0])))
    one = run("query", *narrow, *files[::-1]).stdout.splitlines()
    eq(one == each[0] + [line for lines in each[1:] for line in lines[1:]], True, f"{kind}: files that follow each other are one, whatever their order")
# Which clock the times are of, in the header of a file and in a region.
CLOCKS = {"capture": 1, "nic": 5}


def clock_of(name):
    with open(name, "rb") as f:
        head = f.read(64)
    return head[:8], head[16:32].rstrip(b"\0"), struct.unpack_from("<I", head, 32)[0]


for kind, more in (("pkt64", ""), ("flow128", "")):
    for name in "ab":
        written = run("tap", *(["--flows"] if kind == "flow128" else []), "--to", f"file:{path('clock-' + name)}.{kind}?header=clock", path(f"{name}.pcap"))
        ok(written.returncode == 0, "a file with the clock is written", written.stderr)
    first, second = (path(f"clock-{name}.{kind}") for name in "ab")
    eq(clock_of(first), (b"PLRECORD", kind.encode(), 1 << CLOCKS["capture"]), f"{kind}: its header")
    stream = "flows" if kind == "flow128" else "packets"
    question = f"SELECT count(*) AS n FROM {stream}", "-o", "jsonl", "--stats"
    plain = run("query", *question, path("a.pcap"))
    with_header = run("query", *question, first)
    eq(*([r["n"] for r in jsonl(one.stdout) if "n" in r] for one in (with_header, plain)), f"{kind}: its records")
    eq([jsonl(r.stdout)[-1].get("clocks") for r in (with_header, run("query", *question, first, second))], [["capture"]] * 2, "and the clock is told")
    with open(second, "r+b") as f:
        f.seek(32)
        f.write(struct.pack("<I", 1 << CLOCKS["nic"]))
    both = run("query", *question, first, second)
    eq((jsonl(both.stdout)[-1]["clocks"], both.stderr.count("times of different clocks (capture, nic)"), both.returncode), (["capture", "nic"], 1, 0),
       "files of different clocks: told once")
    again = run("tap", *(["--flows"] if kind == "flow128" else []), "--to", f"file:{second}?header=clock", path("a.pcap"))
    eq((again.returncode, clock_of(second)[2]), (0, 1 << CLOCKS["nic"] | 1 << CLOCKS["capture"]), "a file that goes on has both")
    alone = run("query", *question, second)
    ok("different clocks" in alone.stderr, "and is told by itself", alone.stderr)
old = run("query", "SELECT count(*) AS n FROM packets", "-o", "jsonl", "--stats", path("a.pkt64"))
ok("clocks" not in jsonl(old.stdout)[-1] and "clock" not in old.stderr, "without a header nobody knows", old.stderr)
mixed = run("query", "SELECT count(*) AS n FROM packets", "-o", "jsonl", "--stats", path("a.pkt64"), path("clock-a.pkt64"))
ok(mixed.returncode == 0 and "clock" not in mixed.stderr, "and nothing is told of an unknown one", mixed.stderr)
os.rename(path("clock-a.flow128"), path("wrong.pkt64"))
wrong = run("query", "SELECT count(*) AS n FROM packets", path("wrong.pkt64"))
ok(wrong.returncode == 2 and "its header is of flow128" in wrong.stderr, "a file of another kind", wrong.stderr)
wrong = run("tap", "--to", f"file:{path('wrong.pkt64')}?header=clock", path("a.pcap"))
ok(wrong.returncode != 0 and "does not begin with a header for pkt64" in wrong.stderr, "is not written to", wrong.stderr)
written = run("tap", "--to", f"region:{path('clock.region')}", path("a.pcap"))
info = jsonl(run("region", "info", "-o", "jsonl", path("clock.region")).stdout)[0]
eq((written.returncode, info["clock"]), (0, "capture"), "a region has the clock in its header")
asked = run("query", "SELECT count(*) AS n FROM packets", "-o", "jsonl", "--stats", "region:" + path("clock.region"))
eq(jsonl(asked.stdout)[-1]["clocks"], ["capture"], "which a question reads")
empty = run("region", "create", "--primitive", "append", "--content", "pkt64", "--slots", "1024", path("empty.region"))
info = jsonl(run("region", "info", "-o", "jsonl", path("empty.region")).stdout)[0] if empty.returncode == 0 else {"clock": empty.stderr}
eq(info["clock"], "unknown", "of a region that no tap has written nobody knows it")
rule = "mark proto=tcp dport=443 payload=1-1500"
marked = sum(1 for r in packets if r["proto"] == 6 and r["dport"] == 443 and 1 <= r["pay_len"] <= 1500)
answer = run("query", "-o", "csv", "SELECT count(*) AS n FROM packets WHERE rule", "--rule", rule, *[path(f"{name}.pcap") for name in "abc"])
eq(answer.stdout.split()[-1].split(",")[0], str(marked), f"a rule of the command marks {marked} packets")
answer = run("query", "-o", "csv", "zorro(similar=1, port=443, window=10s)", "--rule", rule, path("a.pcap"))
ok(answer.returncode == 0 and answer.stdout.startswith("window_start,"), "zorro answers from a capture", answer.stderr)
answer = run("query", "-o", "csv", "zorro(similar=1, port=443, window=10s)", path("a.pcap"))
eq(answer.returncode, 3, "without marks it finds nothing")
needs_rule = "no --rule marks any: add one, such as --rule 'mark proto=tcp dport=23 contains=zorro'"
ok(needs_rule in answer.stderr, "and says that it needs a rule", answer.stderr)
for question, args, told in (
        ("SELECT count(*) AS n FROM packets WHERE rule", (), True),
        ("packets | where rule and tcp | group dst agg n=count()", ("--rule", "take proto=tcp"), True),
        ("packets | where rule | group dst agg n=count()", ("--rule", rule), False),
        ("packets | where out | group dst agg n=count()", (), False),
        ("SELECT obs, count(*) AS n FROM packets GROUP BY obs", (), False)):
    answer = run("query", "-o", "csv", question, *args, path("a.pcap"))
    eq(needs_rule in answer.stderr, told, f"{'told' if told else 'not told'}: {question} {' '.join(args)}")
FOLD = "FOLD f (n = 0) STEP { n = n + 1, EMIT WHEN n > 3 } SELECT src, f.n FROM packets GROUP BY src"
for groups, question, tells in ((2, FOLD, (True, True)), (2, FOLD + " WINDOW 10s", (False, True)), (100000, FOLD, (False, False))):
    answer = run("query", "-o", "csv", "--groups", groups, question, path("a.pcap"))
    eq(("records of others are left out from now on" in answer.stderr, "records were left out: there were more groups than --groups" in answer.stderr), tells,
       f"{groups} groups{question[len(FOLD):]}: what is told of those without room")
open(path("none.pkt64"), "wb").close()
for question in (
        "SELECT dport FROM packets TUMBLE(ts, 1s)",
        "SELECT dport, count(*) AS n FROM packets GROUP BY dport",
        "SELECT count(*) AS n, sum(wire_len) AS bytes FROM packets",
        "SELECT dport, count(*) AS n FROM packets TUMBLE(ts, 1s) GROUP BY dport",
        "SELECT src, count(*) AS n FROM packets SESSION(ts, 1s) GROUP BY src",
        "packets | distinct dport over 1s",
        "packets as a | join (packets | where udp) as b on src within 1s | map a.dport as x",
        "packets as a | join (packets | where udp) as b on src within 1s | group a.dport over 1s agg n=count()",
        "packets | map dport as x | zip (packets | map src) as b | group x over 1s agg n=count()"):
    some, none = (run("query", "-o", "csv", question, path(name)) for name in ("a.pcap", "none.pkt64"))
    ok(len(some.stdout.splitlines()) > 1, f"rows of {question}", some.stderr)
    eq((none.returncode, none.stdout.splitlines()), (3, some.stdout.splitlines()[:1]), "without records no row, and the same header")
for word in "flow", "queue", "drops", "key":
    moved = run("query", word, path("a.pcap"))
    ok(moved.returncode == 2 and f"pathline lookup {word} " in moved.stderr, f"query {word}: where look-ups are", moved.stderr)
for option in "--groups", "--count", "-n":
    none = run("query", option, "0", "SELECT dport FROM packets", path("a.pcap"))
    ok(none.returncode == 2 and f"{option} must be a number of 1 or more" in none.stderr, f"{option} 0 is refused", none.stderr)
# The longer records of flows, by their own stream and as flows.
ROLES = "SELECT role, role_by, count(*) AS n, sum(rtt_seq_dst_n) AS times, sum(rtt_seq_dst_missed) AS missed FROM flows288 GROUP BY role, role_by"
for name in "ab":
    eq(run("tap", "--flows", "--to", f"file:{path('long-' + name)}.flow288?kind=flow288", path(f"{name}.pcap")).returncode, 0, "long records of flows")
flows = jsonl(run("tap", "--flows", "-o", "jsonl", path("a.pcap")).stdout)
roles = {}
for f in flows:
    of = roles.setdefault((f["role"], f["role_by"]), [0, 0, 0])
    for i, more in enumerate((1, f["rtt_seq_dst_n"], f["rtt_seq_dst_missed"])):
        of[i] += more
ok(("client", "syn") in roles and len(roles) > 1, "some have roles by SYN, some by ports", roles)
for source in ("a.pcap", "long-a.flow288"):
    rows = jsonl(run("query", "-o", "jsonl", ROLES, path(source)).stdout)
    eq({(r["role"], r["role_by"]): [r["n"], r["times"], r["missed"]] for r in rows}, roles, f"roles and times by a question over {source}")
    rows = jsonl(run("query", "-o", "jsonl", "SELECT count(*) AS n FROM flows288 WHERE role = 'client' AND role_by = 'syn' AND NOT further", path(source)).stdout)
    eq([r["n"] for r in rows], [sum(not f["flow_flags"] for f in flows if (f["role"], f["role_by"]) == ("client", "syn"))], "by their words, the first ones")
    rows = jsonl(run("query", "-o", "jsonl", "SELECT count(*) AS n FROM flows", path(source)).stdout)
    eq([r["n"] for r in rows], [len(flows)], "they are flows, too")
both = jsonl(run("query", "-o", "jsonl", "--lateness", "120s", "SELECT count(*) AS n FROM flows TUMBLE(ts, 1s)", path("long-a.flow288"), path("long-b.flow288")).stdout)
eq(sum(r["n"] for r in both), len(flows) + len(jsonl(run("tap", "--flows", "-o", "jsonl", path("b.pcap")).stdout)), "two files are one stream of flows")
wrong = run("query", ROLES, path("clock-b.flow128"))
ok(wrong.returncode == 2 and "ask FROM flows, or have the records written with kind=flow288" in wrong.stderr, "short ones have no roles", wrong.stderr)

# Windows wait for the records of flows, which come when these are over: none is left out, however few packets there are.
eq(run("gen", "packets", "--duration", "60s", "--connections", "2", "-w", path("few.pcap")).returncode, 0, "few packets")
ends = [f["last_ts"] for f in jsonl(run("tap", "--flows", "-o", "jsonl", path("few.pcap")).stdout)]
told = jsonl(run("query", "-o", "jsonl", "SELECT count(*) AS n FROM flows TUMBLE(ts, 1s)", path("few.pcap")).stdout)
eq({r["window_start"]: r["n"] for r in told}, {s: sum(e // SECOND * SECOND == s for e in ends) for s in {e // SECOND * SECOND for e in ends}},
   "windows of flows of a capture have them all")


def limit_files():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10000, 10000))


# A file that may not grow further takes the whole records that fit, and the error is told.
short = run("tap", "--to", f"file:{path('short')}.pkt64", path("a.pcap"), preexec_fn=limit_files)
eq(os.path.getsize(path("short.pkt64")), 10000 // 64 * 64, "whole records up to the limit")
ok(short.returncode == 1 and "File too large" in short.stderr, "the error is told", short.stderr)
said = jsonl(run("tap", "-o", "jsonl", path("a.pcap")).stdout)
ok(f"did not take {len(said) - 10000 // 64} records" in short.stderr, "and how many records it did not take", short.stderr)
short = run("tap", "--to", f"jsonl:{path('short')}.jsonl", path("a.pcap"), preexec_fn=limit_files)
ok(short.returncode == 1 and "File too large" in short.stderr, "the error of a file of JSON lines is told", short.stderr)
sys.exit(tap.end())
