//! Whatever is granted: what may be seen is what requests of the same user are answered with.

use http::Request;
use kube::Client;
use lariat_core::{Gvk, ObjectKey, ResourceKind, Scope};
use lariat_sql::{Access, User, Verb};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};

use crate::bench::{Bench, nodes, pods};

const NAMESPACES: [&str; 3] = ["bank", "default", "shop"];
/// The last one is in no rule.
const NAMES: [&str; 4] = ["a", "b", "shop", "z"];

/// A rule, and where it holds: in a namespace, or everywhere.
type Grant = (Option<&'static str>, Value);

fn grants() -> impl Strategy<Value = Vec<Grant>> {
    let place = prop_oneof![
        1 => Just(None),
        3 => select(NAMESPACES.to_vec()).prop_map(Some),
    ];
    let verbs = select(vec![
        vec!["get"],
        vec!["list"],
        vec!["get", "list"],
        vec!["watch"],
        vec!["*"],
    ]);
    let resources = vec!["pods", "nodes", "namespaces", "pods/log", "*", "*/status"];
    let resources = subsequence(resources, 1..3);
    let groups = select(vec!["", "", "", "apps", "*"]);
    let names = prop_oneof![
        2 => Just(Vec::new()),
        1 => subsequence(vec!["a", "b", "shop", "*"], 1..3),
    ];
    let rule = (groups, resources, verbs, names).prop_map(|(group, resources, verbs, names)| {
        json!({"apiGroups": [group], "resources": resources, "verbs": verbs, "resourceNames": names})
    });
    prop::collection::vec((place, rule), 0..5)
}

/// Returns whether a request of the robot is not forbidden.
async fn answers(robot: &Client, path: &str) -> bool {
    let request = Request::get(path).body(Vec::new());
    let request = request.expect("it is a path");
    match robot.request::<Value>(request).await {
        Ok(_) => true,
        Err(kube::Error::Api(status)) if status.code == 404 => true,
        Err(kube::Error::Api(status)) if status.code == 403 => false,
        Err(error) => panic!("{path}: {error}"),
    }
}

struct Case {
    bench: Bench,
    robot: Client,
}

impl Case {
    async fn new(grants: &[Grant]) -> Self {
        let bench = Bench::new().await;
        bench.namespaces(&["bank", "shop"]).await;
        for (n, (namespace, rule)) in grants.iter().enumerate() {
            bench
                .grant(&format!("g{n}"), "robot", *namespace, rule.clone())
                .await;
        }
        let robot = bench.robot();
        Self { bench, robot }
    }

    async fn own(&self, verb: Verb, kind: &ResourceKind) -> Access {
        let access = self
            .bench
            .robots_reviews()
            .own(verb, kind, NAMESPACES)
            .await;
        access.expect("every review is answered")
    }

    async fn of_user(&self, verb: Verb, kind: &ResourceKind) -> Access {
        let robot = User::new("robot").group("system:authenticated");
        let access = self
            .bench
            .reviews
            .of_user(&robot, verb, kind, NAMESPACES)
            .await;
        access.expect("every review is answered")
    }

    async fn check(&self) {
        let (list, get) = (Verb::List, Verb::Get);
        let (own_list, own_get) = (self.own(list, &pods()).await, self.own(get, &pods()).await);
        let user_list = self.of_user(list, &pods()).await;
        let everywhere = answers(&self.robot, "/api/v1/pods").await;
        assert_eq!(own_list.is_everything(), everywhere, "own");
        assert_eq!(user_list.is_everything(), everywhere, "user");
        for namespace in NAMESPACES {
            let path = format!("/api/v1/namespaces/{namespace}/pods");
            let lists = answers(&self.robot, &path).await;
            for name in NAMES {
                let key = ObjectKey::namespaced(namespace, name);
                assert_eq!(user_list.allows(&key), lists, "a user lists {key}");
                let one = format!("{path}?fieldSelector=metadata.name={name}");
                let lists = answers(&self.robot, &one).await;
                assert_eq!(own_list.allows(&key), lists, "own list of {key}");
                let gets = answers(&self.robot, &format!("{path}/{name}")).await;
                assert_eq!(own_get.allows(&key), gets, "own get of {key}");
            }
        }
        let own_nodes = self.own(get, &nodes()).await;
        for name in NAMES {
            let gets = answers(&self.robot, &format!("/api/v1/nodes/{name}")).await;
            assert_eq!(
                own_nodes.allows(&ObjectKey::cluster(name)),
                gets,
                "own get of node {name}"
            );
        }
        let kind = ResourceKind::new(
            Gvk::new("", "v1", "Namespace"),
            "namespaces",
            Scope::Cluster,
        );
        for access in [self.own(get, &kind).await, self.of_user(get, &kind).await] {
            for name in NAMESPACES {
                let gets = answers(&self.robot, &format!("/api/v1/namespaces/{name}")).await;
                assert_eq!(
                    access.allows(&ObjectKey::cluster(name)),
                    gets,
                    "get of namespace {name}"
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_may_be_seen_is_what_requests_are_answered_with(grants in grants()) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().start_paused(true).build();
        let runtime = runtime.expect("a runtime can be built");
        runtime.block_on(async { Case::new(&grants).await.check().await });
    }
}
