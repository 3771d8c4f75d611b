//! JavaScript expressions that find elements and texts in the page.

use serde_json::json;

use crate::chromium::Browser;

/// Counts the overviews that a page has received, and those with a failing handler.
const COUNTERS: &str = "
    window.overviews = 0; window.failing = 0;
    const parse = JSON.parse;
    JSON.parse = text => {
        const value = parse(text);
        if (value?.program) {
            window.overviews += 1;
            if (value.controllers.some(it => it.handlers.some(handler => handler.failing))) window.failing += 1;
        }
        return value;
    };";

/// Starts a browser whose pages have the numbers `overviews` and `failing`.
pub(crate) async fn counting() -> Browser {
    let mut browser = Browser::start().await;
    let script = json!({"source": COUNTERS});
    browser
        .call("Page.addScriptToEvaluateOnNewDocument", script)
        .await;
    browser
}

/// Whether the view has a text.
pub(crate) fn shows(text: &str) -> String {
    within("#view", text)
}

/// Whether an element has a text.
pub(crate) fn within(selector: &str, text: &str) -> String {
    format!("document.querySelector({selector:?})?.textContent.includes({text:?})")
}

/// The text of a cell: of the row that begins with a text, in the column with a name.
pub(crate) fn cell(row: &str, column: &str) -> String {
    format!(
        "[...document.querySelectorAll('tbody tr')].find(it => it.querySelector('th').textContent.startsWith({row:?}))
            ?.querySelector('[data-label={column:?}]')?.textContent"
    )
}

/// The button with a text.
pub(crate) fn button(text: &str) -> String {
    format!("[...document.querySelectorAll('button')].find(it => it.textContent === {text:?})")
}

/// Goes to a view, as a link does.
pub(crate) async fn go(browser: &mut Browser, hash: &str) {
    browser.value(&format!("location.hash = {hash:?}")).await;
}

/// Shows pages on a screen.
pub(crate) async fn screen(browser: &mut Browser, width: u32, height: u32, scheme: &str) {
    let feature = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
    browser.call("Emulation.setEmulatedMedia", feature).await;
    let screen =
        json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500});
    browser
        .call("Emulation.setDeviceMetricsOverride", screen)
        .await;
}
