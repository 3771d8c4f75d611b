//! Contrast, labels and roles of each view by axe-core, in both themes and on a phone.

use std::path::PathBuf;

use serde_json::{Value as Json, json};

use crate::chromium::Browser;
use crate::look::{go, screen, shows, within};
use crate::shop::{DEPLOYMENTS, NOT_FOUND, Shop, WEB};

/// Where `scripts/axe.sh` puts it in the target folder.
const AXE: &str = "axe-core-4.14.1/axe.min.js";
const FAULTS: &str =
    "axe.run({ resultTypes: ['violations'] }).then(({ violations }) => violations.flatMap(fault =>
    fault.nodes.map(node => `${fault.id} at ${node.target}: ${node.failureSummary}`)))";

fn axe() -> String {
    let this = std::env::current_exe().expect("a path");
    let mut found = this.ancestors().map(|folder| folder.join(AXE));
    let file: PathBuf = found
        .find(|file| file.is_file())
        .expect("no axe-core in the target folder: run scripts/axe.sh");
    std::fs::read_to_string(file).expect("a script")
}

/// A program of some thousand objects, one of which fails.
async fn busy() -> Shop {
    let shop = Shop::with(|console| console.actions(true)).await;
    shop.fill().await;
    shop.fail(Some(NOT_FOUND));
    for name in ["web", "checkout", "search"] {
        shop.create(name).await;
    }
    shop
}

#[tokio::test]
async fn no_view_has_a_fault_of_accessibility_in_any_theme_or_on_a_phone() {
    let shop = busy().await;
    let axe = axe();
    let mut browser = Browser::start().await;
    browser.open(&shop.url("")).await;
    browser.value(&format!("{axe}; 0")).await;
    for (width, scheme) in [
        (1280, "light"),
        (1280, "dark"),
        (375, "light"),
        (375, "dark"),
    ] {
        screen(&mut browser, width, 900, scheme).await;
        for (hash, text) in [
            ("#/", NOT_FOUND),
            (DEPLOYMENTS, "Failing keys"),
            (WEB, "How the newest run came about"),
            ("#/caches", "synced"),
            ("#/leases", "The process takes part in no lease"),
            ("#/guards", "No reconciler has a guard"),
            ("#/plan", "No operator is in plan mode"),
        ] {
            go(&mut browser, hash).await;
            browser.until(&shows(text)).await;
            let faults = browser.value(FAULTS).await;
            assert_eq!(faults, json!([]), "{hash}, {width}, {scheme}");
            browser
                .picture(&format!(
                    "{}-{width}-{scheme}",
                    hash.replace(['#', '/', '~'], "")
                ))
                .await;
            let fits =
                "document.documentElement.scrollWidth <= document.documentElement.clientWidth";
            assert_eq!(
                browser.value(fits).await,
                true,
                "{hash} is wider than {width}"
            );
        }
    }
    assert_eq!(browser.complaints, Vec::<Json>::new());
}

#[tokio::test]
async fn dialogs_have_no_fault_of_accessibility_and_close_by_keyboard() {
    let shop = Shop::with(|console| console.token("right").actions(true)).await;
    shop.create("web").await;
    let axe = axe();
    let mut browser = Browser::start().await;
    browser.open(&shop.url(DEPLOYMENTS)).await;
    browser.value(&format!("{axe}; 0")).await;
    browser.until("document.getElementById('login').open").await;
    assert_eq!(browser.value(FAULTS).await, json!([]));
    browser.enter("token", "right").await;
    browser.until(&shows("Pause…")).await;
    browser
        .value("document.querySelector('[aria-label=\"Pause roll-out\"]').click()")
        .await;
    browser
        .until("document.getElementById('confirm').open")
        .await;
    browser
        .until(&within("#question", "Pause roll-out of Deployment?"))
        .await;
    assert_eq!(browser.value(FAULTS).await, json!([]));
    let escape =
        json!({"type": "keyDown", "key": "Escape", "code": "Escape", "windowsVirtualKeyCode": 27});
    browser.call("Input.dispatchKeyEvent", escape).await;
    browser
        .until("!document.getElementById('confirm').open")
        .await;
}

#[tokio::test]
async fn the_theme_can_be_chosen() {
    let shop = Shop::new().await;
    let mut browser = Browser::start().await;
    screen(&mut browser, 1280, 800, "light").await;
    browser.open(&shop.url("")).await;
    let background = "getComputedStyle(document.body).backgroundColor";
    let choose = |theme: &str| {
        format!(
            "(() => {{ const field = document.getElementById('theme'); field.value = '{theme}'; field.onchange(); return {background}; }})()"
        )
    };
    let light = browser.value(background).await;
    let dark = browser.value(&choose("dark")).await;
    assert_ne!(dark, light);
    browser.open(&shop.url("?")).await;
    assert_eq!(browser.value(background).await, dark, "it is remembered");
    assert_eq!(
        browser.value(&choose("")).await,
        light,
        "that of the system"
    );
}
