# SPDX-License-Identifier: BSD-2-Clause
"""A tap of several interfaces of a host that routes between a container and a wire: a packet passes the container's veth, the
bridge that it is a port of, and the interface to the wire.

usage: several_interfaces.py PATHLINE [TEST…]
"""
import collections
import json
import os
import re
import signal
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, network, pathline, tap, tapping  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

CONTAINER, REMOTE = "10.91.0.2", "10.92.0.2"
NS = {}
SOURCES = ("tc:port", "tc:bridge", "tc:eth0")
OUT = 4096
PLACE = 1023 | OUT


def make():
    """container - port of the host's bridge - host - remote, with nothing that joins packets."""
    for name in ("container", "host", "remote"):
        NS[name] = network.Namespace(f"several-{name}", ipv6=False)
    network.join(NS["container"], "eth0", NS["host"], "port")
    network.join(NS["host"], "eth0", NS["remote"], "eth0")
    NS["host"].ip("link add bridge type bridge mcast_snooping 0")
    NS["host"].ip("link set port master bridge")
    NS["host"].sysctl("ipv4.ip_forward", 1)
    NS["host"].up("port")
    NS["host"].up("bridge", "10.91.0.1/24")
    NS["host"].up("eth0", "10.92.0.1/24")
    NS["container"].up("eth0", CONTAINER + "/24")
    NS["remote"].up("eth0", REMOTE + "/24")
    NS["container"].ip("route add default via 10.91.0.1")
    NS["remote"].ip("route add default via 10.92.0.1")
    for side, devices in (("container", ("eth0",)), ("host", ("port", "bridge", "eth0")), ("remote", ("eth0",))):
        for dev in devices:
            NS[side].sh(f"ethtool -K {dev} tso off gso off gro off tx-udp-segmentation off", check=False)
    network.wait_for_carrier((NS["container"], "eth0"), (NS["host"], "port"), (NS["host"], "bridge"), (NS["host"], "eth0"), (NS["remote"], "eth0"))


def udp(n, port, size=100):
    """From the container to the remote host, one by one."""
    with NS["remote"], socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as r:
        r.setsockopt(socket.SOL_SOCKET, 33, 8 << 20)
        r.bind((REMOTE, port))
        r.settimeout(60)
        with NS["container"], socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            for i in range(n):
                s.sendto(i.to_bytes(4, "big") + bytes(size - 4), (REMOTE, port))
                r.recv(2048)


def interface(name):
    return json.loads(NS["host"].ip(f"-j link show dev {name}"))[0]


def netns():
    return NS["host"].call(lambda: os.stat("/proc/thread-self/ns/net").st_ino)


def points(records):
    return collections.Counter((r["obs"] & 1023, bool(r["obs"] & OUT)) for r in records)


def test_points():
    """Each interface has a number of its own, in records, counters and on the page."""
    t = tapping.Tap(NS["host"], "points", "-o", "jsonl", "--rule", "take dport=7001", "--rule", "skip", "--web", "127.0.0.1:0", *SOURCES)
    web = re.search(r"metrics on (https?://[^/ ]+)/", t.errors()).group(1)
    udp(50, 7001)
    ok(wait(lambda: len([r for r in t.lines() if "src" in r]) == 150), "three records of each packet", len(t.lines()))
    page = NS["host"].sh(f"curl -s {web}/metrics")
    of_page = {line.split("{")[1].split("}")[0] for line in page.splitlines() if line.startswith("pathline_tap_interface_info{")}
    stats = t.end()
    eq(points(t.records), {(1, False): 50, (2, False): 50, (3, True): 50}, "numbered in their order, with the direction at each")
    want = [{"source": f"tc:{name}", "point": i + 1, "interface": name, "ifindex": interface(name)["ifindex"], "mac": interface(name)["address"],
             "netns": netns()} for i, name in enumerate(("port", "bridge", "eth0"))]
    eq(stats["interfaces"], want, "named by number, address and network namespace")
    eq(of_page, {",".join(f'{key}="{value}"' for key, value in one.items()) for one in want}, "and on the page")
    ok("observation points 1 (port) to 3 (eth0)" in t.errors(), "and at the start", t.errors())
    one = tapping.Tap(NS["host"], "one", "-o", "jsonl", "--rule", "take dport=7001", "--rule", "skip", "tc:eth0")
    several = tapping.Tap(NS["host"], "from", "-o", "jsonl", "--point", "20", "--rule", "take dport=7001", "--rule", "skip", "packet:port", "tc:eth0")
    udp(5, 7001)
    ok(wait(lambda: [len([r for r in x.lines() if "src" in r]) for x in (one, several)] == [5, 10]), "beside a tap of one")
    for x in (one, several):
        x.end()
    eq((points(one.records), points(several.records)), ({(0, True): 5}, {(20, False): 5, (21, True): 5}), "--point is the first one's")
    ruled = tapping.Tap(NS["host"], "ruled", "-o", "jsonl", "--rule", "skip point=1", "--rule", "skip point=3", "--rule", "take dport=7001", "--rule",
                        "skip", "packet:port", "packet:bridge", "tc:eth0", "tc:bridge?dir=in")
    udp(5, 7001)
    ok(wait(lambda: len([r for r in ruled.lines() if "src" in r]) == 10), "rules choose by it")
    ruled.end()
    eq(points(ruled.records), {(2, False): 5, (4, False): 5}, "the others are left out")
    with NS["host"]:
        run = pathline.run("tap", "--point", "1023", "tc:port", "tc:eth0")
    ok(run.returncode == 2 and "1023 is the last" in run.stderr, "too few numbers are refused", run.stderr)


def test_gone():
    """One that goes has no number in the kernel; one of its name that comes has another."""
    NS["host"].ip("link add spare type veth peer name other")
    for name in ("spare", "other"):
        NS["host"].up(name)
    network.wait_for_carrier((NS["host"], "spare"))
    t = tapping.Tap(NS["host"], "gone", "-o", "jsonl", "tc:spare", "tc:eth0")

    def now():
        return t.look()["interfaces"][0]
    before = now()
    NS["host"].ip("link set spare down")
    NS["host"].ip("link set spare name renamed")
    ok(wait(lambda: now()["interface"] == "renamed" and now()["ifindex"] == before["ifindex"]), "a new name is followed", now())
    NS["host"].ip("link del renamed")
    ok(wait(lambda: now()["ifindex"] == 0), "gone", now())
    udp(5, 7003)
    ok(wait(lambda: len([r for r in t.lines() if r.get("dport") == 7003]) == 5), "the other one is tapped still")
    t.p.send_signal(signal.SIGTERM)
    eq(t.p.wait(60), 0, "it ends well")


def test_reload():
    """A daemon's tap has other numbers behind a reload."""
    path = lab.path("run.yaml")

    def write(point):
        with open(path, "w", encoding="utf-8") as f:
            f.write("taps:\n  - name: host\n    sources: [\"tc:port\", \"tc:eth0\"]\n    rules: [\"take dport=7002\", \"skip\"]\n"
                    f"    point: {point}\n    to: [\"file:{lab.path('run.pkt64')}\"]\nweb:\n  listen: 127.0.0.1:0\n")
    write(100)
    daemon = pathline.Daemon(path, prefix=NS["host"].command())
    udp(5, 7002)
    write(200)
    daemon.p.send_signal(signal.SIGHUP)
    ok(daemon.wait_for("is in use"), "reloaded", daemon.log())
    udp(5, 7002)
    eq(daemon.stop(), 0, "the daemon ends well")
    with open(lab.path("run.pkt64"), "rb") as f:
        data = f.read()
    seen = collections.Counter(int.from_bytes(data[i + 62:i + 64], "little") & 1023 for i in range(0, len(data), 64))
    eq(seen, {100: 5, 101: 5, 200: 5, 201: 5}, "numbers of before and behind the reload")


def counters(name):
    """(packets, bytes from the IP header on) that an interface sent and received; frames have 14 bytes in front."""
    s = json.loads(NS["host"].ip(f"-j -s link show dev {name}"))[0]["stats64"]
    packets = s["rx"]["packets"] + s["tx"]["packets"]
    return packets, s["rx"]["bytes"] + s["tx"]["bytes"] - 14 * packets


def transfer(n_bytes, port):
    """Of TCP, from the container; each side closes."""
    wire = tapping.Wire("", CONTAINER, REMOTE)
    wire.ns = {"a": NS["container"], "b": NS["remote"]}
    return wire.tcp_transfer(n_bytes, port)


def sent_again():
    """Segments, by the kernels of both ends."""
    tables = [NS[side].sh("cat /proc/net/snmp").splitlines() for side in ("container", "remote")]
    pairs = [[line.split() for line in lines if line.startswith("Tcp:")] for lines in tables]
    return sum(int(dict(zip(*pair))["RetransSegs"]) for pair in pairs)


def flows(t):
    return [r for r in t.lines() if "first_ts" in r]


def test_flows():
    """One flow of a connection that passes veth, bridge and NIC: packets and bytes of one of them, the others listed, and nothing sent
    again that was not."""
    udp(1, 7009)  # neighbours are known from now on
    for sources in (SOURCES, ("packet:eth0", "xdp:bridge?mode=generic", "tc:port", "tc:bridge")):
        t = tapping.Tap(NS["host"], f"flows-{len(sources)}", "-o", "jsonl", "--flows", "--flow-idle", "30s", *sources)
        before, before_again = counters("eth0"), sent_again()
        ok(transfer(2_000_000, 7010), "a transfer over all of them is whole")
        udp(30, 7011)
        ok(wait(lambda: t.look()["flows"]["elsewhere"] > 2000), "what is seen elsewhere is counted", t.look()["flows"])
        t.end()
        after = counters("eth0")
        tcp, *more = [f for f in flows(t) if f["dport"] == 7010]
        datagrams, *_ = [f for f in flows(t) if f["dport"] == 7011]
        eq(more, [], "one flow")
        eq((sum(f["pkts_fwd"] + f["pkts_rev"] for f in flows(t)), sum(f["bytes_fwd"] + f["bytes_rev"] for f in flows(t))),
           (after[0] - before[0], after[1] - before[1]), "packets and bytes of one interface")
        places = [tcp["obs"] & PLACE, tcp["obs_rev"] & PLACE, *(tcp[f"also_{i}"] for i in range(1, 7))]
        both = {p + out for p, name in enumerate(sources, 1) for out in (0, OUT) if out == 0 or not name.startswith("xdp:")}
        eq((set(places) - {0}, len(places) - places.count(0), tcp["also_more"]), (both, len(both), 0), "where it is counted, and the other places, with their directions")
        ok(tcp["retrans_fwd"] + tcp["retrans_rev"] <= sent_again() - before_again, "no copy is taken for a segment that was sent again", tcp)
        eq((datagrams["pkts_fwd"], datagrams["elsewhere_fwd"]), (30, 30 * (len(sources) - 1)), "each copy is counted apart")


def test_other_way():
    """A flow that goes another way is counted there, with all its packets, when the first place saw it no more."""
    NS["host"].ip("link add way type veth peer name back")
    network.sh(f"ip -n {NS['host']} link set back netns {NS['remote']} name way")
    NS["host"].up("way", "10.93.0.1/24")
    NS["remote"].up("way", "10.93.0.2/24")
    network.wait_for_carrier((NS["host"], "way"), (NS["remote"], "way"))
    t = tapping.Tap(NS["host"], "way", "-o", "jsonl", "--flows", "--flow-idle", "30s", "--rule", "take proto=udp dport=7020", "--rule", "skip", "tc:eth0", "tc:way")
    with NS["remote"], socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as r:
        r.bind((REMOTE, 7020))
        r.settimeout(60)
        with NS["container"], socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            def some(n):
                for i in range(n):
                    s.sendto(i.to_bytes(4, "big"), (REMOTE, 7020))
                    r.recv(100)
            some(100)
            NS["host"].ip(f"route replace {REMOTE}/32 via 10.93.0.2 dev way")
            sent = 100
            while t.look()["flows"]["moved"] == 0 and sent < 3000:
                some(5)
                sent += 5
                time.sleep(0.05)
            some(20)
            sent += 20
    t.end()
    flow, = flows(t)
    eq((flow["pkts_fwd"], flow["obs"] & PLACE, flow["elsewhere_fwd"]), (sent, 1 | OUT, 0), "every packet is counted")
    eq(flow["also_1"], 2 | OUT, "and the other place listed")
    NS["host"].ip(f"route del {REMOTE}/32")
    NS["host"].ip("link del way")


make()
lab.run(test_points, test_gone, test_reload, test_flows, test_other_way)
sys.exit(tap.end())
