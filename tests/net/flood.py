#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""One host that sends more than is read, beside exporters that send a little: these lose nothing, and what that host loses is
counted in its name, to the datagram; reports, and records of taps. usage: flood.py PATHLINE"""
import json
import os
import signal
import socket
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, pathline, pcap, tap  # noqa: E402
from lib.lab import free_udp_port, write  # noqa: E402
from lib.pathline import PATHLINE, Daemon, run, total  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

UDP_PAYLOAD = 14 + 20 + 8
AT_ONCE, DURING = 50, 1000  # reports of each exporter that are under way at a time, and beside the flood once it is named


class Exporter:
    """Sends reports in sequence from an address of its own."""

    def __init__(self, host, template, port):
        self.host, self.report, self.sent = host, bytearray(template), 0
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((host, 0))
        self.socket.connect(("127.0.0.1", port))

    def send(self):
        struct.pack_into("!I", self.report, 8, self.sent)
        self.socket.send(self.report)
        self.sent += 1


def template():
    """A report of version 1.0."""
    path = lab.path("one.pcap")
    r = run("gen", "int", "--report", "1.0", "-n", "1", "-w", path)
    if r.returncode != 0:
        raise RuntimeError(r.stderr)
    return pcap.frames_of(path)[0][UDP_PAYLOAD:]


def status(daemon):
    return json.loads(daemon.get("/api/v1/status")[1])


def rows(daemon, table):
    return json.loads(daemon.get(f"/api/v1/{table}?limit=1000")[1])["rows"]


def floods(daemon):
    return {f["sender"]: f for source in status(daemon)["sources"] for f in source.get("floods", [])}


def start_floods(host, port):
    """Two generators of one address, as fast as they can."""
    return [lab.start([PATHLINE, "gen", "int", "--flood", "-d", "10m", f"udp://{host}:{port}?gso=on"], stdout=subprocess.DEVNULL,
                      stderr=subprocess.PIPE, text=True) for _ in range(2)]


def stop_floods(generators):
    """How many datagrams they sent."""
    for g in generators:
        g.send_signal(signal.SIGINT)
    return sum(pathline.sent_by(g) for g in generators)


def one_floods(name, uri, host, sockets=1):
    port = free_udp_port()
    daemon = Daemon(write(name + ".yaml", f"sources:\n  - uri: {uri.format(port)}\n    sockets: {sockets}\n"
                          "web:\n  listen: 127.0.0.1:0\n"), name=name)
    exporters = [Exporter(f"127.0.0.{n}", template(), port) for n in (66, 67, 68, 69)]

    def account():
        sources = status(daemon)["sources"]
        return sum(s["packets"] for s in sources), sum(s["kernel_drops"] for s in sources)

    def unnamed():
        """Drops of the sockets that all share: there are some when the worker does not run while a socket fills."""
        return sum(row["count"] for row in rows(daemon, "drops") if row["place"] == "socket")

    def seen():
        table = {row["exporter"]: (row["reports"], row.get("lost", 0)) for row in rows(daemon, "exporters")}
        return {e.host: table.get(e.host, (0, 0)) for e in exporters}

    def send_all():
        """More of each, and on until it is known of all what became of them: for those there is room."""
        for _ in range(AT_ONCE):
            for e in exporters:
                e.send()

        def has_come():
            """each report of the exporters came or is missed"""
            table = seen()
            late = [e for e in exporters if sum(table[e.host]) < e.sent]
            for e in late:
                e.send()
            return not late
        wait(has_come)

    def is_moved():
        """the flood loses, and nobody else does any more"""
        before = unnamed(), floods(daemon).get(host, {}).get("drops", 0)
        send_all()
        after = unnamed(), floods(daemon).get(host, {}).get("drops", 0)
        return after[0] == before[0] and after[1] > before[1]

    generators = start_floods(host, port)
    ok(wait(is_moved), f"{name}: who floods is named, with what it loses", (floods(daemon), unnamed()))
    early = unnamed(), sum(lost for _, lost in seen().values())
    for _ in range(DURING // AT_ONCE):
        send_all()
    sent = stop_floods(generators) + sum(e.sent for e in exporters)
    wait(lambda: sum(account()) == sent)
    received, dropped = account()
    eq(received + dropped, sent, f"{name}: sent = received + dropped")
    late = unnamed(), sum(lost for _, lost in seen().values())
    ok(late[1] <= late[0], f"{name}: exporters lose no more than the sockets dropped that all share", late)
    # Of several sockets each finds out by itself.
    if sockets == 1:
        eq(late, early, f"{name}: and none since the flood is moved")
    for e in exporters:
        eq(sum(seen()[e.host]), e.sent, f"{name}: {e.host}, with {e.sent} reports: each came or is missed")
    flooded = dropped - unnamed()
    eq((list(floods(daemon)), floods(daemon)[host]["drops"]), ([host], flooded), f"{name}: what is dropped since is of who floods")
    drops = {(row["place"], row["name"], row["cause"]): row["count"] for row in rows(daemon, "drops") if row["place"] == "sender"}
    eq(drops, {("sender", host, "flood"): flooded}, f"{name}: the table of drops says so")
    values = daemon.metrics()
    eq((total(values, "pathline_socket_flood_drops_total"), total(values, "pathline_socket_drops_total")), (flooded, dropped),
       f"{name}: the metrics do")
    ok(total(values, "pathline_socket_floods_total") >= 1, f"{name}: and how often", values)
    ok(f"{host} sends more than" in run("status", "--url", daemon.web).stdout, f"{name}: and status")
    ok(daemon.wait_for(f"{host} sends more than is read"), f"{name}: and the log")
    eq(daemon.stop(), 0, f"{name}: it ends well")


def test_one_socket():
    one_floods("one", "udp://127.0.0.1:{}", "127.0.0.1")


def test_all_addresses():
    one_floods("all", "udp://:{}", "127.0.0.1")


def test_sockets():
    one_floods("three", "udp://127.0.0.1:{}", "127.0.0.1", sockets=3)


class TapExporter(Exporter):
    """Sends records of packets, one in a datagram, in sequence from an address of its own."""

    def send(self):
        self.socket.send(b"TPK1" + struct.pack("<BBHIIQQ", 1, 1, 1, 7, self.sent, 0, 0) + bytes(64))
        self.sent += 1


FLOOD = """import signal, socket, struct, sys
s, n, ended = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 0, []
signal.signal(signal.SIGINT, lambda *_: ended.append(True))
s.bind((sys.argv[1], 0))
s.connect(("127.0.0.1", int(sys.argv[2])))
records = b"".join(struct.pack("<Q12xI", 0, i << 8) + bytes(40) for i in range(139))
while not ended:
    s.send(b"TPK1" + struct.pack("<BBHIIQQ", 1, 1, 139, 7, n & 0xffffffff, 0, 0) + records)
    n += 1
print(n)
"""


def test_tap():
    """A tap's socket: an exporter of tmpkt/1 that sends more records than are read, beside others."""
    port, host = free_udp_port(), "127.0.0.1"
    daemon = Daemon(write("tap.yaml", f"web: {{listen: 127.0.0.1:0}}\ntaps: [{{name: t, sources: ['udp://127.0.0.1:{port}'], records: flows, "
                          f"to: ['file:{lab.path('tap.flow128')}']}}]\n"), name="tap")
    exporters = [TapExporter(f"127.0.0.{n}", b"", port) for n in (66, 67, 68, 69)]

    def metric(family):
        return daemon.metrics()[f'pathline_{family}_total{{tap="t"}}']

    def losses():
        """Datagrams dropped of all together, and of those that are received apart."""
        page = daemon.metrics()
        apart = page['pathline_tap_flood_drops_total{tap="t"}']
        return page['pathline_tap_kernel_drops_total{tap="t"}'] - apart, apart

    def have_come():
        """each datagram of the exporters came or is missed"""
        page = daemon.metrics()
        rows = {e.host: f'{{exporter="{e.host}",number="7",tap="t"}}' for e in exporters}
        late = [e for e in exporters
                if sum(page.get(f"pathline_tmpkt_exporter_{k}_total{rows[e.host]}", 0) for k in ("datagrams", "skipped")) < e.sent]
        for e in late:
            e.send()
        return not late

    def send_all():
        for _ in range(AT_ONCE):
            for e in exporters:
                e.send()
        wait(have_come)

    def is_moved():
        """the flood loses, and nobody else does any more"""
        before = losses()
        send_all()
        after = losses()
        return after[0] == before[0] and after[1] > before[1]
    script = write("flood_of_records.py", FLOOD)
    flood = lab.start([sys.executable, script, host, str(port)], stdout=subprocess.PIPE, text=True)
    ok(wait(is_moved), "tap: who floods is received apart", losses())
    early = losses()[0]
    for _ in range(DURING // AT_ONCE):
        send_all()
    flood.send_signal(signal.SIGINT)
    sent = int(flood.communicate()[0]) + sum(e.sent for e in exporters)
    ok(wait(lambda: metric("tmpkt_datagrams") + sum(losses()) == sent), "tap: sent = received + dropped", (metric("tmpkt_datagrams"), losses(), sent))
    eq(losses()[0], early, "tap: the others lose none since the flood is received apart")
    ok(metric("tap_floods") >= 1, "tap: the metrics say how often")
    ok(daemon.wait_for(f"{host} sends more than is read"), "tap: and the log who")
    # The only sender that is left is received although its socket is not the first.
    before = metric("tmpkt_datagrams")
    late = TapExporter(host, b"", port)
    late.send()
    ok(wait(lambda: metric("tmpkt_datagrams") == before + 1), "tap: one datagram more of who flooded, with nothing beside it")
    eq(daemon.stop(), 0, "tap: it ends well")


def main():
    lab.run(test_one_socket, test_all_addresses, test_sockets, test_tap)
    return tap.end()


sys.exit(main())
