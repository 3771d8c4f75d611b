//! Loading many objects: one list instead of a request for each.

use std::collections::HashMap;
use std::sync::Arc;

use lariat_core::{ObjectKey, ResourceKind, Scope};
use tokio::time;

use super::core::Core;
use super::load::{UPGRADE_WAIT, is_as_new, is_same_state};
use super::reads::{LoadError, all_of};
use crate::client::Sent;
use crate::selection::Selection;
use crate::store::{CachedObject, Content, Query};

/// How many objects are fetched one by one before a list is requested.
const FEW: usize = 4;

/// The part of the listed objects that must lack content; otherwise they are fetched one by one.
///
/// A query by owner selects few of the objects that the API server would list.
const WORTH_A_LIST: usize = 4;

/// Listed objects, by key.
type Listed = HashMap<ObjectKey, Arc<CachedObject>>;

impl Core {
    /// Returns the objects that a query selects, with content, fetched where only metadata is cached.
    pub(super) async fn load_all(
        &self,
        query: &Query,
    ) -> Result<Vec<Arc<CachedObject>>, LoadError> {
        let mut objects = self.store().select(query);
        let is_awaited =
            |object: &Arc<CachedObject>| !object.has_content() && self.awaits_content(object.key());
        if objects.iter().any(is_awaited) {
            // As in `load`: the list of the watch that is being upgraded has all of them.
            let _ = time::timeout(UPGRADE_WAIT, self.synced(Content::Whole)).await;
            objects = self.store().select(query);
        }
        let listed = if self.is_worth_a_list(&objects, query) {
            self.list_content(query).await?
        } else {
            Listed::default()
        };
        let mut loaded = Vec::with_capacity(objects.len());
        for cached in objects {
            if cached.has_content() {
                loaded.push(cached);
                continue;
            }
            let found = listed.get(cached.key());
            match found.filter(|found| self.is_current(found, &cached)) {
                Some(found) => loaded.push(Arc::clone(found)),
                // Also if it was created, changed or deleted around the time of the list.
                None => loaded.extend(self.load(cached.key(), UPGRADE_WAIT).await?),
            }
        }
        Ok(loaded)
    }

    fn is_worth_a_list(&self, objects: &[Arc<CachedObject>], query: &Query) -> bool {
        let lacking = objects.iter().filter(|it| !it.has_content()).count();
        let is_most = || {
            let listed = self.store().select(&query.clone().any_owner());
            lacking * WORTH_A_LIST >= listed.len()
        };
        lacking > FEW && (!query.has_owner() || is_most())
    }

    /// Returns whether a listed object is no older than the cached one, which was `before` before the list.
    fn is_current(&self, listed: &CachedObject, before: &CachedObject) -> bool {
        let now = self.store().get(before.key());
        now.is_some_and(|now| is_same_state(&now, before) || is_as_new(Some(listed), &now))
    }

    /// Lists the objects that a query and the selection of the cache have in common.
    ///
    /// The list may begin again. What was read before is not wrong: whether an object is as new as the cached one is
    /// decided for each object.
    async fn list_content(&self, query: &Query) -> Result<Listed, LoadError> {
        let resource = self.resource_of(&all_of(query.wanted_namespace())).await?;
        let selection = self.wanted.borrow().selection.clone();
        let forbidden = self.progress.forbidden();
        let is_readable = |namespace: &Option<Arc<str>>| {
            let is_forbidden = |it: &Arc<str>| forbidden.contains(it);
            !namespace.as_ref().is_some_and(is_forbidden)
        };
        let labels = query.wanted_labels().clone().and(selection.labels());
        let selectors = [
            ("labelSelector", labels.to_string()),
            ("fieldSelector", selection.fields().to_string()),
        ];
        let sent = Sent::next(None).number;
        let (mut listed, mut intake) = (Listed::new(), self.intake(Content::Whole));
        let namespaces = namespaces(&resource, query, &selection);
        for namespace in namespaces.into_iter().filter(is_readable) {
            let list = self.read_list(namespace.as_deref(), &selectors, |json| {
                // One that cannot be read is fetched alone, and that error names it.
                if let Ok(object) = intake.read(json) {
                    self.saw(&object, json, sent);
                    let object = Arc::new(CachedObject::new(object));
                    listed.insert(object.key().clone(), object);
                }
            });
            list.await?;
        }
        // The server was restored meanwhile: the list may have states from before that, so each object is fetched.
        if self.shared.server.is_former(sent) {
            listed.clear();
        }
        Ok(listed)
    }
}

/// Returns the namespaces to list; `None` is all of them.
///
/// The process may have the right to list the namespaces of the selection only.
fn namespaces(
    resource: &ResourceKind,
    query: &Query,
    selection: &Selection,
) -> Vec<Option<Arc<str>>> {
    match (query.wanted_namespace(), selection.namespaces()) {
        _ if resource.scope() == Scope::Cluster => vec![None],
        (Some(namespace), _) => vec![Some(namespace.into())],
        (None, []) => vec![None],
        (None, some) => some.iter().cloned().map(Some).collect(),
    }
}
