# SPDX-License-Identifier: BSD-2-Clause
"""What `pathline query --export clickhouse` prints, run by ClickHouse's embedded engine over the same records: every question
by name and every construct, each with equal rows. A few questions are asked of DuckDB, too, in SQL that is written here.

The records are made here, byte by byte, of so few hosts that every question finds something; and by `pathline gen packets`.

usage: export.py PATHLINE FOLDER     (FOLDER: tools/engines makes it)
"""
import calendar
import ipaddress
import json
import math
import os
import random
import re
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, pathline, tap  # noqa: E402
from lib.tap import eq, ok  # noqa: E402

SEED = 20261125
START = 1700000000 * 10**9
SPAN = 20 * 10**9
STREAMS = {"packets": "pkt64", "packets96": "pkt96", "dns": "dns64", "flows": "flow128", "flows288": "flow288", "segments": "seg192", "drops": "drop168"}

# Parameters with which the hand-made records have an answer.
ASKED = {
    "new_conns": "threshold=7", "ssh_brute": "threshold=3", "superspreader": "threshold=8", "portscan": "threshold=4",
    "ddos": "threshold=20", "syn_flood_halfopen": "threshold=5", "slowloris": "ratio=900",
    "dns_tunnel": "threshold=3", "zorro": "similar=2", "dns_reflection": "threshold=2", "heavy_hitter": "bytes=2000",
    "udp_asym": "threshold=3", "fastflux": "threshold=3", "dupack": "threshold=1", "dns_names": "threshold=5",
    "fastflux_names": "threshold=5", "incast": "senders=3, bytes=100, window=100ms", "microburst": "bits=1000000", "elephant": "bytes=1000000",
}

# Of these ours is an approximation, within 1/32 for a quantile and 10 % for a number of distinct values.
APPROXIMATE = re.compile(r"_p\d+_us$|^q$|^about$")

REASONS = ("idle", "active", "finished", "evicted", "shutdown")
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/record/drop_reasons.def"), encoding="utf-8") as file:
    DROP_REASONS = {name: int(number) for number, name in re.findall(r"^PL_DROP_REASON\((\d+), (\w+)\)", file.read(), re.M)}

CONSTRUCTS = (
    "SELECT count(*) AS n, sum(wire_len) AS s, min(ttl) AS lo, max(ttl) AS hi, avg(wire_len) AS a, stddev(wire_len) AS d FROM packets",
    "SELECT count(*) AS n FROM packets WHERE sport = 1 and dport = 1",
    "SELECT dst, first(ttl) AS f, last(ts) AS l, bit_or(tcp_flags) AS b FROM packets WHERE tcp GROUP BY dst",
    "SELECT dst, approx_distinct(src) AS about FROM packets GROUP BY dst",
    "SELECT src, quantile(wire_len, 0.5) AS q FROM packets GROUP BY src",
    "SELECT proto, topk(dport, 3) AS ports, hist(wire_len) AS lengths FROM packets GROUP BY proto",
    "SELECT ts, src, wire_len * 8 AS bits, tcp_seq - tcp_ack AS gap, -(ttl) AS minus FROM packets WHERE (ttl % 100 = 7 or ttl > 250) and not (tos < 128)",
    "SELECT src, count(*) AS n FROM packets WHERE src in (10.1.0.0/16, 2001:db8::/126, 10.0.0.3) and dst != 10.0.0.9 GROUP BY src",
    "SELECT dst, count(*) AS n FROM packets HOP(ts, 5s, 2s) WHERE syn GROUP BY dst HAVING n > 3",
    "SELECT dst, count(*) AS n FROM packets HOP(ts, 4s, 1s) WHERE icmp or udp GROUP BY dst",
    "SELECT src, sum(wire_len) AS s FROM packets TUMBLE(ts, 2s) GROUP BY src ORDER BY s DESC LIMIT 3",
    "SELECT src, sum(wire_len) AS s FROM packets GROUP BY src ORDER BY s LIMIT 4",
    "SELECT dport, sum(wire_len) / (count(*) - 3) AS x, sum(wire_len) % (ttl & 1) AS y FROM packets GROUP BY dport, ttl & 1",
    "SELECT dport, count(*) AS n FROM packets GROUP BY dport, ttl & 3 HAVING not (100 / (ttl & 3) > 40)",
    "SELECT point, out, is_fragment, rule, count(*) AS n FROM packets WHERE point < 8 and tcp_flags | 1 != 3 GROUP BY point, out, is_fragment, rule",
    "SELECT v4(tcp_seq) AS a, v4(tcp_seq * 2) AS b, coalesce(v4(tcp_seq * 2), 10.0.0.1) AS c FROM packets WHERE tcp and ttl < 9",
    "SELECT rcode, answers, authorities, response, count(*) AS n FROM dns GROUP BY rcode, answers, authorities, response",
    "SELECT a.dst, a.n AS syns, b.n AS acks FROM (SELECT dst, count(*) AS n FROM packets TUMBLE(ts, 3s) WHERE syn_only GROUP BY dst) AS a "
    "LEFT JOIN (SELECT dst, count(*) AS n FROM packets TUMBLE(ts, 3s) WHERE ack_only and ttl < 60 GROUP BY dst HAVING n > 2) AS b ON dst "
    "WHERE not (b.n > 3)",
    "SELECT a.src, count(*) AS n FROM (SELECT src, dst, sport > 1050 AS high, count(*) AS k FROM packets GROUP BY src, dst, sport > 1050) AS a "
    "ANTI JOIN (SELECT dst, src FROM packets WHERE udp and ttl < 40 GROUP BY src, dst) AS b ON a.src = b.dst and a.dst = b.src WHERE a.high GROUP BY a.src",
    "SELECT tsval, mss, tcp_opts & 6 AS o, count(*) AS n FROM packets96 WHERE vlan >= 2 and vlan <= 5 GROUP BY tsval, mss, tcp_opts & 6",
    "SELECT end_reason + 0 AS reason, count(*) AS n, max(last_ts - first_ts) AS longest FROM flows GROUP BY end_reason + 0",
    "SELECT src, max(abs(tcp_seq - tcp_ack)) AS far, sum(least(wire_len, 100)) AS short, max(greatest(ttl, tos)) AS g, "
    "sum(if(tcp, wire_len, 0)) AS tcp_bytes FROM packets GROUP BY src",
    "SELECT DISTINCT src, dport FROM packets WHERE tcp and ttl < 100",
    "SELECT interface, place, reason + 0 AS r, count(*) AS n FROM drops WHERE interface = eth0 and place != 'udp_queue_rcv_skb+0x2' GROUP BY interface, place, reason + 0",
    "SELECT interface, last(place) AS p FROM drops WHERE interface in (eth0, 'eth1') GROUP BY interface ORDER BY interface LIMIT 3",
    "SELECT a.ts, a.src, a.sport, b.ts AS other, b.wire_len - a.wire_len AS longer FROM packets AS a JOIN packets AS b "
    "ON a.src = b.dst AND a.dst = b.src AND b.ts >= a.ts WITHIN 300ms WHERE a.tcp AND b.ttl > 20 AND not (a.ttl > b.ttl)",
    "SELECT a.ts, a.id, b.ts AS answered, b.rcode, b.response, coalesce(b.qtype, 0) AS q FROM (SELECT * FROM dns WHERE not response) AS a "
    "LEFT JOIN (SELECT * FROM dns WHERE response) AS b ON client, server AND b.ts >= a.ts WITHIN 500ms WHERE not b.response or b.rcode = 3",
    "packets as a | where syn_only | left join (packets | where syn_ack or ack_only) as b on a.dst = b.src and a.sport % 4 = b.tcp_ack % 4 within 50ms "
    "| group a.dst over 2s agg n=count(), s=sum(b.wire_len), f=first(a.sport), m=max(b.ts - a.ts)",
    "SELECT a.dst, count(*) AS n FROM packets TUMBLE(ts, 5s) AS a ANTI JOIN dns AS b ON a.src = b.client AND b.qtype > 28 WITHIN 20ms "
    "WHERE a.udp GROUP BY a.dst HAVING n > 2",
    "flows | where tcp | group dst over 4s agg n=count(), b=sum(bytes_fwd) | map dst, double(b) / n as mean | sort mean desc | limit 2",
)

DUCKDB = (
    ("SELECT dst, count(*) AS n FROM packets TUMBLE(ts, 1s) WHERE syn_only GROUP BY dst",
     "SELECT ts_ns // 1000000000 * 1000000000 AS window_start, dst, count(*) AS n FROM packets "
     "WHERE proto = 6 AND (tcp_flags & 23) = 2 GROUP BY ALL"),
    ("superspreader(threshold=20, window=5s, emit=final)",
     "SELECT ts_ns // 5000000000 * 5000000000 AS window_start, src, count(DISTINCT dst) AS n FROM packets GROUP BY ALL HAVING n >= 20"),
    ("SELECT src, dst, sport, dport, proto, count(*) AS n, sum(wire_len) AS b FROM packets GROUP BY src, dst, sport, dport, proto",
     "SELECT src, dst, sport, dport, proto, count(*) AS n, sum(wire_len)::BIGINT AS b FROM packets GROUP BY ALL"),
    ("SELECT dport, avg(wire_len) AS a, stddev(wire_len) AS d, bit_or(tcp_flags) AS f FROM packets GROUP BY dport",
     "SELECT dport, avg(wire_len) AS a, stddev_pop(wire_len) AS d, bit_or(tcp_flags) AS f FROM packets GROUP BY dport"),
    ("dns as a | where not response | left join (dns | where response) as b on client, a.id % 7 = b.id % 7 and b.ts > a.ts within 400ms "
     "| map a.ts_ns as asked, client, b.ts - a.ts as took",
     "SELECT a.ts_ns AS asked, a.client, b.ts_ns - a.ts_ns AS took FROM (FROM dns WHERE dns_flags < 32768) AS a LEFT JOIN (FROM dns WHERE dns_flags >= 32768) AS b "
     "ON a.client = b.client AND a.id % 7 = b.id % 7 AND b.ts_ns > a.ts_ns AND b.ts_ns - a.ts_ns <= 400000000"),
    ("incomplete_flows(window=5s)",
     "WITH syn AS (SELECT ts_ns // 5000000000 AS w, dst AS host, count(*) AS n FROM packets WHERE proto = 6 AND (tcp_flags & 23) = 2 GROUP BY ALL), "
     "fin AS (SELECT ts_ns // 5000000000 AS w, src AS host, count(*) AS n FROM packets WHERE proto = 6 AND (tcp_flags & 1) = 1 GROUP BY ALL) "
     "SELECT w * 5000000000 AS window_start, host, syn.n - coalesce(fin.n, 0) AS open FROM syn LEFT JOIN fin USING (w, host) "
     "WHERE syn.n - coalesce(fin.n, 0) >= 1"),
)


# ---- records ----

def address(text):
    a = ipaddress.ip_address(text)
    return a.packed if a.version == 6 else bytes(10) + b"\xff\xff" + a.packed


HOSTS = [address(f"10.{i % 3}.0.{i}") for i in range(1, 40)] + [address(f"2001:db8::{i:x}") for i in range(1, 10)]


def packets(dice, n, size):
    for i in range(n):
        proto = dice.choice((6, 6, 6, 17, 17, 1, 58))
        pay = dice.choice((0, 0, dice.randrange(1400)))
        seq = dice.choice((7, 2**32 - 1, dice.getrandbits(32)))
        r = struct.pack("<Q16s16sHHBBBBIIHHHH", START + i * SPAN // n + dice.randrange(1000), dice.choice(HOSTS), dice.choice(HOSTS[:20]),
                        dice.choice((53, 80, 123, dice.randrange(1024, 1100))), dice.choice((22, 23, 53, 80, 443)), proto,
                        dice.choice((2, 2, 16, 18, 24, 17, 0xc2)) if proto == 6 else 0, dice.randrange(1, 255), dice.randrange(256),
                        seq if proto == 6 else 0, dice.choice((0, 1, 8)) if proto == 6 else 0, dice.choice((0, 500)), pay + 40, pay,
                        dice.choice((1, 2, 3)) | dice.choice((0, 0, 0, 2048, 4096, 1024)))
        if proto == 6 and dice.randrange(8) == 0:
            r = r[:44] + b"\x06\x10" + r[46:60] + bytes(2) + r[62:]  # an acknowledgement, and once more
            yield r if size == 64 else r + bytes(32)
        yield r if size == 64 else r + struct.pack("<IIQIHHHHHH", dice.randrange(3), 0, dice.getrandbits(64), i, dice.randrange(4),
                                                   dice.randrange(8), dice.choice((0, 1460)), 0, dice.choice((0, 2, 6)), 0)


def passages(dice, n):
    """The same packets at two points, 1 to 3 ms apart."""
    for i in range(n):
        head = (dice.choice(HOSTS), dice.choice(HOSTS), 1000 + i, 80, 6, 16, 64, 0, i, 0, 500, 100, 60)
        for point in (1, 2):
            ts = START + i * SPAN // n + (point - 1) * dice.randrange(10**6, 3 * 10**6)
            yield struct.pack("<Q16s16sHHBBBBIIHHHH", ts, *head, point) + struct.pack("<IIQIHHHHHH", 0, 0, 0, i, i, 0, 0, 0, 0, 0)


def messages(dice, n):
    for i in range(n):
        name = dice.randrange(40)
        response = dice.randrange(3) > 0
        yield struct.pack("<Q16s16sHHHHIIHBBI", START + i * SPAN // n, dice.choice(HOSTS[:6]), dice.choice(HOSTS[20:]), i & 0xffff,
                          0x8180 if response else 0x0100, dice.choice((1, 28, 46, 255)),
                          dice.choice((0, 3)) << 12 | dice.randrange(4) << 6 | dice.randrange(2),
                          name, name % 3, 10 + name, 3, dice.randrange(256),
                          0x0a000000 + dice.randrange(60) if response and dice.randrange(4) else 0)


def flows(dice, n):
    for i in range(n):
        last = START + i * SPAN // n
        measured = dice.choice((0, 1))
        yield struct.pack("<QQ16s16sHHBBBBQQ12IHHI", last - dice.randrange(2 * 10**9), last, dice.choice(HOSTS[:5]), dice.choice(HOSTS[:9]),
                          dice.randrange(1024, 1100), 80, dice.choice((6, 6, 17)), dice.randrange(1, 6), 0x1b, 0x1b,
                          dice.randrange(10**7), dice.randrange(10**6), dice.randrange(1, 200), dice.randrange(200),
                          measured * dice.randrange(1, 10**5), measured * dice.randrange(1, 10**5), measured * dice.randrange(1, 10**4),
                          measured * dice.randrange(1, 10**5), *(dice.choice((0, 0, 3)) for _ in range(4)),
                          dice.randrange(10**6), dice.randrange(10**5), dice.choice((1, 4097)), 0, i)


def segments(dice, n):
    """Blocks between three points; some have lost packets, some no delay, some no numbers at all."""
    for i in range(n):
        sent, lost, delay = dice.randrange(1, 1000), dice.choice((0, 0, 0, dice.randrange(20))), dice.randrange(3 * 10**6)
        has = dice.choice((0, 1 | 32, 1 | 2 | 32, 1 | 2 | 4 | 8 | 32))
        point = dice.choice((1, 2))
        yield struct.pack("<Q16s16sHHBBHQQIIIIIBBHIIIIIIQQqqqqqqQQ", START + i * SPAN // n, dice.choice(HOSTS[:9]), dice.choice(HOSTS[:5]),
                          dice.randrange(1024, 1100), 80, 17, 1, 37, START // 10**9 + i * 20 // n, 10**9, has, dice.choice((0, 0, 16, 1024)),
                          point, point, point + 1, 1, 1, 0, 0, 0, 0, 0, 1, 1, *((sent, sent - min(lost, sent), min(lost, sent)) if has else (0, 0, 0)),
                          delay if has & 2 else 0, delay if has & 4 else 0, delay if has & 8 else 0, 0,
                          min(lost, sent) * 10**9 // sent if has else 0, 0, 0)


def drops(dice, n):
    """Packets that were dropped for a few reasons at two interfaces."""
    for packet in packets(dice, n, 96):
        yield packet + struct.pack("<HHIII16s40s", dice.choice((3, 4, 13)), 0x0800, 2, dice.choice((1, 2)), 60, b"eth0", b"udp_queue_rcv_skb+0x1")


def write(path, records):
    with open(path, "wb") as f:
        f.write(b"".join(records))


def make():
    dice = random.Random(SEED)
    write(lab.path("hand.pkt64"), packets(dice, 8000, 64))
    write(lab.path("hand.pkt96"), sorted([*packets(dice, 2000, 96), *passages(dice, 500)], key=lambda r: r[7::-1]))
    write(lab.path("hand.dns64"), messages(dice, 3000))
    write(lab.path("hand.flow128"), flows(dice, 2000))
    write(lab.path("hand.flow288"), (row + struct.pack("<BBHI30I8HQ2I", dice.randrange(3), dice.randrange(4), dice.randrange(2), dice.randrange(1, 400),
                                                       *(dice.randrange(9) for _ in range(41))) for row in flows(dice, 500)))
    write(lab.path("hand.seg192"), segments(dice, 2000))
    write(lab.path("hand.drop168"), drops(dice, 1000))


# ---- rows ----

def plain(value):
    """One form for values of both engines."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float):
        return float(f"{value:.6g}") if not math.isnan(value) else None
    if value in REASONS:
        return REASONS.index(value) + 1
    if isinstance(value, str) and value in DROP_REASONS:
        return DROP_REASONS[value]
    if isinstance(value, str) and re.fullmatch("[0-9a-f.]*:[0-9a-f:.]*", value):
        a = ipaddress.ip_address(value)
        return str(a.ipv4_mapped or a)
    if isinstance(value, dict):  # of hist
        return sorted((int(k), v) for k, v in value.items())
    if isinstance(value, list):  # of topk: [value, count, error], or ours
        return sorted((v["value"], v["count"]) if "value" in v else (v["item"], v["count"]) for v in value)
    return value


def near(a, b, share):
    return a is not None and b is not None and abs(a - b) <= max(a, b) * share + 1


def same(ours, theirs):
    """What is of one and not of the other. Approximate columns are compared row by row, once the others are equal."""
    exact = [[json.dumps({k: v for k, v in r.items() if not APPROXIMATE.search(k)}, sort_keys=True) for r in rows] for rows in (ours, theirs)]
    if sorted(exact[0]) != sorted(exact[1]):
        return f"ours {sorted(set(exact[0]) - set(exact[1]))[:3]}, theirs {sorted(set(exact[1]) - set(exact[0]))[:3]}, {len(ours)} and {len(theirs)}"
    by_key = dict(zip(exact[1], theirs))
    for key, r in zip(exact[0], ours):
        for name in filter(APPROXIMATE.search, r):
            if not near(r[name], by_key[key][name], 0.1 if name == "about" else 1 / 32):
                return f"{name}: {r[name]} and {by_key[key][name]} of {key}"
    return None


def ask_ours(question, files):
    run = pathline.run("query", "-o", "jsonl", question, *files)
    final = [line for line in run.stdout.splitlines() if json.loads(line).get("final", True)]
    rows = [{k: plain(v) for k, v in r.items() if k != "window_end"} for r in pathline.answer("\n".join(final))]
    return rows, run.stderr


def streams_of(question):
    """Those that the plan reads."""
    plan = pathline.run("query", "--explain", question).stdout
    return {s for s in STREAMS if re.search(rf"  scan {s}\b", plan)}


class Engine:
    def __init__(self):
        from chdb import session
        self.session = session.Session(lab.path("chdb"))
        self.kinds = set()

    def take(self, stem):
        """The tables that the exported statements name, with the rows of these files."""
        for stream, kind in STREAMS.items():
            self.session.query(f"DROP TABLE IF EXISTS {stream}")
            self.session.query(pathline.run("schema", "clickhouse", kind).stdout)
            described = map(json.loads, str(self.session.query(f"DESCRIBE TABLE {stream}", "JSONEachRow")).splitlines())
            # Others are computed.
            columns = ", ".join(f"{c['name']} {c['type']}" for c in described if c["default_type"] == "").replace("'", "\\'")
            path = lab.path(f"{stem}.{kind}")
            if os.path.exists(path):
                self.session.query(f"INSERT INTO {stream} SELECT * FROM file('{path}', RowBinary, '{columns}')")

    def ask(self, question):
        export = pathline.run("query", "--export", "clickhouse", question)
        if export.returncode != 0:
            return None, export.stderr
        statement = export.stdout.rstrip().rstrip(";").rsplit(";", 1)[1]
        settings = "output_format_json_quote_64bit_integers = 0, output_format_json_named_tuples_as_objects = 1"
        joiner = ", " if "\nSETTINGS " in statement else "\nSETTINGS "
        try:
            text = str(self.session.query(statement + joiner + settings, "JSONEachRow"))
        except RuntimeError as e:
            return None, f"{statement}\n{str(e)[:600]}"
        rows = []
        for line in text.splitlines():
            r = {k: plain(v) for k, v in json.loads(line).items() if v is not None}
            if isinstance(r.get("window_start"), str):
                r["window_start"] = nanoseconds(r["window_start"])
            rows.append(r)
        return rows, statement


def nanoseconds(text):
    """Of "2023-11-14 22:13:20.000000000", which is UTC."""
    whole, part = text.split(".")
    return calendar.timegm(time.strptime(whole, "%Y-%m-%d %H:%M:%S")) * 10**9 + int(part)


def compare(engine, question, stem, some):
    streams = streams_of(question)
    files = [lab.path(f"{stem}.{STREAMS[s]}") for s in sorted(streams)]
    ours, said = ask_ours(question, files)
    theirs, statement = engine.ask(question)
    if theirs is None and re.search(r"(folds do|ewma does|events and values do) not translate", statement) and \
            re.search(r"^FOLD |\bewma\(|^  scan hops,", pathline.run("query", "--explain", question).stdout, re.M):
        ok(True, f"{stem}: refused, since it folds or is of hops: {question[:80]}")
        return
    if theirs is None:
        ok(False, f"{stem}: {question[:80]}", statement)
        return
    why = same(ours, theirs)
    ok(why is None and (ours or not some), f"{stem}: {len(ours)} rows: {question[:80]}", f"{why}\n{said}\n{statement}")


# ---- tests ----

def names():
    return re.findall(r"^(\w+): ", pathline.run("help", "queries").stdout, re.M)


def test_by_name(engine):
    asked = [f"{n}({ASKED[n]})" if n in ASKED else n for n in names()]
    ok(len(asked) > 25, f"{len(asked)} questions by name")
    for question in asked:
        compare(engine, question, "hand", True)


def test_constructs(engine):
    for question in CONSTRUCTS:
        compare(engine, question, "hand", "dport = 1" not in question)


def test_generated(engine):
    capture = lab.path("trace.pcap")
    pathline.run("gen", "packets", "--story", "--duration", "13s", "--loss", "0.01", "-w", capture)
    for kind, more, options in (("pkt64", "", ()), ("pkt96", "?kind=pkt96", ()), ("dns64", "", ("--dns",)), ("flow128", "", ("--flows",)),
                                ("flow288", "?kind=flow288", ("--flows",))):
        eq(pathline.run("tap", *options, "--to", f"file:{lab.path('gen.' + kind)}{more}", capture).returncode, 0, f"generated {kind}")
    write(lab.path("gen.seg192"), segments(random.Random(SEED + 1), 500))
    write(lab.path("gen.drop168"), drops(random.Random(SEED + 2), 500))
    engine.take("gen")
    for question in names():
        compare(engine, question, "gen", False)


def test_header(engine):
    """A file that describes its columns: ClickHouse needs no structure, and ours reads it, too; it is appended to."""
    for kind, stream, options, keys in (("pkt64", "packets", (), ""), ("pkt96", "packets96", (), "&kind=pkt96"), ("dns64", "dns", ("--dns",), ""),
                                        ("flow128", "flows", ("--flows",), ""), ("flow288", "flows288", ("--flows",), "&kind=flow288")):
        path = lab.path(f"described.{kind}")
        for _ in range(2):
            eq(pathline.run("tap", *options, "--to", f"file:{path}?header=yes{keys}", lab.path("trace.pcap")).returncode, 0, f"{kind}: written")
        n = 2 * (os.path.getsize(lab.path(f"gen.{kind}")) // int(kind.lstrip("pktdnsflow")))
        ours, said = ask_ours(f"SELECT count(*) AS n FROM {stream}", [path])
        eq(ours, [{"n": n}], f"{kind}: ours, {said}")
        theirs = str(engine.session.query(f"SELECT count(), uniqExact(*) FROM file('{path}', RowBinaryWithNamesAndTypes)", "CSV")).strip()
        plain_rows = str(engine.session.query(f"SELECT 2 * count(), uniqExact(*) FROM {stream}", "CSV")).strip()
        if stream.startswith("flows"):  # numbers of flows are those of their run
            theirs, plain_rows = theirs.split(",")[0], plain_rows.split(",")[0]
        eq(theirs, plain_rows, f"{kind}: ClickHouse, by the file's own columns")
    run = pathline.run("tap", "--to", f"file:{lab.path('gen.pkt64')}?header=yes", lab.path("trace.pcap"))
    ok(run.returncode == 2 and "does not begin with the header" in run.stderr, "a file without a header gets none", run.stderr)
    run = pathline.run("tap", "--to", f"file:{lab.path('described.pkt64')}", lab.path("trace.pcap"))
    ok(run.returncode == 2 and "no whole" in run.stderr, "a file with one is not appended to without", run.stderr)
    path = lab.path("trace.parquet")
    engine.session.query(f"INSERT INTO FUNCTION file('{path}', Parquet) SELECT * FROM file('{lab.path('described.pkt64')}', RowBinaryWithNamesAndTypes)")
    import duckdb
    eq(duckdb.sql(f"SELECT count(*), sum(wire_len)::BIGINT FROM '{path}'").fetchall(),
       [(r["n"], r["s"]) for r in ask_ours("SELECT count(*) AS n, sum(wire_len) AS s FROM packets", [lab.path("described.pkt64")])[0]],
       "Parquet that ClickHouse made of it, in DuckDB")


def test_refused(_engine):
    """Constructs that do not translate are named, with their place."""
    for system, question, says in (
            ("clickhouse", "SELECT count(*) AS n FROM paths", "paths"),
            ("clickhouse", "SELECT a.x FROM (SELECT ttl AS x FROM packets) AS a ZIP (SELECT tos FROM packets) AS b", "ZIP"),
            ("clickhouse", "SELECT a.src, count(*) AS n FROM packets HOP(ts, 2s, 1s) AS a JOIN packets AS b ON src WITHIN 1s GROUP BY a.src", "HOP"),
            ("duckdb", "SELECT dst FROM packets WHERE src in (10.0.0.0/8)", "prefixes"), ("duckdb", "SELECT hist(ttl) AS h FROM packets", "hist"),
            ("duckdb", "SELECT dst, count(*) AS n FROM packets GROUP BY dst ORDER BY dst LIMIT 4", "ORDER BY of addresses"),
            ("duckdb", "SELECT src, count(*) AS n FROM packets SESSION(ts, 1s) GROUP BY src", "SESSION"),
            ("duckdb", "SELECT src, count(*) AS n FROM packets TUMBLE(ts, 1s) GROUP BY src LIMIT 2", "ORDER BY"),
            ("flink", "SELECT a.src FROM packets AS a JOIN packets AS b ON src WITHIN 1s", "joins of records WITHIN"),
            ("clickhouse", "SELECT a.seq FROM paths AS a JOIN paths AS b ON seq WITHIN 1s", "paths"),
            ("clickhouse", "SELECT src, count(*) AS n FROM packets SESSION(ts, 1s) GROUP BY src", "SESSION"),
            ("flink", "SELECT quantile(ttl, 0.5) AS q FROM packets", "quantile"), ("flink", "SELECT dst FROM packets WHERE src in (10.0.0.0/8)", "prefixes"),
            ("flink", "SELECT bit_or(ttl) AS b FROM packets", "bit_or"), ("flink", "SELECT ttl & tos AS b FROM packets", "&"),
            ("flink", "SELECT dst, count(*) AS n FROM packets TUMBLE(ts, 1us) GROUP BY dst", "millisecond"),
            ("flink", "SELECT ts FROM packets WHERE ts = 18446744073709551615", "9223372036854775807")):
        run = pathline.run("query", "--export", system, question)
        ok(run.returncode == 2 and says in run.stderr and "translate" in run.stderr and run.stdout == "", f"{system}: {question}", run.stderr)


class DuckDB:
    """Over files of JSON lines, as the views that are printed read them; in the folder of the test."""

    def __init__(self):
        import duckdb
        self.db = duckdb.connect()
        os.chdir(lab.DIR)

    def take(self, stem):
        for stream, kind in STREAMS.items():
            with open(lab.path(f"{stream}.jsonl"), "w", encoding="utf-8") as f:
                if os.path.exists(lab.path(f"{stem}.{kind}")):
                    pathline.run("query", "-o", "jsonl", f"SELECT * FROM {stream}", lab.path(f"{stem}.{kind}"), stdout=f)
            self.db.execute(pathline.run("schema", "duckdb", kind).stdout)
            self.db.execute(f"CREATE OR REPLACE TABLE {stream}_read AS SELECT * FROM {stream}")
            self.db.execute(f"DROP VIEW {stream}")
            self.db.execute(f"CREATE OR REPLACE VIEW {stream} AS SELECT * FROM {stream}_read")

    def ask(self, question):
        export = pathline.run("query", "--export", "duckdb", question)
        if export.returncode != 0:
            return None, export.stderr
        statement = export.stdout.rstrip().rstrip(";").rsplit(";", 1)[1]
        try:
            cursor = self.db.execute(statement)
            columns = [d[0] for d in cursor.description]
            cursor = self.db.execute(f"SELECT * REPLACE (epoch_ns(window_start) AS window_start) FROM ({statement})"
                                     if "window_start" in columns else statement)
            return [{k: plain(int(v) if isinstance(v, float) and v.is_integer() else v) for k, v in zip(columns, r) if v is not None}
                    for r in cursor.fetchall()], statement
        except RuntimeError as e:  # its errors are such
            return None, f"{statement}\n{str(e)[:600]}"


REFUSED = r"(prefixes of addresses|ORDER BY of addresses|paths, hops, events and values|lists, which topk and hist make,|folds|SESSION|LIMIT of a window without ORDER BY) (do|does) not translate to DuckDB|ewma does not"


def test_duckdb_export(_engine):
    """Every question by name and every construct, but for those that are refused by name."""
    db = DuckDB()
    for stem, questions in (("hand", [f"{n}({ASKED[n]})" if n in ASKED else n for n in names()] + list(CONSTRUCTS)), ("gen", names())):
        db.take(stem)
        answered = 0
        for question in questions:
            files = [lab.path(f"{stem}.{STREAMS[s]}") for s in sorted(streams_of(question))]
            theirs, statement = db.ask(question)
            if theirs is None and re.search(REFUSED, statement):
                ok(True, f"{stem}: DuckDB: refused: {question[:80]}")
                continue
            ours, said = ask_ours(question, files)
            why = "no answer" if theirs is None else same(ours, theirs)
            ok(why is None, f"{stem}: DuckDB: {len(ours)} rows: {question[:80]}", f"{why}\n{said}\n{statement}")
            answered += 1
        ok(answered > len(questions) * 2 // 3, f"{stem}: DuckDB answers {answered} of {len(questions)}")


def test_duckdb(_engine):
    import duckdb
    db = duckdb.connect()
    for stream in ("packets", "dns"):
        path = lab.path(f"{stream}.csv")
        with open(path, "w", encoding="utf-8") as f:
            pathline.run("query", "-o", "csv", f"SELECT * FROM {stream}", lab.path(f"hand.{STREAMS[stream]}"), stdout=f)
        db.execute(f"CREATE TABLE {stream} AS SELECT * FROM read_csv('{path}')")
    for question, statement in DUCKDB:
        ours, said = ask_ours(question, [lab.path(f"hand.{STREAMS[s]}") for s in streams_of(question)])
        cursor = db.execute(statement)
        columns = [d[0] for d in cursor.description]
        why = same(ours, [{k: plain(v) for k, v in zip(columns, r) if v is not None} for r in cursor.fetchall()])
        ok(why is None and ours, f"DuckDB: {len(ours)} rows: {question[:80]}", f"{why}\n{said}")


def main():
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    fetched = subprocess.run([os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "engines"), sys.argv[2]],
                             stderr=subprocess.PIPE, text=True)
    if fetched.returncode != 0:
        tap.skip("other engines", f"missing: {fetched.stderr.strip()}")
        return tap.end()
    sys.path.insert(0, sys.argv[2])
    make()
    engine = Engine()
    engine.take("hand")
    lab.run(test_by_name, test_constructs, test_generated, test_header, test_refused, test_duckdb_export, test_duckdb, given=(engine,))
    return tap.end()


sys.exit(main())
