//! The content of the page, and its updates.

use k8s_openapi::api::core::v1::ConfigMap;
use lariat_console::{Console, Serve};
use lariat_controller::{Context, HandlerError, Outcome};
use serde_json::{Value as Json, json};

use crate::chromium::Browser;
use crate::look::{cell, counting, go, screen, shows, within};
use crate::shop::{DEPLOYMENTS, Shop, WEB};

/// An error text that a careless page would interpret as markup.
const ERROR: &str = "the image <b>web</b> is not found";

#[tokio::test]
async fn what_runs_is_shown_and_followed_without_a_request_to_elsewhere() {
    let shop = Shop::new().await;
    shop.create("web").await;
    let mut browser = Browser::start().await;
    browser.open(&shop.url("")).await;
    browser.until(&within("#program", "shop-operator")).await;
    browser.until(&within("#live", "live")).await;
    browser.until(&shows("Nothing needs attention")).await;
    browser
        .until(&format!("{} === '1'", cell("Deployment", "Objects")))
        .await;
    browser
        .until(&format!("{} === '0 / 4'", cell("Deployment", "Workers")))
        .await;

    shop.create("shop").await;
    browser
        .until(&format!("{} === '2'", cell("Deployment", "Objects")))
        .await;

    for (hash, text) in [
        (DEPLOYMENTS, "roll-out"),
        (WEB, "Added at"),
        ("#/caches", "synced"),
        ("#/leases", "The process takes part in no lease"),
        ("#/guards", "No reconciler has a guard"),
        ("#/plan", "No operator is in plan mode"),
        ("#/nothing", "Needs attention"),
    ] {
        go(&mut browser, hash).await;
        browser.until(&shows(text)).await;
    }
    assert_eq!(browser.complaints, Vec::<Json>::new());
}

/// The server sends the state each second, so two of these are two seconds of the page's time.
#[tokio::test]
async fn a_failing_handler_is_visible_with_its_error_within_two_seconds() {
    let shop = Shop::new().await;
    shop.create("web").await;
    let mut browser = counting().await;
    browser.open(&shop.url("")).await;
    browser.until(&shows("Nothing needs attention")).await;
    shop.fail(Some(ERROR));
    shop.change("web", "2").await;
    // The error is a text, not markup.
    browser.until(&within(".findings .bad .error", ERROR)).await;
    let failing = browser.value("window.failing").await;
    assert!(
        failing.as_u64().is_some_and(|count| count <= 2),
        "{failing}"
    );
    assert_eq!(browser.value("document.title").await, "(1) shop-operator");
    assert!(
        browser
            .value("document.querySelector('#view b') === null")
            .await
            == true
    );

    browser
        .click("document.querySelector('.findings .what a')")
        .await;
    browser
        .until("location.hash === '#/controllers/apps~v1~Deployment'")
        .await;
    browser
        .until(&format!("{} === {ERROR:?}", cell("shop/web", "Error")))
        .await;

    shop.fail(None);
    shop.change("web", "3").await;
    browser.until(&format!("!{}", shows("Failing keys"))).await;
    assert_eq!(browser.complaints, Vec::<Json>::new());
}

#[tokio::test]
async fn given_up_keys_need_attention_on_every_page() {
    let shop = Shop::new().await;
    shop.create("web").await;
    let mut browser = Browser::start().await;
    browser.open(&shop.url("")).await;
    browser.until(&shows("Nothing needs attention")).await;
    let validate = |cx: Context<ConfigMap>| async move {
        match cx.object()? {
            Some(map) if map.data.as_ref().is_some_and(|data| data["version"] == "1") => {
                Err(HandlerError::terminal(ERROR))
            }
            _ => Ok(Outcome::done()),
        }
    };
    let maps = shop.factory.for_object::<ConfigMap>();
    maps.register_handler("validate", validate)
        .expect("a new name");
    let given_up = "validate of ConfigMap v1 has given up 1 key.";
    let not_again = "not called again until the object changes";
    for scheme in ["light", "dark"] {
        screen(&mut browser, 1280, 640, scheme).await;
        for (name, hash, text) in [
            ("overview", "#/", given_up),
            ("controller", "#/controllers/core~v1~ConfigMap", ERROR),
            ("key", "#/controllers/core~v1~ConfigMap/shop~web", not_again),
        ] {
            go(&mut browser, hash).await;
            browser.until(&shows(text)).await;
            browser.picture(&format!("given-up-{name}-{scheme}")).await;
        }
    }
    go(&mut browser, "#/").await;
    browser.until(&within(".findings .bad .error", ERROR)).await;
    browser.until(&shows("1 key given up")).await;
    let calm = browser
        .value("document.querySelector('.calm') === null")
        .await;
    assert!(calm == true);

    shop.change("web", "2").await;
    browser.until(&format!("!{}", shows("given up"))).await;
    assert_eq!(browser.complaints, Vec::<Json>::new());
}

#[tokio::test]
async fn updates_leave_focus_scroll_position_and_typed_text_alone() {
    let shop = Shop::new().await;
    shop.create("web").await;
    let mut browser = counting().await;
    let screen = json!({"width": 400, "height": 300, "deviceScaleFactor": 1, "mobile": false});
    browser
        .call("Emulation.setDeviceMetricsOverride", screen)
        .await;
    browser.open(&shop.url("")).await;
    browser
        .until(&format!("{} === '1'", cell("Deployment", "Objects")))
        .await;
    browser
        .value(
            "window.link = document.querySelector('tbody tr:nth-child(2) a'); link.focus();
             document.getElementById('key').value = 'shop/w'; window.scrollTo(0, 150); window.seen = overviews",
        )
        .await;
    // A row is inserted before the one that has the focus, and its texts change.
    shop.create("shop").await;
    browser
        .until(&format!(
            "{} === '2' && overviews >= seen + 2",
            cell("Deployment", "Objects")
        ))
        .await;
    let kept = browser
        .value("[document.activeElement === link, scrollY, document.getElementById('key').value]")
        .await;
    assert_eq!(kept, json!([true, 150, "shop/w"]));
}

#[tokio::test]
async fn a_lost_connection_is_visible_and_comes_back() {
    let shop = Shop::new().await;
    shop.create("web").await;
    let mut browser = Browser::start().await;
    browser.open(&shop.url("")).await;
    browser.until(&within("#live", "live")).await;
    shop.server.shutdown().await;
    browser.until(&within("#live", "disconnected")).await;
    browser
        .until(&within("#connection", "Connecting again"))
        .await;
    assert_eq!(
        browser.value(&shows("ConfigMap")).await,
        true,
        "what was known is shown still"
    );

    let address = shop.server.address().to_string();
    let _server = shop
        .factory
        .serve(Console::on(address))
        .expect("the port is free again");
    browser
        .until("document.getElementById('live').textContent === 'live'")
        .await;
    browser
        .until("document.getElementById('connection').hidden")
        .await;
    assert_eq!(browser.complaints, Vec::<Json>::new());
}

#[tokio::test]
async fn a_key_is_found_by_keyboard_and_an_unknown_one_is_named() {
    let shop = Shop::new().await;
    shop.create("web").await;
    let mut browser = Browser::start().await;
    browser.open(&shop.url(DEPLOYMENTS)).await;
    browser.until(&shows("roll-out")).await;
    let slash = json!({"type": "keyDown", "key": "/", "code": "Slash", "text": "/"});
    browser.call("Input.dispatchKeyEvent", slash).await;
    browser.until("document.activeElement.id === 'key'").await;
    assert_eq!(
        browser.value("document.getElementById('key').value").await,
        "",
        "the slash is not typed"
    );
    browser.enter("key", "shop/web").await;
    browser.until(&format!("location.hash === {WEB:?}")).await;
    browser.until(&within("h1", "shop/web")).await;
    browser
        .until("document.activeElement === document.querySelector('h1')")
        .await;
    browser.enter("key", "shop/nothing").await;
    browser
        .until(&shows("shop/nothing is neither cached nor queued"))
        .await;
}
