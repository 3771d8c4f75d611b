//! The request of an admission review.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::authentication::v1::UserInfo;
use lariat_cache::{Cache, View};
use lariat_controller::SharedControllerFactory;
use lariat_core::{Gvk, ObjectKey};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::Instant;

use super::object::{Object, Undecodable};
use super::operation::Operation;
use crate::wire::AdmissionRequest;

/// A request that a handler reviews.
///
/// A clone is the same request. The object is decoded when it is first asked for, so a deletion of an object that does
/// not fit its type can be allowed.
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
        let key = match request.namespace.as_deref() {
            Some(namespace) if !namespace.is_empty() => ObjectKey::namespaced(namespace, name),
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

    /// Returns the object as it will be; none for a deletion.
    ///
    /// For [`Operation::Connect`] it is the options of the connection, so a handler of connections decodes those.
    ///
    /// # Errors
    ///
    /// The object does not fit the type. A handler that returns the error denies the request.
    pub fn object(&self) -> Result<Option<&Arc<K>>, Undecodable> {
        self.inner.object.get(&self.inner.gvk)
    }

    /// Returns the object as it is; none for a creation.
    ///
    /// # Errors
    ///
    /// The object does not fit the type: it was stored before the type or the schema became stricter. A handler that
    /// returns the error makes such objects unchangeable.
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
    /// The name is empty if the API server is to generate it.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        &self.inner.key
    }

    /// Returns the kind, in the version of the object.
    #[must_use]
    pub fn gvk(&self) -> &Gvk {
        &self.inner.gvk
    }

    /// Returns the kind as the client sent it, which may be in another version.
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

    /// Returns the sub-resource, such as `status`.
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

    /// Returns whether nothing will be stored.
    ///
    /// A handler with side effects must have none then.
    #[must_use]
    pub fn is_dry_run(&self) -> bool {
        self.inner.request.dry_run.unwrap_or_default()
    }

    /// Returns the options of the request, such as a `DeleteOptions`; null if there are none.
    #[must_use]
    pub fn options(&self) -> &Value {
        &self.inner.request.options
    }

    /// Returns the id of the call, which logs of the API server have.
    #[must_use]
    pub fn uid(&self) -> &str {
        &self.inner.request.uid
    }

    /// Returns the object as the API server sent it, with fields that the type does not have.
    #[must_use]
    pub fn raw_object(&self) -> Option<&str> {
        self.inner.object.raw.as_deref().map(|raw| raw.get())
    }

    /// Returns the old object as the API server sent it.
    #[must_use]
    pub fn raw_old(&self) -> Option<&str> {
        self.inner.old.raw.as_deref().map(|raw| raw.get())
    }

    /// Returns the time until the call fails, which is a little before the API server gives up.
    #[must_use]
    pub fn time_left(&self) -> Duration {
        self.inner
            .deadline
            .saturating_duration_since(Instant::now())
    }

    /// Returns the factory whose caches the program shares.
    #[must_use]
    pub fn factory(&self) -> &SharedControllerFactory {
        &self.inner.factory
    }

    /// Returns the shared cache of a kind.
    ///
    /// It may be older than the API server's state, so what two clients do at once may pass a check against it. The
    /// first use of a kind by a program opens its watch, and the cache is empty until it is synced: open it before the
    /// server is started, as with `factory.for_object::<T>().cache()`.
    ///
    /// # Panics
    ///
    /// As [`SharedController::cache`](lariat_controller::SharedController::cache).
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
