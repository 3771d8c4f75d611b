//! What admission plugins do by classes of storage and of Ingresses.
//!
//! Source: `storage/storageclass/setdefault`, `storage/persistentvolume/resize` and `network/defaultingressclass` in
//! `k8s.io/kubernetes/plugin/pkg/admission`.

use std::cmp::Reverse;

use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::{Object, metadata_text};
use lariat_apimachinery::quantity::Quantity;
use lariat_core::ObjectKey;
use serde_json::{Value, json};

use super::parts::at;
use crate::server::Server;
use crate::status::ApiError;
use crate::store::Range;

const STORAGE: &str = "storageclasses.storage.k8s.io";
const INGRESS: &str = "ingressclasses.networking.k8s.io";
/// How the annotations end that make a class the default.
const DEFAULT: &str = "is-default-class";
const STORAGE_DEFAULTS: &[&str] = &[
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];
const INGRESS_DEFAULTS: &[&str] = &["ingressclass.kubernetes.io/is-default-class"];
/// The annotations that name a class as its member does.
const CLAIM_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const INGRESS_CLASS: &str = "kubernetes.io/ingress.class";

/// Gives a new claim the default class, unless it asks for one or for none.
pub(in crate::strategy) fn set_storage(server: &Server, claim: &mut Object) {
    let class = || default(server, STORAGE, STORAGE_DEFAULTS);
    set(claim, CLAIM_CLASS, "storageClassName", class);
}

/// Gives a new Ingress the default class, unless it names one.
pub(in crate::strategy) fn set_ingress(server: &Server, ingress: &mut Object) {
    let class = || default(server, INGRESS, INGRESS_DEFAULTS);
    set(ingress, INGRESS_CLASS, "ingressClassName", class);
}

fn set(
    object: &mut Object,
    annotation: &str,
    member: &str,
    class: impl FnOnce() -> Option<String>,
) {
    let is_set = |path: &[&str]| at(object, path).is_some_and(|value| !value.is_null());
    if is_set(&["metadata", "annotations", annotation]) || is_set(&["spec", member]) {
        return;
    }
    let spec = object.entry("spec").or_insert_with(|| json!({}));
    if let (Some(spec), Some(class)) = (spec.as_object_mut(), class()) {
        spec.insert(member.to_owned(), class.into());
    }
}

/// Returns the default class: the newest, and of several the first by name.
fn default(server: &Server, table: &str, annotations: &[&str]) -> Option<String> {
    let table = server.store.table(table);
    let classes = server.store.range(table, &Range::default()).ok()?.objects;
    // Every new object asks, so only what may be the default is decoded.
    let is_candidate = |content: &[u8]| {
        let mut parts = content.windows(DEFAULT.len());
        parts.any(|part| part == DEFAULT.as_bytes())
    };
    let candidates = classes
        .iter()
        .filter(|stored| is_candidate(stored.content()));
    let classes = candidates.map(|stored| stored.object());
    let defaults = classes.filter(|class| {
        let is_true = |name: &&str| {
            let value = at(class, &["metadata", "annotations", *name]);
            value.is_some_and(|value| value == "true")
        };
        annotations.iter().any(is_true)
    });
    let first = defaults.min_by_key(|class| {
        let text = |member| metadata_text(class, member).to_owned();
        (Reverse(text("creationTimestamp")), text("name"))
    });
    first.map(|class| metadata_text(&class, "name").to_owned())
}

/// Refuses to let a claim grow whose class does not allow that.
///
/// # Errors
///
/// As said.
pub(crate) fn check_growth(
    server: &Server,
    resource: &Resource,
    old: &Object,
    new: &Object,
) -> Result<(), ApiError> {
    let kind = (resource.group.as_str(), resource.plural.as_str());
    if kind != ("", "persistentvolumeclaims") || size(new) <= size(old) {
        return Ok(());
    }
    // Validation has refused other claims than bound ones.
    let class = class_of(new);
    if !class.is_empty() && class == class_of(old) && grows(server, class) {
        return Ok(());
    }
    let reason = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must \
                  support resize";
    Err(ApiError::forbidden(
        resource,
        metadata_text(new, "name"),
        reason,
    ))
}

/// Returns whether volumes of a class may grow.
fn grows(server: &Server, class: &str) -> bool {
    let table = server.store.table(STORAGE);
    let stored = server.store.get(table, &ObjectKey::cluster(class));
    stored.is_some_and(|stored| stored.object().get("allowVolumeExpansion") == Some(&true.into()))
}

// `GetPersistentVolumeClaimClass`.
fn class_of(claim: &Object) -> &str {
    let annotated = at(claim, &["metadata", "annotations", CLAIM_CLASS]);
    let class = annotated.or_else(|| at(claim, &["spec", "storageClassName"]));
    class.and_then(Value::as_str).unwrap_or_default()
}

/// Returns how much a claim asks for, if it says so.
fn size(claim: &Object) -> Option<Quantity> {
    let size = at(claim, &["spec", "resources", "requests", "storage"]);
    Quantity::parse(size?.as_str()?)
}
