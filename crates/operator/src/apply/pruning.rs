//! Prunes the objects that are no longer wanted, in the reverse order of applying.
//!
//! Objects of later steps are deleted first, and within a step the kinds in reverse order. The objects of a step are
//! deleted only when those of all later steps no longer exist; until then they are reported as waiting. At the end,
//! kinds and namespaces without objects are removed from the record on the owner.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::FutureExt;
use lariat_core::Gvk;

use super::error::ObjectFailure;
use super::kinds::{Extent, Known};
use super::prune::{Pruned, Surplus, SurplusSet, Whose};
use super::report::Applied;
use super::resolve::Target;
use super::run::{Run, bounded};
use super::siblings::{Fate, Identity};
use super::waiting::Waiting;

/// The state of a pruning in progress.
struct Pruning<'a> {
    known: &'a Extent,
    targets: &'a [Target],
    applied: &'a mut Applied,
    /// The kinds and namespaces that still have, or may have, objects.
    left: Extent,
    failures: Vec<ObjectFailure>,
    /// Dropped kinds that may not be read.
    forbidden: BTreeSet<Gvk>,
}

impl Pruning<'_> {
    /// Records that an object still exists, or may exist.
    fn stays(&mut self, each: &Surplus) {
        self.left.kinds.insert(each.resource.gvk().clone());
        let namespace = each.key.namespace().map(ToOwned::to_owned);
        let known = &self.known.namespaces;
        let namespace = namespace.filter(|name| known.contains(name));
        self.left.namespaces.extend(namespace);
    }

    /// Leaves an object for a later call, and reports it as waiting.
    fn wait(&mut self, each: &Surplus) {
        let (gvk, key) = each.id();
        self.applied.waiting.push(Waiting::Deletion { gvk, key });
        self.stays(each);
    }
}

impl Run<'_> {
    /// Prunes the objects that are no longer wanted; returns the failures.
    ///
    /// Objects of a step are deleted once those of later steps no longer exist.
    pub(super) async fn prune(
        &self,
        known: &Known,
        targets: &[Target],
        applied: &mut Applied,
    ) -> Vec<ObjectFailure> {
        let may_have_siblings = known.has_siblings;
        let known = &known.extent;
        let SurplusSet {
            objects,
            kept,
            failures,
            unserved,
            unsearched,
            forbidden,
        } = self.surplus(known, targets).await;
        // Starts with the wanted kinds. Everything that a deletion leaves behind is added below.
        let mut left = self.extent_of(targets);
        // These kinds stay recorded: they may be served or readable again, and have objects then.
        let unserved: Vec<Gvk> = unserved.intersection(&known.kinds).cloned().collect();
        self.warn_of_unserved(&unserved);
        let unsearched_count = unsearched.len();
        let unseen = unserved.iter().chain(&forbidden).cloned();
        let unseen: BTreeSet<Gvk> = unseen.chain(unsearched).collect();
        if !unseen.is_empty() {
            left.namespaces.extend(known.namespaces.iter().cloned());
            left.kinds.extend(unseen);
        }
        applied.unserved = unserved;
        applied.unsearched = unsearched_count;
        applied.kept.extend(kept.iter().map(Surplus::id));
        let mut pruning = Pruning {
            known,
            targets,
            applied,
            left,
            failures,
            forbidden,
        };
        let objects = self.prunable(objects, may_have_siblings, &mut pruning);
        let mut steps = objects.chunk_by(|a, b| a.order == b.order).peekable();
        while let Some(step) = steps.next() {
            // Kinds that others need are deleted after their users, as in Helm's uninstall order.
            for group in step.chunk_by(|a, b| a.rank() == b.rank()) {
                self.prune_group(group, &mut pruning).await;
            }
            // The objects of earlier steps wait for the deletion of this step to finish, which may take longer than
            // this call.
            if steps.peek().is_some() && (!pruning.failures.is_empty() || self.is_left(step).await)
            {
                steps.flatten().for_each(|each| pruning.wait(each));
                break;
            }
        }
        let Pruning {
            applied,
            left,
            failures,
            forbidden,
            ..
        } = pruning;
        applied.forbidden = forbidden.into_iter().collect();
        // After a failure the search or a deletion may be incomplete, so nothing is dropped from the record.
        if failures.is_empty() {
            self.forget_extent(known, &left).await;
        }
        failures
    }

    fn warn_of_unserved(&self, unserved: &[Gvk]) {
        let (set, owner) = (&self.set.marks.set, &self.set.owner);
        for kind in unserved {
            if self.set.memory.is_first_unreadable(kind, owner.uid()) {
                tracing::warn!(
                    %kind, set, owner = %owner.key(),
                    "objects that the set once had are not pruned, because no version of the kind is served: serve it \
                     again, or, if its objects were deleted with its CRD, remove it from the annotation of the owner \
                     that begins with `applied.lariat.dev/`"
                );
            }
        }
    }

    /// Returns the objects that are deleted in this call, and leaves the others for siblings or the next call.
    fn prunable(
        &self,
        objects: Vec<Surplus>,
        may_have_siblings: bool,
        pruning: &mut Pruning<'_>,
    ) -> Vec<Surplus> {
        let ids = objects
            .iter()
            .map(|each| Identity::new(each.resource.gvk(), &each.key));
        let ids: Vec<Identity> = ids.collect();
        let fates = self.fates(&ids, may_have_siblings);
        let mut prunable = Vec::with_capacity(objects.len());
        for (each, fate) in objects.into_iter().zip(fates) {
            let (gvk, key) = each.id();
            let waiting = match fate {
                Fate::Delete => {
                    prunable.push(each);
                    continue;
                }
                Fate::Wait => {
                    self.set.call.call_again_within(Duration::ZERO);
                    Waiting::NextCall { gvk, key }
                }
                Fate::LeaveTo(set) => Waiting::Sibling { gvk, key, set },
            };
            pruning.applied.waiting.push(waiting);
            pruning.stays(&each);
        }
        prunable
    }

    /// Prunes objects of one rank concurrently.
    async fn prune_group(&self, group: &[Surplus], pruning: &mut Pruning<'_>) {
        let calls = group.iter().map(|each| self.prune_object(each).boxed());
        let results = bounded(calls.collect()).await;
        for (each, result) in group.iter().zip(results) {
            let gvk = each.resource.gvk();
            match result {
                // Neither of these two keeps its kind recorded: one does not exist, the other is never pruned.
                Ok(Pruned::Absent) => continue,
                Ok(Pruned::Kept) => {
                    pruning.applied.kept.push(each.id());
                    continue;
                }
                Ok(Pruned::Deleting) => pruning.applied.pruned(gvk, &each.key),
                Ok(Pruned::Skipped(whose, uid)) => {
                    self.leave_alone(each, whose, &uid, pruning.applied);
                    // An object of others does not keep its kind recorded. One that may be the set's does.
                    if whose == Whose::Others {
                        continue;
                    }
                }
                Err(error) if self.is_dropped_kind(gvk, &error, pruning.targets) => {
                    pruning.forbidden.insert(gvk.clone());
                }
                Err(error) => {
                    let failure = ObjectFailure::new(gvk, &each.key, error);
                    pruning.failures.push(failure);
                }
            }
            pruning.stays(each);
        }
    }

    /// Returns whether any of the deleted objects still exists.
    ///
    /// The API server is asked, because the cache may not show the deletions yet, and would not show objects with
    /// finalizers differently.
    async fn is_left(&self, deleted: &[Surplus]) -> bool {
        if self.is_planning() {
            return false;
        }
        for each in deleted {
            let endpoint = self.endpoint(&each.resource, &each.key);
            match endpoint.metadata(each.key.name()).await {
                Ok(Some(meta)) if !self.may_delete(&meta) => {}
                Ok(None) => {}
                // An object that cannot be read may exist.
                Ok(Some(_)) | Err(_) => return true,
            }
        }
        false
    }
}
