//! The version `v1alpha1`: one page, and a Secret by its name.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::WebsiteStatus;
use super::v1::one;

/// A page, and how it is served.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "website.demo.dev",
    version = "v1alpha1",
    kind = "Website",
    namespaced,
    shortname = "site",
    status = "WebsiteStatus",
    deprecated = "website.demo.dev/v1alpha1 Website is deprecated; use website.demo.dev/v1",
    derive = "PartialEq"
)]
#[kube(validation = Rule::new("self.metadata.name.size() <= 63").message("the name is longer than a Service can have"))]
#[serde(rename_all = "camelCase")]
pub struct WebsiteSpec {
    /// The host of the page, which no other Website has; by default `NAME.NAMESPACE.demo.dev`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub host: Option<String>,
    /// The page.
    pub html: String,
    /// The number of pods.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 10))]
    pub replicas: i32,
    /// The name of a Secret whose entries are environment variables of the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub secret: Option<String>,
}
