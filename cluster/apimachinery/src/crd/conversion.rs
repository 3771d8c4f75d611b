//! How objects are converted between versions.

use std::collections::HashSet;

use base64::Engine;
use base64::prelude::BASE64_STANDARD as STANDARD;
use serde_json::Value;

use super::parts::{array, text};
use super::tolerated::Tolerated;
use crate::cause::StatusCause;
use crate::checks::causes::Causes;
use crate::checks::field::Field;
use crate::checks::formats::dns_1035_label;
use crate::object::Object;
use crate::validation::check_address;

const PATH: &str = "spec.conversion";

/// Checks a conversion; what is tolerated may be wrong.
pub(super) fn check(conversion: &Value, tolerated: Tolerated) -> Vec<StatusCause> {
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
        causes.extend(check_client(&webhook["clientConfig"], tolerated.bundle));
        causes.extend(check_versions(versions, tolerated.review_versions));
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

fn check_client(client: &Value, tolerates_bundle: bool) -> Vec<StatusCause> {
    let none = Object::new();
    // The path is that of the internal type.
    let spec = Field::of(&none, "spec");
    let client = spec
        .get("conversion")
        .get("webhookClientConfig")
        .with(client);
    let mut causes = Causes::default();
    if client.is_set() {
        check_address(&client, &mut causes);
        if !tolerates_bundle && !is_bundle(client.text_of("caBundle")) {
            let detail = "unable to load root certificates: unable to parse bytes as PEM block";
            causes.invalid(&client.get("caBundle"), detail);
        }
    } else {
        causes.required(&client, "required when strategy is set to Webhook");
    }
    causes.into_list()
}

/// Returns whether a bundle is empty, or has a block in the form of PEM.
// `ValidateCABundle`, which reads the certificates inside as well.
pub(super) fn is_bundle(text: &str) -> bool {
    let decoded = STANDARD.decode(text).unwrap_or_default();
    text.is_empty() || String::from_utf8_lossy(&decoded).contains("-----BEGIN ")
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
            continue;
        }
        // One cause for each rule that is broken, unlike elsewhere in a CRD.
        for rule in dns_1035_label(version.as_str().unwrap_or_default()) {
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
