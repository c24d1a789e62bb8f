#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""pathline region, and an independent writer of the region format: this script computes places and check values from
docs/formats/region.md with zlib's CRC-32 and writes them into files; pathline must find what it wrote."""
import csv
import io
import json
import os
import struct
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, pathline, tap  # noqa: E402
from lib.lab import path  # noqa: E402
from lib.tap import ok  # noqa: E402

folder = lab.DIR

def region(*args):
    return pathline.run('region', *args)


def expect(args, code, out='', err=''):
    r = region(*args)
    ok(r.returncode == code and out in r.stdout and err in r.stderr,
       'region %s: exit code %d' % (' '.join(a.replace(folder + '/', '') for a in args), code),
       'got %d\n%s\n%s' % (r.returncode, r.stdout[-500:], r.stderr[-500:]))
    return r


def create(name, *args):
    expect(['create', path(name)] + list(args), 0)


def rows(*args):
    r = region(*args, '-o', 'json')
    try:
        return json.loads(r.stdout), r.returncode
    except ValueError:
        return None, r.returncode


# What anybody can work out from the first page.
def header(name):
    with open(path(name), 'rb') as f:
        page = f.read(4096)
    magic, version, order, check, halves = struct.unpack_from('<8sIIII', page)
    ident, created, data, store, size = struct.unpack_from('<QQQQQ', page, 24)
    without = page[:16] + bytes(4) + page[20:512]
    ok(magic == b'PLREGION' and version == 1 and order == 0x01020304 and check == zlib.crc32(without)
       and size == os.path.getsize(path(name)) and halves == 1 and store > 0 and ident > 0 and created > 0,
       '%s: the header as in the format page' % name, page[:128].hex())
    return data


def write(name, at, data):
    with open(path(name), 'r+b') as f:
        f.seek(at)
        f.write(data)


# key-write, published hash: CRC-32 of the key and the copy's number.
create('kw', '--primitive', 'key-write', '--slots', '256', '--hash', 'dta', '--copies', '4')
data = header('kw')
key = struct.pack('<I', 1)
places = [zlib.crc32(key + bytes([n])) & 255 for n in range(4)]
ok(places == [173, 59, 129, 23], 'key 1 goes to slots 173, 59, 129, 23')
for slot in places:
    write('kw', data + 8 * slot, struct.pack('<I', zlib.crc32(key)) + b'\xde\xad\xbe\xef')
found, code = rows('lookup', path('kw'), '--key-form', 'u32', '1')
ok(code == 0 and found == [{'key': '1', 'answer': 'found', 'votes': 4, 'matches': 4, 'value': 'deadbeef'}],
   'found with four votes', found)
found, code = rows('lookup', path('kw'), '--key-form', 'u32', '1', '2')
ok(code == 3 and [f['answer'] for f in found] == ['found', 'not_found'], 'one of two is there: exit code 3', found)
for words in (['region', 'lookup'], ['lookup', 'key']):
    r = pathline.run(*words, path('kw'), '-', '--key-form', 'u32', '-o', 'json', input='1\n\n2\r\n1')
    ok(r.returncode == 3 and [(f['key'], f['answer']) for f in json.loads(r.stdout)] ==
       [('1', 'found'), ('2', 'not_found'), ('1', 'found')], '%s: keys from standard input' % ' '.join(words), r.stdout)
    r = pathline.run(*words, path('kw'), '-', '--key-form', 'u32', input='1\nx\n')
    ok(r.returncode == 2 and "'x' is not a key" in r.stderr, 'one that is none is told', r.stderr)
    f = os.open(folder, os.O_RDONLY)
    r = pathline.run(*words, path('kw'), '-', stdin=f)
    os.close(f)
    ok(r.returncode == 1 and 'standard input: Is a directory' in r.stderr, 'and so is what cannot be read', r.stderr)
    r = pathline.run(*words, path('kw'))
    ok(r.returncode == 2 and '%s: missing key' % ' '.join(words) in r.stderr, 'no key: the command is named', r.stderr)
for slot in places[:2]:
    write('kw', data + 8 * slot + 4, b'\x01\x02\x03\x04')
found, code = rows('lookup', path('kw'), '--key-form', 'u32', '1')
ok(code == 3 and found[0]['answer'] == 'ambiguous' and 'value' not in found[0], 'two against two is ambiguous', found)
found, code = rows('dump', path('kw'))
ok(code == 0 and sorted(f['slot'] for f in found) == sorted(places), 'dump has the four slots', found)
r = region('dump', path('kw'), '-o', 'csv')
ok(len(list(csv.DictReader(io.StringIO(r.stdout)))) == 4, 'as CSV too', r.stdout)

# append, unsealed: words in a ring behind the head.
create('ap', '--primitive', 'append', '--slots', '16', '--batch', '4', '--unsealed', '--lists', '2')
data = header('ap')
stride = 64 + 16 * 4
write('ap', data + stride + 64, b''.join(struct.pack('<I', 100 + i) for i in (16, 17, 18, 19)) +
      b''.join(struct.pack('<I', 100 + i) for i in range(4, 16)))
write('ap', data + stride, struct.pack('<Q', 20))
found, code = rows('dump', path('ap'), '--list', '1')
ok(code == 0 and [f['number'] for f in found] == list(range(8, 20))
   and all(f['value'] == struct.pack('<I', 100 + f['number']).hex() for f in found),
   'entries 8 to 19: those before are being overwritten', found)
expect(['lookup', path('ap'), '--list', '1', '7'], 3, out='not_found')
expect(['lookup', path('ap'), '--list', '1', '19'], 0, out='77000000')
expect(['lookup', path('ap'), '--list', '2', '1'], 2, err='lists 0 to 1')
expect(['dump', path('ap'), '--list', '0'], 3)

# counters, published hash, four rows in one array.
create('co', '--primitive', 'counters', '--slots', '1024', '--hash', 'dta')
data = header('co')
for n in range(4):
    write('co', data + 8 * (zlib.crc32(key + bytes([n])) & 1023), struct.pack('<Q', 41 + (n == 2)))
found, code = rows('lookup', path('co'), '--key-form', 'u32', '1')
ok(code == 0 and found[0]['value'] == 41 and found[0]['confidence'] == 0.9817, 'the smallest of four cells', found)

# A sketch: four columns of two rows, of which two are of the present one and the others of the one before.
create('sk', '--primitive', 'sketch', '--slots', '4', '--rows', '2')
data = header('sk')
write('sk', data + 64, struct.pack('<8Q', *(4 * [1] + 4 * [1000])))
for complete, whole, code in (2, False, 3), (4, True, 0), (5, False, 3):
    write('sk', data, struct.pack('<Q', complete))
    told = complete if complete <= 4 else 0
    r = expect(['lookup', path('sk'), 'a'], code, err='' if code == 0 else '%d of 4 columns' % told)
    found, got = rows('lookup', path('sk'), 'a', 'b')
    ok(got == code and [(f['whole'], f['complete']) for f in found] == 2 * [(whole, told)],
       'a lookup says whether the sketch is whole, and how much of it there is', found)
    found, got = rows('dump', path('sk'))
    ok(got == 0 and [f['present'] for f in found] == [f['column'] < told for f in found]
       and [f['value'] for f in found] == 4 * [1] + 4 * [1000], 'a dump says it of each column', found)
    found, got = rows('info', path('sk'))
    ok(got == 0 and (found[0]['whole'], found[0]['complete']) == (whole, told), 'and info of all', found)
create('hy', '--primitive', 'sketch', '--kind', 'hyperloglog', '--slots', '64')
data = header('hy')
for complete, whole, code in (63, False, 3), (64, True, 0):
    write('hy', data, struct.pack('<Q', complete))
    found, got = rows('lookup', path('hy'))
    ok(got == code and (found[0]['whole'], found[0]['complete']) == (whole, complete), 'of registers too', found)

# A record list is printed as records.
create('ev', '--primitive', 'append', '--slots', '64', '--content', 'event', '--unsealed')
data = header('ev')
write('ev', data + 64, struct.pack('<Q', 1700000000000000000) + bytes(120))
write('ev', data, struct.pack('<Q', 1))
found, code = rows('dump', path('ev'))
ok(code == 0 and len(found) == 1 and found[0]['kind'] == 'event' and found[0]['ts_ns'] == 1700000000000000000,
   'an event comes out as an event', found)

# Sealed entries that do not fit their seal are damage.
create('se', '--primitive', 'append', '--slots', '64', '--value-bytes', '16')
data = header('se')
write('se', data + 64, b'x' * 24)
write('se', data, struct.pack('<Q', 1))
expect(['dump', path('se')], 3, err='damaged')
found, code = rows('verify', path('se'))
ok(code == 3 and found[0]['damaged'] == 1 and found[0]['whole'] == 0, 'verify says so', found)

# What is refused.
write('kw', 88, b'\xff')
expect(['info', path('kw')], 1, err='damaged')
os.truncate(path('co'), 5000)
expect(['verify', path('co')], 1, err='truncated')
expect(['info', path('none')], 1, err='No such file')
expect(['info', '/etc/passwd'], 1)
expect(['create', path('ap'), '--primitive', 'append', '--slots', '16'], 1, err='exists')
expect(['create', path('x')], 2, err='--primitive')
expect(['create', path('x'), '--primitive', 'key-write', '--slots', '100', '--hash', 'dta'], 2, err='power of two')
expect(['create', path('x'), '--primitive', 'key-write', '--slots', '1', '--value-bytes', '2000'], 2)
expect(['create', path('x'), '--primitive', 'counters', '--slots', '100000000000000'], 1)
ok(not os.path.exists(path('x')), 'and nothing is left of it')
expect(['lookup', path('ap')], 2)
expect(['erase', path('ap')], 2)
expect([], 2)
expect(['lookup', path('ap'), '--epoch', '1', '1'], 3, err='epoch 1')

# What is given is taken or refused, never something else instead.
kw, ap, co, pc, sk = [['create', path('x'), '--primitive', p, '--slots', '64'] for p in
                      ('key-write', 'append', 'counters', 'postcards', 'sketch')]
for args in (kw + ['--copies', '0'], kw + ['--value-bytes', '0'], kw + ['--halves', '0'], ap + ['--lists', '0'], ap + ['--batch', '0'],
             co + ['--rows', '0'], pc + ['--hops', '0'], pc + ['--copies', '0'], sk + ['--rows', '0'], sk + ['--cell-bytes', '0'],
             kw[:-1] + ['0']):
    expect(args, 2)
for args in (ap + ['--hops', '4'], ap + ['--rows', '3'], ap + ['--kind', 'hyperloglog'], ap + ['--copies', '2'], ap + ['--shared'],
             kw + ['--lists', '1'], kw + ['--unsealed'], kw + ['--batch', '16'], co + ['--content', 'path'], co + ['--value-bytes', '4'],
             pc + ['--cell-bytes', '8']):
    expect(args, 2, err='--%s does not apply to the primitive %s' % (args[6][2:], args[3]))
expect(ap + ['--list', '4'], 2, err='--list applies to reading only')
expect(['info', path('ap'), '--slots', '5'], 2, err='--slots applies to create only')
ok(not os.path.exists(path('x')), 'and nothing is left of them')
for words in (['--seed', '0'], ['--seed', '0', '--hash', 'dta']):
    expect(kw + words, 0)
    with open(path('x'), 'rb') as f:
        ok(f.read(80)[72:] == bytes(8), 'the seed is as given: 0')
    os.unlink(path('x'))
for option in ('reporters', 'sketch-reporters', 'nack-interval'):
    r = pathline.run('translate', '--' + option, '0', 'udp://127.0.0.1:0', path('ap'))
    ok(r.returncode == 2 and '"--%s" must be from 1' % option in r.stderr, 'translate --%s 0' % option, r.stderr)
for option in ('copies', 'reporters', 'packed', 'keys', 'key-bytes', 'value-bytes', 'lists', 'interleave', 'hops', 'nodes', 'columns',
               'rows', 'cell-bytes', 'rate'):
    r = pathline.run('gen', 'dta', '--dry-run', '-n', '1', '--' + option, '0')
    ok(r.returncode == 2 and 'gen: --%s must be greater than 0' % option in r.stderr, 'gen dta --%s 0' % option, r.stderr)
ok(pathline.run('gen', 'dta', '--dry-run', '-n', '1').returncode == 0, 'without any it has its defaults')

# Every form of every word.
for form in ('table', 'wide', 'json', 'jsonl', 'csv', 'text'):
    for word in (['info', path('ev')], ['dump', path('ev')], ['verify', path('ev')], ['lookup', path('ev'), '0']):
        r = region(*word, '-o', form)
        ok(r.returncode == 0 and r.stdout.strip() != '' and r.stderr == '', '%s -o %s' % (word[0], form), r.stderr)

# What a stream must have left: refused where nobody knows what that is, and where the region is not its.
for name, words in (('left', ['key-write', '--slots', '4096', '--value-bytes', '4']),
                    ('leftlists', ['append', '--slots', '64', '--value-bytes', '4', '--lists', '2'])):
    expect(['create', path(name), '--primitive', *words], 0)
for words, code, text in (
        (['--value-of-key'], 2, 'needs --count'), (['-n', '5'], 2, 'needs --value-of-key'),
        (['-n', '5', '--stream', 'postcards'], 2, 'needs --lengths'), (['-n', '5', '--stream', 'marple'], 2, 'is for the streams'),
        (['-n', '5', '--value-of-key', '--zipf', '1.1'], 2, 'no --zipf'), (['-n', '5', '--value-of-key', '--loss', '0.1'], 2, '--loss'),
        (['-n', '5', '--value-of-key', '--keys', '4'], 2, 'more than --keys'), (['-n', '5', '--value-of-key', '--dry-run'], 2, 'sends nothing'),
        (['-n', '5', '--value-of-key', 'udp://127.0.0.1:1'], 2, 'sends nothing'),
        (['-n', '5', '--stream', 'append'], 1, 'a region of key-write, the stream is append'),
        (['-n', '5', '--value-of-key', '--against', path('none')], 1, 'none'),
        (['-n', '5', '--value-of-key', '--against', path('leftlists')], 1, 'differs from the store'),
        (['-n', '5', '--value-of-key'], 3, 'key-write: asked 5, right 0, wrong 0, not found 5 (0 expected)'),
        (['-n', '5', '--value-of-key', '-o', 'json'], 3, '"not_found":5')):
    r = pathline.run('gen', 'dta', '--against', path('left'), *words)
    ok(r.returncode == code and text in r.stdout + r.stderr, 'gen dta --against: %s' % text, '%d %s' % (r.returncode, r.stdout + r.stderr))
r = pathline.run('gen', 'dta', '--stream', 'append', '--lists', '3', '-n', '5', '--against', path('leftlists'))
ok(r.returncode == 1 and 'the stream has 3 lists, the regions have 2' in r.stderr, 'more lists than there are', r.stderr)

sys.exit(tap.end())
