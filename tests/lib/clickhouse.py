# SPDX-License-Identifier: BSD-2-Clause
"""Tables of `pathline schema` in a ClickHouse server of Debian 12 (18.16). It lacks the types of addresses and times:
FixedString(16) and UInt64 stand for them, which have the same bytes."""
import re

from . import pathline, servers

OLDER = (("DateTime64(9, 'UTC')", "UInt64"), ("IPv6", "FixedString(16)"))


class Server(servers.ClickHouse):
    def make(self, kind, table):
        """The table of the schema, with types that this server has. MergeTree's key is of a Date there."""
        statement = pathline.run("schema", "--table", table, "clickhouse", kind).stdout
        for new, old in OLDER:
            statement = statement.replace(new, old)
        self.ask(re.sub(r"PARTITION BY .*\n", "", statement).rstrip().rstrip(";"))

    def count(self, table):
        return int(self.ask(f"SELECT count() FROM {table}"))

    def rows(self, statement):
        """Each as its columns' texts."""
        return [tuple(line.split("\t")) for line in self.ask(statement + " FORMAT TabSeparated").splitlines()]
