#!/usr/bin/env bash
# Plays recorded conversations with a genuine API server against the embedded cluster.
#
# Usage: cluster/scripts/conformance.sh [arguments for replay.py]
#
# The scenarios are in cluster/conformance; `--dir FOLDER` plays others. The script fails if a scenario of tier `must`
# fails, or more than one in twenty of tier `should`. All differences are written to target/conformance/replay.txt, with
# the report beside it.
set -euo pipefail
cd "$(dirname "$0")/../.."
target=${CARGO_TARGET_DIR:-target}
output=$target/conformance
mkdir -p "$output"
rm -f "$output"/report.json
# Of a server that knows its clients more scenarios hold.
token=conformance

program=$(scripts/built.sh lariat)
"$program" cluster --listen 127.0.0.1:0 --token "$token" >"$output/ready" 2>"$output/server.log" &
server=$!
# Whatever happens, the server ends with this script.
trap 'kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true' EXIT

url=
for _ in $(seq 600); do
    url=$(sed -n 's/^ready //p' "$output/ready")
    [ -n "$url" ] && break
    kill -0 "$server" 2>/dev/null || break
    sleep 0.05
done
[ -n "$url" ] || {
    echo "the server did not become ready:" >&2
    cat "$output/server.log" >&2
    exit 1
}

# Failures are judged below, by tier; without a report there is nothing to judge.
python3 cluster/conformance/replay.py --base-url "$url" --token "$token" --jobs 4 --json "$output/report.json" -v "$@" \
    >"$output/replay.txt" 2>&1 || true
[ -s "$output/report.json" ] || {
    tail -n 20 "$output/replay.txt" >&2
    echo "replay.py wrote no report" >&2
    exit 1
}
kill -0 "$server" 2>/dev/null || {
    echo "the server ended while it was asked:" >&2
    cat "$output/server.log" >&2
    exit 1
}

python3 - "$output/report.json" <<'END'
import json, sys

report = json.load(open(sys.argv[1], encoding="utf-8"))
# How many of a hundred must pass.
demanded = {"must": 100, "should": 95}
bad = []
for tier in ("must", "should", "could"):
    rows = [row for row in report["scenarios"] if row["name"].startswith(tier + "/")]
    failed = [row["name"] for row in rows if row["result"] == "fail"]
    passed = sum(row["result"] == "pass" for row in rows)
    for name in failed:
        print("FAIL", name)
    print(f"{tier}: {passed} passed, {len(failed)} failed, {len(rows) - passed - len(failed)} skipped")
    if 100 * passed < demanded.get(tier, 0) * (passed + len(failed)):
        bad.append(f"{tier} is under {demanded[tier]} %")
print(f"{report['passed']} passed, {report['failed']} failed")
sys.exit("; ".join(bad) or 0)
END
