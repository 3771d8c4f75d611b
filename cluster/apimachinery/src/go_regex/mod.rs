//! Regular expressions as Go reads them.
//!
//! Source: `regexp/syntax`. An expression is rewritten in the syntax of the crate `regex`, atom by atom, so that what
//! both know means what it means in Go: `\d`, `\w`, `\s` and `\b` are about ASCII alone.

mod class;
mod count;
mod escape;

use regex::Regex;

use self::class::{add_range, class_character, group, posix};
use self::count::Count;
use self::escape::character;

/// The most that nested repeat counts may come to.
const MOST_REPEATED: u32 = 1000;

/// Compiles an expression of Go.
///
/// # Errors
///
/// It is none, in the words of Go.
pub(crate) fn compile(expression: &str) -> Result<Regex, String> {
    let translated = Translator::new(expression).translate()?;
    // What is too large is left to the crate, which says so in its own words.
    Regex::new(&translated).map_err(|error| error.to_string())
}

/// Checks an expression of Go, which may be larger than [`compile`] accepts.
///
/// # Errors
///
/// It is none, in the words of Go.
pub(crate) fn check(expression: &str) -> Result<(), String> {
    let translated = Translator::new(expression).translate()?;
    let parsed = regex_syntax::parse(&translated);
    parsed.map(drop).map_err(|error| error.to_string())
}

fn error(code: &str, part: &str) -> String {
    format!("error parsing regexp: {code}: `{part}`")
}

const BAD_RANGE: &str = "invalid character class range";
const BAD_ESCAPE: &str = "invalid escape sequence";
const BAD_CAPTURE: &str = "invalid named capture";
const BAD_PERL: &str = "invalid or unsupported Perl syntax";
const BAD_COUNT: &str = "invalid repeat count";
const NESTED: &str = "invalid nested repetition operator";
const NOTHING: &str = "missing argument to repetition operator";

#[derive(Debug, Clone, Copy, Default)]
struct Flags {
    folds: bool,
    many_lines: bool,
    dot_is_all: bool,
    lazy: bool,
}

/// A group that is open.
#[derive(Debug)]
struct Group {
    /// The flags before it.
    flags: Flags,
    start: usize,
    /// The largest product of nested repeat counts in it.
    repeated: u32,
}

/// The last atom, to which a repeat applies.
#[derive(Debug, Clone, Copy)]
struct Atom {
    /// Its start in the output.
    start: usize,
    repeated: u32,
    is_repeat: bool,
}

struct Translator<'a> {
    whole: &'a str,
    rest: &'a str,
    out: String,
    flags: Flags,
    groups: Vec<Group>,
    atom: Option<Atom>,
    /// The most that the repeat counts of an atom of the present group come to.
    repeated: u32,
}

impl<'a> Translator<'a> {
    fn new(whole: &'a str) -> Self {
        Self {
            whole,
            rest: whole,
            out: String::new(),
            flags: Flags::default(),
            groups: Vec::new(),
            atom: None,
            repeated: 1,
        }
    }

    fn translate(mut self) -> Result<String, String> {
        // The text from the repeat just read, if the last thing was one.
        let mut repeat = None;
        while let Some(next) = self.rest.chars().next() {
            let before = self.rest;
            let is_repeat = match next {
                '*' | '+' | '?' => {
                    let after = &before[1..];
                    self.repeat(&before[..1], None, after, repeat)?;
                    true
                }
                '{' => match Count::read(before) {
                    Some((count, after)) => {
                        count.check(&before[..before.len() - after.len()])?;
                        self.repeat(&count.written(), Some(count), after, repeat)?;
                        true
                    }
                    None => {
                        self.literal_here(next);
                        false
                    }
                },
                _ => {
                    self.step(next)?;
                    false
                }
            };
            repeat = is_repeat.then_some(repeat.unwrap_or(before));
        }
        if self.groups.is_empty() {
            Ok(self.out)
        } else {
            Err(error("missing closing )", self.whole))
        }
    }

    /// Reads one step that is no repeat.
    fn step(&mut self, next: char) -> Result<(), String> {
        match next {
            '(' if self.rest.starts_with("(?") => return self.perl_group(),
            '(' => {
                self.rest = &self.rest[1..];
                self.open(self.flags);
            }
            ')' => {
                self.rest = &self.rest[1..];
                return self.close();
            }
            '|' => {
                self.rest = &self.rest[1..];
                self.out.push('|');
                self.atom = None;
            }
            '[' => {
                let class = self.class()?;
                self.push(&class);
            }
            '\\' => return self.escape(),
            '^' | '$' | '.' => {
                self.rest = &self.rest[1..];
                let Flags {
                    many_lines,
                    dot_is_all,
                    ..
                } = self.flags;
                self.push(match (next, many_lines, dot_is_all) {
                    ('^', false, _) => r"\A",
                    ('^', true, _) => "(?m:^)",
                    ('$', false, _) => r"\z",
                    ('$', true, _) => "(?m:$)",
                    (_, _, false) => r"[^\n]",
                    (_, _, true) => "(?s:.)",
                });
            }
            other => self.literal_here(other),
        }
        Ok(())
    }

    /// Adds an atom.
    fn push(&mut self, atom: &str) {
        self.atom = Some(Atom {
            start: self.out.len(),
            repeated: 1,
            is_repeat: false,
        });
        if self.flags.folds {
            self.out.push_str(&format!("(?i:{atom})"));
        } else {
            self.out.push_str(atom);
        }
    }

    fn literal_here(&mut self, c: char) {
        self.rest = &self.rest[c.len_utf8()..];
        self.literal(u32::from(c));
    }

    fn literal(&mut self, code: u32) {
        match char::from_u32(code) {
            Some(c) => self.push(&regex::escape(&c.to_string())),
            // No text has a surrogate.
            None => self.push(r"[^\x{0}-\x{10FFFF}]"),
        }
    }

    fn repeat(
        &mut self,
        written: &str,
        count: Option<Count>,
        mut after: &'a str,
        last: Option<&str>,
    ) -> Result<(), String> {
        let before = self.rest;
        let mut is_lazy = self.flags.lazy;
        if let Some(rest) = after.strip_prefix('?') {
            after = rest;
            is_lazy = !is_lazy;
        }
        if let Some(last) = last {
            return Err(error(NESTED, &last[..last.len() - after.len()]));
        }
        let part = &before[..before.len() - after.len()];
        let Some(mut atom) = self.atom else {
            return Err(error(NOTHING, part));
        };
        if let Some(count) = count {
            atom.repeated = count.times(atom.repeated);
            if count.is_many() && atom.repeated > MOST_REPEATED {
                return Err(error(BAD_COUNT, part));
            }
        }
        // Flags between two repeats, as in `a*(?i)+`, are no error to Go, which repeats the repeat.
        if atom.is_repeat {
            self.out.insert_str(atom.start, "(?:");
            self.out.push(')');
        }
        self.out.push_str(written);
        if is_lazy {
            self.out.push('?');
        }
        self.repeated = self.repeated.max(atom.repeated);
        self.atom = Some(Atom {
            is_repeat: true,
            ..atom
        });
        self.rest = after;
        Ok(())
    }

    fn open(&mut self, flags: Flags) {
        self.groups.push(Group {
            flags: self.flags,
            start: self.out.len(),
            repeated: self.repeated,
        });
        self.flags = flags;
        self.repeated = 1;
        self.atom = None;
        self.out.push_str("(?:");
    }

    fn close(&mut self) -> Result<(), String> {
        let group = self.groups.pop();
        let group = group.ok_or_else(|| error("unexpected )", self.whole))?;
        self.out.push(')');
        self.flags = group.flags;
        self.atom = Some(Atom {
            start: group.start,
            repeated: self.repeated,
            is_repeat: false,
        });
        self.repeated = self.repeated.max(group.repeated);
        Ok(())
    }

    /// Reads a group that begins with `(?`, or flags.
    fn perl_group(&mut self) -> Result<(), String> {
        let whole = self.rest;
        let mut named = ["(?P<", "(?<"].into_iter();
        let named = named.find(|start| whole.starts_with(start) && whole.len() > start.len());
        if let Some(start) = named {
            let end = whole.find('>').ok_or_else(|| error(BAD_CAPTURE, whole))?;
            let name = whole.get(start.len()..end).unwrap_or_default();
            let is_word = |c: char| c == '_' || c.is_ascii_alphanumeric();
            if name.is_empty() || !name.chars().all(is_word) {
                return Err(error(BAD_CAPTURE, &whole[..=end]));
            }
            self.rest = &whole[end + 1..];
            self.open(self.flags);
            return Ok(());
        }
        let (mut flags, mut value, mut has_flag) = (self.flags, true, false);
        let mut read = 2;
        for c in whole[2..].chars() {
            read += c.len_utf8();
            let flag = match c {
                'i' => &mut flags.folds,
                'm' => &mut flags.many_lines,
                's' => &mut flags.dot_is_all,
                'U' => &mut flags.lazy,
                '-' if value => {
                    (value, has_flag) = (false, false);
                    continue;
                }
                ':' | ')' if value || has_flag => {
                    self.rest = &whole[read..];
                    if c == ':' {
                        self.open(flags);
                    } else {
                        self.flags = flags;
                    }
                    return Ok(());
                }
                _ => break,
            };
            *flag = value;
            has_flag = true;
        }
        Err(error(BAD_PERL, &whole[..read]))
    }

    /// Reads an escape, outside of a class.
    fn escape(&mut self) -> Result<(), String> {
        let text = self.rest;
        let simple = match text[1..].chars().next() {
            Some('A') => r"\A",
            Some('z') => r"\z",
            Some('b') => r"(?-u:\b)",
            Some('B') => r"(?-u:\B)",
            Some('Q') => {
                let quoted = &text[2..];
                let (quoted, rest) = quoted.split_once(r"\E").unwrap_or((quoted, ""));
                self.rest = rest;
                quoted.chars().for_each(|c| self.literal(u32::from(c)));
                return Ok(());
            }
            _ => {
                if let Some((class, rest)) = group(text)? {
                    self.rest = rest;
                    self.push(&format!("[{class}]"));
                } else {
                    let (code, rest) = character(text)?;
                    self.rest = rest;
                    self.literal(code);
                }
                return Ok(());
            }
        };
        self.rest = &text[2..];
        self.push(simple);
        Ok(())
    }

    /// Reads a class in brackets.
    fn class(&mut self) -> Result<String, String> {
        let whole = self.rest;
        let mut rest = &whole[1..];
        let mut class = String::from("[");
        if let Some(behind) = rest.strip_prefix('^') {
            class.push('^');
            rest = behind;
        }
        let mut is_first = true;
        while is_first || !rest.starts_with(']') {
            is_first = false;
            let found = match posix(rest)? {
                Some(found) => Some(found),
                None => group(rest)?,
            };
            if let Some((inner, behind)) = found {
                class.push_str(&inner);
                rest = behind;
                continue;
            }
            let start = rest;
            let (low, behind) = class_character(rest, whole)?;
            rest = behind;
            let mut high = low;
            if rest.len() >= 2 && rest.starts_with('-') && !rest.starts_with("-]") {
                (high, rest) = class_character(&rest[1..], whole)?;
                if high < low {
                    return Err(error(BAD_RANGE, &start[..start.len() - rest.len()]));
                }
            }
            add_range(&mut class, low, high);
        }
        self.rest = &rest[1..];
        class.push(']');
        // The crate knows no class of nothing, as surrogates alone are.
        Ok(match class.as_str() {
            "[]" => r"[^\x{0}-\x{10FFFF}]".to_owned(),
            "[^]" => r"[\x{0}-\x{10FFFF}]".to_owned(),
            _ => class,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks answers of a genuine server: a pattern, or a pattern with its error behind four spaces.
    #[test]
    fn expressions_are_read_as_go_reads_them() {
        for line in include_str!("answers.txt").lines() {
            let (pattern, expected) = match line.split_once("    ") {
                Some((pattern, error)) => (pattern, Some(error)),
                None => (line, None),
            };
            let found = compile(pattern).err();
            let wanted = expected.map(|error| format!("error parsing regexp: {error}"));
            assert_eq!(found, wanted, "{pattern}");
        }
    }

    #[test]
    fn expressions_match_what_they_match_in_go() {
        for (pattern, text, matches) in [
            (r"^\d$", "5", true),
            (r"^\d$", "\u{663}", false),
            (r"^\w$", "é", false),
            (r"^\W$", "é", true),
            (r"é\b", "é", false),
            (r"^a$", "a\n", false),
            (r"(?m)^a$", "b\na", true),
            (r"a.b", "a\nb", false),
            (r"(?s)a.b", "a\nb", true),
            (r"^[^a]$", "\n", true),
            (r"^\Qa.b\E+$", "a.bb", true),
            (r"^\Qa.b\E+$", "axb", false),
            (r"^a(?i)b$", "aB", true),
            (r"^a(?i)b$", "Ab", false),
            (r"^(?i:a)b$", "AB", false),
            (r"^[[:upper:]\d_-]+$", "A-1_", true),
            (r"^\101\x42\x{43}$", "ABC", true),
            (r"^a{,2}$", "a{,2}", true),
            (r"^[a&&b]$", "&", true),
            (r"^\p{^Greek}$", "α", false),
            (r"^\PN\pN$", "a1", true),
            (r"^a*(?i)?$", "", true),
            (r"^x\Q\E*$", "xx", true),
            (r"^(a|)$", "", true),
        ] {
            let compiled = compile(pattern).unwrap();
            assert_eq!(compiled.is_match(text), matches, "{pattern} {text:?}");
        }
    }
}
