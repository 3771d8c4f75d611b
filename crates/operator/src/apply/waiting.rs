//! What an apply leaves for a later call, and the readiness of the set as a whole.

use std::fmt;

use lariat_core::{Gvk, ObjectKey};

use super::report::Applied;
use crate::readiness::Readiness;
use crate::status::ConditionUpdate;

/// A part of the set that an apply left for a later call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Waiting {
    /// A step has not begun, because objects of earlier steps are not ready.
    Step {
        /// The name of the step.
        step: String,
        /// The names of the steps that are not ready.
        after: Vec<String>,
    },
    /// A step has not begun, because its precondition does not hold.
    Precondition {
        /// The name of the step.
        step: String,
        /// The reason that was given for the step.
        reason: String,
    },
    /// An unwanted object is deleted once those of later steps no longer exist.
    Deletion {
        /// The kind.
        gvk: Gvk,
        /// The key.
        key: ObjectKey,
    },
    /// An unwanted object is deleted in the next call, which follows at once.
    ///
    /// Another set of its owner may take it over in this call. If this call fails, perhaps before it applies that set,
    /// the object waits once more.
    NextCall {
        /// The kind.
        gvk: Gvk,
        /// The key.
        key: ObjectKey,
    },
    /// An unwanted object is left to another set of its owner, which wants it.
    Sibling {
        /// The kind.
        gvk: Gvk,
        /// The key.
        key: ObjectKey,
        /// The name of the other set.
        set: String,
    },
}

/// The number of objects and steps that a message names.
const NAMED: usize = 5;

impl Applied {
    /// Returns the parts of the set that were left for a later call.
    ///
    /// Nothing is pruned while a step waits: others may still use an unwanted object until its successor exists.
    #[must_use]
    pub fn waiting(&self) -> &[Waiting] {
        &self.waiting
    }

    /// Returns whether all objects are ready and no step was left for a later call.
    ///
    /// An unwanted object that the [next call](Waiting::NextCall) deletes does not count, nor one that is left to [another
    /// set](Waiting::Sibling).
    ///
    /// This needs the content of the objects. Objects of steps are read if their content is not cached. Other objects
    /// without content count as not ready; see [`Apply::reads_content`](crate::Apply::reads_content).
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let mut wanted = self.wanted();
        let is_held_back = self.waiting.iter().any(Waiting::concerns_wanted);
        !is_held_back && wanted.all(|object| object.readiness().is_ready())
    }

    /// Returns a condition that says whether all objects are ready.
    ///
    /// It is for the status of the owner. `kind` is the type of the condition. Its status and reason are, in this order
    /// of precedence:
    ///
    /// | status | reason | meaning |
    /// |---|---|---|
    /// | `True` | `Ready` | all objects are ready |
    /// | `False` | `Failed` | the controller of an object has given up |
    /// | `False` | `Waiting` | a step has not begun |
    /// | `Unknown` | `NotRead` | the content of an object is not cached |
    /// | `False` | `Progressing` | an object is not ready yet |
    ///
    /// The message names objects and steps.
    ///
    /// ```no_run
    /// use k8s_openapi::api::apps::v1::Deployment;
    /// use lariat::{Desired, HandlerResult, Outcome, Reconcile};
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
        // A failure comes first, because it needs a user to act. A waiting step comes before slow progress, which
        // resolves by itself.
        let begun = unready.len();
        let waiting = self.waiting.iter().filter(|each| each.concerns_wanted());
        unready.extend(waiting.map(ToString::to_string));
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

    /// Returns the unready objects of steps and the waiting parts, as text.
    ///
    /// The text is empty if there are none.
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

    /// Returns the parts left for a later call as text; empty if there are none.
    pub(super) fn waits(&self) -> String {
        let waiting: Vec<String> = self.waiting.iter().map(ToString::to_string).collect();
        joined(&waiting)
    }
}

impl Waiting {
    /// Returns whether it holds back wanted objects, or the deletion of objects that wanted ones may still use.
    fn concerns_wanted(&self) -> bool {
        !matches!(self, Self::NextCall { .. } | Self::Sibling { .. })
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
                write!(
                    f,
                    "{gvk} {key} is deleted once the objects of later steps are deleted"
                )
            }
            Self::NextCall { gvk, key } => {
                write!(f, "{gvk} {key} is deleted in the next call")
            }
            Self::Sibling { gvk, key, set } => {
                write!(f, "{gvk} {key} is left to the set {set}, which wants it")
            }
        }
    }
}
