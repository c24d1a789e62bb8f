#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""tools/check-words refuses the words that docs/glossary.md refuses, where users read them, and nothing else.
usage: words_test.py SOURCE"""

import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import tap  # noqa: E402
from lib.tap import eq, ok  # noqa: E402

SOURCE = sys.argv[1]

# Name of a file, its text, and what the message must contain; None: nothing is refused.
ROWS = (
    ("a.md", "Packets of the card are counted.\n", 'a.md:1: "card": write "NIC"'),
    ("a.md", "# Title\n\nThe NIC counts them.\n\nWho guesses has a\nplace of its own.\n", 'a.md:5: "Who guesses has a place'),
    ("a.md", "* One line.\n* It is counted. What does not fit is dropped.\n", 'a.md:2: "What does not fit'),
    ("a.md", "| it was | heard of |\n", '"heard of": write "seen"'),
    ("a.md", "A queue that was not\nheard\nof.\n", '"heard of"'),
    ("a.md", "What is counted?\n", None),
    ("a.md", "| what | it is |\n|---|---|\n", None),
    ("a.md", "## What is counted\n", None),
    ("a.md", "The object `card`, postcards and discards.\n", None),
    ("a.md", "```\ncard: what it is. Who knows.\n```\n", None),
    ("a.c", 'static const char text[] = "the card "\n\t"failed";\n', 'a.c:1: "card"'),
    ("a.c", '/* A comment. */\nf("no error", "from where "\n  "to where?");\n', 'a.c:2: "from where to where"'),
    ("a.c", 'f("who asks is counted");\n', 'a.c:1: "who asks is counted": name the subject'),
    ("a.c", 'f("lost: %" PRIu64 " reports. What came later is kept.", n);\n', "name the subject"),
    ("a.c", 'int card; /* of a NIC */\nf("card");\n#include "a card.h"\n', None),
    ("a.h", "/* A name of the\n * card. */\nint card;\n", '"card"'),
    ("a.h", "/* Adds one. Who asks\n * is counted. */\nint f(void);\n", '"Who asks is counted."'),
    ("a.h", "/* what: the name of a file. kind: what it is. */\nint f(const char *what, int kind);\n", None),
    ("a.def", 'ROW(full, "handed up, but the ring was full")\n', '"handed up": write "escalate"'),
)


def main():
    with tempfile.TemporaryDirectory() as folder:
        for name, text, wanted in ROWS:
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                f.write(text)
            r = subprocess.run([os.path.join(SOURCE, "tools/check-words"), name], cwd=folder, capture_output=True, text=True,
                               check=False)
            eq(r.returncode, 0 if wanted is None else 1, f"{name}: {text!r}: exit code")
            ok(wanted is None and r.stdout == "" or wanted is not None and wanted in r.stdout, f"says {wanted}", r.stdout + r.stderr)
    return tap.end()


sys.exit(main())
