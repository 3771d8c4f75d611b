#!/usr/bin/env bash
# Measures leader election by lariat-lease and by other crates, as docs/benchmarks.md has it; prints JSON lines.
#
# Usage: scripts/bench-leases.sh [--only NAME,NAME…] [--subjects NAME,NAME…] [--rounds N] [--genuine KUBECONFIG]
#
# A round takes about seven minutes, most of which is waiting. The replicas are processes of
# crates/bench/peers/lease, a package outside of the workspace, because each of the other crates needs a kube of
# its own. The server is `lariat cluster --admin`; with --genuine, the take-over times (--only release,crash) are
# measured on the cluster of that file.
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p "${CARGO_TARGET_DIR:-target}"
target=$(cd "${CARGO_TARGET_DIR:-target}" && pwd)
export CARGO_TARGET_DIR=$target
package=crates/bench/peers/lease
cargo build --quiet --profile dist --package lariat-cli
# In its folder, whose .cargo/config.toml says for which version of Kubernetes it is built.
(cd "$package" && cargo build --quiet --locked)
cc -O -shared -fPIC -o "$target/clock.so" "$package/clock.c"

# The first line is `ready URL`.
coproc server { exec "$target/dist/lariat" cluster --admin --listen 127.0.0.1:0; }
pid=$server_PID
trap 'kill "$pid" 2>/dev/null || true' EXIT
read -r _ url <&"${server[0]}"

PYTHONDONTWRITEBYTECODE=1 python3 "$package/measure.py" "$target/debug/lariat-bench-lease" "$target/clock.so" "$url" "$@"
