//! Random values of the server: uids, suffixes of names, secrets.

use std::io;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use parking_lot::Mutex;

/// Random uids, name suffixes and secrets.
#[derive(Debug)]
pub(crate) struct Random {
    random: Mutex<fastrand::Rng>,
    /// Secrets come from the seed too.
    is_repeatable: bool,
}

/// The characters of generated suffixes: no vowels, and none that look alike.
const SUFFIX: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
// As in SimpleNameGenerator of apiserver's storage/names.
const SUFFIX_LENGTH: usize = 5;
const GENERATED_LENGTH: usize = 63;

impl Random {
    pub(crate) fn new(seed: Option<u64>) -> Self {
        let random = seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed);
        Self {
            random: Mutex::new(random),
            is_repeatable: seed.is_some(),
        }
    }

    /// Continues with other names than before, as if by another seed.
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

    /// Generates a name from `generateName`.
    ///
    /// The base is cut so that the whole has at most 63 characters.
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

/// Returns whether a name looks [generated](Random::generate) from `generateName`.
pub(crate) fn is_generated(name: &str, base: &str) -> bool {
    let kept = name.len().checked_sub(SUFFIX_LENGTH);
    let kept = kept
        .and_then(|length| name.get(..length))
        .unwrap_or_default();
    let is_cut = name.chars().count() == GENERATED_LENGTH;
    !kept.is_empty() && (kept == base || is_cut && base.starts_with(kept))
}

/// Makes a version 4 UUID of random bits.
pub(crate) fn uuid(bits: u128) -> String {
    // The version is in the bits from 76 on, the variant in those from 62 on.
    let versioned = bits & !(0xf << 76) | (4 << 76);
    let uuid = versioned & !(0x3 << 62) | (2 << 62);
    let hex = format!("{uuid:032x}");
    let parts = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    parts.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uids_are_version_4_uuids() {
        let uid = Random::new(Some(1)).uid();
        assert_eq!(uid.len(), 36);
        assert_eq!(&uid[14..15], "4");
        assert!("89ab".contains(&uid[19..20]), "{uid}");
    }

    #[test]
    fn secrets_are_repeatable_only_with_a_seed() {
        let [one, other] = [Random::new(Some(1)), Random::new(Some(1))];
        assert_eq!(one.secret().unwrap(), other.secret().unwrap());
        assert_eq!(one.uid(), other.uid());
        // A secret is nothing that the generator of the uids would have made, and leaves that as it was.
        let mut random = Random::new(Some(1));
        random.is_repeatable = false;
        let secret = random.secret().unwrap();
        assert_ne!(secret, Random::new(Some(1)).secret().unwrap());
        assert_eq!(random.uid(), Random::new(Some(1)).uid());
    }

    #[test]
    fn generated_names_are_cut_to_63_characters() {
        let random = Random::new(Some(1));
        assert_eq!(random.generate(&"y".repeat(70)).len(), 63);
        assert_eq!(random.generate("job-").len(), 9);
        assert_eq!(random.generate(&"é".repeat(70)).chars().count(), 63);
        assert_ne!(random.generate("job-"), random.generate("job-"));
    }
}
