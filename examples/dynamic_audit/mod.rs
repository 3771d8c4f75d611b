//! A line for everything that changes, of whatever kind: one handler for all kinds there are, and for those that come.
//!
//! Only metadata is watched, so a line costs little. Deletions are told like everything else, with the last known state:
//! lasso's dynamic controller loses them, because it looks the object up after it is gone.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use lariat::prelude::*;
use lariat::{Cause, KindsRegistration, ResourceKind, Scope};

/// Something that happened to an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its kind.
    pub gvk: Gvk,
    /// Its key.
    pub key: ObjectKey,
    /// What.
    pub what: What,
    /// From which version to which, or who did it, if it was a handler of this process.
    pub how: String,
}

/// What can happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// It came into sight: it was there already, or was created.
    Appeared,
    /// It changed.
    Changed,
    /// It is gone.
    Gone,
}

/// Audits a namespace: tells what happens to its objects, whatever they are.
///
/// Changes that come faster than they are told are told as one, from the first version to the last.
///
/// # Errors
///
/// None as it is: the name is good, and there are no options.
pub fn register(
    operator: &Operator,
    namespace: &str,
    tell: impl Fn(&Entry) + Send + Sync + 'static,
) -> anyhow::Result<KindsRegistration> {
    let (namespace, tell) = (Arc::<str>::from(namespace), Arc::new(tell));
    let kinds = operator
        .factory()
        .for_all_kinds(is_wanted)
        .view::<Metadata>();
    let audit = move |cx: Context<Metadata>| {
        if cx.key().namespace() == Some(&namespace) {
            entries(&cx).iter().for_each(&*tell);
        }
        async { Ok(Outcome::done()) }
    };
    Ok(kinds.register_handler("audit", audit)?)
}

/// Leaves out what changes all the time and tells of nothing else, and what is in no namespace.
fn is_wanted(kind: &ResourceKind) -> bool {
    let gvk = kind.gvk();
    let is_noise = matches!(
        (gvk.group(), gvk.kind()),
        ("" | "events.k8s.io", "Event") | ("coordination.k8s.io", "Lease")
    );
    kind.scope() == Scope::Namespaced && !is_noise
}

/// Reads what happened off the causes of a call.
fn entries(cx: &Context<Metadata>) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for cause in cx.causes().iter() {
        let what = match cause {
            Cause::Added { .. } | Cause::LateHandler { .. } | Cause::Wrote { from: None, .. } => {
                What::Appeared
            }
            Cause::Updated { .. } | Cause::Wrote { .. } => What::Changed,
            Cause::Deleted { .. } => What::Gone,
            // A retry, a resync, a request to look again: nothing happened to the object.
            _ => continue,
        };
        entries.push(Entry {
            gvk: cx.gvk().clone(),
            key: cx.key().clone(),
            what,
            how: cause.to_string(),
        });
    }
    entries
}
