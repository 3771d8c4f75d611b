//! A line for every change of any kind: one handler for all kinds, including those that are installed later.
//!
//! Only metadata is watched, so it costs little. Deletions are reported with the last known state. lasso's dynamic
//! controller loses them, because it looks the object up after the deletion.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use lariat::Cause;
use lariat::controller::KindsRegistration;
use lariat::core::{ResourceKind, Scope};
use lariat::prelude::*;

/// A change of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// Its kind.
    pub gvk: Gvk,
    /// Its key.
    pub key: ObjectKey,
    /// What happened.
    pub what: What,
    /// The versions before and after, or the handler of this process that made the change.
    pub how: String,
}

/// The types of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The object existed already, or was created.
    Appeared,
    /// The object was updated.
    Changed,
    /// The object was deleted.
    Gone,
}

/// Audits a namespace: reports every change of its objects, of any kind.
///
/// Changes that arrive faster than they are handled are reported as one, from the first version to the last.
///
/// # Errors
///
/// None with this name and these options.
pub fn register(
    operator: &Operator,
    namespace: &str,
    report: impl Fn(&AuditEntry) + Send + Sync + 'static,
) -> anyhow::Result<KindsRegistration> {
    let (namespace, report) = (Arc::<str>::from(namespace), Arc::new(report));
    let kinds = operator
        .factory()
        .for_all_kinds(is_wanted)
        .view::<Metadata>();
    let audit = move |cx: Context<Metadata>| {
        if cx.key().namespace() == Some(&namespace) {
            entries(&cx).iter().for_each(&*report);
        }
        async { Ok(Outcome::done()) }
    };
    Ok(kinds.register_handler("audit", audit)?)
}

/// Leaves out kinds that change all the time, and cluster-scoped kinds.
fn is_wanted(kind: &ResourceKind) -> bool {
    let gvk = kind.gvk();
    let is_noise = matches!(
        (gvk.group(), gvk.kind()),
        ("" | "events.k8s.io", "Event") | ("coordination.k8s.io", "Lease")
    );
    kind.scope() == Scope::Namespaced && !is_noise
}

/// Converts the causes of a call into changes.
fn entries(cx: &Context<Metadata>) -> Vec<AuditEntry> {
    let mut entries: Vec<AuditEntry> = Vec::new();
    for cause in cx.causes().iter() {
        let what = match cause {
            Cause::Added { .. } | Cause::LateHandler { .. } | Cause::Wrote { from: None, .. } => {
                What::Appeared
            }
            Cause::Updated { .. } | Cause::Wrote { .. } => What::Changed,
            Cause::Deleted { .. } => What::Gone,
            // A retry, a resync or an enqueued key: the object did not change.
            _ => continue,
        };
        entries.push(AuditEntry {
            gvk: cx.gvk().clone(),
            key: cx.key().clone(),
            what,
            how: cause.to_string(),
        });
    }
    entries
}
