//! A creation without its request: an object is stored or refused.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::FutureExt;
use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::{Object, metadata_mut, metadata_text};
use lariat_apimachinery::validation;
use lariat_core::ObjectKey;

use super::{admit, normalize, ownership, signers, storage_limits};
use crate::access::User;
use crate::admission::{self, Request};
use crate::conversion;
use crate::server::Server;
use crate::status::{ApiError, Warnings};
use crate::store::{Draft, Stored, Write, WriteError};
use crate::strategy::{self, Part};
use crate::verbs::call::Call;

/// The number of generated names that are tried before a clash is reported.
// As maxNameGenerationCreateAttempts in Go's generic registry.
const NAME_ATTEMPTS: usize = 8;

/// The creation of an object: its resource, namespace and client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Creation<'a> {
    pub(crate) server: &'a Server,
    pub(crate) resource: &'a Resource,
    pub(crate) namespace: Option<&'a str>,
    /// The client that creates it, if it is one.
    pub(crate) user: Option<&'a User>,
    /// Collects the warnings about it, if a client hears of them.
    pub(crate) warnings: Option<&'a Warnings>,
    /// Whether it was sent with a map without items that counts and is not kept: the overhead of a Pod.
    pub(crate) has_empty: bool,
}

/// The result of a creation.
#[derive(Debug)]
pub(super) enum Created {
    Stored(Arc<Stored>),
    /// The object that a dry run would have stored.
    DryRun(Object),
}

impl<'a> Creation<'a> {
    /// Returns the creation that a request asks for.
    pub(super) fn of(call: &'a Call) -> Self {
        Self {
            server: &call.server,
            resource: &call.resource,
            namespace: call.namespace(),
            user: Some(&call.user),
            warnings: Some(&call.warnings),
            has_empty: call.has_empty.load(Ordering::Relaxed),
        }
    }
}

impl Creation<'_> {
    /// Creates an object in the name of a part of the server.
    ///
    /// # Errors
    ///
    /// As for a client: the name is taken, the namespace is missing or going, the object is invalid.
    pub(crate) fn create_as(&self, manager: &str, mut object: Object) -> Result<(), ApiError> {
        self.resource.set_type(&mut object);
        let read = strategy::read(self.resource, &mut object);
        read.map_err(|reason| normalize::refuse_body(self.resource, &reason.to_string()))?;
        strategy::deduplicate_owners(&mut object);
        let part = Part::Main;
        ownership::account_as(self.server, self.resource, part, manager, None, &mut object);
        // Without a request nothing is asked over the network, so nothing is waited for.
        let stored = self.store(object, false, None).now_or_never();
        stored.map_or(Ok(()), |stored| stored.map(drop))
    }

    /// Creates an object whose fields have owners; generates its name if it has none.
    ///
    /// With a request, admission decides whether the object may be stored.
    pub(super) async fn store(
        &self,
        mut sent: Object,
        dry_run: bool,
        request: Option<Request<'_>>,
    ) -> Result<Created, ApiError> {
        let generated = metadata_text(&sent, "name").is_empty();
        let version = metadata_text(&sent, "resourceVersion").to_owned();
        let attempts = if generated { NAME_ATTEMPTS } else { 1 };
        for attempt in 1..=attempts {
            let namespace = self.check_admission(shown_name(&sent))?;
            let candidate = if attempt < attempts {
                sent.clone()
            } else {
                std::mem::take(&mut sent)
            };
            // Every attempt generates a name and a uid of its own.
            let mut object = admit::create(self, candidate, dry_run)?;
            self.warn(&object);
            let name = metadata_text(&object, "name").to_owned();
            self.check_plugins(namespace.as_deref(), &object, request.as_ref())?;
            if let Some(request) = &request {
                request.validate_new(&name, &object).await?;
            }
            let key = self.resource.key(self.namespace, &name);
            // The storage refuses it, which a dry run does not get to.
            if !dry_run && version.parse().is_ok_and(|version: u64| version != 0) {
                let message = "resourceVersion should not be set on objects to be created";
                return Err(ApiError::internal(message));
            }
            if let Some(existing) = self.server.store.get(self.resource.table, &key) {
                if attempt < attempts {
                    continue;
                }
                let deleting = existing.is_deleting();
                return Err(ApiError::already_exists(
                    self.resource,
                    key.name(),
                    deleting,
                ));
            }
            if dry_run {
                strategy::check_quotas(self.server, self.resource, &object, None, Part::Main)?;
                // No storage has given it another one.
                if !version.is_empty() {
                    metadata_mut(&mut object).insert("resourceVersion".into(), version.into());
                }
                return Ok(Created::DryRun(object));
            }
            let mut object = conversion::stored(self.server, self.resource, object).await?;
            storage_limits::fit(self.resource, &key, &mut object)?;
            match self.commit_in_quota(&key, &object)? {
                Ok(stored) => return Ok(Created::Stored(stored)),
                Err(WriteError::Raced) if attempt < attempts => {}
                Err(refused) => return Err(self.refusal(refused, key.name())),
            }
        }
        unreachable!("the last attempt returns")
    }

    /// Runs the server's own preparation of an object, before webhooks are called.
    pub(super) fn admit(&self, object: &mut Object) -> Result<(), ApiError> {
        self.check_admission(shown_name(object))?;
        admit::place_new(self, object)?;
        strategy::admit_create(self.server, self.resource, object)
    }

    /// Runs the plugins of the server that look at valid objects.
    fn check_plugins(
        &self,
        namespace: Option<&Stored>,
        object: &Object,
        request: Option<&Request<'_>>,
    ) -> Result<(), ApiError> {
        strategy::check_limits(self.server, self.resource, object, None)?;
        admission::check_new_pods(self.resource, namespace, object, request)?;
        strategy::check_overhead(self.server, self.resource, object, self.has_empty)?;
        signers::check_subject(self.resource, object)
    }

    /// Warns about a valid object.
    ///
    /// As `BeforeCreate`, so before validating admission and the storage, which may still refuse it.
    fn warn(&self, object: &Object) {
        let Some(warnings) = self.warnings else {
            return;
        };
        for text in validation::warnings(self.resource, object, None, validation::Part::Main) {
            warnings.add(text);
        }
    }

    /// Stores an object, unless a quota is exceeded.
    fn commit_in_quota(
        &self,
        key: &ObjectKey,
        object: &Object,
    ) -> Result<Result<Arc<Stored>, WriteError>, ApiError> {
        // Held until the commit: two creations must not both take the last that a quota has left.
        let held = self.resource.namespaced.then(|| self.server.hold_quotas());
        strategy::check_quotas(self.server, self.resource, object, None, Part::Main)?;
        let committed = self.commit(key, object);
        drop(held);
        Ok(committed)
    }

    fn commit(&self, key: &ObjectKey, object: &Object) -> Result<Arc<Stored>, WriteError> {
        let namespaces = self.server.kinds.namespaces;
        self.server.store.commit(Write {
            table: self.resource.table,
            key,
            expected: None,
            draft: Some(Draft::new(object)),
            namespaces: self.resource.namespaced.then_some(namespaces),
            terminating: Some(&self.resource.terminating),
        })
    }

    /// Refuses creations in a missing or terminating namespace, or of such a kind; returns the namespace.
    pub(super) fn check_admission(&self, name: &str) -> Result<Option<Arc<Stored>>, ApiError> {
        if self.resource.is_terminating() {
            return Err(self.refusal(WriteError::KindTerminating, name));
        }
        // Looked at early for the answer's sake. What counts is the same check under the lock of the commit.
        let Some(namespace) = self.namespace.filter(|_| self.resource.namespaced) else {
            return Ok(None);
        };
        let key = ObjectKey::cluster(namespace);
        match self.server.store.get(self.server.kinds.namespaces, &key) {
            None => Err(self.refusal(WriteError::NamespaceMissing, name)),
            Some(stored) if stored.is_deleting() => {
                Err(self.refusal(WriteError::NamespaceTerminating, name))
            }
            found => Ok(found),
        }
    }

    fn refusal(&self, refused: WriteError, name: &str) -> ApiError {
        let namespace = self.namespace.unwrap_or_default();
        match refused {
            // A creation expects no object, so it loses only to one that has its name.
            WriteError::Raced => ApiError::already_exists(self.resource, name, false),
            WriteError::KindTerminating => {
                let reason = "create not allowed while custom resource definition is terminating";
                ApiError::forbidden(self.resource, name, reason)
            }
            WriteError::NamespaceTerminating => {
                ApiError::namespace_terminating(self.resource, name, namespace)
            }
            WriteError::NamespaceMissing => ApiError::namespace_not_found(namespace),
        }
    }
}

/// Returns the name of a new object as refusals show it: a name that is still to be made is shown by its prefix.
fn shown_name(object: &Object) -> &str {
    match metadata_text(object, "name") {
        "" => metadata_text(object, "generateName"),
        name => name,
    }
}
