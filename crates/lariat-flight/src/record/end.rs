//! The ways in which a list or a watch can end.

use std::fmt;
use std::time::Duration;

use crate::code::{Decoder, Encoder, Field};

/// How a list, a watch or a history check ended, without error texts.
///
/// ```
/// use lariat_flight::End;
///
/// let busy = End::Refused { status: 429, retry_after: Some(std::time::Duration::from_secs(7)) };
/// assert_eq!(busy.to_string(), "refused with 429, retry after 7s");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    /// It was read to the end, or answered as expected.
    Complete,
    /// The server closed the watch, as servers do after some minutes.
    Closed,
    /// The watch ended immediately, without an event.
    EndedImmediately,
    /// The version is no longer in the server's history (410).
    Expired,
    /// The connection was lost in the middle of the response.
    Cut,
    /// Nothing arrived for too long.
    Silent,
    /// The request could not be sent, or was not answered.
    Unreachable,
    /// The request was sent, but no response came in time.
    Unanswered,
    /// The response does not follow the API.
    Malformed,
    /// The server answered with an error.
    Refused {
        /// The HTTP status.
        status: u16,
        /// The `Retry-After` header of the response.
        retry_after: Option<Duration>,
    },
    /// The server does not serve the kind.
    NotServed,
    /// A watch list had no end marker.
    NoEndMarker,
    /// The server returned an earlier version than before.
    WentBack,
    /// The server has a different history than the one the store was read from.
    OtherHistory,
    /// The server's responses do not show which history it has.
    UnknownHistory,
    /// The server does not answer history checks.
    NoHistory,
}

/// The ends without fields, with their codes and texts.
const PLAIN: [(u8, End, &str); 15] = [
    (1, End::Complete, "complete"),
    (2, End::Closed, "closed by the server"),
    (3, End::EndedImmediately, "ended without an event"),
    (4, End::Expired, "the version has expired (410)"),
    (5, End::Cut, "connection lost"),
    (6, End::Silent, "no data for too long"),
    (7, End::Unreachable, "server unreachable"),
    (8, End::Unanswered, "request timed out"),
    (9, End::Malformed, "malformed response"),
    (11, End::NotServed, "kind not served"),
    (12, End::NoEndMarker, "watch list without an end marker"),
    (13, End::WentBack, "server returned an earlier version"),
    (14, End::OtherHistory, "server has a different history"),
    (15, End::UnknownHistory, "server history unknown"),
    (16, End::NoHistory, "server does not answer history checks"),
];

/// The code of [`End::Refused`].
const REFUSED: u8 = 10;

impl Field<'_> for End {
    fn put(&self, to: &mut Encoder) {
        // The only end with fields; all others are in the table.
        if let Self::Refused {
            status,
            retry_after,
        } = self
        {
            to.byte(REFUSED);
            status.put(to);
            retry_after.put(to);
        } else if let Some((code, ..)) = PLAIN.iter().find(|(_, end, _)| end == self) {
            to.byte(*code);
        }
    }

    fn get(from: &mut Decoder<'_>) -> Option<Self> {
        match from.byte()? {
            REFUSED => Some(Self::Refused {
                status: Field::get(from)?,
                retry_after: Field::get(from)?,
            }),
            code => {
                let plain = PLAIN.iter().find(|(known, ..)| *known == code);
                plain.map(|(_, end, _)| *end)
            }
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Refused {
            status,
            retry_after,
        } = self
        {
            write!(f, "refused with {status}")?;
            return match retry_after {
                Some(after) => write!(f, ", retry after {after:?}"),
                None => Ok(()),
            };
        }
        let words = PLAIN.iter().find(|(_, end, _)| end == self);
        f.write_str(words.map_or("", |(.., words)| words))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns one of each.
    pub(crate) fn all() -> Vec<End> {
        let refused = |retry_after| End::Refused {
            status: 503,
            retry_after,
        };
        let plain = PLAIN.iter().map(|(_, end, _)| *end);
        let refused = [refused(None), refused(Some(Duration::from_secs(3)))];
        plain.chain(refused).collect()
    }

    #[test]
    fn every_end_comes_back_and_has_words() {
        for end in all() {
            let mut encoder = Encoder::default();
            end.put(&mut encoder);
            let bytes = encoder.take();
            assert_eq!(End::get(&mut Decoder::new(&bytes)), Some(end));
            assert!(!end.to_string().is_empty());
        }
    }
}
