# SPDX-License-Identifier: BSD-2-Clause
"""What tshark says of the packets of a capture, under the names of pathline's records of packets."""
import subprocess

FIELDS = ("frame.time_epoch ip.src ip.dst ipv6.src ipv6.dst tcp.srcport tcp.dstport udp.srcport udp.dstport icmp.type icmp.code "
          "icmpv6.type icmpv6.code ip.proto ip.ttl ipv6.hlim ip.dsfield ipv6.tclass tcp.seq_raw tcp.ack_raw tcp.flags "
          "tcp.window_size_value ip.len ipv6.plen tcp.len udp.length ip.id vlan.id tcp.options.mss_val "
          "tcp.options.timestamp.tsval tcp.options.timestamp.tsecr ip.frag_offset ip.flags.mf mpls.label "
          "ipv6.fraghdr.ident ipv6.fraghdr.offset ipv6.fraghdr.more tcp.option_kind ieee8021ad.id tcp.hdr_len").split()
# Headers are compared, not what dissectors make of payloads.
OPTIONS = ["-o", "ip.defragment:FALSE", "-o", "ipv6.defragment:FALSE", "-o", "tcp.desegment_tcp_streams:FALSE"]


def number(text):
    return int(text, 0) if text else 0


def nanoseconds(text):
    seconds, fraction = text.split(".")
    return int(seconds) * 10**9 + int(fraction.ljust(9, "0"))


def flag(text):
    return text in ("1", "True")


def options_of(kinds):
    bits = 0
    for kind in kinds.split(","):
        if kind:
            bits |= 1 << min(int(kind), 15)
    return bits


def record_of(f):
    """None: neither IPv4 nor IPv6."""
    v4 = bool(f["ip.src"])
    if not v4 and not f["ipv6.src"]:
        return None
    # Of an ICMP error its own type and code, not the ports of the packet within.
    icmp = "icmp" if v4 else "icmpv6"
    first = lambda *names: next((f[n] for n in names if f[n]), "")  # noqa: E731
    tcp = bool(f["tcp.srcport"])
    if v4:
        fragment = number(f["ip.frag_offset"]) | (0x8000 if flag(f["ip.flags.mf"]) else 0)
    else:
        fragment = number(f["ipv6.fraghdr.offset"]) | (0x8000 if flag(f["ipv6.fraghdr.more"]) else 0)
    return {
        "ts_ns": nanoseconds(f["frame.time_epoch"]),
        "src": first("ip.src", "ipv6.src"), "dst": first("ip.dst", "ipv6.dst"),
        "sport": number(first(icmp + ".type", "tcp.srcport", "udp.srcport")),
        "dport": number(first(icmp + ".code", "tcp.dstport", "udp.dstport")),
        "ttl": number(first("ip.ttl", "ipv6.hlim")), "tos": number(first("ip.dsfield", "ipv6.tclass")),
        "tcp_seq": number(f["tcp.seq_raw"]), "tcp_ack": number(f["tcp.ack_raw"]),
        "tcp_flags": number(f["tcp.flags"]) & 0xff, "tcp_win": number(f["tcp.window_size_value"]),
        "wire_len": number(f["ip.len"]) if v4 else number(f["ipv6.plen"]) + 40,
        # UDP's length is that of the datagram, not of a fragment.
        "pay_len": None if f[icmp + ".type"] else number(f["tcp.len"]) if tcp else number(f["udp.length"]) - 8 if f["udp.length"] and fragment == 0 else None,
        "ip_id": number(f["ip.id"]) if v4 else number(f["ipv6.fraghdr.ident"]) & 0xffff,
        "vlan": number(first("ieee8021ad.id", "vlan.id")), "mss": number(f["tcp.options.mss_val"]),
        "tsval": number(f["tcp.options.timestamp.tsval"]), "tsecr": number(f["tcp.options.timestamp.tsecr"]),
        "frag_off": fragment, "tcp_opts": options_of(f["tcp.option_kind"]), "label": number(f["mpls.label"]) & 0xffff,
    }


def records(path):
    """One for each packet, None for one that is not IP. Of fields that come several times the first: the outer header's;
    options of TCP are all taken."""
    args = ["tshark", "-n", "-r", path, "-T", "fields", "-E", "separator=\t", "-E", "occurrence=a", *OPTIONS]
    for name in FIELDS:
        args += ["-e", name]
    run = subprocess.run(args, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise RuntimeError(run.stderr)
    found = []
    for line in run.stdout.splitlines():
        fields = dict(zip(FIELDS, line.split("\t")))
        for name, text in fields.items():
            if name != "tcp.option_kind":
                fields[name] = text.split(",")[0]
        found.append(record_of(fields))
    return found
