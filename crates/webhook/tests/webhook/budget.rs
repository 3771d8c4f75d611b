//! Tests of the memory that bodies may take.

use hyper::body::Bytes;
use lariat_webhook::{Admission, Decision, Hook};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use crate::support::{Caller, Program, Widget, get, review, serve, until, widget};

const MIB: usize = 1 << 20;

/// Opens a connection that has sent all of a body but its last byte.
async fn hold(caller: &Caller, length: usize) -> impl Sized {
    let mut stream = caller.connect().await.unwrap();
    let head = format!(
        "POST /validate/any?timeout=30s HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // The server may refuse the body before its end.
    let _ = stream.write_all(&vec![b' '; length - 1]).await;
    let _ = stream.flush().await;
    stream
}

#[tokio::test]
async fn unfinished_bodies_leave_room_for_small_reviews_and_probes() {
    let program = Program::new().await;
    let webhooks = program.webhooks().body_limits(2 * MIB, 2 * MIB);
    let webhooks = webhooks.body_budget(4 * MIB);
    let any = async |_: Admission<Widget>| Ok(Decision::allow());
    let (_server, caller) = serve(webhooks.validate(Hook::new("any"), any)).await;
    let mut held = Vec::new();
    for _ in 0..8 {
        held.push(hold(&caller, 2 * MIB).await);
    }
    let small = review("CREATE", &widget(&json!({})), &Value::Null).to_string();
    let large = small.clone() + &" ".repeat(MIB);
    // The bodies may still be on their way.
    until("large bodies are accepted without a bound", async || {
        let answer = caller.try_post("/validate/any", large.clone()).await;
        // A body that is refused before it was sent may break its connection.
        let is_refused = answer.map_or(true, |(status, _)| status == 429);
        is_refused.then_some(())
    })
    .await;
    assert_eq!(caller.post("/validate/any", small).await.0, 200);
    assert_eq!(get(&caller, "/readyz").await, (200, "ok".to_owned()));
    drop(held);
    until("the room is not returned", async || {
        let answer = caller.try_post("/validate/any", large.clone()).await;
        answer.is_ok_and(|(status, _)| status == 200).then_some(())
    })
    .await;
}

#[tokio::test]
async fn announced_length_above_limit_is_refused_before_body() {
    let program = Program::new().await;
    let any = async |_: Admission<Widget>| Ok(Decision::allow());
    let (_server, caller) = serve(program.webhooks().validate(Hook::new("any"), any)).await;
    let request = hyper::Request::post("/validate/any")
        .header("host", "a")
        .header("content-type", "application/json")
        .header("content-length", 8 * MIB)
        .header("expect", "100-continue");
    let body = http_body_util::Full::new(Bytes::from(vec![b' '; 8 * MIB]));
    let answer = caller.send(request.body(body).unwrap()).await;
    if let Ok((status, _)) = answer {
        assert_eq!(status, 413);
    }
}
