//! Security contexts of Pods and containers.

use std::collections::HashSet;

use super::options::Options;
use super::system;
use crate::validation::causes::Causes;
use crate::validation::field::Field;
use crate::validation::paths;
use crate::validation::rule::{self, Rule, Rules};
use crate::validation::structs::{self, Members, Shape};

const MOST: i64 = i32::MAX as i64;

const POD: Rules = &[("fsGroup runAsUser runAsGroup", Rule::MaybeBetween(0, MOST))];

const FILES: Rules = &[(
    "fsGroupChangePolicy",
    Rule::SupportedIfSet(&["Always", "OnRootMismatch"]),
)];

const GROUPS: Rules = &[(
    "supplementalGroupsPolicy",
    Rule::SupportedIfSet(&["Merge", "Strict"]),
)];

/// Checks the security context of a Pod as a whole.
pub(super) fn check_pod(spec: &Field<'_>, options: Options, causes: &mut Causes) {
    let context = spec.get("securityContext");
    rule::check(&context, POD, causes);
    for group in context.get("supplementalGroups").items() {
        causes.check_between(&group, 0, MOST);
    }
    if spec.is_true("shareProcessNamespace") && spec.is_true("hostPID") {
        // The path is in the security context, where the member is in Go's internal type.
        let at = context.get("shareProcessNamespace");
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        causes.invalid_as(&at, true, detail);
    }
    check_sysctls(spec, &context.get("sysctls"), options, causes);
    rule::check(&context, FILES, causes);
    check_seccomp(&context.get("seccompProfile"), causes);
    system::check_windows_options(&context.get("windowsOptions"), causes);
    check_app_armor(&context.get("appArmorProfile"), causes);
    rule::check(&context, GROUPS, causes);
    check_selinux_policy(&context.get("seLinuxChangePolicy"), options, causes);
}

fn check_selinux_policy(policy: &Field<'_>, options: Options, causes: &mut Causes) {
    // `validateSELinuxChangePolicy`: the other policy belongs to a feature that is off, but may replace a policy.
    let supported: &[&str] = if options.any_selinux_policy {
        &["MountOption", "Recursive"]
    } else {
        &["Recursive"]
    };
    if policy.is_set() {
        causes.check_supported(policy, supported);
    }
}

const SYSCTL: &str = "must have at most 253 characters and match regex \
    ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";

fn check_sysctls(spec: &Field<'_>, list: &Field<'_>, options: Options, causes: &mut Causes) {
    let mut names = HashSet::new();
    for sysctl in list.items() {
        let at = sysctl.get("name");
        let name = at.text();
        if name.is_empty() {
            causes.required(&at, "");
        // `validateSysctls`; a name of a wrong form is not compared with others.
        } else if !is_sysctl(name) {
            causes.invalid(&at, SYSCTL);
        } else if names.contains(name) {
            causes.duplicate(&at);
        }
        if let Some(member) = host_conflict(spec, name).filter(|_| !options.any_sysctls) {
            let detail = format!("may not be specified when '{member}' is true");
            causes.invalid_as(&at, name, &detail);
        }
        names.insert(name);
    }
}

fn is_sysctl(name: &str) -> bool {
    let edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.len() <= 253
        && name.split(['.', '/']).all(|part| {
            let bytes = part.as_bytes();
            bytes.first().is_some_and(edge)
                && bytes.last().is_some_and(edge)
                && bytes.iter().all(|byte| edge(byte) || b"-_".contains(byte))
        })
}

/// Kernel parameters of communication between processes.
const IPC: [&str; 10] = [
    "kernel.sem",
    "kernel.shmall",
    "kernel.shmmax",
    "kernel.shmmni",
    "kernel.shm_rmid_forced",
    "kernel.shm",
    "kernel.msgmax",
    "kernel.msgmnb",
    "kernel.msgmni",
    "kernel.msg",
];

/// Returns the host namespace that forbids a kernel parameter, if one does.
pub(super) fn host_conflict(spec: &Field<'_>, sysctl: &str) -> Option<&'static str> {
    // Names are written with dots or with slashes, as the first of them shows.
    let name = match sysctl.find(['.', '/']) {
        Some(first) if sysctl[first..].starts_with('/') => sysctl.replace('/', "."),
        _ => sysctl.to_owned(),
    };
    // Parameters in a namespace of the host would change the host.
    let of_ipc = IPC.contains(&&*name) || name.starts_with("fs.mqueue.");
    if spec.is_true("hostNetwork") && name.starts_with("net.") {
        return Some("hostNetwork");
    }
    (spec.is_true("hostIPC") && of_ipc).then_some("hostIPC")
}

/// A profile of seccomp, as messages show it.
const SECCOMP: Members = &[
    ("type", "Type", Shape::Text),
    ("localhostProfile", "LocalhostProfile", Shape::Value),
];

fn check_seccomp(profile: &Field<'_>, causes: &mut Causes) {
    if !profile.is_set() {
        return;
    }
    let kind = profile.get("type");
    if causes.check_given(&kind, "type is required when seccompProfile is set") {
        causes.check_supported(&kind, &["Localhost", "RuntimeDefault", "Unconfined"]);
    }
    let local = profile.get("localhostProfile");
    // `validateSeccompProfileField`.
    if kind.text() == "Localhost" {
        if local.is_set() {
            paths::check_descending(&local, causes);
        } else {
            causes.required(&local, "must be set when seccomp type is Localhost");
        }
    } else if local.is_set() {
        let detail = "can only be set when seccomp type is Localhost";
        // Go shows the whole profile at the path of the member.
        let shown = structs::shown(profile.value(), SECCOMP);
        causes.invalid_struct(&local, &shown, detail);
    }
}

fn check_app_armor(profile: &Field<'_>, causes: &mut Causes) {
    let local = profile.get("localhostProfile");
    match profile.text_of("type") {
        _ if !profile.is_set() => {}
        "Localhost" => {
            let text = local.text();
            // Not reported as missing too, unlike the length below.
            if text.trim() != text {
                causes.invalid(&local, "must not be padded with whitespace");
            } else if text.is_empty() {
                causes.required(&local, "must be set when AppArmor type is Localhost");
            }
            if text.len() > 4095 {
                causes.too_long(&local, 4095);
            }
        }
        "RuntimeDefault" | "Unconfined" if local.is_set() => {
            causes.invalid(&local, "can only be set when AppArmor type is Localhost");
        }
        "RuntimeDefault" | "Unconfined" => {}
        "" => {
            let detail = "type is required when appArmorProfile is set";
            causes.required(&profile.get("type"), detail);
        }
        _ => {
            let supported = &["Localhost", "RuntimeDefault", "Unconfined"];
            causes.unsupported(&profile.get("type"), supported);
        }
    }
}

/// The security context of a container, as messages show it.
const CONTEXT: Members = &[
    ("capabilities", "Capabilities", Shape::Struct(CAPABILITIES)),
    ("privileged", "Privileged", Shape::Value),
    ("seLinuxOptions", "SELinuxOptions", Shape::Struct(SELINUX)),
    ("windowsOptions", "WindowsOptions", Shape::Struct(WINDOWS)),
    ("runAsUser", "RunAsUser", Shape::Value),
    ("runAsGroup", "RunAsGroup", Shape::Value),
    ("runAsNonRoot", "RunAsNonRoot", Shape::Value),
    (
        "readOnlyRootFilesystem",
        "ReadOnlyRootFilesystem",
        Shape::Value,
    ),
    (
        "allowPrivilegeEscalation",
        "AllowPrivilegeEscalation",
        Shape::Value,
    ),
    ("procMount", "ProcMount", Shape::Value),
    ("seccompProfile", "SeccompProfile", Shape::Struct(SECCOMP)),
    // It has the same members.
    ("appArmorProfile", "AppArmorProfile", Shape::Struct(SECCOMP)),
];

const CAPABILITIES: Members = &[("add", "Add", Shape::Value), ("drop", "Drop", Shape::Value)];

const SELINUX: Members = &[
    ("user", "User", Shape::Text),
    ("role", "Role", Shape::Text),
    ("type", "Type", Shape::Text),
    ("level", "Level", Shape::Text),
];

const WINDOWS: Members = &[
    (
        "gmsaCredentialSpecName",
        "GMSACredentialSpecName",
        Shape::Value,
    ),
    ("gmsaCredentialSpec", "GMSACredentialSpec", Shape::Value),
    ("runAsUserName", "RunAsUserName", Shape::Value),
    ("hostProcess", "HostProcess", Shape::Value),
];

const CONTAINER: Rules = &[
    ("runAsUser runAsGroup", Rule::MaybeBetween(0, MOST)),
    ("procMount", Rule::SupportedIfSet(&["Default", "Unmasked"])),
];

/// Checks the security context of a container.
pub(super) fn check_container(container: &Field<'_>, spec: &Field<'_>, causes: &mut Causes) {
    let context = container.get("securityContext");
    if !context.is_set() {
        return;
    }
    rule::check(&context, CONTAINER, causes);
    let host_users = *spec.member("hostUsers") != serde_json::Value::Bool(false);
    if host_users && context.text_of("procMount") == "Unmasked" {
        let detail = "`hostUsers` must be false to use `Unmasked`";
        causes.invalid(&context.get("procMount"), detail);
    }
    check_seccomp(&context.get("seccompProfile"), causes);
    check_escalation(&context, causes);
    system::check_windows_options(&context.get("windowsOptions"), causes);
    check_app_armor(&context.get("appArmorProfile"), causes);
}

/// A container with rights of the host cannot be kept from getting more.
fn check_escalation(context: &Field<'_>, causes: &mut Causes) {
    let shown = structs::shown(context.value(), CONTEXT);
    let may_escalate =
        *context.member("allowPrivilegeEscalation") != serde_json::Value::Bool(false);
    if !may_escalate && context.is_true("privileged") {
        let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        causes.invalid_struct(context, &shown, detail);
    }
    let added = context.get("capabilities").get("add");
    // One cause for each, with the same text.
    for _ in added
        .items()
        .filter(|each| !may_escalate && each.text() == "CAP_SYS_ADMIN")
    {
        let detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` \
            CAP_SYS_ADMIN";
        causes.invalid_struct(context, &shown, detail);
    }
}
