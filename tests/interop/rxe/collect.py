#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""pathline collect on a soft-RoCE device: the program itself runs in an emulated machine, and its regions are written by the
kernel's rxe. Outside, behind a tap interface, are a peer that speaks the exchange of parameters byte by byte and RDMA-CM
(peer.c), and pathline translate.
usage: collect.py PATHLINE PEER FOLDER   FOLDER: where the guest's image is kept"""
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import time
import zlib

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from agent import OURS, Peer, guest as machine  # noqa: E402  (beside this file)
from lib import lab, pcap, roce  # noqa: E402
from lib.pathline import PATHLINE, run  # noqa: E402
from lib.stalls import attempt  # noqa: E402
from lib.tap import end, eq, ok, skip_all  # noqa: E402

PEER, FOLDER = sys.argv[2:4]
THERE, HOST, TAP = machine.ADDRESS4, '10.77.0.253', 'tap0'
SECONDS = 120
RC, UC, WRITE, ATOMIC = 0, 0x20, 2, 4
REGIONS = {'last': '--primitive key-write --slots 4096 --value-bytes 4 --seed 5',
           'lists': '--primitive append --slots 1024 --lists 4 --value-bytes 4 --seed 5',
           'sums': '--primitive counters --slots 4096 --seed 5',
           'paths': '--primitive postcards --slots 4096 --seed 5'}


def add_tap():
    """A tap interface in the test's network; None, or why there cannot be one."""
    if os.geteuid() != 0 or not os.path.exists('/dev/net/tun'):
        return 'needs root and /dev/net/tun'
    if not lab.OWN_NETWORK:
        return 'no network namespace'
    for command in ('ip tuntap add %s mode tap' % TAP, 'sysctl -qw net.ipv6.conf.%s.disable_ipv6=1' % TAP,
                    'ip link set %s mtu %d txqueuelen 10000 up' % (TAP, machine.MTU), 'ip addr add %s/24 dev %s' % (HOST, TAP)):
        run = subprocess.run(command.split(), capture_output=True, text=True)
        if run.returncode != 0:
            return '%s: %s' % (command, run.stderr.strip())
    return None


def ask(name, service, qpn, access=WRITE | ATOMIC):
    """What the collector answers to a queue pair of ours, and the connection that keeps it alive."""
    mac = bytes([2, 0, 0, 0, 0, 0xfe])
    connection = socket.create_connection((THERE, 7471), SECONDS)
    connection.sendall(roce.request(name, service, OURS[4], mac, qpn, depth=4, access=access))
    answer = roce.answer_from(connection)
    if len(answer) < 100:
        raise EOFError('the collector ended the exchange after %d bytes' % len(answer))
    fields = struct.unpack_from('>4sBBH16s6sHQB7xQIIIHBB', answer)
    names = 'magic version service length gid mac pkey va refusal bytes key qpn psn mtu depth access'.split()
    got = dict(zip(names, fields))
    got['good'] = struct.unpack_from('>I', answer, 96)[0] == zlib.crc32(answer[:96])
    return got, connection


def end_collectors(guest):
    """Also one that a test left behind which broke off."""
    guest.shell('kill -9 $(pidof pathline); while pidof pathline; do sleep 0.1; done')


def restore(guest):
    """What tests change in the guest, as it is at first."""
    try:
        end_collectors(guest)
        guest.shell('[ -e /sys/module/rdma_ucm ] || insmod /modules/rdma_ucm.ko')
        guest.shell('[ -e /sys/class/infiniband/rxe0 ] || rdma link add rxe0 type rxe netdev eth0', SECONDS)
        guest.shell('ip addr show dev eth0 | grep -q " %s/24 " || ip addr add %s/24 dev eth0' % (THERE, THERE))
    except (OSError, EOFError) as e:
        ok(False, 'the guest is there', str(e))


class Collector:
    """pathline collect in the guest, in the background."""

    def __init__(self, guest, *options, regions=tuple(REGIONS), sandbox='on'):
        self.guest = guest
        regions = ' '.join('/dev/shm/%s.plr' % name for name in regions)
        guest.shell('rm -f /tmp/out /tmp/err /tmp/code')
        guest.shell('(PATHLINE_SANDBOX=%s pathline collect --stats --allow %s/24 --allow 127.0.0.1/32 --proxy %s/32 --proxy 127.0.0.1/32 %s verbs:rxe0 %s >/tmp/out 2>/tmp/err; echo $? >/tmp/code) & echo' % (
            sandbox, HOST, HOST, ' '.join(options), regions))
        self.begun = self.wait('grep -q "collecting on" /tmp/err || [ -e /tmp/code ]')
        self.err = guest.shell('cat /tmp/err')[1]

    def wait(self, condition):
        """Whether the line of shell becomes true."""
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            if self.guest.shell(condition)[0] == 0:
                return True
            time.sleep(0.2)
        return False

    def signal(self, name):
        self.guest.shell('kill -%s $(pidof pathline)' % name)
        self.wait('[ -e /tmp/code ]')

    def stop(self):
        """Its account."""
        self.signal('TERM')
        code, out = self.guest.shell('cat /tmp/out; cat /tmp/err >&2; exit_code=$(cat /tmp/code); [ "$exit_code" = 0 ]')
        try:
            return json.loads(next(line for line in out.splitlines() if line.startswith('{')))
        except (StopIteration, ValueError):
            ok(False, 'the collector ends with its account', out)
            return {}


def test_exchange(guest, peer):
    """Parameters over TCP; writes and additions by our requester, reliable and not."""
    collector = Collector(guest)
    ok('collecting on verbs:rxe0 into 4 regions' in collector.err, 'collect runs on rxe0', collector.err)
    got, connection = ask('nothing', RC, 0x500)
    eq((got['good'], got['refusal'] != 0, got['qpn']), (True, True, 0), 'a region that is not there is refused')
    connection.close()
    number = 0x600
    for service, word in ((RC, 'rc'), (UC, 'uc')):
        number += 1
        got, connection = ask('sums', service, number)
        eq((got['good'], got['magic'], got['refusal'], got['service'], got['gid'][12:]),
           (True, b'PLRX', 0, service, socket.inet_aton(THERE)), word + ': there is a queue pair for it')
        qpn = peer.values('ask', word, THERE, got['qpn'], got['psn'], number)['qpn']
        peer.do('write', qpn, got['va'] + 8, got['key'], (1000 + service).to_bytes(8, 'little').hex(), 0x77)
        for _ in range(100):
            peer.do('run', 100)
            code, out = guest.shell('od -A n -t u8 -j %d -N 8 /dev/shm/sums.plr' % (got['va'] + 8))
            if out.split() == [str(1000 + service)]:
                break
        eq(out.split(), [str(1000 + service)], word + ': a write by address, which is the offset in the file')
        if service == RC:
            for _ in range(5):
                peer.do('add', qpn, got['va'] + 8, got['key'], 3)
            last = peer.values('wait', qpn, SECONDS * 1000)
            eq((last['failed'], last['original']), (0, 1012), 'rc: five additions are answered')
            peer.do('write', qpn, got['va'] + got['bytes'] - 3, got['key'], '00000000')
            last = peer.values('wait', qpn, SECONDS * 1000)
            eq((last['failed'], last['result']), (1, 2), 'rc: one byte outside is refused')
            eq(connection.recv(1), b'', 'and the connection ended, so that the peer asks again')
        connection.close()
    # By the connection manager: the name is the private data.
    peer.do('call', THERE, 7471)
    told = peer.values('event', SECONDS * 1000)
    eq((told['event'], told['reason']), (3, 28), 'RDMA-CM: a region that is not there is refused')
    stats = collector.stop()
    nic = stats.get('nic', {})
    eq([nic.get(name) for name in ('queue_pairs', 'broken', 'immediates', 'immediates_lost')], [2, 1, 2, 0],
       'the account: queue pairs, the one that failed, immediates')
    # Who has no answer for a while asks again.
    ok(nic.get('requests', 0) >= 1 and nic['requests'] == nic['refused'], 'a connection refused, as often as it was asked for', nic)
    eq((stats.get('signals'), stats.get('failed')), (2, 1), 'signals are told')
    ok(stats.get('hardware', {}).get('rcvd_pkts', 0) > 0, 'what rxe counts itself is there', stats.get('hardware'))
    eq([(p['store'], p['tcp'], p['connected']) for p in stats.get('peers', [])], [('sums', 2, 0)], 'who connected')


STREAMS = (('--stream', 'key-write', '--store', 0, '-n', 300), ('--stream', 'append', '--store', 1, '-n', 400, '--lists', 4),
           ('--stream', 'increment', '--store', 2, '-n', 300, '--keys', 100, '--value-of-key'),
           ('--stream', 'postcards', '--store', 3, '-n', 500))


def make_reports(path):
    """One capture file of all streams."""
    parts = []
    for i, stream in enumerate(STREAMS):
        parts.append('%s.%d' % (path, i))
        run('gen', 'dta', '--form', 'pathline', '-w', parts[-1], *stream, check=True)
    pcap.join(parts, path)


def translate(reports, query):
    """The account of a translator that took them to the collector."""
    r = run('translate', '--stats', reports, 'roce://%s:7471/%s?%s' % (THERE, ','.join(REGIONS), query), timeout=3 * SECONDS)
    return json.loads(r.stdout) if r.returncode == 0 else {'error': r.stderr}


def answers(ask_region):
    """What regions say to everything that the streams wrote: {question: answer}."""
    said = {}
    for name, keys in (('last', 310), ('sums', 105), ('paths', 105)):
        for row in ask_region('lookup', name, '--key-form', 'be32', *range(keys)):
            found = row.get('answer', 'found') == 'found'
            said[name, row['key']] = row.get('value', row.get('path')) if found else None
    for row in ask_region('dump', 'lists'):
        said['lists', row['list'], row['number']] = row['value']
    return said


def compare(guest, twins, what, complete):
    """Against regions of the same parameters that were written here, without a wire."""
    def here(command, name, *args):
        return json.loads(run('region', command, '-o', 'json', os.path.join(twins, name + '.plr'), *args).stdout)

    def there(command, name, *args):
        return json.loads(guest.shell('pathline region %s -o json /dev/shm/%s.plr %s' % (
            command, name, ' '.join(map(str, args))), SECONDS)[1])

    want, got = answers(here), answers(there)
    wrong = {q: (a, want.get(q)) for q, a in got.items() if a is not None and a != want.get(q)}
    eq(wrong, {}, what + ': of %d answers none is wrong' % len(got))
    missing = [q for q, a in want.items() if a is not None and got.get(q) is None]
    if complete:
        eq(missing, [], what + ': nothing is missing')
    else:
        ok(len(missing) < len(want) // 2, what + ': %d of %d are missing' % (len(missing), len(want)))


def received(guest):
    """Packets that the device took so far, by its own count."""
    return int(guest.shell('cat /sys/class/infiniband/rxe0/ports/1/hw_counters/rcvd_pkts')[1])


def closed(what, account, frames):
    """The translator's account, and the wire's: what one side sent the other received."""
    if 'error' in account:
        ok(False, what + ': the translator', account['error'])
    out = account.get('out', {})
    there = out.get('collectors', [{}])[0]
    eq([account.get('reports'), account.get('accepted'), there.get('waiting'), there.get('lost')], [1500, 1500, 0, 0],
       what + ': all reports are accepted, nothing waits, nothing is lost')
    eq([there.get('done'), there.get('writes', 0) + there.get('adds', 0)], [account.get('writes', 0) + account.get('adds', 0)] * 2,
       what + ': every operation is done')
    sent = out.get('frames_sent', -1)
    ok(0 < frames <= sent, what + ': of %d frames sent, %d of them again, the device took %d' % (
        sent, out.get('repeated', 0), frames))


def into_fresh_regions(guest, reports, query):
    """A collector, which runs on, the packets that its device had taken before, and the translator's account."""
    end_collectors(guest)
    make_regions(guest)
    collector, before = Collector(guest, '--read'), received(guest)
    return collector, before, translate(reports, query)


def broke_off(results):
    """Of what into_fresh_regions returns: a connection was given up, or at the end what had no answer."""
    there = results[2].get('out', {}).get('collectors', [{}])[0]
    return there.get('connections_lost', 0) > 0 or there.get('lost', 0) > 0


def pass_through(guest, reports, what, query, complete):
    """The streams into fresh regions, there and, without a wire, here; compared. The collector runs on."""
    # A connection is given up after 5 s without an acknowledgement, at the end of the reports after 2 s. A guest may be
    # paused for a part of that.
    collector, before, account = attempt(what, lambda: into_fresh_regions(guest, reports, query), broke_off, limit=1,
                                         stalls=lambda: machine.Stalls(guest))
    twins = os.path.join(guest.dir, 'twins')
    shutil.rmtree(twins, ignore_errors=True)
    os.mkdir(twins)
    for name, params in REGIONS.items():
        run('region', 'create', *params.split(), os.path.join(twins, name + '.plr'), check=True)
    run('translate', reports, *(os.path.join(twins, name + '.plr') for name in REGIONS), check=True)
    compare(guest, twins, what, complete)
    closed(what, account, received(guest) - before)
    return collector, twins


def test_chain(guest, peer):
    """gen dta, translate, RoCE, rxe, region, query; with the collector killed in between."""
    reports = os.path.join(guest.dir, 'reports.pcap')
    make_reports(reports)
    collector, twins = pass_through(guest, reports, 'all reliable', 'dev=packet:%s&service=rc' % TAP, True)
    collector.signal('KILL')
    for name in REGIONS:
        code, out = guest.shell('pathline region verify -o json /dev/shm/%s.plr' % name, SECONDS)
        ok(code == 0, 'after a kill the region of %s attaches and is whole' % name, out)
    collector = Collector(guest, '--read')
    ok('collecting on' in collector.err, 'the same command attaches them again', collector.err)
    compare(guest, twins, 'after the kill', True)
    collector.stop()
    collector, twins = pass_through(guest, reports, 'writes unreliable', 'dev=packet:' + TAP, False)
    stats = collector.stop()
    eq([p['tcp'] for p in stats.get('peers', [])], [2] * 4, 'each region was asked for twice: to read heads of lists, to write')


def test_cm(guest, peer):
    """A connection by RDMA-CM; of one region no name is needed."""
    guest.shell('mkdir -p /tmp/saved')
    collector = Collector(guest, '--save', '/tmp/saved', '--save-every', '100ms', regions=['sums'])
    told, connection = ask('sums', RC, 0x701)
    connection.close()
    peer.do('event', 0)  # what there was before
    failed = peer.values('wait', 0, 0)['failed']
    qpn = peer.values('call', THERE, 7471)['qpn']
    eq(peer.values('event', SECONDS * 1000)['event'], 2, 'RDMA-CM: connected')
    peer.do('write', qpn, told['va'] + 4096, told['key'], (4711).to_bytes(8, 'little').hex(), 0x78)
    peer.do('add', qpn, told['va'] + 4096, told['key'], 4)
    last = peer.values('wait', qpn, SECONDS * 1000)
    eq((last['failed'], last['original']), (failed, 4711), 'RDMA-CM: a write and an addition')
    peer.do('hangup')
    eq(peer.values('event', SECONDS * 1000)['event'], 5, 'RDMA-CM: closed')
    stats = collector.stop()
    eq([(p['store'], p['tcp'], p['cm'], p['connected']) for p in stats.get('peers', [])], [('sums', 1, 1, 0)],
       'RDMA-CM: the account')
    eq((stats.get('signals'), stats.get('nic', {}).get('closed')), (1, 1), 'RDMA-CM: its signal, and its end')
    code, out = guest.shell('od -A n -t u8 -j %d -N 8 /tmp/saved/sums.plr && pathline region verify /tmp/saved/sums.plr' % (
        told['va'] + 4096))
    eq((code, out.split()[:1]), (0, ['4715']), 'a copy of the region was saved, which is a region')
    ok(stats.get('save', {}).get('saved', 0) > 0 and stats['save']['failed'] == 0, 'copies are counted', stats.get('save'))


def test_chain_by_cm(guest, peer):
    """The chain, connected by RDMA-CM. Before the device has lost an address: its queue pair 1 may not survive that."""
    reports = os.path.join(guest.dir, 'reports-cm.pcap')
    make_reports(reports)
    stats = pass_through(guest, reports, 'chain by RDMA-CM', 'dev=packet:%s&connect=cm' % TAP, True)[0].stop()
    eq([(p['tcp'], p['cm'], p['connected']) for p in stats.get('peers', [])], [(0, 2, 0)] * 4,
       'each region was asked for twice by RDMA-CM, and all was ended')


def test_chain_by_udp(guest):
    """Through a UDP socket, which tells no identification of rxe's answers: their ICRC does."""
    reports = os.path.join(guest.dir, 'reports-udp.pcap')
    make_reports(reports)
    pass_through(guest, reports, 'by a UDP socket', 'dev=udp://%s&service=rc' % HOST, True)[0].stop()


def words_at(guest, offset):
    """Eight bytes of the region sums, as a number."""
    return int(guest.shell('od -A n -t u8 -j %d -N 8 /dev/shm/sums.plr' % offset)[1].split()[0])


class Streams:
    """Queue pairs of every kind to the region sums, each with a word of its own there."""
    last = 0x800

    def __init__(self, guest, peer, what, cm=True):
        self.guest, self.peer, self.ends, self.held = guest, peer, {}, []
        for kind, service in (('rc', RC), ('uc', UC)):
            Streams.last += 1
            got, connection = ask('sums', service, Streams.last)
            eq((got['good'], got['refusal']), (True, 0), '%s: %s over TCP' % (what, kind))
            self.held.append(connection)
            qpn = peer.values('ask', kind, THERE, got['qpn'], got['psn'], Streams.last)['qpn']
            self.ends[kind] = qpn, got['va'] + 8192 + 8 * len(self.ends), got['key']
        if cm:
            while peer.values('event', 0)['event'] != 0:
                pass  # what there was before
            qpn = peer.values('call', THERE, 7471)['qpn']
            event = peer.values('event', SECONDS * 1000)['event']
            while event in (4, 5):  # the end of the one before
                event = peer.values('event', SECONDS * 1000)['event']
            eq(event, 2, what + ': by RDMA-CM')
            self.ends['cm'] = qpn, got['va'] + 8192 + 8 * len(self.ends), got['key']

    def write(self, number, what, kinds=('rc', 'uc', 'cm')):
        """Each writes this number, which is then there."""
        for kind in (k for k in kinds if k in self.ends):
            qpn, va, key = self.ends[kind]
            for _ in range(100):
                self.peer.do('write', qpn, va, key, number.to_bytes(8, 'little').hex())
                self.peer.do('run', 100)
                if words_at(self.guest, va) == number:
                    break
            eq(words_at(self.guest, va), number, '%s: a write, %s' % (what, kind))

    def ended(self):
        """Whether the collector ended all that came over TCP."""
        for connection in self.held:
            connection.settimeout(SECONDS)
        return all(connection.recv(1) == b'' for connection in self.held)

    def close(self):
        for connection in self.held:
            connection.close()


def refusal_inside(guest):
    """What the collector answers to one that asks from within the guest, where an address of it is always."""
    request = roce.request('sums', RC, OURS[4], bytes(6), 0x7ff)
    guest.shell('printf "%s" >/tmp/request' % ''.join('\\%03o' % byte for byte in request))
    return int(guest.shell('nc 127.0.0.1 7471 </tmp/request | od -A n -t u1 -j 40 -N 1')[1])


def told(collector, pattern, times=1):
    """Whether it was told, so often."""
    collector.wait('[ $(grep -c "%s" /tmp/err) -ge %d ] || [ -e /tmp/code ]' % (pattern, times))
    return int(collector.guest.shell('grep -c "%s" /tmp/err' % pattern)[1]) == times


def descriptors(guest):
    return int(guest.shell('ls /proc/$(pidof pathline)/fd | wc -l')[1])


def test_device(guest, peer):
    """The device is taken away and comes back: told to who listens; to be found out by who does not, with librdmacm or
    without one in the kernel."""
    for options, remove in (((), ''), (('--cm-port', '0'), ''), (('--cm-port', '0'), 'rmmod rdma_ucm')):
        eq(guest.shell(remove)[0], 0, ' '.join(('a collector', *options, remove)))
        # Without it /dev/infiniband goes with the last device, and what comes back is another folder, which Landlock does not know.
        sandbox = 'no-landlock' if remove else 'on'
        collector, cm = Collector(guest, *options, regions=['sums'], sandbox=sandbox), not options
        held, open_before = 2 + cm, None
        for turn in (1, 2):
            what = 'device there, %d' % turn
            streams = Streams(guest, peer, what, cm)
            streams.write(2000 + turn, what)
            code, out = guest.shell('rdma link del rxe0', SECONDS)
            eq(code, 0, 'the device is taken away, which nobody holds')
            ok(told(collector, 'removed, with the queue pairs of %d peers' % held, turn), 'told')
            ok(streams.ended(), 'the connections of its queue pairs are ended')
            streams.close()
            got, connection = ask('sums', RC, 0x7ff)
            eq((got['refusal'], got['qpn']), (5, 0), 'peers are refused: there is no NIC')
            connection.close()
            guest.shell('rdma link add rxe0 type rxe netdev eth0')
            ok(told(collector, 'rxe0 is back', turn), 'it is back: told')
            open_before = open_before or descriptors(guest)
        eq(descriptors(guest), open_before, 'no descriptor is left over')
        streams = Streams(guest, peer, 'after all', cm)
        streams.write(2003, 'after all')
        streams.close()
        nic = collector.stop().get('nic', {})
        eq((nic.get('lost'), nic.get('returns'), nic.get('device_gone'), nic.get('queue_pairs')), (2 * held, 2, 2, 3 * held),
           'the account: queue pairs lost, returns, over all that there was')
    guest.shell('insmod /modules/rdma_ucm.ko')


def test_address(guest, peer):
    """The address is taken away and comes back, while queue pairs hold its place in the NIC's table."""
    collector = Collector(guest, regions=['sums'])
    before = Streams(guest, peer, 'at first')
    before.write(1001, 'at first')
    for turn in (1, 2):
        what = 'address back, %d' % turn
        guest.shell('ip addr del %s/24 dev eth0' % THERE)
        ok(told(collector, 'connect to ' + machine.ADDRESS6, turn), 'the address is gone, another one is left: told')
        eq(refusal_inside(guest), 6, 'a peer whose kind of address the NIC has not is refused for that')
        guest.shell('ip addr add %s/24 dev eth0' % THERE)
        ok(told(collector, 'connect to %s$' % THERE, turn), 'it is back: told')
        # What rxe says for a connection from before comes from where its address was: it is never heard, and ends queue pair 1.
        peer.do('hangup')
        ok(peer.values('event', SECONDS * 1000)['event'] in (4, 5), 'a connection from before ends')
        again = Streams(guest, peer, what)
        again.write(1001 + turn, what)
        before.write(1100 + turn, what + ', a queue pair from before', ('uc',))
        again.close()
    before.close()
    nic = collector.stop().get('nic', {})
    ok(nic.get('addresses', 0) >= 4 and nic.get('lost') == 0, 'changes are counted, nothing was lost', nic)


def make_regions(guest):
    for name, what in REGIONS.items():
        code, out = guest.shell('rm -f /dev/shm/%s.plr; pathline region create %s /dev/shm/%s.plr' % (name, what, name), SECONDS)
        if code != 0:
            raise RuntimeError('no region: ' + out)


def main():
    absent = machine.missing('ip', 'sysctl')
    why = 'missing: %s' % absent if absent is not None else add_tap()
    if why is not None:
        skip_all(why)
    machine.make_image(FOLDER)
    guest = machine.Guest(FOLDER, {'/bin/pathline': PATHLINE}, machine.SHELL, wire=TAP, mebibytes=768)
    try:
        code, out = guest.shell('pathline doctor | grep -A 1 " rdma "', SECONDS)
        ok('rxe0 (eth0): ' + THERE in out, 'doctor finds the device', out)
        # First, for the port of a UDP socket is one that `peer` takes; and before the device goes and comes.
        lab.run(test_chain_by_udp, given=(guest,))
        restore(guest)
        make_regions(guest)
        peer = Peer(PEER, guest, TAP)
        for test in (test_exchange, test_cm, test_chain_by_cm, test_device, test_address, test_chain):
            lab.run(test, given=(guest, peer))
            restore(guest)
        eq(peer.close(), 0, 'our side ends well')
    finally:
        guest.close()
    return end()


sys.exit(main())
