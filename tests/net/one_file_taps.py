#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Taps in the configuration of the daemon: a capture becomes flow records in a file, the same as `pathline tap --flows` makes;
records that another tap sends come in by tmpkt/1; a reload changes rules and point and loses no record; the keys that need a
restart are named; the counters of each tap stand on the page, in the account and in the readiness. usage: one_file_taps.py PATHLINE"""
import collections
import json
import os
import random
import re
import signal
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import tap  # noqa: E402
from lib.lab import free_port, free_udp_port, path, start  # noqa: E402
from lib.pathline import PATHLINE, Daemon, jsonl, run  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

PORT = 23750
FLOW, PACKET, POINT = 128, 64, 62  # bytes of the records; where the observation point is in one of a packet
ONCE = 139  # most records of a packet in a datagram of 9000 bytes
SANITIZER = re.search(r"sanitizer +(?!none)\w", run("version").stdout) is not None
CONFIG = """taps:
  - name: trace
    sources: ["pcap:{trace}"]
    records: flows
    to: ["file:{flows}"]
  - name: far
    sources: ["udp://127.0.0.1:{port}"]
    point: {point}
    rules: {rules}
    to: ["file:{packets}"]
web:
  listen: 127.0.0.1:0
"""


def write_config(point=7, rules='["skip proto=udp"]', packets="packets.pkt64"):
    with open(path("taps.yaml"), "w", encoding="utf-8") as f:
        f.write(CONFIG.format(trace=path("trace.pcap"), flows=path("flows.flow128"), packets=path(packets), port=PORT, point=point,
                              rules=rules))


def records(name, size, without=0):
    """The records of a file, in an order of their own, without so many of their last bytes."""
    with open(path(name), "rb") as f:
        data = f.read()
    eq(len(data) % size, 0, f"{name} has whole records")
    return sorted(data[i:i + size - without] for i in range(0, len(data), size))


def of_tap(daemon, family, name):
    return daemon.metrics().get(f'pathline_{family}{{tap="{name}"}}')


def send():
    sent = run("tap", "--to", f"udp://127.0.0.1:{PORT}", path("trace.pcap"))
    ok(sent.returncode == 0, "records are sent", sent.stderr)
    return int(re.search(r"(\d+) records", sent.stderr).group(1))


def reload(daemon, words):
    count = len(re.findall("is in use|stays in use", daemon.log()))
    daemon.p.send_signal(signal.SIGHUP)
    daemon.wait_for("is in use|stays in use", count=count + 1)
    return ok(words in daemon.log(), f"a reload: {words}", daemon.log())


def test_taps():
    made = run("gen", "packets", "--story", "--duration", "3s", "-w", path("trace.pcap"))
    ok(made.returncode == 0, "traffic is made", made.stderr)
    eq(run("tap", "--flows", "--to", f"file:{path('alone.flow128')}", path("trace.pcap")).returncode, 0, "a tap by itself")
    write_config()
    d = Daemon(path("taps.yaml"))
    n = send()
    wait(lambda: of_tap(d, "tap_packets_total", "far") == n)
    eq(of_tap(d, "tap_packets_total", "trace"), n, "the capture was read to its end")
    ok(wait(lambda: os.path.getsize(path("flows.flow128")) == os.path.getsize(path("alone.flow128"))),
       "its flows end with it, while the daemon goes on")
    skipped = of_tap(d, "tap_skipped_total", "far")
    ok(0 < skipped < n, "rules hold for received records")
    matches = {re.search('rule="([^"]*)"', series).group(1): value for series, value in d.metrics().items()
               if series.startswith("pathline_tap_rule_matches_total{") and 'tap="far"' in series}
    eq(matches, {"skip proto=udp": skipped, "default take": n - skipped}, "what each rule matched is on the page, and what none did")
    eq(d.get("/readyz")[0], 200, "it is ready")
    ok('"taps":{"ready":true}' in d.get("/readyz?verbose")[1], "and the taps are")

    write_config(point=9, rules="[]")
    reload(d, "is in use")
    ok("until a restart" not in d.log(), "rules and point need no restart")
    send()
    wait(lambda: of_tap(d, "tap_packets_total", "far") == 2 * n)
    eq(of_tap(d, "tap_records_total", "far"), 2 * n - skipped, "without the rule every packet is a record")
    write_config(point=9, rules="[]", packets="other.pkt64")
    reload(d, "stay as they were until a restart")
    write_config(rules='["skp proto=udp"]')
    reload(d, "the old configuration stays in use")
    page = d.metrics()
    eq(page['pathline_tmpkt_accepted_total{tap="far"}'], page['pathline_tmpkt_datagrams_total{tap="far"}'], "no datagram is lost")

    d.p.send_signal(signal.SIGUSR1)
    ok(d.wait_for(rf"so far: trace: {n} packets, {n} records"), "the account so far", d.log())
    eq(d.stop(), 0, "it ends well")
    ok(re.search(rf"stopped: trace: .*; far: {2 * n} packets, {2 * n - int(skipped)} records", d.log()), "the account", d.log())
    # At the end of a record stands its number, and flows end in the order of a table with a seed.
    eq(records("flows.flow128", FLOW, 4) == records("alone.flow128", FLOW, 4), True, "the same flows as by a tap of its own")
    points = [int.from_bytes(r[POINT:POINT + 2], "little") & 1023 for r in records("packets.pkt64", PACKET)]
    # A record that was made elsewhere keeps the point of its maker.
    eq((len(points), set(points)), (2 * n - skipped, {0}), "every record is in the file")


def test_tapped():
    """Flows that are not over: the page and `top` show those with the most bytes, as packets say that they are."""
    port = free_udp_port()
    with open(path("tapped.yaml"), "w", encoding="utf-8") as f:
        f.write("web: {listen: '127.0.0.1:0'}\ntaps: [{name: live, records: flows, flows: {idle: 1h, active: 1h}, "
                f"sources: ['udp://127.0.0.1:{port}'], to: ['file:{path('tapped.flow128')}']}}]\n")
    d = Daemon(path("tapped.yaml"))
    sent = run("tap", "--to", f"udp://127.0.0.1:{port}", path("trace.pcap"))
    n = int(re.search(r"(\d+) records", sent.stderr).group(1))
    wait(lambda: of_tap(d, "tap_packets_total", "live") == n)
    flows = collections.defaultdict(lambda: [0, 0])
    for p in jsonl(run("tap", "-o", "jsonl", path("trace.pcap")).stdout):
        key = frozenset([(p["src"], p["sport"]), (p["dst"], p["dport"])])
        if p["proto"] == 17:
            flows[key][0] += 1
            flows[key][1] += p["wire_len"]

    def page():
        return json.loads(d.get("/api/v1/tapped")[1])

    def shown():
        return {frozenset([(r["flow"]["src"], r["flow"]["sport"]), (r["flow"]["dst"], r["flow"]["dport"])]): [r["packets"], r["bytes"]]
                for r in page()["tapped"] if r["flow"]["proto"] == 17}
    ok(wait(lambda: shown() == flows), f"{len(flows)} flows of UDP are as their packets", list(shown().items())[:3])
    rows = page()["tapped"]
    eq([r["bytes"] for r in rows], sorted((r["bytes"] for r in rows), reverse=True), "the most bytes first")
    ok(wait(lambda: page()["taps"][0]["flows"] == of_tap(d, "flow_live", "live")), "as many as the metric says", page()["taps"])

    def of_top():
        top = run("top", "--url", d.web, "--batch", "--screen", "tapped", "-o", "json", "--rows", "5")
        return [r["bytes"] for r in json.loads(top.stdout)["rows"]]
    # Connections of TCP end meanwhile.
    ok(wait(lambda: of_top() == [r["bytes"] for r in page()["tapped"][:5]]), "top shows them", of_top())
    top = run("top", "--url", d.web, "--batch", "--screen", "tapped", "--where", "bytes > 5")
    ok(top.returncode == 2 and "no filter" in top.stderr, "and says that it has no filter", top.stderr)
    eq(d.get("/api/v1/tapped?limit=5")[0], 400, "the page has no parameters")
    eq(d.stop(), 0, "it ends well")
    with open(path("none.yaml"), "w", encoding="utf-8") as f:
        f.write(f"web: {{listen: '127.0.0.1:0'}}\nsources: [{{uri: 'udp://127.0.0.1:{free_udp_port()}'}}]\n")
    d = Daemon(path("none.yaml"))
    ok("no_taps" in d.get("/api/v1/tapped")[1], "a process without taps says so")
    d.stop()


def test_tail():
    """Flows as their records are made: `tail --flows` prints what the tap writes, by itself or those that are asked for."""
    port, wanted = free_udp_port(), {"all": [], "dns": ["--where", "dport == 53"], "ids": ["--community-id"]}
    with open(path("tail.yaml"), "w", encoding="utf-8") as f:
        f.write("web: {listen: '127.0.0.1:0'}\ntaps: [{name: live, records: flows, flows: {idle: 1s}, "
                f"sources: ['udp://127.0.0.1:{port}'], to: ['jsonl:{path('tail.jsonl')}', 'jsonl:{path('ids.jsonl')}?community_id=yes']}}]\n")
    d = Daemon(path("tail.yaml"))
    tails = {}
    for name, args in wanted.items():
        with open(path(f"tail-{name}"), "w", encoding="utf-8") as out:
            tails[name] = start([PATHLINE, "tail", "--url", d.web, "--flows", "-o", "jsonl", *args], log=path(f"tail-{name}.err"), stdout=out)
    ok(wait(lambda: [s["flows"] for s in json.loads(d.get("/api/v1/status")[1])["streams"]] == [True] * 3), "all watch flows")
    run("tap", "--to", f"udp://127.0.0.1:{port}?kind=pkt96", path("trace.pcap"))

    def lines(name):
        with open(path(name), encoding="utf-8") as f:
            return sorted(f.read().splitlines())
    ok(wait(lambda: of_tap(d, "flow_live", "live") == 0 and of_tap(d, "flow_started_total", "live") > 100), "flows are over")
    ok(wait(lambda: len(lines("tail.jsonl")) > 100 and lines("tail-all") == lines("tail.jsonl")), "all of them, with every value",
       (len(lines("tail-all")), len(lines("tail.jsonl"))))
    dns = [line for line in lines("tail.jsonl") if json.loads(line)["dport"] == 53]
    ok(dns and wait(lambda: lines("tail-dns") == dns), "those that match")
    ok(wait(lambda: len(lines("ids.jsonl")) > 100 and lines("tail-ids") == lines("ids.jsonl")), "with their Community IDs", lines("tail-ids")[:1])
    ok(all('"community_id":"1:' in line for line in lines("tail-ids")), "which every one has")
    for args, code, says in ((["--community-id", "--dns"], 2, "with --flows or --packets"), (["--community-id", "--flows"], 2, "use -o wide"),
                             (["--flows", "-o", "csv", "-n", "1", "--where", "nothing == 1"], 2, "unknown field"),
                             (["--flows", "--events"], 2, "is given alone")):
        run_ = run("tail", "--url", d.web, *args)
        ok(run_.returncode == code and says in run_.stderr, f"refused: {says}", (run_.returncode, run_.stderr))
    ok("forms jsonl and record" in d.get("/api/v1/tail?kind=flows")[1], "forms that the API has not")
    ok("in the form record only" in d.get("/api/v1/tail?kind=flows,events&form=jsonl")[1], "other kinds beside flows")
    for p in tails.values():
        p.send_signal(signal.SIGINT)
        eq(p.wait(60), 0, "tail ends well")
    eq(d.stop(), 0, "it ends well")


def of_exporter(exporter, number, source=None, obs=0):
    """A datagram of tmpkt/1 with a record of a packet of UDP, of which `number` is the source address, unless another is given."""
    packet = bytearray(PACKET)
    packet[:8] = struct.pack("<Q", time.time_ns())
    packet[8:24] = bytes(10) + b"\xff\xff" + struct.pack(">I", number if source is None else source)
    packet[POINT:POINT + 2] = struct.pack("<H", obs)
    return b"TPK1" + struct.pack("<BBHIIQQ", 1, 1, 1, exporter, number, 0, 0) + packet


def test_forged():
    """A datagram that anybody sends is no record of a packet before a second one shows that an exporter numbers them; with
    `decode.admit: first` it is."""
    for admit in ("proven", "first"):
        port = free_udp_port()
        with open(path("forged.yaml"), "w", encoding="utf-8") as f:
            f.write(f"web: {{listen: '127.0.0.1:0'}}\ndecode: {{admit: {admit}}}\ntaps: [{{name: t, sources: ['udp://127.0.0.1:{port}'], "
                    f"records: flows, flows: {{idle: 1h}}, to: ['file:{path('forged.flow128')}']}}]\n")
        d = Daemon(path("forged.yaml"), name="forged-" + admit)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            def see(*sent):
                """Of the tap now: packets, flows, datagrams that wait, and those left out."""
                before = of_tap(d, "tmpkt_datagrams_total", "t")
                for datagram in sent:
                    s.sendto(datagram, ("127.0.0.1", port))
                wait(lambda: of_tap(d, "tmpkt_datagrams_total", "t") == before + len(sent))
                return tuple(of_tap(d, family, "t") for family in ("tap_packets_total", "flow_live", "tmpkt_held", "tmpkt_unproven_total"))
            taken = admit == "first"
            eq(see(of_exporter(1, 1 << 24)), (taken, taken, not taken, 0), f"{admit}: one datagram")
            eq(see(of_exporter(1, 1 << 30)), (2 * taken, 2 * taken, 2 * (not taken), 0), f"{admit}: one with another number")
            eq(see(of_exporter(2, 5), of_exporter(2, 6)), (2 + 2 * taken, 2 + 2 * taken, 2 * (not taken), 0), f"{admit}: an exporter loses nothing")
            if not taken:
                eq(see(*(of_exporter(100 + i, i << 20) for i in range(1060))), (2, 2, 1024, 38), "those too many are left out, and counted")
        eq(d.stop(), 0, "it ends well")
        ok(taken or "1062 of exporters that are not proven" in d.log(), f"{admit}: the account", d.log())


def syns(n, first, ends):
    """Datagrams of so many SYNs, each with the ends that ends(i) gives: 36 bytes of addresses and ports."""
    made = []
    for at in range(0, n, ONCE):
        records = b"".join(struct.pack("<Q36sBB12xHHH", time.time_ns(), ends(i), 6, 2, 40, 0, 0) for i in range(at, at + ONCE))
        made.append(b"TPK1" + struct.pack("<BBHIIQQ", 1, 1, ONCE, 1, first + at // ONCE, 0, 0) + records)
    return made


def own_kib(daemon):
    with open(f"/proc/{daemon.p.pid}/status", encoding="ascii") as f:
        return int(re.search(r"RssAnon:\s*(\d+)", f.read()).group(1))


def test_flood():
    """More flows than the table holds: SYNs from everywhere to one port, a scan of ports and hosts, and random ends. The table is
    bounded and memory does not grow; each flow has its record, those that made room by that cause."""
    room, n, dice = 1000, 50 * ONCE, random.Random(7)
    server, client = (bytes(10) + b"\xff\xff" + bytes((10, 0, 0, i)) for i in (1, 2))
    kinds = (lambda i: dice.randbytes(16) + server + struct.pack("<HH", 1024 + i % 60000, 443),
             lambda i: client + server[:14] + struct.pack("<HHH", i >> 10, 40000, i & 1023),
             lambda i: dice.randbytes(36))
    port = free_udp_port()
    with open(path("flood.yaml"), "w", encoding="utf-8") as f:
        f.write(f"web: {{listen: '127.0.0.1:0'}}\ntaps: [{{name: t, sources: ['udp://127.0.0.1:{port}'], records: flows, "
                f"flows: {{idle: 1h, active: 1h, table: {room}}}, to: ['file:{path('flood.flow128')}']}}]\n")
    d = Daemon(path("flood.yaml"), name="flood")
    sent, number, kib = 0, 0, []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for turn in range(2):
            for ends in kinds:
                for i, datagram in enumerate(syns(n, number, ends)):
                    s.sendto(datagram, ("127.0.0.1", port))
                    # The first one waits for the second one, which proves the exporter.
                    if i % 5 == 4:
                        wait(lambda seen=sent + (i + 1) * ONCE: of_tap(d, "flow_packets_total", "t") == seen)
                sent, number = sent + n, number + n // ONCE
                ok(0 < of_tap(d, "flow_live", "t") <= room, f"round {turn}: no more flows than there is room for", of_tap(d, "flow_live", "t"))
            kib.append(own_kib(d))
    eq(of_tap(d, "flow_packets_total", "t"), sent, "all packets came")
    started, evicted, live = (of_tap(d, family, "t") for family in ("flow_started_total", "flow_ended_evicted_total", "flow_live"))
    eq((evicted + live, of_tap(d, "flow_ended_idle_total", "t") + of_tap(d, "flow_ended_active_total", "t")), (started, 0), "each flow is there or made room")
    ok(started > 5 * n, "nearly every packet was of another flow", (started, n))
    if SANITIZER:
        tap.comment("a sanitizer keeps what was freed: memory is not looked at")
    else:
        ok(kib[1] - kib[0] < 1024, f"the second {3 * n} packets take no memory that the first ones did not", kib)
    eq(d.stop(), 0, "it ends well")
    packets = sum(sum(struct.unpack_from("<II", r, 72)) for r in records("flood.flow128", FLOW))
    eq(packets, sent, "every packet is in a record")


def test_idle():
    """The only record of a tap elsewhere does not wait for a second one: empty datagrams of the tap, before it and behind it, are numbers
    too. Nor does the first one after the daemon began anew."""
    to, port = free_udp_port(), free_udp_port()
    with open(path("idle.yaml"), "w", encoding="utf-8") as f:
        f.write(f"web: {{listen: '127.0.0.1:0'}}\ntaps: [{{name: t, sources: ['udp://127.0.0.1:{to}'], to: ['file:{path('idle.pkt64')}']}}]\n")
    d = Daemon(path("idle.yaml"), name="idle")
    far = start([PATHLINE, "tap", "--stats", "--to", f"udp://127.0.0.1:{to}", f"udp://127.0.0.1:{port}"], log=path("far.err"),
                stdout=open(path("far"), "w", encoding="utf-8"))
    ok(wait(lambda: of_tap(d, "tmpkt_empty_total", "t") >= 1), "a tap that has nothing to send says so", d.metrics())
    eq((of_tap(d, "tmpkt_held", "t"), of_tap(d, "tmpkt_records_total", "t")), (0, 0), "which is no record, and does not wait")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.sendto(of_exporter(1, 5), ("127.0.0.1", port))
        ok(wait(lambda: of_tap(d, "tmpkt_records_total", "t") == 1), "one record comes by itself")
        eq(d.stop(), 0, "it ends well")
        d = Daemon(path("idle.yaml"), name="idle-again")
        s.sendto(of_exporter(1, 6), ("127.0.0.1", port))
        ok(wait(lambda: of_tap(d, "tmpkt_records_total", "t") == 1), "and one to a daemon that began anew")
    eq(of_tap(d, "tmpkt_lost_total", "t"), 0, "nothing is lost")
    far.send_signal(signal.SIGTERM)
    far.wait(60)
    with open(path("far"), encoding="utf-8") as f:
        out = json.loads(f.read().splitlines()[-1])["outputs"][0]
    ok(out["sent"] == 2 and out["datagrams"] - out["empty"] == 2 and out["empty"] >= 3, "the tap's account: at its start, behind the record, at its end", out)
    eq(d.stop(), 0, "it ends well")


def test_exporters():
    """Which exporter lost how much, on the page of metrics and in the account; as many of each source as there is room for."""
    for most in (256, 2):
        port = free_udp_port()
        with open(path("exporters.yaml"), "w", encoding="utf-8") as f:
            f.write(f"web: {{listen: '127.0.0.1:0'}}\nmetrics: {{max_exporters: {most}}}\ntaps: [{{name: t, sources: ['udp://127.0.0.1:{port}']}}]\n")
        d = Daemon(path("exporters.yaml"), name=f"exporters-{most}")
        for host, exporter, numbers in (("127.0.0.66", 1, (5, 6, 8)), ("127.0.0.66", 2, (5, 6, 7)), ("127.0.0.67", 1, (1, 2, 2, 5))):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
                s.bind((host, 0))
                for number in numbers:
                    s.sendto(of_exporter(exporter, number), ("127.0.0.1", port))
        wait(lambda: of_tap(d, "tmpkt_datagrams_total", "t") == 10)
        page = d.metrics()
        found = {k: [v for name, v in page.items() if name.startswith(f"pathline_tmpkt_exporter_{k}_total{{")]
                 for k in ("datagrams", "skipped", "duplicates")}
        if most == 2:
            key = '{exporter="other",number="other",tap="t"}'
            eq((sorted(found["datagrams"]), page["pathline_tmpkt_exporter_datagrams_total" + key], page["pathline_tmpkt_exporter_skipped_total" + key]),
               ([3, 3, 4], 3, 0), "one of each source, and the rest together")
        else:
            eq({k: sorted(v) for k, v in found.items()}, {"datagrams": [3, 3, 4], "skipped": [0, 1, 2], "duplicates": [0, 0, 1]}, "three exporters")
            eq(page['pathline_tmpkt_exporter_skipped_total{exporter="127.0.0.67",number="1",tap="t"}'], 2, "by address and number")
        eq(d.stop(), 0, "it ends well")
    command = start([PATHLINE, "tap", "--stats", "-o", "jsonl", f"udp://127.0.0.1:{port}"], log=path("command.err"), stdout=open(path("command"), "w", encoding="utf-8"))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        def records():
            with open(path("command"), encoding="utf-8") as f:
                return f.read().splitlines()
        wait(lambda: "tapping" in open(path("command.err"), encoding="utf-8").read())
        for number in (1, 2, 4):
            s.sendto(of_exporter(9, number), ("127.0.0.1", port))
        wait(lambda: len(records()) == 3)
    command.send_signal(signal.SIGTERM)
    command.wait(60)
    stats = json.loads(records()[-1])["tmpkt"]
    eq([(x["exporter"], x["number"], x["datagrams"], x["lost"]) for x in stats["by_exporter"]], [("127.0.0.1", 9, 3, 1)], "the account of the command")


def test_same_place():
    """Two exporters that send packets of the same flow under one observation point: counted, and told. Other points, other directions,
    and other flows are none of it."""
    out = 4096
    for name, obs, sources, told in (("same", (0, 0), (9, 9), True), ("points", (1, 2), (9, 9), False), ("ways", (0, out), (9, 9), False),
                                     ("flows", (0, 0), (9, 8), False), ("leaving", (3 | out, 3 | out), (9, 9), True)):
        port = free_udp_port()
        with open(path("place.yaml"), "w", encoding="utf-8") as f:
            f.write(f"web: {{listen: '127.0.0.1:0'}}\ntaps: [{{name: t, sources: ['udp://127.0.0.1:{port}'], records: flows, "
                    f"to: ['file:{path('place.flow128')}']}}]\n")
        d = Daemon(path("place.yaml"), name="place-" + name)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            for i in range(20):
                for k in range(2):
                    s.sendto(of_exporter(k, i, sources[k], obs[k]), ("127.0.0.1", port))
        wait(lambda: of_tap(d, "tmpkt_accepted_total", "t") == 40)
        # Of the first exporter's two datagrams that waited for the proof of both, none is beside another's.
        n = of_tap(d, "tmpkt_same_place_total", "t")
        ok(35 <= n < 40 if told else n == 0, f"{name}: packets of both", n)
        eq("give each tap a --point of its own" in d.log(), told, f"{name}: a warning")
        eq(d.stop(), 0, "it ends well")


def with_receiver_away(name, to, query=""):
    """A daemon with a tap whose packets have come, and nobody who takes what it makes of them."""
    port = free_udp_port()
    with open(path(name + ".yaml"), "w", encoding="utf-8") as f:
        f.write(f"web: {{listen: '127.0.0.1:0'}}\ndrain: 60s\ntaps: [{{name: t, sources: ['udp://127.0.0.1:{port}'], to: [{to}]}}]\n{query}")
    d = Daemon(path(name + ".yaml"), name=name)
    sent = run("tap", "--to", f"udp://127.0.0.1:{port}?kind=pkt96", path("trace.pcap"))
    n = int(re.search(r"(\d+) records", sent.stderr).group(1))
    ok(wait(lambda: of_tap(d, "tap_packets_total", "t") == n), "packets have come", sent.stderr)
    return d, n


def test_signals():
    """Signals to end that come together, as timeout(1) sends them, are one: the accounts are told. Who sends another one later is
    told what is not delivered."""
    d, n = with_receiver_away("together", f"'clickhouse://127.0.0.1:{free_port()}/x'")
    for _ in range(20):
        d.p.send_signal(signal.SIGTERM)
        time.sleep(0.001)
    eq(d.p.wait(60), 1, "it ends in its time, and says that something is lost")
    ok(f"did not take {n} records" in d.log() and "at once" not in d.log(), "with its account", d.log())
    d, n = with_receiver_away("later", "", "queries: [{name: q, query: 'SELECT dst, count(*) AS n FROM packets TUMBLE(ts, 1s) GROUP BY dst', from: t, "
                              f"to: ['clickhouse://127.0.0.1:{free_port()}/x']}}]\n")
    ok(wait(lambda: d.p.send_signal(signal.SIGTERM) or d.p.poll() is not None), "a signal later ends it at once")
    ok(d.p.returncode == 1 and "stopped at once by a further signal" in d.log(), "which it says", d.log())
    ok(re.search(rf"\nqueries: q: {n} records, (\d+) rows, \1 rows waiting for their output\ntaps: t: {n} packets", d.log()), "and what is not delivered", d.log())


def test_refused():
    for said, text in (("captures and live sources", "{name: a, sources: ['pcap:x', 'udp://:1']}"),
                       ("is no source of a tap", "{name: a, sources: ['upd://:1']}"),
                       ("is no source of a tap", "{name: a, sources: ['pcap:-']}"),
                       ("begins with take, skip or mark", "{name: a, sources: ['udp://:1'], rules: ['skp']}"),
                       ("records of a tap go to", "{name: a, sources: ['udp://:1'], to: ['x']}"),
                       ("no path behind the colon", "{name: a, sources: ['udp://:1'], to: ['region:']}"),
                       ("have the same name", "{name: a, sources: ['udp://:1']}, {name: a, sources: ['udp://:2']}"),
                       ("have the same file", "{name: a, sources: ['udp://:1'], to: ['file:x']}, {name: b, sources: ['udp://:2'], to: ['file:x']}"),
                       ("have the same file", "{name: a, sources: ['udp://:1'], to: ['jsonl:x']}, {name: b, sources: ['udp://:2'], to: ['file:x']}"),
                       ("is a source of reports already", "{name: a, sources: ['udp://:1']}")):
        sources = "sources: [{uri: 'udp://:1'}]\n" if "reports" in said else ""
        checked = run("config", "check", "-", input=f"{sources}taps: [{text}]\n")
        ok(checked.returncode == 78 and said in checked.stderr, f"refused: {said}", checked.stderr)


test_taps()
test_tapped()
test_tail()
test_forged()
test_flood()
test_idle()
test_exporters()
test_same_place()
test_signals()
test_refused()
sys.exit(tap.end())
