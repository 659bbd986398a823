#!/usr/bin/env python3
"""Checks a file of remarks: remarks.py FILE.json PASS COUNT NODE: that PASS was applied COUNT times, once at a node
whose name ends in NODE."""
import json
import sys

file, name, count, node = sys.argv[1:]
with open(file) as f:
    remarks = json.load(f)
applied = [r for r in remarks if r["pass"] == name and r["applied"]]
assert len(applied) == int(count), applied
assert sum(any(n.endswith(node) for n in r["nodes"]) for r in applied) == 1, applied
assert all(set(r) <= {"pass", "applied", "nodes", "reason"} for r in remarks), remarks
assert all(r.get("reason") for r in remarks if not r["applied"]), remarks
