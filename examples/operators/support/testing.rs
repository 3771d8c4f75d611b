//! Helpers for the tests of the examples.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use lariat::cluster::testing::wait_for_condition;
use lariat::kube::api::{Api, PostParams};
use lariat::kube::{Client, CustomResourceExt, ResourceExt};

/// Installs a CRD.
pub(crate) async fn define<K: CustomResourceExt>(client: &Client) {
    let definition = K::crd();
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let created = definitions
        .create(&PostParams::default(), &definition)
        .await;
    created.expect("the API server takes the CRD");
    let name = definition.name_any();
    let established = wait_for_condition(&definitions, &name, "Established").await;
    established.expect("the kind is served");
}
