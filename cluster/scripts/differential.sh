#!/usr/bin/env bash
# Makes random requests to the embedded cluster and to a genuine server, and reports what they answer differently.
#
# Usage: KUBECONFIG=FILE cluster/scripts/differential.sh SEED COUNT [options; see --help]
#
# KUBECONFIG is that of a kube-apiserver that is there for this alone, with an administrator's credentials, in the version
# that cluster/apimachinery/src/version.rs names. Of its controllers none but garbage-collector-controller and
# namespace-controller may run, since others change what is compared; it also works without any. The seed decides the requests; COUNT is how many each server gets, more or less.
# Differences that cluster/differential/src/known.txt has are counted; if there are others the script ends with 1.
set -euo pipefail
cd "$(dirname "$0")/../.."

[ -n "${KUBECONFIG:-}" ] || {
    echo "KUBECONFIG must name the kubeconfig of a genuine server to compare with; see docs/conformance.md" >&2
    exit 2
}
program=$(scripts/built.sh lariat-differential)
exec "$program" "$@"
