//! The default classes of claims and Ingresses.
//!
//! Source: `storage/storageclass/setdefault` and `network/defaultingressclass` in
//! `k8s.io/kubernetes/plugin/pkg/admission`.

use std::cmp::Reverse;

use lariat_apimachinery::object::{Object, metadata_text};
use serde_json::json;

use super::parts::at;
use crate::server::Server;
use crate::store::Range;

const STORAGE: &str = "storageclasses.storage.k8s.io";
const INGRESS: &str = "ingressclasses.networking.k8s.io";
/// The ending of the annotations that make a class the default.
const DEFAULT: &str = "is-default-class";
const STORAGE_DEFAULTS: &[&str] = &[
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];
const INGRESS_DEFAULTS: &[&str] = &["ingressclass.kubernetes.io/is-default-class"];
/// The annotations that name a class as its member does.
const CLAIM_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const INGRESS_CLASS: &str = "kubernetes.io/ingress.class";

/// Sets the default class of a new claim, unless it names one or none.
pub(in crate::strategy) fn set_storage(server: &Server, claim: &mut Object) {
    let class = || default(server, STORAGE, STORAGE_DEFAULTS);
    set(claim, CLAIM_CLASS, "storageClassName", class);
}

/// Sets the default class of a new Ingress, unless it names one.
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
