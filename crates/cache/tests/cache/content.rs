//! Metadata only, and the content once it is needed.

use k8s_openapi::api::core::v1::ConfigMap;
use lariat_cache::{
    Informer, InitialList, KindOptions, LoadError, Metadata, Phase, Query, SharedCacheFactory,
    Storage, Transform,
};
use lariat_cluster::Cluster;
use lariat_cluster::faults::{Action, After, Refusal, Rule, StatusCode};
use lariat_core::{ObjectKey, describe};
use std::sync::Arc;
use std::time::Duration;
use tokio::time;

use crate::bench::{MINUTE, Recorder, Writer, cluster, config_maps, eventually};

const SECOND: Duration = Duration::from_secs(1);

async fn started(cluster: &Cluster, options: KindOptions) -> (SharedCacheFactory, Informer) {
    let factory = SharedCacheFactory::builder(cluster.client())
        .default_options(options)
        .build();
    let informer = factory.for_kind(config_maps());
    factory.start();
    factory.wait_for_sync(MINUTE).await.expect("synced");
    (factory, informer)
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("default", name)
}

#[tokio::test(start_paused = true)]
async fn the_first_use_that_needs_content_upgrades_the_watch_without_changes() {
    for filling in [InitialList::List, InitialList::WatchList] {
        let cluster = cluster().await;
        let writer = Writer::new(cluster.client());
        for number in 0..5 {
            writer.create(&format!("o{number}")).await;
            writer.change(&format!("o{number}"), "some value").await;
        }
        let options = KindOptions::default().initial_list(filling);
        let (factory, informer) = started(&cluster, options).await;
        let recorder = Arc::new(Recorder::default());
        let _subscription = informer.subscribe(Arc::clone(&recorder) as _);
        let metadata = informer.cache::<Metadata>();
        let object = metadata.get(&key("o1")).unwrap().unwrap();
        assert!(!object.has_content());
        let json = String::from_utf8(object.json().unwrap().into_owned()).unwrap();
        assert!(
            json.contains("PartialObjectMetadata") && !json.contains("some value"),
            "{json}"
        );
        let small = informer.status().bytes;

        let typed = informer.cache::<ConfigMap>();
        assert!(informer.is_upgrading(), "it has yet to be read");
        assert_eq!(informer.status().phase, Phase::Synced);
        let early = typed.get(&key("o1")).unwrap_err();
        assert!(early.is_no_content(), "{early}");
        let loaded = informer.load(&key("o1")).await.unwrap().unwrap();
        assert!(loaded.has_content());
        assert!(informer.load(&key("none")).await.unwrap().is_none());

        factory.wait_for_sync(MINUTE).await.unwrap();
        let object = typed.get(&key("o1")).unwrap().unwrap();
        assert_eq!(object.data.as_ref().unwrap()["value"], "some value");
        assert_eq!(
            recorder.reported().len(),
            5,
            "published once, at the time of subscribing"
        );
        assert!(informer.status().bytes > small);

        // It stays so, for all users.
        writer.change("o1", "another").await;
        eventually(async || recorder.reported().len(), 6).await;
        assert!(metadata.get(&key("o1")).unwrap().unwrap().has_content());
        assert_eq!(cluster.journal().count("watch", "configmaps"), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_sends_whole_objects_all_the_same_is_cut_down_to_metadata() {
    use crate::script::{Answer, Script, quiet};
    let script = Script::new(|ask| {
        assert!(ask.metadata_only);
        let item = r#"{"metadata":{"name":"a","resourceVersion":"1"},"data":{"k":"v"}}"#;
        let text = format!(r#"{{"metadata":{{"resourceVersion":"1"}},"items":[{item}]}}"#);
        if ask.watch {
            quiet()
        } else {
            Answer::Whole(200, Vec::new(), text)
        }
    });
    let factory = crate::bench::listing(crate::bench::no_client());
    let informer = factory.for_source(config_maps(), Arc::new(script));
    factory.start();
    factory.wait_for_sync(MINUTE).await.unwrap();
    let object = informer.store().get(&ObjectKey::cluster("a")).unwrap();
    assert!(!object.has_content());
    assert_eq!(
        &*object.json().unwrap(),
        br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","resourceVersion":"1"}}"#
    );
}

#[tokio::test(start_paused = true)]
async fn content_on_demand_is_never_watched_and_always_to_be_had() {
    let cluster = cluster().await;
    let writer = Writer::new(cluster.client());
    writer.create("a").await;
    writer.change("a", "some value").await;
    let options = KindOptions::default().storage(Storage::OnDemand);
    let (factory, informer) = started(&cluster, options).await;
    let typed = informer.cache::<ConfigMap>();
    factory.wait_for_sync(MINUTE).await.unwrap();
    assert!(typed.get(&key("a")).unwrap_err().is_no_content());
    let loaded = informer.load(&key("a")).await.unwrap().unwrap();
    let value = loaded.decode::<ConfigMap>(informer.gvk()).unwrap();
    assert_eq!(value.data.as_ref().unwrap()["value"], "some value");
    let error = typed.get(&key("a")).unwrap_err().to_string();
    assert!(
        error.contains("only its metadata is cached; Informer::load"),
        "{error}"
    );
}

/// Returns the value that a load finds, and how many requests it took.
///
/// The process writes while the first answer is under way.
async fn loaded_while(write: impl AsyncFnOnce(Writer)) -> (Option<String>, usize) {
    let cluster = cluster().await;
    let writer = Writer::new(cluster.client());
    writer.create("a").await;
    writer.change("a", "old").await;
    let options = KindOptions::default().storage(Storage::OnDemand);
    let (factory, informer) = started(&cluster, options).await;
    let late = Rule::new(Action::DelayReply(Duration::from_secs(1))).verb("get");
    cluster.faults().add(late.times(1));
    let object = key("a");
    let own = async {
        time::sleep(Duration::from_millis(500)).await;
        write(Writer::new(factory.clients().client())).await;
    };
    let (loaded, ()) = tokio::join!(informer.load(&object), own);
    let value = loaded.expect("loaded").map(|loaded| {
        let map = loaded
            .decode::<ConfigMap>(informer.gvk())
            .expect("it decodes");
        map.data.as_ref().expect("it has data")["value"].clone()
    });
    (value, cluster.journal().count("get", "configmaps"))
}

/// A handler was called with a state from before a write that had been answered.
#[tokio::test(start_paused = true)]
async fn what_is_fetched_is_not_older_than_a_write_that_was_answered_meanwhile() {
    let found = loaded_while(async |_| {}).await;
    assert_eq!(found, (Some("old".to_owned()), 1));
    let found = loaded_while(async |own| own.change("a", "new").await).await;
    assert_eq!(found, (Some("new".to_owned()), 2));
    let found = loaded_while(async |own| own.delete("a").await).await;
    assert_eq!(found, (None, 1));
    let found = loaded_while(async |own| {
        own.delete("a").await;
        own.create("a").await;
        own.change("a", "another").await;
    });
    assert_eq!(found.await, (Some("another".to_owned()), 2));
}

#[tokio::test(start_paused = true)]
async fn loaded_objects_are_as_new_as_cached_ones_if_the_server_is_behind() {
    let cluster = cluster().await;
    let writer = Writer::new(cluster.client());
    let names: Vec<String> = (0..6).map(|number| format!("o{number}")).collect();
    for name in &names {
        writer.create(name).await;
        writer.change(name, "old").await;
    }
    let options = KindOptions::default().storage(Storage::OnDemand);
    let (_factory, informer) = started(&cluster, options).await;
    // Reads at version zero have the old states from now on.
    cluster.faults().add(Rule::new(Action::StaleRead));
    for name in &names {
        writer.change(name, "new").await;
    }
    time::sleep(SECOND).await;
    let loaded = informer.load_all(&Query::all()).await.expect("loaded");
    let values = loaded.iter().map(|object| {
        let map = object.decode::<ConfigMap>(informer.gvk()).expect("decodes");
        map.data.as_ref().expect("it has data")["value"].clone()
    });
    assert_eq!(values.collect::<Vec<_>>(), ["new"; 6]);
    let lists = cluster.journal().count("list", "configmaps");
    assert!(lists >= 1, "not one by one");
}

/// A kind was defined again with another scope: the path is that of another object.
#[tokio::test(start_paused = true)]
async fn what_is_fetched_in_place_of_an_object_is_not_its_content() {
    let loaded = loaded_from("/api/v1/namespaces/default/configmaps/b").await;
    assert!(loaded.unwrap().is_none());
}

/// Such an answer says nothing about the object.
#[tokio::test(start_paused = true)]
async fn loaded_object_of_other_kind_is_an_error() {
    let error = loaded_from("/api/v1/namespaces/default").await.unwrap_err();
    let error = describe(&error);
    assert!(
        error.contains("cannot be read: not a v1 ConfigMap"),
        "{error}"
    );
}

/// Loads an object from a server that answers with another one.
async fn loaded_from(
    path: &'static str,
) -> Result<Option<Arc<lariat_cache::CachedObject>>, LoadError> {
    let cluster = cluster().await;
    for name in ["a", "b"] {
        Writer::new(cluster.client()).create(name).await;
    }
    let service = cluster.service();
    let moved = tower::service_fn(move |mut request: http::Request<kube::client::Body>| {
        use tower_service::Service;
        if request.uri().path().ends_with("/configmaps/a") {
            *request.uri_mut() = http::Uri::from_static(path);
        }
        service.clone().call(request)
    });
    let factory = SharedCacheFactory::builder(kube::Client::new(moved, "default"))
        .default_options(KindOptions::default().storage(Storage::OnDemand))
        .build();
    let informer = factory.for_kind(config_maps());
    factory.start();
    factory.wait_for_sync(MINUTE).await.expect("synced");
    informer.load(&key("a")).await
}

#[tokio::test(start_paused = true)]
async fn an_object_does_not_count_as_deleted_while_its_kind_is_not_served() {
    let cluster = cluster().await;
    let writer = Writer::new(cluster.client());
    writer.create("a").await;
    let faults = cluster.faults();
    let second = Duration::from_secs(1);
    faults.add(Rule::new(Action::HangWatch(After::Time(second))).resource("configmaps"));
    let options = KindOptions::default().storage(Storage::OnDemand);
    let (_factory, informer) = started(&cluster, options).await;
    time::sleep(2 * second).await;
    let not_served = Action::Refuse(Refusal::new(StatusCode::NOT_FOUND));
    let not_served = faults.add(Rule::new(not_served).verb("get"));
    let error = informer.load(&key("a")).await.unwrap_err();
    let error = describe(&error);
    assert!(error.contains("cannot be read"), "{error}");
    faults.remove(not_served);
    assert!(informer.load(&key("a")).await.unwrap().is_some());
    // The watch does not report its deletion.
    writer.delete("a").await;
    assert!(informer.load(&key("a")).await.unwrap().is_none());
    assert!(informer.store().get(&key("a")).is_some());
}

#[tokio::test(start_paused = true)]
async fn what_a_transform_leaves_out_is_neither_cached_nor_shown() {
    let cluster = cluster().await;
    let writer = Writer::new(cluster.client());
    writer.create("a").await;
    writer.change("a", "some value").await;
    let options = KindOptions::default().transform(Transform::drop(["/data"]));
    let (factory, informer) = started(&cluster, options).await;
    let typed = informer.cache::<ConfigMap>();
    factory.wait_for_sync(MINUTE).await.unwrap();
    assert_eq!(typed.get(&key("a")).unwrap().unwrap().data, None);
    writer.change("a", "another").await;
    let version = writer.truth().await["a"].clone();
    eventually(
        async || {
            typed
                .get(&key("a"))
                .unwrap()
                .unwrap()
                .metadata
                .resource_version
                .clone()
        },
        Some(version),
    )
    .await;
    assert_eq!(typed.get(&key("a")).unwrap().unwrap().data, None);
    let loaded = informer.load(&key("a")).await.unwrap().unwrap();
    let json = String::from_utf8(loaded.json().unwrap().into_owned()).unwrap();
    assert!(
        !json.contains("another"),
        "what is fetched is changed too: {json}"
    );
}

#[tokio::test(start_paused = true)]
async fn managed_fields_are_kept_on_request() {
    use crate::script::{Answer, Script, quiet};
    for (options, expected) in [
        (KindOptions::default(), false),
        (KindOptions::default().keep_managed_fields(), true),
    ] {
        let script = Script::new(|ask| {
            let item = r#"{"metadata":{"name":"a","managedFields":[{"manager":"x"}]}}"#;
            let text = format!(r#"{{"metadata":{{"resourceVersion":"1"}},"items":[{item}]}}"#);
            if ask.watch {
                quiet()
            } else {
                Answer::Whole(200, Vec::new(), text)
            }
        });
        let options = options.initial_list(InitialList::List);
        let factory = SharedCacheFactory::builder(crate::bench::no_client())
            .kind_options(config_maps(), options)
            .build();
        let informer = factory.for_source(config_maps(), Arc::new(script));
        let typed = informer.cache::<ConfigMap>();
        factory.start();
        factory.wait_for_sync(MINUTE).await.unwrap();
        let object = typed.get(&ObjectKey::cluster("a")).unwrap().unwrap();
        assert_eq!(object.metadata.managed_fields.is_some(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn upgrade_to_content_does_not_make_metadata_readers_wait() {
    for filling in [InitialList::List, InitialList::WatchList] {
        let cluster = cluster().await;
        let writer = Writer::new(cluster.client());
        writer.create("a").await;
        let options = KindOptions::default().initial_list(filling);
        let (factory, informer) = started(&cluster, options).await;
        let metadata = informer.cache::<Metadata>();
        cluster
            .faults()
            .add(Rule::new(Action::Delay(25 * SECOND)).resource("configmaps"));
        let (whole, began) = (informer.cache::<ConfigMap>(), time::Instant::now());
        assert_eq!(metadata.readable_within(Duration::ZERO).await, Some(true));
        assert!(metadata.synced().await && informer.synced().await);
        assert_eq!(began.elapsed(), Duration::ZERO);
        assert_eq!(informer.status().phase, Phase::Synced);
        // Readers of content wait for it, and so does a start.
        assert_eq!(whole.readable_within(SECOND).await, None);
        assert!(informer.is_upgrading());
        let error = factory.wait_for_sync(SECOND).await.unwrap_err().to_string();
        let expected = "1 kind not synced after 1s: v1 ConfigMap: its content is being read";
        assert_eq!(error, expected);
        time::sleep(10 * SECOND).await;
        assert!(!informer.is_current(), "the former watch has ended");
        assert!(whole.synced().await);
        assert!(whole.get(&key("a")).unwrap().is_some());
        assert_eq!(whole.readable_within(Duration::ZERO).await, Some(true));
        eventually(async || informer.is_current(), true).await;
        factory.wait_for_sync(SECOND).await.unwrap();
    }
}
