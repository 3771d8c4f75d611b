//! Continue tokens.

use base64::alphabet::URL_SAFE;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use base64::{DecodeError, Engine};
use serde::{Deserialize, Serialize};

use crate::status::ApiError;

/// A continue token in the API server's own format.
///
/// It is base64 of a small JSON object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Continuation {
    v: String,
    /// The revision of the list, or -1 to go on with whatever is there now.
    rv: i64,
    /// `/` and the key to continue at.
    ///
    /// It is the last key inside the listed namespace, behind which a NUL makes the next key.
    start: String,
}

/// The encoding of tokens: Go's `RawURLEncoding`, which takes any bits behind the last byte.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

const VERSION: &str = "meta.k8s.io/v1";

impl Continuation {
    /// Goes on behind a key. `revision` is `None` for an inconsistent continuation.
    pub(super) fn after(key: &str, revision: Option<u64>) -> Self {
        Self {
            v: VERSION.to_owned(),
            rv: revision.map_or(-1, |revision| i64::try_from(revision).unwrap_or(i64::MAX)),
            start: format!("/{key}\0"),
        }
    }

    pub(super) fn parse(token: &str) -> Result<Self, ApiError> {
        let invalid = |reason: &str| {
            let prefix = "invalid continue token: continue key is not valid";
            ApiError::bad_request(format!("{prefix}: {reason}"))
        };
        let bytes = BASE64
            .decode(token)
            .map_err(|error| invalid(&undecodable(token, &error)))?;
        let parsed: Self = serde_json::from_slice(&bytes).map_err(|e| invalid(&e.to_string()))?;
        parsed.check().map_err(|reason| invalid(&reason))?;
        Ok(parsed)
    }

    /// Validates the content of a token.
    ///
    /// Source: `DecodeContinue` in `k8s.io/apiserver/pkg/storage`.
    fn check(&self) -> Result<(), String> {
        if self.v != VERSION {
            let version = &self.v;
            return Err(format!(
                "server does not recognize this encoded version {version}"
            ));
        }
        // -1 stands for a continuation at the newest version.
        if self.rv == 0 {
            let reason = "incorrect encoded start resourceVersion (version meta.k8s.io/v1)";
            return Err(reason.to_owned());
        }
        if self.start.is_empty() {
            return Err("encoded start key empty (version meta.k8s.io/v1)".to_owned());
        }
        // A key has to be as `path.Clean` would make it, so that none leads out of the listed collection.
        let key = self.start();
        let mut parts = key.split('/');
        if !key.is_empty() && parts.any(|part| matches!(part, "" | "." | "..")) {
            return Err(self.start.clone());
        }
        Ok(())
    }

    pub(super) fn token(&self) -> String {
        BASE64.encode(serde_json::to_vec(self).expect("a token has only texts and numbers"))
    }

    /// Returns the revision the list began at; `None` for the present state.
    pub(super) fn revision(&self) -> Option<u64> {
        u64::try_from(self.rv).ok()
    }

    /// Returns the first key of the rest.
    pub(super) fn start(&self) -> &str {
        self.start.strip_prefix('/').unwrap_or(&self.start)
    }

    /// Goes on from the same place without consistency.
    pub(super) fn inconsistent(&self) -> Self {
        Self {
            rv: -1,
            ..self.clone()
        }
    }
}

/// Returns Go's error for a token with a wrong encoding.
fn undecodable(token: &str, error: &DecodeError) -> String {
    let at = match error {
        DecodeError::InvalidByte(at, _) => *at,
        DecodeError::InvalidLastSymbol { offset, .. } => *offset,
        // A byte that is left over is the last one.
        DecodeError::InvalidLength(length) => length.saturating_sub(1),
        DecodeError::InvalidPadding => token.find('=').unwrap_or(0),
    };
    format!("illegal base64 data at input byte {at}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_token_is_the_api_server_s() {
        let token = Continuation::after("c1", Some(261)).token();
        let json = BASE64.decode(&token).unwrap();
        let expected = br#"{"v":"meta.k8s.io/v1","rv":261,"start":"/c1\u0000"}"#;
        assert_eq!(json, expected);
    }

    fn check(token: &str, expected: Option<&str>) {
        let refused = Continuation::parse(token).err();
        let message = refused.as_ref().map(|error| {
            let prefix = "invalid continue token: continue key is not valid: ";
            error.message().strip_prefix(prefix).expect("all begin so")
        });
        assert_eq!(message, expected, "{token}");
    }

    #[test]
    fn malformed_tokens_are_refused() {
        let illegal = |at: usize| format!("illegal base64 data at input byte {at}");
        check("A", Some(&illegal(0)));
        check("!!!!", Some(&illegal(0)));
        check("e30=", Some(&illegal(3)));
        let unknown = "server does not recognize this encoded version ";
        check("e30", Some(unknown));
        // Bits behind the last byte do not count.
        check("e31", Some(unknown));
        let version = "incorrect encoded start resourceVersion (version meta.k8s.io/v1)";
        let empty = "encoded start key empty (version meta.k8s.io/v1)";
        for (token, expected) in [
            (
                r#"{"v":"v2","rv":1,"start":"/a"}"#,
                Some("server does not recognize this encoded version v2"),
            ),
            (r#"{"v":"meta.k8s.io/v1","rv":0,"start":""}"#, Some(version)),
            (r#"{"v":"meta.k8s.io/v1","rv":5,"start":""}"#, Some(empty)),
            (r#"{"v":"meta.k8s.io/v1","rv":-1}"#, Some(empty)),
            (
                r#"{"v":"meta.k8s.io/v1","rv":5,"start":"/a/../b"}"#,
                Some("/a/../b"),
            ),
            (
                r#"{"v":"meta.k8s.io/v1","rv":5,"start":"a//b"}"#,
                Some("a//b"),
            ),
            (
                r#"{"v":"meta.k8s.io/v1","rv":5,"start":"a/b/"}"#,
                Some("a/b/"),
            ),
            (
                r#"{"v":"meta.k8s.io/v1","rv":5,"start":"a/./b"}"#,
                Some("a/./b"),
            ),
            (r#"{"v":"meta.k8s.io/v1","rv":5,"start":".."}"#, Some("..")),
            (r#"{"v":"meta.k8s.io/v1","rv":5,"start":"/"}"#, None),
            (r#"{"v":"meta.k8s.io/v1","rv":-5,"start":"a"}"#, None),
            (r#"{"v":"meta.k8s.io/v1","rv":5,"start":"..\u0000"}"#, None),
        ] {
            check(&BASE64.encode(token), expected);
        }
    }

    proptest! {
        #[test]
        fn tokens_survive_the_round_trip(key in "[a-z-]{1,10}(/[a-z.-]{1,10})?", revision in 1_u64..1 << 62) {
            let continuation = Continuation::after(&key, Some(revision));
            prop_assert_eq!(Continuation::parse(&continuation.token()).ok(), Some(continuation));
        }

        #[test]
        fn no_token_makes_parsing_panic(token in ".{0,40}") {
            let _ = Continuation::parse(&token);
        }
    }
}
