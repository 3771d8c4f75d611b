//! Compiled structural schemas.

use serde_json::Value;

use super::embedded::Level;
use super::fault::NO_FIELD;
use super::node::Node;
use super::validate::Subject;
use super::{default_check, defaults, embedded, lists, prune, rules};
use crate::cause::StatusCause;
use crate::object::Object;
use crate::schema::DecodeError;

/// The faults after which no rule is evaluated, because rules rely on the schema.
// `hasBlockingErr`: a wrong type would make rules fail for other reasons, and the length limits keep the cost of rules
// within their estimate.
const BLOCKING: [&str; 5] = [
    "FieldValueNotSupported",
    "FieldValueRequired",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
];

/// A compiled structural schema of one version of a custom kind.
///
/// ```
/// use lariat_apimachinery::structural::Structural;
/// use serde_json::json;
///
/// let schema = Structural::compile(&json!({
///     "type": "object",
///     "properties": {"size": {"type": "integer", "default": 3, "maximum": 9}},
/// }));
/// let mut object = json!({"colour": "red"});
/// assert_eq!(schema.prune(&mut object), ["colour"]);
/// schema.default(&mut object);
/// assert_eq!(object, json!({"size": 3}));
/// assert!(schema.validate(&object, None, &[]).is_empty());
/// assert_eq!(schema.validate(&json!({"size": 10}), None, &[]).len(), 1);
/// ```
#[derive(Debug)]
pub struct Structural {
    raw: Value,
    root: Node,
    has_rules: bool,
    has_resources: bool,
}

/// Returns whether a path leads into the metadata of the object itself.
#[must_use]
pub fn is_of_metadata(path: &str) -> bool {
    path.starts_with("metadata.")
}

impl Structural {
    /// Compiles the `openAPIV3Schema` of one version.
    ///
    /// Errors of a schema are reported when its CRD is written; here, wrong parts count as absent.
    #[must_use]
    pub fn compile(schema: &Value) -> Self {
        let root = Node::compile(schema);
        Self {
            raw: schema.clone(),
            has_rules: root.has_rules(),
            has_resources: root.has_resources(),
            root,
        }
    }

    /// Returns the schema as it was written.
    #[must_use]
    pub fn raw(&self) -> &Value {
        &self.raw
    }

    /// Prunes unknown fields and nulls that are not `nullable`.
    ///
    /// Returns the paths of the unknown fields.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        let removed = self.prune_unknown(object);
        self.drop_nulls(object);
        removed
    }

    /// Removes nulls that are not `nullable`, unless a default takes their place.
    pub fn drop_nulls(&self, object: &mut Value) {
        prune::drop_nulls(object, Some(&self.root));
    }

    /// Removes unknown fields; returns their paths.
    pub fn prune_unknown(&self, object: &mut Value) -> Vec<String> {
        let mut pruning = prune::Pruning::default();
        pruning.prune(object, Some(&self.root), true);
        // Paths are sorted because Go's map order is random. The decoder reads the metadata of the object before it
        // prunes, and those of resources inside of it afterwards.
        let (mut removed, mut metadata) = (pruning.removed, pruning.metadata);
        removed.sort_unstable();
        metadata.sort_unstable();
        let (mut own, inner): (Vec<_>, Vec<_>) =
            metadata.into_iter().partition(|path| is_of_metadata(path));
        own.extend(removed);
        own.extend(inner);
        own
    }

    /// Sets the defaults of missing fields, at all levels.
    pub fn default(&self, object: &mut Value) {
        defaults::fill(object, &self.root);
    }

    /// Reads metadata and embedded resources; returns the paths of unknown members.
    ///
    /// # Errors
    ///
    /// A type or metadata cannot be read.
    pub fn coerce(&self, object: &mut Value) -> Result<Vec<String>, DecodeError> {
        let mut unknown = Vec::new();
        embedded::coerce_root(object, &mut unknown)?;
        if self.has_resources {
            embedded::coerce(object, &self.root, "", Level::Root, &mut unknown)
                .map_err(|cause| DecodeError::unreadable(cause.text()))?;
        }
        Ok(unknown)
    }

    /// Finds invalid defaults of a schema; `path` is its path in the CRD.
    ///
    /// Unknown fields of defaults are found only if they have to be pruned.
    #[must_use]
    pub fn check_defaults(schema: &Value, path: &str, pruned: bool) -> Vec<StatusCause> {
        let mut causes = Vec::new();
        let root = Node::compile_structural(schema);
        default_check::check(&root, pruned, path, &mut causes);
        causes
    }

    /// Returns whether a default has unknown fields.
    #[must_use]
    pub fn has_unpruned_defaults(&self) -> bool {
        default_check::has_unpruned(&self.root)
    }

    /// Validates an object, which replaces `old` if there is one.
    ///
    /// A rule that uses `oldSelf` runs without `old` only if it has `optionalOldSelf`. `metadata` is what is wrong with
    /// the metadata: some causes, such as a missing name, keep rules from being evaluated. The result does not include
    /// them, and is empty for a valid object.
    #[must_use]
    pub fn validate(
        &self,
        object: &Value,
        old: Option<&Value>,
        metadata: &[StatusCause],
    ) -> Vec<StatusCause> {
        let path = "";
        let subject = Subject {
            value: object,
            old,
            path,
        };
        let outcome = self.root.check(subject);
        let causes = outcome.faults().iter().map(|fault| fault.cause(None));
        let mut causes: Vec<_> = causes.collect();
        if self.has_resources {
            embedded::check(object, &self.root, "", Level::Root, &mut causes);
        }
        self.validate_further(causes, metadata, object, old)
    }

    /// Validates an object of which only the status was written.
    #[must_use]
    pub fn validate_status(
        &self,
        object: &Value,
        old: &Value,
        metadata: &[StatusCause],
    ) -> Vec<StatusCause> {
        // `ValidateStatusUpdate`: faults of the rest of the object, which this write cannot mend, do not block it.
        // `statusStrategy.ValidateUpdate` does not look at embedded resources either, not even at those of the status.
        let node = self.root.shape.properties.get("status");
        let mut causes = Vec::new();
        let old_status = old.get("status").filter(|status| !status.is_null());
        // No status is as good as a null, of which ratcheting says nothing if it was there before.
        let status = object.get("status");
        let status = status.filter(|status| !status.is_null() || old_status.is_some());
        if let (Some(node), Some(value)) = (node, status) {
            let (old, path) = (old.get("status"), "");
            let outcome = node.check(Subject { value, old, path });
            let prefix = Some("status");
            causes.extend(outcome.faults().iter().map(|fault| fault.cause(prefix)));
        }
        self.validate_further(causes, metadata, object, Some(old))
    }

    /// Returns what is wrong by rules with a valid object, and was wrong before.
    #[must_use]
    pub fn tolerated(&self, object: &Object, old: &Object) -> Vec<StatusCause> {
        if !self.has_rules {
            return Vec::new();
        }
        let (object, old) = (object.clone().into(), old.clone().into());
        rules::evaluate(&self.root, &object, Some(&old)).tolerated
    }

    /// Checks uniqueness in lists, and rules.
    fn validate_further(
        &self,
        mut causes: Vec<StatusCause>,
        metadata: &[StatusCause],
        object: &Value,
        old: Option<&Value>,
    ) -> Vec<StatusCause> {
        // The order of these checks is the order of the causes in the answer: schema, embedded objects, lists, rules.
        // Ratcheting is for the object as a whole: if the old one had any duplicate in any list, no duplicate of the
        // new one counts.
        let repeated = self.repetitions(object);
        if old.is_none_or(|old| self.repetitions(old).is_empty()) {
            causes.extend(repeated);
        }
        if !self.has_rules {
            return causes;
        }
        // `hasBlockingErr`.
        let mut all = metadata.iter().chain(&causes);
        if all.any(|cause| BLOCKING.contains(&cause.reason())) {
            let rule = "some validation rules were not checked because the object was invalid; \
                correct the existing errors to complete validation";
            causes.push(StatusCause::invalid(NO_FIELD, &Value::Null, rule));
            return causes;
        }
        causes.extend(rules::evaluate(&self.root, object, old).causes);
        causes
    }

    fn repetitions(&self, object: &Value) -> Vec<StatusCause> {
        let mut causes = Vec::new();
        lists::check(object, &self.root, "", &mut causes);
        causes
    }
}
