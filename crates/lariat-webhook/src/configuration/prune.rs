//! Removes configurations that are no longer wanted.

use std::fmt::Debug;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
    ValidatingWebhookConfiguration,
};
use kube::api::{Api, DeleteParams, ListParams, Preconditions};
use kube::{Client, Error, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use super::configurations::Configurations;
use super::label::{LABEL, label};
use crate::error::WebhookError;

/// Removes the configurations that webhooks of this name applied earlier.
///
/// An object is removed only if it has both their label and a name of theirs.
pub(super) async fn prune(
    client: &Client,
    webhooks: &str,
    configurations: &Configurations,
) -> Result<(), WebhookError> {
    let one = |is_wanted: bool| {
        if is_wanted {
            vec![webhooks]
        } else {
            Vec::new()
        }
    };
    let validating = one(configurations.validating.is_some());
    remove::<ValidatingWebhookConfiguration>(client, webhooks, &validating).await?;
    let mutating = one(configurations.mutating.is_some());
    remove::<MutatingWebhookConfiguration>(client, webhooks, &mutating).await?;
    let policies = configurations.policies.iter();
    let policies: Vec<&str> = policies
        .filter_map(|(policy, _)| policy.metadata.name.as_deref())
        .collect();
    // The binding before its policy, so that no binding refers to a missing one.
    remove::<ValidatingAdmissionPolicyBinding>(client, webhooks, &policies).await?;
    remove::<ValidatingAdmissionPolicy>(client, webhooks, &policies).await
}

async fn remove<K>(client: &Client, webhooks: &str, wanted: &[&str]) -> Result<(), WebhookError>
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug,
{
    let api: Api<K> = Api::all(client.clone());
    let failed = |source: Error| WebhookError::Remove {
        kind: K::kind(&()).into_owned(),
        webhooks: webhooks.to_owned(),
        source: Box::new(source),
    };
    let labelled = ListParams::default().labels(&format!("{LABEL}={}", label(webhooks)));
    let present = match api.list_metadata(&labelled).await {
        Ok(present) => present.items,
        // The API server does not serve the kind, so there are no objects of it.
        Err(Error::Api(status)) if status.code == 404 => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    for object in present {
        let name = object.name_any();
        // The label of a long name is only its end, so other webhooks may have the same. The full name decides.
        let is_own = name == webhooks || name.ends_with(&format!(".{webhooks}"));
        if !is_own || wanted.contains(&&*name) {
            continue;
        }
        // Only the object that was listed: another one of the name may have been created since.
        let preconditions = Some(Preconditions {
            uid: object.uid(),
            resource_version: None,
        });
        let params = DeleteParams {
            preconditions,
            ..DeleteParams::default()
        };
        match api.delete(&name, &params).await {
            Ok(_) => {
                let kind = K::kind(&());
                tracing::info!("removed the {kind} {name}, which the webhooks no longer want");
            }
            // Another replica was faster, or the object was recreated meanwhile.
            Err(Error::Api(status)) if matches!(status.code, 404 | 409) => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(())
}
