# SPDX-License-Identifier: BSD-2-Clause
"""Debian's scapy, whichever Python runs the test."""
import importlib.util
import os
import sys

DEBIAN = "/usr/bin/python3"


def there():
    """Whether scapy can be imported. Debian's scapy belongs to Debian's Python, which need not be the first in PATH: then
    the test is begun again by that one. To be called before anything is printed or started."""
    if importlib.util.find_spec("scapy") is not None:
        return True
    if sys.executable != DEBIAN and os.path.exists(DEBIAN):
        os.execv(DEBIAN, [DEBIAN, *sys.argv])
    return False
