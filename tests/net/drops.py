# SPDX-License-Identifier: BSD-2-Clause
"""Packets that the kernel drops, by `pathline tap --drops`, beside the kernel's own counters: for each reason as many records as the
kernel counts; a flood, of which each drop is in an account; interfaces that go and come; where records go.

usage: drops.py PATHLINE [TEST…]
"""
import collections
import contextlib
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, network, pathline, tap, tapping  # noqa: E402
from lib.roce import packet_socket  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import LIMIT, wait  # noqa: E402

ADDRESS = {4: {"a": "10.83.0.1", "b": "10.83.0.2"}, 6: {"a": "fd83::1", "b": "fd83::2"}}
A, B = ADDRESS[4]["a"], ADDRESS[4]["b"]
NS = {}
# drop168/1 of docs/formats/records.md
RECORD = struct.Struct("<Q16s16sHHBBBBIIHHHHIIQIHHHHHHHHIII16s40s")
ACCOUNTS = ("records", "skipped", "not_sampled", "ring_full", "rate_limited", "other_namespace", "other_interface", "not_network", "missed")
COUNTER = 'pathline_tap_drops_total{reason="%s"}'


def start(side, name, *args):
    return tapping.Tap(NS[side], name, "--drops", "-o", "jsonl", *args)


def snmp(side, protocol, key):
    """A counter of /proc/net/snmp."""
    with NS[side], open("/proc/thread-self/net/snmp", encoding="ascii") as f:
        rows = [line.split() for line in f if line.startswith(protocol + ":")]
    return int(dict(zip(rows[0], rows[1]))[key])


def reverse_path(side):
    with NS[side], open("/proc/thread-self/net/netstat", encoding="ascii") as f:
        rows = [line.split() for line in f if line.startswith("TcpExt:")]
    return int(dict(zip(rows[0], rows[1]))["IPReversePathFilter"])


def snmp6(side, key):
    with NS[side], open("/proc/thread-self/net/snmp6", encoding="ascii") as f:
        return int(dict(line.split() for line in f)[key])


def statistics(side, interface, key):
    return int(NS[side].sh(f"cat /sys/class/net/{interface}/statistics/{key}"))


def records(t):
    return [r for r in t.lines() if "reason" in r]


def of(t, reason, **fields):
    return [r for r in records(t) if r["reason"] == reason and all(r[k] == v for k, v in fields.items())]


def closes(s, what):
    t = s["tap"]
    eq(t["packets"], sum(t[k] for k in ACCOUNTS), f"{what}: drops are accounted for")
    eq(sum(s["drops"].values()), sum(t[k] for k in ACCOUNTS[:5]), f"{what}: and by their reasons")


def udp(side, n, to, size=20, family=socket.AF_INET):
    with NS[side], socket.socket(family, socket.SOCK_DGRAM) as s:
        for _ in range(n):
            with contextlib.suppress(ConnectionRefusedError):
                s.sendto(bytes(size), to)


def checksum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def ip_frame(proto, payload, dst=B, ethertype=0x800, src=A):
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), 7, 0, 64, proto, 0, socket.inet_aton(src), socket.inet_aton(dst))
    ip = ip[:10] + struct.pack(">H", checksum(ip)) + ip[12:]
    return NS["b"].mac("eth0") + NS["a"].mac("eth0") + struct.pack(">H", ethertype) + ip + payload


def send(frames):
    with packet_socket(NS["a"], "eth0") as s:
        for frame in frames:
            s.send(frame)


def bad_tcp(n):
    return [ip_frame(6, struct.pack(">HHIIBBHHH", 4000 + i, 4433, i, 0, 0x50, 2, 1000, 0xbad, 0)) for i in range(n)]


def bad_udp(n):
    return [ip_frame(17, struct.pack(">HHHH", 4000 + i, 4433, 12, 0xbad) + b"abcd") for i in range(n)]


def test_reasons():
    """For each reason as many records as the kernel counts itself, with the packet's addresses and ports."""
    before = {"NoPorts": snmp("b", "Udp", "NoPorts"), "UdpCsum": snmp("b", "Udp", "InCsumErrors"), "TcpCsum": snmp("b", "Tcp", "InCsumErrors"),
              "NoPorts6": snmp6("b", "Udp6NoPorts"), "Rcvbuf": snmp("b", "Udp", "RcvbufErrors"), "Addr": snmp("b", "Ip", "InAddrErrors"),
              "Unknown": statistics("b", "eth0", "rx_dropped") + statistics("b", "eth0", "rx_nohandler"), "Path": reverse_path("b")}
    t = start("b", "reasons", "--point", "9", "drops:")
    udp("a", 60, (B, 4001))
    udp("a", 50, (ADDRESS[6]["b"], 4002), family=socket.AF_INET6)
    with NS["b"]:
        full = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        open_to_all = socket.create_server((B, 4433))
    full.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    full.bind((B, 4003))
    udp("a", 100, (B, 4003), size=1000)
    send(bad_tcp(30))
    with NS["b"]:
        bound = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    bound.bind((B, 4433))
    send(bad_udp(40))
    send([ip_frame(17, struct.pack(">HHHH", 1, 2, 8, 0), dst="10.99.0.1")] * 20)
    send([NS["b"].mac("eth0") + NS["a"].mac("eth0") + b"\x88\xb5" + bytes(50)] * 10)

    NS["b"].sysctl("ipv4.conf.eth0.rp_filter", 1)
    send([ip_frame(17, struct.pack(">HHHH", 1, 2, 8, 0), src="10.98.0.1")] * 15)
    # So many of each were sent, or did not fit: the kernel's counters say so.
    grown = {key: lambda now=now, key=key: now() - before[key] for key, now in {
        "NoPorts": lambda: snmp("b", "Udp", "NoPorts"), "UdpCsum": lambda: snmp("b", "Udp", "InCsumErrors"),
        "TcpCsum": lambda: snmp("b", "Tcp", "InCsumErrors"), "NoPorts6": lambda: snmp6("b", "Udp6NoPorts"),
        "Rcvbuf": lambda: snmp("b", "Udp", "RcvbufErrors"), "Addr": lambda: snmp("b", "Ip", "InAddrErrors"),
        "Unknown": lambda: statistics("b", "eth0", "rx_dropped") + statistics("b", "eth0", "rx_nohandler"),
        "Path": lambda: reverse_path("b")}.items()}
    for what, key, n, reason, fields in (
            ("UDP to a closed port", "NoPorts", 60, "NO_SOCKET", {"dport": 4001, "src": A, "dst": B, "proto": 17, "ethertype": 2048}),
            ("the same over IPv6", "NoPorts6", 50, "NO_SOCKET", {"dport": 4002, "src": ADDRESS[6]["a"], "ethertype": 34525}),
            ("TCP with a wrong checksum", "TcpCsum", 30, "TCP_CSUM", {"dport": 4433, "proto": 6, "tcp_flags": 2}),
            ("UDP with a wrong checksum", "UdpCsum", 40, "UDP_CSUM", {"dport": 4433, "proto": 17}),
            ("from an address that the way back does not lead to", "Path", 15, "IP_RPFILTER", {"src": "10.98.0.1"}),
            ("to an address of nobody", "Addr", 20, "IP_INADDRERRORS", {"dst": "10.99.0.1"}),
            ("of a protocol that nobody knows", "Unknown", 10, "UNHANDLED_PROTO", {"ethertype": 0x88b5, "src": "::", "dst": "::", "proto": 0})):
        wait(lambda key=key, n=n: grown[key]() == n)
        eq(grown[key](), n, f"{what}: the kernel counts them")
        ok(wait(lambda reason=reason, fields=fields, n=n: len(of(t, reason, **fields)) == n), f"{what}: a record of each, {reason}",
           collections.Counter(r["reason"] for r in records(t)))
    dropped = grown["Rcvbuf"]()
    ok(0 < dropped < 100, "a socket is full", dropped)
    ok(wait(lambda: len(of(t, "SOCKET_RCVBUFF", dport=4003)) == dropped), "a record of each datagram that found it full",
       collections.Counter(r["reason"] for r in records(t)))
    for s in (full, open_to_all, bound):
        s.close()
    stats = t.end()
    here = records(t)
    eq({(r["interface"], r["obs"] & 1023) for r in here}, {("eth0", 9)}, "all at the interface, of the observation point")
    ok(all(re.fullmatch(r"[\w.~]+\+0x[0-9a-f]+(\[\w+\])?", r["place"]) for r in here), "each has a place", {r["place"] for r in here})
    eq({r["place"].split("+")[0] for r in here if r["reason"] == "TCP_CSUM"}, {"tcp_v4_rcv"}, "which is the function that drops it")
    eq(sorted(r["record_seq"] for r in here), list(range(len(here))), "records are numbered")
    eq({key: stats["drops"].get(key) for key in ("TCP_CSUM", "UDP_CSUM", "SOCKET_RCVBUFF", "IP_INADDRERRORS")},
       {"TCP_CSUM": 30, "UDP_CSUM": 40, "SOCKET_RCVBUFF": dropped, "IP_INADDRERRORS": 20}, "drops by reason are the same numbers")
    closes(stats, "reasons")


def tagged(n):
    return [frame[:12] + b"\x81\0\x20\7" + frame[12:] for frame in bad_udp(n)]


def test_tags():
    """The number of a tag in a frame, and what stands behind it."""
    NS["a"].sh("tc qdisc add dev eth0 root blackhole")
    t = start("a", "leaves", "drops:eth0")
    for frame in tagged(20):
        with contextlib.suppress(OSError):  # ENOBUFS
            send([frame])
    ok(wait(lambda: len(of(t, "QDISC_DROP", vlan=7, dport=4433, dst=B)) == 20), "a queue that takes nothing", records(t)[:2])
    dropped = re.search(r"dropped (\d+)", NS["a"].sh("tc -s qdisc show dev eth0"))
    NS["a"].sh("tc qdisc del dev eth0 root")
    ok(dropped and int(dropped.group(1)) >= 20, "it says so itself", dropped)
    closes(t.end(), "leaves")


def test_neighbour():
    """Datagrams to a neighbour that does not answer, dropped while they leave."""
    NS["a"].sysctl("ipv4.neigh.eth0.retrans_time_ms", 50)
    t = start("a", "neighbour", "--rule", "take dport=4009", "--rule", "skip", "drops:eth0")
    udp("a", 3, ("10.83.0.77", 4009))
    ok(wait(lambda: len(of(t, "NEIGH_FAILED", dst="10.83.0.77")) == 3), "a record of each", records(t))
    closes(t.end(), "neighbour")


def test_rules():
    """Rules hold for drops, also when they are read again; drops elsewhere are not told, but counted."""
    rules = lab.path("rules")
    with open(rules, "w", encoding="utf-8") as f:
        f.write("mark dport=4011\nskip\n")
    t = start("b", "rules-b", "--rules", rules, "drops:eth0")
    udp("a", 30, (B, 4011))
    udp("a", 20, (B, 4012))
    udp("b", 10, ("127.0.0.1", 4011))
    udp("a", 40, ("127.0.0.1", 4011))
    ok(wait(lambda: len(records(t)) == 30 and t.look()["tap"]["skipped"] >= 20), "those that rules take", t.look()["tap"])
    ok(wait(lambda: t.look()["tap"]["other_interface"] >= 10 and t.look()["tap"]["other_namespace"] >= 40), "others by their causes", t.look()["tap"])
    with open(rules, "w", encoding="utf-8") as f:
        f.write("take dport=4012 sample=4\nskip\n")
    t.p.send_signal(signal.SIGHUP)
    ok(wait(lambda: "in force: 2" in t.errors()), "other rules are in force", t.errors())
    udp("a", 20, (B, 4012))
    ok(wait(lambda: t.look()["tap"]["not_sampled"] == 15), "one in four of what they take", t.look()["tap"])
    stats = t.end()
    eq(collections.Counter((r["dport"], r["obs"]) for r in records(t)), {(4011, 2048): 30, (4012, 16384): 5}, "marked, and said to be a sample")
    closes(stats, "rules")
    with NS["b"]:
        run = pathline.run("tap", "--drops", "--rule", "take dir=in")
    ok(run.returncode == 2 and "leave dir= out" in run.stderr, "drops have no direction", run.stderr)


def test_flood():
    """200000 drops, of which few records are made: each is in an account, and the counts by reason are exact."""
    before, n = snmp("b", "Udp", "NoPorts"), 200_000
    t = start("b", "flood", "drops:lo?rate=100")
    udp("b", n, ("127.0.0.1", 4021))
    eq(snmp("b", "Udp", "NoPorts") - before, n, "the kernel counts them")
    ok(wait(lambda: t.look()["drops"].get("NO_SOCKET") == n), "and so does the tap", t.look()["drops"])
    stats = t.end()
    here = [r for r in records(t) if r["reason"] == "NO_SOCKET"]
    span_ns = here[-1]["ts_ns"] - here[0]["ts_ns"]
    ok(100 <= len(here) <= 101 + span_ns / 1e7, "no more records than 100 at once and 100 a second", (len(here), span_ns))
    eq(stats["tap"]["records"] + stats["tap"]["rate_limited"], sum(stats["drops"].values()), "each other drop is beyond the rate")
    closes(stats, "flood")


def test_full_ring():
    """A ring that is too small while the tap stands still."""
    t = start("b", "full", "drops:lo?ring=64KiB&rate=1000000")
    t.p.send_signal(signal.SIGSTOP)
    udp("b", 3000, ("127.0.0.1", 4031))
    t.p.send_signal(signal.SIGCONT)
    ok(wait(lambda: t.look()["drops"].get("NO_SOCKET") == 3000), "all are counted", t.look())
    stats = t.end()
    ok(stats["tap"]["ring_full"] > 0, "the ring was full", stats["tap"])
    eq(len(records(t)), stats["tap"]["records"], "what was recorded has come")
    closes(stats, "full ring")


def test_interface_goes():
    """An interface that is removed, and another one of its name."""
    t = start("b", "goes", "--rule", "take dport=4041", "--rule", "skip", "drops:eth0")
    udp("a", 10, (B, 4041))
    ok(wait(lambda: len(records(t)) == 10), "before", records(t))
    NS["b"].ip("link del eth0")
    wire()
    udp("a", 10, (B, 4041))
    ok(wait(lambda: len(records(t)) == 20), "after", t.errors())
    closes(t.end(), "an interface that goes")
    eq(len({r["ifindex"] for r in records(t)}), 2, "each has the index of its interface")


def test_outputs():
    """The same records in a file, over tmpkt/1, in a region, and as counts on the page of metrics."""
    file, region, port = lab.path("x.drop168"), lab.path("x.plr"), 40083
    got = tapping.Tap(NS["b"], "received", "--drops", "-o", "jsonl", f"udp://127.0.0.1:{port}")
    t = start("b", "outputs", "--to", f"file:{file}", "--to", f"region:{region}", "--to", f"udp://127.0.0.1:{port}?records=1",
              "--web", "127.0.0.1:0", "--rule", "take dport=4051", "--rule", "skip", "drops:")
    udp("a", 25, (B, 4051))
    ok(wait(lambda: len(records(t)) == 25 and len(records(got)) == 25), "printed, and received elsewhere", (records(t)[:1], got.errors()))
    url = re.search(r"http://[\d.]+:\d+", t.errors())
    if ok(url is not None, "the page's address is told", t.errors()):
        with NS["b"], urllib.request.urlopen(url.group(0) + "/metrics", timeout=LIMIT) as page:
            text = page.read().decode()
        n = re.search(re.escape(COUNTER % "NO_SOCKET") + r" (\d+)", text)
        ok(n is not None and int(n.group(1)) >= 25, "drops by reason are on the page", [x for x in text.splitlines() if "tap_drops" in x])
    stats = t.end()
    got.end()
    eq(records(got), records(t), "what is received is the same")
    with open(file, "rb") as f:
        data = f.read()
    eq(len(data), 25 * RECORD.size, "the file has them")
    for mine, r in zip(RECORD.iter_unpack(data), records(t)):
        want = (r["ts_ns"], r["sport"], r["dport"], r["proto"], r["wire_len"], r["ethertype"], r["kernel_reason"], r["ifindex"], r["skb_len"],
                r["interface"], r["place"])
        have = (mine[0], mine[3], mine[4], mine[5], mine[12], mine[26], mine[27], mine[28], mine[29], *(x.rstrip(b"\0").decode() for x in mine[30:32]))
        if have != want:
            eq(have, want, "byte by byte")
            break
    else:
        ok(True, "byte by byte")
    rows = pathline.run("region", "dump", "-o", "jsonl", region)
    ok(rows.returncode == 0 and rows.stdout.count('"NO_SOCKET"') == 25, "and the region", (rows.stdout[:300], rows.stderr))
    closes(stats, "outputs")


def test_query():
    """Questions about drops, by the names of reasons, of a live source and of a file."""
    file = lab.path("asked.drop168")
    t = start("b", "asked", "--to", f"file:{file}", "--rule", "take dport=4061", "--rule", "take dport=4433", "--rule", "skip", "drops:eth0")
    with NS["b"]:
        p = lab.start([pathline.PATHLINE, "query", "-o", "jsonl", "SELECT reason, count(*) AS n FROM drops WHERE reason != TCP_CSUM and dport = 4061 "
                       "GROUP BY reason", "drops:eth0"], log=lab.path("query.log"), stdout=open(lab.path("query.out"), "wb"))
    ok(wait(lambda: "asking" in lab.read("query.log")), "a question of a live source", lab.read("query.log"))
    udp("a", 15, (B, 4061))
    send(bad_tcp(5))
    ok(wait(lambda: len(records(t)) == 20), "drops are recorded")
    t.end()
    p.send_signal(signal.SIGTERM)
    ok(wait(lambda: p.poll() is not None), "it ends")
    eq([(r["reason"], r["n"]) for r in map(json.loads, lab.read("query.out").splitlines()) if "reason" in r], [("NO_SOCKET", 15)], "and its row")
    run = pathline.run("query", "-o", "jsonl", "drops_by_reason", file)
    eq({r["reason"]: r["n"] for r in map(json.loads, run.stdout.splitlines())}, {"NO_SOCKET": 15, "TCP_CSUM": 5}, "drops_by_reason of the file")


def test_daemon():
    """Drops of a configuration: to a file, by reason on its page, and to who asks it; what does not go together is refused."""
    config, file = lab.path("drops.yaml"), lab.path("daemon.drop168")
    question = "SELECT interface, place, reason, count(*) AS n FROM drops TUMBLE(ts, 10000h) GROUP BY interface, place, reason"
    text = """taps:
  - name: lost
    sources: ["%s"]
    records: %s
    rules: ["take dport=4071", "skip"]
    to: ["file:%s"]
queries:
  - {name: why, query: "SELECT count(*) AS n FROM %s TUMBLE(ts, 1s)", from: lost, to: [metrics]}
web:
  listen: 127.0.0.1:0
"""
    for source, kind, stream, says in (("packet:eth0", "drops", "drops", "has no records of drops"), ("drops:", "packets", "packets", "records of drops only"),
                                       ("drops:?rate=x", "drops", "drops", "rate=x"), ("drops:", "drops", "packets", "records of drops only")):
        with open(config, "w", encoding="utf-8") as f:
            f.write(text % (source, kind, file, stream))
        with NS["b"]:
            run = pathline.run("run", "-c", config)
        ok(run.returncode != 0 and says in run.stderr, f"{source} with records: {kind}, asked for {stream}: {says}", (run.returncode, run.stderr))
    with open(config, "w", encoding="utf-8") as f:
        f.write(text % ("drops:eth0", "drops", file + '", "jsonl:' + lab.path("daemon.jsonl"), "drops"))
    with NS["b"]:
        p = lab.start([pathline.PATHLINE, "run", "-c", config], log=lab.path("daemon.log"))
    url = wait(lambda: re.search(r"http://[\d.]+:\d+", lab.read("daemon.log")))
    ok(url, "it is up", lab.read("daemon.log"))
    asked = {"query": ["query", "-o", "jsonl", question, url.group(0)], "tail": ["tail", "--url", url.group(0), "--drops", "-o", "jsonl"]}
    with NS["b"]:
        asked = {name: lab.start([pathline.PATHLINE, *args], log=lab.path(f"asked-{name}.log"), stdout=open(lab.path(f"asked-{name}"), "wb"))
                 for name, args in asked.items()}

    def streams():
        with NS["b"], urllib.request.urlopen(url.group(0) + "/api/v1/status", timeout=LIMIT) as answer:
            return [(s["drops"], s["seen"], s["waiting_bytes"]) for s in json.load(answer)["streams"]]
    ok(wait(lambda: streams() == [(True, 0, 0)] * 2), "it is asked for drops", (lab.read("asked-query.log"), lab.read("asked-tail.log")))
    udp("a", 35, (B, 4071))

    def page():
        with NS["b"], urllib.request.urlopen(url.group(0) + "/metrics", timeout=LIMIT) as answer:
            return answer.read().decode()
    ok(wait(lambda: re.search(r'pathline_tap_drops_total\{reason="NO_SOCKET",tap="lost"\} 35\n', page())), "drops by reason are on its page",
       [x for x in page().splitlines() if "drops" in x])
    ok(wait(lambda: streams() == [(True, 35, 0)] * 2), "those who asked have read all", streams())
    for name, one in asked.items():
        one.send_signal(signal.SIGINT)
        ok(wait(lambda one=one: one.poll() is not None), f"{name} ends", lab.read(f"asked-{name}.log"))
    p.send_signal(signal.SIGTERM)
    ok(wait(lambda: p.poll() is not None), "it ends", lab.read("daemon.log"))
    eq(os.path.getsize(file), 35 * RECORD.size, "and the file has a record of each")
    whole = pathline.run("query", "-o", "jsonl", question, file).stdout
    eq(*(sorted(str(pathline.answer(rows))) for rows in (lab.read("asked-query"), whole)), "the answer is that over the file")
    eq(lab.read("asked-tail").splitlines(), lab.read("daemon.jsonl").splitlines(), "and tail printed them")


def test_words():
    cases = (
        (["drops:eth7"], 69, "there is no interface 'eth7'"),
        (["drops:?rate=0"], 2, "from 1 to 10000000"),
        (["--inner", "drops:"], 2, "--inner"),
        (["--drops", "packet:eth0"], 2, "has no records of drops"),
        (["drops:", "packet:eth0"], 2, "has no records of drops"),
        (["--drops", "--flows"], 2, "one kind each"),
        (["--drops", "--rule", "skip", "udp://127.0.0.1:0"], 2, "for drops of this host"),
    )
    for args, code, says in cases:
        with NS["a"]:
            run = pathline.run("tap", *args)
        ok(run.returncode == code and says in run.stderr, f"tap {' '.join(args)}: {code}", f"{run.returncode} {run.stderr}")
    bare = NS["a"].command("setpriv", "--bounding-set", "-perfmon,-bpf,-sys_admin", "--inh-caps", "-all", pathline.PATHLINE, "tap", "--drops")
    run = subprocess.run(bare, capture_output=True, text=True, timeout=LIMIT, check=False)
    ok(run.returncode != 0 and "CAP_PERFMON, CAP_BPF" in run.stderr, "without rights: which are missing", run.stderr)
    enough = NS["a"].command("setpriv", "--bounding-set", "-all,+perfmon,+bpf", "--inh-caps", "-all", pathline.PATHLINE, "tap", "--drops", "--stats", "-o", "jsonl",
                             "--duration", "10ms")
    run = subprocess.run(enough, capture_output=True, text=True, timeout=LIMIT, check=False)
    ok(run.returncode == 3 and "tapping drops:" in run.stderr, "with these two it works", (run.returncode, run.stderr))
    run = pathline.run("doctor")
    ok("drops of the kernel (drops:) can be read" in run.stdout, "doctor says so", run.stdout)
    blind = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /sys/kernel/btf && exec "$@"', "sh", pathline.PATHLINE, "tap", "--drops"]
    run = subprocess.run(blind, capture_output=True, text=True, timeout=LIMIT, check=False)
    ok(run.returncode != 0 and "needs a kernel with BTF" in run.stderr and "CONFIG_DEBUG_INFO_BTF" in run.stderr, "without BTF: what is missing",
       (run.returncode, run.stderr))


def wire():
    network.join(NS["a"], "eth0", NS["b"], "eth0")
    for side in "ab":
        NS[side].up("eth0", ADDRESS[4][side] + "/24", ADDRESS[6][side] + "/64")
    network.wait_for_carrier(*[(NS[side], "eth0") for side in "ab"])


for one in "ab":
    NS[one] = network.Namespace(f"drop-{one}")
wire()
lab.run(test_reasons, test_tags, test_neighbour, test_rules, test_flood, test_full_ring, test_outputs, test_query, test_daemon, test_words, test_interface_goes)
sys.exit(tap.end())
