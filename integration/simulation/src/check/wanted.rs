//! The selections of a process: the objects of a kind it has asked for.

use std::collections::BTreeMap;

use lariat_cache::Selection;
use lariat_cluster::StoredObject;
use lariat_core::{Gvk, ObjectKey};
use lariat_sim::internals::{Event, IncarnationId, Rest};

/// The present selection of a kind's informer.
pub(super) struct Wanted(Option<Selection>);

/// Returns the selection of a process for a kind.
pub(super) fn wanted(rest: &Rest<'_>, kind: &Gvk) -> Wanted {
    let informers = rest
        .factories
        .iter()
        .filter_map(|factory| factory.caches().existing(kind));
    Wanted(informers.map(|informer| informer.selection()).next())
}

impl Wanted {
    pub(super) fn selects(&self, key: &ObjectKey, object: &StoredObject) -> bool {
        self.0
            .as_ref()
            .is_none_or(|selection| selects(selection, key, object))
    }
}

fn selects(selection: &Selection, key: &ObjectKey, object: &StoredObject) -> bool {
    let namespaces = selection.namespaces();
    let is_in = namespaces.is_empty()
        || namespaces
            .iter()
            .any(|each| Some(&**each) == key.namespace());
    // Parsed for the few selections that ask for it.
    let value = is_by_server(selection).then(|| object.value());
    let by_field = selection.fields().matches_known(|path| match path {
        "metadata.name" => Some(key.name()),
        "metadata.namespace" => Some(key.namespace().unwrap_or_default()),
        _ => value.as_ref()?[path].as_str(),
    });
    is_in && by_field != Some(false) && selection.labels().matches(object.labels())
}

/// Returns whether only the API server can evaluate the fields of a selection.
fn is_by_server(selection: &Selection) -> bool {
    let known = ["metadata.name", "metadata.namespace"];
    selection
        .fields()
        .paths()
        .any(|path| !known.contains(&path))
}

/// All selections each incarnation of a process has had, each once.
#[derive(Default)]
pub(super) struct Selections(BTreeMap<(IncarnationId, Gvk), Vec<Selection>>);

impl Selections {
    pub(super) fn saw(&mut self, event: &Event) {
        if let Event::Selected {
            incarnation,
            kind,
            selection,
        } = event
        {
            let of = (incarnation.clone(), kind.clone());
            let selections = self.0.entry(of).or_default();
            if !selections.contains(selection) {
                selections.push(selection.clone());
            }
        }
    }

    pub(super) fn of<'a>(&'a self, incarnation: &IncarnationId, kind: &Gvk) -> Held<'a> {
        let of = (incarnation.clone(), kind.clone());
        Held(self.0.get(&of).map_or(&[], Vec::as_slice))
    }
}

/// The selections of one kind.
pub(super) struct Held<'a>(&'a [Selection]);

impl Held<'_> {
    /// Returns whether everything has always been selected.
    pub(super) fn is_all(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether there was a selection that only the API server can evaluate.
    pub(super) fn are_by_server(&self) -> bool {
        self.0.iter().any(is_by_server)
    }

    /// Returns whether every selection there was has the object.
    pub(super) fn always(&self, key: &ObjectKey, object: &StoredObject) -> bool {
        self.0
            .iter()
            .all(|selection| selects(selection, key, object))
    }
}
