//! Applies the steps of a set, each once the steps before it are ready.

use std::sync::Arc;
use std::time::Duration;

use lariat_cache::CachedObject;
use lariat_core::RawObject;
use serde_json::Value;

use super::error::ObjectFailure;
use super::report::{Action, Applied, AppliedObject};
use super::resolve::Target;
use super::run::Run;
use super::step::{Stage, Stages};
use super::waiting::Waiting;
use crate::readiness::Readiness;

/// The delay of the next call if nothing else calls the reconciler in time.
const NEXT_CALL: Duration = Duration::from_secs(10);

impl Run<'_> {
    /// Applies all objects, step by step.
    pub(super) async fn apply_steps(
        &self,
        stages: &Stages,
        targets: &[Target],
        applied: &mut Applied,
        failures: &mut Vec<ObjectFailure>,
    ) {
        // Depth by depth: all steps that do not depend on each other are applied in one round, and a step whose
        // predecessors are not ready is skipped with everything after it.
        let mut progress = Progress::of(stages);
        // Steps of one depth do not depend on each other, so a failure of one does not stop the others.
        for depth in 0..=stages.depth() {
            let begun = progress.begin(depth, applied);
            let is_due = |target: &&Target| match target.step {
                Some(step) => begun.contains(&step),
                // Objects outside of steps belong to the first round.
                None => depth == 0,
            };
            let due: Vec<&Target> = targets.iter().filter(is_due).collect();
            let before = failures.len();
            self.apply_all(&due, applied, failures).await;
            let failed = &failures[before..];
            // A dry run has no effects that could become ready, so a plan goes through all steps.
            let is_done = |target: &&Target| {
                let is_it = |failure: &ObjectFailure| failure.is_of(target.gvk(), &target.key);
                let is_ready = self.is_planning() || applied.is_ready_now(target);
                is_ready && !failed.iter().any(is_it)
            };
            for number in begun {
                let mut of_step = due.iter().filter(|target| target.step == Some(number));
                progress.done[number] = of_step.all(is_done) && !stages.all()[number].is_broken;
            }
        }
    }

    /// Returns the state of an applied object, and whether the state is complete.
    ///
    /// The cache may have only a part of the object. Where the whole is needed (for objects of steps, and if the set
    /// asks for it), the object is read, and remembered until it changes.
    pub(super) async fn whole(
        &self,
        target: &Target,
        object: Option<Arc<CachedObject>>,
        is_cached: bool,
    ) -> (Option<Arc<CachedObject>>, bool) {
        let informer = self.informer(target.gvk());
        let keeps_all = informer
            .as_ref()
            .is_none_or(|informer| informer.caches_unchanged(""));
        let has_all = |object: &Arc<CachedObject>| object.has_content() && keeps_all;
        let is_whole = object
            .as_ref()
            .is_some_and(|object| !is_cached || has_all(object));
        let is_needed = target.step.is_some() || self.set.options.reads_content;
        let (set, id) = (self.set.memory(), target.id());
        if is_whole || !is_needed || self.is_planning() {
            // The answer to a write is whole, but the next call finds only a part in the cache. Remember the answer, so
            // that this call need not read the object again.
            let cached = informer.and_then(|informer| informer.store().get(&target.key));
            let is_partial = cached.is_some_and(|cached| !has_all(&cached));
            if let Some(object) = object
                .as_ref()
                .filter(|_| is_whole && is_needed && is_partial)
            {
                set.remember_whole(&id, object);
            }
            return (object, is_whole);
        }
        let known = object.as_ref().and_then(|object| set.whole(&id, object));
        if known.is_some() {
            return (known, true);
        }
        let endpoint = self.endpoint(&target.resource, &target.key);
        // Readiness is then unknown. That is no reason to fail an apply that has succeeded.
        let Ok(Some(json)) = endpoint.get(target.key.name()).await else {
            return (object, false);
        };
        match object_of(target, &json) {
            Some(live) => {
                set.remember_whole(&id, &live);
                (Some(live), true)
            }
            None => (object, false),
        }
    }

    /// Records what the set waits for, and requests another call if needed.
    ///
    /// Objects that the reconciler owns call it when they change. For others, such as those of sets without owner
    /// references, the call is repeated after a delay.
    pub(super) fn schedule_next_call(&self, applied: &Applied) {
        // The history of the key shows this text, so that a waiting set does not look like a successful one.
        let waits = applied.awaited();
        if !waits.is_empty() {
            self.set.call.waits_for(waits);
        }
        let is_deleting = applied
            .waiting()
            .iter()
            .any(|each| matches!(each, Waiting::Deletion { .. }));
        let awaited = applied.objects().iter().filter(|object| {
            let is_going = object.action == Action::Pruned && is_deleting;
            is_going || object.is_in_step && !object.readiness().is_ready()
        });
        let call = &self.set.call;
        let is_watched = |object: &AppliedObject| {
            // An object that could not be read may be ready already, and then never change again.
            let is_known =
                object.action == Action::Pruned || object.readiness() != Readiness::Unknown;
            self.set.options.owned && !object.is_kept && is_known && call.owns(&object.gvk)
        };
        let mut unwatched = awaited.filter(|object| !is_watched(object));
        if let Some(object) = unwatched.next() {
            let (kind, key, owner) = (&object.gvk, &object.key, self.set.owner.key());
            tracing::debug!(
                %kind, %key, %owner,
                "the set waits for an object whose changes do not call the reconciler, which is called again after a delay"
            );
            call.call_again_within(NEXT_CALL);
        }
    }
}

/// The progress of the steps of a set while they are applied.
struct Progress<'a> {
    stages: &'a Stages,
    /// Whether each step is complete, so that later steps can begin.
    done: Vec<bool>,
}

impl<'a> Progress<'a> {
    /// Starts with all steps incomplete, except those that are not wanted.
    fn of(stages: &'a Stages) -> Self {
        let done = stages.all().iter().map(|stage| !stage.wanted).collect();
        Self { stages, done }
    }

    /// Returns the steps of a depth that can begin, and records the others as waiting.
    fn begin(&self, depth: usize, applied: &mut Applied) -> Vec<usize> {
        let mut begun = Vec::new();
        for (number, stage) in self.stages.all().iter().enumerate() {
            if stage.depth != depth || !stage.wanted {
                continue;
            }
            match self.waits(stage) {
                Some(waiting) => applied.waiting.push(waiting),
                None => begun.push(number),
            }
        }
        begun
    }

    /// Returns the reason why a step cannot begin, if there is one.
    fn waits(&self, stage: &Stage) -> Option<Waiting> {
        let step = stage.name.clone();
        let unready = stage.after.iter().filter(|number| !self.done[**number]);
        let name = |number: &usize| self.stages.all()[*number].name.clone();
        let after: Vec<String> = unready.map(name).collect();
        if !after.is_empty() {
            return Some(Waiting::Step { step, after });
        }
        let reason = stage.waits.clone()?;
        Some(Waiting::Precondition { step, reason })
    }
}

/// Parses an answer of the API server, in the form in which caches have objects.
pub(super) fn object_of(target: &Target, json: &str) -> Option<Arc<CachedObject>> {
    let mut object: Value = serde_json::from_str(json).ok()?;
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    let raw = RawObject::parse(object.to_string().as_bytes(), target.gvk()).ok()?;
    Some(Arc::new(CachedObject::new(raw)))
}
