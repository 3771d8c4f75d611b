//! Runs admission for a write: mutation first, then validation.

use lariat_apimachinery::object::Object;

use super::request::{Plugins, Request};
use super::{mutation, policies, validation};
use crate::status::ApiError;

impl Request<'_> {
    /// Runs the mutating admission that is registered for an operation.
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
        let registrations = &self.server.registrations;
        let hooks = self.hooks(&registrations.mutating_webhooks);
        let registered = self.policies(&registrations.mutating_policies);
        if hooks.is_empty() && registered.is_empty() {
            return Ok(object);
        }
        mutation::mutate(self, (&registered, &hooks), plugins, (old, object)).await
    }

    /// Runs the validating admission for an object that is to be stored.
    ///
    /// # Errors
    ///
    /// As for [`mutate`](Self::mutate).
    pub(crate) async fn validate(
        &self,
        old: Option<&Object>,
        object: Option<&Object>,
    ) -> Result<(), ApiError> {
        let registrations = &self.server.registrations;
        let registered = self.policies(&registrations.validating_policies);
        if !registered.is_empty() {
            // Policies before webhooks, as in the plugin order of kube-apiserver: they cost no request, and what they
            // refuse is not sent to any webhook.
            policies::validate(self, &registered, old, object).await?;
        }
        let hooks = self.hooks(&registrations.validating_webhooks);
        if hooks.is_empty() {
            return Ok(());
        }
        validation::validate(self, &hooks, old, object).await
    }

    /// Returns whether nothing is registered that could apply.
    pub(crate) fn is_void(&self) -> bool {
        let registrations = &self.server.registrations;
        self.hooks(&registrations.mutating_webhooks).is_empty()
            && self.hooks(&registrations.validating_webhooks).is_empty()
            && self.policies(&registrations.mutating_policies).is_empty()
            && self.policies(&registrations.validating_policies).is_empty()
    }

    /// Runs the validating admission for a new object of a given name.
    ///
    /// # Errors
    ///
    /// As for [`mutate`](Self::mutate).
    pub(crate) async fn validate_new(&self, name: &str, object: &Object) -> Result<(), ApiError> {
        if !self.attributes.name.is_empty() {
            return self.validate(None, Some(object)).await;
        }
        // The name was generated after the attributes were made.
        let mut named = self.clone();
        name.clone_into(&mut named.attributes.name);
        named.validate(None, Some(object)).await
    }

    /// Runs admission for the deletion of an object.
    ///
    /// # Errors
    ///
    /// As for [`mutate`](Self::mutate).
    pub(crate) async fn delete(&self, old: &Object) -> Result<(), ApiError> {
        let hooks = self.hooks(&self.server.registrations.mutating_webhooks);
        if !hooks.is_empty() {
            mutation::ask(self, &hooks, old).await?;
        }
        self.validate(Some(old), None).await
    }
}
