//! Budgets: the number of objects that may be written within a period.

use std::fmt;
use std::time::Duration;

/// The number of objects that may be written within a sliding period.
///
/// Each write counts until the period has passed, or at most a 128th of the period longer. With a period of zero, only
/// writes at the same instant count together. With [`Duration::MAX`], writes count until the guard is reset.
///
/// ```
/// use std::time::Duration;
/// use lariat::operator::Budget;
///
/// let minute = Duration::from_secs(60);
/// let ten = Budget::rate(10, minute);
/// let fifth = Budget::share(0.2, 10 * minute).at_least(3);
/// # let _ = (ten, fifth);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[must_use = "a budget does nothing until a guard has it"]
pub struct Budget {
    pub(super) limit: Limit,
    pub(super) per: Duration,
}

/// The limit of a budget.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Limit {
    /// A number of objects, of all kinds together.
    Rate(u32),
    /// A fraction of the cached objects of a kind, for each kind.
    Share { fraction: f64, at_least: u32 },
}

impl Budget {
    /// Allows a number of writes per period, of all kinds together; zero allows none.
    pub fn rate(count: u32, per: Duration) -> Self {
        let limit = Limit::Rate(count);
        Self { limit, per }
    }

    /// Allows writes of a fraction of a kind's cached objects per period.
    ///
    /// 0.2 is a fifth, rounded down. Each kind is counted separately, and [at least](Self::at_least) one write is
    /// allowed. The fraction is that of the objects cached now or at the beginning of the period, whichever is greater:
    /// deletions must not shrink their own budget. For a kind that is not cached, only the minimum is allowed. A
    /// fraction that is negative or not a number counts as zero.
    pub fn share(fraction: f64, per: Duration) -> Self {
        // The comparison is false for NaN as well.
        let fraction = if fraction > 0.0 { fraction } else { 0.0 };
        let limit = Limit::Share {
            fraction,
            at_least: 1,
        };
        Self { limit, per }
    }

    /// Sets the minimum of a [share](Self::share) (default 1).
    ///
    /// It keeps kinds with few objects writable. For a rate, it raises the rate to this number.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lariat::operator::Budget;
    ///
    /// let fifth = Budget::share(0.2, Duration::from_secs(60)).at_least(3);
    /// assert_eq!(fifth.to_string(), "20 % of the cached objects per 60s");
    /// ```
    pub fn at_least(self, count: u32) -> Self {
        let limit = match self.limit {
            Limit::Rate(rate) => Limit::Rate(rate.max(count)),
            Limit::Share { fraction, .. } => Limit::Share {
                fraction,
                at_least: count,
            },
        };
        Self { limit, ..self }
    }

    /// Returns the number of writes that are allowed with this many cached objects.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share is rounded down, saturates, and is never negative"
    )]
    pub(super) fn allows(&self, cached: usize) -> u64 {
        match self.limit {
            Limit::Rate(count) => count.into(),
            Limit::Share { fraction, at_least } => {
                // In binary, 0.2 is slightly less than a fifth, and a fifth of 15 would be two.
                let share = (fraction * cached as f64 + 1e-9) as u64;
                share.max(at_least.into())
            }
        }
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.limit {
            Limit::Rate(count) => write!(f, "{count}")?,
            Limit::Share { fraction, .. } => {
                let percent = (fraction * 1000.0).round() / 10.0;
                write!(f, "{percent} % of the cached objects")?;
            }
        }
        match self.per {
            Duration::MAX => f.write_str(" until a reset"),
            per => write!(f, " per {per:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_rounded_down_and_has_a_minimum() {
        for (fraction, at_least, cached, allowed) in [
            (0.2, 1, 100, 20),
            (0.2, 1, 15, 3),
            (0.2, 1, 14, 2),
            (0.2, 1, 4, 1),
            (0.2, 5, 4, 5),
            (0.2, 0, 4, 0),
            (0.0, 1, 1000, 1),
            (f64::NAN, 0, 1000, 0),
            (-1.0, 0, 1000, 0),
            (f64::INFINITY, 0, 2, u64::MAX),
            (1.0, 0, 7, 7),
        ] {
            let budget = Budget::share(fraction, Duration::ZERO).at_least(at_least);
            assert_eq!(budget.allows(cached), allowed, "{budget:?} of {cached}");
        }
        assert_eq!(Budget::rate(3, Duration::ZERO).allows(1000), 3);
    }

    #[test]
    fn budgets_say_what_they_are() {
        let minute = Duration::from_secs(60);
        assert_eq!(Budget::rate(10, minute).to_string(), "10 per 60s");
        assert_eq!(
            Budget::share(0.25, Duration::MAX).to_string(),
            "25 % of the cached objects until a reset"
        );
    }
}
