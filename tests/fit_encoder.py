"""Make FIT files: messages of records and timer events, with the checksums that devices write."""

import struct

EPOCH = 631_065_600  # seconds from 1970 to 1989-12-31
NO_POSITION, NO_TIME = 0x7FFFFFFF, 0xFFFFFFFF
START, STOP_ALL = 0, 4
_CRC = (0x0000, 0xCC01, 0xD801, 0x1400, 0xF001, 0x3C00, 0x2800, 0xE401)
_CRC += (0xA001, 0x6C00, 0x7800, 0xB401, 0x5000, 0x9C01, 0x8801, 0x4400)


def checksum(content: bytes) -> int:
    crc = 0
    for byte in content:
        for half in (byte & 15, byte >> 4):
            crc = (crc >> 4) ^ _CRC[crc & 15] ^ _CRC[half]
    return crc


def definition(local: int, message: int, fields, *, big: bool = False) -> bytes:
    """Define a local kind of message: fields are (number, bytes, base type)."""
    head = struct.pack(">BBBHB" if big else "<BBBHB", 0x40 | local, 0, big, message, len(fields))
    return head + b"".join(struct.pack("BBB", *field) for field in fields)


RECORD = [(253, 4, 0x86), (0, 4, 0x85), (1, 4, 0x85), (2, 2, 0x84)]
EVENT = [(253, 4, 0x86), (0, 1, 0), (1, 1, 0)]


def semicircles(degrees: float | None) -> int:
    return NO_POSITION if degrees is None else round(degrees * 2**31 / 180)


def record(seconds: int | None, lat: float | None, lon: float | None, *, big: bool = False) -> bytes:
    """A record at seconds since 1970 of local kind 0."""
    when = NO_TIME if seconds is None else seconds - EPOCH
    return b"\0" + struct.pack(">IiiH" if big else "<IiiH", when, semicircles(lat), semicircles(lon), 2600)


def event(seconds: int, kind: int, *, of: int = 0) -> bytes:
    """An event of local kind 1: of the timer (0) or something else."""
    return b"\1" + struct.pack("<IBB", seconds - EPOCH, of, kind)


def fit(*messages: bytes, big: bool = False, head: int = 14) -> bytes:
    """A file of messages after the definitions of records and events."""
    body = definition(2, 0, [(0, 1, 0)]) + b"\2\4"  # file_id: an activity
    body += definition(0, 20, RECORD, big=big) + definition(1, 21, EVENT) + b"".join(messages)
    start = struct.pack("<BBHI4s", head, 0x10, 2132, len(body), b".FIT")
    if head == 14:
        start += struct.pack("<H", checksum(start))
    return start + body + struct.pack("<H", checksum(start + body))
