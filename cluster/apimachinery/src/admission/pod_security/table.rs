//! The table of checks: the levels and versions they count for, and their functions.

use super::level::{Level, LevelVersion};
use super::pod::Pod;
use super::violation::{Violation, Violations};
use super::{host, privileges, profiles, volumes};

/// Evaluates the checks of a level for a Pod.
///
/// ```
/// use lariat_apimachinery::admission::pod_security::{Pod, Policy, evaluate};
/// use serde_json::json;
///
/// let label = |name: &str| name.ends_with("/enforce").then_some("baseline");
/// let (policy, _) = Policy::of(label);
/// let pod = json!({"spec": {"hostNetwork": true, "containers": [{"name": "web"}]}});
/// let violations = evaluate(policy.enforce, Pod::of_pod(pod.as_object().expect("an object")));
/// assert_eq!(violations.details(), "host namespaces (hostNetwork=true)");
/// ```
#[must_use]
pub fn evaluate(wanted: LevelVersion, pod: Pod<'_>) -> Violations {
    if wanted.level == Level::Privileged {
        return Violations::default();
    }
    let minor = wanted.version.minor();
    let counts = |check: &&Check| check.level <= wanted.level;
    let is_replaced = |id: &str| {
        let mut others = CHECKS.iter().filter(counts);
        others.any(|other| other.instead_of == Some(id) && other.at(minor).is_some())
    };
    let checks = CHECKS.iter().filter(counts);
    let found = checks
        .filter(|check| !is_replaced(check.id))
        .filter_map(|check| check.at(minor)?(pod));
    Violations(found.collect())
}

/// Finds a violation by a Pod.
type Find = fn(Pod<'_>) -> Option<Violation>;

/// Something that is checked.
#[derive(Debug)]
struct Check {
    id: &'static str,
    /// The lowest level at which it counts.
    level: Level,
    /// The release since which a function counts, in rising order.
    versions: &'static [(i64, Find)],
    /// The check of the level below that is left out where this one counts.
    instead_of: Option<&'static str>,
}

impl Check {
    /// Returns the function that counts in a release.
    fn at(&self, minor: i64) -> Option<Find> {
        let mut newest_first = self.versions.iter().rev();
        let found = newest_first.find(|(since, _)| *since <= minor);
        found.map(|(_, find)| *find)
    }
}

/// All checks, in the order in which errors name them: by level, then by name.
const CHECKS: &[Check] = &[
    baseline("appArmorProfile", &[(0, profiles::app_armor)]),
    baseline("capabilities_baseline", &[(0, privileges::added)]),
    baseline("hostNamespaces", &[(0, host::namespaces)]),
    baseline("hostPathVolumes", &[(0, volumes::host_paths)]),
    baseline("hostPorts", &[(0, host::ports)]),
    baseline("hostProbesAndHostLifecycle", &[(34, host::probes)]),
    baseline("privileged", &[(0, privileges::privileged)]),
    baseline(
        "procMount",
        &[
            (0, profiles::proc_mount),
            (35, |pod| not_with_own_users(pod, profiles::proc_mount)),
        ],
    ),
    baseline(
        "seLinuxOptions",
        &[(0, profiles::se_linux_0), (31, profiles::se_linux_31)],
    ),
    baseline(
        "seccompProfile_baseline",
        &[
            (0, profiles::seccomp_annotations),
            (19, profiles::seccomp_allowed),
        ],
    ),
    baseline(
        "sysctls",
        &[
            (0, host::sysctls_0),
            (27, host::sysctls_27),
            (29, host::sysctls_29),
            (32, host::sysctls_32),
        ],
    ),
    baseline("windowsHostProcess", &[(0, host::windows_process)]),
    restricted(
        "allowPrivilegeEscalation",
        &[
            (8, privileges::escalation),
            (25, |pod| not_of_windows(pod, privileges::escalation)),
        ],
        None,
    ),
    restricted(
        "capabilities_restricted",
        &[
            (22, privileges::dropped),
            (25, |pod| not_of_windows(pod, privileges::dropped)),
        ],
        Some("capabilities_baseline"),
    ),
    restricted(
        "procMount_restricted",
        &[(35, profiles::proc_mount)],
        Some("procMount"),
    ),
    restricted(
        "restrictedVolumes",
        &[(0, volumes::restricted)],
        Some("hostPathVolumes"),
    ),
    restricted(
        "runAsNonRoot",
        &[
            (0, privileges::not_root),
            (35, |pod| not_with_own_users(pod, privileges::not_root)),
        ],
        None,
    ),
    restricted(
        "runAsUser",
        &[
            (23, privileges::user_zero),
            (35, |pod| not_with_own_users(pod, privileges::user_zero)),
        ],
        None,
    ),
    restricted(
        "seccompProfile_restricted",
        &[
            (19, profiles::seccomp_required),
            (25, |pod| not_of_windows(pod, profiles::seccomp_required)),
        ],
        Some("seccompProfile_baseline"),
    ),
];

const fn baseline(id: &'static str, versions: &'static [(i64, Find)]) -> Check {
    Check {
        id,
        level: Level::Baseline,
        versions,
        instead_of: None,
    }
}

const fn restricted(
    id: &'static str,
    versions: &'static [(i64, Find)],
    instead_of: Option<&'static str>,
) -> Check {
    Check {
        id,
        level: Level::Restricted,
        versions,
        instead_of,
    }
}

/// Checks a Pod whose containers are not those of Windows.
fn not_of_windows(pod: Pod<'_>, find: Find) -> Option<Violation> {
    if pod.is_of_windows() { None } else { find(pod) }
}

/// Checks a Pod whose users may be those of the host.
fn not_with_own_users(pod: Pod<'_>, find: Find) -> Option<Violation> {
    if pod.has_own_users() { None } else { find(pod) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_in_the_order_of_errors() {
        // As `populate` in registry.go sorts them.
        assert!(CHECKS.is_sorted_by_key(|check| (check.level, check.id)));
    }

    #[test]
    fn checks_replace_only_those_of_the_level_below() {
        for check in CHECKS {
            assert!(check.versions.is_sorted_by_key(|(since, _)| since));
            if let Some(id) = check.instead_of {
                let other = CHECKS.iter().find(|other| other.id == id);
                assert!(other.is_some_and(|other| other.level < check.level), "{id}");
            }
        }
    }
}
