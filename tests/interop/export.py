# SPDX-License-Identifier: BSD-2-Clause
"""What `pathline query --export clickhouse` prints, run by ClickHouse's embedded engine over the same records: every question
by name and every construct, each with equal rows. Some questions are asked of DuckDB, too, in SQL that is written here: those of
Sonata, and those by name that nothing exports, since they fold or are of hops.

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
APPROXIMATE = re.compile(r"_p\d+_us$|^p\d+_ns$|^q$|^about$")

REASONS = ("idle", "active", "finished", "evicted", "shutdown")
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/record/drop_reasons.def"), encoding="utf-8") as file:
    DROP_REASONS = {name: int(number) for number, name in re.findall(r"^PL_DROP_REASON\((\d+), (\w+)\)", file.read(), re.M)}

CONSTRUCTS = (
    "SELECT count(*) AS n, sum(wire_len) AS s, min(ttl) AS lo, max(ttl) AS hi, avg(wire_len) AS a, stddev(wire_len) AS d FROM packets",
    "SELECT count(*) AS n FROM packets WHERE sport = 1 and dport = 1",
    "SELECT dst, first(ttl) AS f, last(ts) AS l, bit_or(tcp_flags) AS b FROM packets WHERE tcp GROUP BY dst",
    "SELECT dst, approx_distinct(src) AS about FROM packets GROUP BY dst",
    "SELECT src, quantile(wire_len, 0.5) AS q FROM packets GROUP BY src",
    "SELECT src, quantile(ttl, 0.25) AS q FROM packets GROUP BY src",
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

SECOND = "ts_ns // 1000000000 * 1000000000"
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
    ("new_conns(threshold=7)",
     f"SELECT {SECOND} AS window_start, dst, count(*) AS n FROM packets WHERE proto = 6 AND (tcp_flags & 23) = 2 GROUP BY ALL HAVING n >= 7"),
    ("ssh_brute(threshold=3)",
     f"SELECT w AS window_start, dst, wire_len, count(*) AS n FROM (SELECT DISTINCT {SECOND} AS w, dst, wire_len, src FROM packets "
     "WHERE proto = 6 AND dport = 22) GROUP BY ALL HAVING n >= 3"),
    ("portscan(threshold=4)",
     f"SELECT w AS window_start, src, count(*) AS n FROM (SELECT DISTINCT {SECOND} AS w, src, dport FROM packets WHERE proto = 6) GROUP BY ALL HAVING n >= 4"),
    ("ddos(threshold=20)",
     f"SELECT w AS window_start, dst, count(*) AS n FROM (SELECT DISTINCT {SECOND} AS w, src, dst FROM packets) GROUP BY ALL HAVING n >= 20"),
    # The three streams one below the other, not joined.
    ("syn_flood",
     f"WITH h AS (SELECT {SECOND} AS w, dst AS host, 1 AS syn, 1 AS one FROM packets WHERE proto = 6 AND (tcp_flags & 23) = 2 UNION ALL "
     f"SELECT {SECOND}, src, 0, 1 FROM packets WHERE proto = 6 AND (tcp_flags & 23) = 18 UNION ALL "
     f"SELECT {SECOND}, dst, 0, -1 FROM packets WHERE proto = 6 AND (tcp_flags & 23) = 16) "
     "SELECT w AS window_start, host, sum(one)::BIGINT AS excess FROM h GROUP BY ALL HAVING sum(syn) > 0 AND excess >= 3"),
    # Two streams joined, as the paper has it.
    ("slowloris(ratio=900)",
     f"WITH a AS (SELECT w, dst, count(*) AS conns FROM (SELECT DISTINCT {SECOND} AS w, dst, src, sport FROM packets WHERE proto = 6) GROUP BY ALL "
     f"HAVING conns >= 5), b AS (SELECT {SECOND} AS w, dst, sum(wire_len)::BIGINT AS bytes FROM packets WHERE proto = 6 GROUP BY ALL HAVING bytes >= 500) "
     "SELECT w AS window_start, dst, conns, bytes FROM a JOIN b USING (w, dst) WHERE bytes / conns <= 900"),
    ("dns_tunnel(threshold=3)",
     "WITH a AS (SELECT DISTINCT ts_ns // 30000000000 AS w, client, concat_ws('.', answer >> 24, (answer >> 16) & 255, (answer >> 8) & 255, answer & 255) "
     "AS host FROM dns WHERE dns_flags >= 32768 AND answer != 0) SELECT w * 30000000000 AS window_start, client, count(*) AS n FROM a WHERE NOT EXISTS "
     "(SELECT * FROM packets AS p WHERE p.ts_ns // 30000000000 = a.w AND p.src = a.client AND p.dst = a.host AND p.proto = 6 AND (p.tcp_flags & 23) = 2) "
     "GROUP BY ALL HAVING n >= 3"),
    ("zorro(similar=2)",
     "SELECT ts_ns // 5000000000 * 5000000000 AS window_start, dst, count(*) AS n FROM packets AS p WHERE proto = 6 AND dport = 23 AND (obs & 2048) > 0 "
     "AND EXISTS (SELECT * FROM packets AS a JOIN packets AS b ON a.dst = b.dst AND a.wire_len = b.wire_len AND a.src != b.src AND "
     "a.ts_ns // 5000000000 = b.ts_ns // 5000000000 WHERE a.proto = 6 AND b.proto = 6 AND a.dport = 23 AND b.dport = 23 AND a.dst = p.dst "
     "AND a.ts_ns // 5000000000 = p.ts_ns // 5000000000) GROUP BY ALL"),
    ("dns_reflection(threshold=2)",
     f"WITH d AS (SELECT DISTINCT {SECOND} AS w, client, server, dns_flags >= 32768 AS answers FROM dns WHERE qtype IN (46, 255)) "
     "SELECT w AS window_start, client, count(*) FILTER (answers) - count(*) FILTER (NOT answers) AS n FROM d GROUP BY ALL "
     "HAVING count(*) FILTER (answers) > 0 AND n >= 2"),
)

# Questions by name that nothing exports, over connections of many packets at two points, in SQL of another kind: what a fold carries
# from one packet to the next is here the row before (lag), a list that is reduced, or a step of a recursion.
CONNECTION = "src, dst, sport, dport, proto"


def numbered(window, keys, more="", where="true"):
    """Packets with their window (w), in the order of the file (n), and columns over those of the same keys and window (BY)."""
    more = more.replace("BY", f"(PARTITION BY ts_ns // {window}, {keys} ORDER BY rowid)")
    return f"p AS (SELECT *, rowid AS n, ts_ns // {window} * {window} AS w, obs & 1023 AS point, (obs & 4096) > 0 AS out{more} FROM packets WHERE {where})"


BURSTS = (f"WITH {numbered(10**10, CONNECTION, ', ts_ns - lag(ts_ns) OVER BY > 50000000 AS fresh')}, "
          f"b AS (SELECT *, sum(fresh::INT) OVER (PARTITION BY w, {CONNECTION} ORDER BY n) AS number FROM p), "
          f"f AS (SELECT w AS window_start, {CONNECTION}, min(ts_ns) AS begin_ns, max(ts_ns) - min(ts_ns) AS duration_ns, "
          f"count(*) AS packets, sum(wire_len)::BIGINT AS bytes FROM b GROUP BY w, {CONNECTION}, coalesce(number, 0)) ")
ONCE = ("SELECT ts_ns // 10000000000 * 10000000000 AS w, {connection}, ip_id, tcp_seq, pay_len, min(ts_ns) AS t FROM packets96 "
        "WHERE obs & 1023 = {point} {more} GROUP BY ALL HAVING count(*) = 1")
DELAYS = ("WITH a AS (" + ONCE.format(connection=CONNECTION, point=1, more="AND ts_ns % 10000000000 + 100000000 < 10000000000") + "), "
          "b AS (" + ONCE.format(connection=CONNECTION, point=2, more="") + "), "
          f"d AS (SELECT w, {CONNECTION}, a.t, abs(b.t - a.t) AS delay FROM a JOIN b USING (w, {CONNECTION}, ip_id, tcp_seq, pay_len)) ")
POWER = "CASE WHEN {0} = 0 THEN 0 ELSE 1::BIGINT << floor(log2({0}))::INT END"
BEHIND = "(a.top - x.top) & 4294967295"
LATE = f"({BEHIND} > 0 AND {BEHIND} < 2147483648 AND NOT x.syn)"
FOLDS = (
    ("timeouts(least=100ms, most=250ms)",
     f"WITH {numbered(10**10, 'src, dst, sport, dport', ', ts_ns - lag(ts_ns) OVER BY AS gap', 'proto = 6')} "
     "SELECT w AS window_start, src, dst, sport, dport, count(*) AS pauses FROM p WHERE gap BETWEEN 100000000 AND 250000000 GROUP BY ALL"),
    ("out_of_sequence(threshold=1)",
     f"WITH {numbered(10**9, 'src, dst, sport, dport', ', lag((tcp_seq + pay_len + (tcp_flags & 3 > 0)::INT) & 4294967295) OVER BY AS want', 'proto = 6')} "
     "SELECT w AS window_start, src, dst, sport, dport, count(*) AS segments FROM p WHERE tcp_seq != want AND tcp_flags & 2 = 0 GROUP BY ALL"),
    ("non_monotonic",
     f"WITH {numbered(10**9, 'src', '', 'proto = 6')}, m AS (SELECT w AS window_start, src, dst, sport, dport, list_reduce("
     "list({'top': tcp_seq::BIGINT, 'n': 0::BIGINT, 'syn': tcp_flags & 2 > 0} ORDER BY n), "
     f"lambda a, x: {{'top': CASE WHEN {LATE} THEN a.top ELSE x.top END, 'n': a.n + {LATE}::BIGINT, 'syn': x.syn}}).n AS segments "
     "FROM p GROUP BY ALL) SELECT * FROM m WHERE segments >= 1"),
    ("route_change",
     f"WITH {numbered(10**10, CONNECTION + ', obs & 1023, obs & 4096', ', lag(ttl) OVER BY AS before')} "
     f"SELECT w AS window_start, {CONNECTION}, point, out, count(*) FILTER (ttl != before) AS changes, arg_max(ttl, n) AS ttl FROM p "
     "GROUP BY ALL HAVING changes >= 1"),
    ("path_change",
     f"WITH {numbered(10**10, CONNECTION, ', lag(obs & 1023) OVER BY AS before', 'obs & 1023 IN (1, 2)')} "
     f"SELECT w AS window_start, {CONNECTION}, count(*) FILTER (point != before) AS changes, arg_max(point, n) AS point FROM p "
     "GROUP BY ALL HAVING changes >= 1"),
    ("flowlets(bytes=1000)", BURSTS + "SELECT * FROM f WHERE bytes >= 1000"),
    ("flowlet_hist", BURSTS + "SELECT window_start, dst, count(*) AS bursts, "
     f"histogram({POWER.format('bytes')}) AS bytes, histogram({POWER.format('packets')}) AS packets FROM f GROUP BY window_start, dst"),
    ("gap_hist(window=10s)",
     f"WITH {numbered(10**10, CONNECTION, ', ts_ns - lag(ts_ns) OVER BY AS gap')} "
     f"SELECT w AS window_start, dst, count(gap) AS gaps, histogram({POWER.format('gap')}) AS gap_ns FROM p WHERE gap IS NOT NULL GROUP BY ALL"),
    ("jitter(packets=3, jitter=1us)",
     f"WITH {numbered(10**10, CONNECTION, ', ts_ns - lag(ts_ns) OVER BY AS gap')}, "
     f"d AS (SELECT *, abs(gap - lag(gap) OVER (PARTITION BY w, {CONNECTION} ORDER BY n)) AS change FROM p) "
     f"SELECT w AS window_start, {CONNECTION}, count(*) AS packets, list_reduce([0.0::DOUBLE] || "
     "coalesce(list(change::DOUBLE ORDER BY n) FILTER (change IS NOT NULL), []), lambda j, x: j + (x - j) / 16) AS jitter_ns FROM d "
     "GROUP BY ALL HAVING packets >= 3 AND jitter_ns >= 1000"),
    ("ewma_length(length=100, packets=3)",
     f"WITH {numbered(10**9, CONNECTION)} SELECT w AS window_start, {CONNECTION}, "
     "list_reduce(list(wire_len::DOUBLE ORDER BY n), lambda a, x: a + 0.125 * (x - a)) AS length, count(*) AS packets FROM p "
     "GROUP BY ALL HAVING length >= 100 AND packets >= 3"),
    ("ewma_latency(delay=1us)",
     DELAYS + f"SELECT w AS window_start, {CONNECTION}, list_reduce(list(delay::DOUBLE ORDER BY t), lambda a, x: a + 0.125 * (x - a)) AS delay_ns, "
     "count(*) AS packets FROM d GROUP BY ALL HAVING delay_ns >= 1000"),
    ("owd_jitter(jitter=1us)",
     DELAYS + f", c AS (SELECT *, abs(delay - lag(delay) OVER (PARTITION BY w, {CONNECTION} ORDER BY t)) AS change FROM d) "
     "SELECT w AS window_start, src, dst, count(*) AS packets, quantile_disc(change, 0.5) AS p50_ns, quantile_disc(change, 0.95) AS p95_ns, "
     "quantile_disc(change, 0.99) AS p99_ns FROM c WHERE change IS NOT NULL GROUP BY ALL HAVING p99_ns >= 1000"),
    ("queue_bursts(bits=1000000, depth=10ms)",
     "WITH RECURSIVE p AS (SELECT ts_ns AS ts, ts_ns // 1000000000 AS w, obs & 1023 AS point, (obs & 4096) > 0 AS out, wire_len, "
     "row_number() OVER (PARTITION BY ts_ns // 1000000000, obs & 1023, obs & 4096 ORDER BY rowid) AS k FROM packets), "
     "s AS (SELECT w, point, out, k, ts AS last, ts AS begin_at, wire_len::DOUBLE AS depth, wire_len::DOUBLE AS peak, wire_len::BIGINT AS bytes, "
     "wire_len > 1250 AS busy, false AS emits, ts AS e_begin, ts AS e_last, 0.0::DOUBLE AS e_peak, 0::BIGINT AS e_bytes FROM p WHERE k = 1 "
     "UNION ALL SELECT w, point, out, k, ts, CASE WHEN still THEN begin_at ELSE ts END, deep, CASE WHEN still THEN greatest(peak, deep) ELSE deep END, "
     "CASE WHEN still THEN bytes ELSE 0 END + wire_len, deep > 1250, busy AND NOT still, begin_at, last, peak, bytes FROM "
     "(SELECT p.w, p.point, p.out, p.k, p.ts, p.wire_len, s.begin_at, s.last, s.peak, s.bytes, s.busy, "
     "greatest(0.0, s.depth - (p.ts - s.last)::DOUBLE * 1e6 / 8e9) + p.wire_len AS deep, "
     "s.busy AND greatest(0.0, s.depth - (p.ts - s.last)::DOUBLE * 1e6 / 8e9) > 1250 AS still "
     "FROM s JOIN p ON p.w = s.w AND p.point = s.point AND p.out = s.out AND p.k = s.k + 1)), "
     "e AS (SELECT w, point, out, e_begin AS b, e_last AS l, e_peak AS d, e_bytes AS n FROM s WHERE emits UNION ALL "
     "SELECT w, point, out, begin_at, last, peak, bytes FROM (SELECT *, max(k) OVER (PARTITION BY w, point, out) AS end_k FROM s) WHERE k = end_k AND busy) "
     "SELECT w * 1000000000 AS window_start, point, out, b AS begin_ns, l - b AS duration_ns, d AS peak_bytes, n AS bytes FROM e"),
    ("deep_queues(depth=100)",
     "SELECT ts_ns // 1000000000 * 1000000000 AS window_start, node, queue, count(*) AS packets, "
     "count(*) FILTER (queue_depth > 100) AS deep, max(queue_depth) AS deepest FROM hops WHERE queue_depth IS NOT NULL GROUP BY ALL "
     "HAVING deep * 100 > packets"),
    ("slow_hops(latency=1us)",
     "SELECT ts_ns // 1000000000 * 1000000000 AS window_start, node, queue, count(*) AS packets, max(hop_latency_ns) AS longest FROM hops "
     "WHERE hop_latency_ns > 1000 GROUP BY ALL"),
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


def connections(dice, n):
    """A dozen connections of many packets at two points, with pauses, repetitions, gaps, other TTLs; some are not seen at the second."""
    ends = [(dice.choice(HOSTS), dice.choice(HOSTS[:5]), 2000 + i, 80, 6 if i % 4 else 17) for i in range(12)]
    seqs = [dice.choice((5, 2**32 - 2000, dice.getrandbits(32))) for _ in ends]
    ttls, ts = [60] * len(ends), START
    for i in range(n):
        ts += dice.choice((0, 10**5, 10**6, 10**7, dice.randrange(60 * 10**6))) + 1
        c = dice.randrange(len(ends))
        pay = dice.choice((0, 100, 1400))
        ttls[c] = dice.choice((ttls[c],) * 30 + (57, 60, 64))
        head = (*ends[c], dice.choice((16, 24, 24, 24, 17, 2)) if ends[c][4] == 6 else 0, ttls[c], 0,
                (seqs[c] + dice.choice((0, 0, 0, 0, 500, 2**32 - 100))) % 2**32, 0, 500, pay + 40, pay)
        seqs[c] = (seqs[c] + pay) % 2**32
        for point in (1, 2)[:dice.choice((1, 2, 2, 2))]:
            yield struct.pack("<Q16s16sHHBBBBIIHHHH", ts + (point - 1) * dice.randrange(10**6, 3 * 10**6), *head, point | dice.choice((0, 0, 0, 4096))) + \
                struct.pack("<IIQIHHHHHH", 0, 0, 0, i, i, 0, 0, 0, 0, 0)


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
    write(lab.path("folds.pkt96"), sorted(connections(random.Random(SEED + 3), 2500), key=lambda r: r[7::-1]))
    pathline.run("gen", "int", "-n", 400, "--flows", 6, "-r", 100, "--queue", "exp:60", "-w", lab.path("folds.pcap"))
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


def ask_ours(question, files, every=False):
    """The final rows; `every`: also those that a fold emits before its window closes."""
    run = pathline.run("query", "-o", "jsonl", question, *files)
    final = [line for line in run.stdout.splitlines() if every or json.loads(line).get("final", True)]
    rows = [{k: plain(v) for k, v in r.items() if k != "window_end" and v is not None} for r in pathline.answer("\n".join(final))]
    return rows, run.stderr


def streams_of(question):
    """Those that the plan reads."""
    plan = pathline.run("query", f"EXPLAIN {question}").stdout
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


def name_of(question):
    return question.split("(")[0]


def compare(engine, question, stem, some):
    streams = streams_of(question)
    files = [lab.path(f"{stem}.{STREAMS[s]}") for s in sorted(streams)]
    ours, said = ask_ours(question, files)
    theirs, statement = engine.ask(question)
    if theirs is None and re.search(r"(folds do|ewma does|events and values do) not translate", statement) and \
            re.search(r"^FOLD |\bewma\(|^  scan hops,", pathline.run("query", f"EXPLAIN {question}").stdout, re.M):
        written = name_of(question) in {name_of(q) for q, _ in FOLDS}
        ok(written, f"{stem}: it folds or is of hops, and has a statement of its own: {question[:80]}")
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
    of_file = f"SELECT * FROM file('{lab.path('described.pkt64')}', RowBinaryWithNamesAndTypes)"
    want = [(r["n"], r["s"]) for r in ask_ours("SELECT count(*) AS n, sum(wire_len) AS s FROM packets", [lab.path("described.pkt64")])[0]]
    for form in "Parquet", "Arrow":
        engine.session.query(f"INSERT INTO FUNCTION file('{lab.path('trace.' + form)}', {form}) {of_file}")
    import duckdb
    eq(duckdb.sql(f"SELECT count(*), sum(wire_len)::BIGINT FROM read_parquet('{lab.path('trace.Parquet')}')").fetchall(), want,
       "Parquet that ClickHouse made of it, in DuckDB")
    with open(lab.path("trace.Arrow"), "rb") as f:
        eq(f.read(6), b"ARROW1", "and a file of Arrow IPC")
    theirs = str(engine.session.query(f"SELECT count(), sum(wire_len) FROM file('{lab.path('trace.Arrow')}', Arrow)", "CSV")).strip()
    eq([tuple(map(int, theirs.split(",")))], want, "with the same rows")


def test_twice(engine):
    """An INSERT that comes again, as after an answer that was lost, is stored once; other rows are stored."""
    engine.session.query(pathline.run("schema", "--table", "once", "clickhouse", "pkt64").stdout)
    records = lab.path("gen.pkt64")
    with open(records, "rb") as f:
        data = f.read()
    write(lab.path("less.pkt64"), [data[64:]])
    for path, times in ((records, 1), (records, 1), (lab.path("less.pkt64"), 2)):
        engine.session.query(f"INSERT INTO once FROM INFILE '{path}' FORMAT RowBinary")
        want = len(data) // 64 * times - (times - 1)
        eq(int(str(engine.session.query("SELECT count() FROM once", "CSV"))), want, f"{want} rows")


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


def of_duckdb(value):
    """Ours writes a whole number as one, whatever its type is."""
    return plain(int(value) if isinstance(value, float) and value.is_integer() else value)


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
            return [{k: of_duckdb(v) for k, v in zip(columns, r) if v is not None} for r in cursor.fetchall()], statement
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
                ok(True, f"{stem}: DuckDB: refused, and asked of ClickHouse or in a statement of its own: {question[:80]}")
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


def test_duckdb_folds(_engine):
    import duckdb
    db = duckdb.connect()
    for stream, source in (("packets", "folds.pkt96"), ("packets96", "folds.pkt96"), ("hops", "folds.pcap")):
        path = lab.path(f"folds-{stream}.csv")
        with open(path, "w", encoding="utf-8") as f:
            pathline.run("query", "-o", "csv", f"SELECT * FROM {stream}", lab.path(source), stdout=f)
        db.execute(f"CREATE TABLE {stream} AS SELECT * FROM read_csv('{path}')")
    for question, statement in FOLDS:
        source = "folds.pcap" if " FROM hops" in statement else "folds.pkt96"
        ours, said = ask_ours(question, [lab.path(source)], every=True)
        try:
            cursor = db.execute(statement)
            theirs = [{k: of_duckdb(v) for k, v in zip([d[0] for d in cursor.description], r) if v is not None} for r in cursor.fetchall()]
            why = same(ours, theirs)
        except RuntimeError as e:
            why = str(e)[:600]
        ok(why is None and ours, f"DuckDB: {len(ours)} rows: {question}", f"{why}\n{said}\n{statement}")


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
    lab.run(test_by_name, test_constructs, test_generated, test_header, test_twice, test_refused, test_duckdb_export, test_duckdb, test_duckdb_folds, given=(engine,))
    return tap.end()


sys.exit(main())
