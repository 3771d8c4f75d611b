//! Starts, stops, and what goes wrong with them.

use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use lariat::cache::MissingKind;
use lariat::describe;
use lariat::prelude::*;
use lariat_integration::{eventually, in_namespace};

use crate::books::{Books, change, create, delete};

async fn nothing(_: Context<DynamicObject>) -> HandlerResult {
    Ok(Outcome::done())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_factory_starts_again_and_handles_what_changed_meanwhile() {
    in_namespace("restart", async |env| {
        let factory = env.factory().build();
        let books = Books::new(&env.namespace);
        factory
            .for_object::<ConfigMap>()
            .register_handler("log", books.keeper())?;
        factory.start(5).await?;
        for name in ["changed", "deleted", "same"] {
            create(&env.api(), name, "first").await?;
        }
        eventually(async || {
            (books.last().len() == 3)
                .then_some(())
                .context("not all seen")
        })
        .await;
        factory.stop().await?;
        let calls = books.calls();
        change(&env.api(), "changed", "second").await?;
        delete(&env.api(), "deleted").await?;
        create(&env.api(), "new", "first").await?;

        factory.start(5).await?;
        let truth = [("changed", "second"), ("new", "first"), ("same", "first")];
        let truth = truth
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        eventually(async || books.agree_with(&truth)).await;
        assert_eq!(
            books.calls(),
            calls + 3,
            "what did not change is not handled again"
        );
        assert_eq!(
            books.deleted(),
            [("deleted".to_owned(), "first".to_owned())]
        );
        factory.stop().await?;
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_kind_fails_the_start_by_name() {
    in_namespace("unknown", async |env| {
        let factory = env.factory().build();
        factory
            .for_kind(Gvk::new(&env.group(), "v1", "Nothing"))
            .register_handler("none", nothing)?;
        let error = describe(&factory.start(5).await.expect_err("it is not defined"));
        assert!(
            error.contains(&format!("{}/v1 Nothing is not served", env.group())),
            "{error}"
        );
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_that_is_waited_for_is_picked_up_when_it_is_defined() {
    in_namespace("waited", async |env| {
        let factory = env.factory().missing_kind(MissingKind::Wait).build();
        let widgets = factory.for_kind(Gvk::new(&env.group(), "v1", "Widget"));
        widgets.register_handler("none", nothing)?;
        let define = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            env.define("Widget").await
        };
        let (started, defined) = tokio::join!(factory.start(5), define);
        defined?;
        started?;
        factory.stop().await?;
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_server_fails_the_start_by_kind_and_reason() {
    let nowhere = lariat::kube::Config::new(http::Uri::from_static("http://127.0.0.1:1"));
    let client = Client::try_from(nowhere).expect("a client without TLS can be made");
    let factory = SharedControllerFactory::builder(client)
        .sync_timeout(Duration::from_secs(2))
        .build();
    factory
        .for_object::<Secret>()
        .view()
        .register_handler("none", nothing)
        .expect("registered");
    let error = describe(&factory.start(5).await.expect_err("nothing listens there"));
    assert!(
        error.contains("1 kind not synced after 2s: v1 Secret: "),
        "{error}"
    );
    assert!(error.contains("Connection refused"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubeconfig_that_cannot_be_used_is_named_and_not_shown() {
    let name = format!("kubeconfig-{}", fastrand::u64(..));
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    for (content, reason) in [
        (
            "clusters: [oops\ntoken: hunter2\n",
            "it cannot be read as YAML, see line ",
        ),
        (
            "apiVersion: v1\nkind: Config\ncurrent-context: hunter\n",
            "it has no context \"hunter\", which is the current one",
        ),
        ("", "it has no current context"),
    ] {
        std::fs::write(&path, content).expect("the file can be written");
        let error = lariat::from_kubeconfig(&path)
            .await
            .err()
            .expect("it cannot be used");
        let text = describe(&error);
        assert!(
            text.contains(&path.display().to_string()) && text.contains(reason),
            "{text}"
        );
        assert!(!text.contains("hunter2"), "{text}");
    }
    let no_url = r#"{"clusters": [{"name": "a", "cluster": {"server": "notaurl"}}],
        "contexts": [{"name": "a", "context": {"cluster": "a"}}], "current-context": "a"}"#;
    std::fs::write(&path, no_url).expect("the file can be written");
    let error = lariat::from_kubeconfig(&path).await.err();
    let text = describe(&error.expect("it is no URL"));
    assert!(
        text.contains("\"notaurl\" of the configuration is not a URL"),
        "{text}"
    );
    std::fs::remove_file(&path).expect("the file is ours");
    let list = format!("{}:{}", path.display(), path.display());
    let error = lariat::from_kubeconfig(list).await.err();
    let text = describe(&error.expect("they are gone"));
    assert!(text.contains("none of the files exists"), "{text}");
    let error = lariat::from_kubeconfig(&path)
        .await
        .err()
        .expect("it is gone");
    assert!(
        describe(&error).contains("No such file"),
        "{}",
        describe(&error)
    );
}
