#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The kernel detector's accounts, or the tap's programs, on the kernel of Debian's package, which boots in an emulated machine.
usage: old_kernel.py PROGRAM FOLDER   PROGRAM: what is run in it, TAP on standard output; FOLDER: where the guest's image
is kept"""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
from guest import guest  # noqa: E402
from lib import tap  # noqa: E402

PROGRAM, FOLDER = sys.argv[1:3]
SCRIPT = """echo "# Linux $(uname -r)"
insmod /modules/sch_ingress.ko
insmod /modules/cls_bpf.ko
/bin/program short
echo "exit code $?"
"""


def main():
    absent = guest.missing()
    if absent is not None:
        tap.skip_all('missing: %s' % absent)
    guest.make_image(FOLDER)
    machine, lines = guest.Guest(FOLDER, {'/bin/program': PROGRAM}, SCRIPT, mebibytes=1024), []
    while True:
        line = machine.next_line(1000)
        if line is None:
            break
        print(line, flush=True)
        lines.append(line)
    machine.close()
    # Exit code 77 would be a detector that this kernel does not take: here that is a failure.
    return 0 if 'exit code 0' in lines else 1


sys.exit(main())
