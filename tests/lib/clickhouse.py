# SPDX-License-Identifier: BSD-2-Clause
"""A ClickHouse server of Debian 12 (18.16). It lacks the types of addresses and times: FixedString(16) and UInt64 stand for them,
which have the same bytes."""
import os
import re
import urllib.error
import urllib.parse
import urllib.request

from . import lab, pathline
from .wait import wait

OLDER = (("DateTime64(9, 'UTC')", "UInt64"), ("IPv6", "FixedString(16)"))

CONFIG = """<yandex>
 <logger><level>warning</level><console>1</console></logger>
 <http_port>{port}</http_port><listen_host>127.0.0.1</listen_host>
 <path>{folder}/data/</path><tmp_path>{folder}/tmp/</tmp_path><users_config>{folder}/users.xml</users_config>
 <default_profile>default</default_profile><default_database>default</default_database>
 <mark_cache_size>67108864</mark_cache_size>
</yandex>
"""
USERS = """<yandex>
 <profiles><default><max_memory_usage>1000000000</max_memory_usage></default></profiles>
 <users><default><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota>
 </default></users>
 <quotas><default></default></quotas>
</yandex>
"""


class Server:
    def __init__(self):
        port = self.port = lab.free_port()
        folder = lab.path("server")
        os.mkdir(folder)
        lab.write("server/users.xml", USERS)
        config = lab.write("server/config.xml", CONFIG.format(port=port, folder=folder))
        self.url = f"http://127.0.0.1:{port}/"
        self.config, self.folder = config, folder
        self.begin()

    def begin(self):
        self.process = lab.start(["clickhouse-server", f"--config-file={self.config}"], log=lab.path("server.log"), cwd=self.folder)
        if not wait(lambda: self.ask("SELECT 1") == "1\n"):
            raise RuntimeError(lab.read("server.log"))

    def end(self):
        self.process.kill()
        self.process.wait()

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

    def ask(self, statement, body=None):
        """With a body, the statement goes into the address."""
        url = self.url + ("?query=" + urllib.parse.quote(statement) if body is not None else "")
        try:
            with urllib.request.urlopen(url, data=statement.encode() if body is None else body, timeout=60) as r:
                return r.read().decode()
        except urllib.error.HTTPError as e:
            raise RuntimeError(f"{statement[:200]}: {e.read().decode()[:500]}") from e
