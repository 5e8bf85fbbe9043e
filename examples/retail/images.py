"""Decodes the product photos: JPEG with Pillow where it is installed, else PNG with the standard library."""

import io
import struct
import zlib

try:
    from PIL import Image
except ImportError:
    Image = None

SUFFIX = "png" if Image is None else "jpg"


def decode(data):
    """Returns (width, height, RGB bytes) of one encoded photo."""
    if data[:8] == b"\x89PNG\r\n\x1a\n" and Image is None:
        return decode_png(data)
    with Image.open(io.BytesIO(data)) as picture:
        rgb = picture.convert("RGB")
        return rgb.width, rgb.height, rgb.tobytes()


def decode_png(data):
    """Decodes an 8-bit RGB PNG without interlacing (PNG specification, chapters 5, 9 and 10)."""
    width = height = 0
    compressed = []
    at = 8
    while at < len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        body = data[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack_from(">IIBB", body)
            if (depth, colour) != (8, 2):
                raise ValueError("only 8-bit RGB is read here, not depth %d, colour type %d" % (depth, colour))
        elif kind == b"IDAT":
            compressed.append(body)
        at += 12 + length
    return width, height, unfilter(zlib.decompress(b"".join(compressed)), 3 * width, height)


def unfilter(raw, stride, height, pixel=3):
    """Undoes the PNG line filters; raw holds one filter byte before every line."""
    lines = []
    above = bytes(stride)
    at = 0
    for _ in range(height):
        kind = raw[at]
        line = bytearray(raw[at + 1 : at + 1 + stride])
        at += 1 + stride
        if kind == 1:
            for i in range(pixel, stride):
                line[i] = (line[i] + line[i - pixel]) & 255
        elif kind == 2:
            line = bytearray((a + b) & 255 for a, b in zip(line, above))
        elif kind == 3:
            for i in range(stride):
                left = line[i - pixel] if i >= pixel else 0
                line[i] = (line[i] + ((left + above[i]) >> 1)) & 255
        elif kind == 4:
            _unpaeth(line, above, stride, pixel)
        lines.append(bytes(line))
        above = line
    return b"".join(lines)


def _unpaeth(line, above, stride, pixel):
    for i in range(stride):
        a = line[i - pixel] if i >= pixel else 0
        c = above[i - pixel] if i >= pixel else 0
        b = above[i]
        p = a + b - c
        pa, pb, pc = abs(p - a), abs(p - b), abs(p - c)
        predicted = a if pa <= pb and pa <= pc else (b if pb <= pc else c)
        line[i] = (line[i] + predicted) & 255
