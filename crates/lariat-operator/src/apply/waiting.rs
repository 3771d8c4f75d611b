//! What an apply waits for.

use std::fmt;

use lariat_core::{Gvk, ObjectKey};

use super::report::Applied;
use crate::readiness::Readiness;
use crate::status::ConditionUpdate;

/// Something that an apply has left for a later call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Waiting {
    /// A step has not begun, since objects of others are not ready.
    Step {
        /// Its name.
        step: String,
        /// The names of the steps that are not ready.
        after: Vec<String>,
    },
    /// A step has not begun, since its precondition does not hold.
    Precondition {
        /// The name of the step.
        step: String,
        /// What is waited for.
        reason: String,
    },
    /// An object is not wanted, and is deleted once those of later steps are gone.
    Deletion {
        /// The kind.
        gvk: Gvk,
        /// The key.
        key: ObjectKey,
    },
}

/// The number of things that a message names.
const NAMED: usize = 5;

impl Applied {
    /// Returns what was left for a later call.
    ///
    /// Nothing is pruned while a step waits: an object that is not wanted may be what others use until its successor is
    /// there.
    #[must_use]
    pub fn waiting(&self) -> &[Waiting] {
        &self.waiting
    }

    /// Returns whether all objects are ready, and nothing was left for a later call.
    ///
    /// It needs the content of the objects. Objects of steps are read if their content is not cached; others count as
    /// not ready then.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let mut wanted = self.wanted();
        self.waiting.is_empty() && wanted.all(|object| object.readiness().is_ready())
    }

    /// Returns a condition of the type that says whether all objects are ready, for the status of the owner.
    ///
    /// It is true with the reason `Ready`, false with `Failed` (an object's controller has given up), `Waiting` (a step
    /// has not begun) or `Progressing`, or unknown with `NotRead`. The message names objects and steps.
    ///
    /// ```no_run
    /// use k8s_openapi::api::apps::v1::Deployment;
    /// use lariat_controller::{HandlerResult, Outcome};
    /// use lariat_operator::{Desired, Reconcile};
    ///
    /// # fn desired(_: &Deployment) -> Desired { unimplemented!() }
    /// async fn reconcile(cx: Reconcile<Deployment>) -> HandlerResult {
    ///     let applied = cx.apply(desired(cx.object())).await?;
    ///     cx.set_condition(&applied.condition("Ready")).await?;
    ///     Ok(Outcome::done())
    /// }
    /// # let _ = reconcile;
    /// ```
    pub fn condition(&self, kind: &str) -> ConditionUpdate {
        let mut unready = Vec::new();
        let (mut is_failed, mut is_unknown) = (false, false);
        for object in self.wanted() {
            let readiness = object.readiness();
            if readiness.is_ready() {
                continue;
            }
            is_failed |= readiness.is_failed();
            is_unknown |= readiness == Readiness::Unknown;
            unready.push(format!("{} {}: {readiness}", object.gvk, object.key));
        }
        let begun = unready.len();
        unready.extend(self.waiting.iter().map(ToString::to_string));
        let message = joined(&unready);
        let update = if unready.is_empty() {
            ConditionUpdate::is_true(kind, "Ready")
        } else if is_failed {
            ConditionUpdate::is_false(kind, "Failed")
        } else if unready.len() > begun {
            ConditionUpdate::is_false(kind, "Waiting")
        } else if is_unknown {
            ConditionUpdate::is_unknown(kind, "NotRead")
        } else {
            ConditionUpdate::is_false(kind, "Progressing")
        };
        update.message(message)
    }

    /// Returns what is waited for, with objects of steps, as text; empty if there is nothing.
    pub(super) fn awaited(&self) -> String {
        let in_steps = self.wanted().filter(|object| object.is_in_step);
        let mut all: Vec<String> = in_steps
            .map(|object| (object, object.readiness()))
            .filter(|(_, readiness)| !readiness.is_ready())
            .map(|(object, readiness)| format!("{} {}: {readiness}", object.gvk, object.key))
            .collect();
        all.extend(self.waiting.iter().map(ToString::to_string));
        joined(&all)
    }

    /// Returns what was left for a later call as text; empty if there is nothing.
    pub(super) fn waits(&self) -> String {
        let waiting: Vec<String> = self.waiting.iter().map(ToString::to_string).collect();
        joined(&waiting)
    }
}

fn joined(all: &[String]) -> String {
    let mut text = all
        .iter()
        .take(NAMED)
        .cloned()
        .collect::<Vec<_>>()
        .join("; ");
    if all.len() > NAMED {
        text = format!("{text}; and {} more", all.len() - NAMED);
    }
    text
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Step { step, after } => write!(f, "step {step} waits for {}", after.join(", ")),
            Self::Precondition { step, reason } => write!(f, "step {step} waits: {reason}"),
            Self::Deletion { gvk, key } => {
                write!(f, "{gvk} {key} is deleted once those after it are gone")
            }
        }
    }
}
