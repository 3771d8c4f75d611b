//! Metrics of leases: leader election under the names of client-go, and shards.

use std::fmt;

use lariat_lease::LeadershipState;

use super::output::Output;
use super::scrape::{Elected, Label, Member};

pub(super) fn write(members: &[Member], out: &mut Output<'_>) -> fmt::Result {
    out.gauges(
        "leader_election_master_status",
        "Whether this process leads.",
        each(members, |of| {
            of.members.is_none().then(|| u32::from(leads(of)))
        }),
    )?;
    out.counters(
        "leader_election_slowpath_total",
        "Lease renewals that had to read the lease first.",
        each(members, |of| {
            of.members.is_none().then_some(of.status.slow_renewals)
        }),
    )?;
    out.counters(
        "lariat_lease_acquired_total",
        "Times the lease was acquired.",
        each(members, |of| Some(of.status.acquired)),
    )?;
    out.counters(
        "lariat_lease_renewals_total",
        "Renewals of the lease.",
        each(members, |of| Some(of.status.renewals)),
    )?;
    out.gauges(
        "lariat_shard_joined",
        "Whether this process is a member of the ring.",
        each(members, |of| of.members.map(|_| u32::from(leads(of)))),
    )?;
    out.gauges(
        "lariat_shard_members",
        "Members of the ring, as seen by this process; zero while it is not a member.",
        each(members, |of| of.members),
    )
}

fn leads(of: &Elected) -> bool {
    matches!(of.status.state, LeadershipState::Leading { .. })
}

fn each<'a, V>(
    members: &'a [Member],
    value: fn(&'a Elected) -> Option<V>,
) -> impl Iterator<Item = ([Label<'a>; 2], V)> {
    members.iter().filter_map(move |member| {
        let elected = member.elected.as_ref()?;
        let labels = [("ctx", &*member.context), ("name", &*elected.name)];
        Some((labels, value(elected)?))
    })
}
