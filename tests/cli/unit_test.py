#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The systemd unit: what systemd-analyze thinks of it, and whether the guide says the same.
usage: unit_test.py UNIT GUIDE"""

import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import tap  # noqa: E402
from lib.tap import eq, ok  # noqa: E402

UNIT, GUIDE = sys.argv[1:3]
LIMIT = 2.0


def main():
    if shutil.which("systemd-analyze") is None:
        tap.skip_all("systemd-analyze is not there (package systemd)")
    r = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", UNIT], capture_output=True, text=True)
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", r.stdout)
    if not ok(found is not None, "systemd-analyze reads the unit", r.stderr or r.stdout):
        return tap.end()
    level = float(found.group(1))
    ok(level <= LIMIT, f"exposure {level} of at most {LIMIT}",
       "\n".join(line for line in r.stdout.splitlines() if line.startswith("✗")))
    with open(GUIDE, encoding="utf-8") as f:
        told = re.search(r"systemd-analyze security pathline` says \*\*([0-9.]+)\*\*", f.read())
    eq(told and float(told.group(1)), level, "the guide tells the same figure")
    verify = subprocess.run(["systemd-analyze", "verify", UNIT], capture_output=True, text=True)
    # That the program and its manual are not installed is no fault of the unit.
    eq([line for line in verify.stderr.splitlines()
        if "pathline.service" in line and "is not executable" not in line and "'man " not in line], [],
       "every line of it is understood")
    return tap.end()


sys.exit(main())
