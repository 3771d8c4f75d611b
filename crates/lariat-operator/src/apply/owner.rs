//! Owner references.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ObjectMeta;
use lariat_cache::CachedObject;
use lariat_core::{Gvk, ObjectKey, debug_as_description};

/// The reconciled object cannot be the controller of an object.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OwnerError {
    /// The object is not in the namespace of its owner.
    #[error(
        "{kind} {owner} cannot own {name:?} in {}: the garbage collector would delete it; put it into the namespace of its \
         owner, or own it by an object without a namespace",
        namespace.as_deref().map_or("no namespace".to_owned(), |name| format!("namespace {name:?}"))
    )]
    OtherNamespace {
        /// The kind of the owner.
        kind: String,
        /// The owner.
        owner: ObjectKey,
        /// The name of the object, empty if it is generated.
        name: String,
        /// Its namespace.
        namespace: Option<String>,
    },
    /// Another object is its controller.
    #[error("{kind} {owner} cannot control {name:?}, whose controller is {controller}")]
    Controlled {
        /// The kind of the owner.
        kind: String,
        /// The owner.
        owner: ObjectKey,
        /// The name of the object, empty if it is generated.
        name: String,
        /// Kind and name of its controller.
        controller: String,
    },
}

debug_as_description!(OwnerError);

/// Makes an object, given by its reference, the controller of another.
pub(super) fn set_controller(
    reference: OwnerReference,
    owner: &ObjectKey,
    of: &mut ObjectMeta,
) -> Result<(), OwnerError> {
    let (kind, owner) = (reference.kind.clone(), owner.clone());
    let name = of.name.clone().unwrap_or_default();
    let namespace = of.namespace.as_deref().filter(|name| !name.is_empty());
    if owner.namespace().is_some() && owner.namespace() != namespace {
        let namespace = namespace.map(str::to_owned);
        return Err(OwnerError::OtherNamespace {
            kind,
            owner,
            name,
            namespace,
        });
    }
    let owners = of.owner_references.get_or_insert_default();
    let is_other =
        |each: &&OwnerReference| each.controller == Some(true) && each.uid != reference.uid;
    if let Some(other) = owners.iter().find(is_other) {
        let controller = format!("{} {}", other.kind, other.name);
        return Err(OwnerError::Controlled {
            kind,
            owner,
            name,
            controller,
        });
    }
    match owners.iter_mut().find(|each| each.uid == reference.uid) {
        Some(known) => *known = reference,
        None => owners.push(reference),
    }
    Ok(())
}

/// Returns the owner reference to an object as controller.
pub(super) fn controller_reference(gvk: &Gvk, owner: &CachedObject) -> OwnerReference {
    OwnerReference {
        api_version: gvk.api_version(),
        kind: gvk.kind().to_owned(),
        name: owner.key().name().to_owned(),
        uid: owner.uid().to_string(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(kind: &str, uid: &str, is_controller: bool) -> OwnerReference {
        OwnerReference {
            kind: kind.to_owned(),
            name: "a".to_owned(),
            uid: uid.to_owned(),
            controller: Some(is_controller),
            ..OwnerReference::default()
        }
    }

    fn object(namespace: Option<&str>, owners: Vec<OwnerReference>) -> ObjectMeta {
        ObjectMeta {
            name: Some("b".to_owned()),
            namespace: namespace.map(str::to_owned),
            owner_references: Some(owners),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn only_what_the_garbage_collector_keeps_can_be_owned() {
        let own = || reference("Widget", "1", true);
        let (spaced, cluster) = (ObjectKey::namespaced("shop", "a"), ObjectKey::cluster("a"));
        for (owner, namespace, expected) in [
            (&spaced, Some("shop"), None),
            (&cluster, Some("shop"), None),
            (&cluster, None, None),
            (&spaced, Some("other"), Some("in namespace \"other\"")),
            (&spaced, None, Some("in no namespace")),
        ] {
            let mut of = object(namespace, Vec::new());
            let result = set_controller(own(), owner, &mut of);
            let error = result.err().map(|error| error.to_string());
            assert_eq!(error.is_some(), expected.is_some(), "{error:?}");
            let says = |text: &str| error.as_deref().unwrap_or_default().contains(text);
            assert!(expected.is_none_or(says), "{error:?}");
            assert_eq!(
                of.owner_references.unwrap().len(),
                usize::from(expected.is_none())
            );
        }
    }

    #[test]
    fn a_controller_is_not_replaced_and_other_owners_stay() {
        let (own, key) = (reference("Widget", "1", true), ObjectKey::cluster("a"));
        let mut of = object(
            None,
            vec![
                reference("Gadget", "2", false),
                reference("Widget", "1", false),
            ],
        );
        set_controller(own.clone(), &key, &mut of).unwrap();
        assert_eq!(
            of.owner_references.unwrap(),
            [reference("Gadget", "2", false), own.clone()]
        );
        let mut of = object(None, vec![reference("Gadget", "2", true)]);
        let error = set_controller(own, &key, &mut of).unwrap_err();
        assert_eq!(
            error.to_string(),
            "Widget a cannot control \"b\", whose controller is Gadget a"
        );
    }
}
