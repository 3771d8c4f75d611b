//! Names and addresses of a Pod, and where it looks up those of others.

use super::options::Options;
use super::pod_context;
use crate::validation::addresses;
use crate::validation::causes::Causes;
use crate::validation::field::Field;
use crate::validation::formats;

/// On the host's network a port is the same inside and outside.
pub(super) fn check_ports(spec: &Field<'_>, options: Options, causes: &mut Causes) {
    if spec.is_true("hostNetwork") {
        check_host_ports(&spec.get("containers"), options.volumes.is_pod, causes);
    }
}

/// Checks the names of addresses that the Pod knows.
pub(super) fn check_aliases(spec: &Field<'_>, causes: &mut Causes) {
    for alias in spec.get("hostAliases").items() {
        addresses::check_ip(&alias.get("ip"), causes);
        for name in alias.get("hostnames").items() {
            causes.check_format(&name, formats::dns_subdomain);
        }
    }
}

fn check_host_ports(containers: &Field<'_>, is_pod: bool, causes: &mut Causes) {
    for container in containers.items() {
        for port in container.get("ports").items() {
            let at = port.get("hostPort");
            let number = at.int().unwrap_or(0);
            let differs = number != port.int_of("containerPort").unwrap_or(0);
            // In a template the host port may be missing, since defaults fill it in only for Pods.
            if differs && (is_pod || number != 0) {
                let detail = "must match `containerPort` when `hostNetwork` is true";
                causes.invalid_as(&at, number, detail);
            }
        }
    }
}

/// Checks the DNS configuration of the Pod.
pub(super) fn check_dns(spec: &Field<'_>, causes: &mut Causes) {
    let config = spec.get("dnsConfig");
    let servers = config.get("nameservers");
    if spec.text_of("dnsPolicy") == "None" {
        let (at, what) = if config.is_set() {
            (&servers, "at least one DNS nameserver")
        } else {
            (&config, "`dnsConfig`")
        };
        let detail = format!("must provide {what} when `dnsPolicy` is None");
        if !config.is_set() || servers.is_void() {
            causes.required(at, &detail);
            // `validatePodDNSConfig`: without a server, the rest of the configuration is of no use.
            return;
        }
    }
    if servers.list().len() > 3 {
        causes.invalid(&servers, "must not have more than 3 nameservers");
    }
    for server in servers.items() {
        addresses::check_ip(&server, causes);
    }
    check_searches(&config.get("searches"), causes);
    for option in config.get("options").items() {
        if option.text_of("name").is_empty() {
            causes.required(&option, "must not be empty");
        }
    }
}

fn check_searches(searches: &Field<'_>, causes: &mut Causes) {
    if searches.list().len() > 32 {
        causes.invalid(searches, "must not have more than 32 search paths");
    }
    let lengths = searches.items().map(|search| search.text().len() + 1);
    // `MaxDNSSearchListChars` and one, since Go counts a blank behind the last path too.
    if lengths.sum::<usize>() > 2049 {
        let detail =
            "must not have more than 2048 characters (including spaces) in the search list";
        causes.invalid(searches, detail);
    }
    // A lone dot is the root, which is fine.
    for search in searches.items().filter(|search| search.text() != ".") {
        let text = search.text().strip_suffix('.').unwrap_or(search.text());
        causes.check_format_of(&search, text, formats::underscored_subdomain);
    }
}

/// Refuses the use of the host in a Pod with users of its own.
pub(super) fn check_host_users(spec: &Field<'_>, causes: &mut Causes) {
    if *spec.member("hostUsers") != serde_json::Value::Bool(false) {
        return;
    }
    let detail = "when `hostUsers` is false";
    for (member, shown) in [
        ("hostNetwork", "hostNetwork"),
        // Two of the three paths have Go's capital letters.
        ("hostPID", "HostPID"),
        ("hostIPC", "HostIPC"),
    ] {
        if spec.is_true(member) {
            causes.forbidden(&spec.get(shown), detail);
        }
    }
    for container in pod_context::all(spec) {
        let devices = container.get("volumeDevices");
        if !devices.is_void() {
            causes.forbidden(&devices, detail);
        }
    }
}

/// Checks the name that the Pod gives itself.
pub(super) fn check_hostname(spec: &Field<'_>, causes: &mut Causes) {
    let name = spec.get("hostnameOverride");
    if !name.is_set() {
        return;
    }
    for member in ["setHostnameAsFQDN", "hostNetwork"] {
        if spec.is_true(member) {
            let detail = format!("may not be specified when {member} is true");
            causes.forbidden(&name, &detail);
        }
    }
    if name.text().len() > 64 {
        causes.too_long(&name, 64);
    }
    causes.check_format(&name, formats::dns_subdomain);
}
