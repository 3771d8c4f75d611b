//! What a planned operator does with pods: evictions, and commands in them.

use k8s_openapi::api::core::v1::Pod;
use kube::api::Api;
use lariat_cluster::testing::pod;
use lariat_controller::Outcome;

use crate::bench::{Bench, settle};
use crate::planning::plan;

/// Returns what was asked of subresources of the Pod `web`.
fn asked_of_web(bench: &Bench) -> Vec<String> {
    let requests = bench.cluster.journal().requests();
    let paths = requests
        .iter()
        .filter_map(|each| each.path.split_once("/pods/web/"));
    paths.map(|(_, rest)| format!("/{rest}")).collect()
}

#[tokio::test(start_paused = true)]
async fn evictions_are_dry_runs_and_calls_into_pods_refused() {
    let bench = Bench::new().await;
    bench.create("a", 1).await;
    pod("web").create(&bench.cluster.client()).await.unwrap();
    let operator = plan(&bench, |cx| async move {
        let api: Api<Pod> = Api::namespaced(cx.client(), "default");
        api.evict("web", &Default::default()).await?;
        let path = "/api/v1/namespaces/default/pods/web/proxy/shutdown";
        let request = http::Request::post(path).body(Vec::new())?;
        let refused = cx
            .client()
            .request_text(request)
            .await
            .expect_err("it is refused")
            .to_string();
        assert!(refused.contains("passed on to a program"), "{refused}");
        Ok(Outcome::done())
    });
    bench.start().await;
    settle().await;
    let pods: Api<Pod> = Api::namespaced(bench.cluster.client(), "default");
    assert!(
        pods.get("web")
            .await
            .unwrap()
            .metadata
            .deletion_timestamp
            .is_none()
    );
    let plan = operator.planned();
    let text = plan.to_string();
    assert!(
        text.contains("would create v1 pods default/web (eviction)\n"),
        "{text}"
    );
    assert!(
        text.contains("(proxy), but is refused: it cannot be run dry"),
        "{text}"
    );
    assert_eq!(asked_of_web(&bench), ["/eviction"]);
}

#[tokio::test(start_paused = true)]
async fn commands_in_pods_are_not_run_by_a_get_either() {
    let bench = Bench::new().await;
    bench.create("a", 1).await;
    pod("web").create(&bench.cluster.client()).await.unwrap();
    let operator = plan(&bench, |cx| async move {
        for call in [
            "exec?command=x",
            "attach",
            "portforward?ports=80",
            "exec?dryRun=All",
        ] {
            let path = format!("/api/v1/namespaces/default/pods/web/{call}");
            // As a WebSocket begins.
            let request = http::Request::get(path).header("upgrade", "websocket");
            let refused = cx
                .client()
                .request_text(request.body(Vec::new())?)
                .await
                .expect_err("it is refused")
                .to_string();
            assert!(refused.contains("passed on to a program"), "{refused}");
        }
        let log = http::Request::get("/api/v1/namespaces/default/pods/web/proxy/x");
        let read = cx
            .client()
            .request_text(log.body(Vec::new())?)
            .await
            .expect_err("there is no kubelet")
            .to_string();
        assert!(!read.contains("passed on to a program"), "{read}");
        Ok(Outcome::done())
    });
    bench.start().await;
    settle().await;
    assert_eq!(asked_of_web(&bench), ["/proxy/x"]);
    let plan = operator.planned();
    assert_eq!(plan.len(), 3, "{plan}");
    let expected = "would create v1 pods default/web (exec), 2 times, but is refused";
    assert!(plan.to_string().contains(expected), "{plan}");
}
