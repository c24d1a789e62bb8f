# SPDX-License-Identifier: BSD-2-Clause
"""Capture files, by struct."""
import struct

NOW_NS = 1_700_000_000_123_456_789


def capture(frames, link=1, start_ns=NOW_NS, step_ns=1):
    """The bytes of a capture, step_ns from frame to frame. A frame that was cut is (bytes, length on the wire)."""
    out = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, link)
    for i, frame in enumerate(frames):
        data, size = frame if isinstance(frame, tuple) else (frame, len(frame))
        out += struct.pack("<IIII", *divmod(start_ns + i * step_ns, 10**9), len(data), size) + data
    return out


def write(path, frames, link=1, start_ns=NOW_NS, step_ns=1):
    with open(path, "wb") as f:
        f.write(capture(frames, link, start_ns, step_ns))
    return path


def frames_of(path):
    """The frames of a capture of either byte order."""
    with open(path, "rb") as f:
        data = f.read()
    order, at, frames = ">" if data[0] == 0xA1 else "<", 24, []
    while at + 16 <= len(data):
        size, = struct.unpack_from(order + "I", data, at + 8)
        frames.append(data[at + 16:at + 16 + size])
        at += 16 + size
    return frames


def join(paths, path):
    """Captures of one kind, one behind the other."""
    with open(path, "wb") as out:
        for i, part in enumerate(paths):
            with open(part, "rb") as f:
                data = f.read()
            out.write(data if i == 0 else data[24:])
    return path
