#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Our responder and requester against Linux soft-RoCE, which boots in an emulated machine (tests/guest): it writes, adds,
swaps and reads in our memory, we do in its; over IPv4 and IPv6, reliable and unreliable, with frames lost on the way.
usage: rxe.py PEER AGENT FOLDER [TEST…]   PEER, AGENT: peer.c and agent.c built; FOLDER: where the guest's image is kept"""
import os
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from agent import OURS, THEIRS, Agent, Peer, guest as machine  # noqa: E402  (beside this file)
from lib import lab  # noqa: E402
from lib.tap import comment, end, eq, ok, skip_all  # noqa: E402

PEER, AGENT, FOLDER = sys.argv[1:4]
STATE = {}  # our region


def pattern(n, of=1):
    return bytes((i * 31 + of) & 0xff for i in range(n))


def comes(peer, what, wanted):
    """What there is, when our side has run until it is what is wanted."""
    for _ in range(600):
        if what() == wanted:
            break
        peer.do('run', 100)
    return what()


def le64(data):
    return int.from_bytes(data, 'little')


class Ends:
    """A guest's queue pair and region, and ours. The guest's are made anew each time."""
    next_id = 0

    def __init__(self, guest, peer, service, version, asking, region):
        self.guest, self.peer, self.region = guest, peer, region
        self.id = Ends.next_id = Ends.next_id + 1
        qpn = guest.values('pair', self.id, service)['qpn']
        psn = 0xfffffa  # wraps soon
        self.qpn = peer.values('ask' if asking else 'answer', service, THEIRS[version], qpn, psn)['qpn']
        guest.do('connect', self.id, THEIRS[version], OURS[version], self.qpn, psn, psn, 1024)


def test_they_ask(guest, peer):
    """Into our memory."""
    mine = STATE['mine']
    for version in (4, 6):
        e = Ends(guest, peer, 'rc', version, False, mine)
        for offset, size in ((0, 1), (100, 7), (1024, 1024), (4096, 1025), (8192, 5000)):
            guest.do('put', 0, 0, pattern(min(size, 2000), size).hex())
            guest.do('write', e.id, 0, 0, size, mine['va'] + offset, mine['key'])
            done = guest.completions(e.id)
            eq([d[0] for d in done], [0], 'IPv%d: a write of %d bytes is acknowledged' % (version, size))
            eq(peer.get(offset, min(size, 2000)), pattern(min(size, 2000), size), 'and is there')
        peer.do('receive', e.qpn, 2)
        before = int(peer.do('done').split()[1])
        guest.do('write', e.id, 0, 0, 16, mine['va'] + 20000, mine['key'], 0x12345678)
        eq([d[0] for d in guest.completions(e.id)], [0], 'a write with immediate')
        eq(peer.do('done'), 'ok %d imm=0x12345678' % (before + 1), 'wakes us')
        guest.do('read', e.id, 0, 30000, 5000, mine['va'] + 8192, mine['key'])
        eq([d[0] for d in guest.completions(e.id)], [0], 'a read of 5000 bytes')
        eq(guest.get(0, 30000, 1500), peer.get(8192, 1500), 'brings what is there')
        old = le64(peer.get(40000, 8))
        for i in range(10):
            guest.do('add', e.id, 0, 64000, mine['va'] + 40000, mine['key'], 1000)
        done = []
        while len(done) < 10:
            more = guest.completions(e.id)
            if not more:
                break
            done += more
        eq([d[0] for d in done], [0] * 10, 'ten times fetch and add')
        eq(le64(peer.get(40000, 8)), old + 10000, 'the sum')
        eq(le64(guest.get(0, 64000, 8)), old + 9000, 'the last had the one before it')
        guest.do('swap', e.id, 0, 64000, mine['va'] + 40000, mine['key'], old + 10000, 7)
        guest.completions(e.id)
        eq(le64(peer.get(40000, 8)), 7, 'compare and swap, when it is the same')
        guest.do('swap', e.id, 0, 64000, mine['va'] + 40000, mine['key'], 8, 9)
        guest.completions(e.id)
        eq((le64(peer.get(40000, 8)), le64(guest.get(0, 64000, 8))), (7, 7), 'and not when it is another')
        guest.do('write', e.id, 0, 0, 16, mine['va'] + (1 << 20) - 15, mine['key'])
        eq([d[0] for d in guest.completions(e.id)], [10], 'one byte outside: remote access error')
        eq(peer.get((1 << 20) - 15, 15), bytes(15), 'and nothing written')
        e = Ends(guest, peer, 'rc', version, False, mine)
        guest.do('write', e.id, 0, 0, 16, mine['va'], mine['key'] ^ 1)
        eq([d[0] for d in guest.completions(e.id)], [10], 'another key: remote access error')
        e = Ends(guest, peer, 'uc', version, False, mine)
        guest.do('put', 0, 0, pattern(800, 99).hex())
        guest.do('write', e.id, 0, 0, 800, mine['va'] + 50000, mine['key'])
        eq([d[0] for d in guest.completions(e.id)], [0], 'unreliable: a write')
        eq(comes(peer, lambda: peer.get(50000, 800), pattern(800, 99)), pattern(800, 99), 'is there')


def test_we_ask(guest, peer):
    """Into theirs."""
    theirs = guest.values('region', 1, 1 << 20)
    for version in (4, 6):
        e = Ends(guest, peer, 'rc', version, True, theirs)
        for offset, size in ((0, 1), (100, 7), (1024, 1024), (4096, 1025), (8192, 4000)):
            peer.do('write', e.qpn, theirs['va'] + offset, theirs['key'], pattern(size, version).hex())
            eq(peer.values('wait', e.qpn, 20000)['result'], 0, 'IPv%d: a write of %d bytes' % (version, size))
            eq(guest.get(1, offset, size), pattern(size, version), 'is in their memory')
        guest.do('receive', e.id, 1, 0, 0)
        peer.do('write', e.qpn, theirs['va'] + 20000, theirs['key'], 'c0ffee00', 0xdeadbeef)
        peer.do('wait', e.qpn, 20000)
        eq([d[3] for d in guest.completions(e.id)], [0xdeadbeef], 'a write with immediate wakes them')
        guest.do('put', 1, 40000, (1000).to_bytes(8, 'little').hex())
        peer.do('add', e.qpn, theirs['va'] + 40000, theirs['key'], 5)
        eq(peer.values('wait', e.qpn, 20000)['original'], 1000, 'fetch and add: what was there')
        eq(le64(guest.get(1, 40000, 8)), 1005, 'what is there')
        peer.do('swap', e.qpn, theirs['va'] + 40000, theirs['key'], 1005, 77)
        eq(peer.values('wait', e.qpn, 20000)['original'], 1005, 'compare and swap: what was there')
        eq(le64(guest.get(1, 40000, 8)), 77, 'what is there')
        failed = peer.values('wait', e.qpn, 0)['failed']
        peer.do('write', e.qpn, theirs['va'] + (1 << 20) - 1, theirs['key'], 'aabb')
        got = peer.values('wait', e.qpn, 20000)
        eq((got['failed'], got['result']), (failed + 1, 2), 'one byte outside: their NAK is understood')
        eq(peer.values('status', e.qpn)['failed'], 1, 'and the queue pair is in error')
        e = Ends(guest, peer, 'uc', version, True, theirs)
        peer.do('write', e.qpn, theirs['va'] + 50000, theirs['key'], pattern(900, 3).hex())
        eq(comes(peer, lambda: guest.get(1, 50000, 900), pattern(900, 3)), pattern(900, 3), 'unreliable: a write')


def test_connections(guest, peer):
    """By the connection manager, both ways."""
    theirs = 3
    guest.do('region', theirs, 4096)
    guest.do('put', theirs, 0, pattern(64, 5).hex())
    peer.do('listen', 7471)
    guest.send('call', OURS[4], 7471, theirs)
    seen = peer.values('event', 30000)
    lines = guest.answer(60)
    ok('cm RDMA_CM_EVENT_ESTABLISHED status=0' in ' '.join(lines), 'they call us', lines)
    ok('cm written status=0' in lines, 'and write where we told them to', lines)
    eq(peer.get(0, 64), pattern(64, 5), 'which is there')
    eq((seen['event'], seen['bytes']), (1, 4096), 'what they told of themselves arrived')
    guest.send('call', OURS[4], 7472, theirs)
    try:
        lines = guest.answer(60)
        ok(False, 'nobody listens', lines)
    except RuntimeError as error:
        ok('cm RDMA_CM_EVENT_REJECTED status=8' in str(error), 'nobody listens there: rejected for that reason', error)
    before = peer.values('counters')
    guest.send('call', OURS[6], 7471, theirs, 20)
    lines = guest.answer(60)
    ok('cm written status=0' in lines and peer.get(0, 64) == pattern(64, 5), 'they call us by IPv6, and write', lines)
    now = peer.values('counters')
    # Of the 20 s in which it says nothing it is given up after 8, were it not that Linux answers a REP that comes again.
    ok(now.get('asked', 0) - before.get('asked', 0) >= 3 and now['given_up'] == 0, 'idle, they answer when they are asked', now)
    for version in (4, 6):
        told = peer.values('event', 100)
        while told['event'] != 0:  # the farewell of the one before
            told = peer.values('event', 100)
        guest.do('put', theirs, 0, bytes(64).hex())
        guest.send('listen', 7473 + version, theirs)
        guest.answer(30, 'cm listening')
        qpn = peer.values('call', THEIRS[version], 7473 + version)['qpn']
        told = peer.values('event', 30000)
        eq((told['event'], told['bytes']), (2, 4096), f'we call them by IPv{version}')
        peer.do('write', qpn, told['va'], told['key'], pattern(64, version).hex())
        eq(peer.values('wait', qpn, 20000)['result'], 0, 'and write where they told us to')
        peer.do('hangup')
        lines = guest.answer(60)
        ok('cm RDMA_CM_EVENT_DISCONNECTED status=0' in ' '.join(lines), 'they hear that we hang up', lines)
        eq(guest.get(theirs, 0, 64), pattern(64, version), 'and have what we wrote')
    peer.do('call', THEIRS[4], 7999)
    told = peer.values('event', 30000)
    while told['event'] == 5:  # the farewell of the one before
        told = peer.values('event', 30000)
    eq((told['event'], told['reason']), (3, 8), 'nobody listens there: their rejection is understood')


def test_loss(guest, peer):
    """Every ninth of our frames is lost."""
    theirs = guest.values('region', 2, 1 << 17)
    e = Ends(guest, peer, 'rc', 4, True, theirs)
    before = peer.values('counters')
    peer.do('drop', 9)
    peer.do('fill', e.qpn, theirs['va'], theirs['key'], 64, 1000)
    got = peer.values('wait', e.qpn, 60000)
    eq(peer.values('status', e.qpn)['posted'], 0, 'a thousand writes are all acknowledged')
    eq(guest.get(2, 0, 64000), bytes((i * 167 >> 3) & 0xff for i in range(64000)), 'and are all there')
    guest.do('put', 2, 65536, bytes(8).hex())
    for _ in range(200):
        peer.do('add', e.qpn, theirs['va'] + 65536, theirs['key'], 3)
    got = peer.values('wait', e.qpn, 60000)
    peer.do('drop', 0)
    after = peer.values('counters')
    eq(le64(guest.get(2, 65536, 8)), 600, 'two hundred additions happened once each')
    ok(after.get('repeated', 0) > before.get('repeated', 0), 'frames were sent again', after)
    eq(got['result'], 0, 'the last went well')
    # Answers to what was sent again are answers to what is no longer outstanding; none is from elsewhere.
    eq(after.get('foreign', 0), before.get('foreign', 0), 'no answer was from elsewhere')


def witness(capture):
    """tshark reads every frame of either side."""
    run = subprocess.run(['tshark', '-o', 'infiniband.identify_payload:FALSE', '-r', capture, '-T', 'fields', '-e', 'infiniband.bth.opcode', '-e', '_ws.malformed',
                          '-e', '_ws.expert.severity'], capture_output=True, text=True)
    lines = [line.split('\t') for line in run.stdout.splitlines()]
    opcodes = {int(line[0], 0) for line in lines if line[0]}
    ok(len(lines) > 2000 and all(line[0] for line in lines), 'tshark: %d frames, each is InfiniBand' % len(lines))
    eq([line for line in lines if line[1]], [], 'none is malformed')
    ok({0x0a, 0x0b, 0x06, 0x08, 0x0c, 0x11, 0x12, 0x13, 0x14, 0x2a, 0x64} <= opcodes, 'of all kinds',
       ' '.join('%02x' % o for o in sorted(opcodes)))


def main():
    absent = machine.missing('tshark')
    if absent is not None:
        skip_all('missing: %s' % absent)
    machine.make_image(FOLDER)
    guest = Agent(FOLDER, AGENT)
    try:
        peer = Peer(PEER, guest)
        guest.ready()
        guest.do('region', 0, 65536)
        STATE['mine'] = peer.values('region', 1 << 20)
        lab.run(test_they_ask, test_we_ask, test_connections, test_loss, given=(guest, peer))
        comment(peer.do('counters'))
        eq(peer.close(), 0, 'our side ends well')
        witness(peer.capture)
    finally:
        guest.close()
    return end()


sys.exit(main())
