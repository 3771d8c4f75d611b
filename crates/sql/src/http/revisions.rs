//! Revisions as users see them.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use form_urlencoded::parse;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};

use crate::access::Access;
use crate::revision::{Position, Revision};

/// Stands before the encrypted part of a revision.
const MARK: &str = "-s";

/// Encrypts revisions for users who do not see all objects of a kind.
///
/// A revision counts the changes of all objects. Encrypted with a random nonce, it shows neither their number nor
/// whether there was one. The key is of this process, as is the history of changes from which a watch resumes.
#[derive(Clone)]
pub(super) struct Revisions {
    key: Arc<LessSafeKey>,
    random: SystemRandom,
}

/// How revisions of a kind are shown to a user.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    /// `None` if the user sees all objects.
    sealed_by: Option<Revisions>,
}

impl Revisions {
    pub(super) fn new() -> Self {
        let (random, mut key) = (SystemRandom::new(), [0; 32]);
        random
            .fill(&mut key)
            .expect("the system has random numbers");
        let key = UnboundKey::new(&AES_256_GCM, &key).expect("a key of AES-256 has 32 bytes");
        Self {
            key: Arc::new(LessSafeKey::new(key)),
            random,
        }
    }

    /// Returns how revisions are shown with an access.
    pub(super) fn shown(&self, access: &Access) -> Shown {
        Shown {
            sealed_by: (!access.is_everything()).then(|| self.clone()),
        }
    }

    /// Replaces encrypted revisions in the parameters of a URL.
    pub(super) fn in_parameters(&self, parameters: &str) -> String {
        let plain = |pair: &str| {
            let (name, value) = parse(pair.as_bytes()).next()?;
            (name == "revision" && value.contains(MARK)).then(|| {
                let plain = self.plain(&value);
                let encoded: String = form_urlencoded::byte_serialize(plain.as_bytes()).collect();
                format!("revision={encoded}")
            })
        };
        let pairs = parameters.split('&');
        let pairs: Vec<String> = pairs
            .map(|pair| plain(pair).unwrap_or_else(|| pair.to_owned()))
            .collect();
        pairs.join("&")
    }

    /// Decrypts a revision; returns other texts unchanged.
    ///
    /// If another process has encrypted it, this is the resource version in front.
    pub(super) fn plain(&self, text: &str) -> String {
        let Some((version, sealed)) = text.split_once(MARK) else {
            return text.to_owned();
        };
        let opened = self.open(sealed).map(|revision| revision.to_string());
        opened.unwrap_or_else(|| version.to_owned())
    }

    fn seal(&self, revision: Revision) -> String {
        let mut nonce = [0; NONCE_LEN];
        self.random
            .fill(&mut nonce)
            .expect("the system has random numbers");
        let mut text = Vec::with_capacity(20);
        let place = revision.place().unwrap_or(Position {
            history: 0,
            change: 0,
        });
        text.extend(revision.version().to_be_bytes());
        text.extend(place.history.to_be_bytes());
        text.extend(place.change.to_be_bytes());
        let sealed = self.key.seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::empty(),
            &mut text,
        );
        sealed.expect("a few bytes can be encrypted");
        URL_SAFE_NO_PAD.encode([&nonce[..], &text].concat())
    }

    fn open(&self, sealed: &str) -> Option<Revision> {
        let mut bytes = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, text) = bytes.split_first_chunk_mut::<NONCE_LEN>()?;
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = self.key.open_in_place(nonce, Aad::empty(), text).ok()?;
        let (version, place) = opened.split_first_chunk()?;
        let (history, change) = place.split_first_chunk()?;
        let place = Position {
            history: u32::from_be_bytes(*history),
            change: u64::from_be_bytes(change.try_into().ok()?),
        };
        Some(Revision::new(u64::from_be_bytes(*version), Some(place)))
    }
}

impl Shown {
    /// Returns whether the user does not see all objects.
    pub(super) fn is_restricted(&self) -> bool {
        self.sealed_by.is_some()
    }

    /// Returns the text of a revision.
    ///
    /// `seen` is the highest resource version of the objects that the user has seen with it. It is the only part that
    /// can be read if not all objects are shown; another replica then waits for that one.
    pub(super) fn text(&self, revision: Revision, seen: u64) -> String {
        match &self.sealed_by {
            None => revision.to_string(),
            Some(key) => format!("{seen}{MARK}{}", key.seal(revision)),
        }
    }
}

impl fmt::Debug for Revisions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Revisions")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_who_sees_a_part_learns_nothing_from_a_revision() {
        let revisions = Revisions::new();
        let revision: Revision = "81734-1f0a93c4-512".parse().unwrap();
        let all = revisions.shown(&Access::everything());
        assert_eq!(all.text(revision, 7), "81734-1f0a93c4-512");
        let some = revisions.shown(&Access::of_namespaces(["a"]));
        let (one, other) = (some.text(revision, 7), some.text(revision, 7));
        assert_ne!(one, other);
        assert_eq!(one.len(), "7-s".len() + 64);
        assert!(one.starts_with("7-s") && other.starts_with("7-s"));
        assert_eq!(revisions.plain(&one), "81734-1f0a93c4-512");
        let url = revisions.in_parameters(&format!("a=b&revision={one}&c"));
        assert_eq!(url, "a=b&revision=81734-1f0a93c4-512&c");
    }

    #[test]
    fn revision_of_another_process_keeps_its_version() {
        let text = Revisions::new()
            .shown(&Access::nothing())
            .text("9-1f0a93c4-5".parse().unwrap(), 7);
        let revisions = Revisions::new();
        assert_eq!(revisions.plain(&text), "7");
        for (text, plain) in [
            ("7-1f0a93c4-5", "7-1f0a93c4-5"),
            ("7-s", "7"),
            ("x-s?", "x"),
            ("", ""),
        ] {
            assert_eq!(revisions.plain(text), plain);
        }
    }
}
