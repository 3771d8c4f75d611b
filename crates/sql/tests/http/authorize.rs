//! What users see by reviews of the API server, of a cluster with RBAC.

use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::Resource;
use kube::api::{Api, PostParams};
use lariat_cluster::User;
use lariat_core::Gvk;
use lariat_sql::http::{SqlService, TokenReviews};
use lariat_sql::{AccessReviews, Query};
use lariat_testing::http::Client;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

use crate::bench::{Bench, MAPS};

const NAMESPACES: &str = "/v1/core/v1/Namespace";
const RBAC: &str = "rbac.authorization.k8s.io";

struct Users {
    bench: Bench,
    jane: Client,
    admin: Client,
    /// The version of what was created last.
    version: String,
}

impl Users {
    /// Starts a service on a cluster with the namespaces `a`, `b` and `c`, all of the project `p`, with a ConfigMap in
    /// each.
    ///
    /// Jane may list ConfigMaps in `a` and `b`, and get the namespace `b` alone. The admin may do everything.
    async fn new(configure: impl FnOnce(SqlService) -> SqlService) -> Self {
        let users = |cluster: lariat_cluster::ClusterBuilder| {
            let cluster = cluster.token_of("jane-token", User::new("jane"));
            let admin = User::new("admin").group("system:masters");
            cluster.token_of("admin-token", admin).rbac()
        };
        let mut bench = Bench::with(users, |sql| sql).await;
        bench.fill();
        let (mut version, mut of_namespace) = (String::new(), String::new());
        for name in ["a", "b", "c"] {
            let labels = json!({"field.cattle.io/projectId": "p"});
            let namespace = json!({"metadata": {"name": name, "labels": labels}});
            let all = Api::<Namespace>::all(bench.cluster.client());
            of_namespace = created(&all, namespace).await;
            let maps = Api::<ConfigMap>::namespaced(bench.cluster.client(), name);
            version = created(&maps, json!({"metadata": {"name": format!("in-{name}")}})).await;
        }
        for name in ["a", "b"] {
            let rules = rule("list", "configmaps", &[]);
            role::<Role, RoleBinding>(&bench, name, "Role", rules).await;
        }
        role::<Role, RoleBinding>(&bench, "b", "Role", rule("get", "namespaces", &[])).await;
        let tokens = TokenReviews::new(bench.cluster.client());
        let access = AccessReviews::new(bench.cluster.client());
        let serve = |it: SqlService| configure(it.authenticate(tokens).authorize(access));
        let client = bench.serve(serve).await;
        // A revision that a query waits for is one of its kind: labels of namespaces may come later.
        let namespaces = bench.sql.kind(&Gvk::new("", "v1", "Namespace"));
        let revision = of_namespace.parse().expect("a version");
        let read = namespaces
            .expect("it is there")
            .query(&Query::new().at_least(revision))
            .await;
        read.expect("answered");
        Self {
            bench,
            jane: client.token("jane-token"),
            admin: client.token("admin-token"),
            version,
        }
    }

    /// Returns the names a user finds by a query, but those of the certificates in each namespace.
    async fn names(&self, user: &Client, path: &str, query: &str) -> Vec<String> {
        let url = format!("{path}?revision={}&{query}", self.version);
        let mut names = user.get(&url).await.names();
        names.sort();
        names
    }

    fn reviews(&self) -> usize {
        let journal = self.bench.cluster.journal();
        journal.count("create", "subjectaccessreviews")
    }
}

fn rule(verb: &str, resource: &str, names: &[&str]) -> Json {
    json!([{"apiGroups": [""], "resources": [resource], "verbs": [verb], "resourceNames": names}])
}

/// Creates an object; returns its version.
async fn created<K>(api: &Api<K>, object: Json) -> String
where
    K: Clone + Debug + Serialize + DeserializeOwned + Resource,
{
    let object = serde_json::from_value(object).expect("an object of the kind");
    let created = api.create(&PostParams::default(), &object).await;
    let version = created.expect("created").meta().resource_version.clone();
    version.expect("a version")
}

/// Gives Jane a role in a namespace.
async fn role<R, B>(bench: &Bench, namespace: &str, kind: &str, rules: Json)
where
    R: Clone + Debug + Serialize + DeserializeOwned,
    R: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    B: Clone + Debug + Serialize + DeserializeOwned,
    B: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    let name = format!("jane-{:08x}", fastrand::u32(..));
    let client = bench.cluster.client();
    let role = json!({"metadata": {"name": name}, "rules": rules});
    created(&Api::<R>::namespaced(client.clone(), namespace), role).await;
    created(
        &Api::<B>::namespaced(client, namespace),
        binding(&name, kind),
    )
    .await;
}

fn binding(name: &str, kind: &str) -> Json {
    json!({
        "metadata": {"name": name}, "subjects": [{"kind": "User", "name": "jane", "apiGroup": RBAC}],
        "roleRef": {"kind": kind, "name": name, "apiGroup": RBAC},
    })
}

#[tokio::test]
async fn a_user_sees_what_the_api_server_lets_the_user_list() {
    let users = Users::new(|service| service).await;
    assert_eq!(users.names(&users.jane, MAPS, "").await, ["in-a", "in-b"]);
    assert_eq!(
        users.names(&users.admin, MAPS, "").await,
        ["in-a", "in-b", "in-c"]
    );
    // Namespaces are seen one by one, and cluster-wide counts are of those.
    assert_eq!(users.names(&users.jane, NAMESPACES, "").await, ["b"]);
    let counted = users
        .jane
        .get(&format!("{NAMESPACES}?summary=metadata.name&summaryonly"))
        .await;
    assert_eq!(counted.json()["total"], 1);
    for (path, status) in [
        ("a/in-a", 200),
        ("c/in-c", 403),
        ("c/nothing", 403),
        ("a/nothing", 404),
    ] {
        let object = users.jane.get(&format!("{MAPS}/{path}")).await;
        assert_eq!(object.status, status, "{path}");
    }
    let refused = users.jane.get(&format!("{MAPS}?namespaces=c")).await;
    refused.refused(403);
}

#[tokio::test]
async fn a_query_asks_only_about_the_namespaces_it_names() {
    let users = Users::new(|service| service).await;
    let names = users.names(&users.jane, MAPS, "namespaces=a").await;
    assert_eq!(names, ["in-a"]);
    // One about all namespaces, and one about the namespace.
    let before = users.reviews();
    assert_eq!(before, 2);
    users.names(&users.jane, MAPS, "namespaces=a").await;
    assert_eq!(users.reviews(), before);
}

#[tokio::test]
async fn labels_of_namespaces_that_a_user_may_not_see_cannot_be_guessed() {
    let users = Users::new(|service| service).await;
    let (jane, admin) = (&users.jane, &users.admin);
    let names = async |user, query: &str| users.names(user, MAPS, query).await;
    assert_eq!(
        names(admin, "projectsornamespaces=p").await,
        ["in-a", "in-b", "in-c"]
    );
    // The label of `a` is not for her, although she sees what is in it.
    assert_eq!(names(jane, "projectsornamespaces=p").await, ["in-b"]);
    assert_eq!(
        names(jane, "projectsornamespaces=p,a").await,
        ["in-a", "in-b"]
    );
    assert_eq!(names(jane, "projectsornamespaces!=p").await, ["in-a"]);
    for guess in ["q", "p"] {
        let summary = format!("projectsornamespaces!={guess},b&summary=metadata.namespace&limit=9");
        assert_eq!(names(jane, &summary).await, ["in-a"], "{guess}");
        // Nothing is in a namespace that is named so.
        let query =
            format!("projectsornamespaces={guess}&projectlabel=kubernetes.io/metadata.name");
        let url = format!("{MAPS}?{query}");
        assert_eq!(jane.get(&url).await.status, 403, "{guess}");
    }
    // An answer that was hers before is not good for others.
    let url = format!("{MAPS}?projectsornamespaces=p");
    let tag = admin.get(&url).await.header("etag").to_owned();
    assert_eq!(jane.with("if-none-match", &tag).get(&url).await.status, 200);
    let watch = jane
        .watch(&format!("{MAPS}?watch&projectsornamespaces=p"))
        .await;
    assert_eq!(watch.status, 200);
}

#[tokio::test]
async fn one_user_cannot_take_all_the_room() {
    let users = Users::new(|service| service.watches(3).watches_per_user(2)).await;
    users.names(&users.jane, MAPS, "").await;
    let url = format!("{MAPS}?watch");
    let first = users.jane.watch(&url).await;
    let second = users.jane.watch(&url).await;
    assert_eq!((first.status, second.status), (200, 200));
    let refused = users.jane.get(&url).await.refused(429);
    assert_eq!(
        refused,
        "your limit of 2 concurrent watches is reached: try again later"
    );
    let other = users.admin.watch(&url).await;
    assert_eq!(other.status, 200);
    let full = users.admin.get(&url).await.refused(429);
    assert_eq!(
        full,
        "the limit of 3 concurrent watches is reached: try again later"
    );
}

#[tokio::test]
async fn new_rights_are_seen_and_a_kind_that_is_not_known_shows_nothing() {
    let mut users = Users::new(|service| service).await;
    let access = AccessReviews::new(users.bench.cluster.client()).with_ttl(Duration::ZERO);
    let tokens = TokenReviews::new(users.bench.cluster.client());
    let serve = |it: SqlService| it.authenticate(tokens).authorize(access);
    let jane = users.bench.serve(serve).await.token("jane-token");
    assert_eq!(users.names(&jane, MAPS, "").await, ["in-a", "in-b"]);
    let client = users.bench.cluster.client();
    let role = json!({"metadata": {"name": "all"}, "rules": rule("list", "configmaps", &[])});
    created(&Api::<ClusterRole>::all(client.clone()), role).await;
    let binding = binding("all", "ClusterRole");
    created(&Api::<ClusterRoleBinding>::all(client), binding).await;
    assert_eq!(users.names(&jane, MAPS, "").await, ["in-a", "in-b", "in-c"]);
    users.bench.cluster.faults().partition("");
    jane.get(MAPS).await.refused(503);
}
