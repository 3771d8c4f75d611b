//! How objects are converted between versions.

use std::collections::HashSet;

use serde_json::Value;

use super::parts::{array, text};
use crate::cause::StatusCause;
use crate::names::check_dns_1035;

const PATH: &str = "spec.conversion";

/// Checks a conversion; its reviews may have unknown versions only if that is tolerated.
pub(super) fn check(conversion: &Value, tolerated: bool) -> Vec<StatusCause> {
    let mut causes = Vec::new();
    let field = |member: &str| format!("{PATH}.{member}");
    // `validateCustomResourceConversion`.
    let strategy = text(conversion, "strategy");
    match strategy {
        "" => causes.push(StatusCause::required(&field("strategy"), "")),
        "None" | "Webhook" => {}
        other => {
            let supported = r#""None", "Webhook""#;
            causes.push(StatusCause::unsupported(
                &field("strategy"),
                other,
                supported,
            ));
        }
    }
    let webhook = &conversion["webhook"];
    let versions = array(webhook, "conversionReviewVersions");
    // The paths are those of the internal type, in which these members are not below `webhook`.
    if strategy == "Webhook" {
        causes.extend(check_client(&webhook["clientConfig"]));
        causes.extend(check_versions(versions, tolerated));
        return causes;
    }
    let rule = "should not be set when strategy is not set to Webhook";
    if webhook["clientConfig"].is_object() {
        causes.push(StatusCause::forbidden(&field("webhookClientConfig"), rule));
    }
    if !versions.is_empty() {
        causes.push(StatusCause::forbidden(
            &field("conversionReviewVersions"),
            rule,
        ));
    }
    causes
}

fn check_client(client: &Value) -> Option<StatusCause> {
    let field = format!("{PATH}.webhookClientConfig");
    let rule = match (client["url"].is_string(), client["service"].is_object()) {
        // A missing one comes before the check of its members.
        _ if !client.is_object() => "required when strategy is set to Webhook",
        (true, false) | (false, true) => return None,
        _ => "exactly one of url or service is required",
    };
    Some(StatusCause::required(&field, rule))
}

// `validateConversionReviewVersions`.
fn check_versions(versions: &[Value], tolerated: bool) -> Vec<StatusCause> {
    let field = format!("{PATH}.conversionReviewVersions");
    if versions.is_empty() {
        return vec![StatusCause::required(&field, "")];
    }
    let mut causes = Vec::new();
    let mut seen = HashSet::new();
    for (at, version) in versions.iter().enumerate() {
        let field = format!("{field}[{at}]");
        if !seen.insert(version) {
            causes.push(StatusCause::invalid(&field, version, "duplicate version"));
        } else if let Err(rule) = check_dns_1035(version.as_str().unwrap_or_default()) {
            causes.push(StatusCause::invalid(&field, version, &rule));
        }
    }
    if !tolerated && !has_known_version(versions) {
        let rule = "must include at least one of v1, v1beta1";
        causes.push(StatusCause::invalid(&field, &versions.into(), rule));
    }
    causes
}

/// Returns whether the server knows one of the versions.
// Unknown versions are fine beside a known one: a webhook may support later servers.
pub(super) fn has_known_version(versions: &[Value]) -> bool {
    let mut versions = versions.iter();
    versions.any(|each| each == "v1" || each == "v1beta1")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn many_versions_are_compared_in_one_pass() {
        let names = (0..100_000).chain([1]);
        let versions: Vec<Value> = names.map(|number| json!(format!("v{number}"))).collect();
        let causes = check_versions(&versions, false);
        assert_eq!(causes.len(), 1, "{causes:?}");
        assert!(causes[0].text().contains("duplicate version"));
    }
}
