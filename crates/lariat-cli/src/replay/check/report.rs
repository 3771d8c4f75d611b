//! The report of a check: how much was compared, and the first difference.

use std::fmt;
use std::time::Duration;

use super::outcome::Outcome;

/// The first difference, and how much was compared.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(super) dequeues: Compared,
    pub(super) decisions: Compared,
    pub(super) difference: Option<Difference>,
}

/// How many decisions there are, and how many of them were compared.
#[derive(Debug, Default)]
pub(super) struct Compared {
    recorded: usize,
    compared: usize,
}

/// The first decision that today's code makes differently.
#[derive(Debug)]
pub(super) struct Difference {
    pub(super) session: u32,
    pub(super) at: Duration,
    pub(super) kind: String,
    pub(super) recorded: String,
    pub(super) today: String,
    /// The last records of the same queue or reflector, the oldest first.
    pub(super) context: Vec<String>,
}

impl Compared {
    /// Counts the outcome of a record.
    pub(super) fn count(&mut self, outcome: &Outcome) {
        self.recorded += usize::from(*outcome != Outcome::Taken);
        self.compared += usize::from(!matches!(outcome, Outcome::Taken | Outcome::Unknown));
    }
}

impl Report {
    pub(crate) fn is_equal(&self) -> bool {
        self.difference.is_none()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (queues, reflectors) = (&self.dequeues, &self.decisions);
        if let Some(difference) = &self.difference {
            write!(f, "{difference}")?;
            // The difference itself was compared as well.
            let before = queues.compared + reflectors.compared - 1;
            return writeln!(f, "{before} decisions before it are the same");
        }
        let compared = queues.compared + reflectors.compared;
        writeln!(
            f,
            "no difference in {compared} decisions: {} dequeues of queues, {} decisions of reflectors",
            queues.compared, reflectors.compared
        )?;
        let unknown = queues.recorded + reflectors.recorded - compared;
        if unknown > 0 {
            writeln!(
                f,
                "{unknown} more could not be compared: what came before them is not in the recording"
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            session,
            at,
            kind,
            recorded,
            today,
            context,
        } = self;
        let at = at.as_secs_f64();
        writeln!(f, "difference in session {session} at +{at:.6}s, {kind}:")?;
        writeln!(f, "  recorded: {recorded}")?;
        writeln!(f, "  today:    {today}")?;
        writeln!(
            f,
            "the records that led to it, the last one is the recorded decision:"
        )?;
        context.iter().try_for_each(|line| writeln!(f, "  {line}"))
    }
}
