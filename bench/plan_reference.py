#!/usr/bin/env python3
"""The retry round as a plain script: the measure that `duehook plan` is timed against.

    bench/plan_reference.py FOLDER [--check-ids] [--rows]

The same rules (spec/retry-round.md), the same strictness, the same figures, written the way one writes such a script:
a loop over lines, dicts and integers. Prints the report; `--rows` puts the plan of each row into it.
"""

import argparse
import hashlib
import json
import os
import sys

LARGEST = 2**63 - 1
SMALLEST = -(2**63)


class BadInput(Exception):
    pass


def saturate(n):
    return LARGEST if n > LARGEST else SMALLEST if n < SMALLEST else n


def integer(text, least, where):
    digits = text[1:] if text[:1] == "-" else text
    if not (digits.isascii() and digits.isdigit()):
        raise BadInput(f"{where}: found {text!r}, which is not a whole number")
    n = int(text)
    if n < least or n > LARGEST:
        raise BadInput(f"{where}: found {text!r}, which is out of range")
    return n


def read_contract(path):
    values = {}
    with open(path, encoding="utf-8-sig") as lines:
        for line in lines:
            line = line.rstrip("\r\n")
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            key, _, value = line.partition("=")
            if key in values:
                raise BadInput(f"{path}: {key} stands twice")
            values[key] = value
    return (
        integer(values.pop("WEBHOOK_BACKOFF_FACTOR"), 1, path),
        integer(values.pop("WEBHOOK_ADMIT_SLACK_S"), 0, path),
        integer(values.pop("WEBHOOK_DEAD_LETTER_AFTER"), 0, path),
        integer(values.pop("WEBHOOK_SUCCESS_MIN"), 100, path),
        integer(values.pop("WEBHOOK_SUCCESS_MAX"), 100, path),
    )


class Endpoint:
    __slots__ = ("id", "active", "limit", "base", "gap", "count", "finish", "early", "last")

    def __init__(self, id, state, limit, base, gap):
        if state not in ("active", "draining", "disabled"):
            raise BadInput(f"unknown state {state!r}")
        self.id, self.active = id, state == "active"
        self.limit, self.base, self.gap = integer(limit, 1, id), integer(base, 0, id), integer(gap, 0, id)
        self.count = self.finish = self.early = 0
        self.last = None


def read_endpoints(path):
    endpoints = {}
    with open(path, encoding="utf-8-sig") as lines:
        next(lines)
        for line in lines:
            cells = line.rstrip("\r\n").split("\t")
            if len(cells) != 5 or cells[0] in endpoints:
                raise BadInput(f"{path}: {line!r}")
            endpoints[cells[0]] = Endpoint(*cells)
    return endpoints


def plan(folder, check_ids, with_rows):
    contract_path, endpoints_path, attempts_path = (
        os.path.join(folder, name) for name in ("retry.env", "endpoints.tsv", "attempts.tsv")
    )
    factor, slack, dead_letter_after, success_min, success_max = read_contract(contract_path)
    endpoints = read_endpoints(endpoints_path)
    rows, unknown, seen = [], [], set()
    line_no = planned = too_early = backoff = 0
    with open(attempts_path, encoding="utf-8-sig", newline="\n") as lines:
        next(lines)
        for line_no, line in enumerate(lines, 1):
            cells = line.rstrip("\r\n").split("\t")
            if len(cells) != 7:
                raise BadInput(f"{attempts_path}:{line_no + 1}: {len(cells)} columns")
            attempt_id, endpoint_id, number, start, finish, status, _error = cells
            where = attempts_path
            number = integer(number, 1, where)
            start = integer(start, SMALLEST, where)
            finish = integer(finish, SMALLEST, where)
            if finish < start or not attempt_id or not endpoint_id:
                raise BadInput(f"{attempts_path}:{line_no + 1}: finish_ts before start_ts, or no id")
            success = status != "-" and success_min <= integer(status, SMALLEST, where) <= success_max
            if check_ids:
                if attempt_id in seen:
                    raise BadInput(f"{attempts_path}:{line_no + 1}: {attempt_id} stands twice")
                seen.add(attempt_id)
            endpoint = endpoints.get(endpoint_id)
            if endpoint is None:
                unknown.append(line_no + 1)
                continue
            if not endpoint.active:
                continue
            if endpoint.count == 0:
                earliest = 0
            else:
                # From 2 ^ 63 on every wait is saturated.
                wait = saturate(endpoint.base * factor ** min(number - 1, 63))
                if wait > endpoint.gap:
                    wait = endpoint.gap
                earliest = saturate(saturate(endpoint.finish + wait) + slack)
                backoff += saturate(start - endpoint.finish)
            delta = saturate(start - earliest)
            planned += 1
            if delta < 0:
                too_early += 1
                endpoint.early += 1
            if with_rows:
                rows.append(
                    {
                        "attempt_id": attempt_id,
                        "endpoint_id": endpoint_id,
                        "attempt_no": number,
                        "earliest_ts": earliest,
                        "scheduled_delta_s": delta,
                        "verdict": "too_early" if delta < 0 else "ok",
                    }
                )
            endpoint.count += 1
            if success or endpoint.count >= endpoint.limit:
                endpoint.count = 0
            endpoint.finish = finish
            endpoint.last = success

    over = any(endpoint.early > dead_letter_after for endpoint in endpoints.values())
    last = [endpoint.last for endpoint in endpoints.values()]
    active = sorted((endpoint.id for endpoint in endpoints.values() if endpoint.active), key=str.encode)
    return {
        "admissible_endpoints": active,
        "plan": rows if with_rows else None,
        "totals": {
            "attempts": planned,
            "endpoints": len(active),
            "ok": planned - too_early,
            "too_early": too_early,
            "backoff_s": saturate(backoff),
        },
        "counts": {
            "attempts": line_no,
            "succeeded": last.count(True),
            "exhausted": last.count(False),
            "skipped": last.count(None),
        },
        "unknown_endpoint_rows": unknown,
        "over_dead_letter": over,
        "ok": too_early == 0 and not over,
        "inputs": {
            name: sha256(path)
            for name, path in (("contract", contract_path), ("endpoints", endpoints_path), ("attempts", attempts_path))
        },
    }


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--check-ids", action="store_true")
    parser.add_argument("--rows", action="store_true")
    args = parser.parse_args()
    try:
        report = plan(args.folder, args.check_ids, args.rows)
    except (BadInput, OSError, KeyError, StopIteration, UnicodeDecodeError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    json.dump(report, sys.stdout)
    print()


if __name__ == "__main__":
    main()
