//! The page, in a browser.

use lariat_sql::Access;
use lariat_sql::http::TokenReviews;
use serde_json::json;

use crate::bench::Bench;
use crate::chromium::Browser;

const COLORS: [&str; 3] = ["red", "green", "blue"];

/// Returns the texts of a column of the table.
fn column(place: usize) -> String {
    format!(
        "[...document.querySelectorAll('#rows td:nth-child({place})')].map(cell => cell.textContent)"
    )
}

/// Waits until what the address says is shown.
async fn shown(browser: &mut Browser, condition: &str) {
    let is_idle = "document.getElementById('table').getAttribute('aria-busy') === 'false'";
    browser.until(&format!("{is_idle} && ({condition})")).await;
}

async fn range_is(browser: &mut Browser, text: &str) {
    let range = format!("document.getElementById('range').textContent === '{text}'");
    shown(browser, &range).await;
}

fn button(text: &str) -> String {
    format!(
        "[...document.querySelectorAll('button')].find(it => it.textContent.startsWith('{text}'))"
    )
}

/// Starts a service of 70 ConfigMaps, and a browser that shows those of the namespace `default`.
async fn browsed() -> (Bench, Browser) {
    let mut bench = Bench::new().await;
    for number in 0..70 {
        let color = COLORS[number % COLORS.len()];
        let data = json!({"size": number.to_string(), "color": color});
        bench.create(&format!("map-{number}"), data).await;
    }
    let client = bench.open().await;
    let mut browser = Browser::start().await;
    let url = format!(
        "http://{}/#namespaces=default&filter=data.color",
        client.address
    );
    browser.open(&url).await;
    range_is(&mut browser, "1–50 of 70").await;
    (bench, browser)
}

#[tokio::test]
async fn objects_are_filtered_sorted_and_paged_and_the_address_says_how() {
    let (_bench, mut browser) = browsed().await;
    browser.picture("page").await;
    browser.click(&button("Next")).await;
    range_is(&mut browser, "51–70 of 70").await;

    browser.enter("filter", "data.color=red").await;
    range_is(&mut browser, "1–24 of 24").await;
    assert_eq!(
        browser
            .value("document.querySelectorAll('#filters button').length")
            .await,
        2
    );

    // Once up, and once more down.
    browser.click(&button("data.size")).await;
    let sorted = |order: &str, first: &str| {
        let by = format!(
            "document.querySelector('th[aria-sort={order}] button')?.dataset.field === 'data.size'"
        );
        format!("{by} && document.querySelector('#rows td').textContent === '{first}'")
    };
    shown(&mut browser, &sorted("ascending", "map-0")).await;
    browser.click(&button("data.size")).await;
    shown(&mut browser, &sorted("descending", "map-69")).await;
    browser.picture("sorted").await;

    // The address shows the same to everybody.
    let (address, rows) = (
        browser.value("location.href").await,
        browser.value(&column(1)).await,
    );
    browser.open_tab().await;
    browser.open(address.as_str().expect("a text")).await;
    range_is(&mut browser, "1–24 of 24").await;
    assert_eq!(browser.value(&column(1)).await, rows);
    assert_eq!(rows[0], "map-69");

    // Back is where one was before.
    browser
        .click("document.querySelector('#filters button:last-child')")
        .await;
    range_is(&mut browser, "1–50 of 70").await;
    browser.value("history.back()").await;
    range_is(&mut browser, "1–24 of 24").await;
    assert_eq!(browser.complaints, Vec::<serde_json::Value>::new());
}

#[tokio::test]
async fn counts_searches_objects_and_errors_are_shown() {
    let (_bench, mut browser) = browsed().await;
    browser.enter("summary", "data.color").await;
    browser
        .until("document.querySelectorAll('#counts button').length === 3")
        .await;
    browser.picture("counts").await;
    browser.click(&button("green")).await;
    range_is(&mut browser, "1–23 of 23").await;
    assert_eq!(
        browser
            .value("document.querySelectorAll('#counts button').length")
            .await,
        1
    );

    browser.click(&button("map-1")).await;
    browser
        .until("document.getElementById('object').open")
        .await;
    let object = browser
        .value("JSON.parse(document.getElementById('json').textContent)")
        .await;
    assert_eq!(object["data"]["color"], "green");
    browser.picture("object").await;
    browser.click(&button("Close")).await;
    browser
        .until("!document.getElementById('object').open")
        .await;

    browser.enter("filter", "data.weight=7").await;
    browser
        .until("!document.getElementById('error').hidden")
        .await;
    let error = browser
        .value("document.getElementById('error').textContent")
        .await;
    let error = error.as_str().expect("a text");
    assert!(
        error.contains("no indexed field \"data.weight\"; it has metadata.namespace"),
        "{error}"
    );
    assert_eq!(
        browser
            .value("document.getElementById('frame').hidden")
            .await,
        true
    );
    browser.picture("error").await;
    browser
        .click("document.querySelector('#filters button:last-child')")
        .await;
    browser
        .until("document.getElementById('error').hidden")
        .await;
    range_is(&mut browser, "1–23 of 23").await;
    assert_eq!(browser.complaints, Vec::<serde_json::Value>::new());
}

#[tokio::test]
async fn changes_are_shown_as_they_come_and_content_is_never_markup() {
    let (bench, mut browser) = browsed().await;
    browser
        .until("document.getElementById('live').className === 'on'")
        .await;
    let markup = "<img src=x onerror=document.title='taken'>";
    bench
        .create("a-new-one", json!({"color": markup, "size": "1"}))
        .await;
    range_is(&mut browser, "1–50 of 71").await;
    let shown = "document.querySelector('#rows tr.fresh').textContent";
    let row = browser.value(shown).await;
    assert!(
        row.as_str()
            .is_some_and(|row| row.starts_with("a-new-one") && row.contains(markup)),
        "{row}"
    );
    browser.enter("summary", "data.color").await;
    browser
        .until("document.querySelectorAll('#counts button').length === 4")
        .await;
    assert_eq!(
        browser
            .value("document.querySelectorAll('img').length")
            .await,
        0
    );
    bench.delete("a-new-one").await;
    range_is(&mut browser, "1–50 of 70").await;
    assert_eq!(
        browser.value("document.title").await,
        "ConfigMap – SQL cache"
    );
    assert_eq!(browser.complaints, Vec::<serde_json::Value>::new());
}

#[tokio::test]
async fn a_token_is_asked_for_and_a_bad_one_is_refused() {
    let user = |cluster: lariat_cluster::ClusterBuilder| {
        cluster.token_of("jane-token", lariat_cluster::User::new("jane"))
    };
    let mut bench = Bench::with(user, |sql| sql).await;
    bench.fill();
    bench.create("one", json!({"color": "red"})).await;
    let reviews = TokenReviews::new(bench.cluster.client());
    let everything = |_, _| async { Ok(Access::everything()) };
    let client = bench
        .serve(|it| it.authenticate(reviews).visible(everything))
        .await;
    let mut browser = Browser::start().await;
    browser
        .open(&format!("http://{}/#filter=data.color", client.address))
        .await;
    browser.until("document.getElementById('login').open").await;
    browser.picture("login").await;
    browser.enter("token", "a-bad-token").await;
    browser
        .until(
            "document.getElementById('login').open && !document.getElementById('refused').hidden",
        )
        .await;
    browser.picture("refused").await;
    browser.enter("token", "jane-token").await;
    range_is(&mut browser, "1–1 of 1").await;
    // It is neither in the address nor in the page.
    let page = browser
        .value("location.href + document.documentElement.outerHTML")
        .await;
    assert!(!page.as_str().expect("a text").contains("jane-token"));
    assert_eq!(browser.complaints, Vec::<serde_json::Value>::new());
}
