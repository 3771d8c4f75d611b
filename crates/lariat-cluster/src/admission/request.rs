//! A write that is to be admitted.

use lariat_apimachinery::admission::{Attributes, Operation, Webhook};
use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::Object;
use lariat_apimachinery::schema;

use super::caller;
use crate::access::User;
use crate::journal::Mark;
use crate::registrations::Registered;
use crate::server::Server;
use crate::status::{ApiError, Warnings};
use crate::strategy;

/// The kinds that no webhook is asked about, so that none can lock everyone out.
const EXEMPT: [&str; 6] = [
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
];

/// What the server itself fills in and refuses; it is done again when something has changed the object.
pub(crate) type Plugins<'a> = &'a (dyn Fn(&mut Object) -> Result<(), ApiError> + Sync);

/// A write that is to be admitted.
#[derive(Debug, Clone)]
pub(crate) struct Request<'a> {
    pub(crate) server: &'a Server,
    pub(crate) resource: &'a Resource,
    pub(crate) attributes: Attributes,
    pub(crate) user: &'a User,
    pub(crate) warnings: &'a Warnings,
    /// Where the journal has it.
    pub(crate) mark: Option<Mark>,
}

impl Request<'_> {
    /// Changes an object as is registered for what happens to it.
    ///
    /// `old` is its present state. If nothing is registered, nothing is done, and not even `plugins` are called.
    ///
    /// # Errors
    ///
    /// Something refuses it, or cannot be asked and must be.
    pub(crate) async fn mutate(
        &self,
        plugins: Plugins<'_>,
        old: Option<&Object>,
        object: Object,
    ) -> Result<Object, ApiError> {
        let hooks = self.hooks(&self.server.registrations.mutating_webhooks);
        if hooks.is_empty() {
            return Ok(object);
        }
        super::mutation::mutate(self, &hooks, plugins, (old, object)).await
    }

    /// Asks what is registered whether an object may become what it is to be.
    ///
    /// # Errors
    ///
    /// As for [`mutate`](Self::mutate).
    pub(crate) async fn validate(
        &self,
        old: Option<&Object>,
        object: Option<&Object>,
    ) -> Result<(), ApiError> {
        let hooks = self.hooks(&self.server.registrations.validating_webhooks);
        if hooks.is_empty() {
            return Ok(());
        }
        super::validation::validate(self, &hooks, old, object).await
    }

    /// Returns whether nothing is registered that could apply.
    pub(crate) fn is_void(&self) -> bool {
        let registrations = &self.server.registrations;
        self.hooks(&registrations.mutating_webhooks).is_empty()
            && self.hooks(&registrations.validating_webhooks).is_empty()
    }

    /// Asks what is registered whether an object of a name may be created.
    ///
    /// # Errors
    ///
    /// As for [`mutate`](Self::mutate).
    pub(crate) async fn validate_new(&self, name: &str, object: &Object) -> Result<(), ApiError> {
        if !self.attributes.name.is_empty() {
            return self.validate(None, Some(object)).await;
        }
        let mut named = self.clone();
        name.clone_into(&mut named.attributes.name);
        named.validate(None, Some(object)).await
    }

    /// Asks what is registered whether an object may be deleted.
    ///
    /// # Errors
    ///
    /// As for [`mutate`](Self::mutate).
    pub(crate) async fn delete(&self, old: &Object) -> Result<(), ApiError> {
        let hooks = self.hooks(&self.server.registrations.mutating_webhooks);
        if !hooks.is_empty() {
            super::mutation::ask(self, &hooks, old).await?;
        }
        self.validate(Some(old), None).await
    }

    /// Returns the webhooks that could apply.
    fn hooks(&self, registered: &Registered<Webhook>) -> std::sync::Arc<[std::sync::Arc<Webhook>]> {
        let kind = &self.attributes.kind;
        let is_exempt =
            kind.group() == "admissionregistration.k8s.io" && EXEMPT.contains(&kind.kind());
        if is_exempt || !caller::IS_BUILT {
            return std::sync::Arc::new([]);
        }
        registered.all(&self.server.store)
    }

    /// Returns whether what is sent is an object of the resource, and not of a kind for one of its subresources.
    pub(super) fn is_of_resource(&self) -> bool {
        self.attributes.kind == self.resource.gvk()
    }

    /// Puts what something made of an object into the form of its kind.
    pub(super) fn read(&self, object: &mut Object) -> Result<(), ApiError> {
        let refuse = |reason: String| ApiError::internal_error(reason);
        if self.is_of_resource() {
            strategy::check_shape(self.resource, object)?;
            return strategy::read(self.resource, object)
                .map(drop)
                .map_err(|misfit| refuse(misfit.to_string()));
        }
        let kind = &self.attributes.kind;
        match schema::builtin(&kind.api_version(), kind.kind()) {
            Some(types) => schema::decode(types.root(), object)
                .map(drop)
                .map_err(|misfit| refuse(misfit.to_string())),
            None => Ok(()),
        }
    }

    /// Notes something for the audit log.
    pub(super) fn annotate(&self, key: String, value: String) {
        if let Some(mark) = self.mark {
            self.server.journal.annotate(mark, key, value);
        }
    }

    pub(super) fn is_write_of_namespace(&self) -> bool {
        let Attributes {
            resource,
            subresource,
            operation,
            ..
        } = &self.attributes;
        resource.plural == "namespaces"
            && subresource.is_empty()
            && matches!(operation, Operation::Create | Operation::Update)
    }
}
