//! Numbers in texts, with the errors of Go's `strconv`.

use lariat_apimachinery::go_text;

/// Reads an integer as `ParseInt`.
pub(crate) fn signed(text: &str) -> Result<i64, String> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    text.parse().map_err(|_| refuse("ParseInt", text, digits))
}

/// Reads an integer without a sign as `ParseUint`.
pub(crate) fn unsigned(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|_| !text.starts_with('+'));
    number.ok_or_else(|| refuse("ParseUint", text, text))
}

fn refuse(function: &str, text: &str, digits: &str) -> String {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let reason = if is_number {
        "value out of range"
    } else {
        "invalid syntax"
    };
    let text = go_text::quoted(text);
    format!("strconv.{function}: parsing {text}: {reason}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_go_reads_them() {
        let refusal =
            |text: &str, reason| Err(format!("strconv.ParseInt: parsing {text:?}: {reason}"));
        for (text, expected) in [
            ("+1", Ok(1)),
            ("-01", Ok(-1)),
            ("", refusal("", "invalid syntax")),
            ("1.5", refusal("1.5", "invalid syntax")),
            ("-", refusal("-", "invalid syntax")),
            (
                "9223372036854775808",
                refusal("9223372036854775808", "value out of range"),
            ),
        ] {
            assert_eq!(signed(text), expected);
        }
        assert_eq!(unsigned("01"), Ok(1));
        for (text, reason) in [
            ("+1", "invalid syntax"),
            ("-1", "invalid syntax"),
            ("18446744073709551616", "value out of range"),
        ] {
            let expected = format!("strconv.ParseUint: parsing {text:?}: {reason}");
            assert_eq!(unsigned(text), Err(expected));
        }
    }
}
