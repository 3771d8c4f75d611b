//! What the log says while caches are filled.

use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, StreamExt};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use lariat_testing::Logs;
use tokio::time;
use tracing::Level;

use crate::bench::{MINUTE, config_maps, listing, no_client};
use crate::script::{Answer, Ask, Script, quiet, status};

const SECOND: Duration = Duration::from_secs(1);

/// A page of a hundred objects that takes two seconds; a thousand in all.
fn page(ask: &Ask) -> Answer {
    let number = ask.number as u64;
    let name = |each: u64| {
        format!(
            r#"{{"metadata":{{"name":"a-{number}-{each}","uid":"{number}-{each}","resourceVersion":"5"}}}}"#
        )
    };
    let items: Vec<String> = (0..100).map(name).collect();
    let more = match number {
        9 => String::new(),
        _ => format!(
            r#","continue":"c{number}","remainingItemCount":{}"#,
            900 - 100 * number
        ),
    };
    let text = format!(
        r#"{{"metadata":{{"resourceVersion":"10"{more}}},"items":[{}]}}"#,
        items.join(",")
    );
    let body = stream::once(async move {
        time::sleep(2 * SECOND).await;
        Ok(Frame::data(Bytes::from(text)))
    });
    Answer::Body(StreamBody::new(body.boxed()).boxed_unsync())
}

fn lines(log: &Logs, what: &str) -> Vec<String> {
    let mut lines = log.lines();
    lines.retain(|line| line.contains(what));
    lines
}

#[tokio::test(start_paused = true)]
async fn a_long_wait_and_the_progress_of_a_large_kind_are_logged() {
    let log = Logs::up_to(Level::INFO);
    let script = Script::new(|ask| if ask.watch { quiet() } else { page(ask) });
    let factory = listing(no_client());
    let _informer = factory.for_source(config_maps(), std::sync::Arc::new(script));
    factory.start();
    factory.wait_for_sync(5 * MINUTE).await.unwrap();
    let waits = lines(&log, "waiting for caches");
    // After 3 and 9 seconds; the list takes twenty.
    assert_eq!(waits.len(), 2, "{waits:?}");
    assert!(waits[0].contains("waited=3"), "{waits:?}");
    assert!(
        waits[0].contains("v1 ConfigMap: listing, 100 of 1000") && waits[0].contains("kinds=1"),
        "{waits:?}"
    );
    assert!(
        waits[1].contains("v1 ConfigMap: listing, 400 of 1000"),
        "{waits:?}"
    );
    let progress = lines(&log, "loading the cache");
    assert_eq!(progress.len(), 3, "every five seconds: {progress:?}");
    assert!(
        progress[0].contains("loaded=300 remaining=700 per_second=50"),
        "{progress:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_short_wait_and_a_small_kind_are_quiet() {
    let log = Logs::up_to(Level::INFO);
    let last = Ask {
        watch: false,
        query: String::new(),
        metadata_only: false,
        number: 9,
    };
    let script = Script::new(move |ask| if ask.watch { quiet() } else { page(&last) });
    let factory = listing(no_client());
    let _informer = factory.for_source(config_maps(), std::sync::Arc::new(script));
    factory.start();
    factory.wait_for_sync(MINUTE).await.unwrap();
    assert!(lines(&log, "waiting for caches").is_empty());
    assert!(lines(&log, "loading the cache").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_does_not_end_is_a_warning_less_and_less_with_the_error() {
    let log = Logs::warnings();
    let script = Script::new(|_| status(403, "Forbidden"));
    let factory = listing(no_client());
    let _informer = factory.for_source(config_maps(), std::sync::Arc::new(script));
    factory.start();
    factory.wait_for_sync(10 * MINUTE).await.unwrap_err();
    let waits = lines(&log, "waiting for caches");
    // After 3, 9, 21, 45 and 93 seconds, and then every minute.
    assert_eq!(waits.len(), 13, "{waits:?}");
    assert!(waits[3].contains("waited=45"), "{waits:?}");
    assert!(
        waits[0].contains("last error: list refused: 403 Forbidden"),
        "{waits:?}"
    );
    let advice = "; grant the program `list` and `watch` of what is forbidden";
    assert!(waits[0].contains(advice), "{waits:?}");
}
