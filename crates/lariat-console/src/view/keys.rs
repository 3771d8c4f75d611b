//! The history of a key: why it ran, and what its handlers did.

use lariat_cache::Metadata;
use lariat_controller::{CallRecord, RunRecord};
use lariat_core::{Cause, Gvk, ObjectKey, Subject};

use super::controllers::hot_loop;
use crate::api;
use crate::api::{KindRef, Link};
use crate::members::Member;
use crate::text::{self, shown};

/// Returns a key with its last runs; none if the kind has no controller.
pub(crate) fn key(member: &Member, gvk: &Gvk, key: &ObjectKey) -> Option<api::KeyDetail> {
    let mut statuses = member.factory.status().into_iter();
    let status = statuses.find(|status| status.cache.gvk == *gvk)?;
    let controller = member.factory.for_kind(gvk.clone()).view::<Metadata>();
    let kind = KindRef::new(&member.context, gvk);
    let mut found = status.hot_loops.iter();
    let runs = controller.history_of(key);
    let reader = Reader {
        kind: &kind,
        subject: Subject {
            gvk: gvk.clone(),
            key: key.clone(),
        },
    };
    Some(api::KeyDetail {
        namespace: key.namespace().unwrap_or_default().to_owned(),
        name: key.name().to_owned(),
        resource_version: None,
        queued: None,
        in_progress: None,
        hot_loop: found
            .find(|it| it.key == *key)
            .map(|it| hot_loop(&kind, it)),
        runs: runs.iter().rev().map(|run| reader.run(run)).collect(),
        kind: kind.clone(),
    })
}

/// Whose runs are read.
struct Reader<'a> {
    kind: &'a KindRef,
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
        let (what, handler, subject) = about(cause);
        api::CauseInfo {
            what: what.to_owned(),
            text: shown(&cause.to_string()),
            fields: Vec::new(),
            handler: handler.map(str::to_owned),
            link: subject
                .filter(|it| **it != self.subject)
                .map(|it| self.link(it)),
            chain: cause.chain().unwrap_or_default(),
        }
    }

    fn link(&self, subject: &Subject) -> Link {
        Link {
            kind: KindRef::new(&self.kind.context, &subject.gvk),
            key: subject.key.to_string(),
        }
    }
}

/// Returns the name of a cause, the handler behind it, and the object that it is about or came up with.
fn about(cause: &Cause) -> (&'static str, Option<&str>, Option<&Subject>) {
    match cause {
        Cause::Added { .. } => ("added", None, None),
        Cause::Updated { .. } => ("updated", None, None),
        Cause::Deleted { .. } => ("deleted", None, None),
        Cause::Wrote { by, during, .. } => ("wrote", Some(by), Some(during)),
        Cause::Related { of, .. } => {
            let (_, handler, _) = about(&of.cause);
            ("related", handler, Some(&of.object))
        }
        Cause::Resync => ("resync", None, None),
        Cause::Enqueued { by, during, .. } => ("enqueued", by.as_deref(), during.as_deref()),
        Cause::Retry { handler, .. } => ("retry", Some(handler), None),
        Cause::Requeued { handler, .. } => ("requeued", Some(handler), None),
        Cause::LateHandler { handler } => ("late-handler", Some(handler), None),
        _ => ("unknown", None, None),
    }
}

fn call(call: &CallRecord) -> api::CallInfo {
    api::CallInfo {
        handler: call.handler.to_string(),
        ended: call.ended.as_str().to_owned(),
        failed: call.ended.is_failure(),
        took: call.took.as_secs_f64(),
        attempt: call.attempt,
        conflict: call.is_conflict,
        error: call.error.as_deref().map(shown),
        again: call.again.map(|again| again.as_secs_f64()),
    }
}
