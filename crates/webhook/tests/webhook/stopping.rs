//! Tests of stops during calls.

use std::sync::Arc;

use lariat_webhook::{Admission, Decision, Hook};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::support::{Caller, Program, Widget, review, serve, until, widget};

fn creation() -> String {
    review("CREATE", &widget(&json!({})), &Value::Null).to_string()
}

#[tokio::test]
async fn a_running_call_is_answered_and_no_other_begins_after_a_stop() {
    let program = Program::new().await;
    let (began, goes_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begins, goes) = (Arc::clone(&began), Arc::clone(&goes_on));
    let webhooks = program
        .webhooks()
        .validate(Hook::new("slow"), move |_: Admission<Widget>| {
            let (begins, goes) = (Arc::clone(&begins), Arc::clone(&goes));
            async move {
                begins.notify_one();
                goes.notified().await;
                Ok(Decision::allow())
            }
        });
    let (server, caller) = serve(webhooks).await;
    let health = server.health();
    let mut calls = JoinSet::new();
    let own = caller.clone();
    calls.spawn(async move { own.post("/validate/slow", creation()).await });
    began.notified().await;
    let mut stops = JoinSet::new();
    stops.spawn(async move { server.shutdown().await });
    // A connection is refused once the stop has begun.
    until_refused(&caller).await;
    assert_eq!(health.check(), Err("the webhooks are stopping".to_owned()));
    assert!(stops.try_join_next().is_none());
    goes_on.notify_one();
    let (status, body) = calls.join_next().await.unwrap().unwrap();
    assert_eq!(status, 200, "{body}");
    stops.join_next().await.unwrap().unwrap();
}

#[tokio::test]
async fn dropping_the_handle_stops_the_server() {
    let program = Program::new().await;
    let webhooks = program.webhooks();
    let webhooks = webhooks.validate(Hook::new("any"), async |_: Admission<Widget>| {
        Ok(Decision::allow())
    });
    let (server, caller) = serve(webhooks).await;
    assert_eq!(caller.post("/validate/any", creation()).await.0, 200);
    drop(server);
    until_refused(&caller).await;
}

/// Waits until no connection is accepted any more.
async fn until_refused(caller: &Caller) {
    until("connections are accepted", async || {
        caller.connect().await.err()
    })
    .await;
}
