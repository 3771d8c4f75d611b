//! The records, and the enums they consist of.

mod codes;
mod end;
mod record;
#[cfg(test)]
pub(crate) mod tests;

pub use codes::{
    CallEnd, CauseType, ChangeType, FactoryStep, LineType, NextStep, Stage, Urgency, VerdictType,
};
pub use end::End;
pub use record::{
    Controlled, LaneVerdict, Lanes, Numbers, Queued, Record, Reflected, Stored, Verdicts, Version,
};
