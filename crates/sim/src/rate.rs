//! The rate of a machine's clock.
#![expect(missing_docs, reason = "only the hidden `internals` show it")]

use std::time::Duration;

/// The rate of the clocks of a machine, in thousandths of the run's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate(pub u32);

impl Rate {
    pub const TRUE: Self = Self(1000);

    /// Converts a span of the run's time to one of the machine's clock.
    pub(crate) fn local(self, span: Duration) -> Duration {
        match self {
            // Exactly, and without the multiplication, which overflows for long spans.
            Self::TRUE => span,
            Self(rate) => span * rate / 1000,
        }
    }

    /// Returns the span of the run's time in which the machine's clock shows this.
    #[must_use]
    pub fn of_run(self, span: Duration) -> Duration {
        match self {
            Self::TRUE => span,
            Self(rate) => span * 1000 / rate,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Rate;

    #[test]
    fn a_fast_clock_shows_more_than_has_passed() {
        let (second, fast) = (Duration::from_secs(1), Rate(1250));
        assert_eq!(fast.local(second), Duration::from_millis(1250));
        assert_eq!(fast.of_run(second), Duration::from_millis(800));
        assert_eq!(Rate::TRUE.local(second), second);
    }
}
