//! The controller of Jobs: Pods that run until enough of them succeeded.
//!
//! Source: `k8s.io/kubernetes/pkg/controller/job`. It counts the Pods that exist, so one that is deleted
//! after its end no longer counts before the Job is over; and it retries without delay.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::child::Child;
use super::conditions::{Condition, is_true};
use super::kind::Kind;
use super::reconcile::{Reconcile, Requeue};
use super::refusal::slow_start;
use super::template;

const INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// The number of Pods that are created before other objects get their turn.
const BURST: usize = 100;

/// A Job and its Pods.
struct Job<'a> {
    cx: &'a Reconcile<'a>,
    pods: &'a [Child],
    parallelism: usize,
    /// The number of Pods that have to succeed; without it one completes the Job.
    completions: Option<usize>,
    is_indexed: bool,
}

/// The reason for which a Job is finished.
struct Verdict {
    succeeded: bool,
    reason: &'static str,
    message: &'static str,
}

pub(super) fn reconcile(cx: &Reconcile<'_>) -> Requeue {
    let conditions = cx.at("/status/conditions");
    if cx.stored.is_deleting() {
        return Requeue::OnChange;
    }
    if is_true(conditions, "Complete") || is_true(conditions, "Failed") {
        return delete_after_ttl(cx);
    }
    let pods = cx.children(Kind::Pod);
    let job = Job::new(cx, &pods);
    let verdict = job.verdict();
    let is_suspended = cx.at("/spec/suspend") == true;
    let next = match &verdict {
        Ok(_) => job.stop(),
        Err(_) if is_suspended => job.stop(),
        Err(next) => job.fill().or(*next),
    };
    let status = job.status(verdict.ok().as_ref(), is_suspended);
    next.or(Requeue::from(cx.write_status(status)))
}

/// Deletes a finished Job once its `ttlSecondsAfterFinished` has passed.
fn delete_after_ttl(cx: &Reconcile<'_>) -> Requeue {
    let Some(seconds) = cx.at("/spec/ttlSecondsAfterFinished").as_u64() else {
        return Requeue::OnChange;
    };
    let conditions = cx.at("/status/conditions").as_array();
    let is_end = |each: &&Value| {
        each["status"] == "True" && (each["type"] == "Complete" || each["type"] == "Failed")
    };
    let end = conditions.and_then(|all| all.iter().find(is_end)?["lastTransitionTime"].as_str());
    let left = end.and_then(|end| cx.until(end, Duration::from_secs(seconds)));
    match left {
        Some(at) => Requeue::At(at),
        None => Requeue::from(cx.delete_self()),
    }
}

impl<'a> Job<'a> {
    fn new(cx: &'a Reconcile<'a>, pods: &'a [Child]) -> Self {
        let number = |pointer: &str| {
            let number = cx.at(pointer).as_u64();
            number.map(|number| usize::try_from(number).unwrap_or(usize::MAX))
        };
        let parallelism = number("/spec/parallelism");
        let completions = number("/spec/completions");
        Self {
            cx,
            pods,
            parallelism: parallelism.unwrap_or(1),
            // With neither the Job is one Pod.
            completions: completions.or(parallelism.is_none().then_some(1)),
            is_indexed: cx.text("/spec/completionMode") == "Indexed",
        }
    }

    fn in_phase(&self, phase: &str) -> impl Iterator<Item = &'a Child> {
        let phase = phase.to_owned();
        self.pods
            .iter()
            .filter(move |pod| pod.text("/status/phase") == phase)
    }

    fn active(&self) -> impl Iterator<Item = &'a Child> {
        self.pods.iter().filter(|pod| pod.is_active())
    }

    /// Returns the indexes with a Pod that succeeded.
    fn completed(&self) -> BTreeSet<usize> {
        let succeeded = self.in_phase("Succeeded");
        succeeded.filter_map(index).collect()
    }

    fn succeeded(&self) -> usize {
        if self.is_indexed {
            self.completed().len()
        } else {
            self.in_phase("Succeeded").count()
        }
    }

    /// Returns the reason for which the Job is finished, or its deadline.
    fn verdict(&self) -> Result<Verdict, Requeue> {
        let over = |succeeded, reason, message| {
            Ok(Verdict {
                succeeded,
                reason,
                message,
            })
        };
        let failed = self.in_phase("Failed").count();
        let limit = self.cx.at("/spec/backoffLimit").as_u64().unwrap_or(6);
        if u64::try_from(failed).unwrap_or(u64::MAX) > limit {
            let message = "Job has reached the specified backoff limit";
            return over(false, "BackoffLimitExceeded", message);
        }
        let is_done = match self.completions {
            Some(wanted) => self.succeeded() >= wanted,
            // Pods that share a work queue end by themselves after the first success.
            None => self.succeeded() > 0 && self.active().next().is_none(),
        };
        if is_done {
            let message = "Reached expected number of succeeded pods";
            return over(true, "CompletionsReached", message);
        }
        let deadline = self.cx.at("/spec/activeDeadlineSeconds").as_u64();
        let started = self.cx.text("/status/startTime");
        let Some(seconds) = deadline.filter(|_| !started.is_empty()) else {
            return Err(Requeue::OnChange);
        };
        match self.cx.until(started, Duration::from_secs(seconds)) {
            Some(at) => Err(Requeue::At(at)),
            None => over(
                false,
                "DeadlineExceeded",
                "Job was active longer than specified deadline",
            ),
        }
    }

    /// Deletes the Pods that still run.
    fn stop(&self) -> Requeue {
        self.active().fold(Requeue::OnChange, |next, pod| {
            next.or(Requeue::from(self.cx.delete(pod, None)))
        })
    }

    /// Creates Pods up to the parallelism, or deletes those beyond it.
    fn fill(&self) -> Requeue {
        let active: Vec<&Child> = self.active().collect();
        let succeeded = self.succeeded();
        let wanted = match self.completions {
            Some(all) => self.parallelism.min(all.saturating_sub(succeeded)),
            // The first success completes the Job: no Pod is created any more.
            None if succeeded > 0 => active.len(),
            None => self.parallelism,
        };
        let surplus = active.iter().skip(wanted);
        let next = surplus.fold(Requeue::OnChange, |next, pod| {
            next.or(Requeue::from(self.cx.delete(pod, None)))
        });
        let missing = wanted.saturating_sub(active.len()).min(BURST);
        let mut indexes = self.free_indexes(&active);
        // What is refused is recorded where it happens, and the status says nothing of it.
        drop(slow_start(missing, || {
            let index = indexes.next();
            if self.is_indexed && index.is_none() {
                return Ok(());
            }
            let pod = self.pod(index.filter(|_| self.is_indexed));
            self.cx.create_pod(&pod)
        }));
        next
    }

    /// Iterates over the indexes with neither a success nor a running Pod.
    fn free_indexes(&self, active: &[&Child]) -> impl Iterator<Item = usize> + use<> {
        let mut taken = self.completed();
        taken.extend(active.iter().filter_map(|pod| index(pod)));
        let all = self.completions.unwrap_or(0);
        (0..all).filter(move |index| !taken.contains(index))
    }

    fn pod(&self, index: Option<usize>) -> Value {
        let mut pod = template::pod(self.cx);
        let name = self.cx.name();
        // Go writes each label under its older name, too.
        for label in ["batch.kubernetes.io/job-name", "job-name"] {
            template::label(&mut pod, label, name);
        }
        for label in ["batch.kubernetes.io/controller-uid", "controller-uid"] {
            template::label(&mut pod, label, self.cx.stored.uid());
        }
        if let Some(index) = index {
            let text = index.to_string();
            template::annotate(&mut pod, INDEX, &text);
            template::label(&mut pod, INDEX, &text);
            pod["metadata"]["generateName"] = format!("{name}-{index}-").into();
            pod["spec"]["hostname"] = format!("{name}-{index}").into();
        }
        pod
    }

    fn status(&self, verdict: Option<&Verdict>, is_suspended: bool) -> Value {
        let now = self.cx.now();
        let mut status = self.cx.at("/status").clone();
        if !status.is_object() {
            status = json!({});
        }
        if status["startTime"].is_null() && !is_suspended {
            status["startTime"] = now.clone().into();
        }
        // Pods that still run are being deleted by now.
        let runs = verdict.is_none() && !is_suspended;
        let active: Vec<&Child> = self.active().filter(|_| runs).collect();
        let counts = [
            ("active", active.len()),
            ("succeeded", self.succeeded()),
            ("failed", self.in_phase("Failed").count()),
        ];
        for (member, number) in counts {
            match number {
                0 => drop(status.as_object_mut().map(|status| status.remove(member))),
                number => status[member] = number.into(),
            }
        }
        status["ready"] = active.iter().filter(|pod| pod.is_ready()).count().into();
        status["terminating"] = self.pods.iter().filter(|pod| pod.is_going()).count().into();
        // Go tracks Pods by finalizers, with those that are not counted yet in here. The Pods that exist are counted
        // here.
        status["uncountedTerminatedPods"] = json!({});
        if self.is_indexed {
            status["completedIndexes"] = intervals(&self.completed()).into();
        }
        self.set_conditions(&mut status, verdict, is_suspended, &now);
        status
    }

    fn set_conditions(
        &self,
        status: &mut Value,
        verdict: Option<&Verdict>,
        is_suspended: bool,
        now: &str,
    ) {
        let mut set = |condition: Condition| {
            condition.set(&mut status["conditions"], now, Some("lastProbeTime"));
        };
        if is_suspended {
            set(Condition::new("Suspended", true).because("JobSuspended", "Job suspended"));
        } else if is_true(self.cx.at("/status/conditions"), "Suspended") {
            set(Condition::new("Suspended", false).because("JobResumed", "Job resumed"));
        }
        let Some(verdict) = verdict else {
            return;
        };
        // Go sets the first of the two while Pods still end, and the other once they have; here both come at once.
        let kinds = if verdict.succeeded {
            ["SuccessCriteriaMet", "Complete"]
        } else {
            ["FailureTarget", "Failed"]
        };
        for kind in kinds {
            set(Condition::new(kind, true).because(verdict.reason, verdict.message));
        }
        if verdict.succeeded {
            status["completionTime"] = now.into();
        }
    }
}

fn index(pod: &Child) -> Option<usize> {
    pod.annotation(INDEX).parse().ok()
}

/// Writes indexes as `0,2-4`.
fn intervals(indexes: &BTreeSet<usize>) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for index in indexes {
        match runs.last_mut() {
            Some((_, end)) if *end + 1 == *index => *end = *index,
            _ => runs.push((*index, *index)),
        }
    }
    let text = |(start, end): &(usize, usize)| match end - start {
        0 => start.to_string(),
        // As orderedIntervals in Go's job controller: only three and more make a range.
        1 => format!("{start},{end}"),
        _ => format!("{start}-{end}"),
    };
    let texts: Vec<String> = runs.iter().map(text).collect();
    texts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completed_indexes_are_written_as_intervals() {
        for (indexes, expected) in [
            (&[][..], ""),
            (&[0], "0"),
            (&[0, 1], "0,1"),
            (&[0, 1, 2, 4], "0-2,4"),
        ] {
            let indexes: BTreeSet<usize> = indexes.iter().copied().collect();
            assert_eq!(intervals(&indexes), expected);
        }
    }
}
