//! The texts of errors that users meet first, as snapshots.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use lariat::cache::MissingKind;
use lariat::cluster::Cluster;
use lariat::core::LabelSelector;
use lariat::prelude::*;
use lariat::{Lease, describe};

/// Adds a mistake and the text of its error, with the causes.
fn add<T>(texts: &mut String, mistake: &str, result: Result<T, impl std::error::Error + 'static>) {
    let text = match result {
        Ok(_) => "no error".to_owned(),
        Err(error) => describe(&error).to_string(),
    };
    texts.push_str(&format!("{mistake}\n    {text}\n"));
}

async fn nothing<K>(_: Context<K>) -> HandlerResult {
    Ok(Outcome::done())
}

#[test]
fn texts_that_cannot_be_parsed() {
    let mut texts = String::new();
    add(
        &mut texts,
        "a key with two slashes",
        "a/b/c".parse::<ObjectKey>(),
    );
    add(&mut texts, "an empty key", "".parse::<ObjectKey>());
    add(&mut texts, "a kind without a version", "Pod".parse::<Gvk>());
    add(
        &mut texts,
        "a selector without a value",
        "app in".parse::<LabelSelector>(),
    );
    add(
        &mut texts,
        "a selector with a bad key",
        "a b=c".parse::<LabelSelector>(),
    );
    insta::assert_snapshot!(texts);
}

#[tokio::test(start_paused = true)]
async fn mistakes_of_registration() {
    let cluster = Cluster::builder().start().await.expect("it starts");
    let factory = SharedControllerFactory::builder(cluster.client()).build();
    let pods = factory.for_object::<Pod>();
    let mut texts = String::new();
    let _first = pods
        .register_handler("log", nothing)
        .expect("the name is free");
    add(
        &mut texts,
        "a name that is taken",
        pods.register_handler("log", nothing),
    );
    add(
        &mut texts,
        "an empty name",
        pods.register_handler("", nothing),
    );
    let lease = Lease::new("shop").duration(Duration::from_secs(5));
    add(
        &mut texts,
        "a lease that ends before its renew deadline",
        lease.validate(),
    );
    insta::assert_snapshot!(texts);
}

#[tokio::test(start_paused = true)]
async fn mistakes_at_the_start() {
    let cluster = Cluster::builder().start().await.expect("it starts");
    let factory = || {
        SharedControllerFactory::builder(cluster.client())
            .missing_kind(MissingKind::Refuse)
            .build()
    };
    let mut texts = String::new();

    let idle = factory();
    let _pods = idle.for_object::<Pod>().register_handler("log", nothing);
    add(&mut texts, "no workers", idle.start(0).await);
    idle.start(1).await.expect("it starts");
    add(&mut texts, "a second start", idle.start(1).await);
    idle.stop().await.expect("it stops");

    for (mistake, gvk) in [
        (
            "a kind whose CRD is missing",
            Gvk::new("shop.io", "v1", "Book"),
        ),
        (
            "a group that a kind is not in",
            Gvk::new("extensions", "v1beta1", "Deployment"),
        ),
        (
            "a version that a kind has not",
            Gvk::new("apps", "v1beta2", "Deployment"),
        ),
        ("a kind in the plural", Gvk::new("", "v1", "Pods")),
    ] {
        let factory = factory();
        let _kind = factory.for_kind(gvk).register_handler("log", nothing);
        add(&mut texts, mistake, factory.start(1).await);
    }
    insta::assert_snapshot!(texts);
}
