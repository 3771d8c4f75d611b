//! Which run caused a run: found by what the causes name, and when it was.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::BoxFuture;
use jiff::Timestamp;
use lariat_console::api::{CauseInfo, KeyDetail, KindRef, Link, RunInfo};
use lariat_core::ObjectKey;
use serde::Serialize;

use crate::console::{AskError, Console, key_path};

/// How many other keys are asked for.
const KEYS: usize = 50;

/// A run, and those that caused it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Explained {
    #[serde(flatten)]
    pub(super) run: RunInfo,
    pub(super) caused_by: Vec<Origin>,
}

/// The run of another key that caused a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Origin {
    #[serde(flatten)]
    pub(super) link: Link,
    /// The run, unless it was shown before or its history does not reach that far.
    #[serde(rename = "causingRun")]
    pub(super) run: Option<Box<Explained>>,
    /// The number of the run, if it was shown before.
    pub(super) shown_before: Option<u64>,
}

/// Where histories come from.
pub(super) trait Histories: Sync {
    /// Returns the history of a key; `None` if it has none.
    fn history<'a>(
        &'a self,
        kind: &'a KindRef,
        key: &'a ObjectKey,
    ) -> BoxFuture<'a, Result<Option<KeyDetail>, AskError>>;
}

/// Follows causes back.
pub(super) struct Trace<'a, H> {
    histories: &'a H,
    depth: u8,
    known: BTreeMap<(KindRef, String), Option<KeyDetail>>,
    /// The runs of other keys that have been returned.
    shown: BTreeSet<(KindRef, String, u64)>,
}

impl Histories for Console {
    fn history<'a>(
        &'a self,
        kind: &'a KindRef,
        key: &'a ObjectKey,
    ) -> BoxFuture<'a, Result<Option<KeyDetail>, AskError>> {
        Box::pin(async move {
            match self.get::<KeyDetail>(&key_path(kind, key)).await {
                Ok(answer) => Ok(Some(answer.value)),
                // A kind without a controller has no history.
                Err(error) if error.is_missing() => Ok(None),
                Err(error) => Err(error),
            }
        })
    }
}

impl<'a, H: Histories> Trace<'a, H> {
    /// Prepares to follow causes back by so many runs.
    pub(super) fn new(histories: &'a H, depth: u8) -> Self {
        Self {
            histories,
            depth,
            known: BTreeMap::new(),
            shown: BTreeSet::new(),
        }
    }

    /// Adds to a run what caused it.
    ///
    /// # Errors
    ///
    /// The console does not answer.
    pub(super) async fn explain(&mut self, run: RunInfo) -> Result<Explained, AskError> {
        // Histories grow: what was read for an earlier run may be too old for this one.
        self.known.clear();
        let depth = self.depth;
        self.back(run, depth).await
    }

    fn back(&mut self, run: RunInfo, depth: u8) -> BoxFuture<'_, Result<Explained, AskError>> {
        Box::pin(async move {
            let mut caused_by: Vec<Origin> = Vec::new();
            let causes = run.causes.iter().filter(|_| depth > 0);
            for (cause, link) in causes.filter_map(|cause| Some((cause, cause.link.as_ref()?))) {
                let origin = self.origin(&run, cause, link, depth - 1).await?;
                if !caused_by.contains(&origin) {
                    caused_by.push(origin);
                }
            }
            Ok(Explained { run, caused_by })
        })
    }

    /// Returns the run of another key that a cause is about.
    async fn origin(
        &mut self,
        run: &RunInfo,
        cause: &CauseInfo,
        link: &Link,
        depth: u8,
    ) -> Result<Origin, AskError> {
        let mut origin = Origin {
            link: link.clone(),
            run: None,
            shown_before: None,
        };
        let place = (link.kind.clone(), link.key.clone());
        if !self.known.contains_key(&place) {
            if self.known.len() >= KEYS {
                return Ok(origin);
            }
            let history = self
                .histories
                .history(&link.kind, &object_key(&link.key))
                .await?;
            self.known.insert(place.clone(), history);
        }
        let history = self.known.get(&place).and_then(Option::as_ref);
        let found = history.and_then(|history| causing(&history.runs, run, cause));
        let Some(found) = found.cloned() else {
            return Ok(origin);
        };
        if self.shown.insert((place.0, place.1, found.run)) {
            origin.run = Some(Box::new(self.back(found, depth).await?));
        } else {
            origin.shown_before = Some(found.run);
        }
        Ok(origin)
    }
}

/// Returns the key that a link writes as `namespace/name`.
fn object_key(text: &str) -> ObjectKey {
    match text.split_once('/') {
        Some((namespace, name)) => ObjectKey::namespaced(namespace, name),
        None => ObjectKey::cluster(text),
    }
}

/// Returns which of the runs of another key caused a run: the last that began before, with the handler of the cause.
fn causing<'a>(runs: &'a [RunInfo], run: &RunInfo, cause: &CauseInfo) -> Option<&'a RunInfo> {
    let began = |run: &RunInfo| run.at.parse::<Timestamp>().ok();
    let limit = began(run)?;
    let has_handler = |run: &&RunInfo| {
        let named = cause.handler.as_ref();
        named.is_none_or(|named| run.calls.iter().any(|call| call.handler == *named))
    };
    let earlier = runs.iter().filter(has_handler).filter_map(|each| {
        let time = began(each).filter(|time| *time <= limit)?;
        // A run is not its own cause, and of two at one time the later one came last.
        (each.run != run.run).then_some((time, each.run, each))
    });
    earlier
        .max_by_key(|(time, number, _)| (*time, *number))
        .map(|(_, _, run)| run)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::samples;

    /// Histories by key, of whatever kind; an entry that is missing has none.
    struct Given(BTreeMap<&'static str, KeyDetail>);

    impl Histories for Given {
        fn history<'a>(
            &'a self,
            _kind: &'a KindRef,
            key: &'a ObjectKey,
        ) -> BoxFuture<'a, Result<Option<KeyDetail>, AskError>> {
            Box::pin(async move { Ok(self.0.get(key.to_string().as_str()).cloned()) })
        }
    }

    async fn explained(given: &Given, depth: u8) -> Vec<Explained> {
        let mut trace = Trace::new(given, depth);
        let mut all = Vec::new();
        for run in samples::key().runs {
            all.push(trace.explain(run).await.unwrap());
        }
        all
    }

    #[tokio::test]
    async fn the_last_run_that_began_before_is_the_cause() {
        let given = Given(BTreeMap::from([("shop/web-1", samples::cause())]));
        let all = explained(&given, 3).await;
        let origin = &all[0].caused_by[0];
        assert_eq!(origin.link.key, "shop/web-1");
        assert_eq!(origin.run.as_ref().unwrap().run.run, 40);
        assert_eq!(all[1].caused_by, []);
        // Without a run of the handler that the cause names there is none.
        let mut other = samples::cause();
        other.runs.iter_mut().for_each(|run| run.calls.clear());
        let given = Given(BTreeMap::from([("shop/web-1", other)]));
        assert_eq!(explained(&given, 3).await[0].caused_by[0].run, None);
    }

    #[tokio::test]
    async fn causes_are_followed_as_far_as_asked_for() {
        let given = Given(BTreeMap::from([("shop/web-1", samples::cause())]));
        assert_eq!(explained(&given, 0).await[0].caused_by, []);
        // A key without a history is named all the same.
        let nothing = explained(&Given(BTreeMap::new()), 3).await;
        assert_eq!(nothing[0].caused_by[0].run, None);
    }

    #[tokio::test]
    async fn keys_that_cause_each_other_end() {
        let mut pod = samples::cause();
        let deployment = Link {
            kind: samples::key().kind,
            key: "shop/web".to_owned(),
        };
        for run in &mut pod.runs {
            run.causes[0].link = Some(deployment.clone());
        }
        let mut web = samples::key();
        web.runs
            .iter_mut()
            .for_each(|run| run.at = "2026-11-24T12:00:00Z".to_owned());
        let given = Given(BTreeMap::from([("shop/web-1", pod), ("shop/web", web)]));
        let all = explained(&given, 20).await;
        let pod = all[0].caused_by[0].run.as_ref().unwrap();
        let web = pod.caused_by[0].run.as_ref().unwrap();
        assert_eq!((pod.run.run, web.run.run), (40, 42));
        // No run of the Pod began before that.
        assert_eq!(web.caused_by[0].run, None);
    }
}
