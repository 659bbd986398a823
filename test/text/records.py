"""The records that text_driver reads and writes."""
import struct
import subprocess
import sys


def drive(driver, path, mode, data):
    done = subprocess.run([driver, path, mode], input=data, capture_output=True)
    if done.returncode:
        sys.exit(f"{path}: {mode}: {done.stderr.decode()}")
    return done.stdout, done.stderr.decode().strip()


def read_ids(data):
    at = 0
    while at < len(data):
        count, = struct.unpack_from("<I", data, at)
        yield list(struct.unpack_from(f"<{count}I", data, at + 4))
        at += 4 + 4 * count


def read_texts(data):
    at = 0
    while at < len(data):
        length, = struct.unpack_from("<I", data, at)
        yield data[at + 4:at + 4 + length]
        at += 4 + length


def pack_texts(texts):
    return b"".join(struct.pack("<I", len(t)) + t for t in texts)


def pack_ids(lists):
    return b"".join(struct.pack(f"<{len(ids) + 1}I", len(ids), *ids) for ids in lists)
