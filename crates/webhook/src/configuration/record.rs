//! The record of the objects that webhooks of a name have applied.

use std::collections::BTreeSet;
use std::fmt::Debug;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
    ValidatingWebhookConfiguration,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, PartialObjectMeta};
use kube::{Client, Error, Resource};
use serde::de::DeserializeOwned;

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

/// The objects that webhooks of a name have applied and not removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Record {
    /// Roles of configurations, and full names of policies.
    applied: BTreeSet<String>,
}

/// The recorded objects that are not wanted any more.
///
/// They are roles of configurations, and full names of policies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Unwanted(pub(super) BTreeSet<String>);

impl Record {
    /// Reads the record from the objects that the program may read: those that it wants, and those of its name.
    ///
    /// Unwanted objects that do not exist any more are left out. Each read looks for them: a replica of an earlier
    /// release may have applied one again.
    pub(super) async fn read(
        client: &Client,
        webhooks: &str,
        wanted: &Configurations,
    ) -> Result<Self, Error> {
        let mut record = Self::default();
        let validating = look::<ValidatingWebhookConfiguration>(client, webhooks, webhooks).await?;
        let mutating = look::<MutatingWebhookConfiguration>(client, webhooks, webhooks).await?;
        record.add(webhooks, &validating);
        record.add(webhooks, &mutating);
        for name in wanted.policy_names() {
            let policy = look::<ValidatingAdmissionPolicy>(client, webhooks, name).await?;
            record.add(webhooks, &policy);
        }
        record.set(VALIDATING, &validating);
        record.set(MUTATING, &mutating);
        for name in record.unwanted([], wanted).0 {
            if name.contains('.') && !exists(client, webhooks, &name).await? {
                record.applied.remove(&name);
            }
        }
        Ok(record)
    }

    /// Corrects the record of a role by what was found.
    fn set(&mut self, role: &str, found: &Look) {
        match found {
            Look::Own(_) => drop(self.applied.insert(role.to_owned())),
            Look::Absent => drop(self.applied.remove(role)),
            Look::Forbidden => {}
        }
    }

    fn add(&mut self, webhooks: &str, found: &Look) {
        let Look::Own(found) = found else {
            return;
        };
        let annotations = found.annotations.as_ref();
        let names = annotations.and_then(|annotations| annotations.get(APPLIED));
        let names = names.map_or("", String::as_str);
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
        let mut all: BTreeSet<String> = removed.into_iter().collect();
        all.extend(self.applied.iter().cloned());
        Unwanted(&all - &wanted_names(wanted))
    }

    /// Annotates all objects with the record and the names that are wanted.
    pub(super) fn annotate(&self, configurations: &mut Configurations) {
        let all = &wanted_names(configurations) | &self.applied;
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

/// An object of a name, as far as the program may read it.
enum Look {
    /// It has the label of the webhooks.
    Own(Box<ObjectMeta>),
    /// There is none, or one of others.
    Absent,
    Forbidden,
}

async fn look<K>(client: &Client, webhooks: &str, name: &str) -> Result<Look, Error>
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug,
{
    let api: Api<K> = Api::all(client.clone());
    match api.get_metadata(name).await {
        Ok(PartialObjectMeta { metadata, .. }) if is_own(webhooks, &metadata) => {
            Ok(Look::Own(Box::new(metadata)))
        }
        Ok(_) => Ok(Look::Absent),
        // Also if the API server does not serve the kind.
        Err(Error::Api(status)) if status.code == 404 => Ok(Look::Absent),
        // Roles have only the objects that this release needs.
        Err(Error::Api(status)) if status.code == 403 => Ok(Look::Forbidden),
        Err(error) => Err(error),
    }
}

/// Returns whether a policy or its binding exists, or may not be read.
async fn exists(client: &Client, webhooks: &str, name: &str) -> Result<bool, Error> {
    let binding = look::<ValidatingAdmissionPolicyBinding>(client, webhooks, name).await?;
    if !matches!(binding, Look::Absent) {
        return Ok(true);
    }
    let policy = look::<ValidatingAdmissionPolicy>(client, webhooks, name).await?;
    Ok(!matches!(policy, Look::Absent))
}
