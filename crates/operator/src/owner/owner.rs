//! Sets, finds and removes owner references.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ObjectMeta;
use lariat_cache::CachedObject;
use lariat_core::{Gvk, ObjectKey, Uid, debug_as_description};

/// The error of an owner reference that is not allowed.
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
        /// The namespace of the object.
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
    /// The owner has no uid, because it was not created yet.
    #[error(
        "{kind} {owner} has no uid, so it can own nothing; create it first, and use the API server's answer"
    )]
    NotCreated {
        /// The kind of the owner.
        kind: String,
        /// The owner.
        owner: ObjectKey,
    },
}

debug_as_description!(OwnerError);

/// An object as the owner of others: sets, finds and removes references to it.
///
/// The metadata of the other object must have its namespace already. Owners are compared by uid, so an object that was
/// deleted and created again is another owner.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::api::ObjectMeta;
/// use lariat::core::Uid;
/// use lariat::operator::Owner;
/// use lariat::{Gvk, ObjectKey};
///
/// let key = ObjectKey::namespaced("shop", "web");
/// let owner = Owner::new(&Gvk::new("demo.dev", "v1", "Widget"), &key, &Uid::new("1f2e"));
/// let mut metadata = ObjectMeta { namespace: Some("shop".to_owned()), ..ObjectMeta::default() };
/// owner.set_controller(&mut metadata)?;
/// assert!(owner.controls(&metadata));
/// let mut elsewhere = ObjectMeta { namespace: Some("other".to_owned()), ..ObjectMeta::default() };
/// assert!(owner.set_controller(&mut elsewhere).is_err());
/// # Ok::<(), lariat::operator::OwnerError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Owner {
    key: ObjectKey,
    /// The reference as controller.
    reference: OwnerReference,
}

impl Owner {
    /// Creates an owner from its kind, key and uid.
    #[must_use]
    pub fn new(gvk: &Gvk, key: &ObjectKey, uid: &Uid) -> Self {
        let reference = OwnerReference {
            api_version: gvk.api_version(),
            kind: gvk.kind().to_owned(),
            name: key.name().to_owned(),
            uid: uid.to_string(),
            // As in `metav1.NewControllerRef`.
            controller: Some(true),
            block_owner_deletion: Some(true),
        };
        let key = key.clone();
        Self { key, reference }
    }

    /// Creates an owner from a typed object.
    ///
    /// # Errors
    ///
    /// The object has no uid: it was not created yet, or is not the API server's answer.
    pub fn of<K: kube::Resource<DynamicType = ()>>(object: &K) -> Result<Self, OwnerError> {
        let gvk = Gvk::new(&K::group(&()), &K::version(&()), &K::kind(&()));
        let meta = object.meta();
        let name = meta.name.as_deref().unwrap_or_default();
        let key = ObjectKey::namespaced(meta.namespace.as_deref().unwrap_or_default(), name);
        match &meta.uid {
            Some(uid) => Ok(Self::new(&gvk, &key, &Uid::new(uid))),
            None => Err(OwnerError::NotCreated {
                kind: gvk.kind().to_owned(),
                owner: key,
            }),
        }
    }

    pub(crate) fn cached(gvk: &Gvk, object: &CachedObject) -> Self {
        Self::new(gvk, object.key(), object.uid())
    }

    /// Returns the reference as controller, with `blockOwnerDeletion`.
    #[must_use]
    pub fn controller_reference(&self) -> OwnerReference {
        self.reference.clone()
    }

    /// Makes the owner the controller of an object.
    ///
    /// An existing reference to the owner becomes a controller reference, and other owners are kept. This is
    /// controller-runtime's `SetControllerReference`.
    ///
    /// # Errors
    ///
    /// The object is in another namespace, or in none although the owner is namespaced: the garbage collector would
    /// delete it. Or another object is its controller. Nothing is changed then.
    pub fn set_controller(&self, of: &mut ObjectMeta) -> Result<(), OwnerError> {
        self.check_place(of)?;
        let owners = of.owner_references.iter().flatten();
        let is_controller = |each: &&OwnerReference| each.controller == Some(true);
        if let Some(other) = owners
            .clone()
            .find(|each| is_controller(each) && !self.is_in(each))
        {
            return Err(OwnerError::Controlled {
                kind: self.reference.kind.clone(),
                owner: self.key.clone(),
                name: of.name.clone().unwrap_or_default(),
                controller: format!("{} {}", other.kind, other.name),
            });
        }
        // Replaces a plain reference too: an object must not name the same owner twice.
        self.put(of, self.reference.clone());
        Ok(())
    }

    /// Makes the owner one of the owners of an object, which may have a controller.
    ///
    /// The garbage collector deletes an object once all its owners are deleted. An existing controller reference to the
    /// owner is kept. This is controller-runtime's `SetOwnerReference`.
    ///
    /// ```
    /// use kube::api::ObjectMeta;
    /// use lariat::core::Uid;
    /// use lariat::operator::Owner;
    /// use lariat::{Gvk, ObjectKey};
    ///
    /// let owner = Owner::new(&Gvk::new("demo.dev", "v1", "Widget"), &ObjectKey::cluster("web"), &Uid::new("1f2e"));
    /// let mut metadata = ObjectMeta::default();
    /// owner.set_owner(&mut metadata)?;
    /// assert!(owner.owns(&metadata) && !owner.controls(&metadata));
    /// assert!(owner.remove_from(&mut metadata));
    /// # Ok::<(), lariat::operator::OwnerError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The object is in another namespace, or in none although the owner is namespaced: the garbage collector would
    /// delete it. Nothing is changed then.
    pub fn set_owner(&self, of: &mut ObjectMeta) -> Result<(), OwnerError> {
        self.check_place(of)?;
        if !self.owns(of) {
            let reference = OwnerReference {
                controller: None,
                block_owner_deletion: None,
                ..self.reference.clone()
            };
            self.put(of, reference);
        }
        Ok(())
    }

    /// Removes the reference to the owner; returns whether there was one.
    pub fn remove_from(&self, of: &mut ObjectMeta) -> bool {
        let had = self.owns(of);
        if let Some(owners) = &mut of.owner_references {
            owners.retain(|each| !self.is_in(each));
        }
        had
    }

    /// Returns whether an object has a reference to the owner, of either kind.
    #[must_use]
    pub fn owns(&self, of: &ObjectMeta) -> bool {
        let mut owners = of.owner_references.iter().flatten();
        owners.any(|each| self.is_in(each))
    }

    /// Returns whether the owner is the controller of an object.
    #[must_use]
    pub fn controls(&self, of: &ObjectMeta) -> bool {
        let mut owners = of.owner_references.iter().flatten();
        owners.any(|each| self.is_in(each) && each.controller == Some(true))
    }

    fn is_in(&self, reference: &OwnerReference) -> bool {
        reference.uid == self.reference.uid
    }

    fn put(&self, of: &mut ObjectMeta, reference: OwnerReference) {
        let owners = of.owner_references.get_or_insert_default();
        match owners.iter_mut().find(|each| self.is_in(each)) {
            Some(known) => *known = reference,
            None => owners.push(reference),
        }
    }

    /// Checks that the garbage collector would not delete an object for its reference.
    fn check_place(&self, of: &ObjectMeta) -> Result<(), OwnerError> {
        let namespace = of.namespace.as_deref().filter(|name| !name.is_empty());
        // A cluster-scoped owner can own objects anywhere, a namespaced one only those of its own namespace.
        if self.key.namespace().is_none() || self.key.namespace() == namespace {
            return Ok(());
        }
        Err(OwnerError::OtherNamespace {
            kind: self.reference.kind.clone(),
            owner: self.key.clone(),
            name: of.name.clone().unwrap_or_default(),
            namespace: namespace.map(str::to_owned),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(kind: &str, uid: &str, key: &ObjectKey) -> Owner {
        let gvk = Gvk::new("demo.dev", "v1", kind);
        Owner::new(&gvk, key, &Uid::new(uid))
    }

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
        let (spaced, cluster) = (ObjectKey::namespaced("shop", "a"), ObjectKey::cluster("a"));
        for (key, namespace, expected) in [
            (&spaced, Some("shop"), None),
            (&cluster, Some("shop"), None),
            (&cluster, None, None),
            (&spaced, Some("other"), Some("in namespace \"other\"")),
            (&spaced, None, Some("in no namespace")),
        ] {
            let mut of = object(namespace, Vec::new());
            let own = owner("Widget", "1", key);
            assert_eq!(own.set_owner(&mut of.clone()).is_err(), expected.is_some());
            let error = own
                .set_controller(&mut of)
                .err()
                .map(|error| error.to_string());
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
        let own = owner("Widget", "1", &ObjectKey::cluster("a"));
        let gadget = || reference("Gadget", "2", false);
        let mut of = object(None, vec![gadget(), reference("Widget", "1", false)]);
        own.set_controller(&mut of).unwrap();
        assert!(own.controls(&of));
        assert_eq!(
            of.owner_references.unwrap(),
            [gadget(), own.controller_reference()]
        );
        let mut of = object(None, vec![reference("Gadget", "2", true)]);
        let before = of.clone();
        let error = own.set_controller(&mut of).unwrap_err();
        assert_eq!(
            error.to_string(),
            "Widget a cannot control \"b\", whose controller is Gadget a"
        );
        assert_eq!(of, before);
    }

    #[test]
    fn an_owner_beside_a_controller_can_be_added_and_removed() {
        let own = owner("Widget", "1", &ObjectKey::cluster("a"));
        let mut of = object(None, vec![reference("Gadget", "2", true)]);
        own.set_owner(&mut of).unwrap();
        assert!(own.owns(&of) && !own.controls(&of));
        own.set_owner(&mut of).unwrap();
        assert_eq!(of.owner_references.as_ref().unwrap().len(), 2, "once");
        // Another object of the name is another owner.
        assert!(!owner("Widget", "3", &ObjectKey::cluster("a")).owns(&of));
        assert!(own.remove_from(&mut of));
        assert!(!own.remove_from(&mut of));
        assert_eq!(
            of.owner_references.unwrap(),
            [reference("Gadget", "2", true)]
        );
        let mut of = object(None, vec![own.controller_reference()]);
        own.set_owner(&mut of).unwrap();
        assert!(own.controls(&of), "a controller stays one");
    }

    #[test]
    fn what_was_not_created_cannot_own() {
        let pod = k8s_openapi::api::core::v1::Pod::default();
        let error = Owner::of(&pod).unwrap_err().to_string();
        assert!(
            error.starts_with("Pod ") && error.contains("has no uid"),
            "{error}"
        );
    }
}
