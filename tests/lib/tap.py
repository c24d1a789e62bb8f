# SPDX-License-Identifier: BSD-2-Clause
"""Points of a test as TAP lines, a failed one with what was got."""
import sys

count = failures = 0


def comment(text):
    """At most 40 lines, none of them too long to look at."""
    for line in str(text).splitlines()[:40]:
        print("# " + line[:1000], flush=True)


def ok(good, what, detail=""):
    global count, failures
    count += 1
    failures += not good
    print(f"{'ok' if good else 'not ok'} {count} - {what}", flush=True)
    if not good and detail != "":
        comment(detail)
    return good


def eq(got, want, what):
    return ok(got == want, what, f"got    {got!r}\nwanted {want!r}")


def skip(what, why):
    global count
    count += 1
    print(f"ok {count} - {what} # SKIP {why}", flush=True)


def skip_all(why):
    """There is nothing here to test with. The plan says so: who reads TAP takes any other exit code for a failure."""
    print(f"1..0 # SKIP {why}", flush=True)
    sys.exit(0)


def end():
    """The plan; the program's exit code."""
    print(f"1..{count}", flush=True)
    return 1 if failures else 0
