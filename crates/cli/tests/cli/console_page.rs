//! The page of the console, in a browser.

use serde_json::{Value as Json, json};

use crate::chromium::Browser;
use crate::console_bench::{Bench, until};
use crate::program::Folder;

const PODS: &str = "/api/v1/namespaces/default/pods";

fn text(selector: &str) -> String {
    format!("(document.querySelector('{selector}')?.textContent ?? '')")
}

fn button(label: &str) -> String {
    format!(
        "[...document.querySelectorAll('button')].find(it => it.textContent.startsWith('{label}'))"
    )
}

async fn open(browser: &mut Browser, bench: &Bench) {
    browser.open(&format!("http://{}/", bench.console)).await;
    browser
        .until("document.documentElement.dataset.ready === 'true'")
        .await;
}

async fn choose(browser: &mut Browser, field: &str, value: &str) {
    let choose = format!(
        "(() => {{ const field = document.getElementById('{field}'); field.value = '{value}';
            field.dispatchEvent(new Event('change')); field.dispatchEvent(new Event('input')); }})()"
    );
    browser.value(&choose).await;
}

async fn press(browser: &mut Browser, key: &str) {
    for event in ["keyDown", "keyUp"] {
        let text = if key == "Enter" { "\r" } else { "" };
        let press = json!({"type": event, "key": key, "code": key, "text": text,
            "windowsVirtualKeyCode": if key == "Enter" { 13 } else { 9 }});
        browser.call("Input.dispatchKeyEvent", press).await;
    }
}

/// Shows the page on a screen of a size, in a color scheme, and takes a picture.
async fn picture(browser: &mut Browser, name: &str, width: u32, scheme: &str) {
    // Without motion colors change at once.
    let features = json!([{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}]);
    browser
        .call("Emulation.setEmulatedMedia", json!({"features": features}))
        .await;
    let screen = json!({"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": false});
    browser
        .call("Emulation.setDeviceMetricsOverride", screen)
        .await;
    let widest = browser.value("document.documentElement.scrollWidth").await;
    assert!(
        widest.as_u64().is_some_and(|widest| widest <= width.into()),
        "{name}: {widest}"
    );
    browser.picture(name).await;
}

#[tokio::test]
async fn what_happens_in_the_cluster_is_shown_as_it_happens() {
    let bench = Bench::start(&["--load", "pods=300,configmaps=40,nodes=5,namespaces=6"]).await;
    let mut watch = bench.watch("/api/v1/pods?watch=true").await;
    until(&mut watch, "pod-").await;
    let mut browser = Browser::start().await;
    open(&mut browser, &bench).await;
    let row = |kind: &str| {
        format!(
            "[...document.querySelectorAll('#resources tr')].find(row => row.children[0].textContent === '{kind}')"
        )
    };
    browser
        .until(&format!(
            "{}?.children[2].textContent === '300'",
            row("Pod")
        ))
        .await;
    browser
        .until(&format!("{}?.children[4].textContent === '1'", row("Pod")))
        .await;
    browser
        .until(&format!("{}.includes('shop/1')", text("#watches")))
        .await;
    assert_eq!(browser.value(&text("#live")).await, "live");

    // What is created, asked and watched later comes by itself.
    bench.create("late").await;
    browser
        .until(&format!(
            "{}?.children[2].textContent === '41'",
            row("ConfigMap")
        ))
        .await;
    let path = format!("{PODS}/none?limit=5&token=hunter2");
    let evil = "<img src=x onerror=alert(1)>";
    assert_eq!(bench.code_of(&path, evil).await, Some(404));
    browser
        .until(&format!("{}.includes('{evil}')", text("#requests")))
        .await;
    assert_eq!(
        browser
            .value("document.querySelectorAll('main img').length")
            .await,
        0
    );
    let has_token = "document.documentElement.outerHTML.includes('hunter2')";
    assert_eq!(browser.value(has_token).await, false);

    // The filter and the choice of failed ones narrow the requests.
    choose(&mut browser, "filter", "none").await;
    assert_eq!(
        browser
            .value("document.querySelectorAll('#requests tr').length")
            .await,
        1
    );
    choose(&mut browser, "filter", "").await;
    picture(&mut browser, "cluster-console-dark", 1280, "dark").await;
    picture(&mut browser, "cluster-console-phone", 390, "light").await;
    assert_eq!(browser.complaints, Vec::<Json>::new());
}

#[tokio::test]
async fn faults_are_switched_on_and_off_by_keyboard() {
    let bench = Bench::start(&["--load", "pods=20"]).await;
    let mut watch = bench.watch("/api/v1/pods?watch=true").await;
    until(&mut watch, "pod-").await;
    let mut browser = Browser::start().await;
    open(&mut browser, &bench).await;
    choose(&mut browser, "effect", "503").await;
    browser.enter("kind", "Pod").await;
    let sentence = "All requests for the kind Pod are answered 503 Service Unavailable";
    browser
        .until(&format!("{} === '{sentence}'", text("#faults .what")))
        .await;
    assert_eq!(bench.code(PODS).await, Some(503));
    browser
        .until(&format!("{} === 'met once'", text("#faults .hits")))
        .await;
    choose(&mut browser, "effect", "isolate").await;
    browser.enter("client", "shop/").await;
    browser
        .until("document.querySelectorAll('#faults li').length === 2")
        .await;
    browser
        .until(&format!("!{}.includes('shop/1')", text("#watches")))
        .await;
    assert_eq!(bench.code("/api/v1/nodes").await, None);
    picture(&mut browser, "cluster-console", 1280, "light").await;

    // What has the focus keeps it while states come.
    browser
        .value("document.querySelector('#faults button').focus()")
        .await;
    assert_eq!(bench.code(PODS).await, Some(503));
    browser
        .until(&format!("{} === 'met 2 times'", text("#faults .hits")))
        .await;
    press(&mut browser, "Enter").await;
    browser
        .until("document.querySelectorAll('#faults li').length === 1")
        .await;
    browser.click(&button("Remove all")).await;
    browser
        .until("document.querySelectorAll('#faults li').length === 0")
        .await;
    assert_eq!(bench.code(PODS).await, Some(200));
    assert_eq!(bench.state().await["faults"], json!([]));
    assert_eq!(browser.complaints, Vec::<Json>::new());
}

#[tokio::test]
async fn why_an_action_is_refused_is_shown() {
    let bench = Bench::start(&[]).await;
    let mut browser = Browser::start().await;
    open(&mut browser, &bench).await;
    choose(&mut browser, "effect", "500").await;
    choose(&mut browser, "times", "2").await;
    browser.click(&button("Switch on")).await;
    browser
        .until(&format!(
            "{}.endsWith('twice at most')",
            text("#faults .what")
        ))
        .await;
    browser.click(&button("Pause")).await;
    browser
        .value("fetch('api/v1/faults', { method: 'DELETE' }).then(answer => answer.status)")
        .await;
    browser
        .click("document.querySelector('#faults button')")
        .await;
    let gone = "there is no such fault; it may have been removed already";
    browser
        .until(&format!("{} === '{gone}'", text("#error")))
        .await;
    assert_eq!(browser.complaints, Vec::<Json>::new());
}

#[tokio::test]
async fn the_page_asks_for_the_token() {
    let folder = Folder::new();
    let file = folder.write("token", "sesame");
    let bench = Bench::start(&["--console-token-file", file.to_str().unwrap()]).await;
    let mut browser = Browser::start().await;
    browser.open(&format!("http://{}/", bench.console)).await;
    browser.until("document.getElementById('login').open").await;
    browser.enter("token", "wrong").await;
    browser
        .until(&format!(
            "{} === 'the token is not the right one'",
            text("#refused")
        ))
        .await;
    assert_eq!(browser.value(&text("#objects")).await, "–");
    browser.enter("token", "sesame").await;
    browser
        .until("document.documentElement.dataset.ready === 'true'")
        .await;
    let shown = browser
        .value("document.documentElement.outerHTML.includes('sesame')")
        .await;
    assert_eq!(shown, false);
    assert_eq!(browser.complaints, Vec::<Json>::new());
}
