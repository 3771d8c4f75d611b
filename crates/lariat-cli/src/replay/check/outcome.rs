//! The outcome of replaying one record.

/// The outcome of giving a record to today's code.
#[derive(Debug, PartialEq)]
pub(super) enum Outcome {
    /// It is no decision.
    Taken,
    /// It is a decision that cannot be compared: the state before it is unknown.
    Unknown,
    Same,
    /// What was recorded, and what today's code decides.
    Differs(String, String),
}
