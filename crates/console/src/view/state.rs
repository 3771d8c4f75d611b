//! Leases, shards, guards and plans.

use lariat_lease::LeadershipState;
#[cfg(feature = "operator")]
use lariat_operator::PlannedWrite;

use crate::api;
use crate::members::Members;
#[cfg(feature = "operator")]
use crate::text::shown;

/// The maximum number of writes of a plan.
#[cfg(feature = "operator")]
const WRITES: usize = 1_000;

/// Returns the leases of the process's elections and rings.
pub(crate) fn leases(members: &Members) -> Vec<api::Lease> {
    let mut leases = Vec::new();
    for member in members.factories() {
        // The factory has neither an election nor a ring.
        let Some(leadership) = member.factory.leadership() else {
            continue;
        };
        let status = leadership.status();
        let (state, holder) = match &status.state {
            LeadershipState::Leading { .. } => ("leading", Some(status.identity.to_string())),
            LeadershipState::Standby { holder } => {
                ("standby", holder.as_ref().map(ToString::to_string))
            }
            _ => ("ended", None),
        };
        leases.push(api::Lease {
            context: member.context.to_string(),
            lease: status.lease,
            identity: status.identity.to_string(),
            state: state.to_owned(),
            holder,
            epoch: leadership.epoch(),
            acquired: status.acquired,
            renewals: status.renewals,
            slow_renewals: status.slow_renewals,
        });
    }
    leases
}

/// Returns the shares of sharded factories.
pub(crate) fn shards(members: &Members) -> Vec<api::Shards> {
    let factories = members.factories().into_iter();
    let shards = factories.filter_map(|member| {
        let members = member.factory.shards()?.share().members();
        Some(api::Shards {
            context: member.context.to_string(),
            members,
            // A process that is no member yet, or was removed, has a share of nothing.
            member: members > 0,
        })
    });
    shards.collect()
}

/// Returns the guards of all operators.
#[cfg(feature = "operator")]
pub(crate) fn guards(members: &Members) -> Vec<api::Guard> {
    let mut guards = Vec::new();
    for (context, operator) in members.operators() {
        for (guard, reconcilers) in operator.guards() {
            let state = guard.state();
            let trip = state.trip();
            guards.push(api::Guard {
                context: context.to_string(),
                operator: operator.name().to_owned(),
                reconcilers,
                budgets: guard.budgets(),
                tripped: state.is_tripped(),
                reason: trip.map(|trip| shown(trip.reason())),
                refused: trip.map_or(0, lariat_operator::Trip::refused),
            });
        }
    }
    guards
}

#[cfg(not(feature = "operator"))]
pub(crate) fn guards(_: &Members) -> Vec<api::Guard> {
    Vec::new()
}

/// Resets the guards that a reference names; returns whether there is one.
///
/// Guards of the same reconcilers with the same budgets cannot be distinguished: all of them are reset.
#[cfg(feature = "operator")]
pub(crate) fn reset_guard(members: &Members, reference: &api::GuardRef) -> bool {
    let mut is_known = false;
    for (context, operator) in members.operators() {
        if *context != *reference.context || operator.name() != reference.operator {
            continue;
        }
        for (guard, reconcilers) in operator.guards() {
            if reconcilers == reference.reconcilers && guard.budgets() == reference.budgets {
                guard.reset();
                is_known = true;
            }
        }
    }
    is_known
}

/// Returns the writes that operators in plan mode would send.
#[cfg(feature = "operator")]
pub(crate) fn plan(members: &Members) -> api::Plan {
    let mut plan = api::Plan::default();
    for (_, operator) in members.operators() {
        let Some(planned) = operator.planned() else {
            continue;
        };
        // A plan is bounded itself, and so is the response. The total counts everything.
        let left_out = usize::try_from(planned.left_out()).unwrap_or(usize::MAX);
        plan.total += planned.len().saturating_add(left_out);
        // Later operators get what the earlier ones have left, and are counted in the total in any case.
        let room = WRITES - plan.writes.len();
        let writes = planned.iter().take(room).map(|write| api::PlannedWrite {
            operator: operator.name().to_owned(),
            text: text(write),
            refused: write.refused().map(shown),
        });
        plan.writes.extend(writes);
    }
    plan
}

#[cfg(not(feature = "operator"))]
pub(crate) fn plan(_: &Members) -> api::Plan {
    api::Plan::default()
}

/// Returns the number of writes that operators in plan mode would send.
///
/// None without such an operator.
#[cfg(feature = "operator")]
pub(crate) fn planned(members: &Members) -> Option<usize> {
    let counts = members
        .operators()
        .into_iter()
        .filter_map(|(_, it)| it.planned_count());
    counts.reduce(|a, b| a + b)
}

#[cfg(not(feature = "operator"))]
pub(crate) fn planned(_: &Members) -> Option<usize> {
    None
}

/// Returns a planned write as a sentence, with paths of fields but no values.
#[cfg(feature = "operator")]
fn text(write: &PlannedWrite) -> String {
    let call = write.reconciler().zip(write.reconciled());
    let mut text = match call {
        Some((reconciler, (gvk, of))) => format!("{reconciler}, for {gvk} {of}: "),
        None => "outside of calls: ".to_owned(),
    };
    text.push_str(&format!("would {} {}", write.verb(), write.kind()));
    if let Some(key) = write.key() {
        text.push_str(&format!(" {key}"));
    }
    if let Some(subresource) = write.subresource() {
        text.push_str(&format!(" ({subresource})"));
    }
    let changes = write.changes().unwrap_or_default();
    let paths: Vec<&str> = changes
        .iter()
        .take(20)
        .map(|change| change.path())
        .collect();
    if !paths.is_empty() {
        let more = changes.len() - paths.len();
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        text.push_str(&format!(", changing {}{more}", paths.join(", ")));
    }
    if write.times() > 1 {
        text.push_str(&format!(", {} times", write.times()));
    }
    text
}
