#!/usr/bin/env python3
"""The score of a study, counted a second time.

    score.py NUMBERS.json [PAGE.txt]

NUMBERS.json is what `lab run STUDY --json NUMBERS.json` wrote, PAGE.txt what it printed. This program knows nothing of
lab/report: it counts from the rows alone, by the rules that docs/studies.md states, and compares its counts with those of
the file and of the page. It ends with 0 if all agree, 1 if they do not, 2 if a file cannot be read.
"""

import json
import math
import re
import sys

# In the order of the page.
KINDS = ["near", "factor", "far", "unknown"]
WORDS = {
    "near": "within 15 %",
    "factor": "within a factor of 2",
    "far": "beyond a factor of 2",
    "unknown": "only a bound is known",
}
# What a row can have: value, and the names of the bounds where it was given up.
SUFFIXES = ["", "_more_than", "_less_than"]


def kind_of_ratio(ratio):
    if 0.85 <= ratio <= 1.15:
        return "near"
    return "factor" if 0.5 <= ratio <= 2 else "far"


def interval_of_ours(row, name):
    """The lowest and the highest that our value can be; None where nothing is known of it."""
    value = row.get(name)
    if value is not None:
        return value, value
    low, high = row.get(name + "_more_than"), row.get(name + "_less_than")
    if low is not None:
        return low, math.inf
    return (-math.inf, high) if high is not None else None


def judge(ours, exactly, low, high):
    """How near ours, an interval, is to what was printed: one value, or a range."""
    if ours is None:
        return "missing"
    least, most = ours
    is_known = least == most
    if exactly == 0:
        # Printed as 0: what would be printed as 0.0.
        return ("near" if abs(least) < 0.05 else "far") if is_known else "missing"
    if exactly is not None:
        if is_known:
            return kind_of_ratio(least / exactly)
        # Given up: it may be near unless even the bound is too far.
        is_far = least / exactly > 2 or most / exactly < 0.5
        return "far" if is_far else "unknown"
    low = -math.inf if low is None else low
    high = math.inf if high is None else high
    if low <= least and most <= high:
        return "near"
    if is_known:
        # A bound says nothing of how far the printed value was from it: outside is never near.
        kind = kind_of_ratio(least / (low if least < low else high))
        return "factor" if kind == "near" else kind
    # No value that ours can have is within the range.
    if least > high:
        return "far" if least / high > 2 else "unknown"
    if most < low:
        return "far" if most / low < 0.5 else "unknown"
    return "unknown"


def printed_of(row):
    """What was printed of each kind of value: exactly, at least, at most."""
    paper = dict(row.get("paper") or {})
    if row.get("paper_seconds") is not None:
        paper.setdefault("seconds", row["paper_seconds"])
    found = {}
    for key, value in paper.items():
        suffix = next((s for s in SUFFIXES[1:] if key.endswith(s)), "")
        name = key.removesuffix(suffix)
        found.setdefault(name, [None, None, None])[SUFFIXES.index(suffix)] = value
    return found


def count(rows):
    counts = dict.fromkeys(KINDS + ["missing", "rows", "own_settings"], 0)
    for row in rows:
        verdicts = [
            judge(interval_of_ours(row, name), *printed)
            for name, printed in printed_of(row).items()
        ]
        if theirs := row.get("paper_tos"):
            # A set of octets is one value, and has no neighbours.
            ours = row.get("tos_received") or []
            verdicts.append("missing" if not ours else "near" if set(ours) == set(theirs) else "far")
        for verdict in verdicts:
            counts[verdict] += 1
        counts["rows"] += bool(verdicts)
        counts["own_settings"] += bool(verdicts and row.get("with"))
    return counts


def main(arguments):
    if not 1 <= len(arguments) <= 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        with open(arguments[0], encoding="utf-8") as file:
            numbers = json.load(file)
        rows, score = numbers["rows"], numbers["score"]
        page = open(arguments[1], encoding="utf-8").read() if len(arguments) > 1 else None
    except (OSError, ValueError, KeyError) as error:
        print(f"score.py: {error!r}", file=sys.stderr)
        return 2
    ours = count(rows)
    wrong = [
        f"{name}: {ours[name]} here, {score[name]} in {arguments[0]}"
        for name in KINDS + ["rows", "own_settings"]
        if ours[name] != score[name]
    ]
    # What was printed of runs that were not made is in no row.
    if score["printed"] != sum(score[kind] for kind in KINDS) + score["missing"]:
        wrong.append(f"the kinds in {arguments[0]} do not add up to {score['printed']}")
    if score["missing"] < ours["missing"]:
        wrong.append(f"missing: {ours['missing']} here, {score['missing']} in {arguments[0]}")
    if page is not None and score["printed"]:
        for kind in KINDS:
            found = re.search(re.escape(WORDS[kind]) + r": (\d+)", page)
            if found is None or int(found[1]) != ours[kind]:
                wrong.append(f"{WORDS[kind]}: {ours[kind]} here, {found and found[1]} on the page")
    for line in wrong:
        print(f"score.py: {line}", file=sys.stderr)
    print("counted again: " + "; ".join(f"{WORDS[kind]}: {ours[kind]}" for kind in KINDS))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
