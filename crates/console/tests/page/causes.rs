//! The history of a key.

use serde_json::Value as Json;

use crate::chromium::Browser;
use crate::look::{shows, within};
use crate::shop::{Shop, WEB};

/// A user changes a ConfigMap; that writes a Service, and that enqueues a Deployment.
#[tokio::test]
async fn the_history_of_a_key_explains_a_chain_of_three_causes() {
    let shop = Shop::new().await;
    shop.create("web").await;
    let mut browser = Browser::start().await;
    browser.open(&shop.url(WEB)).await;
    browser
        .until(&within(".timeline", "Enqueued by Service route"))
        .await;
    browser
        .until(&within(".timeline", "its route changed"))
        .await;

    shop.change("web", "2").await;
    browser
        .until(&within(".trace > li:nth-child(1)", "data.version"))
        .await;
    let steps = browser
        .value("[...document.querySelectorAll('.trace > li')].map(it => it.textContent)")
        .await;
    let steps: Vec<&str> = steps
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(Json::as_str)
        .collect();
    let [map, service, deployment] = steps[..] else {
        panic!("{steps:?}");
    };
    for (step, texts) in [
        (map, ["ConfigMap shop/web", "Updated", "Then publish ran"]),
        (
            service,
            [
                "Service shop/web",
                "ritten by ConfigMap publish",
                "Then route ran",
            ],
        ),
        (
            deployment,
            [
                "Deployment shop/web",
                "Enqueued by Service route",
                "Then roll-out ran",
            ],
        ),
    ] {
        for text in texts {
            assert!(step.contains(text), "{text}: {step}");
        }
    }

    // A cause links to the object that it comes from.
    browser
        .click("document.querySelector('.timeline .causes a')")
        .await;
    browser
        .until("location.hash === '#/controllers/core~v1~Service/shop~web'")
        .await;
    browser.until(&shows("ritten by ConfigMap publish")).await;
    assert_eq!(browser.complaints, Vec::<Json>::new());
}
