//! The history of a key: causes and calls of its last runs.

use std::collections::BTreeSet;

use lariat_controller::{CallRecord, RunRecord};
use lariat_core::{Cause, CausingRun, Gvk, ObjectKey, Subject};

use super::controllers::hot_loop;
use super::details::given_up_key;
use super::queued::{in_progress, queued};
use crate::api;
use crate::api::{KindRef, Link, RunLink};
use crate::members::Member;
use crate::text::{self, shown};

/// Returns a key with its last runs; none if the kind has no controller.
pub(crate) fn key(member: &Member, gvk: &Gvk, key: &ObjectKey) -> Option<api::KeyDetail> {
    let controller = member.controller(gvk)?;
    let status = controller.status()?;
    let kind = KindRef::new(&member.context, gvk);
    let controllers = member.factory.controllers();
    let reader = Reader {
        member,
        kinds: controllers.iter().map(|it| it.gvk().clone()).collect(),
        subject: Subject {
            gvk: gvk.clone(),
            key: key.clone(),
        },
    };
    let informer = member.factory.caches().existing(gvk);
    let cached = informer.and_then(|informer| informer.store().get(key));
    let calls = controller.in_progress();
    let call = calls.iter().find(|call| call.key == *key);
    let mut loops = status.hot_loops.iter();
    let runs = controller.history_of(key);
    Some(api::KeyDetail {
        namespace: key.namespace().unwrap_or_default().to_owned(),
        name: key.name().to_owned(),
        resource_version: cached.map(|object| object.version().to_string()),
        queued: controller.queued_key(key).as_ref().map(queued),
        in_progress: call.map(in_progress),
        given_up: controller
            .given_up_of(key)
            .iter()
            .map(given_up_key)
            .collect(),
        hot_loop: loops
            .find(|it| it.key == *key)
            .map(|it| hot_loop(&kind, it)),
        // The history is oldest first, the page shows the newest first.
        runs: runs.iter().rev().map(|run| reader.run(run)).collect(),
        kind,
    })
}

/// Returns a hint for the key of an object that is not known: the cached keys of the same name.
pub(crate) fn namesakes(member: &Member, gvk: &Gvk, key: &ObjectKey) -> String {
    let informer = member.factory.caches().existing(gvk);
    let keys = informer.map(|informer| informer.store().keys());
    let mut found: Vec<ObjectKey> = keys.into_iter().flatten().collect();
    let is_namespaced = found.iter().any(|other| other.namespace().is_some());
    found.retain(|other| other.name() == key.name());
    found.sort_unstable();
    let names: Vec<&str> = found
        .iter()
        .take(NAMESAKES)
        .map(ObjectKey::as_str)
        .collect();
    let scope = match (key.namespace(), is_namespaced) {
        (None, true) => format!("; {} is namespaced", gvk.kind()),
        (Some(_), false) if !names.is_empty() => format!("; {} has no namespaces", gvk.kind()),
        _ => String::new(),
    };
    match &names[..] {
        [] => scope,
        names => format!("{scope}; did you mean {}?", names.join(" or ")),
    }
}

/// The maximum number of keys that a hint names.
const NAMESAKES: usize = 3;

/// Converts the runs of one key.
struct Reader<'a> {
    member: &'a Member,
    /// The kinds with a controller.
    kinds: BTreeSet<Gvk>,
    subject: Subject,
}

impl Reader<'_> {
    fn run(&self, run: &RunRecord) -> api::RunInfo {
        let ago = run.began.elapsed();
        api::RunInfo {
            run: run.run,
            at: text::ago(ago),
            ago: ago.as_secs_f64(),
            waited: run.waited.as_secs_f64(),
            took: run.took.as_secs_f64(),
            causes: run.causes.iter().map(|cause| self.cause(cause)).collect(),
            calls: run.calls.iter().map(call).collect(),
        }
    }

    fn cause(&self, cause: &Cause) -> api::CauseInfo {
        let (what, handler) = about(cause);
        api::CauseInfo {
            what: what.to_owned(),
            text: shown(&cause.to_string()),
            fields: self.fields(cause, &self.subject),
            handler: handler.map(str::to_owned),
            link: self.link(cause),
            by_run: causing_run(cause).map(|it| self.run_link(it)),
        }
    }

    /// Returns the object that a cause links to, if it is another one.
    ///
    /// It is the related object, or else the object whose run wrote or enqueued. Objects of kinds without a controller
    /// have no history to link to.
    fn link(&self, cause: &Cause) -> Option<Link> {
        let related = match cause {
            Cause::Related { of, .. } => Some(&of.object),
            _ => None,
        };
        let during = causing_run(cause).map(|it| &it.object);
        let has_history = |it: &&Subject| **it != self.subject && self.kinds.contains(&it.gvk);
        let found = related.into_iter().chain(during).find(has_history)?;
        Some(self.link_to(found))
    }

    fn run_link(&self, during: &CausingRun) -> RunLink {
        RunLink {
            link: self.link_to(&during.object),
            run: during.run,
        }
    }

    fn link_to(&self, object: &Subject) -> Link {
        Link {
            kind: KindRef::new(&self.member.context, &object.gvk),
            key: object.key.to_string(),
        }
    }

    /// Returns the paths of the fields that differ in a change, if the change is kept.
    fn fields(&self, cause: &Cause, of: &Subject) -> Vec<String> {
        let (from, to) = match cause {
            Cause::Updated { from, to } => (from, to),
            Cause::Wrote {
                from: Some(from),
                to,
                ..
            } => (from, to),
            // The fields of the related object, whose change is the cause.
            Cause::Related { of, .. } => return self.fields(&of.cause, &of.object),
            _ => return Vec::new(),
        };
        let caches = self.member.factory.caches();
        let fields = caches.changed_fields(&of.gvk, &of.key, from, to);
        fields.unwrap_or_default()
    }
}

/// Returns the run of this process that a cause comes from.
fn causing_run(cause: &Cause) -> Option<&CausingRun> {
    match cause {
        Cause::Wrote { during, .. } => Some(during),
        Cause::Enqueued { during, .. } => during.as_deref(),
        // The run that changed the related object is what caused this one.
        Cause::Related { of, .. } => causing_run(&of.cause),
        _ => None,
    }
}

/// Returns the name of a cause, and the handler that it comes from.
fn about(cause: &Cause) -> (&'static str, Option<&str>) {
    match cause {
        Cause::Added { .. } => ("added", None),
        Cause::Updated { .. } => ("updated", None),
        Cause::Deleted { .. } => ("deleted", None),
        Cause::Wrote { by, .. } => ("wrote", Some(by)),
        Cause::Related { of, .. } => ("related", about(&of.cause).1),
        Cause::Resync => ("resync", None),
        Cause::Enqueued { by, .. } => ("enqueued", by.as_deref()),
        Cause::Retry { handler, .. } => ("retry", Some(handler)),
        Cause::Requeued { handler, .. } => ("requeued", Some(handler)),
        Cause::LateHandler { handler } => ("late-handler", Some(handler)),
        _ => ("unknown", None),
    }
}

fn call(call: &CallRecord) -> api::CallInfo {
    api::CallInfo {
        handler: call.handler.to_string(),
        ended: call.outcome.as_str().to_owned(),
        failed: call.outcome.is_failure(),
        took: call.took.as_secs_f64(),
        attempt: call.attempt,
        conflict: call.is_conflict,
        error: call.error.as_deref().map(shown),
        again: call.requeue_after.map(|again| again.as_secs_f64()),
        note: call.note.as_deref().map(shown),
    }
}
