//! The time for which a certificate is valid, read from its DER.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// The tags of DER that lead to the validity.
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The time for which a certificate is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Validity {
    from: Timestamp,
    until: Timestamp,
}

impl Validity {
    /// Reads the validity of a certificate; `None` if it is malformed.
    pub(super) fn read(certificate: &[u8]) -> Option<Self> {
        let (body, _) = element(certificate, SEQUENCE)?;
        let (mut rest, _) = element(body, SEQUENCE)?;
        if rest.first() == Some(&VERSION) {
            rest = any(rest)?.2;
        }
        // The serial number, the algorithm and the issuer.
        for _ in 0..3 {
            rest = any(rest)?.2;
        }
        let (validity, _) = element(rest, SEQUENCE)?;
        let (from_tag, from, rest) = any(validity)?;
        let (until_tag, until, _) = any(rest)?;
        Some(Self {
            from: time(from_tag, from)?,
            until: time(until_tag, until)?,
        })
    }

    pub(super) fn contains(self, now: Timestamp) -> bool {
        self.from <= now && now <= self.until
    }
}

/// Returns the content of the first element, which must have a tag, and what follows it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, content, rest) = any(bytes)?;
    (found == tag).then_some((content, rest))
}

/// Returns the tag and the content of the first element, and what follows it.
fn any(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            let digits = digits.iter();
            let length = digits.fold(0, |length, digit| (length << 8) | usize::from(*digit));
            (length, rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// Reads a time, such as `260102030405Z` or `20260102030405Z`.
fn time(tag: u8, text: &[u8]) -> Option<Timestamp> {
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    if !text.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let (year, rest) = match tag {
        UTC_TIME => {
            let (year, rest) = text.split_at_checked(2)?;
            let year: i16 = year.parse().ok()?;
            // RFC 5280: two digits below 50 are of this century.
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = text.split_at_checked(4)?;
            (year.parse().ok()?, rest)
        }
        _ => return None,
    };
    let part = |at: usize| rest.get(at..at + 2)?.parse::<i8>().ok();
    let (month, day) = (part(0)?, part(2)?);
    let (hour, minute, second) = (part(4)?, part(6)?, part(8)?);
    let time = DateTime::new(year, month, day, hour, minute, second, 0).ok()?;
    // RFC 5280 has 9999-12-31 for certificates that do not expire, which is later than the last timestamp.
    let zoned = time.to_zoned(TimeZone::UTC);
    Some(zoned.map_or(Timestamp::MAX, |zoned| zoned.timestamp()))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    fn issued(from: i32, until: i32) -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["a".to_owned()]).unwrap();
        params.not_before = date_time_ymd(from, 2, 3);
        params.not_after = date_time_ymd(until, 2, 3);
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn validity_is_read_from_both_forms_of_time() {
        for (from, until) in [(1999, 2030), (2026, 2080), (2050, 9999)] {
            let validity = Validity::read(&issued(from, until)).unwrap();
            let at = |year: i32| format!("{year:04}-02-03T00:00:00Z").parse().unwrap();
            let expected = Validity {
                from: at(from),
                until: at(until),
            };
            assert_eq!(validity, expected);
            assert!(validity.contains(at(from)) && !validity.contains(Timestamp::MIN));
        }
    }

    #[test]
    fn malformed_certificate_has_no_validity() {
        let whole = issued(2026, 2080);
        for length in 0..whole.len().min(200) {
            let _ = Validity::read(&whole[..length]);
        }
        assert_eq!(Validity::read(b""), None);
        assert_eq!(Validity::read(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff]), None);
        assert_eq!(time(UTC_TIME, "2601020304é".as_bytes()), None);
    }
}
