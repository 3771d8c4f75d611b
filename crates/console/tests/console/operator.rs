//! Guards and plans of operators.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, PostParams};
use lariat_cluster::Cluster;
use lariat_console::api::{self, Action, Done, Health, Overview, Plan};
use lariat_console::{Console, ConsoleServer, Serve};
use lariat_controller::{HandlerResult, Outcome, SharedControllerFactory};
use lariat_operator::{Budget, Guard, Operator, Reconcile};
use lariat_testing::http::Client;
use serde_json::json;

use crate::bench::until;

const SECRET_VALUE: &str = "the-value-that-is-planned";

struct Reaper {
    cluster: Cluster,
    operator: Operator,
    server: ConsoleServer,
    client: Client,
}

/// Starts an operator that deletes every ConfigMap.
async fn reaper(only_plans: bool) -> Reaper {
    let cluster = Cluster::builder().start().await.expect("it works");
    let api = Api::<ConfigMap>::namespaced(cluster.client(), "default");
    for name in ["a", "b", "c"] {
        let map = json!({"metadata": {"name": name}});
        let map = serde_json::from_value(map).expect("it works");
        api.create(&PostParams::default(), &map)
            .await
            .expect("it works");
    }
    let factory = SharedControllerFactory::builder(cluster.client()).build();
    let mut operator = Operator::new("reaper", &factory);
    if only_plans {
        operator = operator.plan_only();
    }
    let client = factory.client();
    let reap = move |cx: Reconcile<ConfigMap>| {
        let api = Api::<ConfigMap>::namespaced(client.clone(), "default");
        async move {
            if cx.key().namespace() == Some("default") && cx.key().name().len() == 1 {
                api.delete(cx.key().name(), &DeleteParams::default())
                    .await?;
                let other = json!({"metadata": {"name": "grave"}, "data": {"of": SECRET_VALUE}});
                let other = serde_json::from_value(other).expect("a ConfigMap");
                api.create(&PostParams::default(), &other).await.ok();
            }
            HandlerResult::Ok(Outcome::done())
        }
    };
    let guard = Guard::new().deletes(Budget::rate(1, Duration::MAX));
    let maps = factory.for_object::<ConfigMap>();
    let reconciler = operator.reconciler("maps", &maps).guard(guard);
    reconciler.register(reap).expect("it works");
    let console = Console::on("127.0.0.1:0").actions(true);
    let server = operator.serve(console).expect("it works");
    operator.start(1).await.expect("it works");
    Reaper {
        cluster,
        operator,
        client: Client::new(server.address()),
        server,
    }
}

#[tokio::test]
async fn a_tripped_guard_is_named_and_reset() {
    let reaper = reaper(false).await;
    let overview: Overview = until(async || {
        let overview: Overview = reaper.client.get("/api/v1/overview").await.good();
        overview.guards[0].tripped.then_some(overview)
    })
    .await;
    assert_eq!(overview.program.name, "reaper");
    let guard = &overview.guards[0];
    assert_eq!(
        (&*guard.operator, &*guard.reconcilers),
        ("reaper", &["maps".to_owned()][..])
    );
    assert_eq!(guard.budgets, ["budget of deletions, 1 until a reset"]);
    let reason = guard.reason.as_deref().unwrap_or_default();
    assert!(
        reason.contains("is used up") && guard.refused > 0,
        "{guard:?}"
    );
    // A tripped guard is a note for people, and does not fail readiness.
    let probe = reaper.client.get("/readyz?verbose").await;
    let expected = "[+]guards ok: the guard of maps in reaper has tripped\n";
    assert!(
        probe.status == 200 && probe.text.contains(expected),
        "{}",
        probe.text
    );
    let health: Health = reaper.client.get("/api/v1/health").await.good();
    assert!(health.ready, "{health:?}");
    let guard = guard.reference();
    let reset = Action::ResetGuard { guard };
    let done: Done = reaper.client.post("/api/v1/actions", &reset).await.good();
    assert_eq!(done.message, "the guard of maps in reaper is reset");
    let overview: Overview = reaper.client.get("/api/v1/overview").await.good();
    assert!(!overview.guards[0].tripped);
    reaper.operator.stop().await.unwrap();
}

/// Creates an operator with a guard that does not trip.
fn bystander(cluster: &Cluster, name: &str) -> Operator {
    let factory = SharedControllerFactory::builder(cluster.client()).build();
    let operator = Operator::new(name, &factory);
    let guard = Guard::new().deletes(Budget::rate(1, Duration::MAX));
    let maps = factory.for_object::<ConfigMap>();
    let reconciler = operator.reconciler("maps", &maps).guard(guard);
    let nothing = |_: Reconcile<ConfigMap>| async { HandlerResult::Ok(Outcome::done()) };
    reconciler.register(nothing).expect("it works");
    operator
}

/// The list of guards may change between what a user reads and what the user presses.
#[tokio::test]
async fn a_guard_is_reset_by_its_names_wherever_it_is_in_the_list() {
    let reaper = reaper(false).await;
    let other = bystander(&reaper.cluster, "other");
    reaper.server.add("other", &other);
    let overview: Overview = until(async || {
        let overview: Overview = reaper.client.get("/api/v1/overview").await.good();
        overview.guards[0].tripped.then_some(overview)
    })
    .await;
    let reset = |guard: &api::Guard| Action::ResetGuard {
        guard: guard.reference(),
    };
    let [ours, others] = [0, 1].map(|position| reset(&overview.guards[position]));
    drop(other);
    let third = bystander(&reaper.cluster, "third");
    reaper.server.add("third", &third);
    let refused = reaper
        .client
        .post("/api/v1/actions", &others)
        .await
        .refused(404);
    assert!(refused.contains("no guard of maps in other"), "{refused}");
    let done: Done = reaper.client.post("/api/v1/actions", &ours).await.good();
    assert_eq!(done.message, "the guard of maps in reaper is reset");
    let overview: Overview = reaper.client.get("/api/v1/overview").await.good();
    let shown = overview.guards.iter();
    let shown: Vec<_> = shown
        .map(|it| (&*it.context, &*it.operator, it.tripped))
        .collect();
    assert_eq!(shown, [("", "reaper", false), ("third", "third", false)]);
    reaper.operator.stop().await.unwrap();
}

#[tokio::test]
async fn a_plan_has_writes_without_values() {
    let reaper = reaper(true).await;
    let plan = until(async || {
        let answer = reaper.client.get("/api/v1/plan").await;
        assert!(!answer.text.contains(SECRET_VALUE), "{}", answer.text);
        let plan: Plan = answer.good();
        (plan.total >= 4).then_some(plan)
    })
    .await;
    let texts: Vec<&str> = plan.writes.iter().map(|write| &*write.text).collect();
    let deletes = "maps, for v1 ConfigMap default/a: would delete v1 ConfigMap default/a";
    assert!(texts.contains(&deletes), "{texts:?}");
    let creates = texts.iter().find(|text| text.contains("would create"));
    let creates = creates.expect("a creation");
    assert!(
        creates.contains("default/grave, changing") && creates.contains("data.of"),
        "{creates}"
    );
    assert_eq!(plan.total, plan.writes.len());
    let overview: Overview = reaper.client.get("/api/v1/overview").await.good();
    assert_eq!(overview.planned, Some(plan.total));
    reaper.operator.stop().await.unwrap();
}
