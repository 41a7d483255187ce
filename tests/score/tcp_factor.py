#!/usr/bin/env python3
"""The factors of the simulation's TCP, from what both environments measured.

    tcp_factor.py DATE HOW SIMULATION.json TESTBED.json... > docs/results/data/tcp-factor.json

The files are what `lab run tcp-models grid --json FILE` wrote, with --simulation and without. Each cell has the medians of
both, and the second divided by the first. A load that reached the limit has its rate until then.
"""

import json
import re
import sys

CELL = re.compile(r"grid/cell\[delay=(\d+)ms,loss=([0-9.]+),rate=(\d+)(k|M)bit\]/flow")


def cells(paths, environment):
    found = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            rows = json.load(file)["rows"]
        for row in rows:
            cell = CELL.fullmatch(row["item"])
            if cell and row["environment"] == environment:
                delay, loss, rate, unit = cell.groups()
                kbit_s = int(rate) * {"k": 1, "M": 1_000}[unit]
                found[kbit_s, round(float(loss) * 100, 3), 2 * int(delay)] = row["kbit_s"]
    return found


def main():
    measured, how, simulation, *testbed = sys.argv[1:]
    slow, fast = cells([simulation], "simulation"), cells(testbed, "testbed")
    lines = []
    for key in sorted(slow):
        if key not in fast:
            sys.exit(f"no cell {key} in {testbed}")
        line, loss, round_trip = key
        cell = {
            "line_kbit_s": line,
            "loss_percent": loss,
            "round_trip_ms": round_trip,
            "simulation_kbit_s": round(slow[key], 1),
            "linux_kbit_s": round(fast[key], 1),
            "factor": round(fast[key] / slow[key], 2),
        }
        lines.append("    " + json.dumps(cell))
    print("{")
    print(f'  "measured": {json.dumps(measured)},')
    print(f'  "how": {json.dumps(how)},')
    print('  "cells": [')
    print(",\n".join(lines))
    print("  ]")
    print("}")


if __name__ == "__main__":
    main()
