#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The systemd units: what systemd-analyze thinks of them, whether the guide says the same, and that they allow what the
program begins with. usage: unit_test.py GUIDE PATHLINE UNIT…"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import tap  # noqa: E402
from lib.tap import eq, ok  # noqa: E402

GUIDE, PATHLINE, UNITS = sys.argv[1], sys.argv[2], sys.argv[3:]
LIMIT = 2.1
# Of the program's own sandbox (src/base/sandbox.h), beside what gives up capabilities.
BEGINS_WITH = {"capset", "seccomp", "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self", "bpf"}


def calls_of(name):
    """The system calls of a group, those of groups in it too."""
    r = subprocess.run(["systemd-analyze", "syscall-filter", name], capture_output=True, text=True)
    words = [line.strip() for line in r.stdout.splitlines()[1:] if line.strip() and not line.strip().startswith("#")]
    return set().union(*(calls_of(word) if word.startswith("@") else {word} for word in words)) if words else set()


def allowed_by(text):
    """The system calls that the lines of a unit leave."""
    allowed = set()
    for value in re.findall(r"^SystemCallFilter=(.*)$", text, re.M):
        takes = value.startswith("~")
        for word in value.lstrip("~").split():
            calls = calls_of(word) if word.startswith("@") else {word}
            allowed = allowed - calls if takes else allowed | calls
    return allowed


def check(path):
    name = os.path.basename(path)
    with open(path, encoding="utf-8") as f:
        text = f.read()
    # A template is looked at as one of its instances.
    with tempfile.TemporaryDirectory() as folder:
        unit = os.path.join(folder, name.replace("@.", "@one."))
        shutil.copy(path, unit)
        r = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", unit], capture_output=True, text=True)
        verify = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", r.stdout)
    if ok(found is not None, f"{name}: systemd-analyze reads it", r.stderr or r.stdout):
        level = float(found.group(1))
        ok(level <= LIMIT, f"{name}: exposure {level} of at most {LIMIT}",
           "\n".join(line for line in r.stdout.splitlines() if line.startswith("✗")))
        with open(GUIDE, encoding="utf-8") as f:
            told = re.search(rf"`{re.escape(name.removesuffix('.service'))}` \*\*([0-9.]+)\*\*", f.read())
        eq(told and float(told.group(1)), level, f"{name}: the guide tells the same figure")
    # That the program and its manual are not installed is no fault of the unit.
    eq([line for line in verify.stderr.splitlines()
        if "pathline" in line and "is not executable" not in line and "'man " not in line], [],
       f"{name}: every line of it is understood")
    eq(BEGINS_WITH - allowed_by(text), set(), f"{name}: lets the program hold itself")
    # packet: sources take raw sockets, and the capability alone does not let them through.
    if "CAP_NET_RAW" in text:
        ok(re.search(r"^RestrictAddressFamilies=.*\bAF_PACKET\b", text, re.M), f"{name}: lets it open packet: sources")
    ok("DynamicUser" not in text and re.search(r"^User=pathline$", text, re.M),
       f"{name}: its files belong to a user that stays")
    command = re.search(r"^ExecStart=\S+/pathline (\w+)", text, re.M).group(1)
    eq(subprocess.run([PATHLINE, "help", command], capture_output=True).returncode, 0, f"{name}: there is a command {command}")


def configuration():
    """The unit, the help and the guides name one file."""
    said = {}
    for path in [p for p in UNITS if p.endswith("pathline.service")] + [
            os.path.join(os.path.dirname(GUIDE), name) for name in os.listdir(os.path.dirname(GUIDE))]:
        with open(path, encoding="utf-8") as f:
            said[os.path.basename(path)] = f.read()
    said["pathline help run"] = subprocess.run([PATHLINE, "help", "run"], capture_output=True, text=True).stdout
    named = {where: set(re.findall(r"/etc/pathline/pathline\.\w+", text)) for where, text in said.items()}
    ok(named["pathline.service"] and named["pathline help run"], "the unit and the help name the configuration's file", named)
    eq({where: names for where, names in named.items() if names - named["pathline.service"]}, {}, "and every guide names the same")


def main():
    if shutil.which("systemd-analyze") is None:
        tap.skip_all("missing: systemd-analyze (package systemd)")
    for path in UNITS:
        check(path)
    configuration()
    return tap.end()


sys.exit(main())
