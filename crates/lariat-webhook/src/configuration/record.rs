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

/// The annotation of configurations and policies with all that was applied with them: roles, and names of policies.
const APPLIED: &str = "lariat.dev/applied";

/// The configurations in the annotation, which have the name of the webhooks. Names of policies have dots.
pub(super) const VALIDATING: &str = "validating";
pub(super) const MUTATING: &str = "mutating";

/// The most names that are read from an annotation, and the longest of them.
const MOST: usize = 1_000;
const LONGEST: usize = 253;

/// What webhooks of a name have applied and not removed, as their objects say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Record {
    /// Roles of configurations, and full names of policies.
    applied: BTreeSet<String>,
}

/// The objects that webhooks of a name may have applied earlier, and that are not wanted any more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Unwanted {
    pub(super) validating: bool,
    pub(super) mutating: bool,
    /// The full names of policies.
    pub(super) policies: BTreeSet<String>,
    /// The part of the record that is not wanted.
    pub(super) recorded: BTreeSet<String>,
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
        let names = names.filter(|name| {
            let is_policy = name.len() <= LONGEST && name.ends_with(&ending);
            is_policy || [VALIDATING, MUTATING].contains(name)
        });
        self.applied.extend(names.map(str::to_owned));
    }

    /// Returns what is recorded, or was removed according to the program, and is not wanted.
    pub(super) fn unwanted(
        &self,
        removed: impl IntoIterator<Item = String>,
        wanted: &Configurations,
    ) -> Unwanted {
        let mut recorded = self.applied.clone();
        for name in wanted_names(wanted) {
            recorded.remove(&name);
        }
        let is_policy = |name: &&String| name.contains('.');
        let mut policies: BTreeSet<String> = recorded.iter().filter(is_policy).cloned().collect();
        policies.extend(removed);
        for name in wanted.policy_names() {
            policies.remove(name);
        }
        Unwanted {
            validating: wanted.validating.is_none(),
            mutating: wanted.mutating.is_none(),
            policies,
            recorded,
        }
    }

    /// Adds the record, with the names that are wanted and without those that are gone, to the annotations of all
    /// objects.
    pub(super) fn annotate(&self, gone: &BTreeSet<String>, configurations: &mut Configurations) {
        let mut all = wanted_names(configurations);
        let recorded = self.applied.iter().filter(|name| !gone.contains(*name));
        all.extend(recorded.cloned());
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

/// Returns what is applied, as in the annotation.
fn wanted_names(wanted: &Configurations) -> BTreeSet<String> {
    let roles = [
        (VALIDATING, wanted.validating.is_some()),
        (MUTATING, wanted.mutating.is_some()),
    ];
    let roles = roles.into_iter().filter(|(_, is_wanted)| *is_wanted);
    let names = roles.map(|(role, _)| role).chain(wanted.policy_names());
    names.map(str::to_owned).collect()
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
