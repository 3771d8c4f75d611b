//! The main job: named handlers on one watch, one cache and one queue per kind.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use lariat::kube::api::{Api, ApiResource, DeleteParams, Patch, PatchParams, PostParams};
use lariat::prelude::*;
use lariat_integration::{eventually, in_namespace};
use serde_json::json;

use crate::books::{Books, LABEL, change, create, delete};

/// Registers a handler of one view or another of the same kind.
fn register(factory: &SharedControllerFactory, number: usize, books: &Books) -> Result<()> {
    let name = format!("handler-{number}");
    match number % 3 {
        0 => typed(factory, &name, books),
        1 => dynamic(factory, &name, books),
        _ => metadata(factory, &name, books),
    }
}

fn typed(factory: &SharedControllerFactory, name: &str, books: &Books) -> Result<()> {
    let config_maps = factory.for_object::<ConfigMap>();
    config_maps.register_handler(name, books.keeper())?;
    Ok(())
}

fn dynamic(factory: &SharedControllerFactory, name: &str, books: &Books) -> Result<()> {
    let config_maps = factory.for_kind(Gvk::new("", "v1", "ConfigMap"));
    let value = |object: Arc<DynamicObject>| {
        let value = object.data["data"]["value"].as_str();
        value.unwrap_or_default().to_owned()
    };
    let books = books.clone();
    config_maps.register_handler(name, move |cx: Context<DynamicObject>| {
        let books = books.clone();
        async move {
            books.write(&cx, cx.object()?.map(value), None);
            Ok(Outcome::done())
        }
    })?;
    Ok(())
}

fn metadata(factory: &SharedControllerFactory, name: &str, books: &Books) -> Result<()> {
    let config_maps = factory.for_object::<ConfigMap>().view::<Metadata>();
    let books = books.clone();
    config_maps.register_handler(name, move |cx: Context<Metadata>| {
        let value = cx.raw().map(|object| object.labels().get("value"));
        let seen = value.map(|value| value.unwrap_or("one").to_owned());
        books.write(&cx, seen, None);
        async { Ok(Outcome::done()) }
    })?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn handlers_of_every_view_share_one_watch_whatever_their_number() {
    for handlers in [1, 10, 100] {
        in_namespace("views", async |env| {
            let factory = env.factory().build();
            let books = Books::new(&env.namespace);
            for number in 0..handlers {
                register(&factory, number, &books)?;
            }
            factory.start(5).await?;
            for name in ["a", "b", "c"] {
                create(&env.api(), name, "one").await?;
            }
            eventually(async || {
                let (calls, expected) = (books.calls(), 3 * handlers);
                ensure!(calls >= expected, "{calls} of {expected} calls");
                Ok(())
            })
            .await;
            let expected = ["a", "b", "c"].map(|name| (name.to_owned(), "one".to_owned()));
            assert_eq!(books.last(), expected.into());
            // Servers before streaming lists are listed once.
            assert!(
                env.wire.lists("configmaps") <= 1,
                "with {handlers} handlers"
            );
            assert_eq!(
                env.wire.watches("configmaps"),
                1,
                "with {handlers} handlers"
            );
            factory.stop().await?;
            Ok(())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_fails_is_tried_again_alone() {
    in_namespace("retry", async |env| {
        let factory = env.factory().build();
        let config_maps = factory.for_object::<ConfigMap>();
        let (steady, flaky) = (Books::new(&env.namespace), Books::new(&env.namespace));
        config_maps.register_handler("steady", steady.keeper())?;
        let (books, key) = (flaky.clone(), ObjectKey::namespaced(&env.namespace, "a"));
        config_maps.register_handler("flaky", move |cx: Context<ConfigMap>| {
            books.write(&cx, Some(cx.attempt().to_string()), None);
            let fails = *cx.key() == key && cx.attempt() < 4;
            async move {
                if fails {
                    Err("not yet".into())
                } else {
                    Ok(Outcome::done())
                }
            }
        })?;
        factory.start(5).await?;
        create(&env.api(), "a", "one").await?;
        eventually(async || {
            let last = flaky.last();
            ensure!(
                last.get("a").is_some_and(|attempt| attempt == "4"),
                "{last:?}"
            );
            Ok(())
        })
        .await;
        assert_eq!(flaky.calls(), 4);
        assert_eq!(steady.calls(), 1);
        assert!(
            flaky.causes()[3].ends_with("retry 3 of flaky"),
            "{:?}",
            flaky.causes()
        );
        factory.stop().await?;
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_comes_with_the_last_known_state() {
    in_namespace("deletion", async |env| {
        let factory = env.factory().build();
        let books = Books::new(&env.namespace);
        factory
            .for_object::<ConfigMap>()
            .register_handler("log", books.keeper())?;
        factory.start(5).await?;
        create(&env.api(), "a", "first").await?;
        change(&env.api(), "a", "final").await?;
        eventually(async || books.agree_with(&[("a".to_owned(), "final".to_owned())].into())).await;
        delete(&env.api(), "a").await?;
        eventually(async || books.agree_with(&[].into())).await;
        assert_eq!(books.deleted(), [("a".to_owned(), "final".to_owned())]);
        factory.stop().await?;
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_custom_kind_is_handled_like_a_built_in_one() {
    in_namespace("custom", async |env| {
        let gvk = env.define("Widget").await?;
        let factory = env.factory().build();
        let widgets = factory.for_kind(&gvk);
        let books = Books::new(&env.namespace);
        let keep = books.clone();
        widgets.register_handler("size", move |cx: Context<DynamicObject>| {
            let size = |object: Arc<DynamicObject>| object.data["spec"]["size"].to_string();
            let states = cx
                .object()
                .and_then(|is| Ok((is.map(size), cx.deleted()?.map(size))));
            let books = keep.clone();
            async move {
                let (is, was) = states?;
                books.write(&cx, is, was);
                Ok(Outcome::done())
            }
        })?;
        factory.start(5).await?;

        let resource = ApiResource {
            group: env.group(),
            version: "v1".into(),
            api_version: gvk.api_version(),
            kind: "Widget".into(),
            plural: "widgets".into(),
        };
        let api: Api<DynamicObject> =
            Api::namespaced_with(env.client.clone(), &env.namespace, &resource);
        let mut widget = DynamicObject::new("lever", &resource).data(json!({"spec": {"size": 1}}));
        widget.metadata.labels = Some([(LABEL.to_owned(), String::new())].into());
        api.create(&PostParams::default(), &widget).await?;
        let patch = Patch::Merge(json!({"spec": {"size": 2}}));
        api.patch("lever", &PatchParams::default(), &patch).await?;
        eventually(async || books.agree_with(&[("lever".to_owned(), "2".to_owned())].into())).await;
        api.delete("lever", &DeleteParams::default()).await?;
        eventually(async || books.agree_with(&[].into())).await;
        assert_eq!(books.deleted(), [("lever".to_owned(), "2".to_owned())]);
        assert!(env.wire.lists("widgets") <= 1);
        assert_eq!(env.wire.watches("widgets"), 1);

        let again = factory.for_resource(&env.group(), "v1", "widgets").await?;
        assert!(again.is_same(&widgets));
        factory.stop().await?;
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn code_enqueues_keys_also_of_objects_that_do_not_exist() {
    in_namespace("enqueue", async |env| {
        let factory = env.factory().build();
        let config_maps = factory.for_object::<ConfigMap>();
        let books = Books::new(&env.namespace);
        config_maps.register_handler("log", books.keeper())?;
        let key = ObjectKey::namespaced(&env.namespace, "absent");
        config_maps.enqueue(&key);
        config_maps.enqueue(&key);
        factory.start(5).await?;
        eventually(async || (books.calls() == 1).then_some(()).context("no call yet")).await;
        config_maps.enqueue_after(&key, std::time::Duration::from_millis(50));
        eventually(async || {
            (books.calls() == 2)
                .then_some(())
                .context("no second call yet")
        })
        .await;
        assert!(
            books
                .causes()
                .iter()
                .all(|cause| cause.contains("main_job.rs:")),
            "{:?}",
            books.causes()
        );
        assert!(books.last().is_empty());
        factory.stop().await?;
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_of_a_handler_meets_a_conflict_and_gets_through() {
    in_namespace("conflict", async |env| {
        let factory = env.factory().build();
        let api: Api<ConfigMap> = env.api();
        let key = ObjectKey::namespaced(&env.namespace, "a");
        let writes = Arc::new(AtomicUsize::new(0));
        let (writer, count) = (api.clone(), Arc::clone(&writes));
        factory.for_object::<ConfigMap>().register_handler(
            "mark",
            move |cx: Context<ConfigMap>| {
                let (api, count, key) = (writer.clone(), Arc::clone(&count), key.clone());
                async move {
                    let Some(object) = cx.object()?.filter(|_| *cx.key() == key) else {
                        return Ok(Outcome::done());
                    };
                    let mut object = ConfigMap::clone(&object);
                    let marked = object
                        .data
                        .get_or_insert_default()
                        .insert("marked".into(), "yes".into());
                    if marked.is_some() {
                        return Ok(Outcome::done());
                    }
                    count.fetch_add(1, Ordering::Relaxed);
                    // Another client is faster than the first write.
                    if cx.attempt() == 1 {
                        let patch = Patch::Merge(json!({"data": {"other": "1"}}));
                        api.patch(cx.key().name(), &PatchParams::default(), &patch)
                            .await?;
                    }
                    let written = api
                        .replace(cx.key().name(), &PostParams::default(), &object)
                        .await?;
                    Ok(Outcome::done().with_updated(written))
                }
            },
        )?;
        factory.start(5).await?;
        create(&api, "a", "one").await?;
        eventually(async || {
            let data = api.get("a").await?.data.unwrap_or_default();
            ensure!(
                data.contains_key("marked") && data.contains_key("other"),
                "{data:?}"
            );
            Ok(())
        })
        .await;
        assert!(writes.load(Ordering::Relaxed) >= 2);
        factory.stop().await?;
        Ok(())
    })
    .await;
}
