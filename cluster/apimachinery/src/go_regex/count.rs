//! Repeat counts.

use super::{BAD_COUNT, MOST_REPEATED, error};

/// A repeat count.
#[derive(Debug, Clone, Copy)]
pub(super) struct Count {
    least: u32,
    /// `None` for any number.
    most: Option<u32>,
}

impl Count {
    /// Reads a count such as `{1,2}`, and returns it with the rest.
    ///
    /// `None` if it is not a count: Go then reads the brace as a literal.
    pub(super) fn read(text: &str) -> Option<(Self, &str)> {
        let (least, rest) = number(text.strip_prefix('{')?)?;
        let (most, rest) = match rest.strip_prefix(',') {
            None => (Some(least), rest),
            Some(rest) if rest.starts_with('}') => (None, rest),
            Some(rest) => number(rest).map(|(most, rest)| (Some(most), rest))?,
        };
        Some((Self { least, most }, rest.strip_prefix('}')?))
    }

    pub(super) fn check(self, part: &str) -> Result<(), String> {
        let is_large =
            self.least > MOST_REPEATED || self.most.is_some_and(|most| most > MOST_REPEATED);
        if is_large || self.most.is_some_and(|most| self.least > most) {
            return Err(error(BAD_COUNT, part));
        }
        Ok(())
    }

    pub(super) fn written(self) -> String {
        match self.most {
            Some(most) => format!("{{{},{most}}}", self.least),
            None => format!("{{{},}}", self.least),
        }
    }

    pub(super) fn is_many(self) -> bool {
        self.most.unwrap_or(self.least) >= 2
    }

    /// Returns the product of this count and the counts inside of it.
    pub(super) fn times(self, inner: u32) -> u32 {
        match self.most {
            Some(0) => 1,
            most => inner.saturating_mul(most.unwrap_or(self.least).max(1)),
        }
    }
}

/// Reads a number without zeros in front.
fn number(text: &str) -> Option<(u32, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 || digits > 1 && text.starts_with('0') {
        return None;
    }
    // One that is too large is as good as any.
    let number = text[..digits].parse().unwrap_or(u32::MAX);
    Some((number, &text[digits..]))
}
