//! The status of a Job.

use std::collections::HashSet;

use serde_json::Value;

use super::indexes;
use crate::validation::causes::Causes;
use crate::validation::context::Context;
use crate::validation::field::Field;
use crate::validation::rule::{self, Rule, Rules};

const NUMBERS: Rules = &[(
    "active succeeded failed ready terminating",
    Rule::NotNegative,
)];

/// A status, and the one it replaces.
struct Change<'a> {
    spec: Field<'a>,
    new: Field<'a>,
    old: Field<'a>,
}

pub(super) fn check(context: &Context<'_>, causes: &mut Causes) {
    let Some(old) = context.old("status") else {
        return;
    };
    let change = Change {
        spec: context.get("spec"),
        new: context.get("status"),
        old,
    };
    rule::check(&change.new, NUMBERS, causes);
    check_uncounted(&change.new, causes);
    // In the order of `validateJobStatus` and `ValidateJobStatusUpdate`.
    change.check_contradictions(causes);
    change.check_times(causes);
    change.check_reasons(causes);
    change.check_finished(causes);
    change.check_indexes(causes);
    change.check_going_on(causes);
    change.check_success(causes);
    change.check_ends(causes);
    change.check_progress(causes);
    change.check_fixed_times(causes);
    change.check_success_kept(causes);
}

/// Checks the Pods that have ended and are not counted yet.
fn check_uncounted(status: &Field<'_>, causes: &mut Causes) {
    let pods = status.get("uncountedTerminatedPods");
    let mut seen = HashSet::new();
    let both = [pods.get("succeeded"), pods.get("failed")];
    for uid in both.iter().flat_map(Field::items) {
        if uid.text().is_empty() {
            causes.invalid(&uid, "must not be empty");
        } else {
            causes.check_unique(&uid, &mut seen);
        }
    }
}

fn has_condition(status: &Field<'_>, kind: &str, value: &str) -> bool {
    let mut conditions = status.get("conditions").items();
    conditions.any(|each| each.text_of("type") == kind && each.text_of("status") == value)
}

fn is(status: &Field<'_>, kind: &str) -> bool {
    has_condition(status, kind, "True")
}

fn is_finished(status: &Field<'_>) -> bool {
    is(status, "Complete") || is(status, "Failed")
}

fn number(status: &Field<'_>, name: &str) -> i64 {
    status.int_of(name).unwrap_or(0)
}

impl Change<'_> {
    // `jobStatusStrategy` checks a rule only if one of the members changed that it is about, so that an older
    // controller can still write other members.
    fn turned(&self, kind: &str) -> bool {
        is(&self.new, kind) != is(&self.old, kind)
    }

    fn changed(&self, name: &str) -> bool {
        let read = |status: &Field<'_>| match status.member(name) {
            // These two are no pointers in Go: absent, zero and empty are the same.
            Value::Null if matches!(name, "active" | "completedIndexes") => Value::Null,
            Value::Number(number) if name == "active" && number.as_i64() == Some(0) => Value::Null,
            Value::String(text) if name == "completedIndexes" && text.is_empty() => Value::Null,
            value => value.clone(),
        };
        read(&self.new) != read(&self.old)
    }

    fn refuse(&self, wrong: &[(bool, &str)], causes: &mut Causes) {
        let at = self.new.get("conditions");
        for (_, detail) in wrong.iter().filter(|(is_wrong, _)| *is_wrong) {
            causes.invalid_hidden(&at, detail);
        }
    }

    fn check_contradictions(&self, causes: &mut Causes) {
        let now = |kind| is(&self.new, kind);
        let (complete, failed) = (self.turned("Complete"), self.turned("Failed"));
        let target = self.turned("FailureTarget");
        let wrong = [
            (
                (complete || failed) && now("Complete") && now("Failed"),
                "cannot set Complete=True and Failed=true conditions",
            ),
            (
                (complete || target) && now("Complete") && now("FailureTarget"),
                "cannot set Complete=True and FailureTarget=true conditions",
            ),
        ];
        self.refuse(&wrong, causes);
    }

    fn check_times(&self, causes: &mut Causes) {
        let (start, end) = (self.new.get("startTime"), self.new.get("completionTime"));
        let is_complete = is(&self.new, "Complete");
        let (started, ended) = (self.changed("startTime"), self.changed("completionTime"));
        if self.turned("Complete") || ended {
            if end.is_set() && !is_complete {
                let detail = "cannot set completionTime when there is no Complete=True condition";
                causes.invalid(&end, detail);
            }
            if !end.is_set() && is_complete {
                causes.required(&end, "completionTime is required for Complete jobs");
            }
        }
        // Both are RFC 3339 in UTC and whole seconds, so texts compare as times do.
        let is_early = start.is_set() && end.is_set() && end.text() < start.text();
        if (started || ended) && is_early {
            causes.invalid(&end, "must be equal to or after `startTime`");
        }
    }

    /// Checks that conditions of the end have those that lead to it.
    fn check_reasons(&self, causes: &mut Causes) {
        let now = |kind| is(&self.new, kind);
        let (complete, failed) = (self.turned("Complete"), self.turned("Failed"));
        let met = self.turned("SuccessCriteriaMet");
        let wrong = [
            (
                (failed || self.changed("failedIndexes")) && now("Failed") && !now("FailureTarget"),
                "cannot set Failed=True condition without the FailureTarget=true condition",
            ),
            (
                (complete || met) && now("Complete") && !now("SuccessCriteriaMet"),
                "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
            ),
        ];
        self.refuse(&wrong, causes);
    }

    fn check_success(&self, causes: &mut Causes) {
        let now = |kind| is(&self.new, kind);
        let met = now("SuccessCriteriaMet");
        let wrong = [
            (
                met && now("Failed"),
                "cannot set SuccessCriteriaMet=True and Failed=true conditions",
            ),
            (
                met && now("FailureTarget"),
                "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions",
            ),
            (
                self.spec.has("successPolicy") && !met && now("Complete"),
                "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True",
            ),
        ];
        self.refuse(&wrong, causes);
    }

    /// Checks that an end stays one.
    fn check_ends(&self, causes: &mut Causes) {
        let at = self.new.get("conditions");
        for kind in ["Failed", "Complete", "FailureTarget"] {
            if is(&self.old, kind) && !is(&self.new, kind) {
                let detail = format!("cannot disable the terminal {kind}=True condition");
                causes.invalid_hidden(&at, &detail);
            }
        }
    }

    fn check_success_kept(&self, causes: &mut Causes) {
        let met = is(&self.new, "SuccessCriteriaMet");
        let was_met = is(&self.old, "SuccessCriteriaMet");
        let wrong = [
            (
                was_met && !met,
                "cannot disable the SuccessCriteriaMet=True condition",
            ),
            (
                is(&self.old, "Complete") && !was_met && met,
                "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions",
            ),
        ];
        self.refuse(&wrong, causes);
    }

    fn check_fixed_times(&self, causes: &mut Causes) {
        let (start, end) = (self.new.get("startTime"), self.new.get("completionTime"));
        let (was_start, was_end) = (self.old.get("startTime"), self.old.get("completionTime"));
        if end.is_set() && was_end.is_set() && self.changed("completionTime") {
            causes.invalid(&end, "field is immutable");
        }
        // A Job that goes on after a suspension starts over.
        let resumes = is(&self.old, "Suspended") && has_condition(&self.new, "Suspended", "False");
        let is_fixed = was_start.is_set() && !self.spec.is_true("suspend");
        if self.changed("startTime") && !resumes && is_fixed {
            causes.invalid(&start, "field is immutable for unsuspended job once set");
        }
    }

    /// Checks that nothing goes on in a Job that is finished.
    fn check_finished(&self, causes: &mut Causes) {
        let ended = is_finished(&self.new);
        let turned = ended != is_finished(&self.old);
        self.check_idle("active", causes);
        // Such a Job finishes without ever having started.
        let never_ran = self.spec.is_true("suspend") && self.spec.int_of("completions") == Some(0);
        let start = self.new.get("startTime");
        if (turned || self.changed("startTime")) && !never_ran && !start.is_set() && ended {
            causes.required(&start, "startTime is required for finished job");
        }
        let pods = self.new.get("uncountedTerminatedPods");
        // Pods that are not counted yet would be lost with the end of the Job.
        let is_empty = pods.get("succeeded").is_void() && pods.get("failed").is_void();
        if (turned || self.changed("uncountedTerminatedPods")) && ended && !is_empty {
            let list = |name| pods.member(name).clone();
            let (succeeded, failed) = (list("succeeded"), list("failed"));
            let shown = format!("{{\"Succeeded\":{succeeded},\"Failed\":{failed}}}");
            causes.invalid_struct(&pods, &shown, "must be empty for finished job");
        }
    }

    /// Checks that a finished Job has no Pods of a kind.
    fn check_idle(&self, name: &str, causes: &mut Causes) {
        let ended = is_finished(&self.new);
        let turned = ended != is_finished(&self.old);
        if (turned || self.changed(name)) && ended && number(&self.new, name) > 0 {
            let detail = format!("{name}>0 is invalid for finished job");
            causes.invalid(&self.new.get(name), &detail);
        }
    }

    fn check_indexes(&self, causes: &mut Causes) {
        let (completed, failed) = (
            self.new.get("completedIndexes"),
            self.new.get("failedIndexes"),
        );
        let (new_completed, new_failed) = (
            self.changed("completedIndexes"),
            self.changed("failedIndexes"),
        );
        let completions = self.spec.int_of("completions");
        let by_index = self.spec.has("backoffLimitPerIndex");
        let mut readable = |at: &Field<'_>, name: &str, looks: bool| {
            let counted = completions
                .filter(|_| looks)
                .map(|most| indexes::count(at.text(), most));
            if let Some(Err(error)) = counted {
                causes.invalid_as(at, at.text(), &format!("error parsing {name}: {error}"));
            }
        };
        readable(&completed, "completedIndexes", new_completed);
        readable(
            &failed,
            "failedIndexes",
            new_failed && by_index && failed.is_set(),
        );
        if new_completed && !completed.is_void() && self.spec.text_of("completionMode") != "Indexed"
        {
            let detail = "cannot set non-empty completedIndexes when non-indexed completion mode";
            causes.invalid(&completed, detail);
        }
        if new_failed && !by_index && failed.is_set() {
            let detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
            causes.invalid(&failed, detail);
        }
        let most = completions.filter(|_| new_completed || new_failed);
        let overlap = most.and_then(|most| indexes::overlap(completed.text(), failed.text(), most));
        if let Some(index) = overlap {
            let detail = format!("failedIndexes and completedIndexes overlap at index: {index}");
            causes.invalid(&failed, &detail);
        }
    }

    fn check_going_on(&self, causes: &mut Causes) {
        self.check_idle("terminating", causes);
        let is_new = self.changed("ready") || self.changed("active");
        if is_new
            && self
                .new
                .int_of("ready")
                .is_some_and(|ready| ready > number(&self.new, "active"))
        {
            let detail = "cannot set more ready pods than active";
            causes.invalid(&self.new.get("ready"), detail);
        }
    }

    fn check_progress(&self, causes: &mut Causes) {
        // An elastic Job: with fewer completions, fewer indexes have succeeded.
        let may_shrink = self.spec.text_of("completionMode") == "Indexed"
            && self.spec.member("completions") == self.spec.member("parallelism");
        for (name, is_checked) in [("failed", true), ("succeeded", !may_shrink)] {
            let (new, old) = (number(&self.new, name), number(&self.old, name));
            if is_checked && new < old {
                let detail = format!("cannot decrease the {name} counter");
                causes.invalid_as(&self.new.get(name), new, &detail);
            }
        }
    }
}
