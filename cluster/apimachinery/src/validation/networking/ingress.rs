//! Ingresses.

use super::backend;
use crate::validation::addresses;
use crate::validation::causes::Causes;
use crate::validation::context::{Context, Part};
use crate::validation::field::Field;
use crate::validation::formats;

const CLASS: &str = "kubernetes.io/ingress.class";

pub(in crate::validation) fn ingress(context: &Context<'_>, causes: &mut Causes) {
    if context.updates(Part::Status) {
        check_status(context, causes);
        return;
    }
    let (spec, old) = (context.get("spec"), context.old("spec"));
    let (first, rules) = (spec.get("defaultBackend"), spec.get("rules"));
    if rules.is_void() && !first.is_set() {
        let shown = rules.value().clone();
        let detail = "either `defaultBackend` or `rules` must be specified";
        causes.invalid_as(&spec, shown, detail);
    }
    if first.is_set() {
        backend::check(&first, causes);
    }
    // `allowInvalidWildcardHostRule`: paths below wildcard hosts were not checked once.
    let any_rule = old.as_ref().is_some_and(has_wrong_rule);
    for rule in rules.items() {
        check_rule(&rule, any_rule, causes);
    }
    let any_secret = old.as_ref().is_some_and(has_wrong_secret);
    for tls in spec.get("tls").items() {
        check_tls(&tls, any_secret, causes);
    }
    let class = spec.get("ingressClassName");
    if class.is_set() {
        causes.check_format(&class, formats::dns_subdomain);
    }
    let annotated = context.get("metadata").get("annotations").get(CLASS);
    let differs = class.is_set() && annotated.is_set() && annotated.text() != class.text();
    // `ValidateIngressCreate` alone, since controllers used to write both.
    if context.is_creation() && differs {
        let at = context
            .get("annotations")
            .get(CLASS)
            .with(annotated.value());
        causes.invalid(&at, "must match `ingressClassName` when both are specified");
    }
}

fn has_wrong_rule(spec: &Field<'_>) -> bool {
    let mut causes = Causes::default();
    for rule in spec.get("rules").items() {
        if rule.text_of("host").contains('*') {
            check_paths(&rule, &mut causes);
        }
    }
    causes.count() > 0
}

fn has_wrong_secret(spec: &Field<'_>) -> bool {
    spec.get("tls").items().any(|tls| {
        let name = tls.text_of("secretName");
        !name.is_empty() && !formats::dns_subdomain(name).is_empty()
    })
}

fn check_tls(tls: &Field<'_>, any_secret: bool, causes: &mut Causes) {
    for host in tls.get("hosts").items() {
        check_host(&host, causes);
    }
    let secret = tls.get("secretName");
    if !any_secret && !secret.is_void() {
        causes.check_format(&secret, formats::dns_subdomain);
    }
}

fn check_host(host: &Field<'_>, causes: &mut Causes) {
    if host.text().contains('*') {
        causes.check_format(host, formats::wildcard_subdomain);
    } else {
        causes.check_format(host, formats::dns_subdomain);
    }
}

fn check_rule(rule: &Field<'_>, any_rule: bool, causes: &mut Causes) {
    let host = rule.get("host");
    if !host.is_void() {
        // The lenient parser, so `010.0.0.1` is an address too.
        if addresses::parse(host.text()).is_some() {
            causes.invalid(&host, "must be a DNS name, not an IP address");
        }
        check_host(&host, causes);
    }
    if !any_rule || !host.text().contains('*') {
        check_paths(rule, causes);
    }
}

fn check_paths(rule: &Field<'_>, causes: &mut Causes) {
    let http = rule.get("http");
    if !http.is_set() {
        return;
    }
    let paths = http.get("paths");
    causes.check_given(&paths, "");
    for path in paths.items() {
        check_path(&path, causes);
    }
}

fn check_path(within: &Field<'_>, causes: &mut Causes) {
    let (kind, path) = (within.get("pathType"), within.get("path"));
    if !kind.is_set() {
        causes.required(&kind, "pathType must be specified");
        // Without a type the path has no meaning, and the backend is not checked either.
        return;
    }
    let is_relative = !path.text().starts_with('/');
    match kind.text() {
        "Exact" | "Prefix" => {
            if is_relative {
                causes.invalid_as(&path, path.text(), "must be an absolute path");
            }
            check_parts(&path, causes);
        }
        "ImplementationSpecific" if !path.is_void() && is_relative => {
            causes.invalid(&path, "must be an absolute path");
        }
        "ImplementationSpecific" => {}
        _ => causes.unsupported(&kind, &["Exact", "ImplementationSpecific", "Prefix"]),
    }
    backend::check(&within.get("backend"), causes);
}

fn check_parts(path: &Field<'_>, causes: &mut Causes) {
    // Controllers and backends could read such a path differently.
    for part in ["//", "/./", "/../", "%2f", "%2F"] {
        if path.text().contains(part) {
            causes.invalid(path, &format!("must not contain '{part}'"));
        }
    }
    for end in ["/..", "/."] {
        if path.text().ends_with(end) {
            causes.invalid(path, &format!("cannot end with '{end}'"));
        }
    }
}

fn check_status(context: &Context<'_>, causes: &mut Causes) {
    let balancer = context.get("status").get("loadBalancer");
    let old = context.old("status");
    let old = old.map(|status| status.get("loadBalancer").get("ingress"));
    let known = |ip: &str| {
        let mut items = old.iter().flat_map(Field::items);
        items.any(|each| each.text_of("ip") == ip)
    };
    for each in balancer.get("ingress").items() {
        let (ip, host) = (each.get("ip"), each.get("hostname"));
        if !ip.is_void() && !known(ip.text()) {
            addresses::check_ip(&ip, causes);
        }
        if host.is_void() {
            continue;
        }
        causes.check_format(&host, formats::dns_subdomain);
        if addresses::parse(host.text()).is_some() {
            causes.invalid(&host, "must be a DNS name, not an IP address");
        }
    }
}
