//! The keys that this process writes, as many as are worth remembering.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use lariat_core::ObjectKey;
use tokio::time::Instant;

use super::options::Sentinel;
use super::suspect::{Ask, Circle, Suspect, Write, since_progress};
use super::trail::Step;

/// How many keys are remembered.
const MOST: usize = 1024;

/// How long a key that is not written is worth remembering when there are too many.
const RECENT: Duration = Duration::from_secs(60);

/// What is known of a run before it begins.
#[derive(Debug, Clone)]
pub(crate) struct Judgement {
    /// How many runs in a row, each caused by the write of the one before, led to it, counted from the last that made
    /// progress.
    pub(crate) chain: u32,
    /// How long it has to wait.
    pub(crate) wait: Option<Duration>,
    /// The run itself, if it is one of a chain.
    pub(crate) step: Option<Arc<Step>>,
}

impl Judgement {
    /// Makes the judgement of a run that need not wait, from its chain and the last run of that.
    pub(super) fn of(chain: u32, last: Option<&Arc<Step>>) -> Self {
        Self {
            chain,
            wait: None,
            step: (chain > 0).then(|| Step::after(last)),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Suspects(HashMap<ObjectKey, Suspect>);

impl Suspects {
    /// Takes a write in; returns what there is to warn of.
    pub(super) fn wrote(
        &mut self,
        write: &Write<'_>,
        options: &Sentinel,
        now: Instant,
    ) -> Option<Circle> {
        let key = write.after.key();
        if !self.0.contains_key(key) {
            self.make_room(now);
        }
        let suspect = self.0.entry(key.clone());
        let suspect = suspect.or_insert_with(|| Suspect::new(now));
        match suspect.wrote(write, options, now) {
            true => suspect.circle(key),
            false => None,
        }
    }

    /// Forgets keys when there are too many: those found out last.
    fn make_room(&mut self, now: Instant) {
        if self.0.len() < MOST {
            return;
        }
        self.0.retain(|_, suspect| now - suspect.touched < RECENT);
        if self.0.len() >= MOST {
            self.0.retain(|_, suspect| suspect.is_found());
        }
        if self.0.len() >= MOST {
            self.0.clear();
        }
    }

    /// Judges a run, and returns what there is to warn of.
    pub(super) fn judge(
        &mut self,
        key: &ObjectKey,
        ask: &Ask<'_>,
        options: &Sentinel,
        now: Instant,
    ) -> (Judgement, Option<Circle>) {
        let chain = since_progress(ask.causes.chain(), ask.step);
        if chain >= options.runs && !self.0.contains_key(key) {
            // Its runs write other objects, whose changes bring it back.
            self.make_room(now);
            self.0.insert(key.clone(), Suspect::new(now));
        }
        let Some(suspect) = self.0.get_mut(key) else {
            return (Judgement::of(chain, ask.step), None);
        };
        let was_found = suspect.is_found();
        let (chain, last) = suspect.chain(ask);
        let judgement = Judgement::of(chain, last);
        let wait = suspect.pause(ask, options, now);
        let judgement = Judgement { wait, ..judgement };
        // Of one that is written itself, the write warns.
        let warning = (!was_found).then(|| suspect.circle(key)).flatten();
        (
            judgement,
            warning.filter(|circle| circle.brought_by.is_some()),
        )
    }

    /// Returns how many keys are remembered, and how many at most.
    pub(super) fn remembered(&self) -> (usize, usize) {
        (self.0.len(), MOST)
    }

    /// Returns the keys that go round in circles, and forgets those that have been quiet.
    pub(super) fn circles(&mut self, now: Instant) -> Vec<Circle> {
        self.0.retain(|_, suspect| !suspect.is_quiet(now));
        let circles = self
            .0
            .iter()
            .filter_map(|(key, suspect)| suspect.circle(key));
        let mut circles: Vec<Circle> = circles.collect();
        circles.sort_by(|a, b| a.key.cmp(&b.key));
        circles
    }
}
