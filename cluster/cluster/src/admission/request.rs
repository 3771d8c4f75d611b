//! A write that is to be admitted.

use std::sync::Arc;

use lariat_apimachinery::admission::{Attributes, Operation, Policy, Webhook};
use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::{Object, metadata_text};
use lariat_apimachinery::schema;

use crate::access::User;
use crate::journal::Mark;
use crate::registrations::Registered;
use crate::server::Server;
use crate::status::{ApiError, Warnings};
use crate::strategy;
use crate::webhooks;

/// The kinds that no webhook is asked about, so that none can lock everyone out.
// As IsExemptAdmissionConfigurationResource in webhook/predicates/rules.
const EXEMPT: [&str; 6] = [
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
];

/// Defaults and validation of the server, repeated after each mutation.
pub(crate) type Plugins<'a> = &'a (dyn Fn(&mut Object) -> Result<(), ApiError> + Sync);

/// A write that is to be admitted.
#[derive(Debug, Clone)]
pub(crate) struct Request<'a> {
    pub(crate) server: &'a Arc<Server>,
    pub(crate) resource: &'a Resource,
    pub(crate) attributes: Attributes,
    pub(crate) user: &'a User,
    pub(crate) warnings: &'a Warnings,
    /// Its position in the journal.
    pub(crate) mark: Option<Mark>,
}

impl Request<'_> {
    /// Returns the webhooks that could apply.
    pub(super) fn hooks(&self, registered: &Registered<Webhook>) -> Arc<[Arc<Webhook>]> {
        if self.is_exempt() || !webhooks::IS_BUILT {
            return Arc::new([]);
        }
        registered.all(&self.server.store)
    }

    /// Returns the policies that could apply.
    pub(super) fn policies(&self, registered: &Registered<Policy>) -> Arc<[Arc<Policy>]> {
        if self.is_exempt() {
            return Arc::new([]);
        }
        registered.all(&self.server.store)
    }

    fn is_exempt(&self) -> bool {
        let kind = &self.attributes.kind;
        kind.group() == "admissionregistration.k8s.io" && EXEMPT.contains(&kind.kind())
    }

    /// Returns the name for errors, also if the name is still to be generated.
    pub(super) fn shown_name(&self, object: Option<&Object>) -> String {
        // As extractResourceName in admission/errors.go, with its word for none.
        let in_object = |member: &str| object.map(|object| metadata_text(object, member));
        let given = Some(self.attributes.name.as_str());
        let names = [given, in_object("name"), in_object("generateName")];
        let name = names.into_iter().flatten().find(|name| !name.is_empty());
        name.unwrap_or("Unknown").to_owned()
    }

    /// Returns whether the body is an object of the resource itself.
    ///
    /// Subresources may have a kind of their own.
    pub(super) fn is_of_resource(&self) -> bool {
        self.attributes.kind == self.resource.gvk()
    }

    /// Decodes an object that a webhook or a policy has changed, as its kind.
    pub(super) fn read(&self, object: &mut Object) -> Result<(), ApiError> {
        let refuse = |reason: String| ApiError::internal_error(reason);
        if self.is_of_resource() {
            strategy::check_shape(self.resource, object)?;
            return strategy::read(self.resource, object)
                .map(drop)
                .map_err(|error| refuse(error.to_string()));
        }
        let kind = &self.attributes.kind;
        match schema::builtin(&kind.api_version(), kind.kind()) {
            Some(types) => schema::decode(types.root(), object)
                .map(drop)
                .map_err(|error| refuse(error.to_string())),
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
