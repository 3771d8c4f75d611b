//! Guards and plans of operators.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, PostParams};
use lariat_cluster::Cluster;
use lariat_console::{Console, ConsoleServer, Serve};
use lariat_controller::{HandlerResult, Outcome, SharedControllerFactory};
use lariat_operator::{Budget, Guard, Operator, Reconcile};
use serde_json::{Value as Json, json};

use crate::chromium::Browser;
use crate::look::{button, cell, go, shows, within};

struct Reaper {
    _cluster: Cluster,
    _operator: Operator,
    server: ConsoleServer,
}

/// Starts an operator that deletes ConfigMaps, and may delete one.
async fn reaper(only_plans: bool) -> Reaper {
    let cluster = Cluster::builder().start().await.expect("a cluster");
    let api = Api::<ConfigMap>::namespaced(cluster.client(), "default");
    for name in ["a", "b", "c"] {
        let map = serde_json::from_value(json!({"metadata": {"name": name}})).expect("a ConfigMap");
        api.create(&PostParams::default(), &map)
            .await
            .expect("created");
    }
    let factory = SharedControllerFactory::builder(cluster.client()).build();
    let operator = Operator::new("reaper", &factory);
    let operator = if only_plans {
        operator.plan_only()
    } else {
        operator
    };
    let client = factory.client();
    let reap = move |cx: Reconcile<ConfigMap>| {
        let api = Api::<ConfigMap>::namespaced(client.clone(), "default");
        async move {
            if cx.key().name().len() == 1 {
                api.delete(cx.key().name(), &DeleteParams::default())
                    .await?;
            }
            HandlerResult::Ok(Outcome::done())
        }
    };
    let guard = Guard::new().deletes(Budget::rate(1, Duration::MAX));
    let reconciler = operator.reconciler("maps", &factory.for_object::<ConfigMap>());
    reconciler.guard(guard).register(reap).expect("registered");
    let console = Console::on("127.0.0.1:0").actions(true);
    let server = operator.serve(console).expect("a free port");
    operator.start(1).await.expect("started");
    Reaper {
        _cluster: cluster,
        _operator: operator,
        server,
    }
}

#[tokio::test]
async fn a_tripped_guard_is_at_the_top_and_reset_once_that_is_confirmed() {
    let reaper = reaper(false).await;
    let mut browser = Browser::start().await;
    browser
        .open(&format!("http://{}/", reaper.server.address()))
        .await;
    browser
        .until(&within(
            ".findings .what",
            "The guard of reaper has tripped",
        ))
        .await;
    browser
        .until(&within(".findings .error", "is used up"))
        .await;
    go(&mut browser, "#/guards").await;
    browser
        .until(&format!("{}?.includes('tripped')", cell("reaper", "State")))
        .await;
    browser
        .until(&shows("budget of deletions, 1 until a reset"))
        .await;
    browser.picture("guards").await;

    browser.click(&button("Reset…")).await;
    browser
        .until("document.getElementById('confirm').open")
        .await;
    browser.click(&button("Cancel")).await;
    browser
        .until("!document.getElementById('confirm').open")
        .await;
    assert_eq!(
        browser
            .value("document.querySelector('#outcome p').textContent")
            .await,
        "",
        "nothing was done"
    );

    browser.click(&button("Reset…")).await;
    browser.click(&button("Reset")).await;
    browser
        .until(&within("#outcome", "the guard of maps in reaper is reset"))
        .await;
    assert_eq!(browser.complaints, Vec::<Json>::new());
}

#[tokio::test]
async fn a_plan_says_what_would_be_written() {
    let reaper = reaper(true).await;
    let mut browser = Browser::start().await;
    browser
        .open(&format!("http://{}/", reaper.server.address()))
        .await;
    browser.until(&shows("writes not sent")).await;
    go(&mut browser, "#/plan").await;
    browser
        .until(&shows("would delete v1 ConfigMap default/a"))
        .await;
    browser.picture("plan").await;
    assert_eq!(browser.complaints, Vec::<Json>::new());
}
