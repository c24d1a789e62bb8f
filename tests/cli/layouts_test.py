#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""tools/check-layouts refuses another layout of a structure under the same version, takes it under another one, and lets free bytes get
a meaning. usage: layouts_test.py SOURCE"""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, tap  # noqa: E402
from lib.tap import eq, ok  # noqa: E402

SOURCE = sys.argv[1]
TOP = lab.path("tree")

# A file, what is replaced in it by what, and the structure that is refused; one on disk, one on the wire, one pinned.
CHANGES = (
    ("src/flow/entry.h", "\tuint64_t first_ts, last_ts;", "\tuint64_t last_ts, first_ts;", "pl_flow_entry"),
    ("src/raw/message.h", "\tuint8_t clock;", "\tuint8_t stamp;", "pl_raw_head"),
    ("src/bpf/mark_kernel.h", "\tuint32_t flows_max;\n\tuint16_t leaving, role;", "\tuint16_t leaving, role;\n\tuint32_t flows_max;", "pl_mark_state"),
)


def check(*options):
    run = subprocess.run([os.path.join(TOP, "tools/check-layouts"), *options], capture_output=True, text=True, check=False)
    return run.returncode, run.stdout + run.stderr


def change(path, old, new):
    with open(os.path.join(TOP, path), encoding="utf-8") as f:
        text = f.read()
    ok(text.count(old) >= 1, f"{path} has {old!r}")
    with open(os.path.join(TOP, path), "w", encoding="utf-8") as f:
        f.write(text.replace(old, new, 1))


def main():
    for folder in ("src", "include", "tests/layouts"):
        shutil.copytree(os.path.join(SOURCE, folder), os.path.join(TOP, folder), ignore=shutil.ignore_patterns("*_test.c"))
    os.mkdir(os.path.join(TOP, "tools"))
    shutil.copy(os.path.join(SOURCE, "tools/check-layouts"), os.path.join(TOP, "tools"))
    eq(check(), (0, ""), "as it is")
    for path, old, new, structure in CHANGES:
        change(path, old, new)
        code, said = check()
        ok(code == 1 and f"struct {structure} has another layout and the same version: raise" in said, f"{structure}: refused", said)
        code, said = check("--write")
        ok(code == 1 and f"struct {structure} has another layout" in said, "and not noted under the same version", said)
        change(path, new, old)
    eq(check(), (0, ""), "as it was")
    change("src/raw/message.h", "uint8_t clock;", "uint8_t stamp;")
    change("src/raw/message.h", "PL_RAW_VERSION   1", "PL_RAW_VERSION   2")
    code, said = check()
    ok(code == 1 and "PL_RAW_VERSION has a new value" in said, "another version: it is to be noted", said)
    eq(check("--write")[0], 0, "it is noted")
    eq(check(), (0, ""), "and then it is right")
    change("src/raw/message.h", "uint8_t zero[8];", "uint32_t number;\n\tuint8_t zero[4];")
    code, said = check()
    ok(code == 1 and "free bytes of struct pl_raw_head have got a meaning" in said, "free bytes that get a meaning are to be noted, too", said)
    eq(check("--write")[0], 0, "under the same version")
    return tap.end()


if shutil.which("clang") is None:
    tap.skip_all("missing: clang")
sys.exit(main())
