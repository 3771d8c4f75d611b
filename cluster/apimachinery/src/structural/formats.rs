//! The formats the server enforces.
//!
//! Source: `apiserver/validation/formats.go` for which, `k8s.io/kube-openapi/pkg/validation/strfmt` for how.

use std::net::IpAddr;
use std::sync::LazyLock;

use regex::Regex;

use super::mail;
use crate::go_url;

/// The formats of texts, without dashes, in the order of the alphabet.
// `supportedVersionedFormats`. A schema may name any other format, which then is ignored.
const TEXTS: [&str; 26] = [
    "bsonobjectid",
    "byte",
    "cidr",
    "creditcard",
    "date",
    "datetime",
    "duration",
    "email",
    "hexcolor",
    "hostname",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "k8slongname",
    "k8sshortname",
    "mac",
    "password",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
];

/// Formats that are nothing but a regular expression.
static EXPRESSIONS: LazyLock<Vec<(&'static str, Regex)>> = LazyLock::new(|| {
    // A number from 0 to 255 without leading zeros.
    let part = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
    let color = format!(r"^rgb\(\s*{part}\s*,\s*{part}\s*,\s*{part}\s*\)$");
    let label = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
    let expressions = [
        ("bsonobjectid", "^[0-9a-fA-F]{24}$".to_owned()),
        (
            "byte",
            "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$".into(),
        ),
        // Go parses addresses by `net/mail`, so a display name before the angle brackets is fine.
        ("hexcolor", "^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$".into()),
        (
            "hostname",
            r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$".into(),
        ),
        ("mac", mac()),
        ("rgbcolor", color),
        // `IsSSN` asks for a length that has room for both separators.
        ("ssn", r"^[0-9]{3}[- ][0-9]{2}[- ][0-9]{4}$".into()),
        // The variant digit is checked for versions 4 and 5 only.
        ("uuid", uuid("[0-9a-f]{4}", "[0-9a-f]{4}")),
        ("uuid3", uuid("3[0-9a-f]{3}", "[0-9a-f]{4}")),
        ("uuid4", uuid("4[0-9a-f]{3}", "[89ab][0-9a-f]{3}")),
        ("uuid5", uuid("5[0-9a-f]{3}", "[89ab][0-9a-f]{3}")),
        (
            "time",
            r"^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.,][0-9]+)?([zZ]|[+-][0-9]{2}:[0-9]{2})$".into(),
        ),
        (
            "duration",
            r"^[+-]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$".into(),
        ),
        (
            // `ParseDuration` of `strfmt` looks for numbers with a unit anywhere, and minds nothing else.
            "duration of Scala",
            r"(?i)[0-9]+[\t\n\f\r ]*((ns|us|ms|s|m|h|d|w|µs|hr|wk)([^a-zµ]|$)|nano|micro|milli|sec|min|hour|day|week)".into(),
        ),
        (
            "creditcard",
            "^(4[0-9]{12}([0-9]{3})?|5[1-5][0-9]{14}|6(011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(0[0-5]|[68][0-9])[0-9]{11}|(2131|1800|35[0-9]{3})[0-9]{11})$".into(),
        ),
        ("label", format!("^{label}$")),
        ("subdomain", format!(r"^{label}(\.{label})*$")),
    ];
    let compile = |(name, text): (&'static str, String)| {
        (
            name,
            Regex::new(&text).expect("it is a constant, and tested"),
        )
    };
    expressions.into_iter().map(compile).collect()
});

/// Octets with the same separator throughout, as `net.ParseMAC` reads them.
fn mac() -> String {
    let octet = "[0-9A-Fa-f]{2}";
    let separated = |by: &str| {
        let of = |count| format!("({octet}{by}){{{count}}}{octet}");
        [5, 7, 19].map(of).join("|")
    };
    let (colons, dashes) = (separated(":"), separated("-"));
    let words = [2, 3, 9].map(|count| format!(r"({octet}{octet}\.){{{count}}}{octet}{octet}"));
    format!("^({colons}|{dashes}|{})$", words.join("|"))
}

fn uuid(third: &str, fourth: &str) -> String {
    format!("(?i)^[0-9a-f]{{8}}-?[0-9a-f]{{4}}-?{third}-?{fourth}-?[0-9a-f]{{12}}$")
}

/// Returns whether the server checks a format of these types.
pub(crate) fn is_known(types: &[String], format: &str) -> bool {
    // With several types, formats are looked up as for a schema without a type.
    let one = match types {
        [one] => one.as_str(),
        _ => "",
    };
    match one {
        "" | "string" => !format.is_empty() && TEXTS.contains(&&*normal(format)),
        "integer" => matches!(format, "int32" | "int64"),
        "number" => matches!(format, "float" | "double"),
        _ => false,
    }
}

fn normal(format: &str) -> String {
    // `strfmt` normalizes names of formats, so that `date-time` and `datetime` are one.
    format.replace('-', "")
}

/// Returns whether a text has a format.
pub(super) fn admits(format: &str, text: &str) -> bool {
    match &*normal(format) {
        "cidr" => is_cidr(text),
        "creditcard" => is_credit_card(text),
        "duration" => matches("duration", text) || matches("duration of Scala", text),
        "date" => is_date(text),
        "datetime" => text
            .split_once(['T', 't'])
            // The expression alone would let the 31st of February through.
            .is_some_and(|(date, time)| is_date(date) && matches("time", time)),
        "email" => mail::is_address(text),
        "hostname" => {
            let mut labels = text.split('.');
            matches("hostname", text) && text.len() <= 255 && labels.all(|label| label.len() <= 63)
        }
        // `isIPv4` only looks for a dot, so an IPv6 address that ends in a dotted one is an "ipv4" too.
        "ipv4" => text.contains('.') && without_zeros(text).parse::<IpAddr>().is_ok(),
        "ipv6" => text.contains(':') && text.parse::<IpAddr>().is_ok(),
        "isbn" => is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10(text),
        "isbn13" => is_isbn13(text),
        "uri" => go_url::is_request_uri(text),
        "k8slongname" => text.len() <= 253 && matches("subdomain", text),
        "k8sshortname" => text.len() <= 63 && matches("label", text),
        other => matches(other, text),
    }
}

/// Drops leading zeros of the numbers between dots, which Go once read.
fn without_zeros(text: &str) -> String {
    // `ParseIPSloppy` reads `010` as ten; Go itself has refused leading zeros since 1.17, and Rust does too.
    let number = |part: &str| match part.trim_start_matches('0') {
        "" if !part.is_empty() => "0".to_owned(),
        rest => rest.to_owned(),
    };
    text.split('.').map(number).collect::<Vec<_>>().join(".")
}

/// Matches a regular expression; a format that has none admits everything.
fn matches(name: &str, text: &str) -> bool {
    let expression = EXPRESSIONS.iter().find(|(each, _)| *each == name);
    expression.is_none_or(|(_, expression)| expression.is_match(text))
}

fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    let most = match without_zeros(address).parse() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    let digits = length.bytes().all(|byte| byte.is_ascii_digit());
    digits && length.parse::<u8>().is_ok_and(|length| length <= most)
}

fn is_date(text: &str) -> bool {
    // The length keeps out ISO forms that the parser also accepts, such as `20240101` and week dates.
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    text.len() == 10 && digits == 8 && text.parse::<jiff::civil::Date>().is_ok()
}

fn digits_of(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '-' | ' ')).collect()
}

fn is_isbn10(text: &str) -> bool {
    let text = digits_of(text);
    let value = |(at, c): (usize, char)| match c {
        'X' if at == 9 => Some(10),
        c => c.to_digit(10),
    };
    let digits: Option<Vec<u32>> = text.chars().enumerate().map(value).collect();
    digits.is_some_and(|digits| {
        let weighted = digits
            .iter()
            // Weights from 1 to 10 instead of 10 to 1: both sums are divisible by 11 together.
            .zip(1_u32..)
            .map(|(digit, weight)| digit * weight);
        digits.len() == 10 && weighted.sum::<u32>().is_multiple_of(11)
    })
}

fn is_isbn13(text: &str) -> bool {
    let digits: Option<Vec<u32>> = digits_of(text).chars().map(|c| c.to_digit(10)).collect();
    digits.is_some_and(|digits| {
        let weights = [1, 3].into_iter().cycle();
        let weighted = digits
            .iter()
            .zip(weights)
            .map(|(digit, weight)| digit * weight);
        digits.len() == 13 && weighted.sum::<u32>().is_multiple_of(10)
    })
}

/// Checks the issuer and the check digit.
fn is_credit_card(text: &str) -> bool {
    let plain: String = text.chars().filter(char::is_ascii_digit).collect();
    let digits: Vec<u32> = plain.chars().filter_map(|c| c.to_digit(10)).collect();
    let doubled = |(at, digit): (usize, &u32)| match (at % 2, digit * 2) {
        // Luhn: from the right, every second digit is doubled, and the digits of the product are added.
        (0, _) => *digit,
        (_, twice) => twice / 10 + twice % 10,
    };
    let sum: u32 = digits.iter().rev().enumerate().map(doubled).sum();
    matches("creditcard", &plain) && sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(format: &str, good: &[&str], bad: &[&str]) {
        for text in good {
            assert!(admits(format, text), "{format}: {text}");
        }
        for text in bad {
            assert!(!admits(format, text), "{format}: {text}");
        }
    }

    #[test]
    fn formats_admit_what_the_server_admits() {
        let times = ["2020-01-02T03:04:05Z", "2020-01-02t03:04:05.123+01:00"];
        check(
            "date-time",
            &times,
            &["2020-01-02", "2020-13-02T03:04:05Z", "x"],
        );
        check("date", &["2024-02-29"], &["2023-02-29", "2023-2-9"]);
        check(
            "duration",
            &["1h30m", "22 ns", "0", "1.5s"],
            &["1x", "", "h"],
        );
        check(
            "ipv4",
            &["10.0.0.1", "010.000.0.001", "::ffff:1.2.3.4"],
            &["10.0.0", "::1", "1.2.3.", "1.2.3.256", "1.2..3"],
        );
        check("ipv6", &["::1", "::ffff:10.0.0.1"], &["10.0.0.1"]);
        check(
            "cidr",
            &["10.0.0.0/8", "::/0"],
            &["10.0.0.0/33", "10.0.0.0"],
        );
        check("mac", &["01:23:45:67:89:ab"], &["01:23"]);
        check(
            "uuid",
            &["6ba7b810-9dad-11d1-80b4-00c04fd430c8"],
            &["6ba7b810"],
        );
        check("uuid4", &[], &["6ba7b810-9dad-11d1-80b4-00c04fd430c8"]);
        check("uri", &["http://a.b/c", "/x", "urn:x"], &["a b", "x", ""]);
        check("email", &["a@b.c"], &["a", "a@b@c"]);
        let long = |length: usize| format!("{}com", "a.".repeat((length - 3) / 2));
        check(
            "hostname",
            &["a.example.com", "localhost", &long(255)],
            &["-a", "a..b", &long(257)],
        );
        check("byte", &["YWJj", "YWI="], &["a", "YWJ"]);
        check("hexcolor", &["#fff", "00ff00"], &["#ff"]);
        check("rgbcolor", &["rgb(0,10,255)"], &["rgb(0,10,256)"]);
        check("isbn", &["0321751043", "978-0321751041"], &["0321751044"]);
        check(
            "creditcard",
            &["4111 1111 1111 1111"],
            &["4111 1111 1111 1112"],
        );
        check("k8s-short-name", &["a-b"], &["A", "a.b"]);
        check("k8s-long-name", &["a.b"], &["a..b"]);
        check("bsonobjectid", &["0123456789abcdef01234567"], &["0"]);
        check("ssn", &["111-22-3333"], &["111"]);
        check("password", &["anything"], &[]);
    }

    #[test]
    fn a_format_the_server_does_not_know_for_the_type_is_ignored() {
        let is_known = |kind: &str, format| is_known(&[kind.to_owned()], format);
        assert!(is_known("string", "date-time") && is_known("integer", "int32"));
        assert!(!is_known("string", "int32") && !is_known("object", "date"));
        // Built-in kinds have this format; CRDs may name it to no effect.
        assert!(!is_known("string", "quantity"));
        assert!(!is_known("string", "made-up") && !is_known("number", "int64"));
    }
}
