//! An admission request, as handlers get it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::authentication::v1::UserInfo;
use lariat_cache::{Cache, View};
use lariat_controller::SharedControllerFactory;
use lariat_core::{Gvk, ObjectKey, Operation};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::Instant;

use super::object::{Object, Undecodable};
use crate::wire::AdmissionRequest;

/// A request that a handler reviews: the object, the operation, the user.
///
/// Clones share the request. Each object is decoded on first access, so a handler can allow the deletion of an object
/// that does not decode, by not reading it.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Service;
/// use lariat::webhook::{Admission, ReviewResult, Decision};
///
/// /// Denies a change of the type of a Service.
/// async fn keep_type(request: Admission<Service>) -> ReviewResult<Decision> {
///     let (old, new) = (request.old()?, request.object()?);
///     let kind = |service: &Service| service.spec.as_ref().and_then(|spec| spec.type_.clone());
///     Ok(match (old, new) {
///         (Some(old), Some(new)) if kind(old) != kind(new) => Decision::deny("the type cannot be changed"),
///         _ => Decision::allow(),
///     })
/// }
/// # let _ = keep_type;
/// ```
pub struct Admission<K> {
    inner: Arc<Inner<K>>,
}

struct Inner<K> {
    request: AdmissionRequest,
    gvk: Gvk,
    operation: Operation,
    key: ObjectKey,
    object: Object<K>,
    old: Object<K>,
    factory: SharedControllerFactory,
    deadline: Instant,
}

impl<K: DeserializeOwned> Admission<K> {
    pub(super) fn new(
        mut request: AdmissionRequest,
        operation: Operation,
        factory: SharedControllerFactory,
        deadline: Instant,
    ) -> Self {
        let kind = &request.kind;
        let gvk = Gvk::new(&kind.group, &kind.version, &kind.kind);
        let name = request.name.as_deref().unwrap_or_default();
        // For a Namespace, API servers send its own name as the namespace.
        let is_namespace = request.resource.resource == "namespaces" && kind.group.is_empty();
        let key = match request.namespace.as_deref() {
            Some(namespace) if !namespace.is_empty() && !is_namespace => {
                ObjectKey::namespaced(namespace, name)
            }
            _ => ObjectKey::cluster(name),
        };
        let object = Object::new("object", request.object.take());
        let old = Object::new("old object", request.old_object.take());
        Self {
            inner: Arc::new(Inner {
                request,
                gvk,
                operation,
                key,
                object,
                old,
                factory,
                deadline,
            }),
        }
    }

    /// Returns the object as it would be stored, or `None` for a deletion.
    ///
    /// For [`Operation::Connect`] it is the options of the connection, so a handler of connections has them as its
    /// type.
    ///
    /// # Errors
    ///
    /// The object does not decode as `K`. A handler that returns the error with `?` denies the request.
    pub fn object(&self) -> Result<Option<&Arc<K>>, Undecodable> {
        self.inner.object.get(&self.inner.gvk)
    }

    /// Returns the object as it is stored, or `None` for a creation.
    ///
    /// # Errors
    ///
    /// The object does not decode as `K`, because it was stored before the type or the schema became stricter. A
    /// handler that returns the error denies every change of such objects.
    pub fn old(&self) -> Result<Option<&Arc<K>>, Undecodable> {
        self.inner.old.get(&self.inner.gvk)
    }
}

impl<K> Admission<K> {
    /// Returns the operation.
    #[must_use]
    pub fn operation(&self) -> Operation {
        self.inner.operation
    }

    /// Returns namespace and name of the object.
    ///
    /// The name is empty if the API server will generate it.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        &self.inner.key
    }

    /// Returns the kind, in the version in which the object was sent to the webhook.
    #[must_use]
    pub fn gvk(&self) -> &Gvk {
        &self.inner.gvk
    }

    /// Returns the kind in the version in which the client sent it.
    ///
    /// It differs from [`gvk`](Self::gvk) if the API server has converted the object; see
    /// [`MatchPolicy::Equivalent`](crate::MatchPolicy::Equivalent).
    #[must_use]
    pub fn requested_gvk(&self) -> Gvk {
        match &self.inner.request.request_kind {
            Some(kind) => Gvk::new(&kind.group, &kind.version, &kind.kind),
            None => self.inner.gvk.clone(),
        }
    }

    /// Returns the plural of the resource, such as `pods`.
    #[must_use]
    pub fn resource(&self) -> &str {
        &self.inner.request.resource.resource
    }

    /// Returns the subresource, such as `status`, if there is one.
    #[must_use]
    pub fn subresource(&self) -> Option<&str> {
        let subresource = self.inner.request.sub_resource.as_deref();
        subresource.filter(|subresource| !subresource.is_empty())
    }

    /// Returns the user who sent the request.
    #[must_use]
    pub fn user(&self) -> &UserInfo {
        &self.inner.request.user_info
    }

    /// Returns whether the request is a dry run.
    ///
    /// Nothing is stored then, so a handler must not have side effects.
    #[must_use]
    pub fn is_dry_run(&self) -> bool {
        self.inner.request.dry_run.unwrap_or_default()
    }

    /// Returns the options of the request, such as a `DeleteOptions`, or null.
    #[must_use]
    pub fn options(&self) -> &Value {
        &self.inner.request.options
    }

    /// Returns the id of the review, which logs of the API server contain.
    #[must_use]
    pub fn uid(&self) -> &str {
        &self.inner.request.uid
    }

    /// Returns the JSON of the object, with fields that the type does not know.
    #[must_use]
    pub fn raw_object(&self) -> Option<&str> {
        self.inner.object.raw.as_deref().map(|raw| raw.get())
    }

    /// Returns the JSON of the old object, with fields that the type does not know.
    #[must_use]
    pub fn raw_old(&self) -> Option<&str> {
        self.inner.old.raw.as_deref().map(|raw| raw.get())
    }

    /// Returns the time until the call fails.
    ///
    /// It ends a little before the API server gives up, so that the answer arrives in time. Zero means that it is over.
    #[must_use]
    pub fn time_left(&self) -> Duration {
        self.inner
            .deadline
            .saturating_duration_since(Instant::now())
    }

    /// Returns the controller factory, whose caches the handler can read.
    #[must_use]
    pub fn factory(&self) -> &SharedControllerFactory {
        &self.inner.factory
    }

    /// Returns the shared cache of a kind.
    ///
    /// The cache may be older than the API server's state, so two concurrent requests may both pass a check against it.
    /// The first use of a kind in a program opens its watch, and the cache is empty until it has synced: open it before
    /// the server starts, with `factory.for_object::<T>().cache()`.
    ///
    /// # Panics
    ///
    /// As for [`SharedController::cache`](lariat_controller::SharedController::cache).
    #[must_use]
    pub fn cache<T>(&self) -> Cache<T>
    where
        T: kube::Resource<DynamicType = ()> + View,
        T::Scope: 'static,
    {
        self.inner.factory.for_object::<T>().cache()
    }
}

impl<K> Clone for Admission<K> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
        }
    }
}

impl<K> fmt::Debug for Admission<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admission")
            .field("uid", &self.inner.request.uid)
            .field("operation", &self.inner.operation)
            .field("gvk", &self.inner.gvk)
            .field("key", &self.inner.key)
            .finish_non_exhaustive()
    }
}
