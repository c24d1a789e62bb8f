# SPDX-License-Identifier: BSD-2-Clause
"""`pathline translate` into collectors' memory."""
import json
import signal
import subprocess

from . import lab
from .pathline import PATHLINE
from .wait import LIMIT, wait


def host(address):
    """As it stands before a port."""
    return f"[{address}]" if ":" in address else address


def device(kind, address):
    """The NIC of a RoCE interface, for either side: a UDP socket of this address, or a packet socket."""
    return f"udp://{host(address)}" if kind == "udp" else "packet:eth0"


class Translator:
    """In a namespace, with reports by UDP on its loopback; connected when it is made. What it says is in said."""

    def __init__(self, namespace, port, roce, until="translating from"):
        self.process = lab.start(namespace.command(PATHLINE, "translate", "--stats", "--flush", "20ms",
                                                   f"udp://127.0.0.1:{port}", roce),
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.said = []
        if not self.says(until):
            raise RuntimeError("the translator does not connect:\n" + "".join(self.said))

    def says(self, words):
        """Reads on until a line has these words; False: it ended without."""
        while True:
            line = self.process.stderr.readline()
            self.said.append(line)
            if words in line or not line:
                return bool(line)

    def account(self):
        self.process.send_signal(signal.SIGUSR1)
        return json.loads(self.process.stdout.readline())

    def settled(self):
        """All that was given is done, or lost."""
        def done():
            """nothing waits any more"""
            account = self.account()
            return account["held"] == 0 and all(c["waiting"] == 0 for c in account["out"]["collectors"])
        return wait(done)

    def end(self, how=signal.SIGTERM):
        """Its account, when all that was given is done; None of one that is killed."""
        if how != signal.SIGKILL:
            self.settled()
        self.process.send_signal(how)
        out, err = self.process.communicate(timeout=LIMIT)
        self.said.append(err)
        return json.loads(out.splitlines()[-1]) if how != signal.SIGKILL else None
