#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Region files of every version that was ever written (tests/regions/version-N): all open, all give what they gave. One of
a version to come is refused, by both numbers."""
import glob
import gzip
import json
import os
import struct
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, pathline, tap  # noqa: E402
from lib.tap import ok  # noqa: E402

stored = sys.argv[2]

def region(*args):
    return pathline.run('region', *args)


def later(header):
    """The first page, of a version that there is not yet, with the check value that it would have."""
    page = bytearray(header)
    struct.pack_into('<I', page, 8, 99)
    struct.pack_into('<I', page, 16, 0)
    struct.pack_into('<I', page, 16, zlib.crc32(page[:512]))
    return bytes(page)


def same(found, wanted):
    """Whether these are those entries; what a dump says of them today and did not then is no difference."""
    return len(found) == len(wanted) and all({name: entry.get(name) for name in was} == was
                                             for entry, was in zip(found, wanted))


def main():
    primitives = set()
    for packed in sorted(glob.glob(os.path.join(stored, 'version-*', '*.region.gz'))):
        name = os.path.relpath(packed, stored)[:-len('.region.gz')]
        path = lab.path(name.replace('/', '-'))
        with gzip.open(packed) as source, open(path, 'wb') as out:
            data = source.read()
            out.write(data)
        with open(packed[:-len('.region.gz')] + '.json', encoding='utf-8') as f:
            wanted = json.load(f)
        run = region('dump', '-o', 'json', path)
        ok(run.returncode == 0 and wanted != [] and same(json.loads(run.stdout), wanted),
           '%s: %d entries, as they were' % (name, len(wanted)), run.stderr or run.stdout)
        run = region('info', '-o', 'json', path)
        about = json.loads(run.stdout) if run.returncode == 0 else {}
        about = about[0] if isinstance(about, list) else about
        primitives.add(about.get('primitive'))
        ok(region('verify', path).returncode == 0, '%s: whole' % name)
        with open(path, 'wb') as out:
            out.write(later(data[:4096]) + data[4096:])
        run = region('dump', path)
        ok(run.returncode == 1 and '99' in run.stderr and run.stdout == '',
           '%s: of version 99 it is refused' % name, '%d %s' % (run.returncode, run.stderr))
    ok(primitives == {'key-write', 'append', 'counters', 'postcards', 'sketch'}, 'every primitive', primitives)
    return tap.end()


sys.exit(main())
