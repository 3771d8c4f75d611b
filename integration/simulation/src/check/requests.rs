//! Requests: at rest only watches, and no storm before.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use lariat_sim::internals::{ActivityKind, Event, Moment, Rest};

use super::{Check, Findings};
use crate::oracle::Oracle;

/// The purpose of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verb {
    /// A watch that goes on from a version.
    Watch,
    /// A list, or a watch that begins with everything there is.
    Load,
    /// A request for the newest object, to detect another history.
    Check,
    Discovery,
    /// A read of one object, or a write: what handlers do.
    Other,
}

impl Verb {
    fn of(method: &str, path: &str, query: &str) -> Self {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let after_version = match parts.first() {
            // The core API has paths such as `/api/v1/pods`; in others the group comes first,
            // `/apis/apps/v1/deployments`.
            Some(&"api") => 2,
            Some(&"apis") => 3,
            _ => return Self::Other,
        };
        let rest = parts.get(after_version..).unwrap_or_default();
        // All objects of a namespace, or of the cluster. One segment more is a single object.
        let is_collection = matches!(rest, ["namespaces", _, _] | [_]);
        let asks = |text: &str| query.split('&').any(|each| each == text);
        match method {
            "GET" if rest.is_empty() => Self::Discovery,
            "GET" if !is_collection => Self::Other,
            // Before the watch below, because a watch list asks for `watch=true` as well.
            "GET" if asks("sendInitialEvents=true") => Self::Load,
            "GET" if asks("watch=true") => Self::Watch,
            "GET" if asks("limit=1") => Self::Check,
            "GET" => Self::Load,
            _ => Self::Other,
        }
    }
}

/// Returns the resource of a request that begins a list.
pub(super) fn resource_of_list(what: &str) -> Option<&str> {
    let (method, uri) = what.split_once(' ')?;
    let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
    let is_first = Verb::of(method, path, query) == Verb::Load && !query.contains("continue=");
    path.rsplit('/').next().filter(|_| is_first)
}

/// A verb and the path it is for.
type Line = (Arc<str>, Verb, String);

/// Programs do not flood the API server.
///
/// While something happens: in any minute no more than 100 requests of one verb and path for a process, and one more
/// for each change in the cluster and two for each thing the program or its user does in it (a start, a handler, a
/// selection, an end of a process). The first step of the reflector's backoff is 0.8 s with a quarter of jitter
/// (`reflector::backoff`), so 100 a minute, and it is taken again and again only after watches that reported something:
/// those are the changes. Later pages of a list are not counted, unless the same page is asked for twice within a
/// minute. A kind that is missing is asked for every two seconds, discovery every second and longer.
///
/// At rest, in the last ten minutes: no list, no check, no discovery and no write; a watch on one path is opened three
/// times at most, because the shortest lasts five minutes (`reflector::watch`).
#[derive(Default)]
pub(super) struct NoStorm {
    requests: BTreeMap<Line, VecDeque<Duration>>,
    /// The times of occurrences that may need requests, and how many.
    reasons: VecDeque<(Duration, usize)>,
    /// The sum of `reasons`.
    reasons_count: usize,
    /// Pages that were asked for lately.
    pages: BTreeMap<(Arc<str>, String), Duration>,
    /// Requests of the last minutes but those of handlers.
    late: VecDeque<(Duration, Line)>,
}

const MINUTE: Duration = Duration::from_secs(60);
const PER_MINUTE: usize = 100;
const QUIET: Duration = Duration::from_secs(600);
const WATCHES: usize = 3;

/// The number of pages that are remembered before old ones are forgotten.
///
/// Those are old that were asked for more than a minute ago.
const PAGES: usize = 1000;

impl Check for NoStorm {
    fn name(&self) -> &'static str {
        "no request storm"
    }

    fn saw(&mut self, _: &Oracle, moment: &Moment, event: &Event) -> Findings {
        let now = moment.at;
        match event {
            Event::Committed(_) => self.reason(now, 1),
            Event::Acted(activity) if !matches!(activity.what, ActivityKind::Sampled(_)) => {
                self.reason(now, 2);
            }
            Event::Selected { .. } | Event::IncarnationBegan(_) | Event::IncarnationEnded(_) => {
                self.reason(now, 2);
            }
            Event::Sent { what, .. } => return self.sent(&moment.actor, what, now),
            _ => {}
        }
        Vec::new()
    }

    fn at_rest(&mut self, oracle: &Oracle, rest: &Rest<'_>) -> Findings {
        // A reflector that has read everything again after a restore notices only at the end of that watch that others
        // had found the restore, too, and reads everything once more.
        let mut spared = BTreeSet::new();
        let mut watches: BTreeMap<&str, usize> = BTreeMap::new();
        let mut found = Vec::new();
        let late = self
            .late
            .iter()
            .filter(|(at, line)| *at + QUIET >= rest.now && line.0 == rest.incarnation.process);
        for (at, (_, verb, path)) in late {
            if *verb == Verb::Watch {
                *watches.entry(path).or_default() += 1;
            } else if *verb != Verb::Load || oracle.epoch() <= 1 || !spared.insert(path) {
                found.push(format!(
                    "{verb:?} of {path} at {at:?}, although nothing happens"
                ));
            }
        }
        let many = watches.iter().filter(|(_, count)| **count > WATCHES);
        found.extend(many.map(|(path, count)| {
            format!("{count} watches of {path} in ten minutes, although nothing happens")
        }));
        found
    }
}

impl NoStorm {
    /// Adds a reason for so many requests, and drops reasons older than a minute.
    fn reason(&mut self, now: Duration, count: usize) {
        self.reasons.push_back((now, count));
        self.reasons_count += count;
        while let Some((at, count)) = self.reasons.front()
            && *at + MINUTE < now
        {
            self.reasons_count -= count;
            self.reasons.pop_front();
        }
    }

    /// Returns whether a page has not been asked for within the last minute.
    fn is_new_page(&mut self, process: &Arc<str>, what: &str, now: Duration) -> bool {
        let page = (Arc::clone(process), what.to_owned());
        let is_recent = |at: &Duration| *at + MINUTE > now;
        if self.pages.get(&page).is_some_and(is_recent) {
            return false;
        }
        if self.pages.len() >= PAGES {
            self.pages.retain(|_, at| is_recent(at));
        }
        self.pages.insert(page, now);
        true
    }

    fn sent(&mut self, process: &Arc<str>, what: &str, now: Duration) -> Findings {
        let (method, uri) = what.split_once(' ').unwrap_or((what, ""));
        let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
        let verb = Verb::of(method, path, query);
        // Events of a failure that lasts are written again while it lasts; their own checker looks at them.
        let is_of_an_event = path.contains("/events");
        if verb == Verb::Other && (method == "GET" || is_of_an_event) {
            return Vec::new();
        }
        if query.contains("continue=") && self.is_new_page(process, what, now) {
            return Vec::new();
        }
        let line = (Arc::clone(process), verb, path.to_owned());
        self.late.push_back((now, line.clone()));
        while self
            .late
            .front()
            .is_some_and(|(at, _)| *at + 2 * QUIET < now)
        {
            self.late.pop_front();
        }
        if verb == Verb::Other {
            return Vec::new();
        }
        // It adds nothing, and drops what is too old.
        self.reason(now, 0);
        let reasons = self.reasons_count;
        let times = self.requests.entry(line).or_default();
        times.push_back(now);
        while times.front().is_some_and(|at| *at + MINUTE <= now) {
            times.pop_front();
        }
        if times.len() <= PER_MINUTE + reasons {
            return Vec::new();
        }
        let count = times.len();
        vec![format!(
            "{count} requests within a minute for {verb:?} of {path}"
        )]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::harness::{CheckHarness, incarnation};

    fn send(harness: &mut CheckHarness<NoStorm>, millis: u64, what: &str) {
        let what = what.to_owned();
        harness.event(millis, &Event::Sent { request: 0, what });
    }

    #[test]
    fn verbs_are_made_out() {
        for (what, verb) in [
            ("GET /api/v1/configmaps ", Verb::Load),
            ("GET /api/v1/configmaps limit=500", Verb::Load),
            (
                "GET /api/v1/configmaps sendInitialEvents=true&watch=true",
                Verb::Load,
            ),
            (
                "GET /api/v1/namespaces/default/configmaps watch=true&resourceVersion=7",
                Verb::Watch,
            ),
            ("GET /api/v1/configmaps limit=1", Verb::Check),
            (
                "GET /api/v1/namespaces/default/configmaps limit=1&fieldSelector=x",
                Verb::Check,
            ),
            ("GET /apis/sim.dev/v1 ", Verb::Discovery),
            ("GET /apis ", Verb::Discovery),
            ("GET /api/v1/namespaces/default/configmaps/o1 ", Verb::Other),
            ("DELETE /api/v1/namespaces/default/configmaps ", Verb::Other),
        ] {
            let parts: Vec<&str> = what.split(' ').collect();
            assert_eq!(Verb::of(parts[0], parts[1], parts[2]), verb, "{what}");
        }
    }

    #[test]
    fn a_storm_is_found_and_a_backoff_is_not() {
        let mut harness = CheckHarness::of(NoStorm::default());
        for number in 0..300 {
            send(
                &mut harness,
                number * 600,
                "GET /api/v1/configmaps?limit=500",
            );
        }
        assert_eq!(harness.found(), 0);
        for number in 0..150 {
            send(
                &mut harness,
                180_000 + number,
                "GET /api/v1/configmaps?limit=500",
            );
        }
        assert!(harness.found() > 0);
    }

    #[test]
    fn pages_are_part_of_their_list_unless_they_are_asked_for_again_and_again() {
        let page = |number: u64| format!("GET /api/v1/configmaps?limit=500&continue={number}");
        let mut harness = CheckHarness::of(NoStorm::default());
        for number in 0..2000 {
            send(&mut harness, number, &page(number));
        }
        assert_eq!(harness.found(), 0);
        for number in 0..200 {
            send(&mut harness, 2000 + number, &page(1999));
        }
        assert!(harness.found() > 0);
    }

    fn at_rest(what: &[(u64, &str)]) -> usize {
        let mut harness = CheckHarness::of(NoStorm::default());
        for (millis, what) in what {
            send(&mut harness, *millis, what);
        }
        let rest = Rest {
            now: Duration::from_secs(1200),
            served: &[],
            incarnation: &incarnation(),
            factories: &[],
            remembered: &[],
            controllers: &[],
            caches: &[],
        };
        harness.check.at_rest(&harness.oracle, &rest).len()
    }

    #[test]
    fn requests_at_rest_are_found_but_for_renewed_watches() {
        let watch = "GET /api/v1/configmaps?watch=true&resourceVersion=7";
        let list = "GET /api/v1/configmaps?limit=500";
        assert_eq!(
            at_rest(&[(1000, list), (700_000, watch), (1_100_000, watch)]),
            0
        );
        assert_eq!(at_rest(&[(700_000, list)]), 1);
        let write = "PATCH /api/v1/namespaces/default/configmaps/o1";
        assert_eq!(at_rest(&[(700_000, write)]), 1);
        let often: Vec<_> = (0..4).map(|at| (700_000 + at * 100_000, watch)).collect();
        assert_eq!(at_rest(&often), 1);
    }
}
