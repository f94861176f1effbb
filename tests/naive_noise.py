"""Slow twin of geo-indistinguishability, from the rules: one block, one record at a time."""

import hashlib
import math
import struct

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

RADIUS = 6_371_008.8


def noise_key(seed) -> bytes:
    """A seed becomes the 32-byte BLAKE2b of its text, with person `noise`."""
    return hashlib.blake2b(str(seed).encode(), digest_size=32, person=b"noise").digest()


def trace_name(user, first_time: int, epsilon: float, grid: float | None) -> bytes:
    """Hash of user bytes, the trace's first time, ε and the grid."""
    numbers = struct.pack("<qdd", first_time, epsilon, -1.0 if grid is None else grid)
    return hashlib.blake2b(numbers + str(user).encode(), digest_size=12).digest()


def draw(key: bytes, name: bytes, index: int) -> tuple[float, float]:
    """Bearing, and radius in units of 1/ε of one record: AES-256 of (name, index) as three 42-bit numbers."""
    encryptor = Cipher(algorithms.AES256(key), modes.ECB()).encryptor()
    block = encryptor.update(name + index.to_bytes(4, "little"))
    low, high = struct.unpack("<QQ", block)
    turn = (low >> 22) / 2**42
    first = ((high >> 22) + 0.5) / 2**42
    second = ((((low & (2**22 - 1)) << 20) | (high & (2**20 - 1))) + 0.5) / 2**42
    return 2 * math.pi * turn, -math.log(first) - math.log(second)


def destination(longitude: float, latitude: float, bearing: float, metres: float) -> tuple[float, float]:
    """Longitude and latitude reached along the great circle that leaves in a bearing (textbook formula)."""
    here, angle = math.radians(latitude), metres / RADIUS
    there = math.asin(math.sin(here) * math.cos(angle) + math.cos(here) * math.sin(angle) * math.cos(bearing))
    east = math.atan2(
        math.sin(bearing) * math.sin(angle) * math.cos(here), math.cos(angle) - math.sin(here) * math.sin(there)
    )
    return longitude + math.degrees(east), math.degrees(there)


def rounded(longitude: float, latitude: float, grid: float) -> tuple[float, float]:
    """Latitude to the nearest g/R radians, then longitude to the nearest 360°/round(2πR·cos φ/g)."""
    step = math.degrees(grid / RADIUS)
    latitude = round(latitude / step) * step
    cells = max(round(2 * math.pi * RADIUS * math.cos(math.radians(latitude)) / grid), 1)
    return round(longitude / (360 / cells)) * (360 / cells), latitude


def cut(seed, user, first_time: int, segment: int, *, epsilon: float, ends: float) -> tuple[int, int]:
    """How many samples Promesse cuts from the begin and the end of a segment: uniform on 0 … ⌊ends/ε⌋."""
    key = hashlib.blake2b(str(seed).encode(), digest_size=32, person=b"ends").digest()
    message = struct.pack("<qdd", first_time, epsilon, ends) + str(user).encode()
    name = hashlib.blake2b(message, digest_size=12).digest()
    block = Cipher(algorithms.AES256(key), modes.ECB()).encryptor().update(name + segment.to_bytes(4, "little"))
    choices = math.floor(ends / epsilon * (1 + 1e-9)) + 1
    head, tail = ((number >> 32) * choices >> 32 for number in struct.unpack("<QQ", block))
    return head, tail
