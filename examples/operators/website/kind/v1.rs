//! The version `v1`: the hub, which is stored.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::WebsiteStatus;

/// Pages, and how they are served.
///
/// Defaults that are always the same are in the schema. The host depends on the name, so a webhook sets it.
#[allow(clippy::duplicated_attributes, reason = "both columns are texts")]
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "website.demo.dev",
    version = "v1",
    kind = "Website",
    namespaced,
    shortname = "site",
    status = "WebsiteStatus",
    derive = "PartialEq"
)]
// Its pods carry the name as a label, and a Service has no longer one.
#[kube(validation = Rule::new("self.metadata.name.size() <= 63").message("the name is longer than a Service can have"))]
#[kube(printcolumn(name = "Host", type_ = "string", json_path = ".spec.host"))]
#[kube(printcolumn(
    name = "Ready",
    type_ = "string",
    json_path = ".status.conditions[?(@.type==\"Ready\")].status"
))]
#[serde(rename_all = "camelCase")]
pub struct WebsiteSpec {
    /// The host of the pages, which no other Website has; by default `NAME.NAMESPACE.demo.dev`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub host: Option<String>,
    /// The pages by the names of their files; one is `index.html`.
    pub pages: BTreeMap<String, String>,
    /// The number of pods.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 10))]
    pub replicas: i32,
    /// The image of a web server that serves `/usr/share/nginx/html` at port 80.
    #[serde(default = "image")]
    #[schemars(length(min = 1, max = 253))]
    pub image: String,
    /// A Secret whose entries are environment variables of the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretReference>,
}

/// A Secret in the namespace of the Website.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SecretReference {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

pub(super) fn one() -> i32 {
    1
}

pub(super) fn image() -> String {
    "nginx:1.29-alpine".to_owned()
}
