//! Bearer tokens of requests.

use http::{HeaderMap, header};
use sha2::{Digest, Sha256};

use crate::error::AuthError;

/// The maximum length of a token, in bytes.
const LONGEST_TOKEN: usize = 16 * 1024;

/// The header that may contain the token instead of `Authorization`.
///
/// The API server's proxies to pods and services keep `Authorization` for themselves and pass this header on.
pub const TOKEN_HEADER: &str = "x-lariat-token";

/// Returns the bearer token of a request.
///
/// It is read from `Authorization: Bearer TOKEN` or, if there is no such header, from [`TOKEN_HEADER`], whose value is
/// the token.
///
/// # Errors
///
/// [`AuthError::Unauthenticated`] unless there is exactly one such header, with a token of at most 16 KiB.
///
/// # Examples
///
/// ```
/// use http::{HeaderMap, HeaderValue, header::AUTHORIZATION};
///
/// let mut headers = HeaderMap::new();
/// assert!(lariat_http::bearer(&headers).is_err());
/// headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer abc"));
/// assert_eq!(lariat_http::bearer(&headers), Ok("abc"));
/// ```
pub fn bearer(headers: &HeaderMap) -> Result<&str, AuthError> {
    let name = if headers.contains_key(header::AUTHORIZATION) {
        header::AUTHORIZATION.as_str()
    } else {
        TOKEN_HEADER
    };
    let mut values = headers.get_all(name).iter();
    // With two headers it would be open which one counts.
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err(AuthError::unauthenticated(
            "the request must have one Authorization header with a bearer token",
        ));
    };
    let token = value.to_str().ok().and_then(|value| {
        if name == TOKEN_HEADER {
            return Some(value);
        }
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token)
    });
    let is_token = |token: &&str| {
        let length = token.len();
        (1..=LONGEST_TOKEN).contains(&length) && token.bytes().all(|byte| byte.is_ascii_graphic())
    };
    token.map(str::trim).filter(is_token).ok_or_else(|| {
        AuthError::unauthenticated("the Authorization header must be `Bearer` followed by a token")
    })
}

/// Compares a token with the expected one, in constant time.
///
/// The time depends neither on the length of the expected token nor on how much of the token is right.
///
/// ```
/// assert!(lariat_http::is_same("abc", "abc"));
/// assert!(!lariat_http::is_same("abd", "abc"));
/// ```
#[must_use]
pub fn is_same(token: &str, expected: &str) -> bool {
    // Hashes have the same length, so the length of the expected token does not show either.
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
    fn a_proxy_passes_the_token_on_in_another_header() {
        let check = |values: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in values {
                headers.append(*name, value.parse().unwrap());
            }
            bearer(&headers).map(str::to_owned).ok()
        };
        assert_eq!(check(&[(TOKEN_HEADER, "abc")]).as_deref(), Some("abc"));
        // Authorization counts where there are both, also if it is of no use.
        let both = [("authorization", "Bearer a"), (TOKEN_HEADER, "b")];
        assert_eq!(check(&both).as_deref(), Some("a"));
        assert_eq!(
            check(&[("authorization", "Basic a"), (TOKEN_HEADER, "b")]),
            None
        );
        for bad in ["", "Bearer a", &"a".repeat(LONGEST_TOKEN + 1)] {
            assert_eq!(check(&[(TOKEN_HEADER, bad)]), None, "{bad}");
        }
        assert_eq!(check(&[(TOKEN_HEADER, "a"), (TOKEN_HEADER, "b")]), None);
    }

    #[test]
    fn only_the_whole_token_is_the_same() {
        assert!(is_same("abc", "abc"));
        for other in ["", "ab", "abd", "abcd", "ABC"] {
            assert!(!is_same(other, "abc"), "{other}");
        }
    }
}
