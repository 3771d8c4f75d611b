//! Rows: the indexed part of objects.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use lariat_cache::CachedObject;
use lariat_core::{Labels, ObjectKey, OwnerRef, RawObject};
use ring::digest::{self, SHA256};
use serde::de::IgnoredAny;
use serde_json::Value as Json;
use serde_json::value::RawValue;

use crate::field::{Field, Value};
use crate::schema::{NAME, NAMESPACE, Schema, UID};

/// The indexed part of an object: the values of its fields, labels and owners.
#[derive(Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) key: ObjectKey,
    pub(crate) uid: Arc<str>,
    /// The resource version of the object.
    pub(crate) version: Arc<str>,
    /// The values of each field: at most one, unless the field has many.
    pub(crate) cells: Vec<Vec<Value>>,
    pub(crate) labels: Labels,
    pub(crate) owners: Vec<Owner>,
}

/// A reference to an owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) uid: String,
    pub(crate) is_controller: bool,
}

/// A field for which an object has no usable value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unindexable {
    /// The position of the field in the schema.
    pub(crate) place: usize,
    pub(crate) reason: &'static str,
}

impl fmt::Debug for Row {
    /// Shows no values, which may be those of a Secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Row")
            .field("key", &self.key)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

/// Returns an object's JSON, or only its metadata if its content is not valid JSON.
///
/// The cache checks the content of an object only when it is decoded. Here it becomes part of other texts.
pub(crate) fn sound(json: &[u8]) -> Cow<'_, [u8]> {
    if serde_json::from_slice::<IgnoredAny>(json).is_ok() {
        return Cow::Borrowed(json);
    }
    let metadata = RawObject::metadata_of(json);
    Cow::Owned(metadata.map_or_else(|| b"{}".to_vec(), Vec::from))
}

impl Row {
    /// Reads a row from an object and its JSON.
    ///
    /// If an object is nested too deep for the parser, or is not valid JSON, only its metadata is indexed.
    pub(crate) fn of(
        schema: &Schema,
        object: &CachedObject,
        json: &[u8],
    ) -> (Self, Vec<Unindexable>) {
        // The usual case.
        if let Ok(json) = serde_json::from_slice(json) {
            return Self::read(schema, object, &json);
        }
        // The parser skips other members, however deep they are nested.
        let only = serde_json::from_slice::<OnlyMetadata>(&sound(json)).unwrap_or_default();
        let metadata = only.parsed();
        let fields = schema.fields().iter().enumerate();
        let unread = fields.filter(|(_, field)| !only.has_read(field, &metadata));
        let unread: Vec<Unindexable> = unread
            .map(|(place, _)| Unindexable {
                place,
                reason: "the object is not valid JSON, or nested more than 128 levels deep",
            })
            .collect();
        let json = serde_json::json!({"metadata": metadata});
        let (row, mut unindexable) = Self::read(schema, object, &json);
        unindexable.extend(unread);
        (row, unindexable)
    }

    /// Reads a row from an object and its parsed JSON.
    ///
    /// Fields that cannot be indexed have no value. Namespace, name, uid and owners are taken from the object, which
    /// has them even if its metadata cannot be parsed: pages and joins depend on them.
    pub(crate) fn read(
        schema: &Schema,
        object: &CachedObject,
        json: &Json,
    ) -> (Self, Vec<Unindexable>) {
        let mut unindexable = Vec::new();
        let fields = schema.fields().iter().enumerate();
        let cells = fields.map(|(place, field)| {
            let known = identity(object, field.name()).map(Ok);
            known
                .unwrap_or_else(|| field.read(json))
                .unwrap_or_else(|reason| {
                    unindexable.push(Unindexable { place, reason });
                    Vec::new()
                })
        });
        let row = Self {
            key: object.key().clone(),
            uid: object.uid().to_string().into(),
            version: object.version().to_string().into(),
            cells: cells.collect(),
            labels: object.labels().clone(),
            owners: owners(object.owners()),
        };
        (row, unindexable)
    }

    /// Returns a digest of everything that is indexed.
    ///
    /// Rows with the same digest differ at most in version and JSON. It is a part of SHA-256, so that users cannot
    /// create two objects with one digest.
    pub(crate) fn digest(&self) -> [u8; DIGEST] {
        let mut hash = digest::Context::new(&SHA256);
        // Each part begins with its length, so that no two sequences of parts are the same bytes.
        let mut add = |part: &[u8]| {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part);
        };
        for cell in &self.cells {
            add(&cell.len().to_le_bytes());
            cell.iter()
                .for_each(|value| add(value.to_string().as_bytes()));
        }
        // In a fixed order, or equal rows would have different digests.
        let labels: BTreeMap<&str, &str> = self.labels.iter().collect();
        add(&labels.len().to_le_bytes());
        for (label, value) in labels {
            add(label.as_bytes());
            add(value.as_bytes());
        }
        for owner in &self.owners {
            add(owner.uid.as_bytes());
            add(&[owner.is_controller.into()]);
        }
        let mut digest = [0; DIGEST];
        digest.copy_from_slice(&hash.finish().as_ref()[..DIGEST]);
        digest
    }
}

/// The length of a digest, in bytes.
pub(crate) const DIGEST: usize = 16;

/// The part of an object that is read if the whole object cannot be.
#[derive(Default, serde::Deserialize)]
struct OnlyMetadata {
    metadata: HashMap<String, Box<RawValue>>,
}

impl OnlyMetadata {
    /// Returns the members that can be parsed.
    fn parsed(&self) -> HashMap<&str, Json> {
        let members = self.metadata.iter();
        let parsed = members.filter_map(|(name, raw)| {
            let value = serde_json::from_str(raw.get()).ok()?;
            Some((name.as_str(), value))
        });
        parsed.collect()
    }

    /// Returns whether the parsed members have all values of a field.
    fn has_read(&self, field: &Field, parsed: &HashMap<&str, Json>) -> bool {
        let Some(path) = field.name().strip_prefix("metadata.") else {
            return false;
        };
        let member = path.split(['.', '[']).next().unwrap_or_default();
        parsed.contains_key(member) || !self.metadata.contains_key(member)
    }
}

/// Returns the values of an identifying field of an object; `None` for others.
fn identity(object: &CachedObject, field: &str) -> Option<Vec<Value>> {
    let value = match field {
        NAMESPACE => {
            let namespace = object.key().namespace();
            namespace.map(|namespace| Value::Text(namespace.into()))
        }
        NAME => Some(Value::Natural(object.key().name().into())),
        UID => {
            let uid = object.uid();
            (!uid.is_empty()).then(|| Value::Text(uid.to_string().into()))
        }
        _ => return None,
    };
    Some(value.into_iter().collect())
}

/// The largest length of an owner's uid in bytes; other owners are left out.
///
/// Indexes contain whole uids. Uids that API servers create have 36 characters.
const LONGEST_UID: usize = 256;

/// Returns the owners, each once, in the order of the object.
fn owners(references: &[OwnerRef]) -> Vec<Owner> {
    let mut owners: Vec<Owner> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for reference in references {
        let (uid, is_controller) = (reference.uid().to_string(), reference.is_controller());
        if uid.is_empty() || uid.len() > LONGEST_UID {
            continue;
        }
        // An object may name an owner twice, once of them as its controller.
        if let Some(place) = places.get(&uid) {
            owners[*place].is_controller |= is_controller;
            continue;
        }
        places.insert(uid.clone(), owners.len());
        owners.push(Owner { uid, is_controller });
    }
    owners
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::time::Duration;

    use lariat_core::{Gvk, Interner, ManagedFields, Scan};
    use serde_json::json;
    use tokio::time::Instant;

    use super::*;
    use crate::field::{Field, FieldType};

    fn digest(object: &Json) -> [u8; DIGEST] {
        let kind = Gvk::new("", "v1", "Thing");
        let field = |path| Field::path(path, FieldType::Text).unwrap();
        let fields = [field("spec.one"), field("spec.many[*]")];
        let schema = Schema::new(kind.clone(), fields).unwrap();
        let raw = RawObject::parse(object.to_string().as_bytes(), &kind).unwrap();
        let object_in_cache = CachedObject::new(raw);
        Row::read(&schema, &object_in_cache, object).0.digest()
    }

    fn object() -> Json {
        json!({
            "metadata": {
                "name": "a", "uid": "u", "resourceVersion": "1", "labels": {"x": "y", "z": "w"},
                "ownerReferences": [{"uid": "o", "controller": true}],
            },
            "spec": {"one": "1", "many": ["2", "3"], "other": "4"},
        })
    }

    #[test]
    fn an_object_that_is_nested_too_deep_has_its_metadata_and_says_what_it_lacks() {
        let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
        let json = format!(
            r#"{{"metadata":{{"name":"a","namespace":"b","uid":"u","resourceVersion":"1"}},"spec":{{"one":"1","other":{deep}}}}}"#
        );
        let kind = Gvk::new("", "v1", "Thing");
        let one = Field::path("spec.one", FieldType::Text).unwrap();
        let schema = Schema::new(kind.clone(), [one]).unwrap();
        let raw = RawObject::parse(json.as_bytes(), &kind).unwrap();
        let (row, unindexable) = Row::of(&schema, &CachedObject::new(raw), json.as_bytes());
        let texts = row.cells.iter().flatten().filter_map(Value::as_text);
        assert_eq!(texts.collect::<Vec<_>>(), ["b", "a", "u"]);
        let places: Vec<_> = unindexable.iter().map(|each| each.place).collect();
        assert_eq!(places, [schema.place("spec.one").unwrap()]);
    }

    #[test]
    fn of_an_object_whose_content_is_damaged_only_the_metadata_is_stored_and_indexed() {
        let json = br#"{"kind":"Thing","apiVersion":"v1","metadata":{"name":"a","uid":"u"},"spec":{"one":"1",,}}"#;
        let kind = Gvk::new("", "v1", "Thing");
        let one = Field::path("spec.one", FieldType::Text).unwrap();
        let schema = Schema::new(kind.clone(), [one]).unwrap();
        // As an informer reads it, which leaves the content to who decodes it.
        let scan = Scan::new(json, &kind).unwrap();
        let raw = scan.into_object(&kind, &mut Interner::new(), ManagedFields::Cut);
        let object = CachedObject::new(raw.unwrap());
        let json = object.json().unwrap();
        let stored: Json = serde_json::from_slice(&sound(&json)).unwrap();
        let metadata = json!({"name": "a", "uid": "u"});
        assert_eq!(
            stored,
            json!({"kind": "Thing", "apiVersion": "v1", "metadata": metadata})
        );
        let (row, unindexable) = Row::of(&schema, &object, &json);
        let texts = row.cells.iter().flatten().filter_map(Value::as_text);
        assert_eq!(texts.collect::<Vec<_>>(), ["a", "u"]);
        assert_eq!(unindexable.len(), 1);
        // What is whole is not copied.
        assert!(matches!(sound(br#"{"metadata":{}}"#), Cow::Borrowed(_)));
    }

    #[test]
    fn metadata_too_deep_to_parse_lacks_only_the_deep_member() {
        let deep = format!("{}1{}", r#"{"f":"#.repeat(200), "}".repeat(200));
        let json = format!(
            r#"{{"kind":"Thing","apiVersion":"v1","metadata":{{"name":"a","namespace":"b","uid":"u","managedFields":[{{"manager":"m","fieldsV1":{deep}}}],
            "creationTimestamp":"2026-01-31T12:00:00Z","ownerReferences":[{{"uid":"o"}}]}},"spec":{{"one":"1"}}}}"#
        );
        let kind = Gvk::new("", "v1", "Thing");
        let field = |path| Field::path(path, FieldType::Text).unwrap();
        let fields = [
            field("spec.one"),
            field("metadata.managedFields[0].manager"),
            field("metadata.generateName"),
        ];
        let schema = Schema::new(kind.clone(), fields).unwrap();
        let scan = Scan::new(json.as_bytes(), &kind).unwrap();
        let raw = scan.into_object(&kind, &mut Interner::new(), ManagedFields::Keep);
        let object = CachedObject::new(raw.unwrap());
        let (row, unindexable) = Row::of(&schema, &object, &object.json().unwrap());
        let values = row.cells.iter().flatten().map(ToString::to_string);
        let values: Vec<String> = values.collect();
        assert_eq!(values, ["b", "a", "2026-01-31T12:00:00Z", "u"]);
        assert_eq!(row.owners[0].uid, "o");
        let fields = unindexable.iter();
        let names = fields.map(|each| schema.fields()[each.place].name());
        assert_eq!(
            names.collect::<Vec<_>>(),
            ["spec.one", "metadata.managedFields[0].manager"]
        );
    }

    /// Returns the owners of an object with these references.
    fn owners_of(references: &Json) -> Vec<Owner> {
        let object = json!({"metadata": {"name": "a", "ownerReferences": references}});
        let kind = Gvk::new("", "v1", "Thing");
        let raw = RawObject::parse(object.to_string().as_bytes(), &kind).unwrap();
        owners(raw.owners())
    }

    #[test]
    fn an_owner_that_is_named_twice_is_one_and_one_that_no_server_made_is_none() {
        let owners = owners_of(&json!([
            {"uid": "o"}, {"uid": "o", "controller": true}, {"uid": "x".repeat(3000)}, {},
        ]));
        let one = Owner {
            uid: "o".to_owned(),
            is_controller: true,
        };
        assert_eq!(owners, [one]);
    }

    #[test]
    fn hundred_thousand_owners_are_read_in_linear_time() {
        let references: Json = (0..100_000)
            .map(|number| json!({"uid": format!("o{number}")}))
            .collect();
        // A scan of the owners for each reference compares five billion uids.
        let begun = Instant::now();
        let owners = owners_of(&references);
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "{:?}",
            begun.elapsed()
        );
        assert_eq!(owners.len(), 100_000);
        assert_eq!(owners[99_999].uid, "o99999");
    }

    #[test]
    fn a_digest_changes_with_what_is_indexed_and_with_nothing_else() {
        let with = |pointer: &str, value: Json| {
            let mut object = object();
            *object.pointer_mut(pointer).unwrap() = value;
            digest(&object)
        };
        let same = digest(&object());
        assert_eq!(with("/metadata/resourceVersion", json!("2")), same);
        assert_eq!(with("/spec/other", json!("5")), same);
        let others = [
            with("/metadata/uid", json!("v")),
            with("/metadata/labels", json!({"x": "w", "z": "y"})),
            with("/metadata/labels", json!({"x": "y"})),
            with("/metadata/ownerReferences/0/controller", json!(false)),
            with("/metadata/ownerReferences", json!([])),
            with("/spec/one", json!("12")),
            with("/spec/one", json!(null)),
            with("/spec/many", json!(["23"])),
            with("/spec/many", json!(["2", "3", "3"])),
            same,
        ];
        assert_eq!(HashSet::from(others).len(), others.len());
    }
}
