# SPDX-License-Identifier: BSD-2-Clause
"""Reads both pages with the Prometheus project's own Python parsers and compares what they found."""
import subprocess
import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as text

WORDS = ["plain", 'quo"te', "back\\slash", "new\nline", "bad\ufffd utf8 \ufffd\ufffd",
         "\u00fc\u20ac\U0001f427", ""]


EXEMPLARS = []


def samples(families):
    found = {}
    for family in families:
        for s in family.samples:
            key = (s.name, tuple(sorted(s.labels.items())))
            assert key not in found, f"twice: {key}"
            if s.exemplar is not None:
                EXEMPLARS.append((s.labels, s.exemplar))
            found[key] = float(s.value)  # one parser keeps integers
    return found


def main():
    pages = {}
    for form, parse in (("text", text), ("openmetrics", openmetrics)):
        raw = subprocess.run([sys.argv[1], form], check=True, capture_output=True).stdout
        page = raw.decode("utf-8")  # strict
        assert "\r" not in page and page.endswith("\n")
        pages[form] = samples(list(parse(page)))
    if pages["text"] != pages["openmetrics"]:
        diff = set(pages["text"].items()) ^ set(pages["openmetrics"].items())
        raise SystemExit(f"the two pages differ: {sorted(diff)[:6]}")
    found = pages["text"]
    assert len(found) == 7 + 1 + 7 + 2 * 28 + 28, len(found)
    for i, word in enumerate(WORDS):
        key = ("pathline_reports_total", (("node", str(i)), ("path_id", "fedcba9876543210"),
                                          ("word", word)))
        assert key in found, key
        assert found[key] == float(2 ** 64 - 1 >> 8 * i), (key, found[key])
    gauge = [found[("pathline_queue_depth", (("node", str(i)),))] for i in range(7)]
    assert gauge == [0, -1, 0.1, 1e300, 5e-324, 123456789.125, float("inf")], gauge
    count = found[("pathline_hop_latency_seconds_count", (("node", "1"),))]
    last = found[("pathline_hop_latency_seconds_bucket", (("le", "+Inf"), ("node", "1")))]
    assert count == last == 10000
    assert len(EXEMPLARS) == 1, EXEMPLARS
    labels, e = EXEMPLARS[0]
    assert labels == {"node": "1", "le": "0.000131072"}, labels
    assert e.labels == {"path_id": "fedcba9876543210", "word": 'quo"te'}, e.labels
    assert (e.value, float(e.timestamp)) == (0.0001, 1700000000.5), e
    print(f"{len(found)} samples, the same in both formats")


main()
