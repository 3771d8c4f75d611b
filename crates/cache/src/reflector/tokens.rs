//! Continue tokens of lists in pages.

/// Finds out whether the tokens of a list repeat, in which case it would never end.
///
/// It keeps one token, at most: that of page 1, 2, 4, 8 and so on. A cycle of any length is found once it fits between
/// two of them, so a list of n pages that turns in a circle is given up after 3n pages at the latest.
#[derive(Debug, Default)]
pub(crate) struct PageTokens {
    kept: String,
    pages: usize,
}

/// The error of a list whose tokens repeat.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RepeatedToken;

impl PageTokens {
    /// Records the token of the next page.
    pub(crate) fn next(&mut self, token: String) -> Result<String, RepeatedToken> {
        if token == self.kept {
            return Err(RepeatedToken);
        }
        self.pages += 1;
        if self.pages.is_power_of_two() {
            self.kept.clone_from(&token);
        }
        Ok(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_continue_tokens_are_found_in_circles_of_any_length() {
        for (first, circle) in [(0, 1), (0, 2), (3, 1), (5, 7), (100, 64)] {
            let mut tokens = PageTokens::default();
            let mut endless = (0..first).chain((0..).map(|n| first + n % circle));
            let pages = endless.position(|token| tokens.next(token.to_string()).is_err());
            let pages = pages.expect("the list ends");
            assert!(
                pages <= 3 * (first + circle) + 1,
                "{pages} of {first} + {circle}"
            );
        }
    }

    #[test]
    fn distinct_continue_tokens_are_followed() {
        let mut tokens = PageTokens::default();
        assert!((0..10_000).all(|token| tokens.next(token.to_string()).is_ok()));
    }
}
