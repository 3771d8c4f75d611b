//! The tokens of an expression.

use std::sync::Arc;

use super::tree::Literal;

/// A token and where it begins, in characters.
#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) at: usize,
    pub(super) kind: TokenKind,
}

#[derive(Debug, Clone)]
pub(super) enum TokenKind {
    Name(String),
    Literal(Literal),
    /// An operator or a bracket.
    Sign(&'static str),
    End,
}

impl TokenKind {
    /// Negates a number; returns `false` for other tokens and unsigned numbers.
    pub(super) fn negate(&mut self) -> bool {
        if let Self::Literal(Literal::Int(number)) = self {
            *number = number.wrapping_neg();
        }
        matches!(self, Self::Literal(Literal::Int(_) | Literal::Double))
    }
}

/// Longer signs come before those that begin them.
const SIGNS: [&str; 25] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!",
    "?", ":", "+", "*", "/", "%", "=",
];

/// The reserved words of CEL, which no identifier may be.
// `celReserved`.
const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// Returns whether a word is reserved.
pub(crate) fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word)
}

/// How deep an expression nests, and how many operators it has.
#[derive(Debug, Default)]
pub(crate) struct Extent {
    /// How many brackets are open at once.
    pub(crate) depth: usize,
    pub(crate) operators: usize,
}

impl Extent {
    fn add(&mut self, open: &mut usize, sign: &str) {
        match sign {
            "(" | "[" | "{" => {
                *open += 1;
                self.operators += 1;
            }
            ")" | "]" | "}" => *open = open.saturating_sub(1),
            "," | ":" => {}
            _ => self.operators += 1,
        }
        self.depth = self.depth.max(*open);
    }
}

/// Measures an expression.
///
/// Of an expression that cannot be tokenized, string literals count too.
pub(crate) fn extent(text: &str) -> Extent {
    let (mut open, mut extent) = (0, Extent::default());
    if let Some(tokens) = tokens(text) {
        for token in tokens {
            if let TokenKind::Sign(sign) = token.kind {
                extent.add(&mut open, sign);
            }
        }
        return extent;
    }
    for at in 0..text.len() {
        let sign = text.get(at..=at).unwrap_or_default();
        if ".+-*/%!?<>=&|([{)]}".contains(sign) && !sign.is_empty() {
            extent.add(&mut open, sign);
        }
    }
    extent.operators += text.matches("in").count();
    extent
}

/// Splits a text; `None` for one that is not read here.
pub(super) fn tokens(text: &str) -> Option<Vec<Token>> {
    let characters: Vec<char> = text.chars().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(&first) = characters.get(at) {
        let rest = &characters[at..];
        if matches!(first, ' ' | '\t' | '\r' | '\n' | '\u{c}') {
            at += 1;
        } else if rest.starts_with(&['/', '/']) {
            at += rest.iter().position(|c| *c == '\n').unwrap_or(rest.len());
        } else {
            let (kind, length) = token(rest, first)?;
            found.push(Token { at, kind });
            at += length;
        }
    }
    let kind = TokenKind::End;
    found.push(Token { at, kind });
    Some(found)
}

fn token(rest: &[char], first: char) -> Option<(TokenKind, usize)> {
    if let Some((literal, length)) = text(rest) {
        return Some((TokenKind::Literal(literal), length));
    }
    let is_digit = |at: usize| rest.get(at).is_some_and(char::is_ascii_digit);
    if is_digit(0) || first == '.' && is_digit(1) {
        return number(rest).map(|(literal, length)| (TokenKind::Literal(literal), length));
    }
    if first == '_' || first.is_ascii_alphabetic() {
        let is_part = |c: &&char| **c == '_' || c.is_ascii_alphanumeric();
        let name: String = rest.iter().take_while(is_part).collect();
        let length = name.len();
        let kind = match name.as_str() {
            "true" | "false" => TokenKind::Literal(Literal::Bool),
            "null" => TokenKind::Literal(Literal::Null),
            "in" => TokenKind::Sign("in"),
            _ => TokenKind::Name(name),
        };
        return Some((kind, length));
    }
    let is_next = |sign: &&&str| sign.chars().eq(rest.iter().copied().take(sign.len()));
    let sign = *SIGNS.iter().find(is_next)?;
    Some((TokenKind::Sign(sign), sign.len()))
}

fn number(rest: &[char]) -> Option<(Literal, usize)> {
    let digits = |from: usize, is_digit: fn(&char) -> bool| {
        let rest = rest.get(from..).unwrap_or_default();
        from + rest.iter().take_while(|c| is_digit(c)).count()
    };
    let is_unsigned = |at: usize| matches!(rest.get(at), Some('u' | 'U'));
    let whole = |begin: usize, end: usize, radix| {
        if is_unsigned(end) {
            return (Literal::Uint, end + 1);
        }
        let digits: String = rest[begin..end].iter().collect();
        // The interpreter's parser refuses what is too large.
        let number = u64::from_str_radix(&digits, radix).unwrap_or(0);
        (Literal::Int(number.cast_signed()), end)
    };
    if rest.starts_with(&['0', 'x']) {
        return Some(whole(2, digits(2, char::is_ascii_hexdigit), 16));
    }
    let mut end = digits(0, char::is_ascii_digit);
    let mut is_whole = true;
    if rest.get(end) == Some(&'.') && rest.get(end + 1).is_some_and(char::is_ascii_digit) {
        end = digits(end + 1, char::is_ascii_digit);
        is_whole = false;
    }
    if matches!(rest.get(end), Some('e' | 'E')) {
        let sign = usize::from(matches!(rest.get(end + 1), Some('+' | '-')));
        let after = digits(end + 1 + sign, char::is_ascii_digit);
        if after > end + 1 + sign {
            return Some((Literal::Double, after));
        }
    }
    Some(if is_whole {
        whole(0, end, 10)
    } else {
        (Literal::Double, end)
    })
}

/// Reads a text in quotes, or bytes; returns its length too.
fn text(rest: &[char]) -> Option<(Literal, usize)> {
    let is_bytes = matches!(rest.first(), Some('b' | 'B'));
    let mut begin = usize::from(is_bytes);
    let is_raw = matches!(rest.get(begin), Some('r' | 'R'));
    begin += usize::from(is_raw);
    let quote = *rest.get(begin).filter(|c| matches!(c, '"' | '\''))?;
    let is_triple = rest[begin..].starts_with(&[quote; 3]);
    let width = if is_triple { 3 } else { 1 };
    let (mut at, mut value, mut bytes) = (begin + width, Some(String::new()), 0);
    loop {
        let c = *rest.get(at)?;
        if rest[at..].starts_with(&[quote; 3][..width]) {
            let literal = if is_bytes {
                Literal::Bytes(bytes)
            } else {
                Literal::Text(value.map(Arc::from))
            };
            return Some((literal, at + width));
        }
        let (c, length, size) = if c == '\\' && !is_raw {
            // In bytes, an escape is one byte.
            match code(&rest[at + 1..]) {
                Some((code, length)) => (char::from_u32(code), length, 1),
                None => (escaped(*rest.get(at + 1)?), 2, 1),
            }
        } else {
            (Some(c), 1, c.len_utf8())
        };
        value = value
            .zip(c)
            .map(|(value, c)| value + c.encode_utf8(&mut [0; 4]));
        bytes += size;
        at += length;
    }
}

/// Reads the code of a character behind a backslash; returns the length of the escape too.
fn code(rest: &[char]) -> Option<(u32, usize)> {
    let (begin, count, radix) = match rest.first()? {
        'x' | 'X' => (1, 2, 16),
        'u' => (1, 4, 16),
        'U' => (1, 8, 16),
        '0'..='3' => (0, 3, 8),
        _ => return None,
    };
    let digits: String = rest.get(begin..begin + count)?.iter().collect();
    let code = u32::from_str_radix(&digits, radix).ok()?;
    Some((code, 1 + begin + count))
}

/// Returns what an escape of one character stands for.
fn escaped(c: char) -> Option<char> {
    Some(match c {
        '\\' | '\'' | '"' | '`' | '?' => c,
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        _ => return None,
    })
}
