//! Field selectors of requests.

use std::sync::Arc;

use lariat_apimachinery::go_text::quoted;
use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::Object;
use lariat_core::{FieldSelector, LabelSelector};
use serde_json::Value;

use crate::status::ApiError;
use crate::store::Stored;
use crate::strategy::view;
use crate::wire::query::ListQuery;

/// The selectors of a list, a watch or a collection deletion.
#[derive(Debug, Clone)]
pub(super) struct Filter {
    /// `namespace/` in front of every key, or nothing.
    prefix: String,
    labels: LabelSelector,
    fields: FieldSelector,
    /// The resource whose fields they are.
    resource: Arc<Resource>,
    /// Whether a field beside name and namespace is asked for, which takes decoding.
    decodes: bool,
}

impl Filter {
    /// Parses the selectors, and checks their field labels against those of the resource.
    pub(super) fn new(
        resource: &Arc<Resource>,
        namespace: Option<&str>,
        query: &ListQuery,
    ) -> Result<Self, ApiError> {
        let in_metadata = |path: &str| matches!(path, "metadata.name" | "metadata.namespace");
        let supported = &resource.rules.field_labels;
        // A kind without a conversion function of its own gets DefaultMetaV1FieldSelectorConversion, which knows both
        // labels, whether the kind is namespaced or not.
        let has_namespace = resource.namespaced || !names_its_labels(resource);
        let unknown = |path: &&str| match *path {
            "metadata.name" => false,
            "metadata.namespace" => !has_namespace,
            path => !supported.iter().any(|each| each == path),
        };
        if let Some(path) = query.fields.paths().filter(unknown).min() {
            return Err(unsupported(resource, path));
        }
        let mut fields = query.fields.clone();
        if let Some(name) = &query.name {
            if fields.is_empty() {
                fields = FieldSelector::of_name(name);
            } else if fields.required("metadata.name") != Some(name) {
                let message = "fieldSelector metadata.name doesn't match requested name";
                return Err(ApiError::bad_request(message));
            }
        }
        Ok(Self {
            prefix: namespace
                .map(|namespace| format!("{namespace}/"))
                .unwrap_or_default(),
            labels: query.labels.clone(),
            fields,
            resource: Arc::clone(resource),
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
        // Name and namespace are in the key.
        let object = if self.decodes {
            view::present(&self.resource, stored)
        } else {
            Object::new()
        };
        let scalars: Vec<(&str, String)> = self
            .fields
            .paths()
            .map(|path| (path, selected(&self.resource.kind, &object, path)))
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

/// Returns whether a kind declares which of its fields can be selected.
fn names_its_labels(resource: &Resource) -> bool {
    resource.rules.custom || !resource.rules.field_labels.is_empty()
}

fn unsupported(resource: &Resource, path: &str) -> ApiError {
    let known = r#""metadata.name", "metadata.namespace""#;
    let kind = resource.kind.as_str();
    ApiError::bad_request(match resource.group.as_str() {
        _ if !names_its_labels(resource) => {
            format!(
                "{path} is not a known field selector: only {known}",
                path = quoted(path)
            )
        }
        // Each group words it in its own conversion function of field labels.
        "batch" => format!(
            "field label {path} not supported for {kind}",
            path = quoted(path)
        ),
        "resource.k8s.io" => {
            let version = resource.api_version();
            format!("field label not supported for {version}, Kind={kind}: {path}")
        }
        _ => format!("field label not supported: {path}"),
    })
}

/// Returns a field as selectors compare it, which is not always as it is written.
///
/// Source: the `ToSelectableFields` of the kinds.
fn selected(kind: &str, object: &Object, path: &str) -> String {
    let or = |default: &str| match scalar(object, path) {
        text if text.is_empty() => default.to_owned(),
        text => text,
    };
    match (kind, path) {
        ("Node", "spec.unschedulable") | ("Pod", "spec.hostNetwork") => or("false"),
        ("Job", "status.successful") => match scalar(object, "status.succeeded") {
            text if text.is_empty() => "0".to_owned(),
            text => text,
        },
        ("ReplicationController", "status.replicas") => or("0"),
        ("Event", "source") => match scalar(object, "source.component") {
            text if text.is_empty() => scalar(object, "reportingComponent"),
            text => text,
        },
        // Go knows the label and sets no value.
        ("Pod", "status.podIPs") => String::new(),
        _ => scalar(object, path),
    }
}

/// Returns a field as text; an absent one is empty.
fn scalar(object: &Object, path: &str) -> String {
    let mut parts = path.split('.');
    let first = parts.next().and_then(|part| object.get(part));
    match parts.fold(first, |value, part| value?.get(part)) {
        Some(Value::String(text)) => text.clone(),
        None | Some(Value::Null) => String::new(),
        Some(other) => other.to_string(),
    }
}
