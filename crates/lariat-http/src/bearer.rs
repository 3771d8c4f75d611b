//! Bearer tokens.

use http::{HeaderMap, header};
use sha2::{Digest, Sha256};

use crate::error::AuthError;

/// The maximum length of a token, in bytes.
const LONGEST_TOKEN: usize = 16 * 1024;

/// Returns the bearer token of a request.
///
/// # Errors
///
/// There is not exactly one `Authorization` header, or it is not `Bearer` and a token of at most 16 KiB.
pub fn bearer(headers: &HeaderMap) -> Result<&str, AuthError> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err(AuthError::unauthenticated(
            "the request needs one Authorization header, with a bearer token",
        ));
    };
    let token = value.to_str().ok().and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        let token = token.trim();
        let is_token = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        (scheme.eq_ignore_ascii_case("bearer") && is_token).then_some(token)
    });
    match token {
        Some(token) if token.len() <= LONGEST_TOKEN => Ok(token),
        _ => Err(AuthError::unauthenticated(
            "the Authorization header is not `Bearer` and a token",
        )),
    }
}

/// Returns whether a token is the expected one, in a time that does not depend on how much of it is right.
#[must_use]
pub fn is_same(token: &str, expected: &str) -> bool {
    // Hashes have one length, so that the length of the expected token does not show either.
    let [ours, theirs] = [expected, token].map(|token| Sha256::digest(token.as_bytes()));
    let differences = ours.iter().zip(theirs.iter());
    let difference = differences.fold(0, |all, (a, b)| all | (a ^ b));
    std::hint::black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_bearer_token_is_taken() {
        let check = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::AUTHORIZATION, value.parse().unwrap());
            }
            bearer(&headers).map(str::to_owned).ok()
        };
        assert_eq!(check(&["Bearer abc.def"]).as_deref(), Some("abc.def"));
        assert_eq!(check(&["bearer  abc"]).as_deref(), Some("abc"));
        let long = format!("Bearer {}", "a".repeat(LONGEST_TOKEN + 1));
        for bad in ["Bearer", "Bearer ", "Basic abc", "Bearer a b", "abc", &long] {
            assert_eq!(check(&[bad]), None, "{bad}");
        }
        assert_eq!(check(&[]), None);
        assert_eq!(check(&["Bearer a", "Bearer b"]), None);
    }

    #[test]
    fn only_the_whole_token_is_the_same() {
        assert!(is_same("abc", "abc"));
        for other in ["", "ab", "abd", "abcd", "ABC"] {
            assert!(!is_same(other, "abc"), "{other}");
        }
    }
}
