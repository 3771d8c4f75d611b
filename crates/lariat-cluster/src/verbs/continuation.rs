//! Continue tokens.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use serde::{Deserialize, Serialize};

use crate::status::ApiError;

/// A continue token in the API server's own format.
///
/// It is base64 of a small JSON object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Continuation {
    v: String,
    /// The revision of the list, or -1 to go on with whatever is there now.
    rv: i64,
    /// `/` and the key to continue at.
    ///
    /// It is the last key inside the listed namespace, behind which a NUL makes the next key.
    start: String,
}

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
        let invalid =
            |reason: &str| ApiError::bad_request(format!("continue key is not valid: {reason}"));
        let bytes = BASE64
            .decode(token)
            .map_err(|error| invalid(&error.to_string()))?;
        let parsed: Self = serde_json::from_slice(&bytes).map_err(|e| invalid(&e.to_string()))?;
        if parsed.v != VERSION {
            return Err(invalid(&format!(
                "server does not recognize this encoded version {:?}",
                parsed.v
            )));
        }
        // As DecodeContinue in apiserver's continue.go; -1 stands for a continuation at the newest version.
        if parsed.rv == 0 {
            return Err(invalid(
                "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
            ));
        }
        Ok(parsed)
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

    #[test]
    fn malformed_tokens_are_refused() {
        let zero = BASE64.encode(br#"{"v":"meta.k8s.io/v1","rv":0,"start":"/a"}"#);
        let other = BASE64.encode(br#"{"v":"v2","rv":1,"start":"/a"}"#);
        for token in ["A", "!!!!", "e30", &zero, &other] {
            assert!(Continuation::parse(token).is_err(), "{token}");
        }
    }

    proptest! {
        #[test]
        fn tokens_survive_the_round_trip(key in ".{0,20}", revision in 1_u64..1 << 62) {
            let continuation = Continuation::after(&key, Some(revision));
            prop_assert_eq!(Continuation::parse(&continuation.token()).ok(), Some(continuation));
        }

        #[test]
        fn no_token_makes_parsing_panic(token in ".{0,40}") {
            let _ = Continuation::parse(&token);
        }
    }
}
