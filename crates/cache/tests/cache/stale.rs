//! Servers that answer and do not follow etcd any more.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Client;
use kube::api::{Api, PostParams};
use kube::client::Body;
use lariat_cache::{InitialList, KindOptions, Phase, SharedCacheFactory};
use lariat_cluster::Cluster;
use lariat_core::Gvk;
use serde_json::json;
use tokio::time;
use tower_service::Service;

use crate::bench::{MINUTE, any_body, cluster, config_maps};

/// A client of a server whose watch cache for ConfigMaps can hang: it sends bookmarks of the same version.
fn hanging(cluster: &Cluster, hangs: &Arc<AtomicBool>) -> Client {
    following(cluster, hangs, 0)
}

/// A client of a server whose bookmarks for ConfigMaps move by `pace` versions, whatever happens in between.
fn following(cluster: &Cluster, hangs: &Arc<AtomicBool>, pace: u64) -> Client {
    let (service, hangs) = (cluster.service(), Arc::clone(hangs));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (mut service, hangs) = (service.clone(), Arc::clone(&hangs));
        async move {
            let query = request.uri().query().unwrap_or_default();
            let is_watch = request.uri().path().ends_with("/configmaps")
                && query.contains("watch=true")
                && hangs.load(Ordering::Relaxed);
            if !is_watch {
                let answer = service.call(request).await?;
                return Ok::<_, tower::BoxError>(answer.map(any_body));
            }
            let since = query
                .split("resourceVersion=")
                .nth(1)
                .expect("it has a version");
            let since = since.split('&').next().expect("it has a version");
            let since: u64 = since.parse().expect("it is a number");
            let bookmarks =
                futures::stream::unfold((since, hangs), move |(at, hangs)| async move {
                    time::sleep(MINUTE).await;
                    let at = at + pace;
                    let object = format!(r#"{{"metadata":{{"resourceVersion":"{at}"}}}}"#);
                    let line = format!("{{\"type\":\"BOOKMARK\",\"object\":{object}}}\n");
                    let frame = Frame::data(Bytes::from(line));
                    let goes_on = hangs.load(Ordering::Relaxed);
                    goes_on.then(|| (Ok::<_, Infallible>(frame), (at, hangs)))
                });
            Ok(Response::new(any_body(StreamBody::new(Box::pin(
                bookmarks,
            )))))
        }
    });
    Client::new(service, "default")
}

fn factory(client: Client) -> SharedCacheFactory {
    let options = KindOptions::default().initial_list(InitialList::List);
    SharedCacheFactory::builder(client)
        .default_options(options)
        .build()
}

#[tokio::test(start_paused = true)]
async fn watch_behind_an_own_write_is_shown_until_it_has_passed_the_write() {
    let cluster = cluster().await;
    let hangs = Arc::new(AtomicBool::new(true));
    let factory = factory(hanging(&cluster, &hangs));
    let informer = factory.for_kind(config_maps());
    factory.start();
    factory.wait_for_sync(MINUTE).await.expect("it syncs");
    let own: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "own"}})).unwrap();
    let api: Api<ConfigMap> = Api::namespaced(factory.clients().client(), "default");
    api.create(&PostParams::default(), &own).await.unwrap();
    time::sleep(Duration::from_secs(100)).await;
    assert_eq!(
        informer.status().interrupted,
        None,
        "the watch may be about to report it"
    );
    time::sleep(4 * MINUTE).await;
    let status = informer.status();
    let error = status.last_error.clone().expect("it is shown");
    assert!(error.contains("the API server is stale"), "{error}");
    assert_eq!(status.phase, Phase::Synced);
    assert!(status.is_stale(), "although a watch is open");
    // The watch goes on.
    hangs.store(false, Ordering::Relaxed);
    time::sleep(5 * MINUTE).await;
    let status = informer.status();
    assert!(!status.is_stale(), "{status:?}");
    assert_eq!(status.last_error, None);
}

#[tokio::test(start_paused = true)]
async fn watch_whose_bookmarks_stand_still_while_other_kinds_move_is_opened_again() {
    let cluster = cluster().await;
    let hangs = Arc::new(AtomicBool::new(true));
    let factory = factory(hanging(&cluster, &hangs));
    let informer = factory.for_kind(config_maps());
    let _others = factory.for_kind(Gvk::new("", "v1", "Secret"));
    factory.start();
    factory.wait_for_sync(MINUTE).await.expect("it syncs");
    time::sleep(4 * MINUTE).await;
    assert_eq!(informer.status().watches, 1, "nothing moves");
    let secret: Secret = serde_json::from_value(json!({"metadata": {"name": "s"}})).unwrap();
    let api: Api<Secret> = Api::namespaced(cluster.client(), "default");
    api.create(&PostParams::default(), &secret).await.unwrap();
    time::sleep(4 * MINUTE).await;
    let status = informer.status();
    assert!(
        status.reconnects(lariat_cache::Reconnect::Silent) >= 1,
        "{status:?}"
    );
    assert!(!status.is_stale(), "it is no proof: {status:?}");
}

#[tokio::test(start_paused = true)]
async fn watch_that_moves_behind_an_own_write_stays_stale() {
    let cluster = cluster().await;
    let hangs = Arc::new(AtomicBool::new(true));
    let factory = factory(following(&cluster, &hangs, 1));
    let informer = factory.for_kind(config_maps());
    factory.start();
    factory.wait_for_sync(MINUTE).await.expect("it syncs");
    // The server follows a version a minute, and the write is fifty versions away.
    let secrets: Api<Secret> = Api::namespaced(cluster.client(), "default");
    for number in 0..50 {
        let secret = json!({"metadata": {"name": format!("s{number}")}});
        let secret = serde_json::from_value(secret).unwrap();
        let created = secrets.create(&PostParams::default(), &secret).await;
        created.unwrap();
    }
    let own: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "own"}})).unwrap();
    let api: Api<ConfigMap> = Api::namespaced(factory.clients().client(), "default");
    api.create(&PostParams::default(), &own).await.unwrap();
    time::sleep(5 * MINUTE).await;
    for minute in 0..8 {
        let status = informer.status();
        assert!(status.is_stale(), "{minute}: {status:?}");
        time::sleep(MINUTE).await;
    }
}

#[tokio::test(start_paused = true)]
async fn own_write_that_a_watch_passes_unreported_leads_to_a_list() {
    let cluster = cluster().await;
    let hangs = Arc::new(AtomicBool::new(true));
    let factory = factory(following(&cluster, &hangs, 1000));
    let informer = factory.for_kind(config_maps());
    factory.start();
    factory.wait_for_sync(MINUTE).await.expect("it syncs");
    let own: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "own"}})).unwrap();
    let api: Api<ConfigMap> = Api::namespaced(factory.clients().client(), "default");
    api.create(&PostParams::default(), &own).await.unwrap();
    time::sleep(MINUTE / 2).await;
    assert_eq!(informer.status().loads, 1);
    time::sleep(MINUTE).await;
    assert_eq!((informer.status().loads, informer.store().len()), (2, 1));
}

/// The write that a hanging watch cache has not reported is of the former history.
#[tokio::test(start_paused = true)]
async fn restore_ends_the_claim_that_the_server_is_stale() {
    let cluster = cluster().await;
    let hangs = Arc::new(AtomicBool::new(true));
    let factory = factory(hanging(&cluster, &hangs));
    let informer = factory.for_kind(config_maps());
    factory.start();
    factory.wait_for_sync(MINUTE).await.expect("it syncs");
    let backup = cluster.snapshot();
    let secrets: Api<Secret> = Api::namespaced(cluster.client(), "default");
    for number in 0..50 {
        let name = format!("s{number}");
        let secret = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        let created = secrets.create(&PostParams::default(), &secret).await;
        created.expect("created");
    }
    let own: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "own"}})).unwrap();
    let api: Api<ConfigMap> = Api::namespaced(factory.clients().client(), "default");
    api.create(&PostParams::default(), &own).await.unwrap();
    // A bookmark from before it has come by then.
    time::sleep(MINUTE * 3 / 2).await;
    hangs.store(false, Ordering::Relaxed);
    cluster.rewind_to(&backup).await.expect("restored");
    time::sleep(2 * MINUTE).await;
    let watches = informer.status().watches;
    time::sleep(20 * MINUTE).await;
    let status = informer.status();
    assert!(
        !status.is_stale() && status.last_error.is_none(),
        "{status:?}"
    );
    assert!(
        status.watches <= watches + 5,
        "{}",
        status.watches - watches
    );
}
