//! Clients with identities of their own.

use std::sync::Arc;

use kube::api::{DynamicObject, PostParams};
use lariat_cache::ClientIdentity;
use serde_json::json;

use crate::bench::{MINUTE, cluster, config_maps, factory};

#[tokio::test(start_paused = true)]
async fn identities_are_sent_and_cause_no_second_watch() {
    let cluster = cluster().await;
    let factory = factory(cluster.client());
    let informer = factory.for_kind(config_maps());
    factory.start();
    factory.wait_for_sync(MINUTE).await.unwrap();
    let identity = ClientIdentity::default()
        .user_agent("scaler/1.2")
        .field_manager("scaler");
    let scaler = factory
        .clients()
        .for_kind_as(config_maps(), identity.clone())
        .unwrap();
    let object: DynamicObject = serde_json::from_value(json!({"metadata": {"name": "a"}})).unwrap();
    let api = scaler.api(Some("default")).await.unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
    let requests = cluster.journal().requests();
    let create = requests
        .iter()
        .find(|request| request.verb == "create")
        .unwrap();
    assert_eq!(create.user_agent, "scaler/1.2");
    assert!(
        create.query.contains("fieldManager=scaler"),
        "{}",
        create.query
    );
    assert_eq!(
        informer.store().len(),
        1,
        "the cache shows what any identity wrote"
    );
    assert_eq!(cluster.journal().count("watch", "configmaps"), 1);

    let again = factory
        .clients()
        .for_kind_as(config_maps(), identity)
        .unwrap();
    assert!(Arc::ptr_eq(&scaler, &again));
    let other = ClientIdentity::default()
        .impersonate("jane")
        .impersonate_group("all");
    let other = factory.clients().for_kind_as(config_maps(), other).unwrap();
    assert!(!Arc::ptr_eq(&scaler, &other));
}

#[tokio::test]
async fn an_identity_that_cannot_be_sent_is_refused_by_name() {
    let cluster = cluster().await;
    let factory = factory(cluster.client());
    let odd = ClientIdentity::default().impersonate("line\nbreak");
    let error = factory
        .clients()
        .for_kind_as(config_maps(), odd)
        .unwrap_err();
    assert!(error.to_string().contains("impersonated user"), "{error}");
}
