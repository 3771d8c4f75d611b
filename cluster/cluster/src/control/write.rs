//! Writes of the control plane.
//!
//! They pass the same checks as those of clients, under the name of the controller.

use std::sync::Arc;

use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::Object;
use serde_json::{Value, json};

use crate::server::Server;
use crate::status::ApiError;
use crate::store::Stored;
use crate::strategy::{self, Part};
use crate::verbs::{self, Creation, Deletion};

/// Writes in the name of one controller.
#[derive(Debug, Clone, Copy)]
pub(super) struct Writer<'a> {
    pub(super) server: &'a Arc<Server>,
    /// The name under which a real cluster would know the writer.
    pub(super) manager: &'static str,
}

/// The outcome of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteOutcome {
    Done,
    /// The object is no longer in the state the writer saw.
    Raced,
    /// The server does not admit the change; the log says why.
    Refused,
}

impl Writer<'_> {
    /// Creates an object in a namespace, or outside all.
    ///
    /// # Errors
    ///
    /// As for a client: the name is taken, the namespace is missing or going, the object is invalid.
    pub(super) fn create(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        object: &Value,
    ) -> Result<(), ApiError> {
        let creation = Creation {
            server: self.server,
            resource,
            namespace,
            user: None,
            warnings: None,
            has_empty: false,
        };
        let object = object.as_object().cloned().unwrap_or_default();
        creation.create_as(self.manager, object)
    }

    /// Changes an object if it is still in the state `current`.
    pub(super) fn update(
        &self,
        resource: &Resource,
        part: Part,
        current: &Arc<Stored>,
        edit: impl FnOnce(&mut Object),
    ) -> WriteOutcome {
        let stored_as = self.stored_as(resource, current);
        let resource = stored_as.as_deref().unwrap_or(resource);
        let mut old = current.object();
        resource.set_type(&mut old);
        let mut new = old.clone();
        // The edit is made to a copy of the state that was looked at; the store refuses it if that state has been
        // replaced.
        edit(&mut new);
        // The fields that a controller leaves out get their defaults, as in a request.
        strategy::complete(resource, &mut new);
        verbs::account_as(
            self.server,
            resource,
            part,
            self.manager,
            Some(&old),
            &mut new,
        );
        if part == Part::Status {
            strategy::stamp(self.server, resource, &old, &mut new);
        }
        self.replace(resource, part, current, &old, new)
    }

    /// Applies one member of an object, by force, if the object is still in the state `current`.
    pub(super) fn apply(
        &self,
        resource: &Resource,
        part: Part,
        current: &Arc<Stored>,
        member: &str,
        value: Value,
    ) -> WriteOutcome {
        let mut old = current.object();
        resource.set_type(&mut old);
        let mut applied = Object::new();
        resource.set_type(&mut applied);
        applied.insert("metadata".into(), json!({"name": current.key().name()}));
        applied.insert(member.to_owned(), value);
        match verbs::apply_as(self.server, resource, part, self.manager, &old, &applied) {
            Some(mut new) => {
                strategy::complete(resource, &mut new);
                self.replace(resource, part, current, &old, new)
            }
            None => WriteOutcome::Refused,
        }
    }

    /// Replaces a state by a changed one, if it is admitted.
    fn replace(
        &self,
        resource: &Resource,
        part: Part,
        current: &Arc<Stored>,
        old: &Object,
        new: Object,
    ) -> WriteOutcome {
        match strategy::replacement(resource, part, old, new) {
            Ok(replacement) => match verbs::replace(self.server, resource, current, &replacement) {
                Some(_) => WriteOutcome::Done,
                None => WriteOutcome::Raced,
            },
            Err(error) => {
                let (kind, key) = (&resource.kind, current.key().as_str());
                tracing::warn!(
                    manager = self.manager,
                    kind,
                    key,
                    error = error.message(),
                    "cannot update"
                );
                WriteOutcome::Refused
            }
        }
    }

    /// Returns the resource in the state's version, if only a webhook can convert it.
    ///
    /// Controllers do not wait for webhooks, so they change objects in the version in which they are stored.
    fn stored_as(&self, resource: &Resource, current: &Stored) -> Option<Arc<Resource>> {
        resource.conversion.as_ref()?;
        let catalog = self.server.kinds.catalog();
        let mut versions = catalog.all().filter(|each| each.table == resource.table);
        versions
            .find(|each| each.head().as_bytes() == current.head())
            .cloned()
    }

    /// Deletes an object if it is still in the state `current`.
    pub(super) fn delete(
        &self,
        resource: &Resource,
        current: &Arc<Stored>,
        deletion: Deletion,
    ) -> WriteOutcome {
        if verbs::delete_once(self.server, resource, current, deletion) {
            WriteOutcome::Done
        } else {
            WriteOutcome::Raced
        }
    }

    /// Deletes an object, also if it changes meanwhile.
    pub(super) fn delete_whatever(&self, resource: &Resource, stored: &Stored, deletion: Deletion) {
        verbs::delete_as(self.server, resource, stored, deletion);
    }
}
