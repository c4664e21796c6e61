#!/usr/bin/env python3
"""Times `duehook plan` against bench/plan_reference.py on one ledger, in one run, and says whether it is fast enough.

    cargo build --release && bench/plan_speed.py [--rows 10000000] [--duehook target/release/duehook] [--times 3] [--json]

Exit 0 when every figure of both reports agrees and every floor is kept: 30 times without the id check, 15 times with
it, under 64 MB above the size of the endpoints without it. Figures are ratios; the seconds are this machine's.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
FLOOR_WITHOUT_IDS, FLOOR_WITH_IDS, MEMORY_MB = 30, 15, 64


def run(command, out):
    """Seconds, CPU seconds and the largest resident size in MB of a command whose standard output goes to a file."""
    start = time.monotonic()
    with open(out, "wb") as file:
        child = subprocess.Popen(command, stdout=file, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        sys.exit(f"failed: {' '.join(command)}")
    seconds = time.monotonic() - start
    return {"s": seconds, "cpu_s": usage.ru_utime + usage.ru_stime, "mb": usage.ru_maxrss / 1024}


def best(times, command, out):
    return min((run(command, out) for _ in range(times)), key=lambda figures: figures["s"])


def figures_of(path):
    with open(path) as file:
        report = json.load(file)
    return {key: value for key, value in report.items() if key != "build"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--endpoints", type=int, default=1000)
    parser.add_argument("--duehook", default=os.path.join(HERE, "..", "target", "release", "duehook"))
    parser.add_argument("--times", type=int, default=3, help="runs of duehook, of which the best counts")
    parser.add_argument("--reference-times", type=int, default=1, help="runs of the script, of which the best counts")
    parser.add_argument("--folder", help="keep the ledger here, and use the one that is here")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()

    with tempfile.TemporaryDirectory() as scratch:
        folder = args.folder or os.path.join(scratch, "ledger")
        attempts = os.path.join(folder, "attempts.tsv")
        if not os.path.exists(attempts):
            generate = [sys.executable, os.path.join(HERE, "generate_ledger.py"), folder]
            run([*generate, "--rows", str(args.rows), "--endpoints", str(args.endpoints)], os.devnull)
        with open(attempts, "rb") as file:  # into the page cache, so that nobody pays for the disk
            while file.read(1 << 20):
                pass
        ours, theirs = os.path.join(scratch, "ours.json"), os.path.join(scratch, "theirs.json")
        files = ["--contract", "retry.env", "--endpoints", "endpoints.tsv", "--attempts", "attempts.tsv"]
        files = [word if word.startswith("--") else os.path.join(folder, word) for word in files]
        plan = [os.path.abspath(args.duehook), "plan", *files, "--summary"]
        script = [sys.executable, os.path.join(HERE, "plan_reference.py"), folder]

        result = {"rows": args.rows, "mb": os.path.getsize(attempts) / 1e6, "load": os.getloadavg()[0], "ok": True}
        for name, floor, our_flags, their_flags in (
            ("without_ids", FLOOR_WITHOUT_IDS, ["--skip-id-check"], []),
            ("with_ids", FLOOR_WITH_IDS, [], ["--check-ids"]),
        ):
            mine = best(args.times, [*plan, *our_flags], ours)
            one_job = best(args.times, [*plan, *our_flags, "--jobs", "1"], ours)
            reference = best(args.reference_times, [*script, *their_flags], theirs)
            agree = figures_of(ours) == figures_of(theirs)
            ratio = reference["s"] / mine["s"]
            kept = agree and ratio >= floor and (our_flags == [] or mine["mb"] < MEMORY_MB)
            result[name] = {
                "duehook": mine, "duehook_one_job": one_job, "script": reference,
                "ratio": ratio, "ratio_one_job": reference["s"] / one_job["s"], "floor": floor, "figures_agree": agree,
            }
            result["ok"] = result["ok"] and kept

    if args.json:
        print(json.dumps(result))
    else:
        print(f"{result['rows']:,} rows, {result['mb']:.0f} MB, load {result['load']:.2f}")
        for name in ("without_ids", "with_ids"):
            r = result[name]
            print(
                f"{name}: {r['ratio']:.1f} times the script (floor {r['floor']}; one job {r['ratio_one_job']:.1f}) "
                f"[{r['duehook']['s']:.2f} s, {r['duehook']['mb']:.0f} MB; script {r['script']['s']:.1f} s, "
                f"{r['script']['mb']:.0f} MB], figures {'agree' if r['figures_agree'] else 'DIFFER'}"
            )
        print(f"RESULT: {'OK' if result['ok'] else 'BAD'}")
    sys.exit(0 if result["ok"] else 2)


if __name__ == "__main__":
    main()
