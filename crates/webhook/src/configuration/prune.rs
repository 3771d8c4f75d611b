//! Removes configurations that are no longer wanted.

use std::fmt::Debug;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
    ValidatingWebhookConfiguration,
};
use kube::api::{Api, DeleteParams, Preconditions};
use kube::{Client, Error, Resource};
use serde::de::DeserializeOwned;

use super::label::is_own;
use super::record::{MUTATING, Unwanted, VALIDATING};
use crate::error::WebhookError;

/// Removes objects by their names; each only if it has the label of the webhooks too.
///
/// An object that cannot be removed does not keep the others. Returns the first error.
pub(crate) async fn prune(
    client: &Client,
    webhooks: &str,
    unwanted: &Unwanted,
) -> Result<(), WebhookError> {
    let remover = Remover { client, webhooks };
    let mut outcome = Ok(());
    for name in &unwanted.0 {
        outcome = outcome.and(match name.as_str() {
            VALIDATING => {
                remover
                    .remove::<ValidatingWebhookConfiguration>(webhooks)
                    .await
            }
            MUTATING => {
                remover
                    .remove::<MutatingWebhookConfiguration>(webhooks)
                    .await
            }
            policy => remover.policy(policy).await,
        });
    }
    outcome
}

struct Remover<'a> {
    client: &'a Client,
    webhooks: &'a str,
}

impl Remover<'_> {
    async fn policy(&self, name: &str) -> Result<(), WebhookError> {
        // The binding before its policy, so that no binding refers to a missing one.
        self.remove::<ValidatingAdmissionPolicyBinding>(name)
            .await?;
        self.remove::<ValidatingAdmissionPolicy>(name).await
    }

    async fn remove<K>(&self, name: &str) -> Result<(), WebhookError>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug,
    {
        let failed = |source: Error| WebhookError::Remove {
            kind: K::kind(&()).into_owned(),
            name: name.to_owned(),
            source: Box::new(source),
        };
        let api: Api<K> = Api::all(self.client.clone());
        let object = match api.get_metadata(name).await {
            Ok(found) if is_own(self.webhooks, &found.metadata) => found.metadata,
            Ok(_) => return Ok(()),
            // Also if the API server does not serve the kind.
            Err(Error::Api(status)) if status.code == 404 => return Ok(()),
            Err(error) => return Err(failed(error)),
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
