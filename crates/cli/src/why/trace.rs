//! Which runs caused a run: causes name them by their numbers.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::BoxFuture;
use lariat_console::api::{KeyDetail, KindRef, Link, RunInfo, RunLink};
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

/// A run that caused another run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Origin {
    #[serde(flatten)]
    pub(super) by: RunLink,
    /// The run, unless it was shown before or its history does not reach that far.
    #[serde(rename = "causingRun")]
    pub(super) run: Option<Box<Explained>>,
    /// Whether the run was shown before.
    #[serde(rename = "shownBefore")]
    pub(super) is_shown_before: bool,
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
    of: Link,
    known: BTreeMap<(KindRef, String), Option<KeyDetail>>,
    /// The runs that have been returned.
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
    /// Prepares to follow causes of the runs of a key back by so many runs.
    pub(super) fn new(histories: &'a H, depth: u8, of: Link) -> Self {
        Self {
            histories,
            depth,
            of,
            known: BTreeMap::new(),
            shown: BTreeSet::new(),
        }
    }

    /// Adds to a run of the key what caused it.
    ///
    /// # Errors
    ///
    /// The console does not answer.
    pub(super) async fn explain(&mut self, run: RunInfo) -> Result<Explained, AskError> {
        // Histories grow: what was read for an earlier run may be too old for this one.
        self.known.clear();
        let of = self.of.clone();
        // Before its causes are followed, which may lead back to it.
        self.shown.insert((of.kind, of.key, run.run));
        let depth = self.depth;
        self.back(run, depth).await
    }

    // Boxed, because `origin` calls it in turn and a future cannot contain itself.
    fn back(&mut self, run: RunInfo, depth: u8) -> BoxFuture<'_, Result<Explained, AskError>> {
        Box::pin(async move {
            let mut caused_by: Vec<Origin> = Vec::new();
            if let Some(depth) = depth.checked_sub(1) {
                for by in causing(&run) {
                    caused_by.push(self.origin(by, depth).await?);
                }
            }
            Ok(Explained { run, caused_by })
        })
    }

    /// Returns a run that caused another one, with what caused it in turn.
    async fn origin(&mut self, by: RunLink, depth: u8) -> Result<Origin, AskError> {
        let place = (by.link.kind.clone(), by.link.key.clone());
        let named = (place.0.clone(), place.1.clone(), by.run);
        let mut origin = Origin {
            by,
            run: None,
            is_shown_before: false,
        };
        if self.shown.contains(&named) {
            origin.is_shown_before = true;
            return Ok(origin);
        }
        if !self.known.contains_key(&place) {
            // Causes of causes may branch; a run that is not asked for is shown as one that is not remembered.
            if self.known.len() >= KEYS {
                return Ok(origin);
            }
            let key = object_key(&place.1);
            let history = self.histories.history(&place.0, &key).await?;
            self.known.insert(place.clone(), history);
        }
        let history = self.known.get(&place).and_then(Option::as_ref);
        let found = history.and_then(|history| history.runs.iter().find(|run| run.run == named.2));
        if let Some(found) = found.cloned() {
            // Before the recursion, so that a cycle ends.
            self.shown.insert(named);
            origin.run = Some(Box::new(self.back(found, depth).await?));
        }
        Ok(origin)
    }
}

/// Returns the runs that caused a run, each once.
fn causing(run: &RunInfo) -> Vec<RunLink> {
    let mut causing: Vec<RunLink> = Vec::new();
    for by in run.causes.iter().filter_map(|cause| cause.by_run.as_ref()) {
        if !causing.contains(by) {
            causing.push(by.clone());
        }
    }
    causing
}

/// Returns the key that a link writes as `namespace/name`.
fn object_key(text: &str) -> ObjectKey {
    match text.split_once('/') {
        Some((namespace, name)) => ObjectKey::namespaced(namespace, name),
        None => ObjectKey::cluster(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::samples;

    /// Returns the link to a key.
    fn link(key: &KeyDetail) -> Link {
        Link {
            kind: key.kind.clone(),
            key: format!("{}/{}", key.namespace, key.name),
        }
    }

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
        let of = link(&samples::key());
        let mut trace = Trace::new(given, depth, of);
        let mut all = Vec::new();
        for run in samples::key().runs {
            all.push(trace.explain(run).await.unwrap());
        }
        all
    }

    #[tokio::test]
    async fn the_run_that_a_cause_names_is_the_origin() {
        let given = Given(BTreeMap::from([("shop/web-1", samples::cause())]));
        let all = explained(&given, 3).await;
        let origin = &all[0].caused_by[0];
        assert_eq!((&origin.by.link.key[..], origin.by.run), ("shop/web-1", 40));
        assert_eq!(origin.run.as_ref().unwrap().run.run, 40);
        assert_eq!(all[1].caused_by, [], "no handler caused it");
    }

    #[tokio::test]
    async fn a_run_that_is_no_longer_kept_is_named() {
        let mut other = samples::cause();
        other.runs.retain(|run| run.run != 40);
        for given in [BTreeMap::new(), BTreeMap::from([("shop/web-1", other)])] {
            let all = explained(&Given(given), 3).await;
            let origin = &all[0].caused_by[0];
            assert_eq!((origin.by.run, &origin.run), (40, &None));
        }
        let given = Given(BTreeMap::from([("shop/web-1", samples::cause())]));
        assert_eq!(
            explained(&given, 0).await[0].caused_by,
            [],
            "none asked for"
        );
    }

    #[tokio::test]
    async fn a_run_is_shown_once() {
        let mut pod = samples::cause();
        let by = |number| RunLink {
            link: link(&samples::key()),
            run: number,
        };
        for run in &mut pod.runs {
            run.causes[0].by_run = Some(by(41));
        }
        let web = samples::key();
        let given = Given(BTreeMap::from([("shop/web-1", pod), ("shop/web", web)]));
        let all = explained(&given, 20).await;
        let pod = all[0].caused_by[0].run.as_ref().unwrap();
        let web = pod.caused_by[0].run.as_ref().unwrap();
        assert_eq!((pod.run.run, web.run.run), (40, 41));

        let mut trace = Trace::new(&given, 20, by(0).link);
        let mut again = samples::key().runs[0].clone();
        for number in [41, 42] {
            again.run = number + 100;
            again.causes[1].by_run = Some(by(number));
            let all = trace.explain(again.clone()).await.unwrap();
            assert!(all.caused_by[0].run.is_some() && !all.caused_by[0].is_shown_before);
            let all = trace.explain(again.clone()).await.unwrap();
            assert!(all.caused_by[0].run.is_none() && all.caused_by[0].is_shown_before);
        }
    }
}
