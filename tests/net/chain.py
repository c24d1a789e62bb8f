#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The chain over a wire: generators, pathline translate, RoCE between network namespaces, pathline collect, regions,
answers (lab_dta.py has it as a lab, with frames lost on the way). Congested, as the network says; with a collector killed and started
again, a translator likewise, and one of two collectors gone. No answer may be wrong, and every account closes. usage: chain.py PATHLINE"""
import collections
import ctypes
import fcntl
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, network, pathline, roce, tap  # noqa: E402
from lib.pathline import PATHLINE, region as rows  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait as wait_for  # noqa: E402

LIMIT = 100
NS, HUB = {}, []
ROUND = 4000  # keys, which are reported in turn
IP = {'t': '10.79.0.1', 'c1': '10.79.0.11', 'c2': '10.79.0.12'}
UDP, TCP = 22040, 22071
LISTEN = f'udp://127.0.0.1:{UDP}'
folder = lab.folder('/dev/shm' if os.path.isdir('/dev/shm') else None)


def wait(what):
    return wait_for(what, LIMIT)


# ---- the network: t, c1 and c2 on one link in the middle of which is the hub ----

def make_network():
    for name in ('hub', *IP):
        NS[name] = network.Namespace('chain-' + name, ipv6=False)
    for name in IP:
        network.join(NS[name], 'eth0', NS['hub'], name)
        NS[name].call(lambda: no_offload('eth0'))
        NS[name].up('eth0', IP[name] + '/24')
        NS['hub'].up(name)
    network.wait_for_carrier(*[(NS[name], 'eth0') for name in IP])


def no_offload(interface):
    """Whole frames with whole checksums: they pass through a socket in the hub."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for command in (0x17, 0x1f, 0x24):  # ETHTOOL_STXCSUM, STSO, SGSO
            value = ctypes.create_string_buffer(struct.pack('II', command, 0))
            request = struct.pack('16sP', interface.encode(), ctypes.addressof(value)).ljust(40, b'\0')
            try:
                fcntl.ioctl(s, 0x8946, request)
            except OSError:
                pass


def cnp(acknowledgement, source):
    """A congestion notification (annex A17.9) to the queue pair that was acknowledged, from this address."""
    to, qpn = socket.inet_ntoa(acknowledgement[30:34]), int.from_bytes(acknowledgement[47:50], 'big')
    return acknowledgement[:14] + roce.packet(source, to, roce.bth(0x81, qpn, 0, head=0x40) + bytes(16))


class Hub(threading.Thread):
    """Passes frames on between all that are plugged in. It counts writes, and tells who is acknowledged of
    congestion, every 5 ms, as if it were the host `congested`. Its numbers are read by others, never set."""

    def __init__(self):
        super().__init__(daemon=True)
        self.unsent, self.ended = 0, False
        self.writes, self.congested, self.cnps, self.told = 0, None, collections.Counter(), 0
        self.marking, self.marked = False, 0
        self.ports = {name: self.plug(name) for name in IP}

    @staticmethod
    def plug(name):
        s = roce.packet_socket(NS['hub'], name)
        s.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)  # SO_RCVBUFFORCE
        s.setsockopt(263, 23, 1)  # PACKET_IGNORE_OUTGOING
        s.setblocking(False)
        return s

    def put(self, name, frame):
        """Whether its interface took it: it may be full, as on any wire."""
        try:
            return self.ports[name].send(frame) > 0
        except OSError:
            return False

    def unheard(self):
        """Frames that came to no end by themselves."""
        ends = [(NS['hub'], name) for name in IP] + [(NS[name], 'eth0') for name in IP]
        return self.unsent + sum(int(ns.sh(f'cat /sys/class/net/{interface}/statistics/tx_dropped')) for ns, interface in ends)

    def look(self, frame, came):
        if len(frame) < 58 or not roce.is_roce(frame):
            return
        self.writes += frame[42] in (0x0a, 0x2a)
        name = self.congested
        if name is None or frame[42] != 0x11 or came == 't' or time.monotonic() - self.told < 0.005:
            return
        self.told = time.monotonic()
        self.cnps[name] += self.put('t', cnp(frame, IP[name]))

    def mark(self, frame):
        """As a congested switch does: what may be marked is marked instead of dropped (RFC 3168)."""
        if not self.marking or len(frame) < 58 or not roce.is_roce(frame) or frame[15] & 3 not in (1, 2):
            return frame
        self.marked += 1
        head = bytearray(frame[14:34])
        head[1] |= 3
        head[10:12] = bytes(2)
        head[10:12] = roce.ones_sum(bytes(head)).to_bytes(2, 'big')
        return frame[:14] + bytes(head) + frame[34:]

    def run(self):
        macs, names = {}, {s.fileno(): name for name, s in self.ports.items()}
        poll = select.poll()
        for s in self.ports.values():
            poll.register(s, select.POLLIN)
        while not self.ended:
            for fd, _ in poll.poll(200):
                came = names[fd]
                for _ in range(256):
                    try:
                        frame = self.ports[came].recv(65536)
                    except BlockingIOError:
                        break
                    macs[frame[6:12]] = came
                    to = [macs[frame[:6]]] if frame[:6] in macs else [n for n in IP if n != came]
                    self.look(frame, came)
                    for name in to:
                        self.unsent += not self.put(name, self.mark(frame))


# ---- parts ----

class Part:
    """A pathline of its own, which may be in a namespace; what it says is kept."""

    def __init__(self, where, *args):
        prefix = NS[where].command() if where else []
        self.process = lab.start([*prefix, PATHLINE, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.said, self.printed = [], []
        self.threads = [threading.Thread(target=self.keep, args=(stream, lines), daemon=True)
                        for stream, lines in ((self.process.stderr, self.said), (self.process.stdout, self.printed))]
        for t in self.threads:
            t.start()

    @staticmethod
    def keep(stream, lines):
        for line in stream:
            lines.append(line)

    def asked(self):
        """Its account while it runs."""
        n = len(self.printed)
        self.process.send_signal(signal.SIGUSR1)
        return json.loads(self.printed[n]) if wait(lambda: len(self.printed) > n) else {}

    def times(self, text):
        return sum(text in line for line in list(self.said))

    def says(self, text, times=1):
        return wait(lambda: self.times(text) >= times or self.process.poll() is not None) and self.times(text) >= times

    def end(self, signo=signal.SIGTERM):
        """What it printed as JSON; {} when it was killed."""
        self.process.send_signal(signo)
        self.process.wait(timeout=LIMIT)
        for t in self.threads:
            t.join(LIMIT)
        try:
            return json.loads(self.printed[-1])
        except (LookupError, ValueError):
            return {}


def path(name):
    return os.path.join(folder, name)


def create(name, *args):
    pathline.run('region', 'create', path(name), '--seed', 4711, '--primitive', *args, check=True)


def collector(where, *stores, dev='packet:eth0'):
    part = Part(where, 'collect', '--read', '--stats', '--allow', IP['t'] + '/32', '--listen', f'{IP[where]}:{TCP}', dev, *stores)
    ok(part.says('collecting on'), f'collector {where} listens', ''.join(part.said))
    return part


def translator(stores, *collectors, options=(), service='rc', dev='packet:eth0', keys=''):
    where = ','.join(f'{IP[c]}:{TCP}' for c in collectors)
    part = Part('t', 'translate', '--stats', '--flush', '20ms', *options, LISTEN,
                f'roce://{where}/{stores}?dev={dev}&service={service}{keys}')
    ok(part.says('translating from'), 'translator is connected', ''.join(part.said))
    return part


def generate(reports, *args, rate='4k'):
    return Part('t', 'gen', 'dta', '-n', reports, '--rate', rate, *args, LISTEN)


def done(part):
    if wait(lambda: part.process.poll() is not None):
        part.end()
        return True
    return False


def closed(s, executed=None):
    """The translator's account; with what collectors executed."""
    out = s.get('out', {})
    good = s != {} and s['reports'] == s['accepted'] + s['duplicates'] + sum(s['unreadable'].values()) + \
        sum(s['refused'].values()) and s['held'] == 0 and s['writes'] + s['adds'] == out['given']
    for c in out.get('collectors', []):
        good = good and c['given'] == c['done'] + c['lost'] + c['full'] + c['down'] + c['outside'] and \
            c['waiting'] == 0 and c['done'] == c['writes'] + c['adds'] and c['outside'] == 0
    if executed is not None and good:
        good = out['writes'] + out['adds'] <= executed <= out['writes'] + out['adds'] + out['lost']
    return good


def executed(*accounts):
    return sum(a.get('writes', 0) + a.get('adds', 0) for a in accounts)


# ---- tests ----

def wrong_values(name, keys):
    """Keys whose value is not their own number, or that of a later round. Missing ones are not among them."""
    found = rows('lookup', '--key-form', 'be32', path(name), *[str(k) for k in keys])
    wrong = [f for f in found if 'error' in f or (f['answer'] == 'found' and int(f['value'], 16) % ROUND != int(f['key'], 0))]
    return wrong, {int(f['key'], 0) for f in found if f.get('answer') == 'found'}


def whole(name):
    return sum(r.get('whole', 0) or 0 for r in rows('verify', path(name)))


def test_collector_killed():
    """In mid-stream, and started again on the same regions."""
    create('k-last', 'key-write', '--slots', 262144)
    create('k-lists', 'append', '--slots', 65536, '--value-bytes', 4, '--lists', 2)
    stores = f"last={path('k-last')}", f"lists={path('k-lists')}"
    c = collector('c1', *stores)
    t = translator('last,lists', 'c1')
    # However long it takes keys are reported again, and lists do not go round.
    gens = [generate(10**8, '--form', 'pathline', '--keys', ROUND),
            generate(10**8, '--stream', 'append', '--store', 1, '--lists', 2, rate='1k')]
    ok(wait(lambda: whole('k-lists') > 1000 and len(wrong_values('k-last', range(0, ROUND, 3))[1]) > 200),
       'entries and keys arrive')
    c.end(signal.SIGKILL)
    ok(t.says('lost ('), 'the translator knows that the collector is gone', ''.join(t.said))
    kept = whole('k-lists')
    c = collector('c1', *stores)
    ok(t.says(': connected', 2), 'and finds it again', ''.join(t.said))
    ok(wait(lambda: whole('k-lists') > kept + 1000), 'entries arrive again')
    for g in gens:
        g.end()
    s = t.end()
    ended = c.end()
    out = s.get('out', {})
    ok(closed(s) and out['collectors'][0]['connections'] >= 2 and out['collectors'][0]['connections_lost'] >= 1,
       'its account closes', s)
    ok(ended != {} and s['refused']['collector'] > 0, 'what came meanwhile was refused by name', s.get('refused'))
    for number in (0, 1):
        found = rows('dump', path('k-lists'), '--list', number)
        values = [int(f['value'], 16) for f in found]
        ok(len(values) > 500 and all(v % 2 == (number + 1) % 2 for v in values) and values == sorted(set(values)) and
           [f['number'] for f in found] == list(range(found[0]['number'], found[0]['number'] + len(found))),
           f'list {number}: {len(values)} entries, every one once, in their order', values[:5])
    ok(rows('verify', path('k-lists'))[0].get('damaged') == 0, 'none is damaged')
    wrong, found = wrong_values('k-last', range(0, ROUND, 3))
    ok(not wrong and len(found) > 100, f'{len(found)} keys found, none of them wrong', wrong[:3])


def writes_go_on(n=1000):
    """So many more pass the hub."""
    begun = HUB[0].writes
    return wait(lambda: HUB[0].writes >= begun + n)


def test_congested():
    """Notifications slow the requester down, those of somebody else do not. How much slower it is, by time that is handed to
    it: requester_test.c."""
    hub = HUB[0]
    create('n-last', 'key-write', '--slots', 262144, '--copies', 1)
    c = collector('c1', f"last={path('n-last')}")
    t = translator('last', 'c1')
    g = generate(10**8)
    ok(writes_go_on(), 'it writes')
    before, dropped = hub.cnps.copy(), hub.unheard()
    hub.congested = 'c2'
    ok(wait(lambda: hub.cnps['c2'] > 50 and t.asked()['out']['foreign'] > 50) and writes_go_on() and
       t.asked()['out']['slowed'] == 0, 'notifications of another host slow nobody down', hub.cnps)
    hub.congested = 'c1'
    # After a moment without a notification, when the machine stood still, it is fast.
    ok(wait(lambda: t.asked()['out']['slowed'] == 1), 'notified of congestion it is slow, and its account shows it')
    ok(writes_go_on(), 'it writes all the same')
    hub.congested = None
    ok(wait(lambda: t.asked()['out']['slowed'] == 0) and writes_go_on(), 'without notifications it is not any more')
    g.end()
    s = t.end()
    executed_by_c = c.end()
    out = s.get('out', {})
    ok(closed(s) and executed_by_c.get('writes') == out['writes'] and out['lost'] == 0, 'its account closes: nothing is lost', s)
    own, foreign = (hub.cnps[name] - before[name] for name in ('c1', 'c2'))
    dropped = hub.unheard() - dropped
    ok(own - dropped <= out.get('cnps', 0) <= own and foreign - dropped <= out.get('foreign', 0) <= foreign and out['slowed'] == 0,
       f'{own} notifications and {foreign} of somebody else are counted', (out, dropped))


def test_marked():
    """What is marked on its way has the collector notify the translator, which sends slower; what may not be marked is not."""
    hub = HUB[0]
    for keys, service in (('', 'rc'), ('', 'uc'), ('&ecn=off', 'uc')):
        create('e-last', 'key-write', '--slots', 262144, '--copies', 1)
        c = collector('c1', f"last={path('e-last')}")
        t = translator('last', 'c1', service=service, keys=keys)
        g = generate(10**8)
        ok(writes_go_on(), f'{service}{keys}: it writes')
        before, dropped, hub.marking = hub.marked, hub.unheard(), True
        if keys:
            ok(writes_go_on() and t.asked()['out']['slowed'] == 0, 'where frames may not be marked nobody is slow')
        else:
            ok(wait(lambda: t.asked()['out']['slowed'] == 1), 'where they are marked it is slow')
        hub.marking = False
        ok(wait(lambda: t.asked()['out']['slowed'] == 0) and writes_go_on(), 'and in the end it is not')
        g.end()
        s, executed_by_c = t.end(), c.end()
        told, seen, marked, dropped = executed_by_c['cnps'], executed_by_c['marked'], hub.marked - before, hub.unheard() - dropped
        ok(closed(s) and marked - dropped <= seen <= marked and told - dropped <= s['out']['cnps'] <= told,
           f'{marked} marks and {told} notifications are counted on both sides', (s, executed_by_c, dropped))
        ok((told == 0) == (marked == 0) == bool(keys) and told <= marked, 'no more than there were marks')
        os.unlink(path('e-last'))


def test_classes():
    """The translator's frames are of the class that it is told, and say that they may be marked unless they may not."""
    create('q-last', 'key-write', '--slots', 4096, '--copies', 1)
    c = collector('c1', f"last={path('q-last')}")
    wire = roce.packet_socket(NS['c1'], 'eth0')
    wire.setblocking(False)

    def seen():
        """Types of service of the requests that came."""
        found = set()
        while True:
            try:
                frame = wire.recv(4096)
            except BlockingIOError:
                return found
            if roce.is_roce(frame) and frame[26:30] == socket.inet_aton(IP['t']):
                found.add(frame[15])

    for dev in ('packet:eth0', f"udp://{IP['t']}"):
        for keys, tos in (('', 2), ('&dscp=26', 26 << 2 | 2), ('&dscp=63&ecn=off', 63 << 2), ('&ecn=off', 0)):
            t = translator('last', 'c1', service='uc', dev=dev, keys=keys)
            seen()
            g = generate(50)
            ok(done(g), 'reports')
            found = set()
            wait(lambda: found.update(seen()) or found)
            t.end()
            found |= seen()
            ok(found == {tos}, f'{dev}{keys}: type of service {tos}', found)
    wire.close()
    c.end()
    for keys in ('dscp=64', 'dscp=x', 'ecn=yes'):
        bad = pathline.run('translate', LISTEN, f"roce://{IP['c1']}:{TCP}/last?dev=packet:eth0&{keys}")
        ok(bad.returncode == 2 and 'dscp=0 to 63' in bad.stderr, f'{keys} is refused', bad.stderr)


def test_rings():
    """With AF_XDP on both sides, frames and answers leave by the rings of the sockets that receive, and all is accounted for."""
    if 'afxdp' not in pathline.run('help', 'collect').stdout:
        return
    create('x-last', 'key-write', '--slots', 262144, '--copies', 2)
    create('x-sums', 'counters', '--slots', 16384)
    c = collector('c1', f"last={path('x-last')}", f"sums={path('x-sums')}", dev='afxdp:eth0')
    t = translator('last,sums', 'c1', dev='afxdp:eth0')
    keys, sums = generate(4000), generate(2000, '--stream', 'increment', '--store', 1)
    ok(done(keys) and done(sums), 'reports')
    s, a = t.end(), c.end()
    out, port = s.get('out', {}), a.get('port', {})
    ok(closed(s, executed(a)) and out['lost'] == 0, 'rings: accounts close', (s, a))
    ok(out['frames_sent'] == out['ring_sent'] > 0 and out['ring_drops'] == out['frames_unsent'] == 0,
       'rings: requests leave by the ring', out)
    ok(port['sent'] == port['ring_sent'] >= a['atomic_acks'] > 0 and port['ring_drops'] == port['unsent'] == 0,
       'rings: and so do answers', a)
    wrong, found = wrong_values('x-last', range(0, 4000, 7))
    eq(s['reports'] + s['kernel_drops'], 6000, 'rings: reports = received + dropped by the kernel')
    ok(not wrong and len(found) > 560 - s['kernel_drops'], f'{len(found)} of 572 keys are found, none is wrong', wrong[:3])


def test_translator_killed():
    """Its lists go on where the collector has them, and nothing is written over."""
    create('r-lists', 'append', '--slots', 4096, '--value-bytes', 4, '--lists', 2)
    c = collector('c1', f"lists={path('r-lists')}")
    for service in ('uc', 'rc'):
        before = whole('r-lists')
        t = translator('lists', 'c1', service=service)
        g = generate(400, '--stream', 'append', '--lists', 2)
        ok(done(g) and wait(lambda: whole('r-lists') == before + 400), f'{service}: 400 entries',
           (whole('r-lists'), ''.join(t.said)))
        t.end(signal.SIGKILL)
    t = translator('lists', 'c1')
    g = generate(400, '--stream', 'append', '--lists', 2)
    ok(done(g) and wait(lambda: whole('r-lists') == 1200), 'and once more', whole('r-lists'))
    ok(closed(t.end()), 'its account closes')
    c.end()
    for number in (0, 1):
        values = [int(f['value'], 16) for f in rows('dump', path('r-lists'), '--list', number)]
        ok(values == list(range(number + 1, 401, 2)) * 3, f'list {number} has all three runs, whole and in order',
           values[:5])


def test_failover():
    """Keys and lists of a collector that is gone go to the other one."""
    for name in ('c1', 'c2'):
        create(f'f-last-{name}', 'key-write', '--slots', 262144)
        create(f'f-lists-{name}', 'append', '--slots', 65536, '--value-bytes', 4, '--lists', 8)
    stores = {n: (f"last={path('f-last-' + n)}", f"lists={path('f-lists-' + n)}") for n in ('c1', 'c2')}
    parts = {n: collector(n, *stores[n]) for n in ('c1', 'c2')}
    t = translator('last,lists', 'c1', 'c2')
    ok(t.says(': connected', 2), 'both are connected', ''.join(t.said))
    g = generate(10**8, '--stream', 'append', '--store', 1, '--lists', 8)
    ok(wait(lambda: whole('f-lists-c1') > 300 and whole('f-lists-c2') > 300), 'both have lists')
    parts['c2'].end(signal.SIGKILL)
    ok(t.says('lost ('), 'the translator knows that one is gone', ''.join(t.said))
    have = {r.get('list', i): 0 for i, r in enumerate(rows('verify', path('f-lists-c1')))}
    before = whole('f-lists-c1')
    ok(wait(lambda: all(len(rows('dump', path('f-lists-c1'), '--list', n, '-n', 1)) == 1 and
                        'number' in rows('dump', path('f-lists-c1'), '--list', n, '-n', 1)[0] for n in range(8)) and
            whole('f-lists-c1') > before + 500), 'the other one gets all eight lists', have)
    keys = generate(3000)
    ok(done(keys), 'keys are reported while one is gone')
    parts['c2'] = collector('c2', *stores['c2'])
    ok(t.says(': connected', 3), 'and is back', ''.join(t.said))
    kept = whole('f-lists-c2')
    ok(wait(lambda: whole('f-lists-c2') > kept + 300), 'its lists go there again')
    g.end()
    s = t.end()
    accounts = [p.end() for p in parts.values()]
    ok(closed(s) and all(a != {} for a in accounts), 'its account closes', s)
    ok(s['refused']['collector'] == 0, 'no report was refused: there was always one', s['refused'])
    wrong, found = wrong_values('f-last-c1', range(0, 3000, 3))
    ok(not wrong and len(found) > 980, f'{len(found)} of 1000 keys are found at the other one, none is wrong', wrong[:3])
    for name in ('c1', 'c2'):
        good, n = True, 0
        for number in range(8):
            values = [int(f['value'], 16) for f in rows('dump', path(f'f-lists-{name}'), '--list', number)
                      if 'value' in f]
            good = good and all((v - 1) % 8 == number for v in values) and values == sorted(set(values))
            n += len(values)
        ok(good and n > 300, f'{name}: {n} entries, every one in its list, once and in order')


def main():
    if os.geteuid() != 0:
        tap.skip_all('needs root: network namespaces')
    make_network()
    HUB.append(Hub())
    HUB[0].start()
    lab.run(test_congested, test_marked, test_classes, test_rings,
            test_collector_killed, test_translator_killed, test_failover)
    HUB[0].ended = True
    HUB[0].join()
    return tap.end()


sys.exit(main())
