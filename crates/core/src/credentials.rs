//! Removes credentials from texts for logs and users.

use std::borrow::Cow;
use std::ops::Range;

/// The replacement of a credential.
const CUT: &str = "…";

/// Names of credentials, in lower case and without `-`, `_` and `.`.
const NAMES: [&str; 11] = [
    "token",
    "password",
    "passwd",
    "passphrase",
    "secret",
    "apikey",
    "accesskey",
    "privatekey",
    "clientkeydata",
    "authorization",
    "cookie",
];

/// Names whose value is removed even if it looks like prose.
const STRICT: [&str; 3] = ["password", "passwd", "passphrase"];

/// Prefixes of service tokens that are recognized without a name.
const PREFIXES: [&str; 9] = [
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AKIA",
];

/// Replaces everything in a text that looks like a credential by `…`.
///
/// Recognized are the tokens of `Bearer` and `Basic`, values of names such as `token`, `password` and `secret`, user
/// and password in a URL, JSON web tokens, PEM blocks, and tokens of some well-known services. After `token:` or
/// `secret:`, a lower-case word that is followed by another word counts as prose.
///
/// A secret in any other form is not recognized. Do not rely on this function where secrets are known: keep those out
/// of errors.
///
/// ```
/// let text = lariat::core::without_credentials("401: Authorization: Bearer abc.def was refused");
/// assert_eq!(text, "401: Authorization: Bearer … was refused");
/// ```
#[must_use]
pub fn without_credentials(text: &str) -> Cow<'_, str> {
    let mut rest = 0;
    let mut cut = String::new();
    let mut at = 0;
    while at < text.len() {
        let found = next(text, at);
        let Some(credential) = found.credential else {
            at = found.end;
            continue;
        };
        cut.push_str(&text[rest..credential.start]);
        cut.push_str(CUT);
        rest = credential.end;
        // Whatever was removed is not examined again.
        at = credential.end.max(found.end);
    }
    if rest == 0 {
        return Cow::Borrowed(text);
    }
    cut.push_str(&text[rest..]);
    Cow::Owned(cut)
}

/// The result of [`next`].
struct Found {
    /// The range of the credential, if there is one.
    credential: Option<Range<usize>>,
    /// Where the search continues, after the examined position.
    end: usize,
}

/// Examines a position: is it the beginning of a credential, a name or something else?
fn next(text: &str, at: usize) -> Found {
    let here = &text[at..];
    if here.starts_with("-----BEGIN ") {
        let last = here.find("-----END ");
        let end = last.and_then(|last| Some(last + 9 + here[last + 9..].find("-----")? + 5));
        let credential = at..end.map_or(text.len(), |end| at + end);
        return found(credential);
    }
    if let Some(authority) = here.strip_prefix("://") {
        let end = authority.find(|it: char| it.is_whitespace() || "/?#\"'<>\\".contains(it));
        // User and password precede the last `@` of the authority. A password may contain an unescaped `@`.
        let authority = &authority[..end.unwrap_or(authority.len())];
        let start = at + 3;
        return match authority.rfind('@') {
            Some(user) => found(start..start + user),
            None => skipped(start),
        };
    }
    let length = here.find(|letter| !is_part_of_word(letter));
    let length = length.unwrap_or(here.len());
    if length == 0 {
        let width = here.chars().next().map_or(1, char::len_utf8);
        return skipped(at + width);
    }
    of_word(text, at..at + length)
}

/// Reports a credential, unless the range is empty.
fn found(credential: Range<usize>) -> Found {
    let end = credential.end;
    let credential = Some(credential).filter(|it| !it.is_empty());
    Found { credential, end }
}

/// Reports that there is no credential before `end`.
fn skipped(end: usize) -> Found {
    Found {
        credential: None,
        end,
    }
}

/// Returns whether a letter may be part of a name or token.
fn is_part_of_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "-_.".contains(letter)
}

/// Examines a word: is it a token, or the name of a value?
fn of_word(text: &str, word: Range<usize>) -> Found {
    let (name, end) = (&text[word.clone()], word.end);
    if is_token(name) {
        return found(word);
    }
    let is_scheme = |scheme| name.eq_ignore_ascii_case(scheme);
    if is_scheme("bearer") || is_scheme("basic") {
        let start = end + spaces(&text[end..]);
        let value = value(text, start);
        let has_space = start > end;
        // Error texts mention the scheme itself: "bearer token expired". Such a word is no token.
        let is_prose = ["token", "tokens", "auth", "authentication", "authorization"].contains(
            &text[value.clone()]
                .trim_end_matches([':', '.'])
                .to_ascii_lowercase()
                .as_str(),
        );
        return if has_space && !is_prose {
            found(value)
        } else {
            skipped(end)
        };
    }
    let plain: String = name.to_ascii_lowercase().replace(['-', '_', '.'], "");
    // By the end, as in `X-Auth-Token` or `db_password`; `tokens` and `secretName` are followed by no credential.
    if !NAMES.iter().any(|known| plain.ends_with(known)) {
        return skipped(end);
    }
    let is_strict = STRICT.iter().any(|known| plain.ends_with(known));
    match assigned(text, end) {
        Some(value) if is_strict || !is_prose(text, end, &value) => found(value),
        _ => skipped(end),
    }
}

/// Returns whether a word is a token by its form.
fn is_token(word: &str) -> bool {
    // A JSON web token begins with the base64 of `{"`.
    let is_jwt = word.starts_with("eyJ") && word.len() >= 20 && word.matches('.').count() >= 2;
    let is_known = PREFIXES.iter().any(|prefix| word.starts_with(prefix));
    // Shorter words that begin like a token are words of prose or code.
    is_jwt || (is_known && word.len() >= 16)
}

/// Returns the value that `:` or `=` assigns to the name that ends at `end`.
///
/// The value may be quoted.
fn assigned(text: &str, end: usize) -> Option<Range<usize>> {
    let quotes = |text: &str| text.len() - text.trim_start_matches(['"', '\'', '\\', '`']).len();
    let sign = end + quotes(&text[end..]);
    let sign = sign + spaces(&text[sign..]);
    let rest = text[sign..].strip_prefix([':', '='])?;
    let start = sign + 1 + spaces(rest);
    // In `Authorization: Bearer …` the scheme is no secret. It is examined as a word of its own, which finds the token.
    let scheme = text[start..].split_whitespace().next().unwrap_or_default();
    if ["bearer", "basic"].contains(&scheme.to_ascii_lowercase().as_str()) {
        return None;
    }
    let inner = start + quotes(&text[start..]);
    // A PEM block is found as a whole when the search gets to it.
    if text[inner..].starts_with("-----BEGIN ") {
        return None;
    }
    // A backslash ends the value too: in JSON within JSON the quotes are escaped.
    let quote = text[..inner].chars().next_back().filter(|_| inner > start);
    let value = match quote {
        Some(quote @ ('"' | '\'' | '`')) => {
            let length = text[inner..].find([quote, '\\']);
            inner..length.map_or(text.len(), |length| inner + length)
        }
        _ => value(text, inner),
    };
    (!value.is_empty()).then_some(value)
}

/// Returns the value at `start`, up to a space, a quote or punctuation.
fn value(text: &str, start: usize) -> Range<usize> {
    let is_end = |letter: char| letter.is_whitespace() || "\"'`\\,;)}]&<>".contains(letter);
    let length = text[start..].find(is_end);
    start..length.map_or(text.len(), |length| start + length)
}

/// Returns the number of leading spaces.
fn spaces(text: &str) -> usize {
    text.len() - text.trim_start_matches(' ').len()
}

/// Returns whether a value reads like a sentence: `secret: connection refused`.
fn is_prose(text: &str, name_end: usize, value: &Range<usize>) -> bool {
    let before = &text[name_end..value.start];
    let word = &text[value.clone()];
    let is_word = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
    let next = text[value.end..].strip_prefix(' ').unwrap_or_default();
    // Prose has a colon and a space; after an equals sign stands a value.
    before == ": " && is_word && next.starts_with(|letter: char| letter.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(without_credentials(text), expected);
        let again = without_credentials(expected);
        assert_eq!(again, expected, "it is the same when it is cut again");
    }

    #[test]
    fn values_of_credentials_are_cut_out() {
        check("Bearer s3cr3t", "Bearer …");
        check(
            "sent `bearer  s3cr3t`, refused",
            "sent `bearer  …`, refused",
        );
        check(
            "Authorization: Basic dXNlcg==: 401",
            "Authorization: Basic … 401",
        );
        check("authorization=s3cr3t", "authorization=…");
        check("token: s3cr3t", "token: …");
        check("token: canary", "token: …");
        check(
            "Bearer token: s3cr3t was refused",
            "Bearer token: … was refused",
        );
        check("password: hunter is wrong", "password: … is wrong");
        check(
            r#"{"access_token":"a b","expires":3}"#,
            r#"{"access_token":"…","expires":3}"#,
        );
        check(
            r#"{\"token\":\"abc\",\"x\":1}"#,
            r#"{\"token\":\"…\",\"x\":1}"#,
        );
        check("client-key-data: LS0tLS1CRUdJ", "client-key-data: …");
        check("map[apiKey:abc name:x]", "map[apiKey:… name:x]");
        check("GET /?api_key=abc&limit=3", "GET /?api_key=…&limit=3");
        check("DB_PASSWORD='a b'; x", "DB_PASSWORD='…'; x");
        check("postgres://me:pw@host/db?x", "postgres://…@host/db?x");
        check("got eyJhbGciOi.eyJzdWIiOi.c2lnbmF0dXJl.", "got …");
        check("key ghp_0123456789abcdef0123", "key …");
        check(
            "a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nb",
            "a\n…\nb",
        );
        check(
            "private_key: \"-----BEGIN PRIVATE KEY-----\nMIIE",
            "private_key: \"…",
        );
    }

    #[test]
    fn what_is_no_credential_stays() {
        for text in [
            "",
            "connection refused",
            "Secret default/db not found",
            "secret: connection refused by peer",
            "invalid token: it has expired",
            "https://host:6443/api/v1/secrets",
            "a bearer token is missing",
            "token",
            "token:",
            "Bearer",
            "größer als ein token ist es nicht",
        ] {
            assert!(
                matches!(without_credentials(text), Cow::Borrowed(same) if same == text),
                "{text}"
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken(text in "((token|Bearer|://|@|-----BEGIN |-----END |[:=\"'\\\\ ä…]|.){0,4}){0,6}") {
            let once = without_credentials(&text).into_owned();
            proptest::prop_assert!(once.len() <= text.len() + 3 * text.len());
        }

        #[test]
        fn a_named_secret_never_stays(secret in "[a-z0-9]{6,20}[0-9]", name in "(token|password|api_key|Bearer)") {
            for sign in [": ", "=", ":", " = ", "\": \""] {
                let sign = if name == "Bearer" { " " } else { sign };
                let text = format!("it failed ({name}{sign}{secret}) now");
                proptest::prop_assert!(!without_credentials(&text).contains(&secret), "{}", text);
            }
        }
    }
}
