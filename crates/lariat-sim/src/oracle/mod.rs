//! Every state every object had on the server.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use lariat_cluster::{Commit, StoredObject};
use lariat_core::{Gvk, ObjectKey};
use serde::Deserialize;

use crate::event::{Event, Moment};

/// What the server had, and has.
///
/// The history of versions begins again with each restored backup: an epoch.
#[derive(Default)]
pub(crate) struct Oracle {
    epoch: u32,
    objects: BTreeMap<Name, Vec<Past>>,
    /// The event that began the present epoch.
    pub(crate) reset_at: u64,
    restored: Option<Duration>,
}

/// Group, kind and key; versions of the API share objects.
type Name = (String, String, ObjectKey);

/// One state of an object, or its absence.
#[derive(Debug, Clone)]
pub(crate) struct Past {
    pub(crate) version: u64,
    pub(crate) at: Duration,
    pub(crate) object: Option<StoredObject>,
}

impl Past {
    pub(crate) fn is(&self, uid: &str, version: u64) -> bool {
        let object = self.object.as_ref();
        self.version == version && object.is_some_and(|object| object.uid() == uid)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Type<'a> {
    #[serde(borrow)]
    api_version: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    kind: std::borrow::Cow<'a, str>,
}

fn name_of(object: &StoredObject) -> Option<Name> {
    let json: Bytes = object.json();
    let of: Type<'_> = serde_json::from_slice(&json).ok()?;
    let group = of
        .api_version
        .split_once('/')
        .map_or("", |(group, _)| group);
    Some((group.to_owned(), of.kind.into_owned(), object.key().clone()))
}

impl Oracle {
    pub(crate) fn saw(&mut self, moment: &Moment, event: &Event) {
        let Event::Committed(commit) = event else {
            return;
        };
        match commit {
            Commit::Reset { revision } => self.reset(*revision, moment),
            Commit::Stored(object) => self.push(object, moment, true),
            Commit::Removed { last } => self.push(last, moment, false),
            _ => {}
        }
    }

    fn reset(&mut self, revision: u64, moment: &Moment) {
        self.epoch += 1;
        self.reset_at = moment.number;
        // The first is the start of the cluster.
        self.restored = (self.epoch > 1).then_some(moment.at);
        // What is not there any more is gone without a commit of its own.
        for states in self.objects.values_mut() {
            if states.last().is_some_and(|last| last.object.is_some()) {
                states.push(Past {
                    version: revision,
                    at: moment.at,
                    object: None,
                });
            }
        }
    }

    fn push(&mut self, object: &StoredObject, moment: &Moment, is_there: bool) {
        let Some(name) = name_of(object) else { return };
        self.objects.entry(name).or_default().push(Past {
            version: object.revision(),
            at: moment.at,
            object: is_there.then(|| object.clone()),
        });
    }

    /// Returns the states of an object in their order.
    pub(crate) fn states(&self, kind: &Gvk, key: &ObjectKey) -> &[Past] {
        let name = (kind.group().to_owned(), kind.kind().to_owned(), key.clone());
        self.objects.get(&name).map_or(&[], Vec::as_slice)
    }

    /// Returns what an object is now.
    pub(crate) fn now(&self, kind: &Gvk, key: &ObjectKey) -> Option<&StoredObject> {
        self.states(kind, key).last()?.object.as_ref()
    }

    /// Returns the present objects of a kind in the order of their keys.
    pub(crate) fn all<'a>(
        &'a self,
        kind: &Gvk,
    ) -> impl Iterator<Item = (&'a ObjectKey, &'a StoredObject)> + use<'a> {
        let first = (kind.group().to_owned(), kind.kind().to_owned());
        let states = self.objects.iter();
        states
            .filter(move |((group, kind, _), _)| *group == first.0 && *kind == first.1)
            .filter_map(|((_, _, key), states)| Some((key, states.last()?.object.as_ref()?)))
    }

    /// Returns whether a backup was restored less than so long ago.
    pub(crate) fn was_restored_within(&self, moment: &Moment, time: Duration) -> bool {
        self.restored
            .is_some_and(|at| moment.at.saturating_sub(at) < time)
    }

    /// Returns the version of the last commit of a kind by some time; zero if there was none.
    pub(crate) fn newest(&self, kind: &Gvk, until: std::time::Duration) -> u64 {
        let objects = self
            .objects
            .iter()
            .filter(|((group, name, _), _)| *group == kind.group() && *name == kind.kind());
        let last = |states: &Vec<Past>| {
            let state = states.iter().rev().find(|past| past.at <= until);
            state.map(|past| past.version)
        };
        objects
            .filter_map(|(_, states)| last(states))
            .max()
            .unwrap_or(0)
    }

    /// Counts the restored backups, the start included.
    pub(crate) fn epoch(&self) -> u32 {
        self.epoch
    }
}
