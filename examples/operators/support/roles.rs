//! Operators with exactly the permissions they declare.

use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, RoleRef, Subject};
use lariat::cluster::testing::TestCluster;
use lariat::cluster::{Cluster, User};
use lariat::kube::api::{Api, ObjectMeta, PostParams};
use lariat::{Operator, SharedControllerFactory};

const ACCOUNT: &str = "operator";

/// Starts a cluster that evaluates RBAC, and creates an operator with a ServiceAccount without permissions.
pub(crate) async fn with_roles() -> (TestCluster, Operator) {
    let builder = Cluster::builder().rbac();
    let builder = builder.token_of("sesame", User::new(ACCOUNT).group("system:authenticated"));
    let cluster = builder.for_test().await;
    let client = cluster.client_with_token("sesame");
    let factory = SharedControllerFactory::builder(client).build();
    (cluster, Operator::new("operator", &factory))
}

/// Grants the operator the rules of its reconcilers in all namespaces; it checks them at its start.
pub(crate) async fn grant(cluster: &Cluster, operator: &Operator) {
    let (client, params) = (cluster.client(), PostParams::default());
    let role = operator.cluster_role(ACCOUNT).await.expect("it is known");
    let created = Api::all(client.clone()).create(&params, &role).await;
    created.expect("it is a role");
    let binding = ClusterRoleBinding {
        metadata: ObjectMeta {
            name: Some(ACCOUNT.to_owned()),
            ..ObjectMeta::default()
        },
        role_ref: RoleRef {
            api_group: Some("rbac.authorization.k8s.io".to_owned()),
            kind: "ClusterRole".to_owned(),
            name: ACCOUNT.to_owned(),
        },
        subjects: Some(vec![Subject {
            api_group: Some("rbac.authorization.k8s.io".to_owned()),
            kind: "User".to_owned(),
            name: ACCOUNT.to_owned(),
            namespace: None,
        }]),
    };
    let created = Api::all(client).create(&params, &binding).await;
    created.expect("it is a binding");
    operator.checks_access();
}

/// Checks that no request of the operator was forbidden.
pub(crate) fn assert_nothing_was_forbidden(cluster: &Cluster) {
    let requests = cluster.journal().requests();
    let forbidden = requests
        .iter()
        .filter(|request| request.code == Some(http::StatusCode::FORBIDDEN));
    let forbidden: Vec<_> = forbidden.map(|request| format!("{request:?}")).collect();
    assert_eq!(forbidden, [""; 0]);
}
