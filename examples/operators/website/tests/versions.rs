//! The versions: nothing is lost between them.

use std::collections::BTreeMap;

use lariat::kube::ResourceExt;
use lariat::kube::api::{ListParams, PostParams};
use serde_json::json;

use super::super::kind::v1::Website;
use super::super::kind::{INDEX, REST, conversion, v1alpha1};
use super::bench::{Bench, refusal, site, site_with_secret};
use crate::merge;

fn old_site(name: &str) -> v1alpha1::Website {
    let spec = v1alpha1::WebsiteSpec {
        host: None,
        html: "hello".to_owned(),
        replicas: 2,
        secret: Some("environment".to_owned()),
    };
    v1alpha1::Website::new(name, spec)
}

#[test]
fn every_website_survives_the_way_to_the_other_version_and_back() {
    let mut labelled = site("labelled");
    labelled.metadata.labels = Some(BTreeMap::from([("a".to_owned(), "b".to_owned())]));
    labelled.metadata.annotations = Some(BTreeMap::from([("c".to_owned(), "d".to_owned())]));
    let mut full = site_with_secret("full", "environment");
    full.spec.host = Some("full.demo.dev".to_owned());
    full.spec.image = "httpd:2.4".to_owned();
    full.spec.replicas = 0;
    for page in ["about.html", "\"quoted\"", "leer"] {
        full.spec
            .pages
            .insert(page.to_owned(), format!("<p>{page}\n"));
    }
    let mut empty = site("empty");
    empty.spec.pages.insert(INDEX.to_owned(), String::new());
    for site in [labelled, full, empty] {
        conversion().check_round_trip(&site).unwrap();
    }
    conversion().check_round_trip(&old_site("old")).unwrap();
}

#[test]
fn an_annotation_that_cannot_be_read_is_an_error_that_names_it() {
    let mut old = old_site("old");
    let annotations = old.annotations_mut();
    annotations.insert(REST.to_owned(), "{\"pages\": 1}".to_owned());
    let error = Website::try_from(old).unwrap_err();
    assert!(
        error.starts_with("the annotation website.demo.dev/v1 cannot be read: "),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_website_of_either_version_is_read_in_the_other() {
    let bench = Bench::new().await;
    let created = bench
        .old_sites
        .create(&PostParams::default(), &old_site("shop"))
        .await
        .unwrap();
    assert_eq!(
        created.spec.host.as_deref(),
        Some("shop.default.demo.dev"),
        "by the webhook"
    );
    let shop = bench.sites.get("shop").await.unwrap();
    assert_eq!(shop.spec.pages[INDEX], "hello");
    assert_eq!(shop.spec.secret_ref.unwrap().name, "environment");
    let pages = json!({"spec": {"pages": {"about.html": "we"}}});
    merge(&bench.sites, "shop", pages).await.unwrap();
    // A client of the old version changes what it knows; the page it does not know stays.
    let html = json!({"spec": {"html": "good day"}});
    let changed = merge(&bench.old_sites, "shop", html).await.unwrap();
    assert_eq!(
        changed.annotations()[REST],
        r#"{"image":"nginx:1.29-alpine","pages":{"about.html":"we"}}"#
    );
    let shop = bench.sites.get("shop").await.unwrap();
    let pages: Vec<_> = shop
        .spec
        .pages
        .iter()
        .map(|(name, page)| (&**name, &**page))
        .collect();
    assert_eq!(pages, [("about.html", "we"), (INDEX, "good day")]);
    assert!(!shop.annotations().contains_key(REST));
    let listed = bench.old_sites.list(&ListParams::default()).await.unwrap();
    assert_eq!(listed.items.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_website_that_cannot_be_converted_is_refused_and_stored_nowhere() {
    let bench = Bench::new().await;
    let mut old = old_site("shop");
    old.annotations_mut()
        .insert(REST.to_owned(), "no JSON".to_owned());
    let status = refusal(bench.old_sites.create(&PostParams::default(), &old).await);
    assert!(
        status
            .message
            .contains("the annotation website.demo.dev/v1 cannot be read"),
        "{status:?}"
    );
    assert_eq!(bench.sites.get_opt("shop").await.unwrap(), None);
}
