//! ConfigMaps and Secrets.

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use serde_json::Value;

use crate::go_json;
use crate::object::Object;
use crate::validation::causes::Causes;
use crate::validation::context::{Context, Part};
use crate::validation::field::Field;
use crate::validation::formats;

/// The largest size of the data of one object, in bytes.
// `MaxSecretSize`, which ConfigMaps use as well.
const MOST: usize = 1024 * 1024;

pub(in crate::validation) fn config_map(context: &Context<'_>, causes: &mut Causes) {
    // `ValidateConfigMapUpdate`, before the content.
    check_frozen(context, &["data", "binaryData"], causes);
    let (data, binary) = (context.get("data"), context.get("binaryData"));
    let mut size = 0;
    for (key, value) in data.entries() {
        causes.check_format_of(&value, key, formats::config_key);
        if binary.has(key) {
            // Both are one namespace of file names in a volume.
            causes.invalid_as(&value, key, "duplicate of key present in binaryData");
        }
        size += value.text().len();
    }
    for (key, value) in binary.entries() {
        causes.check_format_of(&value, key, formats::config_key);
        size += bytes(&value).len();
    }
    if size > MOST {
        // The path is empty, since the limit is on both members together.
        causes.too_long(&context.get(""), MOST);
    }
}

pub(in crate::validation) fn secret(context: &Context<'_>, causes: &mut Causes) {
    if let Some(old) = context.old("type").filter(|_| context.updates(Part::Main)) {
        let kind = context.get("type");
        if kind.value() != old.value() {
            // Here the type is compared before `ValidateSecret`, so it comes first.
            causes.invalid_json(&kind, "field is immutable");
        }
    }
    check_frozen(context, &["data"], causes);
    let data = context.get("data");
    let mut size = 0;
    for (key, value) in data.entries() {
        causes.check_format_of(&value, key, formats::config_key);
        // Decoded bytes count, not base64.
        size += bytes(&value).len();
    }
    if size > MOST {
        causes.too_long(&data, MOST);
    }
    check_type(context, &data, causes);
}

fn bytes(value: &Field<'_>) -> Vec<u8> {
    BASE64.decode(value.text()).unwrap_or_default()
}

/// Refuses changes of data that are declared immutable.
fn check_frozen(context: &Context<'_>, members: &[&'static str], causes: &mut Causes) {
    let frozen = context.old("immutable");
    if frozen.is_none_or(|frozen| *frozen.value() != Value::Bool(true)) {
        return;
    }
    for member in ["immutable"].iter().chain(members) {
        let (new, old) = (context.get(member), context.old(member));
        if old.is_some_and(|old| old.value() != new.value()) {
            causes.forbidden(&new, "field is immutable when `immutable` is set");
        }
    }
}

/// Checks that a typed Secret has the data of its type.
fn check_type(context: &Context<'_>, data: &Field<'_>, causes: &mut Causes) {
    let mut need = |keys: &[&'static str]| {
        for key in keys.iter().filter(|key| !data.has(key)) {
            causes.required(&data.key(key), "");
        }
    };
    match context.get("type").text() {
        "kubernetes.io/service-account-token" => {
            let annotations = context.get("metadata").get("annotations");
            let account = "kubernetes.io/service-account.name";
            if annotations.text_of(account).is_empty() {
                causes.required(&annotations.key(account), "");
            }
        }
        "kubernetes.io/dockercfg" => check_json(data, ".dockercfg", causes),
        "kubernetes.io/dockerconfigjson" => check_json(data, ".dockerconfigjson", causes),
        // One of the two is enough, so both are named only if neither is there.
        "kubernetes.io/basic-auth" if !data.has("username") && !data.has("password") => {
            need(&["username", "password"]);
        }
        // Unlike for other types, an empty key counts as none.
        "kubernetes.io/ssh-auth" if data.text_of("ssh-privatekey").is_empty() => {
            causes.required(&data.key("ssh-privatekey"), "");
        }
        "kubernetes.io/tls" => need(&["tls.crt", "tls.key"]),
        _ => {}
    }
}

/// Checks that a member of the data is there, and a JSON object.
fn check_json<'a>(data: &Field<'a>, key: &'a str, causes: &mut Causes) {
    let at = data.key(key);
    if !data.has(key) {
        causes.required(&at, "");
    // Go reads `null` into a map as well.
    } else if let Err(error) = serde_json::from_slice::<Option<Object>>(&bytes(&data.get(key))) {
        let syntax = go_json::syntax_error(&bytes(&data.get(key)));
        let detail = syntax.unwrap_or_else(|| {
            let value = serde_json::from_slice(&bytes(&data.get(key)));
            value.map_or(error.to_string(), |value: Value| {
                go_json::type_error(&value, "map[string]interface {}")
            })
        });
        // The cause goes into logs and audit events.
        causes.invalid_as(&at, "<secret contents redacted>", &detail);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::validation::testing::{check_created, check_updated};

    #[test]
    fn keys_sizes_and_types_are_checked() {
        check_created(
            "v1",
            "ConfigMap",
            json!({"data": {"a": "1"}, "binaryData": {"b": "AA=="}}),
            &[],
        );
        check_created(
            "v1",
            "ConfigMap",
            json!({"data": {"a/b": "1", "b": ""}, "binaryData": {"b": "AA=="}}),
            &[
                "data[a/b]: Invalid value: \"a/b\": a valid config key must consist of",
                "data[b]: Invalid value: \"b\": duplicate of key present in binaryData",
            ],
        );
        check_created(
            "v1",
            "Secret",
            json!({"type": "kubernetes.io/tls", "data": {"tls.crt": ""}}),
            &["data[tls.key]: Required value"],
        );
        check_created(
            "v1",
            "Secret",
            json!({"type": "kubernetes.io/dockercfg", "data": {".dockercfg": ""}}),
            &[
                "data[.dockercfg]: Invalid value: \"<secret contents redacted>\": unexpected end of JSON input",
            ],
        );
        check_created(
            "v1",
            "Secret",
            json!({"type": "kubernetes.io/service-account-token"}),
            &["metadata.annotations[kubernetes.io/service-account.name]: Required value"],
        );
    }

    #[test]
    fn what_is_frozen_stays() {
        let old = json!({"immutable": true, "data": {"a": "1"}});
        check_updated("v1", "ConfigMap", &old, old.clone(), &[]);
        check_updated(
            "v1",
            "ConfigMap",
            &old,
            json!({"data": {}}),
            &[
                "data: Forbidden: field is immutable when `immutable` is set",
                "immutable: Forbidden: field is immutable when `immutable` is set",
            ],
        );
        check_updated(
            "v1",
            "Secret",
            &json!({"type": "a"}),
            json!({"type": "b"}),
            &["type: Invalid value: \"b\": field is immutable"],
        );
    }
}
