//! Which objects a request selects.

use lariat_core::{FieldSelector, LabelSelector};
use serde_json::Value;

use crate::api::query::ListQuery;
use crate::api::status::ApiError;
use crate::kinds::Resource;
use crate::store::{Object, Stored};

/// The selectors of a list, a watch or a collection deletion.
#[derive(Debug, Clone)]
pub(super) struct Filter {
    /// `namespace/` in front of every key, or nothing.
    prefix: String,
    labels: LabelSelector,
    fields: FieldSelector,
    /// Whether a field beside name and namespace is asked for, which takes decoding.
    decodes: bool,
}

impl Filter {
    /// Checks the field labels against what the resource supports.
    pub(super) fn new(
        resource: &Resource,
        namespace: Option<&str>,
        query: &ListQuery,
    ) -> Result<Self, ApiError> {
        let in_metadata = |path: &str| matches!(path, "metadata.name" | "metadata.namespace");
        let supported = &resource.rules.field_labels;
        let unknown =
            |path: &&str| !in_metadata(path) && !supported.iter().any(|each| each == path);
        if let Some(path) = query.fields.paths().find(unknown) {
            return Err(unsupported(resource, path));
        }
        Ok(Self {
            prefix: namespace
                .map(|namespace| format!("{namespace}/"))
                .unwrap_or_default(),
            labels: query.labels.clone(),
            fields: query.fields.clone(),
            decodes: query.fields.paths().any(|path| !in_metadata(path)),
        })
    }

    /// Returns whether every object of the namespace is selected.
    pub(super) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(super) fn matches(&self, stored: &Stored) -> bool {
        stored.key().as_str().starts_with(&self.prefix)
            && self.labels.matches(stored.labels())
            && (self.fields.is_empty() || self.fields_match(stored))
    }

    fn fields_match(&self, stored: &Stored) -> bool {
        let object = if self.decodes {
            stored.object()
        } else {
            Object::new()
        };
        let scalars: Vec<(&str, String)> = self
            .fields
            .paths()
            .map(|path| (path, scalar(&object, path)))
            .collect();
        self.fields.matches(|path| match path {
            "metadata.name" => stored.key().name(),
            "metadata.namespace" => stored.key().namespace().unwrap_or_default(),
            path => {
                let found = scalars.iter().find(|(each, _)| *each == path);
                found.map_or("", |(_, value)| value)
            }
        })
    }
}

fn unsupported(resource: &Resource, path: &str) -> ApiError {
    let known = if resource.namespaced {
        r#""metadata.name", "metadata.namespace""#
    } else {
        r#""metadata.name""#
    };
    ApiError::bad_request(match resource.rules.field_labels.is_empty() {
        true => format!("{path:?} is not a known field selector: only {known}"),
        false => format!("field label not supported: {path}"),
    })
}

/// Returns a field as selectors compare it; what is absent is empty.
fn scalar(object: &Object, path: &str) -> String {
    let mut parts = path.split('.');
    let first = parts.next().and_then(|part| object.get(part));
    match parts.fold(first, |value, part| value?.get(part)) {
        Some(Value::String(text)) => text.clone(),
        None | Some(Value::Null) => String::new(),
        Some(other) => other.to_string(),
    }
}
