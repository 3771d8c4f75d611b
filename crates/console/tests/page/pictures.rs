//! The screenshots of the documentation; `scripts/screenshots.sh` writes them.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use lariat_controller::SharedController;
use serde_json::json;
use tokio::time;

use crate::chromium::Browser;
use crate::look::{go, screen, within};
use crate::shop::{NOT_FOUND, Shop, WEB};

/// How long the program runs, in half seconds: as far as sparklines reach.
const TICKS: u32 = 260;

/// Does nothing unless `SCREENSHOTS` names a folder, because it takes two minutes.
#[tokio::test]
async fn the_pictures_of_the_documentation_are_written_on_request() {
    if std::env::var_os("SCREENSHOTS").is_none() {
        return;
    }
    let shop = Shop::slow(Duration::from_millis(16), |console| console.actions(true)).await;
    shop.create("web").await;
    shop.fill().await;
    let mut browser = Browser::start().await;
    browser
        .call("Emulation.setScrollbarsHidden", json!({"hidden": true}))
        .await;
    screen(&mut browser, 1280, 480, "light").await;
    browser.open(&shop.url("")).await;
    let (pods, maps) = (
        shop.factory.for_object::<Pod>(),
        shop.factory.for_object::<ConfigMap>(),
    );
    for tick in 0..TICKS {
        // Waves of different lengths, as changes come, now and then more than the workers can do at once.
        let wave = |length: u32| (f64::from(tick) / f64::from(length)).sin().max(0.0);
        enqueue(&pods, 0.03 + 0.07 * wave(6) * wave(31));
        enqueue(&maps, 0.02 + 0.2 * wave(4) * wave(23));
        if tick == TICKS - 40 {
            shop.fail(Some(NOT_FOUND));
            shop.change("web", "2").await;
        }
        time::sleep(Duration::from_millis(500)).await;
    }
    browser.until(&within(".findings", NOT_FOUND)).await;
    browser.picture("console-overview").await;
    go(&mut browser, WEB).await;
    screen(&mut browser, 1280, 760, "light").await;
    browser
        .until(&within(".trace > li:nth-child(1)", "data.version"))
        .await;
    browser.picture("console-key").await;
}

/// Enqueues a share of the objects.
fn enqueue<K: lariat_cache::View>(controller: &SharedController<K>, share: f64) {
    for key in controller.cache().store().keys() {
        if fastrand::f64() < share {
            controller.enqueue(&key);
        }
    }
}
