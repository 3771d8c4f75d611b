//! Actions: permissions, and the messages of the page.

use lariat_console::LogFilter;
use serde_json::{Value as Json, json};

use crate::chromium::Browser;
use crate::look::{button, cell, go, shows, within};
use crate::shop::{DEPLOYMENTS, Shop, WEB};

/// A filter that accepts `info` only.
struct Filter;

impl LogFilter for Filter {
    fn filter(&self) -> String {
        "info".to_owned()
    }

    fn set_filter(&self, filter: &str) -> Result<(), String> {
        let is_known = filter == "info";
        is_known
            .then_some(())
            .ok_or_else(|| format!("{filter} is no level"))
    }
}

/// Sends an action from the page, as if it had a button for it; returns the status code.
async fn send(browser: &mut Browser, headers: &Json) -> Json {
    let kind = json!({"context": "", "group": "apps", "version": "v1", "kind": "Deployment"});
    let mut action = json!({"action": "enqueue", "key": "shop/web", "handler": null});
    action
        .as_object_mut()
        .expect("it is one")
        .extend(kind.as_object().expect("it is one").clone());
    let body = action.to_string();
    let send = format!(
        "fetch('api/v1/actions', {{ method: 'POST', headers: {headers}, body: {body:?} }}).then(it => it.status)"
    );
    browser.value(&send).await
}

#[tokio::test]
async fn without_actions_there_are_no_buttons_and_requests_are_refused() {
    let shop = Shop::with(|console| console.log_filter(Filter)).await;
    shop.create("web").await;
    let mut browser = Browser::start().await;
    browser.open(&shop.url("")).await;
    browser.until(&shows("Log filter")).await;
    assert_eq!(
        browser
            .value("document.querySelectorAll('main button, main form').length")
            .await,
        0
    );
    go(&mut browser, WEB).await;
    browser.until(&shows("Enqueued by Service route")).await;
    let asked = shop.asked();
    assert_eq!(
        browser
            .value("document.querySelectorAll('main form').length")
            .await,
        0
    );
    assert_eq!(
        send(&mut browser, &json!({"content-type": "application/json"})).await,
        403
    );
    assert_eq!(shop.asked(), asked);
}

#[tokio::test]
async fn a_token_is_asked_for_and_lets_only_this_tab_act() {
    let shop = Shop::with(|console| console.token("right").actions(true)).await;
    shop.create("web").await;
    let mut browser = Browser::start().await;
    browser.open(&shop.url(WEB)).await;
    browser.until("document.getElementById('login').open").await;
    assert_eq!(
        send(&mut browser, &json!({"content-type": "application/json"})).await,
        401
    );
    browser.enter("token", "wrong").await;
    browser
        .until(&within("#refused", "the token is wrong"))
        .await;
    browser.enter("token", "right").await;
    browser
        .until(&format!(
            "!document.getElementById('login').open && {}",
            shows("Enqueued by Service route")
        ))
        .await;

    let asked = shop.asked();
    browser.click(&button("Enqueue")).await;
    browser
        .until(&within("#outcome", "shop/web is enqueued"))
        .await;
    browser.until(&shows("requested in the console")).await;
    assert!(shop.asked() > asked);
    assert_eq!(browser.value("localStorage.length").await, 0);

    browser.open_tab().await;
    browser.open(&shop.url("")).await;
    browser.until("document.getElementById('login').open").await;
    assert_eq!(browser.complaints, Vec::<Json>::new());
}

#[tokio::test]
async fn a_refused_action_is_explained_and_read_out() {
    let shop = Shop::with(|console| console.actions(true).log_filter(Filter)).await;
    let mut browser = Browser::start().await;
    browser.open(&shop.url("")).await;
    browser.until(&shows("New filter")).await;
    browser.enter("filter", "bad").await;
    browser
        .until(&within(
            "#outcome[role=status]",
            "Refused: the filter is invalid: bad is no level",
        ))
        .await;
    browser.enter("filter", "info").await;
    browser
        .until(&within("#outcome[role=status]", "the log filter is info"))
        .await;
    browser
        .click("document.querySelector('#outcome button')")
        .await;
    browser
        .until("document.querySelector('#outcome p').textContent === ''")
        .await;
}

#[tokio::test]
async fn a_handler_is_paused_and_resumed() {
    let shop = Shop::with(|console| console.actions(true)).await;
    shop.create("web").await;
    let mut browser = Browser::start().await;
    browser.open(&shop.url(DEPLOYMENTS)).await;
    browser.until(&shows("Pause…")).await;
    browser
        .click("document.querySelector('[aria-label=\"Pause roll-out\"]')")
        .await;
    browser
        .until("document.getElementById('confirm').open")
        .await;
    browser
        .click("document.querySelector('#confirm .main')")
        .await;
    browser
        .until(&format!("{} === 'paused'", cell("roll-out", "State")))
        .await;
    shop.change("web", "2").await;
    go(&mut browser, "#/").await;
    browser
        .until(&shows(
            "roll-out of Deployment apps/v1 is paused; 1 key waiting",
        ))
        .await;
    let asked = shop.asked();
    browser.click(&button("Resume")).await;
    browser.until(&shows("Nothing needs attention")).await;
    go(&mut browser, WEB).await;
    browser.until(&within(".now", "Nothing is due")).await;
    assert!(shop.asked() > asked);
    assert_eq!(browser.complaints, Vec::<Json>::new());
}
