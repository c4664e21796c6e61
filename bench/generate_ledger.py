#!/usr/bin/env python3
"""Writes a retry round of any size: retry.env, endpoints.tsv and attempts.tsv, the same for the same seed.

    bench/generate_ledger.py FOLDER [--rows 10000000] [--endpoints 1000] [--seed 1]

Hundreds of endpoints interleaved, deliveries of one to a few attempts, some of them too early, re-sends that restart
the attempt number, one endpoint in ten draining.
"""

import argparse
import os
import random


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--endpoints", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    rng = random.Random(args.seed)

    with open(os.path.join(args.folder, "retry.env"), "w") as out:
        out.write(
            "WEBHOOK_BACKOFF_FACTOR=2\nWEBHOOK_ADMIT_SLACK_S=5\nWEBHOOK_DEAD_LETTER_AFTER=100000\n"
            "WEBHOOK_SUCCESS_MIN=200\nWEBHOOK_SUCCESS_MAX=299\n"
        )

    ids = [f"ep_{n:06d}" for n in range(args.endpoints)]
    with open(os.path.join(args.folder, "endpoints.tsv"), "w") as out:
        out.write("endpoint_id\tstate\tmax_attempts\tbackoff_base_s\tdispatch_gap_s\n")
        for n, endpoint in enumerate(ids):
            state = "draining" if n % 10 == 9 else "active"
            out.write(f"{endpoint}\t{state}\t{rng.randint(1, 8)}\t{rng.randint(1, 60)}\t{rng.randint(60, 3600)}\n")

    clock = [1_700_000_000 + rng.randint(0, 1000) for _ in ids]
    number = [0] * len(ids)
    with open(os.path.join(args.folder, "attempts.tsv"), "w", buffering=1 << 20) as out:
        out.write("attempt_id\tendpoint_id\tattempt_no\tstart_ts\tfinish_ts\tstatus\terror\n")
        for row in range(args.rows):
            e = int(rng.random() * len(ids))
            dice = rng.random()
            number[e] += 1
            start = clock[e] + int(dice * 4000)
            finish = start + int(dice * 13)
            clock[e] = finish
            if dice < 0.45:
                status, error = "200", "-"
            elif dice < 0.9:
                status, error = "503", "-"
            else:
                status, error = "-", "connect_timeout"
            out.write(f"atmpt_{row:09d}\t{ids[e]}\t{number[e]}\t{start}\t{finish}\t{status}\t{error}\n")
            if status == "200" or dice > 0.97:
                number[e] = 0


if __name__ == "__main__":
    main()
