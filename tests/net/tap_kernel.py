# SPDX-License-Identifier: BSD-2-Clause
"""The tap in the kernel on a wire between two namespaces: beside tcpdump and beside the tap by a packet socket, of real TCP
and of UDP; beside programs of others; rules that change while it runs; a full ring; kill -9; an
interface that goes and comes back; traffic that is as before.

usage: tap_kernel.py PATHLINE REFUSE [TEST…]
"""
import collections
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import foreign, lab, network, pathline, shark, tap, tapping  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.tapping import closes, received  # noqa: E402
from lib.wait import LIMIT, wait  # noqa: E402

REFUSE = os.path.abspath(sys.argv.pop(2))
A, B = "10.79.0.1", "10.79.0.2"
WIRE = tapping.Wire("tapk", A, B)
NS, frames, send_frames = WIRE.ns, WIRE.frames, WIRE.send_frames
tcp_transfer, udp_send = WIRE.tcp_transfer, WIRE.udp_send
FIELDS = ("src", "dst", "sport", "dport", "proto", "ttl", "tos", "tcp_seq", "tcp_ack", "tcp_flags", "tcp_win", "wire_len", "pay_len",
          "tsval", "tsecr", "mss", "tcp_opts", "ip_id", "frag_off", "vlan", "flow_hash")
KEYS = ("src", "dst", "sport", "dport", "tcp_seq", "tcp_ack", "tcp_flags", "tcp_win", "wire_len", "ip_id", "tsval", "tsecr", "ttl")


def start(side, name, *args):
    return tapping.Tap(NS[side], name, *args)


def records_of(t):
    return [r for r in t.lines() if "src" in r]


def matches(stats):
    return [r["matches"] for r in stats["rules"]]


def count(rows, keys=FIELDS, out=False):
    return collections.Counter(tuple(r[k] for k in keys) + ((r["obs"],) if out else ()) for r in rows)


def programs(t):
    """The programs that a tap has attached."""
    found, folder = set(), f"/proc/{t.p.pid}/fdinfo"
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), encoding="ascii") as f:
            found.update(re.findall(r"^prog_id:\s*(\d+)", f.read(), re.M))
    return found


def gone(ids):
    return bool(ids) and all(subprocess.run(["bpftool", "prog", "show", "id", i], capture_output=True, check=False).returncode for i in ids)


def test_both_directions():
    """tc beside tcpdump and beside a packet socket: the same packets, with the same values, in the same direction. Frames of several
    packets: wire_packets.py."""
    WIRE.single()
    if shutil.which("tcpdump") is None:
        tap.skip("both directions", "missing: tcpdump")
        return
    pcap = lab.path("wire.pcap")
    dump = lab.start(NS["a"].command("tcpdump", "-i", "eth0", "-s", "200", "-B", "32768", "-Z", "root", "-U", "-w", pcap), log=lab.path("dump"))
    ok(wait(lambda: "listening on" in lab.read("dump")), "tcpdump is up")
    kernel = start("a", "kernel", "-o", "jsonl", "--point", "9", "tc:eth0?ring=16MiB")
    copies = start("a", "copies", "-o", "jsonl", "--point", "9", "packet:eth0?ring=65536")
    ok(tcp_transfer(3_000_000), "a TCP transfer is whole while it is tapped")
    udp_send(500)
    udp_send(20, size=4000, port=6001)

    def whole():
        n = [len(records_of(t)) for t in (kernel, copies)]
        return n[0] > 500 and n[0] == n[1] == len([r for r in shark.records(pcap) if r is not None])
    wait(whole)
    dump.send_signal(signal.SIGTERM)
    dump.wait(LIMIT)
    attached = programs(kernel)
    stats = kernel.end()
    copies.end()
    want = [r for r in shark.records(pcap) if r is not None]
    eq(len(kernel.records), len(want), f"as many records as tcpdump has packets: {len(want)}")
    missing, more = count(want, KEYS) - count(kernel.records, KEYS), count(kernel.records, KEYS) - count(want, KEYS)
    eq((list(missing)[:3], list(more)[:3]), ([], []), "and the same")
    missing = count(copies.records, out=True) - count(kernel.records, out=True)
    eq(list(missing)[:3], [], "every value is that of the tap by a packet socket, with direction and observation point")
    ok(any(r["frag_off"] for r in kernel.records), "fragments too")
    eq(sorted(r["record_seq"] for r in kernel.records), list(range(len(kernel.records))), "records are numbered")
    times = {(r["src"], r["ip_id"], r["tcp_seq"], r["tcp_flags"], r["sport"], r["frag_off"]): r["ts_ns"] for r in copies.records}
    apart = [abs(times[k] - r["ts_ns"]) for r in kernel.records
             if (k := (r["src"], r["ip_id"], r["tcp_seq"], r["tcp_flags"], r["sport"], r["frag_off"])) in times]
    ok(apart and sorted(apart)[len(apart) // 2] < 1_000_000_000, "times are those of the day", sorted(apart)[-3:])
    closes(stats, "both directions")
    ok(wait(lambda: gone(attached)), "the programs are gone with the tap", attached)


def test_entering():
    """XDP: what enters, before the stack, beside the tap by a packet socket."""
    kernel = start("b", "xdp", "-o", "jsonl", "xdp:eth0")
    copies = start("b", "xdp-copies", "-o", "jsonl", "--rule", "skip dir=out", "packet:eth0?ring=65536")
    ok(tcp_transfer(1_000_000, 5001), "a TCP transfer is whole")
    udp_send(500)
    wait(lambda: len(records_of(kernel)) == len(records_of(copies)) > 500)
    attached = programs(kernel)
    stats = kernel.end()
    copies.end()
    eq(list((count(copies.records) - count(kernel.records)))[:3], [], "all that enters")
    eq(len(kernel.records), len(copies.records), "and nothing else")
    closes(stats, "entering")
    ok(wait(lambda: gone(attached)), "the program is gone with the tap", attached)


def rules_of(write):
    write("take proto=udp dport=6200\n")
    return lab.path("rules")


def test_rules_change():
    """Rules of a file, read again at SIGHUP, without a packet that is not accounted for; a fault leaves those in force."""
    rules = lab.path("rules")

    def write(text):
        with open(rules, "w", encoding="utf-8") as f:
            f.write(text)
    write("# UDP to 6100 only\ntake dir=out proto=udp dport=6100\nskip\n")
    for source in ("tc:eth0", "packet:eth0"):
        write("# UDP to 6100 only\ntake dir=out proto=udp dport=6100\nskip\n")
        t = start("a", "rules-" + source[:2], "-o", "jsonl", "--rules", rules, source)
        udp_send(40, port=6100)
        udp_send(30, port=6200)
        ok(wait(lambda: len(records_of(t)) == 40 and t.look()["tap"]["skipped"] >= 30), f"{source}: what the rules take", t.look()["tap"])
        ok("1 rule, then skip" in t.errors(), "it says how many there are, and what becomes of the rest", t.errors())
        s = t.look()
        eq([(r["rule"], r["action"]) for r in s["rules"]],
           [("take proto=udp dport=6100 dir=out", "take"), ("skip", "skip"), ("default take", "take")], "rules by their texts")
        eq(matches(s), [40, s["tap"]["skipped"], 0], "packets that each matched")
        write("mark dir=out dport=6200 sample=5\nskip\n")
        t.p.send_signal(signal.SIGHUP)
        ok(wait(lambda: "in force: 2" in t.errors()), "it says that others are in force", t.errors())
        udp_send(40, port=6100)
        udp_send(50, port=6200)
        ok(wait(lambda: t.look()["tap"]["not_sampled"] == 40), "one in five of what the others take", t.look()["tap"])
        s = t.look()
        ok(matches(s)[0] == 50 and matches(s)[1] >= 40 and matches(s)[2] == 0, "matches begin anew", s["rules"])
        write("take colour=red\n")
        t.p.send_signal(signal.SIGHUP)
        ok(wait(lambda: "stay as they are" in t.errors()), "a fault is told, with its line", t.errors())
        udp_send(5, port=6200)
        ok(wait(lambda: t.look()["tap"]["not_sampled"] == 44), "and the rules stay", t.look()["tap"])
        os.rename(rules, rules + ".kept")
        os.mkfifo(rules)
        t.p.send_signal(signal.SIGHUP)
        ok(wait(lambda: "is no regular file" in t.errors()), "a pipe without a writer is not waited for", t.errors())
        os.unlink(rules)
        stats = t.end()
        got = collections.Counter((r["dport"], r["obs"]) for r in t.records)
        eq(got, {(6100, 4096): 40, (6200, 4096 | 2048 | 16384): 11}, f"{source}: marked, and said to be a sample")
        closes(stats, "rules")
    # The fourth change comes back to the memory of the first rules.
    t = start("a", "rules-again", "-o", "jsonl", "--rules", rules_of(write), "--rule", "skip proto=17 dport=6300", "tc:eth0?dir=out")
    for turn in range(1, 6):
        udp_send(turn, port=6300)
        udp_send(10 * turn, port=6400)
        ok(wait(lambda turn=turn: matches(t.look())[0] == turn and matches(t.look())[-1] >= 10 * turn), f"turn {turn}: its own matches, and those of the default", t.look()["rules"])
        t.p.send_signal(signal.SIGHUP)
        ok(wait(lambda turn=turn: t.errors().count("are in force") == turn), "rules are read again")
    closes(t.end(), "rules again")
    t = start("a", "rules-none", "-o", "jsonl", "--rules", rules_of(write), "tc:eth0?dir=out")
    write("# nothing\n")
    t.p.send_signal(signal.SIGHUP)
    ok(wait(lambda: "in force: 0, so all packets are taken" in t.errors()), "a file without rules: it says what that means", t.errors())
    udp_send(1, port=6400)
    t.end()
    write("skip\n" * 65)
    with NS["a"]:
        run = pathline.run("tap", "--rules", rules, "tc:eth0")
    ok(run.returncode != 0 and ":65: at most 64 rules" in run.stderr, "too many rules: it says how many there may be", run.stderr)


def test_full_ring():
    """A ring that is too small while the tap stands still: packets go on to the host, and each is counted."""
    for source in ("tc:eth0?dir=in&ring=64KiB", "xdp:eth0?ring=64KiB&record=pkt64"):
        t = start("b", "full-" + source[:3].strip(":"), "-o", "jsonl", "--rule", "take src=10.9.0.1", "--rule", "skip", source)
        t.p.send_signal(signal.SIGSTOP)
        send_frames(frames(3000))
        with NS["b"]:
            ok(wait(lambda: received() >= 3000), "the host gets all")
        t.p.send_signal(signal.SIGCONT)
        wait(lambda: t.look()["tap"]["packets"] >= 3000)
        stats = t.end()["tap"]
        ok(stats["ring_full"] > 0, f"{source}: the ring was full", stats)
        eq(stats["records"] + stats["ring_full"], 3000, "and every packet is one or the other")
        eq(len(t.records), stats["records"], "what was recorded has come")
        closes(t.stats, source)


def test_vlan():
    """A tag that the kernel took out of the frame when it entered is in the record, as by a packet socket."""
    rules = ("--rule", "take vlan=7 src=10.9.0.1", "--rule", "skip")
    taps = [start("b", f"vlan-{i}", "-o", "jsonl", *rules, source)
            for i, source in enumerate(("tc:eth0", "xdp:eth0?mode=native", "packet:eth0"))]
    for tags in (b"\x81\0\x20\x07", b"\x88\xa8\0\x07\x81\0\0\x08", b"\x81\0\0\x08"):
        send_frames([frame[:12] + tags + frame[12:] for frame in frames(10)])
    ok(wait(lambda: all(len(records_of(t)) == 20 for t in taps)), "frames with a tag, and with two", [len(records_of(t)) for t in taps])
    for t in taps:
        closes(t.end(), "vlan")
    eq({(r["vlan"], r["wire_len"]) for t in taps for r in t.records}, {(7, 64)}, "with the outer number, without the tag's length")


def test_beside_others():
    """Two taps by tc each have all; XDP has room for one, and it is said who has it."""
    first = start("a", "first", "-o", "jsonl", "--rule", "take proto=udp dport=6400", "--rule", "skip", "tc:eth0")
    second = start("a", "second", "-o", "jsonl", "--rule", "take proto=udp dport=6400", "--rule", "skip", "tc:eth0?dir=out")
    udp_send(50, port=6400)
    ok(wait(lambda: len(records_of(first)) == len(records_of(second)) == 50), "two taps on one interface have all")
    second.end()
    udp_send(50, port=6400)
    ok(wait(lambda: len(records_of(first)) == 100), "one goes, the other stays")
    first.end()
    one = start("a", "one", "-o", "jsonl", "xdp:eth0")
    with NS["a"]:
        run = pathline.run("tap", "xdp:eth0")
    ok(run.returncode == 69 and "already" in run.stderr and f"process {one.p.pid}" in run.stderr and "tc:eth0" in run.stderr,
       "a second XDP program: who has it, and what to use", run.stderr)
    one.end()


def by_link(side, out, verdict):
    """A program on the interface of that side; what takes it away again."""
    with NS[side]:
        fd = foreign.link(verdict, socket.if_nametoindex("eth0"), out)
    return lambda: os.close(fd)


def by_filter(pref):
    def attach(side, out, verdict):
        path, way = os.path.join(lab.path("bpffs"), f"{pref}-{out}-{verdict}"), "egress" if out else "ingress"
        if not os.path.exists(path):
            foreign.pin(verdict, path)
        NS[side].sh("tc qdisc add dev eth0 clsact", check=False)
        NS[side].sh(f"tc filter add dev eth0 {way} pref {pref} bpf da object-pinned {path}")
        return lambda: NS[side].sh("tc qdisc del dev eth0 clsact")
    return attach


def test_programs_of_others():
    """The tap has all packets, whatever programs of others say of them, and these have their way. A filter before Linux 6.6 (played by
    REFUSE) has them behind a filter that goes on, and before any."""
    os.mkdir(lab.path("bpffs"))
    subprocess.run(["mount", "-t", "bpf", "none", lab.path("bpffs")], check=True)
    lab.undo("umount", lab.path("bpffs"))
    cases = [(ours, name, attach, when, out, verdict)
             for ours, name, attach in (("tcx", "a link", by_link), ("tcx", "a filter", by_filter(1)), ("clsact", "a filter", by_filter(30000)))
             for when in ("before", "after") for out in (False, True) for verdict in (foreign.OK, foreign.DROP)]
    cases += [("clsact", "a filter", by_filter(1), "before", out, foreign.NEXT) for out in (False, True)]
    for i, (ours, name, attach, when, out, verdict) in enumerate(cases):
        side, what = "a" if out else "b", f"{ours}: {name} {when}, {'out' if out else 'in'}, verdict {verdict}"
        undo = attach(side, out, verdict) if when == "before" else None
        os.environ.update({"LD_PRELOAD": REFUSE, "REFUSE": "tcx"} if ours == "clsact" else {})
        t = start(side, f"others-{i}", "-o", "jsonl", "--rule", "take proto=udp dport=6500", "--rule", "skip", f"tc:eth0?dir={'out' if out else 'in'}")
        for key in ("LD_PRELOAD", "REFUSE"):
            os.environ.pop(key, None)
        undo = undo or attach(side, out, verdict)
        with NS["b"]:
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with s:
            s.bind((B, 6500))
            s.setblocking(False)
            udp_send(20, port=6500)
            ok(wait(lambda t=t: len(records_of(t)) == 20), f"{what}: the tap has all", len(records_of(t)))
            came = 0
            while verdict != foreign.DROP and came < 20 and wait(lambda s=s: select.select([s], [], [], 0)[0]):
                s.recv(200)
                came += 1
            eq((came, bool(select.select([s], [], [], 0)[0])), (0 if verdict == foreign.DROP else 20, False), "and the host what the program lets pass")
        closes(t.end(), what)
        undo()


def test_behind_generic():
    """Generic XDP may give the stack a copy of the packet, which tc sees from the IP header on: tc has what XDP has."""
    rules = ("-o", "jsonl", "--rule", "take proto=udp", "--rule", "take proto=icmp", "--rule", "take src=10.9.0.0/16", "--rule", "take src=8.0.0.0/16", "--rule", "skip")
    first = start("b", "generic", *rules, "xdp:eth0?mode=generic")
    second = start("b", "behind", *rules, "tc:eth0?dir=in")
    with NS["a"]:
        ok(subprocess.run(["ping", "-c", "10", "-i", "0.05", B], capture_output=True, check=False).returncode == 0, "10 pings")
    udp_send(50)
    udp_send(5, size=4000, port=6001)
    # Of an address that begins as the type of IPv4 does in a frame.
    odd = [frame[:26] + b"\x08\x00\x01\x02" + frame[30:] for frame in frames(10)]
    send_frames(frames(10) + odd + [frame[:12] + b"\x81\0\x20\x07" + frame[12:] for frame in frames(10)])
    ok(wait(lambda: len(records_of(first)) == len(records_of(second)) == 10 + 50 + 15 + 30),
       "every packet that enters", [len(records_of(t)) for t in (first, second)])
    for t in (first, second):
        closes(t.end(), "generic")
    eq(list((count(first.records) - count(second.records)).items())[:2], [], "with the same values")


def test_killed():
    """kill -9 leaves nothing behind, and the next one starts."""
    for source in ("tc:eth0", "xdp:eth0"):
        t = start("a", "killed-" + source[:2], "-o", "jsonl", source)
        attached = programs(t)
        ok(attached, f"{source}: attached")
        t.p.kill()
        t.p.wait(LIMIT)
        ok(wait(lambda: gone(attached)), "killed: the programs are gone")
        start("a", "next-" + source[:2], "-o", "jsonl", source).end()


def filters():
    """The filters of traffic control on B's interface, as tc(8) lists them."""
    return [NS["b"].sh(f"tc filter show dev eth0 {way}", check=False) for way in ("ingress", "egress")]


def test_no_note():
    """Before Linux 6.6 a tap that cannot write its note says so, once, and works."""
    with NS["b"]:
        p = lab.start(["unshare", "-m", "sh", "-c", 'mkdir -p /run/pathline && mount -t tmpfs -o ro none /run/pathline && exec "$@"', "sh",
                       pathline.PATHLINE, "tap", "-o", "jsonl", "--count", "5", "tc:eth0"], log=lab.path("no-note.log"),
                      env=os.environ | {"LD_PRELOAD": REFUSE, "REFUSE": "tcx", "RUNTIME_DIRECTORY": "/run/pathline"})
    ok(wait(lambda: "in /run/pathline (Read-only file system)" in lab.read("no-note.log")), "a note that cannot be written is told",
       lab.read("no-note.log"))
    eq(lab.read("no-note.log").count("cannot write its note"), 1, "once")
    ok(p.poll() is None, "and the tap works", lab.read("no-note.log"))
    p.send_signal(signal.SIGTERM)
    ok(wait(lambda: p.poll() is not None), "it ends")


def test_left_over():
    """Before Linux 6.6 (played by REFUSE): a filter whose tap and keeper were both killed is removed by the next start, one
    of a tap that lives is not, nor one of somebody else."""
    if shutil.which("tc") is None:
        tap.skip("a filter that was left", "missing: iproute2")
        return
    os.environ.update(LD_PRELOAD=REFUSE, REFUSE="tcx")
    try:
        left = start("b", "left", "-o", "jsonl", "--rule", "take src=10.9.0.1", "--rule", "skip", "tc:eth0")
        ok(all("pl_tap_" in text for text in filters()), "a filter in each direction", filters())
        with NS["b"]:
            second = pathline.run("tap", "tc:eth0")
        ok(second.returncode == 69 and "has a program of another pathline process already" in second.stderr and "use packet:eth0" in second.stderr and "tc filter del dev eth0" in second.stderr,
           "while its tap lives, a second one is told", second.stderr)
        keepers = [int(p) for p in os.listdir("/proc") if p.isdigit() and is_keeper(p, left.p.pid)]
        eq(len(keepers), 2, "a process for each filter")
        left.p.send_signal(signal.SIGSTOP)
        for pid in keepers:
            os.kill(pid, signal.SIGKILL)
        with NS["b"]:
            second = pathline.run("tap", "tc:eth0")
        ok(second.returncode == 69, "the tap lives without them: a second one is told", second.stderr)
        left.p.kill()
        left.p.wait(LIMIT)
        ok(all("pl_tap_" in text for text in filters()), "both killed: the filters stay", filters())
        after = start("b", "after", "-o", "jsonl", "--rule", "take src=10.9.0.1", "--rule", "skip", "tc:eth0")
        ok(all(text.count("name pl_tap_") == 1 for text in filters()), "the next start has its own in their place", filters())
        send_frames(frames(10))
        ok(wait(lambda: len(records_of(after)) == 10), "and sees packets once", len(records_of(after)))
        after.end()
        ok(wait(lambda: not any("pl_tap_" in text for text in filters())), "at its end they are gone", filters())
        NS["b"].sh("tc filter add dev eth0 ingress handle 0x504c pref 20556 bpf bytecode '1,6 0 0 0'")
        with NS["b"]:
            other = pathline.run("tap", "tc:eth0?dir=in")
        ok(other.returncode != 0 and "bytecode" in filters()[0], "a filter of somebody else stays", (other.stderr, filters()))
        NS["b"].sh("tc qdisc del dev eth0 clsact")
    finally:
        os.environ.pop("LD_PRELOAD")
        os.environ.pop("REFUSE")


def test_counts_unread():
    """A question whose packets are counted in the kernel, and whose last counts cannot be read (played by REFUSE): it says so and
    exits with 1."""
    question = "SELECT dport, count(*) AS n FROM packets WHERE udp and dport in (6001, 6002) GROUP BY dport"
    for refuse, code in (("counts", 1), ("tcx", 0)):
        with NS["b"]:
            p = lab.start([pathline.PATHLINE, "query", "-o", "jsonl", "--stats", question, "tc:eth0"], log=lab.path(f"unread-{refuse}.log"),
                          env=os.environ | {"LD_PRELOAD": REFUSE, "REFUSE": refuse})
        log = lambda name=f"unread-{refuse}.log": lab.read(name)  # noqa: E731
        ok(wait(lambda: "asking" in log()), f"{refuse}: the question is asked", log())
        udp_send(20, port=6001)
        ok(wait(lambda: p.send_signal(signal.SIGUSR1) or re.search(r'"counts_read": ?[1-9]', log())), "counts are read while it runs", log())
        udp_send(20, port=6002)
        p.send_signal(signal.SIGTERM)
        ok(wait(lambda: p.poll() is not None), "it ends", log())
        said = "tc:eth0: reading its counts: Input/output error; rows of the windows that were open lack the packets" in log()
        eq((p.returncode, said), (code, code == 1), "the exit code, and words")


def is_keeper(pid, parent):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            text = f.read()
    except OSError:
        return False
    return "(pathline-filter)" in text and int(text.rsplit(")", 1)[1].split()[1]) == parent


def test_interface_goes():
    for source in ("tc:eth0", "xdp:eth0"):
        t = start("b", "goes-" + source[:2], "-o", "jsonl", "--rule", "take src=10.9.0.1", "--rule", "skip", source)
        send_frames(frames(10))
        ok(wait(lambda: len(records_of(t)) == 10), f"{source}: before")
        NS["b"].ip("link del eth0")
        ok(wait(lambda: "gone" in t.errors()), "it says that the interface is gone", t.errors())
        network.join(NS["a"], "eth0", NS["b"], "eth0")
        for side, address in (("a", A), ("b", B)):
            NS[side].up("eth0", address + "/24")
        network.wait_for_carrier(*[(NS[side], "eth0") for side in "ab"])
        ok(wait(lambda: re.search("is (back|up)", t.errors())), "and that it is back", t.errors())
        send_frames(frames(10))
        ok(wait(lambda: len(records_of(t)) == 20), "after: by the helper, the rights are given up", t.errors())
        closes(t.end(), source)


def test_flows_and_words():
    t = start("a", "flows", "-o", "jsonl", "--flows", "--rule", "take proto=tcp", "--rule", "skip", "tc:eth0")
    ok(tcp_transfer(1_000_000, 5002), "a TCP transfer")
    ok(wait(lambda: [r for r in t.lines() if r.get("end_reason") == "finished"]), "the record of its flow")
    stats = t.end()
    rows = t.records
    eq([r["pkts_fwd"] + r["pkts_rev"] for r in rows], [stats["tap"]["records"]], "all packets are in it")
    cases = (
        (["tc:eth7"], 69, "eth7"),
        (["tc:eth0?dir=up"], 2, "in, out or both"),
        (["xdp:eth0?mode=fast"], 2, "auto, native or generic"),
        (["xdp:eth0?ring=1"], 2, "ring"),
        (["tc:eth0?record=pkt32"], 2, "pkt96 or pkt64"),
        (["tc:eth0?port=53"], 2, "port"),
        (["--dns", "tc:eth0"], 2, "packet:eth0"),
        (["--inner", "xdp:eth0"], 2, "packet:eth0"),
        (["--rules", "/nowhere/rules", "tc:eth0"], 69, "/nowhere/rules"),
    )
    for args, code, says in cases:
        with NS["a"]:
            run = pathline.run("tap", *args)
        ok(run.returncode == code and says in run.stderr, f"tap {' '.join(args)}: {code}", f"{run.returncode} {run.stderr}")
    for source in ("tc:eth0", "xdp:eth0"):
        bare = NS["a"].command("setpriv", "--bounding-set", "-net_admin,-bpf,-sys_admin", "--inh-caps", "-all", pathline.PATHLINE, "tap", source)
        run = subprocess.run(bare, capture_output=True, text=True, timeout=LIMIT, check=False)
        ok(run.returncode != 0 and "CAP_NET_ADMIN" in run.stderr, f"{source} without rights: which are missing", run.stderr)


WIRE.make()
lab.run(test_both_directions, test_entering, test_rules_change, test_vlan, test_beside_others, test_programs_of_others, test_behind_generic, test_killed, test_no_note, test_left_over, test_counts_unread,
        test_flows_and_words,
        test_full_ring, test_interface_goes)
sys.exit(tap.end())
