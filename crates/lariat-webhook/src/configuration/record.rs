//! The record of the objects that webhooks of a name have applied.

use std::collections::BTreeSet;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingAdmissionPolicy, ValidatingWebhookConfiguration,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, PartialObjectMeta};
use kube::{Client, Error};

use super::configurations::Configurations;
use super::label::is_own;
use super::prune::Unwanted;

/// The annotation of configurations and policies with the names of all policies that were applied with them.
const APPLIED: &str = "lariat.dev/applied-policies";

/// The most names that are read from an annotation, and the longest of them.
const MOST: usize = 1_000;
const LONGEST: usize = 253;

/// What webhooks of a name have applied and not removed, as their objects say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Record {
    /// The full names of policies.
    policies: BTreeSet<String>,
}

impl Record {
    /// Reads the record from the objects that the program may read: those that it wants, and those of its name.
    pub(super) async fn read(
        client: &Client,
        webhooks: &str,
        wanted: &Configurations,
    ) -> Result<Self, Error> {
        let mut record = Self::default();
        let validating = Api::<ValidatingWebhookConfiguration>::all(client.clone());
        record.add(webhooks, metadata(&validating, webhooks).await?);
        let mutating = Api::<MutatingWebhookConfiguration>::all(client.clone());
        record.add(webhooks, metadata(&mutating, webhooks).await?);
        let policies = Api::<ValidatingAdmissionPolicy>::all(client.clone());
        for name in wanted.policy_names() {
            record.add(webhooks, metadata(&policies, name).await?);
        }
        Ok(record)
    }

    fn add(&mut self, webhooks: &str, found: Option<ObjectMeta>) {
        let Some(found) = found.filter(|found| is_own(webhooks, found)) else {
            return;
        };
        let annotations = found.annotations.unwrap_or_default();
        let names = annotations.get(APPLIED).map_or("", String::as_str);
        let names = names.split(' ').take(MOST);
        // Anyone who may change the object may write the annotation.
        let ending = format!(".{webhooks}");
        let names = names.filter(|name| name.len() <= LONGEST && name.ends_with(&ending));
        self.policies.extend(names.map(str::to_owned));
    }

    /// Returns what is recorded, or was removed according to the program, and is not wanted.
    pub(super) fn unwanted(
        &self,
        removed: impl IntoIterator<Item = String>,
        wanted: &Configurations,
    ) -> Unwanted {
        let mut policies = self.policies.clone();
        policies.extend(removed);
        for name in wanted.policy_names() {
            policies.remove(name);
        }
        Unwanted {
            validating: wanted.validating.is_none(),
            mutating: wanted.mutating.is_none(),
            policies,
        }
    }

    /// Adds the record, with the names that are wanted and without those that are gone, to the annotations of all
    /// objects.
    pub(super) fn annotate(&self, gone: &BTreeSet<String>, configurations: &mut Configurations) {
        let wanted = configurations.policy_names().map(str::to_owned);
        let recorded = self.policies.iter().filter(|name| !gone.contains(*name));
        let all: BTreeSet<String> = wanted.chain(recorded.cloned()).collect();
        if all.is_empty() {
            return;
        }
        let text = all.into_iter().collect::<Vec<_>>().join(" ");
        let validating = configurations.validating.iter_mut();
        let mutating = configurations.mutating.iter_mut();
        let policies = configurations.policies.iter_mut();
        let metadata = validating
            .map(|it| &mut it.metadata)
            .chain(mutating.map(|it| &mut it.metadata))
            .chain(policies.map(|(policy, _)| &mut policy.metadata));
        for metadata in metadata {
            let annotations = metadata.annotations.get_or_insert_default();
            annotations.insert(APPLIED.to_owned(), text.clone());
        }
    }
}

/// Returns the metadata of an object; `None` if it is missing or may not be read.
pub(super) async fn metadata<K>(api: &Api<K>, name: &str) -> Result<Option<ObjectMeta>, Error>
where
    K: serde::de::DeserializeOwned + Clone + std::fmt::Debug,
{
    match api.get_metadata(name).await {
        Ok(PartialObjectMeta { metadata, .. }) => Ok(Some(metadata)),
        // Roles have only the objects that this release needs. API servers may not serve the kind.
        Err(Error::Api(status)) if matches!(status.code, 403 | 404) => Ok(None),
        Err(error) => Err(error),
    }
}
