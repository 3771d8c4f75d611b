//! A cluster with RBAC, and clients of it.

use std::fmt::Debug;

use http::Request;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::api::{DeleteParams, PostParams};
use kube::client::Body;
use kube::{Api, Client, Resource};
use lariat_cluster::Cluster;
use lariat_core::{Gvk, ObjectKey, ResourceKind, Scope};
use lariat_sql::{Access, AccessReviews, User};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tower::ServiceExt;

const GROUP: &str = "rbac.authorization.k8s.io";

pub(crate) struct Bench {
    pub(crate) cluster: Cluster,
    pub(crate) reviews: AccessReviews,
}

impl Bench {
    /// Starts a cluster whose user `robot` has the token `robots`.
    pub(crate) async fn new() -> Self {
        let robot = lariat_cluster::User::new("robot");
        let cluster = Cluster::builder().rbac().token_of("robots", robot);
        let cluster = cluster.start().await.expect("it needs no socket");
        let reviews = AccessReviews::new(cluster.client());
        Self { cluster, reviews }
    }

    /// Returns reviews with the credentials of `robot`.
    pub(crate) fn robots_reviews(&self) -> AccessReviews {
        AccessReviews::new(self.robot())
    }

    /// Returns a client with the credentials of `robot`.
    pub(crate) fn robot(&self) -> Client {
        let service = self.cluster.service();
        let service = service.map_request(|mut request: Request<Body>| {
            let value = "Bearer robots".parse().expect("it is a header");
            request.headers_mut().insert("authorization", value);
            request
        });
        Client::new(service, "default")
    }

    /// Allows a user something in a namespace, or everywhere, by a role and binding of this name.
    pub(crate) async fn grant(&self, name: &str, user: &str, namespace: Option<&str>, rule: Value) {
        let metadata = json!({"name": name});
        let subjects = json!([{"apiGroup": GROUP, "kind": "User", "name": user}]);
        let role = |kind: &str| json!({"apiGroup": GROUP, "kind": kind, "name": name});
        let rules = json!({"metadata": metadata, "rules": [rule]});
        let binding =
            |kind| json!({"metadata": metadata, "subjects": subjects, "roleRef": role(kind)});
        match namespace {
            Some(namespace) => {
                create(&self.api::<Role>(namespace), rules).await;
                create(&self.api::<RoleBinding>(namespace), binding("Role")).await;
            }
            None => {
                let client = self.cluster.client();
                create(&Api::<ClusterRole>::all(client.clone()), rules).await;
                let bindings = Api::<ClusterRoleBinding>::all(client);
                create(&bindings, binding("ClusterRole")).await;
            }
        }
    }

    /// Takes away what was granted by this name.
    pub(crate) async fn revoke(&self, name: &str, namespace: Option<&str>) {
        let params = DeleteParams::default();
        match namespace {
            Some(namespace) => {
                let bindings = self.api::<RoleBinding>(namespace);
                bindings.delete(name, &params).await.expect("it is there");
            }
            None => {
                let bindings = Api::<ClusterRoleBinding>::all(self.cluster.client());
                bindings.delete(name, &params).await.expect("it is there");
            }
        }
    }

    /// Binds a cluster role in a namespace.
    pub(crate) async fn bind(&self, role: &str, user: &str, namespace: &str) {
        let binding = json!({
            "metadata": {"name": role},
            "subjects": [{"apiGroup": GROUP, "kind": "User", "name": user}],
            "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": role},
        });
        create(&self.api::<RoleBinding>(namespace), binding).await;
    }

    pub(crate) async fn namespaces(&self, names: &[&str]) {
        let api = Api::<k8s_openapi::api::core::v1::Namespace>::all(self.cluster.client());
        for name in names {
            create(&api, json!({"metadata": {"name": name}})).await;
        }
    }

    /// Counts the reviews of this kind so far.
    pub(crate) fn count(&self, plural: &str) -> usize {
        self.cluster.journal().count("create", plural)
    }

    fn api<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.cluster.client(), namespace)
    }
}

async fn create<K>(api: &Api<K>, object: Value)
where
    K: Clone + Debug + Serialize + DeserializeOwned,
{
    let object: K = serde_json::from_value(object).expect("it is of its kind");
    let created = api.create(&PostParams::default(), &object).await;
    created.expect("it can be created");
}

pub(crate) fn pods() -> ResourceKind {
    ResourceKind::new(Gvk::new("", "v1", "Pod"), "pods", Scope::Namespaced)
}

pub(crate) fn nodes() -> ResourceKind {
    ResourceKind::new(Gvk::new("", "v1", "Node"), "nodes", Scope::Cluster)
}

pub(crate) fn jane() -> User {
    User::new("jane").group("system:authenticated")
}

/// A rule about pods.
pub(crate) fn list_pods(names: &[&str]) -> Value {
    json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["list"], "resourceNames": names})
}

pub(crate) fn pod(access: &Access, namespace: &str, name: &str) -> bool {
    access.allows(&ObjectKey::namespaced(namespace, name))
}
