//! Probes, and what runs when a container starts and stops.

use serde_json::Value;

use crate::validation::causes::Causes;
use crate::validation::field::Field;
use crate::validation::formats;
use crate::validation::rule::{self, Rule, Rules};

/// Checks the probes and the lifecycle of a container.
pub(super) fn check(container: &Field<'_>, spec: &Field<'_>, causes: &mut Causes) {
    let grace = spec.int_of("terminationGracePeriodSeconds");
    // Before the probes, as in `validateContainers`.
    check_lifecycle(&container.get("lifecycle"), grace, causes);
    for kind in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let probe = container.get(kind);
        if !probe.is_set() {
            continue;
        }
        check_probe(&probe, grace, causes);
        if kind == "readinessProbe" {
            let seconds = probe.get("terminationGracePeriodSeconds");
            if seconds.is_set() {
                causes.invalid(&seconds, "must not be set for readinessProbes");
            }
        // Only readiness can come and go; a container that is alive or has started is so after one success.
        } else if probe.int_of("successThreshold") != Some(1) {
            let threshold = probe.get("successThreshold");
            let shown = threshold.int().unwrap_or(0);
            causes.invalid_as(&threshold, shown, "must be 1");
        }
    }
}

const PROBE: Rules = &[
    (
        "initialDelaySeconds timeoutSeconds periodSeconds successThreshold failureThreshold",
        Rule::NotNegative,
    ),
    ("terminationGracePeriodSeconds", Rule::Positive),
];

fn check_probe(probe: &Field<'_>, grace: Option<i64>, causes: &mut Causes) {
    check_handler(
        probe,
        &["exec", "httpGet", "tcpSocket", "grpc"],
        grace,
        causes,
    );
    rule::check(probe, PROBE, causes);
}

fn check_lifecycle(lifecycle: &Field<'_>, grace: Option<i64>, causes: &mut Causes) {
    for kind in ["postStart", "preStop"] {
        if lifecycle.has(kind) {
            let members = ["exec", "httpGet", "tcpSocket", "sleep"];
            check_handler(&lifecycle.get(kind), &members, grace, causes);
        }
    }
}

/// Checks that there is one handler, and its members.
fn check_handler(
    at: &Field<'_>,
    members: &[&'static str],
    grace: Option<i64>,
    causes: &mut Causes,
) {
    let given = at.given(members);
    // `validateHandler`: the first handler is checked, in the order of Go's struct, and each further one is refused.
    let Some((first, others)) = given.split_first() else {
        causes.required(at, "must specify a handler type");
        return;
    };
    let handler = at.get(first);
    match *first {
        "exec" => {
            causes.check_given(&handler.get("command"), "");
        }
        "httpGet" => check_http(&handler, causes),
        "sleep" => check_sleep(&handler, grace, causes),
        _ => check_port(&handler.get("port"), causes),
    }
    for other in others {
        causes.forbidden(&at.get(other), "may not specify more than 1 handler type");
    }
}

fn check_http(handler: &Field<'_>, causes: &mut Causes) {
    causes.check_given(&handler.get("path"), "");
    check_port(&handler.get("port"), causes);
    causes.check_supported(&handler.get("scheme"), &["HTTP", "HTTPS"]);
    let headers = handler.get("httpHeaders");
    for header in headers.items() {
        let name = header.text_of("name");
        // The path is that of the list.
        causes.check_format_of(&headers, name, formats::header_name);
    }
}

fn check_sleep(handler: &Field<'_>, grace: Option<i64>, causes: &mut Causes) {
    let seconds = handler.int_of("seconds").unwrap_or(0);
    // Sleeping longer than the grace period would be cut off by it.
    let Some(grace) = grace.filter(|grace| !(0..=*grace).contains(&seconds)) else {
        return;
    };
    let detail =
        format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
    causes.invalid_as(handler, seconds, &detail);
}

/// Checks a port that is given by its number or its name.
pub(in crate::validation) fn check_port(at: &Field<'_>, causes: &mut Causes) {
    match at.value() {
        Value::String(_) => causes.check_format(at, formats::port_name),
        _ => causes.check_between(at, 1, 65535),
    }
}
