//! The kind Website in two versions, and how one becomes the other.
//!
//! `v1` is the hub and is stored. `v1alpha1` cannot hold all of it; what it cannot is in an annotation, so that nothing
//! is lost on the way back.

pub mod v1;
pub mod v1alpha1;

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use lariat::kube::CustomResourceExt;
use lariat::kube::core::crd::{MergeError, merge_crds};
use lariat::webhook::Conversion;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of the page that every Website has.
pub const INDEX: &str = "index.html";
/// The annotation of the version `v1alpha1` with what it has no fields for, as JSON.
pub const REST: &str = "website.demo.dev/v1";

/// The observed state, in both versions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebsiteStatus {
    /// The number of pods that serve the pages.
    #[serde(default)]
    pub ready_replicas: i32,
    /// Where the pages are, once they are served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// `Ready`: whether all objects are as wanted, and ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// What `v1` has and `v1alpha1` has not.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Rest {
    #[serde(default = "v1::image")]
    image: String,
    #[serde(default)]
    pages: BTreeMap<String, String>,
}

/// Returns the definition of both versions.
///
/// # Errors
///
/// The versions do not fit together.
pub fn definition() -> Result<CustomResourceDefinition, MergeError> {
    let versions = vec![v1alpha1::Website::crd(), v1::Website::crd()];
    merge_crds(versions, "v1")
}

/// Returns the conversion of the versions.
pub fn conversion() -> Conversion<v1::Website> {
    Conversion::<v1::Website>::hub().version::<v1alpha1::Website>()
}

impl TryFrom<v1alpha1::Website> for v1::Website {
    type Error = String;

    fn try_from(old: v1alpha1::Website) -> Result<Self, String> {
        let mut metadata = old.metadata;
        let annotations = metadata.annotations.as_mut();
        let rest: Rest = match annotations.and_then(|all| all.remove(REST)) {
            Some(text) => serde_json::from_str(&text)
                .map_err(|error| format!("the annotation {REST} cannot be read: {error}"))?,
            None => Rest {
                image: v1::image(),
                ..Rest::default()
            },
        };
        metadata.annotations.take_if(|all| all.is_empty());
        let v1alpha1::WebsiteSpec {
            host,
            html,
            replicas,
            secret,
        } = old.spec;
        let mut pages = rest.pages;
        pages.insert(INDEX.to_owned(), html);
        let spec = v1::WebsiteSpec {
            host,
            pages,
            replicas,
            image: rest.image,
            secret_ref: secret.map(|name| v1::SecretReference { name }),
        };
        Ok(Self {
            metadata,
            spec,
            status: old.status,
        })
    }
}

impl TryFrom<v1::Website> for v1alpha1::Website {
    type Error = serde_json::Error;

    fn try_from(new: v1::Website) -> Result<Self, serde_json::Error> {
        let mut metadata = new.metadata;
        let v1::WebsiteSpec {
            host,
            mut pages,
            replicas,
            image,
            secret_ref,
        } = new.spec;
        let html = pages.remove(INDEX).unwrap_or_default();
        if !pages.is_empty() || image != v1::image() {
            let rest = serde_json::to_string(&Rest { image, pages })?;
            let annotations = metadata.annotations.get_or_insert_default();
            annotations.insert(REST.to_owned(), rest);
        }
        let spec = v1alpha1::WebsiteSpec {
            host,
            html,
            replicas,
            secret: secret_ref.map(|secret| secret.name),
        };
        Ok(Self {
            metadata,
            spec,
            status: new.status,
        })
    }
}
