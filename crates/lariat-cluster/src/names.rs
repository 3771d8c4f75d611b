//! Names: what is valid, and what the server makes up.

use std::io;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use parking_lot::Mutex;

use crate::kinds::NameRule;

/// Random uids, name suffixes and secrets.
#[derive(Debug)]
pub(crate) struct Names {
    random: Mutex<fastrand::Rng>,
    /// Secrets come from the seed too.
    is_repeatable: bool,
}

/// The characters of a generated suffix: no vowels, nothing that looks like something else.
const SUFFIX: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LENGTH: usize = 5;
const GENERATED_LENGTH: usize = 63;

impl Names {
    pub(crate) fn new(seed: Option<u64>) -> Self {
        let random = seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed);
        Self {
            random: Mutex::new(random),
            is_repeatable: seed.is_some(),
        }
    }

    /// Goes on with other names than those that would have followed, as many seeds lead to them.
    pub(crate) fn vary(&self, salt: u64) {
        let mut random = self.random.lock();
        *random = fastrand::Rng::with_seed(random.u64(..) ^ salt);
    }

    /// Makes a version 4 UUID.
    pub(crate) fn uid(&self) -> String {
        uuid(self.random.lock().u128(..))
    }

    /// Makes 256 random bits, in characters that fit a header.
    ///
    /// The bits are the operating system's, so that no uid or name, which come of a generator that can be computed
    /// back, helps to guess them; with a seed they are repeatable instead.
    ///
    /// # Errors
    ///
    /// The operating system has none.
    pub(crate) fn secret(&self) -> io::Result<String> {
        let mut bits = [0; 32];
        if self.is_repeatable {
            self.random.lock().fill(&mut bits);
        } else {
            getrandom::fill(&mut bits)?;
        }
        Ok(BASE64.encode(bits))
    }

    /// Returns a random number between 0 and 1.
    pub(crate) fn fraction(&self) -> f32 {
        self.random.lock().f32()
    }

    /// Returns a random number below another.
    pub(crate) fn number(&self, below: usize) -> usize {
        self.random.lock().usize(..below)
    }

    /// Makes a name from `generateName`, which is cut so that the whole has at most 63 characters.
    pub(crate) fn generate(&self, base: &str) -> String {
        let room = GENERATED_LENGTH - SUFFIX_LENGTH;
        let cut = base
            .char_indices()
            .nth(room)
            .map_or(base.len(), |(at, _)| at);
        let mut random = self.random.lock();
        let suffix = (0..SUFFIX_LENGTH).map(|_| char::from(SUFFIX[random.usize(..SUFFIX.len())]));
        base[..cut].chars().chain(suffix).collect()
    }
}

/// Makes a version 4 UUID of random bits.
pub(crate) fn uuid(bits: u128) -> String {
    let bits = bits & !(0xf << 76) | (4 << 76);
    let bits = bits & !(0x3 << 62) | (2 << 62);
    let hex = format!("{bits:032x}");
    let parts = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    parts.join("-")
}

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
    characters, '-' or '.', and must start and end with an alphanumeric character (e.g. \
    'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters \
    or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', \
    regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

/// Checks a name; the error is the server's text.
pub(crate) fn check(name: &str, rule: NameRule) -> Result<(), &'static str> {
    match rule {
        NameRule::PathSegment if matches!(name, "." | "..") => Err("may not be '.' or '..'"),
        NameRule::PathSegment if name.contains(['/', '%']) => Err("may not contain '/' or '%'"),
        NameRule::PathSegment => Ok(()),
        NameRule::Label if is_label(name) => Ok(()),
        NameRule::Label if name.len() > 63 => Err("must be no more than 63 characters"),
        NameRule::Label => Err(LABEL),
        NameRule::Subdomain if name.len() > 253 => Err("must be no more than 253 characters"),
        NameRule::Subdomain if name.split('.').all(is_subdomain_part) => Ok(()),
        NameRule::Subdomain => Err(SUBDOMAIN),
    }
}

fn is_label(text: &str) -> bool {
    text.len() <= 63 && is_subdomain_part(text)
}

fn is_subdomain_part(text: &str) -> bool {
    let alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(alphanumeric)
        && bytes.last().is_some_and(alphanumeric)
        && bytes.iter().all(|byte| alphanumeric(byte) || *byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uids_are_version_4_uuids() {
        let uid = Names::new(Some(1)).uid();
        assert_eq!(uid.len(), 36);
        assert_eq!(&uid[14..15], "4");
        assert!("89ab".contains(&uid[19..20]), "{uid}");
    }

    #[test]
    fn secrets_are_repeatable_only_with_a_seed() {
        let [one, other] = [Names::new(Some(1)), Names::new(Some(1))];
        assert_eq!(one.secret().unwrap(), other.secret().unwrap());
        assert_eq!(one.uid(), other.uid());
        // A secret is nothing that the generator of the uids would have made, and leaves that as it was.
        let mut names = Names::new(Some(1));
        names.is_repeatable = false;
        let secret = names.secret().unwrap();
        assert_ne!(secret, Names::new(Some(1)).secret().unwrap());
        assert_eq!(names.uid(), Names::new(Some(1)).uid());
    }

    #[test]
    fn generated_names_are_cut_to_63_characters() {
        let names = Names::new(Some(1));
        assert_eq!(names.generate(&"y".repeat(70)).len(), 63);
        assert_eq!(names.generate("job-").len(), 9);
        assert_eq!(names.generate(&"é".repeat(70)).chars().count(), 63);
        assert_ne!(names.generate("job-"), names.generate("job-"));
    }

    #[test]
    fn names_are_checked_by_the_rule_of_their_kind() {
        use NameRule::{Label, PathSegment, Subdomain};
        for (name, rule, valid) in [
            ("web-0", Subdomain, true),
            ("a.b", Subdomain, true),
            ("Bad_Name", Subdomain, false),
            ("a..b", Subdomain, false),
            ("-a", Subdomain, false),
            ("", Subdomain, false),
            ("a.b", Label, false),
            ("system:node", PathSegment, true),
            ("a/b", PathSegment, false),
        ] {
            assert_eq!(check(name, rule).is_ok(), valid, "{name}");
        }
    }
}
