//! Tests of the metrics for Prometheus.

use lariat_webhook::prometheus_client::encoding::text::encode;
use lariat_webhook::prometheus_client::registry::Registry;
use lariat_webhook::{Admission, Decision, Hook};
use serde_json::{Value, json};

use crate::support::{Program, Widget, review, serve, widget};

#[tokio::test]
async fn requests_are_counted_by_path_and_code() {
    let program = Program::new().await;
    let webhooks = program
        .webhooks()
        .validate(Hook::new("any"), async |_: Admission<Widget>| {
            Ok(Decision::allow())
        });
    let mut registry = Registry::default();
    webhooks.metrics().register(&mut registry);
    let (_server, caller) = serve(webhooks).await;
    let body = review("CREATE", &widget(&json!({})), &Value::Null).to_string();
    for _ in 0..3 {
        caller.post("/validate/any", body.clone()).await;
    }
    caller.post("/validate/any", "{").await;
    // Other paths create no series.
    caller.post("/validate/other", "{").await;
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    for expected in [
        r#"controller_runtime_webhook_requests_total{webhook="/validate/any",code="200"} 3"#,
        r#"controller_runtime_webhook_requests_total{webhook="/validate/any",code="400"} 1"#,
        r#"controller_runtime_webhook_latency_seconds_count{webhook="/validate/any"} 4"#,
        r#"controller_runtime_webhook_requests_in_flight{webhook="/validate/any"} 0"#,
    ] {
        assert!(text.contains(expected), "{text}");
    }
    assert!(!text.contains("other"), "{text}");
}
