//! What a PodTerminator does, in the numbers of the original, and where it does better.

use std::time::Duration;

use fastrand::Rng;
use http::HeaderValue;
use http::header::AUTHORIZATION;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use lariat::cluster::faults::{Action, Refusal, Rule, StatusCode};
use lariat::cluster::testing::{TestCluster, pod, wait_for_condition};
use lariat::cluster::{Cluster, User};
use lariat::kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use lariat::kube::{self, Client};
use lariat::{Operator, SharedControllerFactory};
use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_util::task::TaskTracker;
use tower::util::MapRequest;

use super::{PodTerminator, PodTerminatorSpec, quota, register};

const SECOND: Duration = Duration::from_secs(1);

/// A cluster that knows PodTerminators, and an operator of them.
struct Bench {
    cluster: TestCluster,
    terminators: Api<PodTerminator>,
    pods: Api<Pod>,
    program: Program,
}

/// What is anew after a restart.
struct Program {
    operator: Operator,
    tasks: TaskTracker,
}

impl Program {
    async fn start(cluster: &TestCluster) -> Self {
        let program = Self::new(cluster.client());
        program.operator.start(2).await.expect("started");
        program
    }

    fn new(client: Client) -> Self {
        let factory = SharedControllerFactory::builder(client).build();
        let program = Self {
            operator: Operator::new("pod-terminator", &factory),
            tasks: TaskTracker::new(),
        };
        let registered = register(&program.operator, &program.tasks, Rng::with_seed(7));
        registered.expect("registered");
        program
    }

    async fn stop(&self) {
        self.operator.stop().await.expect("stopped");
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Bench {
    async fn new() -> Self {
        let cluster = Cluster::for_test().await;
        define(&cluster).await;
        let program = Program::start(&cluster).await;
        Self::of(cluster, program)
    }

    fn of(cluster: TestCluster, program: Program) -> Self {
        Self {
            terminators: Api::all(cluster.client()),
            pods: Api::all(cluster.client()),
            program,
            cluster,
        }
    }

    /// Makes pods `web-0`, `web-1` and so on.
    async fn with_pods(self, pods: usize) -> Self {
        for number in 0..pods {
            let web = pod(&format!("web-{number}")).label("app", "web");
            web.create(&self.cluster.client()).await.expect("created");
        }
        self
    }

    /// Makes a PodTerminator of pods `app=web` with a period of ten seconds.
    async fn terminate(&self, name: &str, spec: Value) {
        let mut whole = json!({
            "apiVersion": "chaos.spotahome.com/v1alpha1", "kind": "PodTerminator",
            "metadata": {"name": name},
            "spec": {"selector": {"app": "web"}, "periodSeconds": 10, "terminationPercent": 50},
        });
        merge(&mut whole["spec"], &spec);
        let terminator = serde_json::from_value(whole).expect("it is one");
        let created = self
            .terminators
            .create(&PostParams::default(), &terminator)
            .await;
        created.expect("created");
        settle().await;
    }

    async fn patch(&self, name: &str, patch: Value) {
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        let patched = self.terminators.patch(name, &params, &patch);
        patched.await.expect("patched");
    }

    async fn delete(&self, name: &str) {
        let deleted = self
            .terminators
            .delete(name, &DeleteParams::default())
            .await;
        deleted.expect("deleted");
    }

    async fn alive(&self) -> Vec<String> {
        let pods = self
            .pods
            .list(&ListParams::default())
            .await
            .expect("listed");
        let names = pods.items.into_iter().filter_map(|pod| pod.metadata.name);
        names.collect()
    }

    /// How many pods were asked to be deleted.
    fn kills(&self) -> usize {
        self.cluster.journal().count("delete", "pods")
    }
}

async fn define(cluster: &TestCluster) {
    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client());
    let (params, definition) = (PostParams::default(), PodTerminator::crd());
    let created = definitions.create(&params, &definition).await;
    created.expect("defined");
    let name = "podterminators.chaos.spotahome.com";
    let established = wait_for_condition(&definitions, name, "Established").await;
    established.expect("established");
}

fn merge(into: &mut Value, from: &Value) {
    let members = from.as_object().cloned().unwrap_or_default();
    into.as_object_mut().expect("an object").extend(members);
}

/// Lets everything that is due now happen; time is paused.
async fn settle() {
    sleep(Duration::from_millis(100)).await;
}

#[test]
fn the_share_is_rounded_down_and_limited_by_the_minimum() {
    // alive, percent, minimum, killed; the first five are the original's tests.
    for (alive, percent, minimum, expected) in [
        (10, 50, 0, 5),
        (10, 50, 7, 3),
        (0, 50, 0, 0),
        (3, 25, 0, 0),
        (10, 100, 0, 10),
        (10, 100, 1, 9),
        (10, 100, 10, 0),
        (10, 100, 11, 0),
        (10, 0, 0, 0),
        (1, 99, 0, 0),
        (10, 50, 5, 5),
        (10, 50, 6, 4),
        // Never through the schema, but objects may be older than it.
        (10, 250, 0, 10),
        (10, -50, -7, 0),
    ] {
        let spec = PodTerminatorSpec {
            termination_percent: percent,
            minimum_instances: minimum,
            ..PodTerminatorSpec::default()
        };
        assert_eq!(
            quota(alive, &spec),
            expected,
            "{percent} % of {alive}, {minimum} stay"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn half_of_ten_pods_are_killed_after_the_period() {
    let bench = Bench::new().await.with_pods(10).await;
    bench.terminate("chaos", json!({})).await;
    sleep(9 * SECOND).await;
    assert_eq!(bench.kills(), 0, "the period is not over");
    sleep(SECOND).await;
    assert_eq!((bench.kills(), bench.alive().await.len()), (5, 5));
    sleep(10 * SECOND).await;
    assert_eq!(
        (bench.kills(), bench.alive().await.len()),
        (7, 3),
        "half of five, rounded down"
    );
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_kills_nobody() {
    let bench = Bench::new().await.with_pods(10).await;
    bench.terminate("chaos", json!({"dryRun": true})).await;
    sleep(60 * SECOND).await;
    assert_eq!(bench.kills(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_minimum_stays_alive() {
    let bench = Bench::new().await.with_pods(10).await;
    bench
        .terminate("chaos", json!({"minimumInstances": 7}))
        .await;
    sleep(60 * SECOND).await;
    assert_eq!((bench.kills(), bench.alive().await.len()), (3, 7));
}

#[tokio::test(start_paused = true)]
async fn two_terminators_of_the_same_pods_leave_what_either_must_leave() {
    let bench = Bench::new().await.with_pods(10).await;
    let spec = json!({"minimumInstances": 7, "terminationPercent": 30});
    tokio::join!(
        bench.terminate("one", spec.clone()),
        bench.terminate("two", spec)
    );
    sleep(60 * SECOND).await;
    assert_eq!((bench.kills(), bench.alive().await.len()), (3, 7));
}

#[tokio::test(start_paused = true)]
async fn pods_elsewhere_or_with_other_labels_are_spared() {
    let bench = Bench::new().await.with_pods(4).await;
    let client = bench.cluster.client();
    pod("db").label("app", "db").create(&client).await.unwrap();
    let other = lariat::cluster::testing::namespace("other");
    other.create(&client).await.unwrap();
    let elsewhere = pod("web-9").namespace("other").label("app", "web");
    elsewhere.create(&client).await.unwrap();
    let spec = json!({"namespace": "default", "terminationPercent": 100});
    bench.terminate("chaos", spec).await;
    sleep(30 * SECOND).await;
    assert_eq!(bench.alive().await, ["db", "web-9"]);
}

#[tokio::test(start_paused = true)]
async fn pods_that_are_going_or_have_ended_are_not_counted() {
    let bench = Bench::new().await.with_pods(8).await;
    for name in ["going-0", "going-1"] {
        let going = pod(name).label("app", "web").finalizer("demo.dev/hold");
        going.create(&bench.cluster.client()).await.unwrap();
        let pods: Api<Pod> = Api::default_namespaced(bench.cluster.client());
        pods.delete(name, &DeleteParams::default()).await.unwrap();
    }
    let ended = pod("ended").label("app", "web");
    ended.create(&bench.cluster.client()).await.unwrap();
    let pods: Api<Pod> = Api::default_namespaced(bench.cluster.client());
    let status = Patch::Merge(json!({"status": {"phase": "Succeeded"}}));
    let params = PatchParams::default();
    pods.patch_status("ended", &params, &status).await.unwrap();
    let before = bench.kills();
    bench.terminate("chaos", json!({})).await;
    sleep(10 * SECOND).await;
    assert_eq!(bench.kills() - before, 4, "half of the eight that live");
}

/// The original ends a round at the first pod it cannot delete.
#[tokio::test(start_paused = true)]
async fn a_pod_that_cannot_be_killed_does_not_save_the_others() {
    let bench = Bench::new().await.with_pods(10).await;
    let refusal = Action::Refuse(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR));
    bench
        .cluster
        .faults()
        .add(Rule::new(refusal).verb("delete").resource("pods").times(1));
    bench.terminate("chaos", json!({})).await;
    sleep(10 * SECOND).await;
    assert_eq!((bench.kills(), bench.alive().await.len()), (5, 6));
    sleep(10 * SECOND).await;
    assert_eq!(bench.alive().await.len(), 3, "the next round is as any");
}

#[tokio::test(start_paused = true)]
async fn a_pod_of_the_same_name_is_not_taken_for_the_one_that_was_chosen() {
    let bench = Bench::new().await.with_pods(1).await;
    let recreate = Action::Recreate(String::new());
    bench
        .cluster
        .faults()
        .add(Rule::new(recreate).verb("delete").resource("pods").times(1));
    bench
        .terminate("chaos", json!({"terminationPercent": 100}))
        .await;
    sleep(10 * SECOND).await;
    assert_eq!(bench.alive().await, ["web-0"], "somebody else replaced it");
}

#[tokio::test(start_paused = true)]
async fn another_spec_is_another_killer_and_the_old_one_kills_no_more() {
    let bench = Bench::new().await.with_pods(10).await;
    bench.terminate("chaos", json!({})).await;
    sleep(9 * SECOND).await;
    let spec = json!({"periodSeconds": 100, "terminationPercent": 10});
    bench.patch("chaos", json!({"spec": spec})).await;
    sleep(99 * SECOND).await;
    assert_eq!(bench.kills(), 0);
    sleep(2 * SECOND).await;
    assert_eq!(bench.kills(), 1);
}

#[tokio::test(start_paused = true)]
async fn other_changes_do_not_disturb_the_killer() {
    let bench = Bench::new().await.with_pods(10).await;
    bench.terminate("chaos", json!({})).await;
    sleep(9 * SECOND).await;
    bench
        .patch("chaos", json!({"metadata": {"labels": {"team": "chaos"}}}))
        .await;
    sleep(SECOND).await;
    assert_eq!(bench.kills(), 5);
}

#[tokio::test(start_paused = true)]
async fn the_finalizer_holds_the_object_until_its_killer_has_ended() {
    let bench = Bench::new().await.with_pods(10).await;
    let slow = Rule::new(Action::Delay(3 * SECOND))
        .verb("delete")
        .resource("pods");
    bench.terminate("chaos", json!({})).await;
    let terminator = bench.terminators.get("chaos").await.unwrap();
    assert_eq!(
        terminator.metadata.finalizers.unwrap_or_default(),
        [super::FINALIZER]
    );
    bench.cluster.faults().add(slow);
    sleep(10 * SECOND).await;
    bench.delete("chaos").await;
    sleep(SECOND).await;
    assert!(
        bench.terminators.get_opt("chaos").await.unwrap().is_some(),
        "a pod is being killed"
    );
    sleep(2 * SECOND).await;
    assert!(bench.terminators.get_opt("chaos").await.unwrap().is_none());
    sleep(60 * SECOND).await;
    assert_eq!(bench.kills(), 1, "the other four are spared");
    assert!(bench.program.tasks.is_empty());
}

#[tokio::test(start_paused = true)]
async fn without_its_finalizer_the_killer_ends_too() {
    let bench = Bench::new().await.with_pods(10).await;
    bench.terminate("chaos", json!({})).await;
    let forced = json!({"metadata": {"finalizers": null}});
    tokio::join!(bench.delete("chaos"), bench.patch("chaos", forced));
    sleep(60 * SECOND).await;
    assert_eq!(bench.kills(), 0);
    assert!(bench.program.tasks.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_stop_waits_for_the_pod_that_is_being_killed_and_spares_the_others() {
    let bench = Bench::new().await.with_pods(10).await;
    bench.terminate("chaos", json!({})).await;
    let slow = Rule::new(Action::Delay(3 * SECOND))
        .verb("delete")
        .resource("pods");
    bench.cluster.faults().add(slow);
    sleep(10 * SECOND).await;
    bench.program.stop().await;
    assert_eq!((bench.kills(), bench.alive().await.len()), (1, 9));
    sleep(60 * SECOND).await;
    assert_eq!(bench.kills(), 1);
    assert!(bench.program.tasks.is_empty());
    let terminator = bench.terminators.get("chaos").await.unwrap();
    assert!(
        terminator.metadata.finalizers.is_some(),
        "the next program has to know"
    );
}

#[tokio::test(start_paused = true)]
async fn a_stop_is_not_held_up_by_an_api_server_that_never_answers() {
    let bench = Bench::new().await.with_pods(10).await;
    bench.terminate("chaos", json!({})).await;
    let silent = Rule::new(Action::NoAnswer).verb("delete").resource("pods");
    bench.cluster.faults().add(silent);
    sleep(10 * SECOND).await;
    let stopped = tokio::time::timeout(20 * SECOND, bench.program.stop()).await;
    assert!(stopped.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_program_that_starts_has_a_killer_for_what_exists() {
    let bench = Bench::new().await.with_pods(10).await;
    bench.terminate("chaos", json!({})).await;
    bench.program.stop().await;
    sleep(60 * SECOND).await;
    assert_eq!(bench.kills(), 0);
    let program = Program::start(&bench.cluster).await;
    sleep(10 * SECOND + SECOND).await;
    assert_eq!(bench.kills(), 5);
    assert_eq!(program.tasks.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn all_killers_see_pods_through_one_watch() {
    let bench = Bench::new().await.with_pods(10).await;
    for name in ["one", "two", "three"] {
        bench.terminate(name, json!({"dryRun": true})).await;
    }
    sleep(60 * SECOND).await;
    let journal = bench.cluster.journal();
    assert_eq!(
        (journal.count("watch", "pods"), bench.program.tasks.len()),
        (1, 3)
    );
    assert!(journal.count("list", "pods") <= 1);
}

#[tokio::test(start_paused = true)]
async fn the_schema_refuses_what_makes_no_sense() {
    let bench = Bench::new().await;
    for spec in [
        json!({"terminationPercent": 101}),
        json!({"terminationPercent": -1}),
        json!({"periodSeconds": 0}),
        json!({"minimumInstances": -1}),
        json!({"selector": {}}),
    ] {
        let mut whole = json!({
            "selector": {"app": "web"}, "periodSeconds": 10, "terminationPercent": 50,
        });
        merge(&mut whole, &spec);
        let spec_of = serde_json::from_value(whole).unwrap();
        let refused = PodTerminator::new("chaos", spec_of);
        let created = bench
            .terminators
            .create(&PostParams::default(), &refused)
            .await;
        assert!(created.is_err(), "{spec}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_dice_kill_the_same_pods() {
    let mut left = Vec::new();
    for _ in 0..2 {
        let bench = Bench::new().await.with_pods(10).await;
        bench.terminate("chaos", json!({})).await;
        sleep(10 * SECOND).await;
        left.push(bench.alive().await);
    }
    assert_eq!(left[0], left[1]);
}

/// What `kubectl describe` shows of a PodTerminator; it is in no namespace, so its Events are in `default`.
#[tokio::test(start_paused = true)]
async fn events_tell_who_was_killed_and_who_was_not() {
    let bench = Bench::new().await.with_pods(4).await;
    let refusal = Action::Refuse(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR));
    let once = Rule::new(refusal).verb("delete").resource("pods").times(1);
    bench.cluster.faults().add(once);
    bench.terminate("chaos", json!({})).await;
    sleep(11 * SECOND).await;
    let events: Api<k8s_openapi::api::core::v1::Event> =
        Api::namespaced(bench.cluster.client(), "default");
    let events = events.list(&ListParams::default()).await.unwrap().items;
    let about_us = |event: &&k8s_openapi::api::core::v1::Event| {
        event.involved_object.kind.as_deref() == Some("PodTerminator")
    };
    let mut told: Vec<String> = events
        .iter()
        .filter(about_us)
        .map(|event| {
            assert_eq!(event.involved_object.name.as_deref(), Some("chaos"));
            let related = event.related.as_ref().and_then(|pod| pod.kind.as_deref());
            assert_eq!(related, Some("Pod"));
            event.reason.clone().unwrap_or_default()
        })
        .collect();
    told.sort();
    assert_eq!(told, ["PodNotTerminated", "PodTerminated"]);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_has_no_events() {
    let bench = Bench::new().await.with_pods(4).await;
    bench.terminate("chaos", json!({"dryRun": true})).await;
    sleep(30 * SECOND).await;
    assert_eq!(bench.cluster.journal().count("create", "events"), 0);
}

/// Returns a client of whoever has the token.
fn client_with(cluster: &TestCluster, token: &str) -> Client {
    let bearer = format!("Bearer {token}").parse::<HeaderValue>();
    let bearer = bearer.expect("it is a header");
    let signed = move |mut request: http::Request<kube::client::Body>| {
        let headers = request.headers_mut();
        headers.insert(AUTHORIZATION, bearer.clone());
        request
    };
    Client::new(MapRequest::new(cluster.service(), signed), "default")
}

#[tokio::test(start_paused = true)]
async fn the_role_it_says_it_needs_is_enough() {
    let account = User::new("system:serviceaccount:default:killer").group("system:serviceaccounts");
    let builder = Cluster::builder().rbac().token_of("sesame", account);
    let cluster = builder.for_test().await;
    define(&cluster).await;
    let program = Program::new(client_with(&cluster, "sesame"));
    let role = program.operator.cluster_role("killer").await.unwrap();
    let roles: Api<ClusterRole> = Api::all(cluster.client());
    roles.create(&PostParams::default(), &role).await.unwrap();
    let binding = json!({
        "metadata": {"name": "killer"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "killer"},
        "subjects": [{"kind": "ServiceAccount", "name": "killer", "namespace": "default"}],
    });
    let binding = serde_json::from_value(binding).unwrap();
    let bindings: Api<ClusterRoleBinding> = Api::all(cluster.client());
    bindings
        .create(&PostParams::default(), &binding)
        .await
        .unwrap();
    program.operator.checks_access();
    program.operator.start(2).await.unwrap();
    let bench = Bench::of(cluster, program).with_pods(10).await;
    bench.terminate("chaos", json!({})).await;
    sleep(11 * SECOND).await;
    assert_eq!(bench.kills(), 5);
    assert_eq!(bench.program.operator.events().status().sent, 5);
    bench.delete("chaos").await;
    settle().await;
    assert!(bench.terminators.get_opt("chaos").await.unwrap().is_none());
}
