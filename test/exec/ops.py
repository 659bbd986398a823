#!/usr/bin/env python3
"""Executes the run lines of every op's .tn file on a target.

usage: ops.py TENON_RUN TARGET FOLDER [-j N]

Each file is compiled as one shared object; compiled units are cached by hash, so
a second run costs little. Functions that the target has no kernel for are left
out and counted.
"""

import argparse
import concurrent.futures
import pathlib
import subprocess
import sys


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tenon_run")
    parser.add_argument("target")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("-j", type=int, default=2)
    options = parser.parse_args()

    def run(path):
        return path, subprocess.run(
            [options.tenon_run, f"--target={options.target}", str(path)],
            capture_output=True, text=True, timeout=600)

    paths = sorted(options.folder.glob("*.tn"))
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.j) as pool:
        for path, done in pool.map(run, paths):
            print(done.stdout, end="")
            if done.returncode != 0:
                failed += 1
                print(f"{path}: failed ({done.returncode})\n{done.stderr}")
    print(f"{len(paths) - failed} of {len(paths)} files passed on {options.target}")
    return failed != 0 or not paths


if __name__ == "__main__":
    sys.exit(main())
