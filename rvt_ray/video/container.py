"""What a video file's outermost structure claims, read without any codec library.

Sources: ISO/IEC 14496-12 (boxes), RFC 8794 and RFC 9559 (EBML, Matroska), the RIFF/AVI layout.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

# The EBML ids of a Matroska/WebM header and of its one Segment.
_EBML = b"\x1a\x45\xdf\xa3"
_SEGMENT = b"\x18\x53\x80\x67"
_BOXES = {b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"pnot", b"moof", b"styp", b"sidx"}


def looks_like_video(path: str | Path) -> bool:
    """Whether the first bytes are those of a video container (mp4/mov, Matroska/WebM, AVI, TS, PS, FLV, Ogg).

    Only used to tell a damaged video from a file that never was one.
    """
    with open(path, "rb") as file:
        head = file.read(192)
    return (
        head[4:8] in _BOXES
        or head.startswith((_EBML, b"FLV\x01", b"OggS", b"\x00\x00\x01\xba", b"\x00\x00\x01\xb3"))
        or (head.startswith(b"RIFF") and head[8:12] in (b"AVI ", b"AVIX"))
        or (len(head) == 192 and head[0] == 0x47 and head[188] == 0x47)
    )


def missing_bytes(path: str | Path) -> int:
    """How many bytes the container's outermost sizes claim beyond the end of the file; 0 when whole.

    A download that stopped early keeps its header, so codecs see a shorter film and no error. Containers
    without sizes (TS, live WebM) give 0.
    """
    total = os.path.getsize(path)
    with open(path, "rb") as file:
        head = file.read(12)
        if head[4:8] in _BOXES:
            return _missing_in_boxes(file, total)
        if head.startswith(_EBML):
            return _missing_in_ebml(file, total)
        if head.startswith(b"RIFF"):
            return max(0, 8 + int.from_bytes(head[4:8], "little") - total)
    return 0


def _missing_in_boxes(file: BinaryIO, total: int) -> int:
    at = 0
    while at + 8 <= total:
        file.seek(at)
        head = file.read(16)
        size = int.from_bytes(head[:4], "big")
        if size == 0:  # the last box runs to the end of the file
            return 0
        if size == 1:
            size = int.from_bytes(head[8:16], "big")
        if size < 8:
            return 0
        at += size
    return max(0, at - total)


def _missing_in_ebml(file: BinaryIO, total: int) -> int:
    file.seek(4)
    header, length = _vint(file)
    if header is None:
        return 0
    at = 4 + length + header
    file.seek(at)
    if file.read(4) != _SEGMENT:
        return 0
    size, length = _vint(file)
    return 0 if size is None else max(0, at + 4 + length + size - total)


def _vint(file: BinaryIO) -> tuple[int | None, int]:
    """An EBML size and its own length in bytes; None for `unknown size`."""
    first = file.read(1)
    if not first or first[0] == 0:
        return None, 1
    length = 9 - first[0].bit_length()
    value = first[0] & ((1 << (8 - length)) - 1)
    for byte in file.read(length - 1):
        value = (value << 8) | byte
    return (None if value == (1 << (7 * length)) - 1 else value), length
