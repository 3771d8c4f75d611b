//! Structural schemas: what a CustomResourceDefinition says about the content of its objects.
//!
//! A schema is compiled once for each served version. It prunes what it does not know, fills in defaults
//! and validates; all of this in the order, with the paths and in the words of the API server.
//!
//! Source: `k8s.io/apiextensions-apiserver/pkg/apiserver/schema` and `k8s.io/kube-openapi/pkg/validation`.

pub(crate) mod field_path;
pub(crate) mod json_path;
pub(crate) mod labels;

mod correlate;
mod default_check;
mod defaults;
mod embedded;
mod fault;
mod formats;
mod lists;
mod node;
mod prune;
mod rules;
mod scalars;
#[cfg(test)]
mod tests;
mod validate;

use serde_json::Value;

use crate::api::status::Cause;
use node::Node;
use validate::Subject;

pub(crate) use fault::{NO_FIELD, duplicate, too_many};
pub(crate) use rules::check_rules;

/// The faults after which no rule is evaluated, because rules rely on the schema.
const BLOCKING: [&str; 5] = [
    "FieldValueNotSupported",
    "FieldValueRequired",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
];

/// A compiled schema.
#[derive(Debug)]
pub(crate) struct Structural {
    raw: Value,
    root: Node,
    has_rules: bool,
}

impl Structural {
    /// Compiles the `openAPIV3Schema` of one version.
    ///
    /// What is wrong with a schema is found when its definition is written; here it is as good as absent.
    pub(crate) fn compile(schema: &Value) -> Self {
        let root = Node::compile(schema);
        Self {
            raw: schema.clone(),
            has_rules: root.has_rules(),
            root,
        }
    }

    /// Returns the schema as it was written.
    pub(crate) fn raw(&self) -> &Value {
        &self.raw
    }

    /// Removes what the schema does not know and nulls it does not want; returns the paths of the former.
    pub(crate) fn prune(&self, object: &mut Value) -> Vec<String> {
        let mut pruning = prune::Pruning::default();
        pruning.prune(object, Some(&self.root), true);
        prune::drop_nulls(object, Some(&self.root));
        let (mut removed, mut metadata) = (pruning.removed, pruning.metadata);
        removed.sort_unstable();
        metadata.sort_unstable();
        removed.extend(metadata);
        removed
    }

    /// Puts defaults where something was left out.
    pub(crate) fn default(&self, object: &mut Value) {
        defaults::fill(object, &self.root);
    }

    /// Finds defaults that do not fit; `path` is where the schema itself stands.
    pub(crate) fn check_defaults(&self, path: &str) -> Vec<Cause> {
        let mut causes = Vec::new();
        default_check::check(&self.root, path, &mut causes);
        causes
    }

    /// Finds what is wrong with an object, which may replace an old one.
    pub(crate) fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<Cause> {
        let path = "";
        let subject = Subject {
            value: object,
            old,
            path,
        };
        let outcome = self.root.check(subject);
        let causes = outcome.faults().iter().map(|fault| fault.cause(None));
        self.validate_further(causes.collect(), object, old)
    }

    /// Finds what is wrong with an object of which only the status was written.
    pub(crate) fn validate_status(&self, object: &Value, old: &Value) -> Vec<Cause> {
        let node = self.root.shape.properties.get("status");
        let mut causes = Vec::new();
        if let (Some(node), Some(value)) = (node, object.get("status")) {
            let (old, path) = (old.get("status"), "");
            let outcome = node.check(Subject { value, old, path });
            let prefix = Some("status");
            causes.extend(outcome.faults().iter().map(|fault| fault.cause(prefix)));
        }
        self.validate_further(causes, object, Some(old))
    }

    /// Checks what lies beyond the single values: types of embedded resources, uniqueness, rules.
    fn validate_further(
        &self,
        mut causes: Vec<Cause>,
        object: &Value,
        old: Option<&Value>,
    ) -> Vec<Cause> {
        embedded::check(object, &self.root, "", true, &mut causes);
        // Duplicates are tolerated where there were some before.
        let repeated = self.repetitions(object);
        if old.is_none_or(|old| self.repetitions(old).is_empty()) {
            causes.extend(repeated);
        }
        if !self.has_rules {
            return causes;
        }
        if causes
            .iter()
            .any(|cause| BLOCKING.contains(&cause.reason()))
        {
            let rule = "some validation rules were not checked because the object was invalid; \
                correct the existing errors to complete validation";
            causes.push(Cause::invalid(NO_FIELD, &Value::Null, rule));
            return causes;
        }
        causes.extend(rules::evaluate(&self.root, object, old));
        causes
    }

    fn repetitions(&self, object: &Value) -> Vec<Cause> {
        let mut causes = Vec::new();
        lists::check(object, &self.root, "", &mut causes);
        causes
    }
}
