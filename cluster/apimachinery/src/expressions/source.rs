//! What is wrong in a text, in the words and with the place that the server's compiler shows.

/// A fault of an expression and its place.
#[derive(Debug)]
pub(super) struct Fault {
    /// In characters from the beginning of the text.
    pub(super) at: usize,
    pub(super) message: String,
}

/// Only so many errors are shown.
const MOST: usize = 100;
/// A longer line is not shown.
const LONGEST: usize = 16384;

/// Returns the message about all that is wrong, by place.
// `Errors.ToDisplayString`.
pub(super) fn message(text: &str, mut faults: Vec<Fault>) -> String {
    let more = faults.len().saturating_sub(MOST);
    faults.truncate(MOST);
    faults.sort_by_key(|each| each.at);
    let mut shown: Vec<String> = faults.iter().map(|each| one(text, each)).collect();
    if more > 0 {
        shown.push(format!("{more} more errors were truncated"));
    }
    shown.join("\n")
}

fn one(text: &str, fault: &Fault) -> String {
    let (mut number, mut column, mut line) = (1, fault.at, "");
    for each in text.split('\n') {
        line = each;
        let length = each.chars().count();
        // The end of a line belongs to it.
        if column <= length {
            break;
        }
        column -= length + 1;
        number += 1;
    }
    let shown = format!("ERROR: <input>:{number}:{}: {}", column + 1, fault.message);
    if line.len() > LONGEST {
        return shown;
    }
    let line = line.replace('\t', " ");
    // A wide character is marked by a wide dot.
    let mark = |c: Option<char>, narrow, wide| match c {
        Some(c) if c.len_utf8() > 1 => wide,
        _ => narrow,
    };
    let mut characters = line.chars();
    let dots = characters.by_ref().take(column);
    let dots: String = dots.map(|c| mark(Some(c), '.', '．')).collect();
    let caret = mark(characters.next(), '^', '＾');
    format!("{shown}\n | {line}\n | {dots}{caret}")
}
