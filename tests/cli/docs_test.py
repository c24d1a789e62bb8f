#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the program says about its documents: that they are there, are installed, and speak of the same version.
usage: docs_test.py PATHLINE SOURCE BUILD"""

import glob
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import tap  # noqa: E402
from lib.tap import eq, ok  # noqa: E402

PATHLINE, SOURCE, BUILD = sys.argv[1:4]


def said(*args):
    return subprocess.run([PATHLINE, *args], capture_output=True, text=True, check=True).stdout


def text_of(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as f:
        return f.read()


def says_nothing(what, *args):
    """A program that tells of faults says nothing and exits with 0."""
    r = subprocess.run(args, cwd=SOURCE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    ok(r.returncode == 0 and r.stdout == "", what, r.stdout)


def main():
    words = said("config", "init", "--full") + said("help", "--man")
    for command in re.findall(r"PL_COMMAND\((\w+)", text_of("src/cli/commands.def")):
        words += said("help", "--man", command)
    # A manual page has a hyphen as \\-.
    words = words.replace("\\", "")
    for path in sorted(set(re.findall(r"docs/[\w./-]+?\.md", words))):
        ok(os.path.exists(os.path.join(SOURCE, path)), f"{path} is there")
    r = subprocess.run(["meson", "introspect", "--installed", BUILD], capture_output=True, text=True, check=True)
    installed = set(json.loads(r.stdout))
    for name in ("docs/guide", "docs/formats", "docs/protocols", "docs/ports.md", "README.md"):
        ok(any(path == os.path.join(SOURCE, name) or os.path.normpath(path) == os.path.join(SOURCE, name) for path in installed),
           f"{name} is installed")
    folder = "/run/" + re.search(r"^RuntimeDirectory=(\S+)$", text_of("packaging/pathline.service.in"), re.M).group(1)
    # The unit may write into no other folder of /run.
    sockets = {place: set(re.findall(r"/[\w./-]*pathline\.sock\b", text))
               for place, text in (("config init --full", said("config", "init", "--full")), ("status --help", said("status", "--help")))}
    for place, found in sockets.items():
        eq(found, {folder + "/pathline.sock"}, f"{place} shows a socket in the folder that the unit has")
    version = said("version").split()[1]
    eq(re.search(r"^## (\S+)", text_of("NEWS.md"), re.M).group(1), version, "NEWS begins with this version")
    columns = said("help", "columns")
    eq(len(re.findall(r"^\w+: ", columns, re.M)), 10, "help columns has every table")
    ok("  depth_max (DEEPEST) " in columns and "  flow.src (FLOW) " in columns, "with the titles of top", columns)
    says_nothing("everything is in the manual", "tools/check-docs", os.path.abspath(PATHLINE))
    pages = sorted(glob.glob(os.path.join(BUILD, "docs/man/*.[157]")))
    ok(pages, "there are manual pages")
    says_nothing("mandoc is content with them", "mandoc", "-T", "lint", "-W", "warning", *pages)
    return tap.end()


sys.exit(main())
