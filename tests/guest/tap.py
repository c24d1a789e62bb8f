# SPDX-License-Identifier: BSD-2-Clause
"""Points of a test as TAP lines, a failed one with what was got."""
count = failures = 0


def ok(good, what, detail=''):
    global count, failures
    count += 1
    print('%s %d - %s' % ('ok' if good else 'not ok', count, what), flush=True)
    if not good:
        failures += 1
        for line in str(detail).splitlines()[:40]:
            print('# ' + line[:400], flush=True)


def eq(got, want, what):
    ok(got == want, what, 'got    %r\nwanted %r' % (got, want))


def end():
    """The plan; the program's exit code."""
    print('1..%d' % count)
    return 1 if failures else 0
