#!/usr/bin/env python3
"""damage.py FILE SECTION OUT: a copy of an ELF file with one byte in the middle of a section changed."""
import re
import shutil
import subprocess
import sys

file, section, out = sys.argv[1:]
table = subprocess.run(["readelf", "-SW", file], capture_output=True, text=True, check=True).stdout
found = re.search(rf"\s{re.escape(section)}\s+PROGBITS\s+\w+\s+(\w+)\s+(\w+)", table)
offset, size = (int(x, 16) for x in found.groups())
shutil.copy(file, out)
with open(out, "r+b") as f:
    f.seek(offset + size // 2)
    byte = f.read(1)[0]
    f.seek(offset + size // 2)
    f.write(bytes([byte ^ 0x40]))
