//! Classes of characters.

use super::escape::character;
use super::{BAD_RANGE, error};

/// Adds a range to a class, but for the surrogates in it.
pub(super) fn add_range(class: &mut String, low: u32, high: u32) {
    for (least, most) in [(0, 0xD7FF), (0xE000, 0x0010_FFFF)] {
        let (low, high) = (low.max(least), high.min(most));
        if low <= high {
            class.push_str(&format!(r"\x{{{low:X}}}-\x{{{high:X}}}"));
        }
    }
}

pub(super) fn class_character<'a>(text: &'a str, class: &str) -> Result<(u32, &'a str), String> {
    match text.chars().next() {
        None => Err(error("missing closing ]", class)),
        Some('\\') => character(text),
        Some(c) => Ok((u32::from(c), &text[c.len_utf8()..])),
    }
}

/// Reads a class such as `[:alpha:]`.
pub(super) fn posix(text: &str) -> Result<Option<(String, &str)>, String> {
    const NAMES: [&str; 14] = [
        "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
        "space", "upper", "word", "xdigit",
    ];
    let inner = text.strip_prefix("[:");
    let Some((name, rest)) = inner.and_then(|inner| inner.split_once(":]")) else {
        return Ok(None);
    };
    let whole = &text[..text.len() - rest.len()];
    if NAMES.contains(&name.strip_prefix('^').unwrap_or(name)) {
        Ok(Some((whole.to_owned(), rest)))
    } else {
        Err(error(BAD_RANGE, whole))
    }
}

/// Reads a class such as `\d` or `\p{Greek}`, and rewrites it for use in brackets.
pub(super) fn group(text: &str) -> Result<Option<(String, &str)>, String> {
    let Some(letter) = text.strip_prefix('\\').and_then(|rest| rest.chars().next()) else {
        return Ok(None);
    };
    let class = match letter {
        'd' => "0-9",
        'D' => "[^0-9]",
        's' => r"\t\n\f\r ",
        'S' => r"[^\t\n\f\r ]",
        'w' => "0-9A-Za-z_",
        'W' => "[^0-9A-Za-z_]",
        'p' | 'P' => return unicode(text).map(Some),
        _ => return Ok(None),
    };
    Ok(Some((class.to_owned(), &text[2..])))
}

/// Reads a class of Unicode.
fn unicode(text: &str) -> Result<(String, &str), String> {
    let inner = &text[2..];
    let (name, rest) = match inner.strip_prefix('{') {
        Some(inner) => inner
            .split_once('}')
            .ok_or_else(|| error(BAD_RANGE, text))?,
        None => inner.split_at(inner.chars().next().map_or(0, char::len_utf8)),
    };
    let whole = &text[..text.len() - rest.len()];
    let (is_negated, name) = match name.strip_prefix('^') {
        Some(name) => (true, name),
        None => (false, name),
    };
    let known = named(name).ok_or_else(|| error(BAD_RANGE, whole))?;
    let is_negated = is_negated != text.starts_with(r"\P");
    let sign = if is_negated { 'P' } else { 'p' };
    Ok((format!(r"\{sign}{{{known}}}"), rest))
}

/// Returns the name that `regex` has for a category or a script of Go.
fn named(name: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ' ');
    // The crate leaves out a prefix that Go does not know.
    let has_prefix = name
        .get(..2)
        .is_some_and(|start| start.eq_ignore_ascii_case("is"));
    if name.is_empty() || has_prefix || !name.chars().all(is_plain) {
        return None;
    }
    let is_one_of = |names: &[&str]| names.iter().any(|each| each.eq_ignore_ascii_case(name));
    if is_one_of(&["Any", "Assigned", "ASCII"]) {
        return Some(name.to_owned());
    }
    // Go knows scripts by their names, and the crate by their codes too, which have four letters.
    const SHORT: [&str; 8] = [
        "Ahom", "Cham", "Kawi", "Lisu", "Modi", "Newa", "Thai", "Toto",
    ];
    let is_code = name.len() == 4 && !is_one_of(&SHORT);
    let properties: &[&str] = if is_code { &["gc"] } else { &["gc", "sc"] };
    let mut forms = properties
        .iter()
        .map(|property| format!("{property}={name}"));
    forms.find(|form| regex_syntax::parse(&format!(r"\p{{{form}}}")).is_ok())
}
