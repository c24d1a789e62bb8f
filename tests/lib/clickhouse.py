# SPDX-License-Identifier: BSD-2-Clause
"""Tables of `pathline schema` in a ClickHouse server of Debian 12 (18.16). It lacks the types of addresses and times:
FixedString(16) and UInt64 stand for them, which have the same bytes. It has no deduplication of MergeTree without replicas either
(tests/interop/export.py tries that)."""
import re

from . import pathline, servers

def older(statement):
    """A statement of the schema for that server. MergeTree's key is of a Date there."""
    for new, old in OLDER:
        statement = statement.replace(new, old)
    return re.sub(r"PARTITION BY .*\n|\nSETTINGS non_replicated[^\n;]*", "", statement).strip().rstrip(";")


OLDER = (("DateTime64(9, 'UTC')", "UInt64"), ("IPv6", "FixedString(16)"))


class Server(servers.ClickHouse):
    def make(self, kind, table):
        """The table of the schema."""
        self.ask(older(pathline.run("schema", "--table", table, "clickhouse", kind).stdout))

    def count(self, table):
        return int(self.ask(f"SELECT count() FROM {table}"))

    def rows(self, statement):
        """Each as its columns' texts."""
        return [tuple(line.split("\t")) for line in self.ask(statement + " FORMAT TabSeparated").splitlines()]
