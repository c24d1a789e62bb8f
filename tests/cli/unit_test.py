#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The systemd unit: what systemd-analyze thinks of it, and whether the guide says the same.
usage: unit_test.py UNIT GUIDE"""

import re
import shutil
import subprocess
import sys

UNIT, GUIDE = sys.argv[1:3]
LIMIT = 2.0

if shutil.which("systemd-analyze") is None:
    print("1..0 # SKIP systemd-analyze is not there (package systemd)")
    sys.exit(77)
r = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", UNIT], capture_output=True, text=True)
found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", r.stdout)
if found is None:
    print("not ok 1 - systemd-analyze reads the unit")
    print("# " + (r.stderr or r.stdout)[:500].replace("\n", "\n# "))
    print("1..1")
    sys.exit(1)
level = float(found.group(1))
good = level <= LIMIT
print(f"{'ok' if good else 'not ok'} 1 - exposure {level} of at most {LIMIT}")
if not good:
    print("# " + "\n# ".join(line for line in r.stdout.splitlines() if line.startswith("✗")))
with open(GUIDE) as f:
    told = re.search(r"systemd-analyze security pathline` says \*\*([0-9.]+)\*\*", f.read())
said = told is not None and float(told.group(1)) == level
print(f"{'ok' if said else 'not ok'} 2 - the guide tells the same figure")
verify = subprocess.run(["systemd-analyze", "verify", UNIT], capture_output=True, text=True)
# That the program and its manual are not installed is no fault of the unit.
faults = [line for line in verify.stderr.splitlines()
          if "pathline.service" in line and "is not executable" not in line and "'man " not in line]
print(f"{'ok' if not faults else 'not ok'} 3 - every line of it is understood")
for line in faults:
    print("# " + line)
print("1..3")
sys.exit(0 if good and said and not faults else 1)
