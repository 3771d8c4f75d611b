//! The exposition of metrics.

use lariat_controller::metrics::prometheus_client::metrics::counter::Counter;

use crate::bench::{Bench, until};

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

#[tokio::test]
async fn metrics_of_controllers_and_of_the_program_are_there_in_both_formats() {
    let orders = Counter::<u64>::default();
    let registered = orders.clone();
    let bench = Bench::with(|console, _| {
        console.metrics(move |registry| {
            registry.register("orders", "Orders taken", registered.clone())
        })
    })
    .await;
    bench.idle("log");
    bench.create("web").await;
    bench.start().await;
    orders.inc_by(7);
    let runs = "lariat_handler_calls_total{ctx=\"\",kind=\"v1 ConfigMap\",handler=\"log\",result=\"done\"}";
    let text = until(async || {
        let answer = bench.client.get("/metrics").await;
        assert_eq!((answer.status, answer.header("content-type")), (200, TEXT));
        let line = answer
            .text
            .lines()
            .find(|line| line.starts_with(runs))?
            .to_owned();
        (!line.ends_with(" 0")).then_some(answer.text)
    })
    .await;
    for expected in [
        "# TYPE orders_total counter\norders_total 7\n",
        "# TYPE workqueue_adds_total counter\n",
        "# TYPE lariat_handler_time_seconds histogram\n",
        "lariat_reflector_synced{ctx=\"\",kind=\"v1 ConfigMap\"} 1\n",
    ] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
    assert!(!text.contains("# EOF") && !text.contains("# UNIT"));
    let newer = bench.client.with(
        "accept",
        "application/openmetrics-text;version=1.0.0,text/plain;q=0.5",
    );
    let answer = newer.get("/metrics").await;
    assert_eq!(answer.header("content-type"), OPENMETRICS);
    assert!(
        answer
            .text
            .contains("# TYPE orders counter\norders_total 7\n"),
        "{}",
        answer.text
    );
    assert!(answer.text.ends_with("# EOF\n"));
}
