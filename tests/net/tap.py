# SPDX-License-Identifier: BSD-2-Clause
"""A tap on a wire between two namespaces, beside tcpdump: of real TCP, of UDP, of what enters and what leaves; the way over tmpkt/1 to another host; AF_XDP for mirrored traffic; losses that are counted; an interface that
goes and comes back; hostile datagrams.

usage: tap.py PATHLINE [TEST…]
"""
import collections
import json
import os
import random
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, network, pathline, shark, tap, tapping  # noqa: E402
from lib.pathline import PATHLINE  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.tapping import closes, received  # noqa: E402
from lib.wait import LIMIT, wait  # noqa: E402

A, B = "10.78.0.1", "10.78.0.2"
PORT = 40050
SEED = 20261124
WIRE = tapping.Wire("tap", A, B)
NS, frames, send_frames = WIRE.ns, WIRE.frames, WIRE.send_frames
tcp_transfer, udp_send = WIRE.tcp_transfer, WIRE.udp_send


def Tap(side, name, *args):  # noqa: N802
    return tapping.Tap(NS[side], name, *args)


KEYS = ("src", "dst", "sport", "dport", "tcp_seq", "tcp_ack", "tcp_flags", "tcp_win", "wire_len", "ip_id", "tsval", "tsecr", "ttl")


def test_beside_tcpdump():
    """The kernel hands both the same packets; what tshark reads from tcpdump's file is what the tap recorded. Frames of several
    packets: wire_packets.py."""
    WIRE.single()
    if shutil.which("tcpdump") is None:
        tap.skip("beside tcpdump", "missing: tcpdump")
        return
    pcap = lab.path("wire.pcap")
    dump = lab.start(NS["a"].command("tcpdump", "-i", "eth0", "-s", "200", "-B", "32768", "-Z", "root", "-U", "-w", pcap), log=lab.path("dump"))
    ok(wait(lambda: "listening on" in lab.read("dump")), "tcpdump is up")
    t = Tap("a", "beside", "-o", "jsonl", "--point", "9", "packet:eth0?ring=65536")
    ok(tcp_transfer(3_000_000), "a TCP transfer is whole while it is tapped")
    udp_send(500)
    NS["a"].sh(f"ping -q -c 3 -i 0.2 {B}")

    def whole():
        """more records than datagrams and echoes, and as many as packets are in tcpdump's file"""
        n = len([r for r in t.lines() if "src" in r])
        return n > 510 and n == len([r for r in shark.records(pcap) if r is not None])
    wait(whole)
    dump.send_signal(signal.SIGTERM)
    dump.wait(LIMIT)
    stats = t.end()
    want = [r for r in shark.records(pcap) if r is not None]
    count = lambda rows: collections.Counter(tuple(r[k] for k in KEYS) for r in rows)  # noqa: E731
    missing, more = count(want) - count(t.records), count(t.records) - count(want)
    eq((list(missing)[:3], list(more)[:3]), ([], []), f"the same {len(want)} packets as tcpdump has")
    wrong = [r for r in t.records if r["obs"] != (9 | (4096 if r["src"] == A else 0))]
    eq(wrong[:2], [], "what leaves is marked so, with the observation point")
    closes(stats, "beside tcpdump")
    eq(stats["ports"]["kernel_drops"], 0, "nothing dropped")


def test_two_hosts():
    """Emitter and receiver: every record of the one is one of the other's."""
    far = Tap("b", "far", "-o", "jsonl", f"udp://{B}:{PORT}")
    near = Tap("a", "near", "-o", "jsonl", "--exporter", "7", "--rule", f"skip port={PORT}", "--rule", "skip proto=1",
               "--to", f"udp://{B}:{PORT}?kind=pkt96", "packet:eth0")
    ok(tcp_transfer(500_000, 5001), "a TCP transfer")
    udp_send(1000)
    wait(lambda: near.look()["outputs"][0]["sent"] >= 1000)

    def quiet():
        """what was sent has come, and no more comes"""
        sent = near.look()["outputs"][0]
        return sent["records"] == sent["sent"] == far.look()["tmpkt"]["records"]
    ok(wait(quiet), "all has come")
    a, b = near.end(), far.end()
    names = set(near.records[0])
    eq(names, set(far.records[0]), "the same fields")
    count = lambda rows: collections.Counter(json.dumps(r, sort_keys=True) for r in rows)  # noqa: E731
    eq(count(near.records) - count(far.records), collections.Counter(), "every record has come, whole")
    eq(len(near.records), len(far.records), "and no other")
    closes(a, "near")
    closes(b, "far")
    eq((b["tmpkt"]["lost"], b["tmpkt"]["duplicates"], b["tmpkt"]["exporters"]), (0, 0, 1), "no datagram lost or repeated")
    ok(a["tap"]["skipped"] > 0, "its own datagrams were skipped")
    ok("clock kernel" in near.errors(), "which clock is said at the start", near.errors())
    eq((a["tap"]["clock"], b["tap"]["clock"]), ("kernel", "sender"), "and in the accounts; datagrams do not say it")


def test_lanes():
    """Source ports are chosen by the flow's hash: both directions of a flow come from one, flows from all of them."""
    trace, lanes = lab.path("lanes.pcap"), collections.defaultdict(set)
    eq(pathline.run("gen", "packets", "--duration", "3s", "-w", trace).returncode, 0, "traffic of many flows")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)  # SO_RCVBUFFORCE
        s.bind(("127.0.0.1", 0))
        sent = pathline.run("tap", "--to", f"udp://127.0.0.1:{s.getsockname()[1]}?records=1&lanes=4", trace)
        eq(sent.returncode, 0, "its records are sent")
        s.setblocking(False)
        while select.select([s], [], [], 0)[0]:
            data, (_, port) = s.recvfrom(65536)
            if data[6:8] == b"\1\0":
                ends = [data[32 + at:32 + at + 16] + data[32 + of:32 + of + 2] for at, of in ((8, 40), (24, 42))]
                lanes[data[32 + 44], frozenset(ends)].add(port)
    ok(len(lanes) > 100, "there were many", len(lanes))
    eq({len(ports) for ports in lanes.values()}, {1}, "a flow has one source port, both ways")
    eq(len(set.union(*lanes.values())), 4, "and flows have all of them")


def test_sampled_over():
    """A sample that goes on to another host stands for all packets there, too: weights come along without being asked for."""
    far = Tap("b", "weights-far", "-o", "jsonl", "--flows", f"udp://{B}:{PORT}")
    near = Tap("a", "weights-near", "--rule", "take proto=udp dport=6001 sample=10", "--rule", "skip", "--to", f"udp://{B}:{PORT}", "packet:eth0")
    udp_send(1000, port=6001)
    ok(wait(lambda: far.look()["tmpkt"]["records"] == 100), "one in ten has come")
    near.end()
    far.end()
    eq([(r["dport"], r["pkts_fwd"], r["records"], r["obs"] & 16384) for r in far.records], [(6001, 1000, 100, 16384)], "and stands for ten")


def test_clock_told():
    """Datagrams that say which clock the records' times are of."""
    far = Tap("b", "told", "-o", "jsonl", f"udp://{B}:{PORT}")
    near = Tap("a", "telling", "--rule", "take proto=udp dport=6000", "--rule", "skip", "--to", f"udp://{B}:{PORT}?clock=yes", "packet:eth0")
    udp_send(100)
    ok(wait(lambda: far.look()["tap"]["records"] == 100), "records come", far.look())
    closes(near.end(), "telling")
    b = far.end()
    eq((b["tap"]["clock"], b["tap"]["clocks"]["kernel"]), ("kernel", 100), "and the clock of their times")


def test_mirrored():
    t = Tap("b", "mirrored", "-o", "jsonl", "--inner", "afxdp:eth0")
    made = frames(2000)
    for at in range(0, len(made), 100):
        send_frames(made[at:at + 100])
        wait(lambda at=at: len([r for r in t.lines() if "src" in r and r["src"] == "10.9.0.1"]) >= at + 100)
    stats = t.end()
    got = [r["ip_id"] for r in t.records if r["src"] == "10.9.0.1"]
    eq(got, list(range(2000)), "every frame that entered, in order")
    closes(stats, "mirrored")
    eq((stats["tap"]["clock"], stats["tap"]["clocks"]["tai"]), ("tai", stats["tap"]["records"]), "the kernel stamped every frame as it entered")
    times = [r["ts_ns"] for r in t.records if r["src"] == "10.9.0.1"]
    ok(times == sorted(times) and len(set(times)) > 1900, "each by itself, in order", (len(times), len(set(times))))
    ok(abs(times[-1] - time.time_ns()) < 600_000_000_000, "by the time of day", times[-1])


def sealed(number, exporter=3):
    """A datagram with one record."""
    return b"TPK1" + struct.pack("<BBHIIQQ", 1, 1, 1, exporter, number, 0, 0) + bytes(64)


def test_by_frames():
    """Records that others send, taken off the interface by their UDP port, with the accounts of a socket; the rest is the host's."""
    for source in ("afxdp:eth0?carries=tmpkt", f"packet:eth0?ring=1024&carries=tmpkt&port={PORT}"):
        kind = source.split(":")[0]
        far = Tap("b", "frames-" + kind, "-o", "jsonl", source)
        near = Tap("a", "frames-near-" + kind, "--rule", "take proto=udp dport=6000", "--rule", "skip",
                   "--to", f"udp://{B}:{PORT}?kind=pkt96&clock=yes", "packet:eth0")
        udp_send(500)
        ok(wait(lambda: far.look()["tap"]["records"] == 500), f"{kind}: all records come", far.look())
        near.end()
        with NS["a"]:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
                for number in (10, 11, 14, 13, 13, 16):
                    s.sendto(sealed(number), (B, PORT))
                s.sendto(b"TPK2" + bytes(92), (B, PORT))
                s.sendto(sealed(1)[:-1], (B, PORT))
        ok(wait(lambda: far.look()["tmpkt"]["bad_length"] == 1), "and datagrams of another exporter", far.look()["tmpkt"])
        ok(tcp_transfer(200_000, 5010), "the host's own traffic goes on")
        stats = far.end()
        t = stats["tmpkt"]
        eq((t["lost"], t["duplicates"], t["reordered"], t["exporters"]), (2, 1, 1, 2), "lost, duplicate and reordered by the exporters' numbers")
        eq((t["bad_magic"], t["bad_length"], t["bad_frame"]), (1, 1, 0), "malformed by cause")
        eq(t["datagrams"], t["accepted"] + t["duplicates"] + t["bad_magic"] + t["bad_length"], "every datagram is one of these")
        eq((stats["tap"]["clocks"]["kernel"], stats["tap"]["clocks"]["sender"]), (500, 5), "clocks as they were told")
        closes(stats, kind)
        ok("clock sender" in far.errors(), "the start says that records come from elsewhere", far.errors())


def test_overrun():
    """A ring that is too small while the tap stands still: what it did not get is counted."""
    t = Tap("b", "overrun", "--to", "file:" + lab.path("overrun.pkt64"), "packet:eth0?ring=64&block=8KiB")
    t.p.send_signal(signal.SIGSTOP)
    with NS["b"]:
        before = received()
    send_frames(frames(3000))
    with NS["b"]:
        wait(lambda: received() - before >= 3000)
        came = received() - before
    t.p.send_signal(signal.SIGCONT)
    wait(lambda: t.look()["tap"]["packets"] > 0)
    stats = t.end()
    total = stats["tap"]["packets"] + stats["ports"]["kernel_drops"]
    ok(stats["ports"]["kernel_drops"] > 0, "the kernel dropped some")
    ok(came <= total <= came + 20, f"packets and drops are what came: {came}, {total}")
    eq(os.path.getsize(lab.path("overrun.pkt64")), 64 * stats["tap"]["records"], "the file holds the records")
    closes(stats, "overrun")


def test_interface_goes():
    t = Tap("b", "goes", "-o", "jsonl", "--rule", "take src=10.9.0.1", "--rule", "skip", "packet:eth0")
    send_frames(frames(10))
    ok(wait(lambda: len([r for r in t.lines() if "src" in r]) == 10), "before")
    NS["b"].ip("link set eth0 down")
    ok(wait(lambda: "down" in t.errors()), "it says that the interface is down", t.errors())
    NS["b"].ip("link set eth0 up")
    network.wait_for_carrier((NS["a"], "eth0"), (NS["b"], "eth0"))
    ok(wait(lambda: re.search("is (back|up)|again", t.errors())), "and that it is back", t.errors())
    send_frames(frames(10))
    ok(wait(lambda: len([r for r in t.lines() if "src" in r]) == 20), "after")
    closes(t.end(), "goes")


def test_hostile():
    """Datagrams of everybody: each is counted, none ends the receiver, what is right among them comes."""
    dice = random.Random(SEED)
    t = Tap("b", "hostile", "-o", "jsonl", f"udp://{B}:{PORT}?rcvbuf=8MiB")
    good = b"TPK1" + struct.pack("<BBHIIQQ", 1, 1, 1, 3, 0, 0, 0) + bytes(64)
    sent, right = 0, 0
    with NS["a"]:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            for i in range(6000):
                data = bytearray(good)
                struct.pack_into("<I", data, 12, right)
                kind = i % 6
                if kind == 0:
                    right += 1
                elif kind == 1:
                    data = data[:dice.randrange(96)]
                elif kind == 2:
                    # The three upper bits of the kind's byte say which clock.
                    at = 4 + dice.randrange(2)
                    data[at] ^= 1 << dice.randrange(3, 8 if at == 4 else 5)
                elif kind == 3:
                    struct.pack_into("<H", data, 6, dice.choice((0, 2, 255, 65535)))
                elif kind == 4:
                    data = bytearray(dice.randbytes(dice.randrange(1400)))
                else:
                    data += dice.randbytes(1 + dice.randrange(63))
                s.sendto(data, (B, PORT))
                sent += 1
                if i % 200 == 199:
                    wait(lambda n=sent: t.look()["tmpkt"]["datagrams"] >= n)
    stats = t.end()["tmpkt"]
    faults = sum(stats[k] for k in ("too_short", "bad_magic", "bad_version", "bad_kind", "bad_length"))
    eq(stats["datagrams"], sent, "all were looked at")
    eq(stats["accepted"] + stats["duplicates"] + faults, sent, "each is accepted, a duplicate or of a fault")
    eq(stats["accepted"], right, "those that are right are accepted")
    eq((stats["lost"], stats["duplicates"]), (0, 0), "their sequence is whole")


def test_flows():
    """Each packet is in one record of a flow; a connection's record comes soon after its end, from a live interface too."""
    far = Tap("b", "flows-far", "-o", "jsonl", "--flows", f"udp://{B}:{PORT}")
    t = Tap("a", "flows", "-o", "jsonl", "--flows", "--rule", "take proto=tcp", "--rule", "skip", "--to", f"udp://{B}:{PORT}?kind=flow288",
            "packet:eth0?ring=65536")
    ok(tcp_transfer(1_000_000, 5002), "a TCP transfer")
    ended = lambda: [r for r in t.lines() if r.get("end_reason") == "finished"]  # noqa: E731
    ok(wait(ended), "its record comes while the tap goes on")
    stats = t.end()
    rows = t.records
    eq([(r["src"], r["dst"], r["dport"]) for r in rows], [(A, B, 5002)], "one record for both directions")
    row = rows[0]
    eq(row["pkts_fwd"] + row["pkts_rev"], stats["tap"]["records"], "all packets are in it")
    ok(row["bytes_fwd"] > 1_000_000 > row["bytes_rev"], "the bytes of each direction")
    eq((row["flags_fwd"] & 3, row["flags_rev"] & 3), (3, 3), "SYN and FIN of both sides")
    ok(row["hs_external_us"] + row["hs_internal_us"] > 0 and row["rtt_min_us"] <= row["rtt_avg_us"], "handshake and round-trip times")
    eq(stats["flows"]["ended"]["finished"], 1, "counted by its end")
    ok(wait(lambda: len([r for r in far.lines() if "src" in r]) == len(rows)), "it comes to another host")
    far.end()
    eq(far.records, rows, "by tmpkt/1, whole")
    closes(stats, "flows")


def test_listening():
    """A tap that starts in the midst of a connection whose ports tell nothing: at the server's host the socket that listens does, and
    the role stays when that is closed. At the client's host nothing listens: it is not known, and stays so."""
    with NS["b"]:
        server = socket.create_server((B, 40000))
    with NS["a"]:
        client = socket.create_connection((B, 40000), source_address=(A, 35000))
    accepted, _ = server.accept()

    def talk():
        client.sendall(b"question")
        accepted.recv(100)
        accepted.sendall(b"answer")
        client.recv(100)

    taps = {side: Tap(side, f"listening-{side}", "-o", "jsonl", "--flows", "--flow-active", "1s", "--rule", "take port=40000", "--rule", "skip",
                      "packet:eth0") for side in "ab"}
    ok(taps["b"].look()["flows"]["listening"]["sockets"] >= 1, "the tap knows of the socket")

    def records(side):
        talk()
        return [r for r in taps[side].lines() if r.get("end_reason") == "active"]

    ok(wait(lambda: records("a") and records("b")), "a first record on each side")
    server.close()
    ok(wait(lambda: taps["b"].look()["flows"]["listening"]["sockets"] == 0), "the tap has found out that it listens no more")
    n = {side: len(records(side)) for side in "ab"}
    ok(wait(lambda: all(len(records(side)) > n[side] + 1 for side in "ab")), "and further ones")
    client.close()
    accepted.close()
    for t in taps.values():
        t.end()
    rows = taps["b"].records
    eq({(r["role"], r["role_by"]) if r["sport"] == 35000 else (r["sport"], r["role"], r["role_by"]) for r in rows},
       {("client", "listening")} if rows[0]["sport"] == 35000 else {(40000, "server", "listening")}, "one role in all of its records, by what listens")
    ok(rows[-1]["flow_flags"] == 1 and len(rows) > 3, "of which there are several", len(rows))
    eq({(r["role"], r["role_by"]) for r in taps["a"].records}, {("unknown", "nothing")}, "at the client's host it is not known")


def test_loopback():
    """Of a loopback each packet is there once, not as it leaves and again as it enters."""
    NS["a"].ip("link set lo up")
    taps = [Tap("a", f"lo-{kind}", "-o", "jsonl", "--flows", f"{kind}:lo") for kind in ("packet", "tc")]
    with NS["a"]:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as there, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            there.bind(("127.0.0.1", 0))
            for _ in range(50):
                s.sendto(b"x", there.getsockname())
        with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as c:
            other, _ = server.accept()
            for _ in range(20):
                c.sendall(b"y" * 100)
                other.recv(1000)
            other.close()
    for t in taps:
        ok(wait(lambda t=t: any(r.get("proto") == 6 for r in t.lines())), f"{t.name}: the connection is over")
        t.end()
        udp, tcp = ([r for r in t.records if r["proto"] == proto] for proto in (17, 6))
        eq([(r["pkts_fwd"], r["pkts_rev"]) for r in udp], [(50, 0)], f"{t.name}: 50 datagrams are 50 packets")
        eq([(r["bytes_fwd"] >= 2000, r["retrans_fwd"], r["retrans_rev"]) for r in tcp], [(True, 0, 0)], f"{t.name}: no segment was sent again")


def test_query():
    """A standing question over a live interface: rows come when windows close, and a first crossing at once."""
    out = lab.path("query.out")
    with open(out, "w", encoding="utf-8") as f:
        q = lab.start(NS["b"].command(PATHLINE, "query", "-o", "jsonl", "SELECT dst, count(*) AS n FROM packets TUMBLE(ts, 1s) "
                                      "WHERE udp and dport = 6100 GROUP BY dst HAVING n >= 40 EMIT FIRST", "packet:eth0"),
                      log=lab.path("query.err"), stdout=f)
    ok(wait(lambda: "asking" in lab.read("query.err")), "it asks", lab.read("query.err"))
    rows = lambda: pathline.jsonl(lab.read("query.out"))  # noqa: E731
    udp_send(30, port=6100)
    udp_send(500, port=6100)
    ok(wait(lambda: [r for r in rows() if not r["final"]]), "a row at the crossing")
    ok(wait(lambda: [r for r in rows() if r["final"]]), "and one when the window closes, without further packets")
    q.send_signal(signal.SIGTERM)
    eq(q.wait(LIMIT), 0, "ended")
    eq({r["dst"] for r in rows()}, {B}, "of the host")
    ok(sum(r["n"] for r in rows() if r["final"]) <= 530 and all(r["n"] >= 40 for r in rows()), "counts", rows())


def listening_port():
    """The one TCP port that is listened on in A's namespace."""
    with NS["a"], open("/proc/thread-self/net/tcp", encoding="ascii") as f:
        rows = [line.split() for line in f.readlines()[1:]]
    ports = [int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A"]
    return ports[0] if len(ports) == 1 else None


def test_kafka():
    """Into a topic of a broker (librdkafka's mock cluster, within kcat), and read there by kcat."""
    if shutil.which("kcat") is None:
        tap.skip("into Kafka", "missing: kcat")
        return
    broker = lab.start(NS["a"].command("kcat", "-C", "-q", "-t", "hold", "-b", "127.0.0.1:1", "-X", "test.mock.num.brokers=1"),
                       log=lab.path("broker"))
    port = wait(listening_port)
    far = Tap("a", "kafka", "--exporter", "5", "--to", f"kafka://127.0.0.1:{port}/packets?compression.codec=lz4&records=100",
              "--to", "file:" + lab.path("kafka.pkt64"), "packet:eth0?ring=65536")
    ok(tcp_transfer(300_000, 5003), "a TCP transfer")
    udp_send(2000)
    ok(wait(lambda: far.look()["outputs"][0]["delivered"] > 2000), "the broker acknowledges")
    stats = far.end()
    closes({"tap": stats["tap"], "outputs": stats["outputs"][1:]}, "kafka")
    kafka = stats["outputs"][0]
    eq(kafka["put"], stats["tap"]["records"], "every record was given to the producer")
    eq(kafka["put"], kafka["delivered"] + sum(kafka["dropped"].values()), "put = delivered + dropped, nothing waits")
    eq(sum(kafka["dropped"].values()), 0, "nothing dropped")
    with NS["a"]:
        read = subprocess.run(["kcat", "-C", "-q", "-e", "-b", f"127.0.0.1:{port}", "-t", "packets", "-f", "%s"], capture_output=True,
                              timeout=2 * LIMIT, check=True).stdout
        sizes = subprocess.run(["kcat", "-C", "-q", "-e", "-b", f"127.0.0.1:{port}", "-t", "packets", "-f", "%S\n"],
                               capture_output=True, text=True, timeout=2 * LIMIT, check=True).stdout
    cut = lambda data: sorted(data[at:at + 64] for at in range(0, len(data), 64))  # noqa: E731
    with open(lab.path("kafka.pkt64"), "rb") as f:
        eq(cut(read) == cut(f.read()), True, "kcat reads the bytes that the file has")
    sizes = [int(line) for line in sizes.splitlines()]
    ok(all(size % 64 == 0 and 0 < size <= 6400 for size in sizes), "messages of up to 100 whole records", sizes[:5])
    topic = f"kafka://127.0.0.1:{port}/packets?auto.offset.reset=earliest"
    question = "SELECT proto, count(*) AS n, sum(wire_len) AS bytes FROM packets GROUP BY proto"
    with NS["a"]:
        alone = pathline.run("query", "-o", "jsonl", "--duration", "8s", question, topic)
        stored = pathline.run("query", "-o", "jsonl", question, lab.path("kafka.pkt64"))
    rows = lambda run: sorted(run.stdout.splitlines())  # noqa: E731
    eq(rows(alone), rows(stored), "a question has the same answer over the topic and over the file")
    broker.kill()
    broker.wait()
    none = NS["a"].command(PATHLINE, "tap", "--to", f"kafka://127.0.0.1:{port}/packets", "packet:eth0")
    run = subprocess.run(none, capture_output=True, text=True, timeout=2 * LIMIT, check=False)
    ok(run.returncode == 69 and f"127.0.0.1:{port}" in run.stderr, "without a broker it says so", run.stderr)


def test_words():
    """What a user reads."""
    cases = (
        (["nonexistent.pcap"], 69, "nonexistent.pcap"),
        (["packet:eth7"], 69, "eth7"),
        (["packet:eth0?port=53"], 2, "use --rule"),
        (["packet:eth0?hwtstamp=yes"], 69, "has no hardware timestamps"),
        (["tc:eth0?hwtstamp=yes"], 69, "ethtool -T eth0"),
        (["packet:eth0?hwtstamp=perhaps"], 2, "hwtstamp=perhaps"),
        (["packet:eth0?carries=reports"], 2, "write carries=tmpkt"),
        (["afxdp:eth0?carries=tmpkt&port=0"], 2, "port=0"),
        (["ioam6:"], 2, "no packets for a tap"),
        (["--to", "tcp://1.2.3.4:5", "packet:eth0"], 2, "udp://HOST:PORT"),
        (["--to", f"udp://{B}:1?records=140", "packet:eth0"], 2, "records"),
        (["--to", f"udp://{B}:1?rekords=1", "packet:eth0"], 2, "rekords"),
        (["--to", "file:/nowhere/x", "packet:eth0"], 69, "/nowhere/x"),
        (["--flows", "--to", f"udp://{B}:1?kind=pkt96", "packet:eth0"], 2, "flow128 or flow288"),
        (["--dns", "--to", f"udp://{B}:1?kind=pkt96", "packet:eth0"], 2, "not of dns"),
        (["--to", "kafka://127.0.0.1?format=json", "packet:eth0"], 2, "kafka://HOST"),
        (["--to", "kafka://127.0.0.1/t?kind=pkt32", "packet:eth0"], 2, "pkt64 or pkt96"),
        (["--to", "kafka://127.0.0.1/t?acks=maybe", "packet:eth0"], 2, "acks"),
        (["--flows", "--flow-table", "0", "packet:eth0"], 2, "flow"),
        (["--point", "1024", "packet:eth0"], 2, "at most 1023"),
        (["--rule", "take colour=red", "packet:eth0"], 2, "colour"),
        ([], 2, "missing SOURCE"),
    )
    for args, code, says in cases:
        with NS["a"]:
            run = pathline.run("tap", *args)
        ok(run.returncode == code and says in run.stderr, f"tap {' '.join(args)}: {code}", f"{run.returncode} {run.stderr}")


WIRE.make()
lab.run(test_beside_tcpdump, test_two_hosts, test_lanes, test_sampled_over, test_clock_told, test_by_frames, test_mirrored, test_overrun, test_interface_goes, test_hostile, test_flows, test_listening, test_loopback, test_query, test_kafka, test_words)
sys.exit(tap.end())
