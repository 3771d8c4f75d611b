//! The leases that the processes of a run hold at one time.
#![expect(missing_docs, reason = "only the hidden `internals` show it")]

use std::fmt;

use lariat_lease::Share;

use crate::actors::IncarnationId;

/// The leases of all living processes, as they see them.
#[derive(Debug, Clone)]
pub struct LeaseReport {
    pub phase: ReportPhase,
    pub members: Vec<Member>,
}

/// The time of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportPhase {
    /// Two lease durations and what is allowed on top of that after the last fault.
    Held,
    /// A minute before the end.
    LastMinute,
    /// At rest, when nothing goes on any more.
    Rest,
}

/// The lease of one process, as it sees it.
#[derive(Debug, Clone)]
pub struct Member {
    pub incarnation: IncarnationId,
    /// Whether it leads, or is a member of the ring.
    pub leads: bool,
    /// Its share of the ring; none in an election.
    pub share: Option<Share>,
}

impl fmt::Display for LeaseReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}:", self.phase)?;
        for Member {
            incarnation,
            leads,
            share,
        } in &self.members
        {
            let leads = if *leads { "" } else { "not " };
            write!(
                f,
                " {} ({}) is {leads}a holder",
                incarnation.process, incarnation.number
            )?;
            if let Some(share) = share {
                write!(f, " among {}", share.members())?;
            }
        }
        Ok(())
    }
}
