#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What make check tries of Kafka, against one server that starts once: a producer and a consumer, members of a group that are killed,
alerts of their rows, reports that are kept and decoded again, and block records of marking. The programs that these parts are of have
the faults as well, and run in make check-all, where each has a server of its own to kill.

    usage: quick.py INTEROP_KAFKA FOLDER PATHLINE [TEST]…     (the program made from kafka.c; the server's jars, tools/kafka)
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", ".."))
from lib import lab, tap  # noqa: E402

import alerts  # noqa: E402
import group  # noqa: E402
import kafka  # noqa: E402
import marks  # noqa: E402
import raw  # noqa: E402
from members import server_or_skip  # noqa: E402

TESTS = (group.test_two_stages, group.test_flows, group.test_joins, kafka.test_exact, kafka.test_json, alerts.test_group, alerts.test_messages,
         raw.test_replay, marks.test_same, marks.test_refused)
ONLY = sys.argv[4:]


def main():
    server = server_or_skip()
    lab.run(*[t for t in TESTS if not ONLY or t.__name__ in ONLY], given=(server,))
    return tap.end()


sys.exit(main())
