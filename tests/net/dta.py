#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""pathline translate and report over loopback: the commands of docs/guide/dta.md, and an independent reporter: this
script writes the published forms byte by byte, drops what it likes, and answers NACKs itself.
usage: dta.py PATHLINE"""
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, pathline, pcap, tap  # noqa: E402
from lib.lab import path  # noqa: E402
from lib.pathline import PATHLINE, region as rows  # noqa: E402
from lib.tap import ok, skip  # noqa: E402
from lib.wait import LIMIT, wait  # noqa: E402


def run(*args, code=0):
    r = pathline.run(*args)
    ok(r.returncode == code, 'pathline ' + ' '.join(str(a) for a in args).replace(lab.DIR + '/', ''),
       'exit code %d\n%s%s' % (r.returncode, r.stdout, r.stderr))
    return r


class Translator:
    """pathline translate on a port of its own choosing."""

    def __init__(self, *args):
        self.process = lab.start([PATHLINE, 'translate', '--stats', *map(str, args)], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        ok('translating from udp://' in line, 'translate says where it listens', line)
        self.port = int(line.split(' into ')[0].rsplit(':', 1)[1])
        self.uri = 'udp://127.0.0.1:%d' % self.port

    def comes_to(self, **counters):
        """Whether its account has come to have these numbers, and nothing is held back any more."""
        def has():
            """the account has the numbers"""
            self.process.send_signal(signal.SIGUSR1)
            self.stats = json.loads(self.process.stdout.readline())
            got = {name: sum(n.values()) if isinstance(n, dict) else n for name, n in self.stats.items()
                   if name != 'out'}
            return self.stats['held'] == 0 and all(got[name] == n for name, n in counters.items())
        return wait(has) or ok(False, 'reports come: %s' % counters, self.stats)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        out, self.err = self.process.communicate(timeout=60)
        try:
            self.stats = json.loads(out)
        except ValueError:
            self.stats = {}
        s = self.stats
        ok(s != {} and s['reports'] == s['accepted'] + s['duplicates'] + sum(s['unreadable'].values())
           + sum(s['refused'].values()) and s['held'] == 0 and s['out']['writes'] == s['writes']
           and s['out']['adds'] == s['adds'] and s['out']['outside'] == 0,
           'every report and every operation is accounted for', out + self.err)
        return s


def create(name, *args):
    """With a seed that is not drawn: which keys are written over is the same in each run."""
    run('region', 'create', path(name), *([] if 'dta' in args else ['--seed', 4711]), '--primitive', *args)


# ---- the guide: five regions, one translator, a report into each ----

create('last', 'key-write', '--slots', 100000, '--value-bytes', 4)
create('lists', 'append', '--slots', 4096, '--value-bytes', 4, '--lists', 4)
create('bytes', 'counters', '--slots', 10000)
create('paths', 'postcards', '--slots', 10000)
create('sketch', 'sketch', '--slots', 4, '--rows', 2)
t = Translator('--flush', '20ms', 'udp://127.0.0.1:0', *[path(n) for n in ('last', 'lists', 'bytes', 'paths', 'sketch')])
run('report', 'key-write', '-k', 'host7', '-d', 'up--', t.uri)
run('report', 'append', '--store', 1, '--list', 3, '-d', 7, '--data-form', 'be32', '--step-data', '--count', 1000,
    '--sequenced', t.uri)
run('report', 'increment', '--store', 2, '-k', '10.0.0.1', '--by', 1500, '--count', 100, '--sequenced', t.uri)
run('report', 'postcard', '--store', 3, '-k', 'flow1', '--hops', '10,20,30', t.uri)
cells = ''.join('%016x' % v for v in range(1, 9))
run('report', 'sketch', '--store', 4, '--epoch', 5, '-d', cells, '--data-form', 'hex', t.uri)
run('report', 'key-write', '--sequenced', '-k', 0, '--key-form', 'u64', '--step-key', '-d', 1000, '--data-form', 'be32',
    '--step-data', '--count', 5000, '--rate', '50k', t.uri)
run('report', 'key-write', '-k', 'wrong', '-d', 'five5', t.uri)
run('report', 'key-write', '-k', 'nowhere', '-d', 'four', '--store', 9, t.uri)
t.comes_to(refused=2)

found = rows('lookup', path('last'), 'host7')
ok(found[0].get('answer') == 'found' and found[0].get('value') == b'up--'.hex(), 'host7 is up, while it runs', found)
keys = [str(k) for k in range(0, 5000, 7)]
found = rows('lookup', path('last'), '--key-form', 'u64', *keys)
wrong = [f for f in found if f['answer'] == 'found' and f['value'] != '%08x' % (1000 + int(f['key']))]
missing = [f for f in found if f['answer'] != 'found']
ok(len(found) == len(keys) and not wrong and len(missing) < 15, 'of 715 keys none is wrong, hardly one is gone',
   'wrong %s\nmissing %d' % (wrong[:3], len(missing)))
found = rows('dump', path('lists'), '--list', 3)
ok([f['value'] for f in found] == ['%08x' % (7 + i) for i in range(1000)], 'a thousand entries in their order', found[:3])
found = rows('lookup', path('bytes'), '10.0.0.1')
ok(found[0].get('value') == 150000, 'a hundred increments of 1500', found)
found = rows('lookup', path('paths'), 'flow1')
ok(found[0].get('answer') == 'found' and '10' in json.dumps(found[0]) and '30' in json.dumps(found[0]),
   'the path of flow1', found)
found = rows('info', path('sketch'))
ok('4' in json.dumps(found), 'the sketch is there', found)
s = t.stop()
ok(s['refused']['value_size'] == 1 and s['refused']['store'] == 1, 'what cannot be stored is refused by cause', s)
ok(s['additions'] < 100 and s['increments_merged'] == 100, 'increments were merged', s)
ok(s['batches'] < 1000 and s['entries_published'] == 1000, 'entries were batched', s)
ok(s['epochs_complete'] == 1, 'the sketch is complete', s)

# A sketch in two halves: what its reporters begin next does not mix with what they ended, nor with what they gave up.
create('halves', 'sketch', '--slots', 8, '--rows', 2, '--halves', 2)


def deliver(uri, epoch, columns, cell):
    run('report', 'sketch', '--epoch', epoch, '-d', columns * 2 * ('%016x' % cell), '--data-form', 'hex', uri)


def sketch(*args):
    """Cells of its columns, and whether it says that it is whole."""
    r = pathline.run('region', 'lookup', '-o', 'json', path('halves'), 'a', *map(str, args))
    found = json.loads(r.stdout)[0]
    ok((r.returncode == 0) == (found['whole']) and (r.returncode == 0 or 'not whole' in r.stderr),
       'the exit code says whether the sketch is whole', r.stdout + r.stderr)
    return {(f['column'], f['value']) for f in rows('dump', path('halves'), *args)}, found['whole'], found['complete']


def filled(columns, cell):
    return {(c, cell) for c in range(columns)}, columns == 8, columns


t = Translator('--flush', '20ms', 'udp://127.0.0.1:0', path('halves'))
deliver(t.uri, 1, 8, 1)
t.comes_to(epochs_complete=1)
ok(sketch() == filled(8, 1), 'a sketch is whole', sketch())
deliver(t.uri, 2, 4, 1000)
t.comes_to(epochs_incomplete=1)
ok(sketch() == filled(4, 1000), 'half of the next one is by itself', sketch())
ok(sketch('--epoch', 0) == filled(8, 1), 'the one before stays', sketch('--epoch', 0))
ok(t.stop()['out']['turned'] == 1, 'one turn', t.stats)
t = Translator('--flush', '20ms', 'udp://127.0.0.1:0', path('halves'))
deliver(t.uri, 3, 8, 7)
t.comes_to(epochs_complete=1)
ok(sketch() == filled(8, 7) and sketch('--epoch', 1) == filled(4, 1000), 'after a restart, too',
   (sketch(), sketch('--epoch', 1)))
t.stop()

# Epochs of values and sums at SIGUSR2 and by the clock, of sketches by their reporters; what ended is kept in files.
kept = path('kept')
os.mkdir(kept)
create('turn', 'key-write', '--slots', 1000, '--halves', 2)
create('sums2', 'counters', '--slots', 1000, '--halves', 2)
create('merged', 'sketch', '--slots', 8, '--rows', 1, '--halves', 2)
create('flat', 'append', '--slots', 64, '--halves', 2)
stores = ('turn', 'sums2', 'merged', 'flat')


def epoch_of(name):
    return rows('info', path(name))[0]['epoch']


def value(where, key, *args):
    return rows('lookup', where, key, *args)[0].get('value')


def taken(uri, epoch):
    """A value, a sum, a sketch and an entry, each told by its epoch."""
    run('report', 'key-write', '-k', 'a', '-d', epoch, '--data-form', 'be32', uri)
    run('report', 'increment', '--store', 1, '-k', 'a', '--by', epoch, uri)
    run('report', 'sketch', '--store', 2, '--epoch', epoch, '-d', 8 * ('%016x' % epoch), '--data-form', 'hex', uri)
    run('report', 'append', '--store', 3, '-d', epoch, '--data-form', 'be32', uri)


t = Translator('--flush', '20ms', '--keep-epochs', kept, 'udp://127.0.0.1:0', *[path(n) for n in stores])
for number in range(1, 5):
    taken(t.uri, number)
    t.comes_to(accepted=4 * number, epochs_complete=number)
    t.process.send_signal(signal.SIGUSR2)
    wait(lambda: epoch_of('turn') == number and epoch_of('sums2') == number)
    ok(epoch_of('merged') == number - 1, 'a sketch turns with its reporters only', rows('info', path('merged')))
    ok(value(path('turn'), 'a') is None and value(path('turn'), 'a', '--epoch', number - 1) == '%08x' % number
       and value(path('sums2'), 'a', '--epoch', number - 1) == number and value(path('merged'), 'a') == number,
       'epoch %d answers behind the turn' % (number - 1))
ok(wait(lambda: len(os.listdir(kept)) == 4 + 4 + 3), 'what ended is kept', os.listdir(kept))
for number in range(1, 5):
    ok(value(f'{kept}/turn-{number - 1}.plr', 'a') == '%08x' % number and value(f'{kept}/sums2-{number - 1}.plr', 'a') == number
       and (number == 4 or value(f'{kept}/merged-{number - 1}.plr', 'a') == number), 'epoch %d in files' % (number - 1))
ok([f['value'] for f in rows('dump', path('flat'))] == ['%08x' % n for n in range(1, 5)] and epoch_of('flat') == 0,
   'lists have no epochs')
# Where what ends cannot be kept nothing is emptied: values wait, the next sketch goes into the half of the present one.
for name in ('turn-4', 'merged-3', 'merged-4'):
    os.mkdir(f'{kept}/{name}.plr')
taken(t.uri, 5)
t.comes_to(accepted=20)
t.process.send_signal(signal.SIGUSR2)
ok(wait(lambda: epoch_of('turn') == 5 and epoch_of('sums2') == 5), 'one more')
taken(t.uri, 6)
t.comes_to(accepted=24)
t.process.send_signal(signal.SIGUSR2)
wait(lambda: t.comes_to(accepted=24) and t.stats['out']['epochs']['put_off'] >= 3)
ok(epoch_of('turn') == 5 and value(path('turn'), 'a', '--epoch', 4) == '%08x' % 5 and value(path('turn'), 'a') == '%08x' % 6,
   'the next epoch of values waits')
ok(epoch_of('merged') == 4 and value(path('merged'), 'a') == 6 and value(path('merged'), 'a', '--epoch', 3) == 4,
   'the next sketch does not', rows('info', path('merged')))
for name in ('turn-4', 'merged-3', 'merged-4'):
    os.rmdir(f'{kept}/{name}.plr')
ok(wait(lambda: epoch_of('turn') == 6), 'until there is room')
s = t.stop()
ok(s['out']['turned'] == 4 and s['out']['epochs']['turned'] == 6 and s['out']['epochs']['kept'] == len(os.listdir(kept))
   and 'merged: cannot keep the ended epoch' in t.err, 'the account of epochs', (s['out'], t.err))
ok(value(f'{kept}/turn-4.plr', 'a') == '%08x' % 5 and value(f'{kept}/turn-5.plr', 'a') == '%08x' % 6
   and value(f'{kept}/merged-3.plr', 'a') == 4, 'what waited is kept')

t = Translator('--epoch', '50ms', 'udp://127.0.0.1:0', path('turn'), path('flat'))
ok(wait(lambda: epoch_of('turn') >= 9), '--epoch begins them by the clock')
t.process.send_signal(signal.SIGTERM)
t.process.communicate(timeout=60)
for args in (['--epoch', '1h', 'udp://127.0.0.1:0', path('flat')], ['--epoch', '1h', 'udp://127.0.0.1:0', path('merged')],
             ['--keep-epochs', kept, 'udp://127.0.0.1:0', path('last')],
             ['--keep-epochs', path('turn'), 'udp://127.0.0.1:0', path('turn')],
             ['--epoch', '1h', 'udp://127.0.0.1:0', 'roce://127.0.0.1:1/x?dev=packet:lo']):
    run('translate', *args, code=2 if path('turn') not in args else 1)
os.mkdir(path('again'))
create('again/turn', 'key-write', '--slots', 1000, '--halves', 2)
r = run('translate', '--keep-epochs', kept, 'udp://127.0.0.1:0', path('turn'), path('again/turn'), code=2)
ok('two regions have the name turn' in r.stderr, 'files of epochs have names of their own', r.stderr)

# Lists go on where they were.
t = Translator('udp://127.0.0.1:0', path('lists'))
run('report', 'append', '--list', 3, '-d', 'next', t.uri)
t.comes_to(accepted=1)
t.stop()
found = rows('dump', path('lists'), '--list', 3)
ok(len(found) == 1001 and found[-1]['number'] == 1000 and found[-1]['value'] == b'next'.hex(),
   'after a restart a list goes on', found[-2:])

# A head that is damaged: the entries tell it. The next writer says so and goes on where they end.
with open(path('lists'), 'r+b') as f:
    page = f.read(4096)
    at, size = struct.unpack_from('<QQ', page, 40)
    f.seek(at + 3 * (size // 4) + 5)
    f.write(b'\x01')
r = run('region', 'verify', path('lists'), '-o', 'json', code=3)
ok(json.loads(r.stdout)[0]['wrong_heads'] == 1 and 'list 3: its head disagrees with its entries' in r.stderr
   and 'the entries end before number 1001' in r.stderr, 'verify tells the head from the entries', r.stdout + r.stderr)
run('gen', 'dta', '--stream', 'append', '--lists', 1, '-n', 1, '-w', path('one.pcap'))
r = run('translate', path('one.pcap'), path('lists'))
ok(path('lists') + ': the head of list 3 was 1099511628777, but its entries end before number 1001: mended' in r.stderr,
   'a writer mends it and says so', r.stderr)
r = run('region', 'verify', path('lists'), '-o', 'json')
ok(json.loads(r.stdout)[0]['whole'] == 1002 and r.stderr == '', 'nothing is lost', r.stdout + r.stderr)

# ---- the published forms, by another writer ----

create('kw', 'key-write', '--hash', 'dta', '--slots', 256, '--copies', 4)
create('ap', 'append', '--hash', 'dta', '--slots', 16, '--batch', 4, '--unsealed', '--lists', 4)
create('ki', 'counters', '--hash', 'dta', '--slots', 1024)
create('pc', 'postcards', '--hash', 'dta', '--slots', 256)
t = Translator('--flush', '20ms', '--nack-tries', 1000, 'udp://127.0.0.1:0', *[path(n) for n in ('kw', 'ap', 'ki', 'pc')])
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind(('127.0.0.1', 0))
sock.settimeout(LIMIT)
seq = 0


def tracked(op, body, flags=0x40):
    """Variant B, numbered."""
    global seq
    seq += 1
    return struct.pack('!BBB', op, (seq - 1) & 255, flags) + body


def send(datagram):
    sock.sendto(datagram, ('127.0.0.1', t.port))


send(tracked(1, struct.pack('!BI', 4, 1) + b'\xde\xad\xbe\xef'))
for i in range(6):
    send(tracked(2, struct.pack('!II', 2, 0xaabb0000 + i)))
send(tracked(3, struct.pack('!BIQ', 4, 1, 41)))
for hop in range(1, 6):
    send(tracked(4, struct.pack('!IBI', 0x0a000001, hop, 100 + hop)))
t.comes_to(accepted=13)
with open(path('kw'), 'rb') as f:
    page = f.read()
data = struct.unpack_from('<Q', page, 40)[0]
key = struct.pack('<I', 1)
for slot in (173, 59, 129, 23):
    got = page[data + 8 * slot:data + 8 * slot + 8]
    ok(slot == zlib.crc32(key + bytes([(173, 59, 129, 23).index(slot)])) & 255
       and got == struct.pack('<I', zlib.crc32(key)) + b'\xde\xad\xbe\xef', 'slot %d as published' % slot, got.hex())
found = rows('dump', path('ap'), '--list', 2)
ok([f['value'] for f in found] == [struct.pack('<I', 0xaabb0000 + i).hex() for i in range(6)],
   'entries are little-endian in memory', found)
found = rows('lookup', path('ki'), '--key-form', 'u32', 1)
ok(found[0].get('value') == 41, 'the increment', found)
found = rows('lookup', path('pc'), '--key-form', 'be32', '--nodes', '100-110', 0x0a000001)
ok(found[0].get('answer') == 'found' and '105' in json.dumps(found[0]), 'five hops', found)

# A gap: NACK names the last one in order; what was missing is sent again, nothing is done twice.
before = seq
lost = tracked(2, struct.pack('!II', 0, 1))
send(tracked(2, struct.pack('!II', 0, 2)))
nack, sender = sock.recvfrom(100)
ok(nack == bytes([(before - 1) & 255, 0x80]) and sender[1] == t.port, 'a NACK with the last number in order', nack.hex())
send(lost)
send(struct.pack('!BBB', 2, (seq - 1) & 255, 0x40) + struct.pack('!II', 0, 2))
send(lost)
t.comes_to(duplicates=1)
found = rows('dump', path('ap'), '--list', 0)
ok([f['value'] for f in found] == ['01000000', '02000000'], 'each entry once, in order', found)
send(b'\x09\x00\x00')
send(b'')
send(b'\xd1\x01\x00\x00\x00\x00\xff\xff\x00\x00\x00\x00')
t.comes_to(unreadable=3)
s = t.stop()
ok(s['duplicates'] == 1 and s['refused']['gap'] == 1 and s['nacks'] >= 1 and s['lost'] == 0, 'counted so', s)
ok(s['unreadable']['opcode'] == 1 and s['unreadable']['short'] == 2, 'and so is what cannot be read', s)

# A key is asked for as it was reported, whatever it is written as, and a number is the number that was reported.
for name, primitive in (('f0', 'key-write'), ('f1', 'counters'), ('f2', 'postcards')):
    create(name, primitive, '--hash', 'dta', '--slots', 1024)
t = Translator('--flush', '20ms', 'udp://127.0.0.1:0', *[path(n) for n in ('f0', 'f1', 'f2')])
written = [('u32', 5), ('be32', 6), ('hex', '00000007'), ('text', 'key8')]
for form, key in written:
    for what in (['key-write', '-d', 'four'], ['increment'], ['postcard', '--hops', '1,2,3,4,5', '--no-length']):
        run('report', what[0], '--form', 'tracking', '-k', key, '--key-form', form, *what[1:], t.uri)
t.comes_to(accepted=7 * 4, paths_complete=4)
t.stop()
for name in ('f0', 'f1', 'f2'):
    for form, key in written + [('be32', 5), ('u32', 6), ('u32', 7), ('be32', 7), ('be32', 0x6b657938), ('hex', '00000005')]:
        r = pathline.run('region', 'lookup', path(name), '--nodes', '1-5', '--key-form', form, str(key))
        ok(r.returncode == 0, '%s: --key-form %s %s is found' % (name, form, key), r.stdout + r.stderr)
    for form, key in (('u32', 0x05000000), ('be32', 0x06000000), ('text', '8yek')):
        r = pathline.run('region', 'lookup', path(name), '--nodes', '1-5', '--key-form', form, str(key))
        ok(r.returncode == 3, '%s: --key-form %s %s was not reported' % (name, form, key), r.stdout + r.stderr)

# Who may not report.
t = Translator('--allow', '10.0.0.0/8', 'udp://127.0.0.1:0', path('kw'))
run('report', 'key-write', '--form', 'tracking', '-k', 1, '--key-form', 'be32', '-d', 'no!!', t.uri)
t.comes_to(refused=1)
s = t.stop()
ok(s['refused']['access'] == 1 and s['accepted'] == 0 and t.process.returncode == 3, 'not on the list: exit code 3', s)

# A cell that is full stays full, and says so.
create('full', 'counters', '--slots', 1000)
t = Translator('--flush', '20ms', 'udp://127.0.0.1:0', path('full'))
run('report', 'increment', '-k', 'a', '--by', 2**64 - 1, t.uri)
t.comes_to(accepted=1, adds=4)
for _ in range(2):
    run('report', 'increment', '-k', 'a', '--by', 10, t.uri)
run('report', 'increment', '-k', 'b', '--by', 10, t.uri)
t.comes_to(accepted=4)
t.process.send_signal(signal.SIGTERM)
out, err = t.process.communicate(timeout=60)
s = json.loads(out)
found = rows('lookup', path('full'), 'a', 'b')
ok(found[0].get('value') == 2**64 - 1, 'a sum does not wrap', found)
ok(s['out']['overflows'] >= 4 and s['adds'] == s['out']['adds'] + s['out']['overflows'] and err.count('a counter is full') == 1,
   'what is left out is told once, and counted', '%s %s' % (s, err))

# Regions that somebody cuts under it: told once each, not written any more, in the account.
create('cut0', 'key-write', '--slots', 100000, '--value-bytes', 4)
create('cut1', 'append', '--slots', 4096, '--value-bytes', 4)
create('cut2', 'sketch', '--slots', 4, '--rows', 2, '--halves', 2)
create('whole', 'counters', '--slots', 1000)
t = Translator('--flush', '20ms', 'udp://127.0.0.1:0', *[path(n) for n in ('cut0', 'cut1', 'whole', 'cut2')])
run('report', 'key-write', '--sequenced', '-k', 0, '--key-form', 'u64', '--step-key', '-d', 'some', '--count', 1000, t.uri)
run('report', 'sketch', '--store', 3, '--epoch', 1, '-d', cells, '--data-form', 'hex', t.uri)
t.comes_to(accepted=1001)
ok(t.stats['out']['cut_regions'] == 0, 'no region is cut', t.stats)
os.truncate(path('cut0'), 100000)
os.truncate(path('cut1'), 4096)
os.truncate(path('cut2'), 4096)
words = sorted(t.process.stderr.readline() for _ in range(3))
ok(all(path('cut%d' % i) in words[i] and 'was truncated while it was open' in words[i] for i in range(3)), 'a cut region is told',
   words)
run('report', 'sketch', '--store', 3, '--epoch', 2, '-d', cells, '--data-form', 'hex', t.uri)
run('report', 'append', '--store', 1, '-d', 'lost', '--count', 100, '--sequenced', t.uri)
run('report', 'key-write', '-k', 'k', '-d', 'lost', '--count', 100, '--sequenced', t.uri)
run('report', 'increment', '--store', 2, '-k', 'a', '--by', 5, t.uri)
t.comes_to(accepted=1203)
t.process.send_signal(signal.SIGTERM)
out, err = t.process.communicate(timeout=60)
s = json.loads(out)
ok(t.process.returncode == 1 and 'truncated regions were lost' in err and 'while it was open' not in err, 'once, and in the end', err)
ok(s['out']['cut_regions'] == 3 and s['out']['no_store'] > 200
   and s['writes'] + s['adds'] == s['out']['writes'] + s['out']['adds'] + s['out']['no_store'], 'and counted', s)
found = rows('lookup', path('whole'), 'a')
ok(found[0].get('value') == 5, 'the region that is whole is written', found)

# Two collectors have half each; their regions must be the same store.
for name in ('c0', 'c1', 'c2'):
    create(name, 'key-write', '--slots', 10000, '--value-bytes', 8, *(['--seed', 4] if name == 'c2' else []))
run('translate', '--collectors', 2, 'udp://127.0.0.1:0', path('c0'), path('c2'), code=1)
t = Translator('--collectors', 2, 'udp://127.0.0.1:0', path('c0'), path('c1'))
run('report', 'key-write', '--sequenced', '-k', 0, '--key-form', 'u64', '--step-key', '-d', 0, '--data-form', 'u64',
    '--step-data', '--count', 1000, t.uri)
t.stop()
keys = [str(k) for k in range(1000)]
have = [{f['key'] for f in rows('lookup', path(n), '--key-form', 'u64', *keys) if f['answer'] == 'found'}
        for n in ('c0', 'c1')]
ok(not have[0] & have[1] and len(have[0] | have[1]) >= 990 and 400 < len(have[0]) < 600,
   'each key is at one of two collectors', '%d and %d' % (len(have[0]), len(have[1])))
# Asked of both, in the translator's order, each is found where it is.
asked = rows('lookup', path('c0'), '--collector', path('c1'), '--key-form', 'u64', *keys)
there = {f['key']: f for f in asked if f['answer'] == 'found'}
ok(set(there) == have[0] | have[1] and all((k in have[f['collector']]) and int(f['value'], 16) == int.from_bytes(
    int(k).to_bytes(8, 'little'), 'big') for k, f in there.items()), 'a lookup of both finds every key at the one that has it',
   [f for f in asked if f['answer'] == 'found'][:2])
first = [f['key'] for f in asked if f['collector'] == 0]
ok(len(set(first) & have[1]) == 0, 'a key that is nowhere is told of the one that would have it')
# The other way round the first choice is the wrong one: the key is found at the other all the same.
other = rows('lookup', path('c1'), '--collector', path('c0'), '--key-form', 'u64', *keys)
ok({f['key'] for f in other if f['answer'] == 'found'} == set(there), 'what went to another collector is found there')
run('region', 'lookup', path('c0'), '--collector', path('c2'), '--key-form', 'u64', 1, code=2)
run('region', 'dump', path('c0'), '--collector', path('c1'), code=2)
# Sums: what is elsewhere is told besides.
for name in ('s0', 's1'):
    create(name, 'counters', '--slots', 4096)
t = Translator('--collectors', 2, 'udp://127.0.0.1:0', path('s0'), path('s1'))
run('report', 'increment', '--sequenced', '-k', 0, '--key-form', 'u64', '--step-key', '--by', 7, '--count', 50, t.uri)
t.stop()
sums = rows('lookup', path('s0'), '--collector', path('s1'), '--key-form', 'u64', *keys[:50])
ok(all(f['value'] == 7 and f['elsewhere'] == 0 for f in sums) and {f['collector'] for f in sums} == {0, 1},
   'sums are asked of the collector that has them', sums[:3])

# ---- gen dta: the published stream and all streams at once, from capture files and from an interface ----

create('gkw', 'key-write', '--hash', 'dta', '--slots', 65536, '--copies', 4)
run('gen', 'dta', '--form', 'tracking', '--keys', 500, '-n', 1000, '-w', path('kw.pcap'))
r = run('translate', '--stats', path('kw.pcap'), path('gkw'))
s = json.loads(r.stdout)
ok(s['packets'] == 1000 and s['accepted'] == 1000 and s['writes'] == 4000, 'a capture of a thousand reports', s)
found = rows('lookup', path('gkw'), '--key-form', 'u32', *[str(k) for k in range(500)])
wrong = [f for f in found if f['answer'] == 'found' and f['value'] != '%08x' % (500 + int(f['key']))]
gone = [f for f in found if f['answer'] != 'found']
ok(not wrong and len(gone) <= 2, 'each key has its last value', 'wrong %s\ngone %d' % (wrong[:3], len(gone)))

# What regions are by default is what published reports are by default: of gen dta and of report.
published = (('d0', 'key-write', 'key-write', ['-d', 'four']), ('d1', 'append', 'append', ['-d', 'four', '--list', 4]),
             ('d2', 'counters', 'increment', []), ('d3', 'postcards', 'postcards', ['--hops', '1,2,3,4,5', '--no-length']))
for form in ('tracking', 'plain'):
    for name, primitive, stream, what in published:
        create(form + name, primitive, '--hash', 'dta', '--slots', 1024)
        run('gen', 'dta', '--stream', stream, '--form', form, '-n', 1000, '-w', path('default.pcap'))
        s = json.loads(run('translate', '--stats', '--form', form, path('default.pcap'), path(form + name)).stdout)
        ok(s['accepted'] == 1000, '%s, %s: all is taken' % (stream, form), s)
    t = Translator('--form', form, '--flush', '20ms', 'udp://127.0.0.1:0', *[path(form + row[0]) for row in published])
    for name, primitive, stream, what in published:
        key = [] if primitive == 'append' else ['-k', 'key%s' % form[0]]
        run('report', stream.rstrip('s') if stream == 'postcards' else stream, '--form', form, *key, *what, t.uri)
    t.comes_to(accepted=8)
    t.stop()
    found = rows('lookup', path(form + 'd0'), 'key%s' % form[0])
    ok(found[0].get('value') == b'four'.hex() and found[0].get('votes') == 4, 'a value in all its copies', found)

# Keys as long as a report takes them, and of all lengths; and what Marple's queries report, in both forms.
create('long', 'key-write', '--slots', 65536)
for args in ([], ['--key-lengths']):
    run('gen', 'dta', '--key-bytes', 255, *args, '--keys', 300, '-n', 600, '-w', path('long.pcap'))
    ok(json.loads(run('translate', '--stats', path('long.pcap'), path('long')).stdout)['accepted'] == 600, 'long keys are taken')
    bodies = [frame[14 + 20 + 8 + 12:] for frame in pcap.frames_of(path('long.pcap'))]
    keys = {int.from_bytes(b[1:1 + b[0]], 'big'): b[1:1 + b[0]].hex() for b in bodies}
    ok(sorted(keys) == list(range(300)) and (max(map(len, keys.values())) == 510 if not args else len({len(k) for k in keys.values()}) > 100),
       'keys are numbers, zeros before them')
    found = rows('lookup', path('long'), '--key-form', 'hex', *[keys[n] for n in range(300)])
    ok([f['value'] for f in found] == ['%08x' % (300 + n) for n in range(300)], 'and found by all their bytes', found[:2])
run('gen', 'dta', '--key-bytes', 256, '-n', 1, '--dry-run', code=2)
create('mkw', 'key-write', '--hash', 'dta', '--slots', 65536, '--copies', 4)
create('map', 'append', '--hash', 'dta', '--slots', 8192, '--lists', 2)
create('mkw2', 'key-write', '--slots', 65536, '--value-bytes', 18)
create('map2', 'append', '--slots', 8192, '--lists', 2, '--value-bytes', 18)
for args, stores in ((['--form', 'tracking'], ('mkw', 'map')), (['--value-bytes', 18], ('mkw2', 'map2'))):
    run('gen', 'dta', '--stream', 'marple', '--keys', 1000, '-n', 8000, *args, '-w', path('marple.pcap'))
    s = json.loads(run('translate', '--stats', path('marple.pcap'), *[path(n) for n in stores]).stdout)
    ok(s['accepted'] == 8000 and 7200 < s['entries_published'] < 7800, 'a trace of Marple is taken', s)
    lost, flowlets = [rows('dump', path(stores[1]), '--list', n) for n in (0, 1)]
    ok(1200 < len(lost) < 1800 and 5600 < len(flowlets) < 6400 and len(lost) + len(flowlets) == s['entries_published'],
       'flows that lost packets, and flowlets', (len(lost), len(flowlets)))
ok({f['value'][24:26] for f in lost + flowlets} == {'06'} and all(int(f['value'][26:], 16) < 1000 for f in lost),
   'entries with room for it begin with the flow', lost[:2])

# The streams for collectors without DTA.
for stream, size, ports in (('udp-report', 8, (40041, 1337)), ('udp-flowcard', 17, (40041, 1337)), ('int-paths', 33, (5000, 5002))):
    run('gen', 'dta', '--stream', stream, '-n', 100, '-w', path('plain.pcap'))
    frames = pcap.frames_of(path('plain.pcap'))
    ok(len(frames) == 100 and all(len(f) == 14 + 20 + 8 + size and struct.unpack_from('!HHH', f, 14 + 20) == (*ports, 8 + size)
                                  for f in frames), '%s: records of %d bytes' % (stream, size))
    records = [f[-size:] for f in frames]
    if stream != 'int-paths':
        ok([struct.unpack('!I', r[-4:])[0] for r in records] == list(range(100)), '%s: values rise by one' % stream)
    else:
        ok(all(1 <= hop <= 10000 for r in records for hop in struct.unpack('!5I', r[13:])), 'paths of five hops')
    run('translate', path('plain.pcap'), path('long'), code=3)

# A capture that somebody else still writes: a signal ends the wait for more of it, and what came is whole.
with open(path('kw.pcap'), 'rb') as f:
    capture = f.read()
p = lab.start([PATHLINE, 'translate', '--stats', '-', path('gkw')], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
              stderr=subprocess.PIPE)
p.stdin.write(capture)
p.stdin.flush()


def answers():
    """the signal is caught"""
    with open('/proc/%d/status' % p.pid, encoding='ascii') as f:
        caught = int([line for line in f if line.startswith('SigCgt')][0].split()[1], 16)
    return caught >> (signal.SIGUSR1 - 1) & 1


def accepted():
    p.send_signal(signal.SIGUSR1)
    return json.loads(p.stdout.readline())['accepted']


wait(answers)
wait(lambda: accepted() == 1000)
p.send_signal(signal.SIGTERM)
out, err = p.communicate(timeout=LIMIT)
ok(p.returncode == 0 and json.loads(out)['accepted'] == 1000, 'a capture from a pipe that stays open',
   '%d %r %r' % (p.returncode, out, err))

names = ('m0', 'm1', 'm2', 'm3', 'm4')
create('m0', 'key-write', '--slots', 100000, '--value-bytes', 4)
create('m1', 'append', '--slots', 65536, '--value-bytes', 4, '--lists', 5)
create('m2', 'counters', '--slots', 100000)
create('m3', 'postcards', '--slots', 100000, '--hops', 5)
create('m4', 'sketch', '--slots', 64)
run('gen', 'dta', '--stream', 'mix', '--packed', 8, '-n', 40000, '--interleave', 100, '--lengths', '--columns', 64,
    '--zipf', '1.1', '--keys', 10000, '--rate', '100k', '--sequenced', '-w', path('mix.pcap'))
r = run('translate', '--stats', path('mix.pcap'), *[path(n) for n in names])
s = json.loads(r.stdout)
ok(s['reports'] == s['accepted'] == 40000 and s['held'] == 0, 'all primitives, all accepted', s)
ok(s['epochs_complete'] == 1000 and s['entries_published'] == 8000 and s['increments_merged'] == 8000
   and s['additions'] < 6000 and s['paths_complete'] > 2500 and s['paths_evicted'] == 0, 'each gathered', s)
run('gen', 'dta', '--stream', 'mix', '--packed', 8, '-n', 40000, '--loss', '0.1', '--duplicate', '0.1', '--swap', '0.2',
    '--sequenced', '--keys', 10000, '--columns', 64, '-w', path('bad.pcap'))
r = run('translate', '--nack-tries', 0, '--stats', path('bad.pcap'), *[path(n) for n in names])
s = json.loads(r.stdout)
ok(s['reports'] == s['accepted'] + s['duplicates'] + sum(s['refused'].values()) and s['lost'] > 2000
   and s['duplicates'] > 2000 and s['refused']['column_gap'] > 0, 'lost, doubled, swapped: counted, taken in order', s)

if os.geteuid() == 0:
    sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sink.bind(('127.0.0.1', 0))
    port = sink.getsockname()[1]
    create('raw', 'key-write', '--slots', 1000)
    process = lab.start([PATHLINE, 'translate', '--stats', 'packet:lo?port=%d' % port, path('raw')], stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE, text=True)
    process.stderr.readline()
    run('report', 'key-write', '-k', 'a', '-d', 'fram', 'udp://127.0.0.1:%d' % port)
    def taken():
        """the report is accepted"""
        process.send_signal(signal.SIGUSR1)
        return json.loads(process.stdout.readline())['accepted'] == 1
    wait(taken)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    s = json.loads(out)
    found = rows('lookup', path('raw'), 'a')
    ok(s['accepted'] == 1 and found[0].get('value') == b'fram'.hex(), 'reports in frames of an interface', out + err)
else:
    skip('reports in frames', 'needs root')

# Usage.
run('translate', 'udp://127.0.0.1:0', code=2)
run('translate', 'udp://127.0.0.1:0', path('nothing'), code=69)
for command in (['translate', 'udp://127.0.0.1:0', '/etc/passwd'], ['lookup', 'key', '/etc/passwd', 'a']):
    r = run(*command, code=1)
    ok('/etc/passwd: the file is shorter' in r.stderr or '/etc/passwd: this is no region' in r.stderr, 'the file is named', r.stderr)
run('translate', '--above', '7=1', 'udp://127.0.0.1:0', path('kw'), code=2)
run('report', 'key-write', 'udp://127.0.0.1:21500', code=2)
run('report', 'poem', '-k', 'a', 'udp://127.0.0.1:21500', code=2)
run('report', 'sketch', '--form', 'plain', '-d', 'x', 'udp://127.0.0.1:21500', code=2)

sys.exit(tap.end())
