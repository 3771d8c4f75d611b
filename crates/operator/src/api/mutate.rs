//! The read-change-write loop: creates an object, or changes it by a function.
//!
//! The function gets a typed value. What it changed is computed on JSON and carried over to the JSON that was read, so
//! that fields which the type does not know survive. The write carries the resource version of that state; on a
//! conflict the newest state is read and the function is called again.

use std::error::Error;

use kube::api::{Patch, PatchParams};
use lariat_cache::View;
use lariat_core::ObjectKey;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::api::{CachedApi, key_of};
use super::mutated::{Mutated, Mutation};
use super::overlay::{merge_patch, overlay};
use crate::wire::ApiError;

/// The number of attempts before a conflict is returned.
const TRIES: usize = 5;

/// The members of `metadata` that only the API server sets.
const OF_THE_SERVER: [&str; 7] = [
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
];

/// The error type of the functions that change an object.
type BoxError = Box<dyn Error + Send + Sync>;

/// The request that changes an existing object.
#[derive(Clone, Copy)]
enum How {
    Update,
    Patch,
}

/// The state of an object before and after the function.
struct Change {
    before: Value,
    after: Value,
}

impl<K: View + DeserializeOwned> CachedApi<K> {
    /// Creates an object, or changes the existing one by a function.
    ///
    /// This is controller-runtime's `CreateOrUpdate`. If there is no object of the key, the function is called with
    /// `object`, and the result is created. Otherwise it is called with the existing object, read from the cache. It
    /// sets the fields it cares about and leaves the others alone. If it changes nothing, no request is sent. If the
    /// object has changed since the cache saw it, the newest state is read from the API server and the function is
    /// called again, at most five times in all.
    ///
    /// Changes of the status and of metadata that only the API server sets are ignored. Fields that the type does not
    /// know are kept. A function that replaces a whole `spec` removes the defaults which the API server has filled in,
    /// so it sends a request in every call. Set single fields instead, or use
    /// [`Reconcile::apply`](crate::Reconcile::apply).
    ///
    /// [`create_or_patch`](Self::create_or_patch) sends only the changed fields.
    ///
    /// ```no_run
    /// use k8s_openapi::api::apps::v1::Deployment;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube::api::ObjectMeta;
    /// use lariat::operator::CachedApi;
    /// use lariat::{HandlerResult, Outcome, Reconcile};
    ///
    /// async fn reconcile(cx: Reconcile<Deployment>, config_maps: CachedApi<ConfigMap>) -> HandlerResult {
    ///     let metadata = ObjectMeta {
    ///         name: Some(cx.key().name().to_owned()),
    ///         namespace: cx.key().namespace().map(str::to_owned),
    ///         ..ObjectMeta::default()
    ///     };
    ///     let config = ConfigMap { metadata, ..ConfigMap::default() };
    ///     let done = config_maps.create_or_update(&config, |config| {
    ///         cx.set_controller(&mut config.metadata)?;
    ///         config.data.get_or_insert_default().insert("color".to_owned(), "red".to_owned());
    ///         Ok(())
    ///     });
    ///     println!("{}", done.await?.mutation);
    ///     Ok(Outcome::done())
    /// }
    /// # let _ = reconcile;
    /// ```
    ///
    /// # Errors
    ///
    /// The function fails or changes the key ([`ApiError::Function`], [`ApiError::Renamed`]), the object changes faster
    /// than it can be written ([`ApiError::is_conflict`]), the cache does not sync, or the API server refuses the
    /// request.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the object may have been written.
    pub async fn create_or_update<F>(&self, object: &K, change: F) -> Result<Mutated<K>, ApiError>
    where
        K: Serialize + kube::Resource,
        F: FnMut(&mut K) -> Result<(), BoxError> + Send,
    {
        self.mutate(object, change, How::Update).await
    }

    /// Creates an object, or patches the fields that a function changes in it.
    ///
    /// Works like [`create_or_update`](Self::create_or_update), but an existing object gets a merge patch with the
    /// changed fields only. The patch carries the resource version, so it conflicts with concurrent changes as an
    /// update does. It needs the RBAC verb `patch` instead of `update`.
    ///
    /// # Errors
    ///
    /// As for [`create_or_update`](Self::create_or_update).
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the object may have been written.
    pub async fn create_or_patch<F>(&self, object: &K, change: F) -> Result<Mutated<K>, ApiError>
    where
        K: Serialize + kube::Resource,
        F: FnMut(&mut K) -> Result<(), BoxError> + Send,
    {
        self.mutate(object, change, How::Patch).await
    }

    async fn mutate<F>(&self, object: &K, mut change: F, how: How) -> Result<Mutated<K>, ApiError>
    where
        K: Serialize + kube::Resource,
        F: FnMut(&mut K) -> Result<(), BoxError> + Send,
    {
        let key = key_of(object);
        if object.meta().name.is_none() {
            return Err(ApiError::no_name(self.gvk(), &key));
        }
        let first = self.value_of(&key, object)?;
        let mut present = self.present(&key).await?;
        for attempt in 1.. {
            let result = match present {
                Some(present) => {
                    let made = self.changed(&key, present, &mut change)?;
                    self.send_change(&key, made, how).await
                }
                None => {
                    let made = self.changed(&key, first.clone(), &mut change)?;
                    self.create_changed(&key, made).await
                }
            };
            match result {
                // Another client was faster: the object was changed, created or deleted since it was read. The cache
                // may not show that yet, so the next attempt starts from a live read.
                Err(error) if attempt < TRIES && has_moved_on(&error) => {}
                result => return result,
            }
            present = self.live_value(&key).await?;
        }
        unreachable!("the last attempt returns")
    }

    /// Returns the existing object as JSON, from the cache if it has the whole object.
    async fn present(&self, key: &ObjectKey) -> Result<Option<Value>, ApiError> {
        let cache = self.synced().await?;
        let Some(cached) = cache.store().get(key) else {
            return if self.falls_back() {
                self.live_value(key).await
            } else {
                Ok(None)
            };
        };
        // A merge onto a part of an object would delete the rest of it. The cache has only a part if it keeps metadata
        // only, or drops fields.
        if !cached.has_content() || !cache.informer().caches_unchanged("") {
            return self.live_value(key).await;
        }
        let json = cached.json().unwrap_or_default();
        self.parse("get", key, &json).map(Some)
    }

    async fn live_value(&self, key: &ObjectKey) -> Result<Option<Value>, ApiError> {
        match self.get_text(key).await {
            Ok(text) => self.parse("get", key, text.as_bytes()).map(Some),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Calls the function, and returns the object with its changes.
    fn changed(
        &self,
        key: &ObjectKey,
        before: Value,
        change: &mut (impl FnMut(&mut K) -> Result<(), BoxError> + Send),
    ) -> Result<Change, ApiError>
    where
        K: Serialize + kube::Resource,
    {
        let read = K::deserialize(&before);
        let mut typed = read.map_err(|error| self.misfit("get", key, &error))?;
        // The changes are those between two typed values, not between the JSON and a typed value: serializing the type
        // alone adds and drops fields that the function never touched.
        let known = self.value_of(key, &typed)?;
        change(&mut typed).map_err(|source| ApiError::function(self.gvk(), key, source))?;
        // A renamed object would be created beside the old one, or overwrite a third.
        if key_of(&typed) != *key {
            return Err(ApiError::renamed(self.gvk(), key, &key_of(&typed)));
        }
        let mut wanted = self.value_of(key, &typed)?;
        keep_of_the_server(&mut wanted, &known);
        let mut after = before.clone();
        overlay(&mut after, &known, &wanted);
        Ok(Change { before, after })
    }

    async fn create_changed(&self, key: &ObjectKey, made: Change) -> Result<Mutated<K>, ApiError> {
        let mut body = made.after;
        // The API server ignores a status at creation for most kinds, and stores it for those without a status
        // subresource.
        if let Some(object) = body.as_object_mut() {
            object.remove("status");
        }
        let text = self.post(key, &body).await?;
        self.mutated(key, &text, Mutation::Created)
    }

    async fn send_change(
        &self,
        key: &ObjectKey,
        made: Change,
        how: How,
    ) -> Result<Mutated<K>, ApiError> {
        let Change { before, after } = made;
        let Some(mut patch) = merge_patch(&before, &after) else {
            return self.mutated(key, &before.to_string(), Mutation::Unchanged);
        };
        let text = match how {
            How::Update => self.put(key, &after).await?,
            How::Patch => {
                // Without the resource version a merge patch would apply to any state, and two writers could each
                // overwrite what the other computed.
                patch["metadata"]["resourceVersion"] = version_of(&before).clone();
                let params = PatchParams {
                    field_manager: self.manager().map(ToOwned::to_owned),
                    ..PatchParams::default()
                };
                let patch = Patch::Merge(patch);
                self.patch_text(key, &params, &patch).await?
            }
        };
        let answer = self.parse("read", key, text.as_bytes())?;
        // A write without effect keeps the resource version. A dry run keeps it too, whatever it changes, so the
        // contents are compared as well.
        let is_same = version_of(&answer) == version_of(&before) && is_same(&answer, &before);
        let mutation = if is_same {
            Mutation::Unchanged
        } else {
            Mutation::Updated
        };
        self.mutated(key, &text, mutation)
    }

    fn mutated(
        &self,
        key: &ObjectKey,
        text: &str,
        mutation: Mutation,
    ) -> Result<Mutated<K>, ApiError> {
        let object = self.read("read", key, text)?;
        Ok(Mutated { object, mutation })
    }

    /// Returns an object as JSON, with the `apiVersion` and `kind` of this handle.
    fn value_of(&self, key: &ObjectKey, object: &K) -> Result<Value, ApiError>
    where
        K: Serialize,
    {
        let value = serde_json::to_value(object);
        let mut value = value.map_err(|error| self.misfit("encode", key, &error))?;
        if let Some(object) = value.as_object_mut() {
            object.insert("apiVersion".to_owned(), json!(self.gvk().api_version()));
            object.insert("kind".to_owned(), json!(self.gvk().kind()));
        }
        Ok(value)
    }

    fn parse(&self, verb: &'static str, key: &ObjectKey, json: &[u8]) -> Result<Value, ApiError> {
        serde_json::from_slice(json).map_err(|error| self.misfit(verb, key, &error))
    }
}

/// Returns whether an error means that the object has changed since it was read.
fn has_moved_on(error: &ApiError) -> bool {
    error.is_conflict() || error.is_already_exists() || error.is_object_missing()
}

fn version_of(object: &Value) -> &Value {
    &object["metadata"]["resourceVersion"]
}

/// Reverts changes of the status, and of metadata that only the API server sets.
fn keep_of_the_server(wanted: &mut Value, known: &Value) {
    let restore = |wanted: &mut Map<String, Value>, known: &Value, name: &str| {
        match known.get(name) {
            Some(value) => wanted.insert(name.to_owned(), value.clone()),
            None => wanted.remove(name),
        };
    };
    if let Some(object) = wanted.as_object_mut() {
        restore(object, known, "status");
    }
    if let Some(metadata) = wanted.get_mut("metadata").and_then(Value::as_object_mut) {
        for name in OF_THE_SERVER {
            restore(metadata, &known["metadata"], name);
        }
    }
}

/// Returns whether two states of an object differ at most in their managed fields.
fn is_same(one: &Value, other: &Value) -> bool {
    let without = |object: &Value| {
        let mut object = object.clone();
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        object
    };
    without(one) == without(other)
}
