use std::sync::Arc;
use std::time::Duration;

use tokio::time;

use super::*;

/// Failures of one handler, and the lines they make.
#[derive(Default)]
struct Rig {
    recent: Recent,
    lines: Vec<String>,
}

const MS: Option<Duration> = Some(Duration::from_millis(1));
const SECOND: Duration = Duration::from_secs(1);

impl Rig {
    /// Fails for the first time with an error.
    fn fails(&mut self, name: &str, error: &str, again_in: Option<Duration>) {
        self.fails_again(name, error, 1, again_in);
    }

    fn fails_again(&mut self, name: &str, error: &str, attempt: u32, again_in: Option<Duration>) {
        let failed = Failed {
            kind: &Gvk::new("", "v1", "Pod"),
            handler: &"h".into(),
            key: &ObjectKey::cluster(name),
            error: &Arc::from(error),
            attempt,
            is_final: again_in.is_none(),
            again_in,
            panicked: None,
        };
        if self.recent.failed(&failed, Instant::now()) {
            self.lines.push(format!("failed {name}"));
        }
    }

    fn succeeds(&mut self, name: &str) {
        let key = ObjectKey::cluster(name);
        self.recent.release(&key, Some(Instant::now()));
    }

    /// Advances the time, and takes the lines that are due in between.
    async fn pass(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while let Some(next) = self.recent.groups.values().filter_map(Group::due).min() {
            if next > end {
                break;
            }
            time::sleep_until(next.max(Instant::now())).await;
            for line in self.recent.take_lines(Instant::now(), false) {
                let names: Vec<&str> = line.examples.iter().map(ObjectKey::as_str).collect();
                let what = match line.recovered {
                    Some(_) => "recovered",
                    None => "fails",
                };
                let (failures, failing) = (line.failures, line.failing);
                let names = names.join(" ");
                self.lines
                    .push(format!("{what} {failures} of {failing}: {names}"));
            }
        }
        time::sleep_until(end).await;
    }

    fn lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }
}

#[tokio::test(start_paused = true)]
async fn same_error_of_many_keys_is_one_line() {
    let mut rig = Rig::default();
    for number in 0..1000 {
        let name = format!("web-{number}");
        rig.fails(&name, &format!("{name} cannot reach 10.0.0.{number}"), MS);
    }
    assert_eq!(rig.lines(), ["failed web-0"]);
    rig.pass(SECOND).await;
    assert_eq!(rig.lines(), ["fails 999 of 1000: web-1 web-2 web-3"]);
    (0..1000).for_each(|number| rig.succeeds(&format!("web-{number}")));
    rig.pass(SECOND).await;
    assert_eq!(rig.lines(), ["recovered 0 of 0: "]);
    rig.pass(3600 * SECOND).await;
    assert!(rig.lines().is_empty() && rig.recent.groups.is_empty());
    rig.fails("web-7", "web-7 cannot reach 10.0.0.1", MS);
    assert_eq!(rig.lines(), ["failed web-7"], "it is long ago");
}

#[tokio::test(start_paused = true)]
async fn key_that_keeps_failing_is_logged_at_powers_of_two() {
    let mut rig = Rig::default();
    for attempt in 1..=100 {
        rig.fails_again("a", "refused", attempt, MS);
        rig.pass(3600 * SECOND).await;
    }
    let lines = rig.lines();
    assert_eq!(lines, ["failed a"; 7], "attempts 1, 2, 4, 8, 16, 32 and 64");
}

#[tokio::test(start_paused = true)]
async fn key_that_fails_now_and_then_is_logged_ever_more_rarely() {
    let mut rig = Rig::default();
    for _ in 0..3600 {
        rig.fails("a", "flaky", MS);
        rig.succeeds("a");
        rig.pass(SECOND).await;
    }
    let lines = rig.lines().len();
    assert!(lines < 30, "{lines} lines in an hour");
}

#[tokio::test(start_paused = true)]
async fn key_that_fails_with_another_error_has_not_recovered() {
    let mut rig = Rig::default();
    rig.fails("a", "refused", MS);
    rig.fails("a", "no such host", MS);
    rig.pass(20 * SECOND).await;
    assert_eq!(rig.lines(), ["failed a", "failed a"]);
    rig.fails("a", "malformed", None);
    rig.pass(20 * SECOND).await;
    assert_eq!(rig.lines(), ["failed a"]);
    assert!(rig.recent.failing.is_empty());
}

#[tokio::test(start_paused = true)]
async fn final_failures_of_many_keys_are_one_line() {
    let mut rig = Rig::default();
    (0..100).for_each(|number| rig.fails(&format!("n{number}"), "malformed", None));
    rig.pass(2 * SECOND).await;
    assert_eq!(rig.lines(), ["failed n0", "fails 99 of 0: n1 n2 n3"]);
}

#[tokio::test(start_paused = true)]
async fn failures_are_remembered_up_to_a_bound() {
    let mut rig = Rig::default();
    for number in 0..10_000u32 {
        let digits = number.to_string();
        let word: String = digits.bytes().map(|digit| (digit + 49) as char).collect();
        rig.fails(&digits, &format!("cannot find {word}"), MS);
    }
    assert_eq!(rig.recent.groups.len(), GROUPS + 1);
    assert_eq!(rig.recent.failing.len(), KEYS);
    assert_eq!(rig.lines().len(), GROUPS + 1);
    rig.pass(SECOND).await;
    let line = rig.lines().pop().expect("one for the rest");
    assert!(line.starts_with("fails 9983 of "), "{line}");
    // Those that are not known one by one are not waited for.
    let known: Vec<ObjectKey> = rig.recent.failing.keys().cloned().collect();
    known.iter().for_each(|key| rig.succeeds(key.as_str()));
    rig.pass(7200 * SECOND).await;
    assert!(rig.recent.groups.is_empty() && rig.recent.failing.is_empty());
}
