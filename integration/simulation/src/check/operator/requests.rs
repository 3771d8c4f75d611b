//! Requests of operators: no hot loop, and none at all at rest.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use lariat_cluster::Commit;
use lariat_sim::internals::{Event, Moment, Rest};

use super::Operators;
use super::settled::is_blocked;
use super::touched::Touched;
use crate::check::{Check, Findings};
use crate::oracle::Oracle;
use crate::shop;

/// The largest number of writes of one object within a minute, whatever happens to it.
const MOST: usize = 300;
const MINUTE: Duration = Duration::from_secs(60);

/// The number of writes that answer one of another process.
const ANSWERS: usize = 2;

/// An object is not written in a hot loop.
///
/// `Reconcile::apply` and `StatusWriter`: what is as wanted is not sent, so writes are bounded by what others change
/// and by retries. The bound is [`MOST`] a minute for one path in one process, and one more for each foreign change
/// that a conflict made of the object, because it comes with each write. For a program of one process that is all.
///
/// Replicas without a lease that see different states answer each other's writes, and nothing delays that by default.
/// So each write of another process allows [`ANSWERS`] of the path, the next ones, which are not counted: one that
/// conflicts with it, and one that names the state that was read then.
#[derive(Default)]
pub(super) struct Writes {
    operators: Operators,
    touched: Touched,
    /// The counted writes of the last minute, by process and path.
    recent: BTreeMap<(Arc<str>, String), VecDeque<Duration>>,
    /// The process that has written each path last, and how many more of its writes answer one of another.
    last: BTreeMap<String, (Arc<str>, usize)>,
    /// The time at which paths were forgotten last that are not written any more.
    swept: Duration,
}

impl Check for Writes {
    fn name(&self) -> &'static str {
        "no hot loop of writes"
    }

    fn saw(&mut self, _: &Oracle, moment: &Moment, event: &Event) -> Findings {
        self.operators.saw(event);
        if let Event::Committed(Commit::Stored(object)) = event {
            self.touched.saw(object, moment.at);
        }
        let Event::Sent { what, .. } = event else {
            return Vec::new();
        };
        if !self.operators.has(&moment.actor) || !is_write(what) {
            return Vec::new();
        }
        self.sweep(moment.at);
        // Without the query: parameters such as the field manager do not make it another object.
        let path = what.split('?').next().unwrap_or_default();
        if self.answers(&moment.actor, path) {
            return Vec::new();
        }
        let count = self.count(moment, path);
        // The second comparison parses the path, and is needed for the few that are beyond the first.
        if count <= MOST || count <= MOST + self.touched.lately(path, moment.at) {
            return Vec::new();
        }
        vec![format!("{path}: {count} requests within a minute")]
    }
}

impl Writes {
    /// Records who writes a path; returns whether the write answers one of another process.
    fn answers(&mut self, actor: &Arc<str>, path: &str) -> bool {
        let (last, left) = match self.last.remove(path) {
            Some((last, left)) => (last, left),
            None => (Arc::clone(actor), 0),
        };
        let left = if last == *actor { left } else { ANSWERS };
        let now = (Arc::clone(actor), left.saturating_sub(1));
        self.last.insert(path.to_owned(), now);
        left > 0
    }

    /// Counts a write; returns how many there were within a minute.
    fn count(&mut self, moment: &Moment, path: &str) -> usize {
        let of = (Arc::clone(&moment.actor), path.to_owned());
        let recent = self.recent.entry(of).or_default();
        recent.push_back(moment.at);
        while recent
            .front()
            .is_some_and(|first| *first + MINUTE < moment.at)
        {
            recent.pop_front();
        }
        recent.len()
    }

    /// Forgets paths that have not been written for a minute, once a minute.
    fn sweep(&mut self, now: Duration) {
        if now < self.swept + MINUTE {
            return;
        }
        self.swept = now;
        let is_recent = |last: &Duration| *last + MINUTE >= now;
        self.recent
            .retain(|_, times| times.back().is_some_and(is_recent));
        let written: BTreeSet<&str> = self.recent.keys().map(|(_, path)| &**path).collect();
        self.last.retain(|path, _| written.contains(&**path));
    }
}

/// The time operators have to come to rest once all faults have ended.
const RESTLESS: Duration = Duration::from_secs(15 * 60);

/// At rest an operator sends nothing but watches, whatever its period is.
///
/// `Reconcile::apply`: "If nothing changes, nothing is sent, provided that the kinds are watched"; a status is written
/// when it changes. While an object of others is in the way, its shop is tried again and says so in Events; and a kind
/// of which only metadata is cached is read with requests. Neither writes anything else.
#[derive(Default)]
pub(super) struct Quiet {
    operators: Operators,
    ended: Option<Duration>,
    /// The requests that were sent since operators should be at rest.
    sent: BTreeMap<Arc<str>, Vec<String>>,
}

impl Check for Quiet {
    fn name(&self) -> &'static str {
        "nothing is sent at rest"
    }

    fn saw(&mut self, _: &Oracle, moment: &Moment, event: &Event) -> Findings {
        self.operators.saw(event);
        match event {
            Event::Note(note) if note == "all faults end" => self.ended = Some(moment.at),
            Event::Sent { what, .. } => {
                let rests = self.ended.is_some_and(|ended| ended + RESTLESS < moment.at);
                // Watches end after some minutes and are opened again, also at rest.
                if rests && self.operators.has(&moment.actor) && !what.contains("watch=") {
                    let sent = self.sent.entry(Arc::clone(&moment.actor)).or_default();
                    sent.push(what.clone());
                }
            }
            _ => {}
        }
        Vec::new()
    }

    fn at_rest(&mut self, oracle: &Oracle, rest: &Rest<'_>) -> Findings {
        let sent = self
            .sent
            .get(&rest.incarnation.process)
            .map_or(&[][..], Vec::as_slice);
        let fetches = self.operators.fetches.get(&rest.incarnation.process) == Some(&true);
        let mut shops = oracle.all(&shop::gvk());
        let is_blocked = shops.any(|(key, shop)| is_blocked(oracle, key, shop));
        let is_fine = |what: &str| {
            let tries = is_blocked && (what.contains("/events") || !is_write(what));
            tries || fetches && !is_write(what)
        };
        let wrong: Vec<&String> = sent.iter().filter(|what| !is_fine(what)).collect();
        let Some(first) = wrong.first() else {
            return Vec::new();
        };
        vec![format!("{} requests at rest, such as {first}", wrong.len())]
    }
}

fn is_write(what: &str) -> bool {
    !what.starts_with("GET ")
}

#[cfg(test)]
mod tests {
    use super::super::harness::OperatorHarness;
    use super::*;
    use serde_json::json;

    const PATCH: &str = "PATCH /apis/sim.dev/v1/namespaces/default/shops/o1/status?";
    const WATCH: &str = "GET /api/v1/secrets?&watch=true";

    #[tokio::test]
    async fn a_hot_loop_of_writes_is_reported() {
        let mut harness = OperatorHarness::new(Writes::default()).await;
        harness.operates();
        for number in 0..MOST {
            harness.sent(number as u64, PATCH);
        }
        harness.sent(1000, WATCH);
        assert!(harness.all().is_empty(), "{:?}", harness.all());
        harness.sent(1001, PATCH);
        assert!(
            harness.found("301 requests within a minute"),
            "{:?}",
            harness.all()
        );
    }

    #[tokio::test]
    async fn writes_that_answer_conflicts_are_no_hot_loop() {
        let mut harness = OperatorHarness::new(Writes::default()).await;
        harness.operates();
        harness.create_shop("o1", 0).await;
        for number in 0..10 {
            let touched =
                json!({"metadata": {"annotations": {"lariat/touched": number.to_string()}}});
            harness.patch(&shop::gvk(), "o1", &touched).await;
            // What leaves the annotation as it is is no conflict.
            let spec = json!({"spec": {"n": number}});
            harness.patch(&shop::gvk(), "o1", &spec).await;
        }
        for number in 0..MOST + 10 {
            harness.sent(number as u64, PATCH);
        }
        assert!(harness.all().is_empty(), "{:?}", harness.all());
        harness.sent(1000, PATCH);
        assert!(
            harness.found("311 requests within a minute"),
            "{:?}",
            harness.all()
        );
    }

    #[tokio::test]
    async fn a_write_of_another_process_allows_two_writes() {
        let mut harness = OperatorHarness::new(Writes::default()).await;
        harness.operates();
        harness.operates_as("operator-1");
        for number in 0..2 * MOST {
            harness.sent(number as u64, PATCH);
            harness.sent_by("operator-1", number as u64, PATCH);
        }
        // The very first write was counted, and the next two are answers.
        for number in 0..=MOST {
            harness.sent(number as u64, PATCH);
        }
        assert!(harness.all().is_empty(), "{:?}", harness.all());
        harness.sent(1000, PATCH);
        assert!(
            harness.found("301 requests within a minute"),
            "{:?}",
            harness.all()
        );
    }

    #[tokio::test]
    async fn writes_that_are_spread_over_time_are_fine() {
        let mut harness = OperatorHarness::new(Writes::default()).await;
        harness.operates();
        for number in 0..2 * MOST {
            harness.sent(number as u64, PATCH);
            harness.wait(Duration::from_secs(1));
        }
        assert!(harness.all().is_empty(), "{:?}", harness.all());
    }

    #[tokio::test]
    async fn requests_at_rest_are_reported_and_watches_are_not() {
        let mut harness = OperatorHarness::new(Quiet::default()).await;
        harness.operates();
        harness.note(&Event::Note("all faults end".to_owned()));
        harness.sent(1, PATCH);
        harness.wait(RESTLESS + MINUTE);
        harness.sent(2, WATCH);
        harness.rest();
        assert!(harness.all().is_empty(), "{:?}", harness.all());
        harness.sent(3, PATCH);
        harness.rest();
        assert!(harness.found("1 requests at rest"), "{:?}", harness.all());
    }
}
