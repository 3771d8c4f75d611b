//! The table of all checks.

use super::check::{Check, Find};
use super::level::Level;
use super::pod::Pod;
use super::violation::Violation;
use super::{host, privileges, profiles, users, volumes};

/// All checks, in the order in which errors name them: by level, then by name.
pub(super) const CHECKS: &[Check] = &[
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
            (0, users::not_root),
            (35, |pod| not_with_own_users(pod, users::not_root)),
        ],
        None,
    ),
    restricted(
        "runAsUser",
        &[
            (23, users::user_zero),
            (35, |pod| not_with_own_users(pod, users::user_zero)),
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
