# SPDX-License-Identifier: BSD-2-Clause
"""Questions over a file of records, against SQLite over the same rows: an engine that shares nothing with ours. The records
are made here, byte by byte.

usage: query.py PATHLINE
"""
import fcntl
import ipaddress
import math
import os
import pty
import random
import re
import select
import signal
import sqlite3
import struct
import sys
import termios

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, pathline, tap  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

SEED = 20261124
RECORDS = 30000
START = 1700000000 * 10**9
COLUMNS = "ts_ns src dst sport dport proto tcp_flags ttl tos tcp_seq tcp_ack tcp_win wire_len pay_len obs".split()


def address(text):
    a = ipaddress.ip_address(text)
    return a.packed if a.version == 6 else bytes(10) + b"\xff\xff" + a.packed


def make_rows(dice):
    hosts = [f"10.{i % 3}.0.{i}" for i in range(1, 40)] + [f"2001:db8::{i:x}" for i in range(1, 10)]
    rows = []
    for i in range(RECORDS):
        proto = dice.choice((6, 6, 6, 17, 1))
        pay = dice.randrange(0, 1400)
        rows.append((START + i * 1_000_000 + dice.randrange(900_000), dice.choice(hosts), dice.choice(hosts[:20]),
                     dice.randrange(1024, 1100), dice.choice((22, 53, 80, 443)), proto,
                     dice.choice((2, 16, 18, 24, 17, 0xc2)) if proto == 6 else 0, dice.randrange(1, 255), dice.randrange(256),
                     dice.getrandbits(32) if proto == 6 else 0, 0, 0, pay + 40, pay, dice.randrange(1024) | dice.choice((0, 4096))))
    return rows


def write(path, rows):
    with open(path, "wb") as f:
        for r in rows:
            f.write(struct.pack("<Q16s16sHHBBBBIIHHHH", r[0], address(r[1]), address(r[2]), *r[3:]))


# (ours, SQLite's). The columns have the same names; the order of rows is not compared.
QUESTIONS = (
    ("SELECT count(*) AS n, sum(wire_len) AS s, min(ttl) AS lo, max(ttl) AS hi FROM packets",
     "SELECT count(*) AS n, sum(wire_len) AS s, min(ttl) AS lo, max(ttl) AS hi FROM packets"),
    ("SELECT dst, count(*) AS n, sum(wire_len) AS s FROM packets GROUP BY dst",
     "SELECT dst, count(*) AS n, sum(wire_len) AS s FROM packets GROUP BY dst"),
    ("SELECT src, dst, sport, dport, proto, count(*) AS n FROM packets WHERE proto = 6 and dport in (22, 443) "
     "GROUP BY src, dst, sport, dport, proto HAVING n >= 2",
     "SELECT src, dst, sport, dport, proto, count(*) AS n FROM packets WHERE proto = 6 and dport in (22, 443) "
     "GROUP BY src, dst, sport, dport, proto HAVING n >= 2"),
    ("SELECT dst, count(*) AS n FROM packets TUMBLE(ts, 1s) WHERE syn_only GROUP BY dst",
     f"SELECT (ts_ns / 1000000000) * 1000000000 AS window_start, dst, count(*) AS n FROM packets "
     "WHERE proto = 6 and (tcp_flags & 23) = 2 GROUP BY 1, dst"),
    ("SELECT count_distinct(dst, dport) AS n, count_distinct(src) AS m FROM packets",
     "SELECT (SELECT count(*) FROM (SELECT DISTINCT dst, dport FROM packets)) AS n, count(distinct src) AS m FROM packets"),
    ("SELECT src, count(distinct dst) AS n FROM packets TUMBLE(ts, 5s) GROUP BY src HAVING n >= 19",
     "SELECT (ts_ns / 5000000000) * 5000000000 AS window_start, src, count(distinct dst) AS n FROM packets GROUP BY 1, src HAVING n >= 19"),
    ("SELECT dport, avg(wire_len) AS a, bit_or(tcp_flags) AS f FROM packets WHERE tcp GROUP BY dport",
     "SELECT dport, avg(wire_len) AS a, bits(tcp_flags) AS f FROM packets WHERE proto = 6 GROUP BY dport"),
    ("SELECT ts_ns, src, wire_len * 8 AS bits FROM packets WHERE (ttl % 100 = 7 or ttl > 250) and not (tos < 128) and src in (10.1.0.0/16)",
     "SELECT ts_ns, src, wire_len * 8 AS bits FROM packets WHERE (ttl % 100 = 7 or ttl > 250) and not (tos < 128) and src like '10.1.%'"),
    ("SELECT dst, sum(wire_len) AS s FROM packets GROUP BY dst ORDER BY s DESC LIMIT 5",
     "SELECT dst, sum(wire_len) AS s FROM packets GROUP BY dst ORDER BY s DESC LIMIT 5"),
    ("SELECT tcp_flags & 16 AS ack, max(wire_len) - min(wire_len) AS spread, count(*) AS n FROM packets WHERE tcp GROUP BY tcp_flags & 16",
     "SELECT tcp_flags & 16 AS ack, max(wire_len) - min(wire_len) AS spread, count(*) AS n FROM packets WHERE proto = 6 GROUP BY 1"),
    ("SELECT a.dst AS dst, a.n AS syns, b.n AS acks FROM "
     "(SELECT dst, count(*) AS n FROM packets TUMBLE(ts, 10s) WHERE syn_only GROUP BY dst) AS a JOIN "
     "(SELECT dst, count(*) AS n FROM packets TUMBLE(ts, 10s) WHERE syn_ack GROUP BY dst) AS b ON dst",
     "SELECT a.w AS window_start, a.dst AS dst, a.n AS syns, b.n AS acks FROM "
     "(SELECT (ts_ns / 10000000000) * 10000000000 AS w, dst, count(*) AS n FROM packets WHERE (tcp_flags & 23) = 2 GROUP BY 1, 2) AS a JOIN "
     "(SELECT (ts_ns / 10000000000) * 10000000000 AS w, dst, count(*) AS n FROM packets WHERE (tcp_flags & 23) = 18 GROUP BY 1, 2) AS b "
     "ON a.w = b.w AND a.dst = b.dst"),
    ("SELECT point, out, count(*) AS n FROM packets WHERE point < 8 GROUP BY point, out",
     "SELECT obs & 1023 AS point, (obs & 4096) != 0 AS out, count(*) AS n FROM packets WHERE (obs & 1023) < 8 GROUP BY 1, 2"),
    ("SELECT a.ts_ns AS t, b.ts_ns AS u, b.wire_len AS len FROM (SELECT * FROM packets WHERE tcp) AS a LEFT JOIN (SELECT * FROM packets WHERE udp) AS b "
     "ON a.dport = b.dport AND a.src = b.src AND b.ttl >= a.ttl WITHIN 200ms",
     "SELECT a.ts_ns AS t, b.ts_ns AS u, b.wire_len AS len FROM packets AS a LEFT JOIN packets AS b "
     "ON b.proto = 17 AND a.dport = b.dport AND a.src = b.src AND b.ttl >= a.ttl AND b.ts_ns BETWEEN a.ts_ns - 200000000 AND a.ts_ns + 200000000 WHERE a.proto = 6"),
    ("packets as a | where syn_only | anti join (packets | where syn_ack) as b on a.dst = b.src within 30ms | group a.dst agg n=count()",
     "SELECT dst, count(*) AS n FROM packets AS a WHERE proto = 6 AND (tcp_flags & 23) = 2 AND NOT EXISTS (SELECT * FROM packets AS b "
     "WHERE b.proto = 6 AND (b.tcp_flags & 23) = 18 AND b.src = a.dst AND b.ts_ns BETWEEN a.ts_ns - 30000000 AND a.ts_ns + 30000000) GROUP BY 1"),
)

WRONG = (
    ("SELECT FROM packets", "expected"), ("SELECT dst FROM", "stream"), ("SELECT dst FROM packet", 'did you mean "packets"'),
    ("SELECT dts FROM packets", "unknown column"), ("SELECT dst FROM packets WHERE dst > 3", "address"),
    ("SELECT dst, count(*) FROM packets", "GROUP BY"), ("SELECT dst FROM packets WHERE", "expected"),
    ("SELECT count(* FROM packets", "expected"), ("SELECT sum(dst) FROM packets", "number"),
    ("SELECT dst FROM packets TUMBLE(ts, 0s)", "0"), ("SELECT dst FROM packets LIMIT x", "number"),
    ("SELECT dst FROM packets extra words", "extra"),
)


class Bits:
    """bit_or, which SQLite lacks."""

    def __init__(self):
        self.value = 0

    def step(self, v):
        self.value |= v

    def finalize(self):
        return self.value


def plain(value):
    if isinstance(value, bool):
        return int(value)
    return float(f"{value:.9g}") if isinstance(value, float) and not math.isnan(value) else value


def test_questions():
    rows = make_rows(random.Random(SEED))
    path = lab.path("records.pkt64")
    write(path, rows)
    db = sqlite3.connect(":memory:")
    db.create_aggregate("bits", 1, Bits)
    db.execute(f"CREATE TABLE packets ({', '.join(COLUMNS)})")
    db.executemany(f"INSERT INTO packets VALUES ({', '.join('?' * len(COLUMNS))})", rows)
    db.execute("CREATE INDEX near ON packets (src, ts_ns)")
    for ours, theirs in QUESTIONS:
        run = pathline.run("query", "-o", "jsonl", ours, path)
        cursor = db.execute(theirs)
        names = [d[0] for d in cursor.description]
        want = sorted([tuple(map(plain, r)) for r in cursor], key=repr)
        got = sorted([tuple(plain(r.get(n)) for n in names) for r in pathline.jsonl(run.stdout)], key=repr)
        ok(run.returncode == 0 and got == want and want, f"{len(want)} rows: {ours[:80]}",
           f"{run.stderr}\ngot    {[r for r in got if r not in want][:5]}\nwanted {[r for r in want if r not in got][:5]}")
    test_origins(db)


# Rows with where they are from: ours, and SQLite's with the earliest time and the points.
FROM = "min(ts_ns) AS first_ts, group_concat(DISTINCT obs & 1023) AS exp"
ORIGINS = (
    ("SELECT dst, count(*) AS n FROM packets WHERE point < 25 GROUP BY dst",
     f"SELECT dst, count(*) AS n, {FROM} FROM packets WHERE (obs & 1023) < 25 GROUP BY dst"),
    ("SELECT dport, count(*) AS n FROM packets TUMBLE(ts, 1s) WHERE point % 100 = 7 and udp GROUP BY dport",
     f"SELECT (ts_ns / 1000000000) * 1000000000 AS window_start, dport, count(*) AS n, {FROM} FROM packets "
     "WHERE (obs & 1023) % 100 = 7 AND proto = 17 GROUP BY 1, 2"),
    ("SELECT count(*) AS n FROM packets WHERE point = 5", f"SELECT count(*) AS n, {FROM} FROM packets WHERE (obs & 1023) = 5"),
    ("SELECT src, sport FROM packets WHERE point < 3", "SELECT src, sport, ts_ns AS first_ts, obs & 1023 AS exp FROM packets WHERE (obs & 1023) < 3"),
    ("SELECT proto, sum(n) AS n FROM (SELECT proto, src, count(*) AS n FROM packets TUMBLE(ts, 5s) WHERE point in (3, 9, 14) GROUP BY proto, src) "
     "AS a GROUP BY proto",
     f"SELECT (ts_ns / 5000000000) * 5000000000 AS window_start, proto, count(*) AS n, {FROM} FROM packets "
     "WHERE (obs & 1023) IN (3, 9, 14) GROUP BY 1, 2"),
    ("SELECT a.dst AS dst, a.n AS n FROM (SELECT dst, count(*) AS n FROM packets TUMBLE(ts, 10s) WHERE point < 9 GROUP BY dst) AS a "
     "JOIN (SELECT dst, count(*) AS n FROM packets TUMBLE(ts, 10s) WHERE point >= 9 and point < 20 GROUP BY dst) AS b ON dst",
     f"SELECT (ts_ns / 10000000000) * 10000000000 AS window_start, dst, sum((obs & 1023) < 9) AS n, {FROM} FROM packets "
     "WHERE (obs & 1023) < 20 GROUP BY 1, 2 HAVING sum((obs & 1023) < 9) > 0 AND sum((obs & 1023) >= 9) > 0"),
    ("SELECT a.ts_ns AS t, b.ts_ns AS u FROM (SELECT * FROM packets WHERE point < 4) AS a LEFT JOIN (SELECT * FROM packets WHERE point > 1020) AS b "
     "ON a.dst = b.dst WITHIN 5s",
     "SELECT a.ts_ns AS t, b.ts_ns AS u, min(a.ts_ns, coalesce(b.ts_ns, a.ts_ns)) AS first_ts, (a.obs & 1023) || "
     "coalesce(',' || (b.obs & 1023), '') AS exp FROM packets AS a LEFT JOIN packets AS b ON a.dst = b.dst AND (b.obs & 1023) > 1020 "
     "AND b.ts_ns BETWEEN a.ts_ns - 5000000000 AND a.ts_ns + 5000000000 WHERE (a.obs & 1023) < 4"),
)


def test_origins(db):
    """The earliest time and the observation points of the records that a row is made of."""
    for ours, theirs in ORIGINS:
        run = pathline.run("query", "-o", "jsonl", ours, lab.path("records.pkt64"))
        cursor = db.execute(theirs)
        names = [d[0] for d in cursor.description][:-1]
        want = sorted([(*r[:-1], sorted(map(int, str(r[-1]).split(",")))) for r in cursor], key=repr)
        rows = pathline.jsonl(run.stdout)
        got = sorted([(*(r.get(n) for n in names), r["exp"]) for r in rows], key=repr)
        ok(run.returncode == 0 and got == want and want, f"{len(want)} rows are from there: {ours[:70]}",
           f"{run.stderr}\ngot    {[r for r in got if r not in want][:5]}\nwanted {[r for r in want if r not in got][:5]}")
        ok({(r["late"], r["incomplete"]) for r in rows} == {(0, False)}, "nothing was late, nothing is missing")
    many = pathline.jsonl(pathline.run("query", "-o", "jsonl", "SELECT count(*) AS n FROM packets", lab.path("records.pkt64")).stdout)
    exp = many[0]["exp"]
    ok(len(exp) == 29 and exp[:28] == sorted(set(exp[:28])) and exp[28] is None, "of more than 28 points the others are told by a null", exp)


def test_forms():
    """The same answer in every form; a file that ends within a record."""
    path, question = lab.path("records.pkt64"), "SELECT dst, count(*) AS n FROM packets WHERE dst in (10.0.0.3) GROUP BY dst"
    n = pathline.jsonl(pathline.run("query", "-o", "jsonl", question, path).stdout)[0]["n"]
    few = question.replace("GROUP", "and point < 40 GROUP")
    r = pathline.jsonl(pathline.run("query", "-o", "jsonl", few, path).stdout)[0]
    line = f"10.0.0.3,{r['n']},{r['first_ts']},0,{' '.join(map(str, r['exp']))},no\n"
    eq(pathline.run("query", "-o", "csv", few, path).stdout, "dst,n,first_ts,late,exp,incomplete\n" + line, "CSV")
    wide = pathline.run("query", "-o", "wide", few, path).stdout.split()
    ok(wide[:6] == "dst n first_ts late exp incomplete".split() and wide[-1] == "no" and "T" in wide[8], "a table of all columns", wide)
    own = pathline.jsonl(pathline.run("query", "-o", "jsonl", "SELECT dst AS late, 7 AS exp, count(*) AS n FROM packets WHERE dst in "
                                      "(10.0.0.3) GROUP BY dst", path).stdout)
    eq([(r["late"], r["exp"], list(r)) for r in own], [("10.0.0.3", 7, ["late", "exp", "n", "first_ts", "incomplete"])],
       "a column of the question takes the place of one of the same name")
    ok(pathline.run("query", question, path).stdout.split()[-2:] == ["10.0.0.3", str(n)], "a table")
    ok(pathline.run("query", "-o", "text", question, path).stdout.startswith(f"dst=10.0.0.3 n={n} first_ts="), "text")
    none = pathline.run("query", "SELECT dst FROM packets WHERE dst in (192.0.2.9)", path)
    eq(none.returncode, 3, "no row: exit code 3")
    with open(path, "ab") as f:
        f.write(b"half")
    cut = pathline.run("query", "-o", "text", question, path)
    ok(cut.returncode == 1 and "no whole pkt64 record" in cut.stderr and f"n={n}" in cut.stdout, "a damaged end is told", cut.stderr)
    few = pathline.run("query", "-o", "jsonl", "--groups", "8", "SELECT sport, count(*) AS n FROM packets GROUP BY sport", path)
    ok("incomplete" in few.stderr, "too many groups are told", few.stderr)


def test_chart():
    """-o chart: a line for each row, the numbers those of the table; with windows the largest of each name."""
    path, question = lab.path("records.pkt64"), "SELECT dst, count(*) AS n FROM packets GROUP BY dst"
    rows = {r["dst"]: r["n"] for r in pathline.jsonl(pathline.run("query", "-o", "jsonl", question, path).stdout)}
    lines = pathline.run("query", "-o", "chart", question, path).stdout.splitlines()
    eq(({line.split()[0]: int(line.split()[1]) for line in lines[1:]}, lines[0]), (rows, "n"), "bars of all rows")
    most = {}
    for r in pathline.jsonl(pathline.run("query", "-o", "jsonl", question + " WINDOW 1s", path).stdout):
        most[r["dst"]] = max(most.get(r["dst"], 0), r["n"])
    lines = pathline.run("query", "-o", "chart", question + " WINDOW 1s", path).stdout.splitlines()
    eq({line.split()[0]: int(line.split()[1]) for line in lines[1:1 + min(len(most), 20)]},
       dict(sorted(most.items(), key=lambda i: (-i[1], i[0]))[:20]), "lines over time")
    for args, says in ((("SELECT src FROM packets", path), "draws a number"), (("--stats", question, path), "without --stats"),
                       (("--into", "-", question, path), "without --into"), (("events", lab.DIR), "for questions")):
        run = pathline.run("query", "-o", "chart", *args)
        ok(run.returncode == 2 and says in run.stderr, f"refused: {says}", run.stderr)


class Terminal:
    """The command in a terminal of 80 columns and 24 lines."""

    def __init__(self, *args):
        self.end, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.said = lab.path("terminal.err")
        with open(self.said, "w", encoding="utf-8") as err:
            self.p = lab.start([pathline.PATHLINE, "query", *args], stdout=theirs, stderr=err, env=os.environ | {"LC_ALL": "C.UTF-8"})
        os.close(theirs)
        self.seen = b""

    def read(self):
        """What has come until now, as text."""
        while select.select([self.end], [], [], 0)[0]:
            try:
                more = os.read(self.end, 65536)
            except OSError:  # the command has ended
                break
            if not more:
                break
            self.seen += more
        return self.seen.decode(errors="replace").replace("\r\n", "\n")

    def finish(self):
        code = self.p.wait(60)
        text = self.read()
        os.close(self.end)
        return code, text


def test_live_chart():
    """Of a live source the terminal has the chart while rows come, drawn again in its place."""
    capture, port = lab.path("chart.pcap"), lab.free_udp_port()
    pathline.run("gen", "packets", "--duration", "5s", "-w", capture)
    for question in ("SELECT proto, count(*) AS n FROM packets GROUP BY proto WINDOW 1s", "SELECT count(*) AS n FROM packets WINDOW 500ms"):
        whole = Terminal("-o", "chart", question, capture).finish()
        ok(whole[0] == 0 and "\x1b" not in whole[1] and "n, the largest" in whole[1], "of a capture it is drawn once", whole)
        # A sender that reads a capture faster than it was taken gives the packets of some flows later than those of others.
        live = Terminal("-o", "chart", "--lateness", "1s", question, f"udp://127.0.0.1:{port}")
        ok(wait(lambda: "asking" in open(live.said, encoding="utf-8").read()), "it asks")
        eq(pathline.run("tap", "--to", f"udp://127.0.0.1:{port}?kind=pkt96", capture).returncode, 0, "records are sent")
        ok(wait(lambda: "n, the largest of a window\n" in live.read()), "a chart is there while the source goes on")
        # The last window closes by the clock: all records have come.
        ok(wait(lambda: " to 2023-11-14T22:13:24" in live.read()), "and is drawn again until the last window has closed")
        live.p.send_signal(signal.SIGINT)
        code, text = live.finish()
        eq(code, 0, "it ends well")
        drawings = re.split(r"\x1b\[(\d+)A\x1b\[J", text)
        ok(len(drawings) >= 3, "it was drawn more than once", text)
        eq([int(lines) for lines in drawings[1::2]], [d.count("\n") for d in drawings[:-1:2]], "each in the place of the one before")
        eq(drawings[-1], whole[1], "the last is that of the capture")
    piped = lab.start([pathline.PATHLINE, "query", "-o", "chart", question, f"udp://127.0.0.1:{port}"], stdout=open(lab.path("piped"), "w", encoding="utf-8"),
                      stderr=open(lab.path("piped.err"), "w", encoding="utf-8"))
    wait(lambda: "asking" in lab.read("piped.err"))
    pathline.run("tap", "--to", f"udp://127.0.0.1:{port}?kind=pkt96", capture)
    piped.send_signal(signal.SIGINT)
    piped.wait(60)
    ok(lab.read("piped").count("the largest of a window") <= 1 and "\x1b" not in lab.read("piped"), "what is no terminal gets it once", lab.read("piped"))


def test_wrong():
    for question, says in WRONG:
        run = pathline.run("query", question, lab.path("records.pkt64"))
        ok(run.returncode == 2 and says.lower() in run.stderr.lower() and run.stdout == "", f"refused: {question}", run.stderr)
    run = pathline.run("query", "SELECT dst FROM flows", lab.path("records.pkt64"))
    ok(run.returncode == 2 and "does not read packets" in run.stderr, "a file of another stream", run.stderr)
    capture = lab.path("kinds.pcap")
    pathline.run("gen", "packets", "--duration", "1s", "-w", capture)
    for name, options, stream in (("a.pkt96", (), "packets96"), ("a.flow288", ("--flows",), "flows288"), ("a.flow128", ("--flows",), "flows")):
        eq(pathline.run("tap", *options, "--to", f"file:{lab.path(name)}", capture).returncode, 0, f"records into {name}")
        n = [pathline.jsonl(pathline.run("query", "-o", "jsonl", f"SELECT count(*) AS n FROM {stream}", source).stdout)[0]["n"]
             for source in (lab.path(name), capture)]
        ok(n[0] == n[1] > 0, f"are those that its name says: {n[0]}", n)
    for name, options, says in (("b.pkt96?kind=pkt64", (), "says pkt96, and the records for it are pkt64"),
                                ("b.flow288", (), "says flow288, and the records for it are pkt64"), ("b.pkt64", ("--dns",), "are dns64")):
        run = pathline.run("tap", *options, "--to", f"file:{lab.path(name)}", capture)
        ok(run.returncode == 2 and says in run.stderr, f"refused: {name}", run.stderr)
    run = pathline.run("query", "SELECT count(*) AS n FROM flows288", lab.path("a.flow128"))
    ok(run.returncode == 2 and "ask FROM flows, or have the records written with kind=flow288" in run.stderr, "longer flows of a file of shorter ones", run.stderr)
    eq(pathline.run("tap", "--flows", "--to", f"region:{lab.path('flows.plr')}", capture).returncode, 0, "flows into a region")
    run = pathline.run("query", "SELECT count(*) AS n FROM flows288", f"region:{lab.path('flows.plr')}")
    ok(run.returncode == 2 and "ask FROM flows, or have" in run.stderr, "and of a region", run.stderr)
    run = pathline.run("query", "SELECT dst FROM packets")
    ok(run.returncode == 2 and "missing SOURCE" in run.stderr, "no source", run.stderr)


lab.run(test_questions, test_forms, test_chart, test_live_chart, test_wrong)
sys.exit(tap.end())
