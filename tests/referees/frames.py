"""Amazon's event-stream frames: a small encoder of our own.

A frame is its length, the length of its headers, a checksum of both, headers,
payload and a checksum of everything before it. botocore reads each frame back,
so that encoder and decoder are not both ours.
"""

import struct
from binascii import crc32

from botocore.eventstream import EventStreamBuffer

STRING = 7


def _header(name: str, value: str) -> bytes:
    name_bytes, value_bytes = name.encode(), value.encode()
    return struct.pack("!B", len(name_bytes)) + name_bytes + struct.pack("!BH", STRING, len(value_bytes)) + value_bytes


def frame(headers: dict[str, str], payload: bytes) -> bytes:
    head = b"".join(_header(name, value) for name, value in headers.items())
    total = 4 + 4 + 4 + len(head) + len(payload) + 4
    prelude = struct.pack("!II", total, len(head))
    prelude += struct.pack("!I", crc32(prelude))
    body = prelude + head + payload
    whole = body + struct.pack("!I", crc32(body))
    _check(whole, headers, payload)
    return whole


def _check(whole: bytes, headers: dict[str, str], payload: bytes):
    buffer = EventStreamBuffer()
    buffer.add_data(whole)
    (message,) = list(buffer)
    if message.headers != headers or message.payload != payload:
        raise ValueError("botocore reads another frame than was written")
