//! Removes configurations that are no longer wanted.

use std::collections::BTreeSet;
use std::fmt::Debug;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
    ValidatingWebhookConfiguration,
};
use kube::api::{Api, DeleteParams, PartialObjectMeta, Preconditions};
use kube::{Client, Error, Resource};
use serde::de::DeserializeOwned;

use super::label::is_own;
use super::record::{MUTATING, Unwanted, VALIDATING};
use crate::error::WebhookError;

/// Removes objects by their names; each only if it has the label of the webhooks too.
///
/// An object that cannot be removed does not keep the others. Returns what is gone, as in the record, and the first
/// error.
pub(crate) async fn prune(
    client: &Client,
    webhooks: &str,
    unwanted: &Unwanted,
) -> (BTreeSet<String>, Result<(), WebhookError>) {
    let remover = Remover { client, webhooks };
    let (mut outcome, mut gone) = (Ok(()), BTreeSet::new());
    let is_recorded = |role: &str| unwanted.recorded.contains(role);
    if unwanted.validating {
        let removed = remover
            .configuration::<ValidatingWebhookConfiguration>(is_recorded(VALIDATING))
            .await;
        gone.extend(removed.is_ok().then(|| VALIDATING.to_owned()));
        outcome = outcome.and(removed);
    }
    if unwanted.mutating {
        let removed = remover
            .configuration::<MutatingWebhookConfiguration>(is_recorded(MUTATING))
            .await;
        gone.extend(removed.is_ok().then(|| MUTATING.to_owned()));
        outcome = outcome.and(removed);
    }
    for name in &unwanted.policies {
        // The binding before its policy, so that no binding refers to a missing one.
        let binding = remover
            .remove::<ValidatingAdmissionPolicyBinding>(name)
            .await;
        let removed = match binding {
            Ok(()) => remover.remove::<ValidatingAdmissionPolicy>(name).await,
            Err(error) => Err(error),
        };
        if removed.is_ok() {
            gone.insert(name.clone());
        }
        outcome = outcome.and(removed);
    }
    (gone, outcome)
}

struct Remover<'a> {
    client: &'a Client,
    webhooks: &'a str,
}

impl Remover<'_> {
    /// Removes the configuration that has the name of the webhooks.
    ///
    /// A program that may not look for it, and has no record of it, has had none.
    async fn configuration<K>(&self, is_recorded: bool) -> Result<(), WebhookError>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug,
    {
        match self.look::<K>(self.webhooks).await {
            Err(Error::Api(status)) if status.code == 403 && !is_recorded => Ok(()),
            found => self.delete::<K>(self.webhooks, found).await,
        }
    }

    async fn remove<K>(&self, name: &str) -> Result<(), WebhookError>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug,
    {
        let found = self.look::<K>(name).await;
        self.delete::<K>(name, found).await
    }

    /// Returns the metadata of an object; `None` if it is missing, or its kind is not served.
    async fn look<K>(&self, name: &str) -> Result<Option<PartialObjectMeta<K>>, Error>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug,
    {
        let api: Api<K> = Api::all(self.client.clone());
        match api.get_metadata(name).await {
            Ok(found) => Ok(Some(found)),
            Err(Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn delete<K>(
        &self,
        name: &str,
        found: Result<Option<PartialObjectMeta<K>>, Error>,
    ) -> Result<(), WebhookError>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug,
    {
        let failed = |source: Error| WebhookError::Remove {
            kind: K::kind(&()).into_owned(),
            name: name.to_owned(),
            source: Box::new(source),
        };
        let own = found.map_err(failed)?.map(|found| found.metadata);
        let Some(object) = own.filter(|object| is_own(self.webhooks, object)) else {
            return Ok(());
        };
        // Only the object that was read: another one of the name may have been created since.
        let preconditions = Some(Preconditions {
            uid: object.uid,
            resource_version: None,
        });
        let params = DeleteParams {
            preconditions,
            ..DeleteParams::default()
        };
        let api: Api<K> = Api::all(self.client.clone());
        match api.delete(name, &params).await {
            Ok(_) => {
                let kind = K::kind(&());
                tracing::info!("removed the {kind} {name}, which the webhooks no longer want");
                Ok(())
            }
            // Another replica was faster, or the object was recreated meanwhile.
            Err(Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }
}
