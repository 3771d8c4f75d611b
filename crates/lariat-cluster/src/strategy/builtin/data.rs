//! ConfigMaps and Secrets.

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use serde_json::Value;

use lariat_apimachinery::cause::StatusCause;
use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::Object;

/// How much data one object may have, in bytes.
const MOST: usize = 1024 * 1024;

pub(super) fn validate(resource: &Resource, object: &Object) -> Vec<StatusCause> {
    let mut causes = Vec::new();
    let mut size = 0;
    let is_secret = resource.plural == "secrets";
    for member in ["data", "binaryData"] {
        for (key, value) in object
            .get(member)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            if let Some(rule) = broken_rule(key) {
                causes.push(StatusCause::invalid(
                    &format!("{member}[{key}]"),
                    &key.as_str().into(),
                    rule,
                ));
            }
            let text = value.as_str().unwrap_or_default();
            size += if is_secret || member == "binaryData" {
                BASE64.decode(text).map_or(0, |bytes| bytes.len())
            } else {
                text.len()
            };
        }
    }
    if size > MOST {
        let field = if is_secret { "data" } else { "" };
        let message = format!("Too long: may not be more than {MOST} bytes");
        causes.push(StatusCause::new("FieldValueTooLong", field, message));
    }
    if is_secret {
        causes.extend(missing_keys(object));
    }
    causes
}

/// Source: `IsConfigMapKey` in `k8s.io/apimachinery/pkg/util/validation`.
fn broken_rule(key: &str) -> Option<&'static str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if key.len() > 253 {
        return Some("must be no more than 253 characters");
    }
    if key.is_empty() || !key.chars().all(allowed) {
        return Some(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. \
             'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is \
             '[-._a-zA-Z0-9]+')",
        );
    }
    match key {
        "." => Some("must not be '.'"),
        ".." => Some("must not be '..'"),
        key if key.starts_with("..") => Some("must not start with '..'"),
        _ => None,
    }
}

/// Finds the keys a typed Secret lacks.
fn missing_keys(secret: &Object) -> Vec<StatusCause> {
    let has = |key: &str| {
        secret
            .get("data")
            .is_some_and(|data| data.get(key).is_some())
    };
    let required = |keys: &[&str]| -> Vec<StatusCause> {
        let missing = keys.iter().filter(|key| !has(key));
        missing
            .map(|key| StatusCause::required(&format!("data[{key}]"), ""))
            .collect()
    };
    match secret
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default()
    {
        "kubernetes.io/dockerconfigjson" => required(&[".dockerconfigjson"]),
        "kubernetes.io/dockercfg" => required(&[".dockercfg"]),
        "kubernetes.io/ssh-auth" => required(&["ssh-privatekey"]),
        "kubernetes.io/tls" => required(&["tls.crt", "tls.key"]),
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            required(&["username", "password"])
        }
        _ => Vec::new(),
    }
}
