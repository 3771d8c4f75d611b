//! CSIDrivers, and the names of such drivers.

use std::collections::HashSet;

use crate::validation::causes::Causes;
use crate::validation::context::Context;
use crate::validation::field::Field;
use crate::validation::rule::{self, Rule, Rules};

const POLICIES: &[&str] = &["File", "None", "ReadWriteOnceWithFSType"];

const SPEC: Rules = &[("fsGroupPolicy", Rule::SupportedIfSet(POLICIES))];

pub(in crate::validation) fn csi_driver(context: &Context<'_>, causes: &mut Causes) {
    let (spec, old) = (context.get("spec"), context.old("spec"));
    let attach = spec
        // The path has a typo in Go (`attachedRequired`), and clients see it in causes.
        .get("attachedRequired")
        .with(spec.member("attachRequired"));
    let mut need = |at: &Field<'_>| {
        // Pointers in Go that defaults set, so this is not reached through the API.
        if !at.is_set() {
            causes.required(at, "");
        }
    };
    need(&attach);
    need(&spec.get("podInfoOnMount"));
    need(&spec.get("storageCapacity"));
    rule::check(&spec, SPEC, causes);
    check_tokens(&spec.get("tokenRequests"), causes);
    let modes = spec.get("volumeLifecycleModes");
    for mode in modes.items() {
        // `validateVolumeLifecycleModes` reports at the list, without an index.
        causes.check_supported(&modes.with(mode.value()), &["Persistent", "Ephemeral"]);
    }
    if !spec.has("seLinuxMount") {
        causes.required(&spec.get("seLinuxMount"), "");
    }
    let period = spec.get("nodeAllocatableUpdatePeriodSeconds");
    // `validateNodeAllocatableUpdatePeriodSeconds`.
    if period.int().is_some_and(|seconds| seconds < 10) {
        causes.invalid(&period, "must be greater than or equal to 10 seconds");
    }
    let in_secrets = spec.get("serviceAccountTokenInSecrets");
    if in_secrets.is_set() && spec.get("tokenRequests").is_void() {
        let detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        causes.invalid(&in_secrets, detail);
    }
    // `ValidateCSIDriverUpdate`: the rest of the spec may change.
    if let Some(old) = old {
        causes.check_immutable(&attach, &old.get("attachRequired"));
        causes.check_immutable(&modes, &old.get("volumeLifecycleModes"));
    }
}

fn check_tokens(requests: &Field<'_>, causes: &mut Causes) {
    let mut seen = HashSet::new();
    for request in requests.items() {
        let audience = request.get("audience");
        // `validateTokenRequests` continues after a duplicate. One empty audience is allowed: it is that of the API
        // server.
        if causes.check_unique(&audience, &mut seen) {
            check_lifetime(&request.get("expirationSeconds"), causes);
        }
    }
}

/// Checks how long a token is good for, if that is given.
pub(in crate::validation) fn check_lifetime(seconds: &Field<'_>, causes: &mut Causes) {
    // The same bounds as in `ValidateTokenRequest`.
    if seconds.int().is_some_and(|number| number < 600) {
        causes.invalid(seconds, "may not specify a duration less than 10 minutes");
    }
    if seconds.int().is_some_and(|number| number > 1 << 32) {
        causes.invalid(
            seconds,
            "may not specify a duration larger than 2^32 seconds",
        );
    }
}
