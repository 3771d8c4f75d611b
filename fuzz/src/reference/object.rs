//! The metadata pass on a whole `serde_json::Value`.

use lariat_core::{Gvk, RawObject};
use serde_json::{Map, Value};

/// What the metadata pass has to find in an object.
#[derive(Debug, PartialEq)]
pub(crate) struct Expected {
    namespace: String,
    name: String,
    uid: String,
    version: String,
    generation: Option<i64>,
    deleting: bool,
    /// In the order of the wire; a label whose name is there twice has its last value.
    labels: Vec<(String, String)>,
    owners: Vec<Owner>,
    finalizers: Vec<String>,
    content: Value,
}

#[derive(Debug, PartialEq)]
struct Owner {
    texts: [String; 4],
    controller: bool,
}

/// The types of members: `None` is a value of another type.
fn text(members: &Map<String, Value>, name: &str) -> Option<String> {
    match members.get(name) {
        None | Some(Value::Null) => Some(String::new()),
        Some(Value::String(text)) => Some(text.clone()),
        Some(_) => None,
    }
}

fn list<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a [Value]> {
    match members.get(name) {
        None | Some(Value::Null) => Some(&[]),
        Some(Value::Array(items)) => Some(items),
        Some(_) => None,
    }
}

fn optional<T>(
    members: &Map<String, Value>,
    name: &str,
    read: impl Fn(&Value) -> Option<T>,
) -> Option<Option<T>> {
    match members.get(name) {
        None | Some(Value::Null) => Some(None),
        Some(value) => read(value).map(Some),
    }
}

impl Expected {
    /// Reads an object of a kind; `None` if it has to be refused.
    pub(crate) fn of(value: &Value, gvk: &Gvk) -> Option<Self> {
        let object = value.as_object()?;
        for name in ["apiVersion", "kind"] {
            text(object, name)?;
        }
        let metadata = object.get("metadata")?.as_object()?;
        Some(Self {
            namespace: text(metadata, "namespace")?,
            name: text(metadata, "name").filter(|name| !name.is_empty())?,
            uid: text(metadata, "uid")?,
            version: text(metadata, "resourceVersion")?,
            generation: optional(metadata, "generation", Value::as_i64)?,
            deleting: optional(metadata, "deletionTimestamp", |t| t.as_str().map(drop))?.is_some(),
            labels: labels(metadata)?,
            owners: list(metadata, "ownerReferences")?
                .iter()
                .map(Owner::of)
                .collect::<Option<_>>()?,
            finalizers: list(metadata, "finalizers")?
                .iter()
                .map(|item| item.as_str().map(str::to_owned))
                .collect::<Option<_>>()?,
            content: content(value, gvk),
        })
    }

    /// Returns what was read of an object, with the same labels without regard to order.
    pub(crate) fn read(object: &RawObject) -> Self {
        let mut content =
            serde_json::from_slice(object.json()).expect("an object that was read is JSON");
        // A name that is written with escapes is not recognised, and the member kept.
        if object.json().contains(&b'\\') {
            drop_managed_fields(&mut content);
        }
        let mut labels: Vec<(String, String)> = object
            .labels()
            .iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        labels.sort();
        Self {
            namespace: object.key().namespace().unwrap_or_default().to_owned(),
            name: object.key().name().to_owned(),
            uid: object.uid().to_string(),
            version: object.version().to_string(),
            generation: object.generation(),
            deleting: object.is_deleting(),
            labels,
            owners: object.owners().iter().map(Owner::read).collect(),
            finalizers: object.finalizers().map(str::to_owned).collect(),
            content,
        }
    }

    /// Returns namespace and name.
    pub(crate) fn key(&self) -> (&str, &str) {
        (&self.namespace, &self.name)
    }
}

impl Owner {
    fn of(value: &Value) -> Option<Self> {
        let owner = value.as_object()?;
        Some(Self {
            texts: [
                text(owner, "apiVersion")?,
                text(owner, "kind")?,
                text(owner, "name")?,
                text(owner, "uid")?,
            ],
            controller: optional(owner, "controller", Value::as_bool)?.unwrap_or(false),
        })
    }

    fn read(owner: &lariat_core::OwnerRef) -> Self {
        Self {
            texts: [
                owner.api_version().to_owned(),
                owner.kind().to_owned(),
                owner.name().to_owned(),
                owner.uid().to_string(),
            ],
            controller: owner.is_controller(),
        }
    }
}

/// Labels in the order of their names; those with a NUL in them are left out.
fn labels(metadata: &Map<String, Value>) -> Option<Vec<(String, String)>> {
    let labels = match metadata.get("labels") {
        None | Some(Value::Null) => return Some(Vec::new()),
        Some(labels) => labels.as_object()?,
    };
    let mut read = Vec::new();
    for (name, value) in labels {
        let value = value.as_str()?;
        if !name.contains('\0') && !value.contains('\0') {
            read.push((name.clone(), value.to_owned()));
        }
    }
    read.sort();
    Some(read)
}

/// The content that is kept: without managed fields, and with a type.
fn content(value: &Value, gvk: &Gvk) -> Value {
    let mut content = value.clone();
    drop_managed_fields(&mut content);
    if let Some(object) = content.as_object_mut() {
        for (name, is) in [
            ("apiVersion", gvk.api_version()),
            ("kind", gvk.kind().into()),
        ] {
            object.entry(name).or_insert_with(|| is.to_string().into());
        }
    }
    content
}

fn drop_managed_fields(content: &mut Value) {
    let metadata = content.get_mut("metadata").and_then(Value::as_object_mut);
    if let Some(metadata) = metadata
        && metadata
            .get("managedFields")
            .is_some_and(|fields| !fields.is_null())
    {
        metadata.remove("managedFields");
    }
}
