//! What is wrong with an object that is to be stored.

use lariat_apimachinery::cause::StatusCause;
use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::names;
use lariat_apimachinery::object::{Object, metadata_text};
use lariat_apimachinery::validation;
use lariat_core::Labels;
use serde_json::Value;

use super::part::{Part, Replaced};
use super::{annotations, builtin, custom, finalizers, owners, special};
use crate::status::ApiError;

/// Checks name and labels, and what the kind's own rules say.
pub(crate) fn check(
    resource: &Resource,
    object: &Object,
    replaced: Option<Replaced<'_>>,
) -> Result<(), ApiError> {
    let mut causes = Vec::new();
    let name = metadata_text(object, "name");
    if let Err(rule) = names::check(name, resource.rules.names) {
        causes.push(StatusCause::invalid("metadata.name", &name.into(), rule));
    }
    let labels = object
        .get("metadata")
        .and_then(|metadata| metadata.get("labels"));
    for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        let text = value.as_str().unwrap_or_default();
        let invalid =
            |text: &str, rule| StatusCause::invalid("metadata.labels", &text.into(), rule);
        causes.extend(Labels::check_key(key).err().map(|rule| invalid(key, rule)));
        causes.extend(
            Labels::check_value(text)
                .err()
                .map(|rule| invalid(text, rule)),
        );
    }
    causes.extend(annotations::validate(object));
    causes.extend(owners::validate(object));
    causes.extend(finalizers::validate(resource, object));
    let old = replaced.map(|replaced| replaced.old);
    causes.extend(special::validate(resource, object, old));
    let part = replaced.map_or(Part::Main, |replaced| replaced.part);
    causes.extend(validation::validate(resource, object, old, part));
    causes.extend(builtin::validate(resource, object, replaced));
    causes.extend(custom::validate(resource, object, replaced));
    if causes.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid(resource, name, &causes))
}
