#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The verbs driver (src/verbs) on a soft-RoCE device in an emulated machine, driven by words (driver.c); our requester and
connection manager (peer.c) are the other side.
usage: driver.py PEER DRIVER FOLDER [TEST…]   FOLDER: where the guest's image is kept"""
import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from agent import OURS, Agent, Peer, guest as machine  # noqa: E402  (beside this file)
from lib import lab  # noqa: E402
from lib.tap import comment, end, eq, ok, skip_all  # noqa: E402

PEER, DRIVER, FOLDER = sys.argv[1:4]
THERE = {4: machine.ADDRESS4, 6: machine.ADDRESS6}
BROKEN, PORT_DOWN, PORT_UP, ADDRESSES, GONE, CONNECTION = range(1, 7)
REQUEST, CONNECTED, REJECTED, TIMEOUT, CLOSED = range(1, 6)
SECONDS = 60


def refused(guest, *words):
    """The text of an error."""
    try:
        return 'no error: %r' % guest.do(*words)
    except RuntimeError as error:
        return str(error)


def got_of(guest, offset, size):
    return bytes.fromhex(guest.do('get', offset, size)[-1].split(' ')[1])


def until(guest, peer, wanted):
    """Lets both sides run until as many of what `wanted` says (a pattern) have happened; all lines."""
    lines, pattern, n = [], wanted[0], wanted[1]
    for _ in range(SECONDS * 20):
        lines += guest.do('step', 20)[:-1]
        if sum(1 for line in lines if re.search(pattern, line)) >= n:
            break
        peer.do('run', 30)
    return lines


def pair(guest, peer, service, version, psn=0xfffffc, domain=0):
    """(ours, theirs): queue pairs of the requester outside and of the driver."""
    pair.number += 1
    qpn = guest.values('pair', service, OURS[version], pair.number, psn, 1024, domain)['qpn']
    return peer.values('ask', service, THERE[version], qpn, psn, pair.number)['qpn'], qpn


pair.number = 0x7000


def test_open(guest, peer):
    ok('no RDMA device' in refused(guest, 'open', 'rxe7', 4, 16), 'a device that is not there')
    ok('has no port 2' in refused(guest, 'open', 'rxe0?port=2', 4, 16), 'a port that is not there')
    ok('no address with index 200' in refused(guest, 'open', 'rxe0?gid=200', 4, 16), 'an address that is not there')
    ok('has room for' in refused(guest, 'open', 'rxe0', 4096, 4096), 'more than the device has room for')
    eq(guest.do('devices')[-1], 'ok rxe0 eth0 1 ' + machine.ADDRESS4, 'the device is listed')
    got = guest.values('open', 'rxe0', 4, 16)
    eq((got['gid'], got['mtu'], got['cm'], got['mac']), (machine.ADDRESS4, 4096, 1, 52),
       'it opens: by its IPv4 address, with a connection manager')
    return got


def test_requests(guest, peer, version=4):
    # By an address of its own, as an offset in a file would be.
    at = guest.values('memory', '/dev/shm/test', 1 << 16, 0x1000)
    eq(at['va'], 0x1000, 'memory has the address that it was given')
    for service in ('rc', 'uc'):
        what = 'IPv%d, %s: ' % (version, service)
        qpn, theirs = pair(guest, peer, service, version)
        peer.do('write', qpn, at['va'] + 100, at['key'], 'c0ffee')
        lines = []
        for i in range(40):
            peer.do('write', qpn, at['va'] + 200 + i, at['key'], '%02x' % (i + 1), 0x50000000 + i)
            if i % 8 == 7:  # who is not reliable loses what comes without a receive
                lines += until(guest, peer, ('completion', 8))
        eq([line.split()[1:3] for line in lines if line.startswith('completion')],
           [['qpn=0x%x' % theirs, 'imm=0x%x' % (0x50000000 + i)] for i in range(40)],
           what + 'forty immediates through sixteen receives, in order')
        eq(got_of(guest, 100, 3), bytes.fromhex('c0ffee'), what + 'a write')
        eq(got_of(guest, 200, 40), bytes(range(1, 41)), what + 'the data of those with immediates')
        if service == 'rc':
            for _ in range(3):
                peer.do('add', qpn, at['va'] + 1024, at['key'], 1000)
            got = peer.values('wait', qpn, SECONDS * 1000)
            eq((got['failed'], got['original']), (0, 2000), what + 'the last addition is answered')
            eq(int.from_bytes(got_of(guest, 1024, 8), 'little'), 3000, what + 'three additions')
        guest.do('remove', theirs)
    ok('No such file' in refused(guest, 'remove', 0x777), 'a queue pair that is not there')
    guest.do('forget', at['key'])
    ok('No such file' in refused(guest, 'forget', at['key']), 'memory is forgotten once')


def test_broken(guest, peer):
    at = guest.values('memory', '/dev/shm/test', 1 << 16)
    before = guest.values('counters')
    qpn, theirs = pair(guest, peer, 'rc', 4)
    peer.do('write', qpn, at['va'] + (1 << 16) - 1, at['key'], 'aabb')
    lines = until(guest, peer, ('news kind=%d' % BROKEN, 1))
    eq([line for line in lines if 'qpn=0x%x' % theirs in line and 'kind=1' in line][:1],
       ['news kind=1 qpn=0x%x id=0 event=0 port=0 peer=:: private=' % theirs], 'one byte outside: the queue pair is broken')
    eq(got_of(guest, (1 << 16) - 1, 1), b'\0', 'and nothing written')
    after = guest.values('counters')
    eq((after.get('broken', 0) - before.get('broken', 0), after.get('flushed', 0) > before.get('flushed', 0)), (1, True),
       'told and counted once, its receives given back')
    guest.do('remove', theirs)
    guest.do('forget', at['key'])
    at = guest.values('memory', '/dev/shm/test', 1 << 16, 0, 7)
    qpn, theirs = pair(guest, peer, 'rc', 4)
    peer.do('write', qpn, at['va'], at['key'], 'aabb')
    until(guest, peer, ('news kind=%d' % BROKEN, 1))
    eq(got_of(guest, 0, 2), b'\0\0', 'memory of another domain is out of reach')
    guest.do('remove', theirs)
    qpn, theirs = pair(guest, peer, 'rc', 4, domain=7)
    peer.do('write', qpn, at['va'], at['key'], 'aabb')
    peer.do('wait', qpn, SECONDS * 1000)
    eq(got_of(guest, 0, 2), b'\xaa\xbb', 'that of its own is not')
    guest.do('remove', theirs)
    made = [guest.values('pair', 'uc', OURS[4], i + 1, 0, 1024)['qpn'] for i in range(4)]
    ok('the limit of 4 queue pairs is reached' in refused(guest, 'pair', 'uc', OURS[4], 9, 0, 1024), 'there is a limit to queue pairs')
    guest.do('remove', made[2])
    guest.do('remove', guest.values('pair', 'rc', OURS[4], 9, 0, 1024)['qpn'])
    for number in made[:2] + made[3:]:
        guest.do('remove', number)
    ok('parameters of the queue pair are not supported' in refused(guest, 'pair', 'rc', OURS[4], 1 << 24, 0, 1024), 'a number that none can have')
    guest.do('forget', at['key'])


def field(lines, pattern, name):
    line = next(line for line in lines if re.search(pattern, line))
    return re.search(name + r'=(\S*)', line).group(1)


def test_connections(guest, peer):
    at = guest.values('memory', '/dev/shm/test', 4096)
    guest.do('listen', 7480)
    ok('Address already in use' in refused(guest, 'listen', 7480), 'a port is listened on once')
    request = 'kind=%d .*event=%d' % (CONNECTION, REQUEST)
    for end_here in (False, True):
        qpn = peer.values('call', THERE[4], 7480)['qpn']
        lines = until(guest, peer, (request, 1))
        eq((field(lines, request, 'port'), field(lines, request, 'peer')), ('7480', OURS[4]), 'somebody asks for a connection')
        ok(len(field(lines, request, 'private')) >= 32, 'what it says of itself is there')
        number = field(lines, request, 'id')
        theirs = guest.values('accept', number)['qpn']
        told = peer.values('event', SECONDS * 1000)
        eq((told['event'], told['va'], told['key']), (CONNECTED, at['va'], at['key']), 'accepted, and told where the memory is')
        peer.do('write', qpn, told['va'] + 5, told['key'], '%02x' % (end_here + 7), 0x99)
        lines = until(guest, peer, ('completion qpn=0x%x imm=0x99' % theirs, 1))
        eq(got_of(guest, 5, 1), bytes([end_here + 7]), 'a write by it')
        if end_here:
            guest.do('hangup', number)
            eq(peer.values('event', SECONDS * 1000)['event'], CLOSED, 'we hang up: the other side is told')
        else:
            peer.do('hangup')
            lines = until(guest, peer, ('event=%d' % CLOSED, 1))
            eq(field(lines, 'event=%d' % CLOSED, 'id'), number, 'they hang up: told')
            peer.values('event', SECONDS * 1000)
        ok('No such file' in refused(guest, 'remove', theirs), 'and its queue pair is no more')
    peer.do('call', THERE[4], 7480)
    lines = until(guest, peer, (request, 1))
    guest.do('reject', field(lines, request, 'id'))
    eq(peer.values('event', SECONDS * 1000)['event'], REJECTED, 'a request is refused')
    guest.do('forget', at['key'])


def test_port(guest, peer):
    at = guest.values('memory', '/dev/shm/test', 4096)
    qpn, theirs = pair(guest, peer, 'uc', 4)
    guest.do('shell', 'ip', 'link', 'set', 'eth0', 'down')
    ok(any('kind=%d ' % PORT_DOWN in line for line in until(guest, peer, ('kind=%d ' % PORT_DOWN, 1))), 'the port goes down')
    ok('is not active' in guest.do('devices')[-1] or ' 0 port ' in guest.do('devices')[-1], 'and is listed so')
    guest.do('shell', 'ip', 'link', 'set', 'eth0', 'up')
    ok(any('kind=%d ' % PORT_UP in line for line in until(guest, peer, ('kind=%d ' % PORT_UP, 1))), 'and comes back')
    guest.do('step', 100)
    for _ in range(SECONDS):
        peer.do('write', qpn, at['va'], at['key'], '5a')
        peer.do('run', 100)
        if got_of(guest, 0, 1) == b'\x5a':
            break
    eq(got_of(guest, 0, 1), b'\x5a', 'a queue pair outlives it')
    guest.do('shell', 'ip', 'addr', 'del', machine.ADDRESS4 + '/24', 'dev', 'eth0')
    lines = until(guest, peer, ('kind=%d ' % ADDRESSES, 1))
    ok(any('kind=%d ' % ADDRESSES in line for line in lines), 'its address is taken away: told', lines)
    guest.do('remove', theirs)
    guest.do('forget', at['key'])


def main():
    absent = machine.missing()
    if absent is not None:
        skip_all('missing: %s' % absent)
    machine.make_image(FOLDER)
    guest = Agent(FOLDER, DRIVER)
    try:
        peer = Peer(PEER, guest)
        guest.ready()
        lab.run(test_open, test_requests, test_broken, test_connections, test_port, given=(guest, peer))
        comment(guest.do('counters')[-1])
        guest.do('close')
        eq(peer.close(), 0, 'our side ends well')
    finally:
        guest.close()
    return end()


sys.exit(main())
