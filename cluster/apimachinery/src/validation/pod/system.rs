//! The operating system of a Pod, and what only one of them has.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::{env, pod_context};
use crate::validation::causes::Causes;
use crate::validation::field::Field;
use crate::validation::formats;

pub(super) fn check(spec: &Field<'_>, causes: &mut Causes) {
    let os = spec.get("os");
    if os.is_set() && causes.check_given(&os.get("name"), "") {
        match os.text_of("name") {
            "linux" => check_linux(spec, causes),
            "windows" => check_windows(spec, causes),
            name => causes.unsupported_as(&os, name, &["linux", "windows"]),
        }
    }
    let volumes = spec.get("volumes");
    for container in pod_context::all(spec) {
        env::check_files(&container, &volumes, causes);
    }
}

/// Returns the security contexts of containers.
fn contexts<'a>(spec: &Field<'a>) -> impl Iterator<Item = Field<'a>> {
    let all = pod_context::all(spec).into_iter();
    all.map(|container| container.get("securityContext"))
}

fn check_linux(spec: &Field<'_>, causes: &mut Causes) {
    let of_pod = std::iter::once(spec.get("securityContext"));
    for context in of_pod.chain(contexts(spec)) {
        if context.has("windowsOptions") {
            let detail = "windows options cannot be set for a linux pod";
            causes.forbidden(&context.get("windowsOptions"), detail);
        }
    }
}

const NOT_ON_WINDOWS: [&str; 11] = [
    "appArmorProfile",
    "seLinuxOptions",
    // Here are `hostUsers` and two flags of the spec.
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    // Here is `shareProcessNamespace` of the spec.
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
];

const NOT_IN_CONTAINERS: [&str; 10] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

fn check_windows(spec: &Field<'_>, causes: &mut Causes) {
    let mut refuse = |within: &Field<'_>, members: &[&'static str]| {
        for member in members.iter().filter(|member| within.has(member)) {
            causes.forbidden(&within.get(member), "cannot be set for a windows pod");
        }
    };
    let context = spec.get("securityContext");
    let (first, others) = NOT_ON_WINDOWS.split_at(2);
    let (files, users) = others.split_at(4);
    refuse(&context, first);
    refuse(spec, &["hostUsers"]);
    // These two are flags in Go, so false is the same as none, unlike for the others.
    for member in ["hostPID", "hostIPC"] {
        if spec.is_true(member) {
            refuse(spec, &[member]);
        }
    }
    refuse(&context, files);
    refuse(spec, &["shareProcessNamespace"]);
    refuse(&context, users);
    for context in contexts(spec) {
        refuse(&context, &NOT_IN_CONTAINERS);
    }
}

/// Either all containers are processes of the host, or none is.
// `validateWindowsHostProcessPod` is for Pods of any or no operating system, since the member decides and not the
// system.
pub(super) fn check_host_process(spec: &Field<'_>, causes: &mut Causes) {
    let of = |context: &Field<'_>| {
        context
            .get("windowsOptions")
            .member("hostProcess")
            .as_bool()
    };
    let of_pod = of(&spec.get("securityContext"));
    let (mut all, mut count) = (0, 0);
    for context in contexts(spec) {
        all += 1;
        let own = of(&context);
        if let (Some(pod), Some(own)) = (of_pod, own)
            && pod != own
        {
            let at = context.get("windowsOptions").get("hostProcess");
            let detail =
                format!("pod hostProcess value must be identical if both are specified, was {pod}");
            causes.invalid_as(&at, own, &detail);
        }
        // The container's own value wins over that of the Pod.
        count += usize::from(own.or(of_pod) == Some(true));
    }
    if count == 0 {
        return;
    }
    if count != all {
        let detail = "If pod contains any hostProcess containers then all containers must be \
            HostProcess containers";
        causes.invalid_as(spec, "", detail);
    }
    if !spec.is_true("hostNetwork") {
        let detail = "hostNetwork must be true if pod contains any hostProcess containers";
        causes.invalid_as(&spec.get("hostNetwork"), Value::Bool(false), detail);
    }
}

/// Checks the options of Windows.
pub(super) fn check_windows_options(options: &Field<'_>, causes: &mut Causes) {
    if options.has("gmsaCredentialSpecName") {
        let name = options.get("gmsaCredentialSpecName");
        causes.check_format(&name, formats::dns_subdomain);
    }
    let spec = options.get("gmsaCredentialSpec");
    // An empty text is set and says nothing.
    if spec.is_set() && spec.is_void() {
        causes.invalid(&spec, "gmsaCredentialSpec cannot be an empty string");
    } else if spec.text().len() > 64 * 1024 {
        causes.invalid(&spec, "gmsaCredentialSpec size must be under 64 KiB");
    }
    let name = options.get("runAsUserName");
    for problem in problems(name.text()).into_iter().filter(|_| name.is_set()) {
        causes.invalid(&name, &format!("runAsUserName{problem}"));
    }
}

static DOMAIN: LazyLock<[Regex; 2]> = LazyLock::new(|| {
    let label = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?";
    [
        r#"^[^\\/:\*\?"<>|\.][^\\/:\*\?"<>|]{0,14}$"#.to_owned(),
        format!(r"^{label}(?:\.{label})*$"),
    ]
    .map(|form| Regex::new(&form).expect("it is a valid expression"))
});

/// Returns the error about a Windows user name, after the member's name.
fn problems(name: &str) -> Vec<&'static str> {
    let parts: Vec<&str> = name.split('\\').collect();
    let (domain, user) = match parts[..] {
        _ if name.is_empty() => return vec![" cannot be an empty string"],
        _ if name.chars().any(|c| c.is_ascii_control()) => {
            return vec![" cannot contain control characters"];
        }
        // A name of the machine itself; with a backslash, the domain stands before it.
        [user] => (None, user),
        [domain, user] => (Some(domain), user),
        _ => return vec![" cannot contain more than one backslash"],
    };
    let mut found = Vec::new();
    if domain.is_some_and(|domain| domain.len() >= 256) {
        found.push("'s Domain length must be under 256 characters");
    }
    if domain.is_some_and(|domain| !DOMAIN.iter().any(|form| form.is_match(domain))) {
        found.push("'s Domain doesn't match the NetBios nor the DNS format");
    }
    if user.is_empty() {
        found.push("'s User cannot be empty");
    } else if user.len() > 104 {
        found.push("'s User length must not be longer than 104 characters");
    }
    if !user.is_empty() && user.chars().all(|c| matches!(c, '.' | ' ')) {
        found.push("'s User cannot contain only periods or spaces");
    }
    if user.contains([
        '"', '/', '\\', ':', ';', '|', '=', ',', '+', '*', '?', '<', '>', '@', '[', ']',
    ]) {
        found.push("'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]");
    }
    found
}
