use std::time::Duration;

use super::*;
use crate::controller::failures::failed::Next;
use crate::lane::Lanes;

/// Failures of one handler, and the lines they make.
struct Rig {
    of: OfHandler,
    lines: Vec<String>,
}

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

impl Rig {
    fn new() -> Self {
        Self {
            of: OfHandler::new(&"h".into()),
            lines: Vec::new(),
        }
    }

    fn fails(&mut self, name: &str, error: &str, retry_in: Option<Duration>) {
        let failed = Failed {
            handler: &"h".into(),
            key: &ObjectKey::cluster(name),
            error: &error.into(),
            attempt: 1,
            next: retry_in.map_or(Next::Final(None), Next::Retry),
            panicked: None,
        };
        let (line, _) = self.of.failed(&failed, Instant::now());
        self.note(line);
    }

    fn succeeds(&mut self, name: &str) {
        self.of.succeeded(&ObjectKey::cluster(name), Instant::now());
    }

    /// Advances the time, and logs everything that is due in between.
    async fn pass(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while let Some(next) = self.of.groups.iter().map(Group::due).min() {
            if next > end {
                break;
            }
            time::sleep_until(next.max(Instant::now())).await;
            let now = Instant::now();
            let handler = Arc::clone(&self.of.handler);
            let ticks = self.of.groups.iter_mut();
            let lines: Vec<_> = ticks.map(|group| group.tick(&handler, now)).collect();
            lines.into_iter().for_each(|line| self.note(line));
            self.of.groups.retain(|group| !group.is_over(now));
        }
        time::sleep_until(end).await;
    }

    fn note(&mut self, line: Option<Line>) {
        let line = line.map(|line| {
            let names: Vec<&str> = line.keys.iter().map(ObjectKey::as_str).collect();
            let (line_kind, failures) = (line.line_kind, line.failures);
            format!(
                "{line_kind:?} {failures} of {}: {}",
                line.failing,
                names.join(" ")
            )
        });
        self.lines.extend(line);
    }

    fn lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }
}

#[tokio::test(start_paused = true)]
async fn many_keys_that_fail_alike_are_one_line_and_sums() {
    let mut rig = Rig::new();
    for round in 0..2 {
        for number in 0..1000 {
            let name = format!("web-{number}");
            rig.fails(
                &name,
                &format!("{name} cannot reach 10.0.0.{round}"),
                Some(MS),
            );
        }
    }
    assert_eq!(rig.lines(), ["First 1 of : web-0"]);
    rig.pass(SECOND).await;
    assert_eq!(rig.lines(), ["Still 1999 of 1000: web-1 web-2 web-3"]);
    rig.fails("web-7", "web-7 cannot reach 10.0.0.1", Some(MS));
    rig.pass(9 * SECOND).await;
    assert!(rig.lines().is_empty());
    rig.pass(SECOND).await;
    assert_eq!(rig.lines(), ["Still 1 of 1000: web-7"]);
    (0..1000).for_each(|number| rig.succeeds(&format!("web-{number}")));
    rig.pass(SECOND).await;
    assert_eq!(rig.lines(), ["Recovered 2001 of 0: "]);
    rig.pass(3600 * SECOND).await;
    assert!(rig.lines().is_empty() && rig.of.groups.is_empty());
    rig.fails("web-7", "web-7 cannot reach 10.0.0.1", Some(MS));
    assert_eq!(rig.lines(), ["First 1 of : web-7"], "it is long ago");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_fails_now_and_then_is_summed_up_more_and_more_rarely() {
    let mut rig = Rig::new();
    for _ in 0..3600 {
        rig.fails("a", "flaky", Some(MS));
        rig.succeeds("a");
        rig.pass(SECOND).await;
    }
    let lines = rig.lines().len();
    assert!(lines < 30, "{lines} lines in an hour");
}

#[tokio::test(start_paused = true)]
async fn a_key_that_fails_in_another_way_has_not_recovered() {
    let mut rig = Rig::new();
    rig.fails("a", "refused", Some(MS));
    rig.fails("a", "no such host", Some(MS));
    rig.pass(20 * SECOND).await;
    assert_eq!(rig.lines(), ["First 1 of : a", "First 1 of : a"]);
    rig.fails("a", "it is malformed", None);
    rig.pass(20 * SECOND).await;
    assert_eq!(rig.lines(), ["Finally 1 of : a"]);
}

#[tokio::test(start_paused = true)]
async fn failures_for_good_are_summed_up_too() {
    let mut rig = Rig::new();
    (0..100).for_each(|number| rig.fails(&format!("n{number}"), "it is malformed", None));
    rig.pass(2 * SECOND).await;
    assert_eq!(
        rig.lines(),
        ["Finally 1 of : n0", "FinallyMore 99 of 0: n1 n2 n3"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_key_that_fails_for_good_again_is_not_another_key() {
    let mut rig = Rig::new();
    rig.fails("a", "it is malformed", None);
    rig.fails("a", "it is malformed", None);
    rig.pass(2 * SECOND).await;
    assert_eq!(rig.lines(), ["Finally 1 of : a", "FinallyAgain 1 of 0: a"]);
    rig.fails("b", "it is malformed", None);
    rig.pass(10 * SECOND).await;
    assert_eq!(rig.lines(), ["FinallyMore 1 of 0: b"]);
    rig.fails("a", "it is malformed", None);
    rig.fails("b", "it is malformed", None);
    rig.pass(60 * SECOND).await;
    assert_eq!(rig.lines(), ["FinallyAgain 2 of 0: a b"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_remembered_is_bounded() {
    let mut rig = Rig::new();
    for number in 0..10_000u32 {
        let word: String = number
            .to_string()
            .bytes()
            .map(|digit| (digit + 49) as char)
            .collect();
        rig.fails(
            &number.to_string(),
            &format!("cannot find {word}"),
            Some(MS),
        );
    }
    assert_eq!(rig.of.groups.len(), GROUPS + 1);
    assert_eq!(rig.of.failing.len(), KEYS);
    assert_eq!(rig.lines().len(), GROUPS + 1);
    rig.pass(SECOND).await;
    let line = rig.lines().pop().expect("one for the rest");
    assert!(line.starts_with("Still 9983 of more than "), "{line}");
    // Those that are not known one by one are not waited for.
    let known: Vec<ObjectKey> = rig.of.failing.keys().cloned().collect();
    known.iter().for_each(|key| rig.succeeds(key.as_str()));
    rig.pass(7200 * SECOND).await;
    assert!(rig.of.groups.is_empty() && rig.of.failing.is_empty());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_kept_of_handlers_that_are_gone() {
    let failures = Failures::new(Gvk::new("", "v1", "Pod"));
    let (handler, key) = ("h".into(), ObjectKey::cluster("a"));
    failures.failed(&Failed {
        handler: &handler,
        key: &key,
        error: &"no".into(),
        attempt: 1,
        next: Next::Retry(MS),
        panicked: None,
    });
    assert!(failures.are_any.load(Ordering::Relaxed));
    failures.sum_up(&Lanes::default(), &|_, _| true).await;
    assert!(!failures.are_any.load(Ordering::Relaxed) && failures.handlers.lock().is_empty());
}
