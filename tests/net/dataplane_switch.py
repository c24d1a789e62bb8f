# SPDX-License-Identifier: BSD-2-Clause
"""The software switch between namespaces: pings and TCP through it as a router and as a bridge, tables changed under
traffic, the control socket under hostile clients, a port that goes and comes back, kill and restart, oversized frames.

usage: dataplane_switch.py PATHLINE [TEST…]
"""
import json
import os
import random
import re
import signal
import socket
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, network, pathline, tap  # noqa: E402
from lib.pathline import PATHLINE  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import LIMIT, wait  # noqa: E402

SEED = 20261125
SO_TIMESTAMPNS = 35
SO_RCVBUFFORCE = 33
SOCKET = lab.path("s1.sock")
HOSTS = {"a": ("10.81.1.2", "fd81:1::2"), "b": ("10.81.2.2", "fd81:2::2")}
GATEWAYS = {"a": ("10.81.1.1", "fd81:1::1"), "b": ("10.81.2.1", "fd81:2::1")}
NUMBERS = {"a": 1, "b": 2}
NS = {name: network.Namespace(f"sw-{name}") for name in ("a", "b", "s")}


def wire():
    """Hosts a and b, each with a wire to the switch; both know their gateway's MAC address, which is the switch's."""
    for name in NUMBERS:
        wire_one(name)


def wire_one(name, mac=None):
    number = NUMBERS[name]
    network.join(NS[name], "eth0", NS["s"], f"p{number}")
    if mac:
        NS[name].ip(f"link set eth0 address {mac}")
    NS["s"].sysctl(f"ipv6.conf.p{number}.disable_ipv6", 1, check=False)
    NS["s"].ip(f"link set p{number} up")
    NS[name].up("eth0", HOSTS[name][0] + "/24", HOSTS[name][1] + "/64")
    network.wait_for_carrier((NS["s"], f"p{number}"))
    mac = NS["s"].mac(f"p{number}").hex(":")
    for gateway in GATEWAYS[name]:
        NS[name].ip(f"neigh replace {gateway} lladdr {mac} dev eth0 nud permanent")
    NS[name].ip(f"route add default via {GATEWAYS[name][0]}")
    NS[name].ip(f"-6 route add default via {GATEWAYS[name][1]}")
    for command in ("tso off", "gso off"):
        NS[name].sh(f"ethtool -K eth0 {command}")


def host_mac(name):
    return NS[name].mac("eth0").hex(":")


def write(name, text):
    path = lab.path(name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def router(scheme="packet", more=""):
    a, b = host_mac("a"), host_mac("b")
    return write("router.yaml", f"""
name: s1
control: {SOCKET}
ports:
  - {{ number: 1, uri: "{scheme}:p1" }}
  - {{ number: 2, uri: "{scheme}:p2" }}
counters: [ {{ name: icmp }} ]
tables:
  - name: count
    key: [ ip.proto exact ]
    entries:
      - ip.proto=1 -> count icmp
  - name: routes
    key: [ ip.dst prefix ]
    entries:
      - ip.dst=10.81.1.0/24 -> route 1 {a}
      - ip.dst=10.81.2.0/24 -> route 2 {b}
      - ip.dst=fd81:1::/64 -> route 1 {a}
      - ip.dst=fd81:2::/64 -> route 2 {b}
{more}""")


class Switch:
    """One that runs; its `with` ends it."""

    def __init__(self, path, *args):
        self.path = path
        self.log = lab.path("switch.log")
        open(self.log, "w", encoding="utf-8").close()
        self.process = lab.start(NS["s"].command(PATHLINE, "switch", "-c", path, "--stats", *args), log=self.log,
                                 stdout=open(lab.path("switch.json"), "w", encoding="utf-8"))
        wait(lambda: "forwards between" in lab.read("switch.log") or self.process.poll() is not None)

    def ask(self, *words):
        answer = pathline.run("switch", *words, "-s", SOCKET, "-o", "json")
        return json.loads(answer.stdout) if answer.returncode == 0 else {"ok": False, "error": answer.stderr}

    def account(self):
        return self.ask("account")["account"]

    def end(self, signo=signal.SIGTERM):
        self.process.send_signal(signo)
        self.process.wait(LIMIT)
        return self.process.returncode

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            eq(self.end(), 0, "the switch ends when it is told to")


def closes(account, what):
    """Frames and packets are somewhere."""
    frames = account["frames_received"] - account["frames_cut"] - account["frames_no_memory"]
    eq(account["packets"], frames, f"{what}: every frame received is a packet")
    dropped = sum(account["dropped_ingress"].values())
    eq(account["packets"] + account["packets_made"], account["packets_queued"] + dropped + account["packets_consumed"],
       f"{what}: packets before the queue are all accounted for")
    dropped = sum(account["dropped_egress"].values())
    eq(account["packets_queued"], account["packets_out"] + dropped + account["packets_held"], f"{what}: those in it too")
    eq(account["packets_out"], account["frames_sent"] + account["frames_unsent"] + account["packets_sending"], f"{what}: packets behind it too")


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xffff) + (total >> 16)
    return ~(total + (total >> 16)) & 0xffff


def echo(to, sequence, v6=False, seconds=LIMIT):
    """The TTL of the answer of a host's kernel, or None."""
    family, proto, kind = (socket.AF_INET6, socket.IPPROTO_ICMPV6, 128) if v6 else (socket.AF_INET, socket.IPPROTO_ICMP, 8)
    with NS["a"], socket.socket(family, socket.SOCK_RAW, proto) as s:
        s.settimeout(seconds)
        message = struct.pack("!BBHHH", kind, 0, 0, os.getpid() & 0xffff, sequence) + b"pathline" * 7
        if not v6:
            message = message[:2] + struct.pack("!H", checksum(message)) + message[4:]
        s.sendto(message, (to, 0))
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                answer = s.recv(2000)
            except TimeoutError:
                return None
            icmp = answer if v6 else answer[(answer[0] & 15) * 4:]
            if icmp[0] == (129 if v6 else 0) and icmp[4:8] == message[4:8]:
                return 0 if v6 else answer[8]
    return None


def ping(count=3, of="b", v6=False, seconds=LIMIT):
    """Whether all of so many are answered."""
    return all(echo(HOSTS[of][v6], i, v6, seconds) is not None for i in range(count))


def forwards_again(v6=False):
    """For somebody who asks again."""
    return ping(v6=v6, seconds=2)


def tcp(megabytes, sender="a"):
    """Whether so many bytes arrive whole, through both hosts' stacks."""
    receiver = "b" if sender == "a" else "a"
    data = random.Random(SEED).randbytes(1 << 20)
    with NS[receiver]:
        server = socket.create_server((HOSTS[receiver][0], 0))
    server.settimeout(LIMIT)
    got = []

    def serve():
        connection, _ = server.accept()
        connection.settimeout(LIMIT)
        while block := connection.recv(1 << 16):
            got.append(block)
        connection.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    with NS[sender]:
        client = socket.create_connection(server.getsockname(), timeout=LIMIT)
    for _ in range(megabytes):
        client.sendall(data)
    client.close()
    thread.join(2 * LIMIT)
    server.close()
    return b"".join(got) == data * megabytes


# ---- forwarding ----

def forwards(scheme):
    with Switch(router(scheme)) as s:
        ok(ping(), f"{scheme}: pings pass a router of twenty lines")
        ok(ping(v6=True), f"{scheme}: IPv6 too")
        ok(tcp(8), f"{scheme}: 8 MiB of TCP arrive whole")
        ok(tcp(4, "b"), f"{scheme}: and the other way")
        eq(echo(HOSTS["b"][0], 9), 63, f"{scheme}: a router takes 1 from the TTL")
        cells = s.ask("counters")["counters"]
        eq([c["packets"] for c in cells], [2 * 3 + 2], f"{scheme}: the counter has pings and answers")
        closes(s.account(), scheme)


def test_packet():
    forwards("packet")


def test_afxdp():
    """Frames of AF_XDP have no note on checksums that are left open: the hosts complete them."""
    for name in NUMBERS:
        NS[name].sh("ethtool -K eth0 tx off")
    forwards("afxdp")
    for name in NUMBERS:
        NS[name].sh("ethtool -K eth0 tx on")
        for command in ("tso off", "gso off"):
            NS[name].sh(f"ethtool -K eth0 {command}")


def test_offloads():
    """A stack that leaves checksums to its NIC is understood; frames too long for the wire are counted, not lost silently."""
    with Switch(router()) as s:
        NS["a"].sh("ethtool -K eth0 tx on")
        ok(tcp(2), "checksums that the sender left open are completed")
        NS["a"].sh("ethtool -K eth0 tso on gso on")
        tcp_thread = threading.Thread(target=tcp, args=(1,))
        tcp_thread.start()
        ok(wait(lambda: s.account()["frames_oversize"] > 0), "frames of segmentation offload are counted")
        NS["a"].sh("ethtool -K eth0 tso off gso off")
        tcp_thread.join(2 * LIMIT)
        account = s.account()
        eq(account["frames_cut"] + account["dropped_ingress"]["mtu"], account["frames_oversize"], "and have a cause")
        closes(account, "offloads")


def test_bridge():
    """Without routes: hosts of one subnet, by MAC address, what is not known by all ports."""
    for name, last in (("a", 2), ("b", 3)):
        NS[name].ip(f"addr add 10.82.0.{last}/24 dev eth0")
    path = write("bridge.yaml", f"""
control: {SOCKET}
ports: [ {{ number: 1, uri: "packet:p1" }}, {{ number: 2, uri: "packet:p2" }} ]
tables:
  - name: stations
    key: [ eth.dst exact ]
    miss: flood
    entries:
      - eth.dst={host_mac('a')} -> forward 1
      - eth.dst={host_mac('b')} -> forward 2
""")
    with Switch(path) as s:
        ok(all(echo("10.82.0.3", i) is not None for i in range(3)), "ARP and pings pass a bridge")
        closes(s.account(), "bridge")


# ---- changes ----

class Stream:
    """Numbered datagrams from a to b, paced, and never more under way than there is room for; which of them arrived."""

    def __init__(self):
        with NS["b"]:
            self.server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self.server.bind((HOSTS["b"][0], 0))
        self.server.settimeout(0.2)
        with NS["a"]:
            self.client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sent, self.got, self.over = 0, [], None
        self.threads = [threading.Thread(target=self.send), threading.Thread(target=self.receive)]
        for thread in self.threads:
            thread.start()

    def send(self):
        while not self.over:
            if self.sent - len(self.got) < 64:
                self.client.sendto(struct.pack("!I", self.sent), self.server.getsockname())
                self.sent += 1
            time.sleep(0.0005)

    def receive(self):
        while not self.over or (len(self.got) < self.sent and time.monotonic() < self.over + LIMIT):
            try:
                self.got.append(struct.unpack("!I", self.server.recv(100))[0])
            except TimeoutError:
                pass

    def finish(self):
        self.over = time.monotonic()
        for thread in self.threads:
            thread.join(2 * LIMIT)


def test_change():
    """The route moves between two entries a few hundred times under traffic, one set each: not one datagram is lost."""
    b = host_mac("b")
    entry = f"ip.dst=10.81.2.0/24 -> route 2 {b}"
    with Switch(router()) as s:
        stream = Stream()
        wait(lambda: len(stream.got) > 100)
        refused = 0
        for i in range(60):
            more = [f"ip.dst=10.90.{k}.0/24 -> route 2 {b}" for k in range(i)]
            narrow = [f"ip.dst=10.81.2.2 -> route 2 {b}"]
            add, delete = (narrow, entry) if i % 2 == 0 else ([entry], narrow[0])
            lines = [f"add routes {x}" for x in add + more] + [f"delete routes {delete}"]
            answer = pathline.run("switch", "table", "change", "-s", SOCKET, input="\n".join(lines) + "\n")
            refused += answer.returncode != 0
            if more:
                answer = pathline.run("switch", "table", "delete", "routes", *(x.split(" ->")[0] for x in more), "-s", SOCKET)
                refused += answer.returncode != 0
        eq(refused, 0, "every set of changes was taken")
        answer = pathline.run("switch", "table", "add", "routes", "ip.dst=10.91.0.0/16 -> drop", "ip.dts=1 -> drop", "-s", SOCKET)
        ok(answer.returncode != 0 and 'did you mean "ip.dst"' in answer.stderr, "a set with a fault is refused, with the nearest word")
        ok("10.91" not in json.dumps(s.ask("table", "dump", "routes")), "and nothing of it is done")
        answer = pathline.run("switch", "table", "change", "-s", SOCKET, input="# routes\nadd routes ip.dst=10.92.0.0/16 -> dorp\n")
        ok("standard input:2: unknown action" in answer.stderr, f"the line that is wrong is named: {answer.stderr}")
        answer = pathline.run("switch", "table", "change", "-s", SOCKET, input="add routes ip.dst=10.92.0.0/16 -> drop\n" * 20000)
        ok(answer.returncode == 1 and "make several" in answer.stderr, f"a set that is too large: {answer.stderr}")
        stream.finish()
        eq(stream.got, list(range(stream.sent)), f"all of {stream.sent} datagrams arrived, in order, through 120 changes")
        closes(s.account(), "change")


def test_change_of_many():
    """Two tables of 65536 entries, of which one set of changes replaces one each under traffic: no datagram is lost, and none is
    treated by half a set, which would give it the DSCP of one and the source port of another."""
    routes = lab.read(os.path.basename(router()))
    tables = "".join(f"  - name: {name}\n    key: [ l4.dst exact ]\n    size: 65536\n" for name in ("classes", "sources"))
    path = write("many.yaml", routes.replace("tables:\n", "tables:\n" + tables, 1))
    with NS["b"]:
        receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)
        receiver.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
        receiver.bind((HOSTS["b"][0], 9))
        receiver.settimeout(LIMIT)
    with NS["a"]:
        client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sent, ended = 0, threading.Event()

    def send():
        nonlocal sent
        while not ended.wait(0.001):
            client.sendto(struct.pack("!I", sent), (HOSTS["b"][0], 9))
            sent += 1
    with Switch(path) as s:
        refused = 0
        for first in range(0, 65536, 8192):
            for name, action in (("classes", "set ip.dscp 0"), ("sources", "set l4.src 1000")):
                lines = "".join(f"add {name} l4.dst={n} -> {action}\n" for n in range(first, first + 8192))
                refused += pathline.run("switch", "table", "change", "-s", SOCKET, input=lines).returncode != 0
        thread = threading.Thread(target=send, daemon=True)
        thread.start()
        for i in range(1, 6):
            answer = pathline.run("switch", "table", "change", "-s", SOCKET, input=f"set classes l4.dst=9 -> set ip.dscp {i}\n"
                                  f"set sources l4.dst=9 -> set l4.src {1000 + i}\n")
            refused += answer.returncode != 0
        eq(refused, 0, "every set of changes was taken")
        ended.set()
        thread.join()
        numbers, half, sets = [], 0, set()
        while len(numbers) < sent:
            data, more, _, source = receiver.recvmsg(100, 100)
            numbers.append(struct.unpack("!I", data)[0])
            half += source[1] - 1000 != more[0][2][0] >> 2
            sets.add(source[1])
        eq(numbers, list(range(sent)), f"all of {sent} datagrams arrived, in order")
        eq(half, 0, f"none was treated by half a set, through {len(sets)} sets")
        closes(s.account(), "change of many")
    receiver.close()
    client.close()


# ---- the switch itself ----

RECVERR = {False: (socket.IPPROTO_IP, 11), True: (socket.IPPROTO_IPV6, 25)}
HOPS = {False: (socket.IPPROTO_IP, socket.IP_TTL), True: (socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS)}
DISCOVER = {False: (socket.IPPROTO_IP, 10), True: (socket.IPPROTO_IPV6, 23)}
PMTUDISC_DO = 2


def addressed():
    """The router, at whose ports its hosts find their gateway."""
    text = lab.read(os.path.basename(router()))
    for name, number in NUMBERS.items():
        v4, v6 = GATEWAYS[name]
        mtu = ", mtu: 1280" if name == "b" else ""
        text = text.replace(f'p{number}" }}', f'p{number}", addresses: [ {v4}, "{v6}" ]{mtu} }}')
    return write("addressed.yaml", text)


def error_for(v6, length=20, hops=64, to=None):
    """What the kernel of a is told of a datagram: errno, ICMP type and code, what else it says, and who said it."""
    with NS["a"]:
        s = socket.socket(socket.AF_INET6 if v6 else socket.AF_INET, socket.SOCK_DGRAM)
    with s:
        s.setsockopt(*RECVERR[v6], 1)
        s.setsockopt(*HOPS[v6], hops)
        s.setsockopt(*DISCOVER[v6], PMTUDISC_DO)
        s.sendto(bytes(length), (to or HOSTS["b"][v6], 9))

        def told():
            try:
                return s.recvmsg(2000, 500, socket.MSG_ERRQUEUE)[1]
            except BlockingIOError:
                return None
        answer = []
        wait(lambda: answer.append(told()) or answer[-1] is not None)
    if not answer[-1]:
        return None
    _, _, data = answer[-1][0]
    errno_, origin, kind, code, _, info, _ = struct.unpack_from("=IBBBBII", data)
    offender = data[16:]
    family = socket.AF_INET6 if v6 else socket.AF_INET
    who = socket.inet_ntop(family, offender[8:24] if v6 else offender[4:8])
    return os.strerror(errno_), origin, kind, code, info, who


def test_own_addresses():
    """Hosts find their gateway by ARP and neighbour discovery, ping it, and hear why packets were dropped: the kernel reads it."""
    for name in NUMBERS:
        for gateway in GATEWAYS[name]:
            NS[name].ip(f"neigh del {gateway} dev eth0")
    with Switch(addressed()) as s:
        ok(wait(forwards_again) and ping(), "hosts find their gateway by ARP")
        ok(wait(lambda: forwards_again(v6=True)) and ping(v6=True), "and by neighbour discovery")
        eq(echo(GATEWAYS["a"][0], 50), 64, "it answers pings")
        ok(echo(GATEWAYS["a"][1], 51, v6=True) is not None, "of IPv6 too")
        eq(echo(GATEWAYS["b"][0], 52), 64, "at all of its addresses")
        eq(error_for(False, hops=1), ("No route to host", 2, 11, 0, 0, GATEWAYS["a"][0]), "TTL: time exceeded, from the port")
        eq(error_for(True, hops=1), ("No route to host", 3, 3, 0, 0, GATEWAYS["a"][1]), "hop limit")
        eq(error_for(False, length=1400), ("Message too long", 2, 3, 4, 1280, GATEWAYS["a"][0]), "MTU: fragmentation needed")
        eq(error_for(True, length=1400), ("Message too long", 3, 2, 0, 1280, GATEWAYS["a"][1]), "packet too big")
        eq(error_for(False, to="10.99.0.1"), ("Network is unreachable", 2, 3, 0, 0, GATEWAYS["a"][0]), "no route")
        eq(error_for(False, to=GATEWAYS["a"][0]), ("Connection refused", 2, 3, 3, 0, GATEWAYS["a"][0]), "no listener")
        ok(tcp(2), "TCP finds the MTU behind the switch")
        cells = {c["name"]: c["packets"] for c in s.ask("counters")["counters"]}
        ok(all(cells.get("own." + k, 0) > 0 for k in ("arp", "nd", "echo", "time_exceeded", "too_big", "unreachable")), "all counted",
           cells)
        closes(s.account(), "own addresses")
    for name in NUMBERS:
        for gateway in GATEWAYS[name]:
            NS[name].ip(f"neigh replace {gateway} lladdr {NS['s'].mac(f'p{NUMBERS[name]}').hex(':')} dev eth0 nud permanent")
        NS[name].ip("route flush cache", check=False)
        NS[name].ip("-6 route flush cache", check=False)


# ---- reading the file again ----

def test_reload():
    """The file changes under traffic: tables, meters, groups, queues at once, and not one datagram is lost; a file with a fault and one
    that needs a restart change nothing."""
    path = router()
    text = lab.read(os.path.basename(path))
    b = host_mac("b")
    with Switch(path) as s:
        def reload(new, says):
            before = lab.read("switch.log").count(says)
            write(os.path.basename(path), new)
            s.process.send_signal(signal.SIGHUP)
            return wait(lambda: lab.read("switch.log").count(says) > before)

        ok(ping(), "it forwards")
        stream = Stream()
        wait(lambda: len(stream.got) > 100)
        done = 0
        for i in range(30):
            way = f"- ip.dst=10.81.2.0/24 -> route 2 {b}"
            new = text.replace(way, f"- ip.dst=10.81.2.{2 if i % 2 else '0/25'} -> count more; select ways")
            new = new.replace("counters: [ { name: icmp }", "counters: [ { name: icmp }, { name: more }")
            new += f'groups: [ {{ name: ways, members: [ "route 2 {b}" ] }} ]\n'
            if i % 3:
                new = new.replace('p2" }', 'p2", rate: 900M, mtu: 1400 }')
            done += reload(new, "is in force")
        eq(done, 30, "every file came into force")
        wanted = len(stream.got) + 100
        wait(lambda: len(stream.got) > wanted)
        ok(reload(text.replace("route 2", "rout 2"), 'did you mean "route"'), "a fault is told with its place")
        ok(wait(lambda: "the switch stays as it is" in lab.read("switch.log")), "and what becomes of it")
        ok(reload(text.replace('packet:p2"', 'packet:p3"'), "port 2: another number, uri or number of queues needs a restart"),
           "what needs a restart is named")
        ok(reload(text + "clock: { offset: 1ms }\n", "another offset or drift of the clock needs a restart"), "and so is another clock")
        stream.finish()
        eq(stream.got, list(range(stream.sent)), f"all of {stream.sent} datagrams arrived, in order, through 30 files")
        cells = {c["name"]: c["packets"] for c in s.ask("counters")["counters"]}
        eq(cells["icmp"], 6, "a counter that stays keeps its value")
        ok(cells["more"] > 0, "one that came counts")
        account = s.account()
        eq((account["reloads"], account["reloads_refused"]), (30, 3), "reloads are counted")
        closes(account, "reload")
    write(os.path.basename(path), text)


# ---- the control socket ----

def test_hostile_clients():
    """Garbage, lines without end, clients that do not read or go away, more than there is room for: it forwards on."""
    rng = random.Random(SEED)
    with Switch(router()) as s:
        def connect():
            client = socket.socket(socket.AF_UNIX)
            client.settimeout(LIMIT)
            client.connect(SOCKET)
            return client

        garbage = [b"", b"\n", b"{}\n", b"[1]\n", b'{"do":7}\n', b'{"do":"change","changes":[]}\n', b'{"do":"dump"}\n',
                   b'{"do":"change","changes":[{"kind":"add","table":"routes","entry":7}]}\n', b'{"do":"change","changes":{}}\n',
                   b'{"do":"counters","name":"none"}\n', b'{"do":"prots"}\n', b"[" * 5000 + b"\n", b'{"do":"ports","do":"ports"}\n']
        garbage += [rng.randbytes(rng.randrange(1, 4000)).replace(b"\n", b"x") + b"\n" for _ in range(40)]
        answers = 0
        for line in garbage:
            client = connect()
            client.sendall(line)
            if line:
                answer = client.recv(1 << 16)
                answers += answer.startswith(b'{"ok":false,"error":"') and answer.endswith(b"}\n")
            client.close()
        eq(answers, len(garbage) - 1, "garbage gets an error, each a JSON line")
        client = connect()
        client.sendall(b'{"do":"ports"}\n{"do":"tables"}\n{"do":"account"}\n')
        text = b""
        while text.count(b"\n") < 3:
            text += client.recv(1 << 16)
        eq([json.loads(line)["ok"] for line in text.splitlines()], [True] * 3, "requests that come together are answered in order")
        client.close()
        endless = connect()
        try:
            for _ in range(40):
                endless.sendall(b"x" * 65536)
            gone = endless.recv(1) == b""
        except OSError:
            gone = True
        ok(gone, "a line without end is given up")
        idle = [connect() for _ in range(8)]
        for client in idle:
            client.setblocking(False)
        flooder = idle[0]
        try:
            for _ in range(20000):
                flooder.send(b'{"do":"account"}\n' * 20)
        except BlockingIOError:
            pass
        ok(ping(), "with all places taken, by clients that do not read, it forwards")
        for client in idle:
            client.close()
        ok(wait(lambda: s.ask("ports").get("ok")), "and answers when there is room again")
        closes(s.account(), "hostile clients")


def test_silent_clients():
    """Clients that take all places and say nothing: another one gets the place of the first, whoever asks keeps its own."""
    with Switch(router()) as s:
        clients = []
        for _ in range(8):
            client = socket.socket(socket.AF_UNIX)
            client.settimeout(LIMIT)
            client.connect(SOCKET)
            clients.append(client)
        clients[1].sendall(b'{"do":')

        def asks():
            """the ninth is answered, while the last one asks again and again"""
            clients[7].sendall(b'{"do":"tables"}\n')
            return clients[7].recv(1 << 16) and ninth.poll() is not None
        ninth = lab.start([PATHLINE, "switch", "ports", "-s", SOCKET, "-o", "json"], stdout=open(lab.path("ninth"), "w", encoding="utf-8"))
        ok(wait(asks, pause=0.2), "the ninth client gets a place")
        ok(json.loads(lab.read("ninth"))["ok"], "and its answer")
        eq(clients[0].recv(1), b"", "that of the one that was silent longest")
        clients[1].sendall(b'"ports"}\n')
        ok(json.loads(clients[1].recv(1 << 16))["ok"], "another one may end its request")
        for client in clients:
            client.close()
        closes(s.account(), "silent clients")


# ---- faults ----

def test_hostile_packets():
    """Frames of every kind of damage: the accounts agree, and it forwards on."""
    rng = random.Random(SEED)
    with Switch(router()) as s:
        with NS["a"]:
            raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
            raw.bind(("eth0", 0))
        mac = NS["s"].mac("p1")

        def has_them():
            """thousands came in: the kernel takes tags out of frames, and drops those whose tag is cut"""
            for _ in range(300):
                kind = rng.choice([0x0800, 0x86dd, 0x8100, 0x88a8, 0x8847, 0x0806, rng.randrange(1 << 16)])
                raw.send(mac + rng.randbytes(6) + struct.pack("!H", kind) + rng.randbytes(rng.randrange(0, 200)))
            return s.account()["packets"] > 2900
        ok(wait(has_them), "they come in")
        ok(s.account()["dropped_ingress"]["malformed"] > 500, "many are malformed")
        ok(ping(), "it forwards on")
        closes(s.account(), "hostile packets")


def test_port_goes():
    """A port's interface goes down and comes back; drops have the cause port meanwhile."""
    with Switch(router()) as s:
        ok(ping(), "it forwards")
        NS["s"].ip("link set p2 down")
        ok(wait(lambda: not s.ask("ports")["ports"][1]["up"]), "the port is down")
        ok(wait(lambda: not ping(1, seconds=0.2) and s.account()["dropped_ingress"]["port"] > 0), "packets for it are dropped as port")
        NS["s"].ip("link set p2 up")
        ok(wait(forwards_again), "and it forwards again")
        closes(s.account(), "port goes")


def test_port_vanishes():
    """A port's interface is deleted under traffic, and made again: the switch forwards again, nothing is uncounted."""
    with Switch(router()) as s:
        ok(ping(), "it forwards")
        mac = host_mac("b")
        with NS["a"]:
            client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        over = []

        def send():
            while not over:
                client.sendto(bytes(500), (HOSTS["b"][0], 9))
                time.sleep(0.0002)

        thread = threading.Thread(target=send)
        thread.start()
        NS["s"].ip("link del p2")
        ok(wait(lambda: not s.ask("ports")["ports"][1]["up"]), "the port is down")
        ok(wait(lambda: s.account()["dropped_ingress"]["port"] > 100), "packets for it are dropped as port")
        wire_one("b", mac)
        ok(wait(forwards_again), "and it forwards again")
        over.append(True)
        thread.join(LIMIT)
        closes(s.account(), "port vanishes")


def test_other_mac():
    """The interface that comes back has another MAC address: the switch is that one now, and hears of nothing sent to the one before."""
    with Switch(router()) as s:
        mac, was = host_mac("b"), NS["s"].mac("p2")
        NS["s"].ip("link del p2")
        ok(wait(lambda: not s.ask("ports")["ports"][1]["up"]), "the port is down")
        wire_one("b", mac)
        NS["s"].ip("link set p2 down")
        NS["s"].ip("link set p2 address 02:00:00:00:77:02")
        ok(wait(lambda: not s.ask("ports")["ports"][1]["up"]), "and again")
        NS["s"].ip("link set p2 up")
        for gateway in GATEWAYS["b"]:
            NS["b"].ip(f"neigh replace {gateway} lladdr 02:00:00:00:77:02 dev eth0 nud permanent")
        ok(wait(forwards_again), "it forwards")
        with NS["b"]:
            listener = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
            listener.bind(("eth0", 0))
        ok(wait(forwards_again), "and is heard at the host")
        sources = {p[6:12] for p in iter(lambda: receive_now(listener), None) if p[14 + 9] == 1 and p[14 + 12:14 + 16] == socket.inet_aton(HOSTS["a"][0])}
        eq((sources, was in sources), ({bytes.fromhex("020000007702")}, False), "what it sends is from the address that the interface has")


def receive_now(listener):
    try:
        return listener.recv(2000, socket.MSG_DONTWAIT)
    except BlockingIOError:
        return None


def test_end():
    """Told to end with full queues, and copies that nobody can get: every packet has an end, on every page."""
    path = write("full.yaml", lab.read(os.path.basename(router())).replace(
        'uri: "packet:p2" }', 'uri: "packet:p2", rate: 8, queues: [ { limit: 60kB } ] }').replace(
        "-> count icmp", "-> count icmp; mirror 2").replace("- ip.proto=1 ", "- ip.proto=17 -> mirror 2; mirror 1\n      - ip.proto=1 "))
    with Switch(path, "--web", "127.0.0.1:0") as s:
        with NS["a"]:
            client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for _ in range(400):
            client.sendto(bytes(958), (HOSTS["b"][0], 9))
        ok(wait(lambda: s.account()["packets"] >= 400), "they came")
        account = s.account()
        ok(account["packets_held"] > 20, f"{account['packets_held']} packets wait")
        eq(account["packets_sending"], 1, "and one is being sent")
        closes(account, "full queues")
        eq(account["packets_held"], sum(p["queued"] for p in s.ask("ports")["ports"]), "ports say how many")
        eq(s.end(), 0, "it ends")
    last = json.loads(lab.read("switch.json").splitlines()[-1])
    account = last["switch"] if "switch" in last else last
    closes(account, "at the end")
    eq((account["packets_held"], account["packets_sending"], account["frames_unsent"]), (0, 0, 1), "nothing is held, and one was not sent to its end")
    ok(account["dropped_egress"]["port"] > 20, "what waited is booked as dropped")
    text = lab.read("switch.log")
    numbers = {k: int(n) for n, k in re.findall(r"(\d+) (?:frames )?(received|made|sent|kept)", text)}
    dropped = sum(int(n) for n in re.findall(r"(\d+) dropped \(", text))
    unsent = sum(int(n) for n in re.findall(r"(\d+) not taken", text))
    eq(numbers["received"] + numbers["made"], numbers["sent"] + dropped + numbers.get("kept", 0) + unsent, f"the words add up: {text}")


def test_mirror_loop():
    """An entry behind the queue that sends copies to its own port: packets go round, the switch still answers and ends."""
    path = write("loop.yaml", lab.read(os.path.basename(router())) + """
  - name: copies
    stage: egress
    key: [ port.out exact ]
    entries:
      - port.out=2 -> mirror 2
""")
    with Switch(path) as s:
        ping(1, seconds=2)
        ok(s.ask("ports").get("ok"), "it answers")
        closes(s.account(), "a loop of copies")


def test_kill():
    """Killed, it leaves a socket; the next switch takes its place, and a second one at a time does not."""
    path = router()
    s = Switch(path)
    ok(ping(), "it forwards")
    s.end(signal.SIGKILL)
    ok(os.path.exists(SOCKET), "its socket is left")
    with Switch(path):
        ok(wait(forwards_again), "the next one forwards")
        second = pathline.run("switch", "-c", path, preexec_fn=NS["s"].__enter__)
        ok(second.returncode == 69 and "another process listens there" in second.stderr, f"another one is refused: {second.stderr}")


def test_files():
    """Faults of files have their place."""
    router_text = lab.read(os.path.basename(router())).replace("route 2", "rout 2", 1)
    broken = write("broken.yaml", router_text)
    line = 1 + [i for i, text in enumerate(router_text.splitlines()) if "rout 2" in text][0]
    answer = pathline.run("switch", "check", "-c", broken)
    eq(answer.returncode, 78, "a broken file has its exit code")
    ok(f"{broken}:{line}:9: unknown action \"rout\", did you mean \"route\"?" in answer.stderr, answer.stderr)
    eq(pathline.run("switch", "check", "-c", router()).returncode, 0, "a right one is right")
    answer = pathline.run("switch", "check", "-c", write("nowhere.yaml", lab.read(os.path.basename(router())) + "\nmarking: { to: [ nowhere ] }\n"))
    ok(answer.returncode == 78 and "marking.to: 'nowhere' is no output" in answer.stderr, f"an output that is none: {answer.stderr}")
    for n, code in ((65536, 0), (65537, 78)):
        entries = "".join(f"      - ip.dst=10.{i >> 10}.{i >> 2 & 255}.{i % 4 * 64}/26 -> forward 1\n" for i in range(n))
        large = write("large.yaml", f"ports: [ {{ number: 1, uri: 'packet:eth1' }} ]\ntables:\n  - name: routes\n    key: [ ip.dst prefix ]\n"
                                    f"    size: 65536\n    entries:\n{entries}")
        answer = pathline.run("switch", "check", "-c", large)
        eq((answer.returncode, "from 0 to 65536, not 65537" in answer.stderr), (code, code != 0), f"a table of {n} entries {answer.stderr}")
    answer = pathline.run("switch", "ports", "-s", lab.path("none.sock"))
    ok(answer.returncode == 69 and "no switch listens" in answer.stderr, "a switch that is not there")


def test_page():
    """The metrics page has families that `help metrics` knows, and the account's numbers."""
    with Switch(router(), "--web", "127.0.0.1:0") as s:
        ok(ping(), "it forwards")
        url = re.search(r"metrics on (http://\S+)", lab.read("switch.log")).group(1)
        page = NS["s"].sh(f"curl -s {url}")
        found = set(re.findall(r"^# HELP (pathline_switch_\S+)", page, re.M))
        known = set(re.findall(r"^  (pathline_switch_\w+)", pathline.run("help", "metrics").stdout, re.M))
        eq(sorted(found ^ known), [], "the page has the families of help metrics")
        sent = int(re.search(r"^pathline_switch_frames_sent_total (\d+)", page, re.M).group(1))
        ok(6 <= sent <= s.account()["frames_sent"], f"{sent} frames sent")


def test_rate():
    """A port of 2 Mb/s with a short queue: what does not fit is dropped by the queue."""
    path = write("slow.yaml", lab.read(os.path.basename(router())).replace(
        'uri: "packet:p2" }', 'uri: "packet:p2", rate: 2M, queues: [ { limit: 20kB } ] }'))
    with Switch(path) as s:
        with NS["a"]:
            client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sent = 0

        def is_full():
            """some did not fit"""
            nonlocal sent
            for _ in range(500):
                client.sendto(bytes(958), (HOSTS["b"][0], 9))
                sent += 1
            return wait(lambda: s.account()["packets"] >= sent) and s.ask("ports")["ports"][1]["queue_dropped"] > 0
        ok(wait(is_full), "the queue is full")
        ok(wait(lambda: s.ask("ports")["ports"][1]["queued"] == 0), "the queue empties")
        port = s.ask("ports")["ports"][1]
        closes(s.account(), "rate")
        dropped = s.account()["dropped_egress"]["queue"]
        eq(dropped, port["queue_dropped"], "drops of the queue have its cause")


def at_rate(rate):
    return write("rate.yaml", lab.read(os.path.basename(router())).replace('uri: "packet:p2" }', f'uri: "packet:p2", rate: {rate} }}'))


def test_last_bit():
    """A frame leaves with its last bit at the port's rate, not before it, by the kernel's stamp at its receiver; a reload keeps it."""
    frame, rate, times = 1000, 40000, []
    with NS["b"]:
        receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        receiver.bind((HOSTS["b"][0], 9))
        receiver.settimeout(LIMIT)
    with NS["a"]:
        client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with Switch(at_rate(rate)) as s:
        for i in range(4):
            before = time.clock_gettime_ns(time.CLOCK_REALTIME)
            client.sendto(bytes(frame - 42), (HOSTS["b"][0], 9))
            if i == 2:
                s.process.send_signal(signal.SIGHUP)
            seconds, ns = struct.unpack("qq", receiver.recvmsg(2000, 100)[1][0][2])
            times.append(seconds * 10**9 + ns - before)
        ok(min(times) >= 8 * frame * 10**9 // rate, f"no frame comes before its last bit: {times}")
        ok(wait(lambda: s.account()["reloads"] == 1), "the file was read again")
        closes(s.account(), "last bit")
    receiver.close()
    mac = host_mac("b")
    with Switch(at_rate(8)) as s:
        client.sendto(bytes(frame - 42), (HOSTS["b"][0], 9))
        ok(wait(lambda: s.account()["packets_sending"] == 1), "a frame is being sent")
        closes(s.account(), "being sent")
        NS["s"].ip("link del p2")
        ok(wait(lambda: not s.ask("ports")["ports"][1]["up"]), "the port goes")
        account = s.account()
        eq((account["packets_sending"], account["frames_unsent"]), (0, 1), "the frame was not sent to its end, and is counted")
        closes(account, "gone with a frame")
    wire_one("b", mac)


def stamps(receiver, client, number, payload):
    """Kernel's stamps, in ns, of so many datagrams that were handed to the switch at once; None: some did not come."""
    for _ in range(number):
        client.sendto(bytes(payload), (HOSTS["b"][0], 9))
    ret = []
    try:
        while len(ret) < number:
            seconds, ns = struct.unpack("qq", receiver.recvmsg(2000, 100)[1][0][2])
            ret.append(seconds * 10**9 + ns)
    except TimeoutError:
        return None
    return ret


def test_no_hidden_buffer():
    """From the first to the last frame of a burst the bytes take 8 B / C, by the kernel's stamps, within 2 %: no lateness of the
    switch adds up. A machine that was busy at the first frame, at the last or with the sender spoils a burst, and another one is sent."""
    frame = 1500
    with NS["b"]:
        receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)
        receiver.bind((HOSTS["b"][0], 9))
        receiver.settimeout(5)
    with NS["a"]:
        client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for rate, number in ((10_000_000, 400), (100_000_000, 650)):
        expected, spans = 8 * frame * (number - 1) * 10**9 // rate, []

        def is_exact():
            """a burst takes what its bytes take"""
            times = stamps(receiver, client, number, frame - 42)
            spans.append(times and times[-1] - times[0])
            return times is not None and abs(spans[-1] - expected) <= expected // 50
        with Switch(at_rate(rate)) as s:
            ok(wait(is_exact), f"{rate // 10**6} Mb/s: {number - 1} frames take {expected} ns", spans)
            closes(s.account(), "no hidden buffer")
    receiver.close()
    client.close()


def test_truth():
    """The truth has an event for each drop; when it is full, a question says how many are no longer there."""
    folder, kept = lab.path("truth"), 8192
    path = write("truth.yaml", lab.read(os.path.basename(router())).replace("name: s1", f"name: s1\ntruth: {folder}", 1).replace(
        "- ip.proto=1 ", "- ip.proto=17 -> drop\n      - ip.proto=1 "))

    with Switch(path) as s:
        with NS["a"]:
            client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

        def drops():
            account = s.account()
            return sum(account["dropped_ingress"].values()) + sum(account["dropped_egress"].values())

        def is_whole():
            """events that are there, and those that are not any more, are all drops"""
            before = drops()
            r = pathline.run("query", "SELECT count(*) AS n FROM events", folder, "-o", "jsonl")
            n, gone = json.loads(r.stdout)["n"], re.search(r"(\d+) earlier events are no longer there", r.stderr)
            seen.append((before, n, gone and gone.group(1), drops()))
            return before <= n + int(gone.group(1) if gone else 0) <= drops() and n

        def is_full():
            """more drops than are kept"""
            for _ in range(1000):
                client.sendto(bytes(20), (HOSTS["b"][0], 9))
            return drops() > kept
        seen = []
        client.sendto(bytes(20), (HOSTS["b"][0], 9))
        ok(wait(drops), "a drop")
        ok(wait(is_whole) and seen[-1][2] is None, "is in the truth, and none is missing", seen)
        ok(wait(is_full, pause=0), "more are dropped than are kept")
        eq(wait(is_whole), kept, "the last ones are there, and the question says how many are not")
        closes(s.account(), "truth")
    client.close()


def blocks(path, point):
    """Packets of the point's records in the file, by block: fields of mark128/1 where docs/formats/records.md has them."""
    ret = {}
    data = open(path, "rb").read()
    for at in range(0, len(data) - 127, 128):
        block, packets = struct.unpack_from("<Q8xQ", data, at + 48)
        if struct.unpack_from("<I", data, at + 104)[0] == point:
            ret[block] = ret.get(block, 0) + packets
    return ret


def test_marking():
    """Points at two ports mark and count what passes; the colours that the host's own socket sees are those of the records."""
    records = lab.path("points.mark128")
    path = write("points.yaml", lab.read(os.path.basename(router())) + f"""
marking:
  period: 200ms
  bits: [ ipv4-reserved ]
  delay: 10ms
  to: [ "file:{records}" ]
  points:
    - {{ number: 1, port: 1, role: marker, by: none }}
    - {{ number: 2, port: 2, direction: out }}
""")
    total, colours = 300, [0, 0]
    with NS["b"]:
        seen = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
        seen.bind(("eth0", 0))
        seen.settimeout(LIMIT)
    with Switch(path) as s:
        with NS["a"]:
            client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        while sum(colours) < total:
            client.sendto(bytes(100), (HOSTS["b"][0], 9))
            frame, where = seen.recvfrom(2048)
            while where[2] == socket.PACKET_OUTGOING or frame[23] != 17:
                frame, where = seen.recvfrom(2048)
            colours[frame[20] >> 7] += 1
            time.sleep(0.002)
        ok(wait(lambda: all(sum(blocks(records, point).values()) >= total for point in (1, 2))), "all packets are in records")
        s.end()
    for point in (1, 2):
        counts = blocks(records, point)
        eq([sum(n for block, n in counts.items() if block % 2 == colour) for colour in (0, 1)], colours,
           f"point {point}: packets of each colour are those that arrived with it")
    seen.close()


wire()
lab.run(test_files, test_packet, test_afxdp, test_offloads, test_bridge, test_change, test_change_of_many, test_own_addresses, test_reload, test_page, test_rate, test_last_bit, test_no_hidden_buffer, test_truth, test_marking, test_hostile_clients, test_silent_clients,
        test_hostile_packets, test_port_goes, test_port_vanishes, test_other_mac, test_end, test_mirror_loop, test_kill)
sys.exit(tap.end())
