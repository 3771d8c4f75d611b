//! Tests of certificates from files: invalid ones, and replacements.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use lariat_webhook::{
    Admission, CertificateError, Certificates, Decision, Hook, WebhookError, Webhooks,
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::{
    Caller, Folder, Program, Widget, calm, issue, raised, review, serve, until, widget,
};

fn webhooks(program: &Program) -> Webhooks {
    let hook = Hook::new("any");
    program
        .webhooks()
        .validate(hook, async |_: Admission<Widget>| Ok(Decision::allow()))
}

fn creation() -> String {
    review("CREATE", &widget(&json!({})), &Value::Null).to_string()
}

fn quickly(folder: &Folder) -> Certificates {
    Certificates::directory(folder.path()).period(Duration::from_millis(10))
}

#[tokio::test]
async fn a_client_that_trusts_another_authority_gets_no_answer() {
    let program = Program::new().await;
    let (server, caller) = serve(webhooks(&program)).await;
    let other = Caller::trusting(&server, &issue().authority);
    let error = other
        .try_post("/validate/any", creation())
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("UnknownIssuer") || error.to_string().contains("BadSignature"),
        "{error}"
    );
    // A failed handshake does not affect other connections.
    assert_eq!(caller.post("/validate/any", creation()).await.0, 200);
}

#[tokio::test]
async fn files_that_cannot_be_used_are_an_error_at_the_start() {
    let program = Program::new().await;
    let folder = Folder::new();
    let served = webhooks(&program)
        .serve("127.0.0.1:0", quickly(&folder))
        .await;
    let error = served.unwrap_err();
    assert!(
        matches!(
            error,
            WebhookError::Certificates(CertificateError::Unreadable { .. })
        ),
        "{error}"
    );
    assert!(error.to_string().contains("tls.crt"), "{error}");
    let mut mixed = issue();
    mixed.key = issue().key;
    folder.mount(&mixed);
    let error = webhooks(&program)
        .serve("127.0.0.1:0", quickly(&folder))
        .await
        .unwrap_err();
    assert!(
        matches!(
            error,
            WebhookError::Certificates(CertificateError::Unusable { .. })
        ),
        "{error}"
    );
    assert!(!error.to_string().contains("BEGIN"), "{error}");
}

#[tokio::test]
async fn a_broken_pair_keeps_the_old_certificate_until_another_comes() {
    let program = Program::new().await;
    let folder = Folder::new();
    let first = issue();
    folder.mount(&first);
    let server = webhooks(&program)
        .serve("127.0.0.1:0", quickly(&folder))
        .await
        .unwrap();
    let health = server.health();
    let mut broken = issue();
    broken.key = issue().key;
    folder.mount(&broken);
    let reason = raised(&health, "renewal").await;
    assert!(reason.contains("cannot be used"), "{reason}");
    // The old certificate serves calls.
    assert_eq!(health.check(), Ok(()));
    let old = Caller::trusting(&server, &first.authority);
    assert_eq!(old.post("/validate/any", creation()).await.0, 200);
    fs::remove_file(folder.path().join("tls.key")).unwrap();
    until("the file is not missed", async || {
        let reason = raised(&health, "renewal").await;
        reason.contains("cannot be read").then_some(())
    })
    .await;
    let second = issue();
    folder.mount(&second);
    calm(&health).await;
    assert_eq!(server.authority().as_deref(), Some(&*second.authority));
    let new = Caller::trusting(&server, &second.authority);
    assert_eq!(new.post("/validate/any", creation()).await.0, 200);
    assert!(old.connect().await.is_err());
}

#[tokio::test]
async fn no_call_fails_while_a_certificate_is_replaced_under_load() {
    let program = Program::new().await;
    let folder = Folder::new();
    let (first, second) = (issue(), issue());
    folder.mount(&first);
    let server = webhooks(&program)
        .serve("127.0.0.1:0", quickly(&folder))
        .await
        .unwrap();
    // As API servers do while a bundle holds both.
    let both = format!("{}{}", first.authority, second.authority);
    let caller = Caller::trusting(&server, &both);
    let (ends, answered) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    let mut calls = JoinSet::new();
    for _ in 0..4 {
        let (caller, ends, answered) = (caller.clone(), Arc::clone(&ends), Arc::clone(&answered));
        calls.spawn(async move {
            while !ends.load(Ordering::Relaxed) {
                let (status, body) = caller.post("/validate/any", creation()).await;
                assert_eq!(status, 200, "{body}");
                answered.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    let more_answers = async || {
        let before = answered.load(Ordering::Relaxed);
        let has_more = async || (answered.load(Ordering::Relaxed) > before + 8).then_some(());
        until("no call is answered", has_more).await;
    };
    more_answers().await;
    folder.mount(&second);
    let new = Caller::trusting(&server, &second.authority);
    until("the new certificate is not shown", async || {
        new.connect().await.ok()
    })
    .await;
    more_answers().await;
    ends.store(true, Ordering::Relaxed);
    while let Some(call) = calls.join_next().await {
        call.unwrap();
    }
}
