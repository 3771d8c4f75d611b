//! Escaped characters.

use super::{BAD_ESCAPE, error};

/// Reads an escaped character.
pub(super) fn character(text: &str) -> Result<(u32, &str), String> {
    let inner = &text[1..];
    let Some(c) = inner.chars().next() else {
        return Err(error("trailing backslash at end of expression", ""));
    };
    let rest = &inner[c.len_utf8()..];
    let is_octal = |rest: &str| rest.starts_with(|c: char| matches!(c, '0'..='7'));
    let code = match c {
        '0' => return Ok(octal(inner)),
        '1'..='7' if is_octal(rest) => return Ok(octal(inner)),
        'x' => return hexadecimal(text),
        'a' => 7,
        'f' => 0xC,
        'n' => 0xA,
        'r' => 0xD,
        't' => 9,
        'v' => 0xB,
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => u32::from(c),
        _ => {
            let part = &text[..text.len() - rest.len()];
            return Err(error(BAD_ESCAPE, part));
        }
    };
    Ok((code, rest))
}

/// Reads up to three octal digits.
fn octal(text: &str) -> (u32, &str) {
    let digits = text
        .bytes()
        .take(3)
        .take_while(|byte| matches!(byte, b'0'..=b'7'));
    let count = digits.count();
    let code = u32::from_str_radix(&text[..count], 8).unwrap_or_default();
    (code, &text[count..])
}

/// Reads `\x41` or `\x{41}`.
fn hexadecimal(text: &str) -> Result<(u32, &str), String> {
    let inner = &text[2..];
    let Some(digits) = inner.strip_prefix('{') else {
        // Go reads both digits before it looks at them.
        let length = inner.chars().take(2).map(char::len_utf8).sum();
        let (digits, rest) = inner.split_at(length);
        let code = digits
            .chars()
            .try_fold(0, |code, c| Some(code * 16 + c.to_digit(16)?));
        let code = code.filter(|_| digits.len() == 2);
        let refused = || error(BAD_ESCAPE, &text[..2 + length]);
        return Ok((code.ok_or_else(refused)?, rest));
    };
    let (mut code, mut read) = (0, 3);
    for c in digits.chars() {
        read += c.len_utf8();
        if c == '}' && read > 4 {
            return Ok((code, &text[read..]));
        }
        let Some(digit) = c.to_digit(16) else { break };
        code = code * 16 + digit;
        if code > u32::from(char::MAX) {
            break;
        }
    }
    Err(error(BAD_ESCAPE, &text[..read]))
}
