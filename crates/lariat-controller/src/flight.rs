//! Records a controller's queue operations and calls in the flight recorder.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lariat_core::{Cause, Gvk, ObjectKey};
use lariat_flight::{
    CallEnd, CauseType, Controlled, LaneVerdict, Lanes, Queued, Record, Recorder, Urgency,
    VerdictType, Version,
};
use lariat_queue::{Ageing, LaneId, Priority, QueueStep, Request, Tap, Verdict};

use crate::payload::Payload;
use crate::totals::CallOutcome;

/// Records the calls of a kind's handlers, and every step of its queue.
#[derive(Debug, Clone)]
pub(crate) struct ControllerFlight {
    recorder: Recorder,
    kind: Arc<str>,
    queue: u32,
    ageing: Ageing,
    /// Whether namespaces are dequeued fairly.
    fair: bool,
}

/// A call of a handler.
#[derive(Clone, Copy)]
pub(crate) struct CallOf<'a> {
    pub(crate) run: u64,
    pub(crate) key: &'a ObjectKey,
    pub(crate) lane: LaneId,
    pub(crate) handler: &'a str,
}

impl ControllerFlight {
    pub(crate) fn new(recorder: Recorder, gvk: &Gvk, ageing: Ageing, fair: bool) -> Self {
        Self {
            ageing,
            fair,
            kind: gvk.to_string().into(),
            queue: recorder.number(),
            recorder,
        }
    }

    /// Records that the queue was created.
    pub(crate) fn opened(&self) {
        let opened = Queued::Opened {
            threshold: self.ageing.threshold(),
            share: self.ageing.share(),
            fair: self.fair,
        };
        self.queued(tokio::time::Instant::now().into_std(), opened);
    }

    fn queued(&self, at: Instant, what: Queued<'_>) {
        let record = Record::Queue {
            kind: &self.kind,
            queue: self.queue,
            what,
        };
        self.recorder.record_at(at, &record);
    }

    pub(crate) fn record(&self, what: Controlled<'_>) {
        let kind = &self.kind;
        self.recorder.record(&Record::Controller { kind, what });
    }

    pub(crate) fn registered(&self, lane: LaneId, handler: &str) {
        let lane = lane.number();
        self.record(Controlled::Registered { lane, handler });
    }

    pub(crate) fn deregistered(&self, lane: LaneId, handler: &str) {
        let lane = lane.number();
        self.record(Controlled::Deregistered { lane, handler });
    }

    pub(crate) fn call_began(&self, call: CallOf<'_>, attempt: u32) {
        self.record(Controlled::CallBegan {
            run: call.run,
            key: call.key.as_str(),
            handler: call.handler,
            lane: call.lane.number(),
            attempt,
        });
    }

    pub(crate) fn call_ended(
        &self,
        call: CallOf<'_>,
        ended: CallOutcome,
        took: Duration,
        verdict: &Verdict<Payload>,
    ) {
        let verdict = verdict_of(call.lane, verdict);
        let again = verdict.what != VerdictType::Done;
        self.record(Controlled::CallEnded {
            run: call.run,
            key: call.key.as_str(),
            handler: call.handler,
            end: match verdict.what {
                VerdictType::Held => CallEnd::Held,
                _ => call_end(ended),
            },
            took,
            again: again.then_some(verdict.after),
        });
    }
}

impl Tap<ObjectKey, Payload> for ControllerFlight {
    fn step(&self, at: Instant, step: &QueueStep<'_, ObjectKey, Payload>) {
        self.queued(
            at,
            match step {
                QueueStep::Add {
                    key,
                    request,
                    limited,
                    group,
                } => added(key, request, *limited, *group),
                QueueStep::Get(taken) => Queued::Dequeued {
                    key: taken.key.as_str(),
                    lanes: lanes(&taken.lanes),
                    priority: urgency(taken.priority),
                    waited: taken.waited,
                },
                QueueStep::Done { key, verdicts } => {
                    let verdicts = verdicts.iter();
                    Queued::Finished {
                        key: key.as_str(),
                        verdicts: verdicts
                            .map(|(lane, verdict)| verdict_of(*lane, verdict))
                            .collect(),
                    }
                }
                QueueStep::GiveBack { key } => Queued::GivenBack { key: key.as_str() },
                QueueStep::Forget { key, lane } => Queued::Forgot {
                    key: key.as_str(),
                    lane: lane.number(),
                },
                QueueStep::Emptied => Queued::Emptied {
                    threshold: self.ageing.threshold(),
                    share: self.ageing.share(),
                    fair: self.fair,
                },
                QueueStep::Drain => Queued::DrainBegan {},
                QueueStep::Resume => Queued::DrainEnded {},
                QueueStep::ShutDown { now } => Queued::ShutDown { now: *now },
                QueueStep::Reopen => Queued::Reopened {},
                QueueStep::Release => Queued::Released {},
                // Steps that a later version of the queue adds are not recorded.
                _ => return,
            },
        );
    }
}

fn added<'a>(
    key: &'a ObjectKey,
    request: &Request<'a, Payload>,
    limited: Option<Duration>,
    group: Option<u64>,
) -> Queued<'a> {
    let first = request.payload.causes.iter().next();
    let (cause, by, version) = first.map_or((CauseType::Unknown, "", None), about);
    Queued::Added {
        key: key.as_str(),
        lanes: lanes(request.lanes),
        after: request.after,
        kept: request.kept,
        priority: urgency(request.priority),
        failures: request.failures,
        limited,
        group,
        cause,
        by,
        version: version.unwrap_or(Version::Text("")),
    }
}

/// Returns the type of a cause, the handler behind it, and its resource version.
fn about(cause: &Cause) -> (CauseType, &str, Option<Version<'_>>) {
    match cause {
        Cause::Added { version } => (CauseType::Added, "", Some(version.into())),
        Cause::Updated { to, .. } => (CauseType::Updated, "", Some(to.into())),
        Cause::Deleted { version, .. } => (CauseType::Deleted, "", Some(version.into())),
        Cause::Wrote { by, to, .. } => (CauseType::Wrote, by, Some(to.into())),
        // Its text has no version, and the change itself is recorded by its own kind.
        Cause::Related { .. } => (CauseType::Related, "", None),
        Cause::Resync => (CauseType::Resync, "", None),
        Cause::Enqueued { by, .. } => (CauseType::Enqueued, by.as_deref().unwrap_or(""), None),
        Cause::Retry { handler, .. } => (CauseType::Retry, handler, None),
        Cause::Requeued { handler, .. } => (CauseType::Requeued, handler, None),
        Cause::LateHandler { handler } => (CauseType::LateHandler, handler, None),
        _ => (CauseType::Unknown, "", None),
    }
}

fn lanes(lanes: &lariat_queue::Lanes) -> Lanes {
    lanes.ids().map(LaneId::number).collect()
}

fn urgency(priority: Priority) -> Urgency {
    match priority {
        Priority::Low => Urgency::Low,
        Priority::Normal => Urgency::Normal,
        Priority::High => Urgency::High,
    }
}

fn verdict_of(lane: LaneId, verdict: &Verdict<Payload>) -> LaneVerdict {
    let (what, after, priority) = match verdict {
        Verdict::Done => (VerdictType::Done, Duration::ZERO, None),
        Verdict::Again {
            after, priority, ..
        } => (VerdictType::Again, *after, *priority),
        Verdict::Failed {
            after, priority, ..
        } => (VerdictType::Failed, *after, *priority),
        Verdict::Postponed {
            after, priority, ..
        } => (VerdictType::Held, *after, *priority),
    };
    LaneVerdict {
        lane: lane.number(),
        what,
        after,
        priority: priority.map(urgency),
    }
}

fn call_end(ended: CallOutcome) -> CallEnd {
    match ended {
        CallOutcome::Done => CallEnd::Done,
        CallOutcome::Requeued => CallEnd::Requeued,
        CallOutcome::Ignored => CallEnd::Ignored,
        CallOutcome::Failed => CallEnd::Failed,
        CallOutcome::Terminal => CallEnd::Terminal,
        CallOutcome::Panicked => CallEnd::Panicked,
        CallOutcome::TimedOut => CallEnd::TimedOut,
    }
}
