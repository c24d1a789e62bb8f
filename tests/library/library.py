#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The library as it is installed: the tree is installed into a folder, programs are compiled against it by pkg-config, shared and
static, by C and C++ compilers, and run; what they wrote is read by the program, and what it translates they sent.
usage: library.py PATHLINE BUILD EXAMPLE API_TEST"""

import os
import re
import shlex
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, pathline, tap  # noqa: E402
from lib.lab import free_udp_port  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

BUILD, EXAMPLE, API_TEST = sys.argv[2:5]
TREE = lab.path("tree")
GUIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "guide", "library.md")
with open(GUIDE, encoding="utf-8") as guide:
    STATIC = re.search(r"To link statically,\s+use\s+`([^`]*)`", guide.read()).group(1).split()


def said(*args, **kwargs):
    return subprocess.run([str(a) for a in args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          timeout=300, **kwargs)


def config(*options):
    """What pkg-config says of the installed tree, and of nothing else."""
    folders = [os.path.dirname(os.path.join(at, name)) for at, _, names in os.walk(TREE) for name in names if name == "pathline.pc"]
    r = said("pkg-config", *options, "pathline",
             env=os.environ | {"PKG_CONFIG_LIBDIR": ":".join(folders), "PKG_CONFIG_SYSROOT_DIR": TREE,
                               "PKG_CONFIG_ALLOW_SYSTEM_CFLAGS": "1", "PKG_CONFIG_ALLOW_SYSTEM_LIBS": "1"})
    return shlex.split(r.stdout) if r.returncode == 0 else ok(False, "pkg-config", r.stdout) or []


def build(name, source, *options, static=False, compiler="cc"):
    """A program; static: linked with what the guide says."""
    out = lab.path(name)
    flags = config("--cflags")
    libs = config("--libs-only-L") + STATIC if static else config("--libs")
    r = said(compiler, *options, source, "-o", out, *flags, *libs)
    ok(r.returncode == 0, f"{name}: is compiled against the installed tree", r.stdout)
    return out


def where(suffix):
    return [os.path.join(at, name) for at, _, names in os.walk(TREE) for name in names
            if os.path.join(at, name).endswith(suffix)]


def symbols(path, *options):
    return re.findall(r"^\S+ [A-Z] ([\w.]+)", said("nm", "--defined-only", *options, path).stdout, re.M)


def install():
    r = said("meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", TREE)
    if not ok(r.returncode == 0, "everything is installed", r.stdout[-3000:]):
        return
    for suffix in ("include/pathline/pathline.h", "libpathline.so.0", "libpathline.so", "libpathline.a", "pathline.pc"):
        eq(len(where(suffix)), 1, f"{suffix} is there")
    shared = {name.split("@")[0] for name in symbols(where("libpathline.so.0")[0], "-D")} - {"PATHLINE_0"}
    static = set(symbols(where("libpathline.a")[0], "-g"))
    strange = sorted(name for name in shared | static if not name.startswith("pathline_"))
    eq(strange, [], "no other name is seen of either library")
    # Every promise of the headers is kept, and nothing else is given.
    promised = set()
    for header in where(".h"):
        with open(header, encoding="utf-8") as f:
            promised |= set(re.findall(r"\b(pathline_\w+)\(", re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)))
    eq(shared, promised, "the shared library has what the headers say")
    eq(static, promised, "and so has the static one")
    needs = re.findall(r"NEEDED\s+(\S+)", said("objdump", "-p", where("libpathline.so.0")[0]).stdout)
    eq([n for n in needs if not re.match(r"lib(c|m|pthread|asan|ubsan|tsan)\.so|ld-linux", n)], [], "it needs the C library alone")


def example():
    with open(EXAMPLE, encoding="utf-8") as f:
        lines = [line for line in f.read().splitlines() if line.strip()]
    ok(len(lines) <= 40, f"the example is short: {len(lines)} lines")
    for name, static in (("shared", False), ("static", True)):
        program = build(f"example-{name}", EXAMPLE, "-Wall", "-Wextra", "-Werror", "-std=c99", static=static)
        path = lab.path(f"{name}.plr")
        env = os.environ | {"LD_LIBRARY_PATH": os.path.dirname(where("libpathline.so.0")[0])}
        eq(said(program, path, "link1", "up", env=env).returncode, 0, f"{name}: sets a value")
        eq(said(program, path, "link1", env=env).stdout, "up\n", f"{name}: and asks for it")
        eq(said(program, path, "link2", env=env).stdout, "unknown\n", f"{name}: one that is not there")
        found = pathline.run("region", "lookup", "-o", "json", path, "link1")
        ok('"7570000000000000"' in found.stdout, f"{name}: pathline region finds it", found.stdout + found.stderr)
        r = said(program, lab.path("no.plr"), "link1", env=env)
        ok(r.returncode == 1 and "no.plr" in r.stdout, f"{name}: says what is wrong", r.stdout)
    build("c++", EXAMPLE, "-xc++", "-Wall", "-c", compiler="c++") if said("c++", "--version").returncode == 0 else \
        tap.skip("C++", "takes a compiler")


def api():
    version = pathline.run("version").stdout.split()[1]
    program = build("api-test", API_TEST, "-Wall", "-Wextra", f'-DPATHLINE_EXPECTED="{version}"', static=True)
    regions = [lab.path(name) for name in ("a.plr", "b.plr", "c.plr")]
    for path, shape in zip(regions, (("key-write", "--slots", "64", "--value-bytes", "4"),
                                     ("append", "--slots", "64", "--value-bytes", "4"), ("counters", "--slots", "64"))):
        made = pathline.run("region", "create", "--primitive", *shape, path)
        eq(made.returncode, 0, f"{shape[0]}: a region {made.stderr}")
    port = free_udp_port()
    translator = lab.start([pathline.PATHLINE, "translate", f"udp://127.0.0.1:{port}", *regions], log=lab.path("translate.log"))
    ok(wait(lambda: "translating from" in lab.read("translate.log")), "a translator", lab.read("translate.log"))
    folder = lab.path("api")
    os.mkdir(folder)
    r = said(program, folder, f"127.0.0.1:{port}")
    for line in r.stdout.splitlines():
        if re.match("(not )?ok", line):
            ok(line.startswith("ok"), line.split(" - ", 1)[1], r.stdout)
    eq(r.returncode, 0, "the program ends well")
    translator.terminate()
    eq(translator.wait(timeout=60), 0, "so does the translator")
    for what, words, want in (("its key-write has the value", ("lookup", regions[0], "host7"), b"up--".hex()),
                              ("its list the entry", ("dump", regions[1]), "04030201"),
                              ("its counters the sum", ("lookup", regions[2], "k"), "42")):
        r = pathline.run("region", *words, "-o", "jsonl")
        ok(re.search(rf'[":]{want}[",]', r.stdout) is not None, what, r.stdout + r.stderr)


lab.run(install, example, api)
sys.exit(tap.end())
