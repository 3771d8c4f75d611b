//! How soon a kind recovers from an outage or an overload, and what is logged meanwhile.

use std::time::Duration;

use lariat_cache::Phase;
use lariat_core::Gvk;
use lariat_testing::Logs;
use tokio::time::{self, Instant};

use crate::bench::{MINUTE, client_as, cluster, factory};
use crate::script::{Answer, BodyEnd, Script, Scripted, event, list, object, quiet, status};

fn busy(seconds: &'static str) -> Answer {
    let text = "Too many requests, please try again later.\n".to_owned();
    Answer::Whole(429, vec![("retry-after", seconds)], text)
}

fn as_known() -> Answer {
    let item = object("a", 10);
    let text = format!(r#"{{"metadata":{{"resourceVersion":"30"}},"items":[{item}]}}"#);
    Answer::Whole(200, Vec::new(), text)
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_busy_is_asked_again_when_it_says() {
    let bench = Scripted::start(|ask| match (ask.watch, ask.number) {
        (false, 0..9) => busy("1"),
        (false, _) => list(10, "", &["a"]),
        (true, 0..9) => busy("2"),
        (true, _) => quiet(),
    });
    time::sleep(MINUTE).await;
    assert_eq!(bench.status().phase, Phase::Synced);
    let (lists, watches) = (bench.script.gaps(false), bench.script.gaps(true));
    assert_eq!((lists.len(), watches.len()), (9, 9));
    assert!(
        lists.iter().all(|gap| (1.0..1.3).contains(gap)),
        "{lists:?}"
    );
    assert!(
        watches.iter().all(|gap| (2.0..2.6).contains(gap)),
        "{watches:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stays_busy_is_left_alone_more_and_more() {
    let bench = Scripted::start(|_| busy("1"));
    time::sleep(10 * MINUTE).await;
    let gaps = bench.script.gaps(false);
    assert!(gaps.iter().all(|gap| *gap >= 0.99), "{gaps:?}");
    assert!(gaps.last().is_some_and(|gap| *gap > 20.0), "{gaps:?}");
    assert_eq!(
        bench.status().last_error.as_deref(),
        Some("list refused: 429 Too Many Requests: Too many requests, please try again later.")
    );
}

/// With a new CRD the API server answers the first watch with 429, and a starting one with 503.
#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_a_moment_is_no_reason_for_a_warning() {
    let logs = Logs::warnings();
    let begun = Instant::now();
    let bench = Scripted::start(|ask| match (ask.watch, ask.number) {
        (false, 0) => busy("1"),
        (false, _) => list(10, "", &["a"]),
        (true, _) => quiet(),
    });
    assert!(bench.informer.synced().await);
    assert!(begun.elapsed() < Duration::from_millis(1300));
    assert_eq!(logs.lines(), [""; 0]);

    let bench = Scripted::start(|_| busy("1"));
    time::sleep(MINUTE).await;
    assert_eq!(logs.lines().len(), 1, "{:?}", logs.lines());
    drop(bench);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_back_is_not_waited_for_as_if_it_were_away() {
    for answer in [503, 410] {
        let begun = Instant::now();
        let script = Script::new(move |ask| match (ask.watch, ask.number) {
            (false, 0) => list(10, "", &[]),
            (false, _) => list(30, "", &["a"]),
            (true, 0) => Answer::Pieces(vec![event("BOOKMARK", "", 11)], BodyEnd::Cut),
            (true, 1) => status(answer, "AnyReason"),
            (true, _) => quiet(),
        });
        let bench = Scripted::of(script.checked(move |_| {
            if begun.elapsed() < 5 * MINUTE {
                Answer::Nothing
            } else {
                as_known()
            }
        }));
        time::sleep(6 * MINUTE).await;
        let watches = bench.script.times(true);
        let back = watches[1];
        let next = match answer {
            410 => bench.script.times(false)[1],
            _ => watches[2],
        };
        let waited = (next - back).as_secs_f64();
        assert!(
            waited < if answer == 410 { 0.01 } else { 1.1 },
            "{waited} after {answer}"
        );
        assert_eq!(bench.status().phase, Phase::Synced);
        assert!(back - begun < 5 * MINUTE + Duration::from_secs(38));
    }
}

/// So that the longest wait of all kinds does not decide when the program goes on.
#[tokio::test(start_paused = true)]
async fn a_kind_that_reaches_the_server_again_wakes_the_others() {
    let cluster = cluster().await;
    let factory = factory(client_as(&cluster, "informer"));
    let kinds = [
        "ConfigMap",
        "Secret",
        "Service",
        "ServiceAccount",
        "Endpoints",
    ];
    let informers = kinds.map(|kind| factory.for_kind(Gvk::new("", "v1", kind)));
    factory.start();
    factory.wait_for_sync(MINUTE).await.expect("synced");
    for minutes in 3..8 {
        let away = cluster.faults().partition("informer");
        time::sleep(minutes * MINUTE).await;
        cluster.faults().remove(away);
        let are_stale = || {
            informers
                .iter()
                .filter(|each| each.status().is_stale())
                .count()
        };
        assert_eq!(are_stale(), kinds.len());
        while are_stale() == kinds.len() {
            time::sleep(Duration::from_millis(10)).await;
        }
        time::sleep(Duration::from_millis(1500)).await;
        assert_eq!(are_stale(), 0, "after {minutes} minutes");
    }
}

/// However long an outage was: the API server may still have the versions in between.
#[tokio::test(start_paused = true)]
async fn an_outage_alone_does_not_lead_to_a_list() {
    let begun = Instant::now();
    let script = Script::new(|ask| match (ask.watch, ask.number) {
        (false, _) => list(10, "", &[]),
        (true, 0) => Answer::Pieces(vec![event("BOOKMARK", "", 11)], BodyEnd::Cut),
        (true, _) => quiet(),
    });
    let bench = Scripted::of(script.checked(move |_| {
        if begun.elapsed() < 20 * MINUTE {
            Answer::Nothing
        } else {
            as_known()
        }
    }));
    time::sleep(21 * MINUTE).await;
    assert_eq!((bench.script.lists(), bench.script.watches()), (1, 2));
    assert_eq!(bench.status().last_error, None);
}

/// By its defaults etcd says how far it is every ten minutes, and so do bookmarks then.
#[tokio::test(start_paused = true)]
async fn a_kind_in_which_nothing_happens_is_waited_for_longer_and_longer() {
    let logs = Logs::warnings();
    let script = Script::new(|ask| match (ask.watch, ask.number) {
        (false, _) => list(10, "", &["a"]),
        (true, 0) => Answer::Pieces(vec![event("BOOKMARK", "", 11)], BodyEnd::Silence),
        (true, _) => quiet(),
    });
    let bench = Scripted::of(script.checked(|_| as_known()));
    time::sleep(60 * MINUTE).await;
    let gaps = bench.script.gaps(true);
    for (gap, expected) in gaps.iter().zip([90.0, 180.0]) {
        assert!((gap - expected).abs() < 0.1, "{gaps:?}");
    }
    // Six minutes, then ten, or as long as the watch was to last, which is drawn from five minutes on.
    assert!((310.0..360.1).contains(&gaps[2]), "{gaps:?}");
    assert!(
        gaps[3..].iter().all(|gap| (310.0..601.0).contains(gap)),
        "{gaps:?}"
    );
    assert_eq!((bench.script.lists(), bench.script.checks().len()), (1, 0));
    assert_eq!((logs.lines(), bench.status().last_error), (vec![], None));
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_has_bookmarks_every_minute_is_waited_for_ninety_seconds_again() {
    let script = Script::new(|ask| match (ask.watch, ask.number) {
        (false, _) => list(10, "", &["a"]),
        (true, 0) => Answer::Pieces(vec![event("BOOKMARK", "", 11)], BodyEnd::Silence),
        (true, 1) => quiet(),
        (true, 2) => {
            let bookmarks = (12..15).map(|version| event("BOOKMARK", "", version));
            Answer::Slow(bookmarks.collect(), MINUTE)
        }
        (true, _) => quiet(),
    });
    let bench = Scripted::of(script.checked(|_| as_known()));
    time::sleep(15 * MINUTE).await;
    let gaps = bench.script.gaps(true);
    for (gap, expected) in gaps.iter().zip([90.0, 180.0, 180.0 + 90.0, 180.0]) {
        assert!((gap - expected).abs() < 0.1, "{gaps:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_network_that_swallows_everything_shows_in_the_status() {
    let script = Script::new(|ask| match (ask.watch, ask.number) {
        (false, _) => list(10, "", &[]),
        (true, 0) => Answer::Pieces(vec![event("BOOKMARK", "", 11)], BodyEnd::Cut),
        (true, _) => quiet(),
    });
    let begun = Instant::now();
    let bench = Scripted::of(script.checked(move |_| {
        if begun.elapsed() < MINUTE {
            Answer::Never
        } else {
            as_known()
        }
    }));
    time::sleep(Duration::from_secs(3)).await;
    let status = bench.status();
    assert_eq!(status.phase, Phase::Synced);
    assert!(!status.is_stale(), "watches are opened again all the time");
    assert_eq!(
        status.last_error.as_deref(),
        Some("watch: the answer was cut off: connection reset"),
        "it is known immediately"
    );
    time::sleep(Duration::from_secs(3)).await;
    let status = bench.status();
    assert!(status.is_stale() && status.phase == Phase::Synced);
    let interrupted = status.interrupted.expect("there is no watch");
    assert!((5..7).contains(&interrupted.as_secs()), "{interrupted:?}");
    time::sleep(2 * MINUTE).await;
    let status = bench.status();
    assert!(!status.is_stale() && status.interrupted.is_none());
    assert_eq!(status.last_error, None);
}

#[tokio::test(start_paused = true)]
async fn list_that_no_watch_follows_is_stale() {
    let bench = Scripted::start(|ask| {
        if ask.watch {
            Answer::Nothing
        } else {
            list(10, "", &["a"])
        }
    });
    time::sleep(Duration::from_secs(20)).await;
    assert_eq!(bench.status().phase, Phase::Synced);
    assert!(bench.status().is_stale() && !bench.informer.is_current());
}
