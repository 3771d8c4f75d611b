//! Addresses of mail, as Go reads them.
//!
//! Source: `ParseAddress` in `net/mail`.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Returns whether a text is one address.
pub(super) fn is_address(text: &str) -> bool {
    let mut reader = Reader { rest: text };
    let addresses = reader.address(true);
    addresses == Some(1) && reader.skip_comments().is_some() && reader.rest.is_empty()
}

struct Reader<'a> {
    rest: &'a str,
}

/// What was read; `None` for an error.
type Read<T> = Option<T>;

impl Reader<'_> {
    /// Reads an address or, if `groups`, a group; returns how many addresses there are.
    fn address(&mut self, groups: bool) -> Read<usize> {
        self.skip_space();
        // An address alone comes first, since it has less forms than one with a name.
        let before = self.rest;
        if self.specification().is_some() {
            self.skip_space();
            if self.takes('(') {
                self.comment()?;
            }
            return Some(1);
        }
        self.rest = before;
        if self.rest.is_empty() {
            return None;
        }
        if !self.rest.starts_with('<') {
            self.phrase()?;
        }
        self.skip_space();
        if groups && self.takes(':') {
            return self.group();
        }
        if !self.takes('<') {
            return None;
        }
        self.specification()?;
        self.takes('>').then_some(1)
    }

    fn group(&mut self) -> Read<usize> {
        self.skip_space();
        let mut count = 0;
        if self.takes(';') {
            return self.skip_comments().map(|()| count);
        }
        loop {
            self.skip_space();
            count += self.address(false)?;
            self.skip_comments()?;
            if self.takes(';') {
                return self.skip_comments().map(|()| count);
            }
            if !self.takes(',') {
                return None;
            }
        }
    }

    /// Reads an address without a name.
    fn specification(&mut self) -> Read<()> {
        self.skip_space();
        if self.rest.starts_with('"') {
            self.quoted().filter(|length| *length > 0)?;
        } else {
            self.atom(false)?;
        }
        if !self.takes('@') {
            return None;
        }
        self.skip_space();
        if self.rest.starts_with('[') {
            self.literal()
        } else {
            self.atom(false)
        }
    }

    /// Reads words, of which one is enough.
    fn phrase(&mut self) -> Read<()> {
        let mut has_word = false;
        loop {
            if has_word {
                self.skip_comments()?;
            }
            self.skip_space();
            if self.rest.is_empty() {
                return Some(());
            }
            let word = if self.rest.starts_with('"') {
                self.quoted().map(drop)
            } else {
                self.atom(true)
            };
            match word {
                Some(()) => has_word = true,
                None => return has_word.then_some(()),
            }
        }
    }

    /// Reads a text in quotation marks; returns its length.
    fn quoted(&mut self) -> Read<usize> {
        let (mut is_escaped, mut length) = (false, 0);
        for (at, c) in self.rest.char_indices().skip(1) {
            let is_text = is_visible(c) || matches!(c, ' ' | '\t');
            match c {
                '"' if !is_escaped => {
                    self.rest = &self.rest[at + 1..];
                    return Some(length);
                }
                '\\' if !is_escaped => is_escaped = true,
                _ if is_text => {
                    is_escaped = false;
                    length += 1;
                }
                _ => return None,
            }
        }
        None
    }

    /// Reads an atom with dots, which may be anywhere if `permissive`.
    fn atom(&mut self, permissive: bool) -> Read<()> {
        let is_special = |c: char| "()<>[]:;@\\\",".contains(c);
        let is_end = |c: char| is_special(c) || !is_visible(c);
        let end = self.rest.find(is_end).unwrap_or(self.rest.len());
        let (atom, rest) = self.rest.split_at(end);
        if atom.is_empty() {
            return None;
        }
        self.rest = rest;
        let is_dotted = atom.starts_with('.') || atom.contains("..") || atom.ends_with('.');
        (permissive || !is_dotted).then_some(())
    }

    /// Reads an address of a machine in brackets.
    fn literal(&mut self) -> Read<()> {
        let (text, rest) = self.rest.strip_prefix('[')?.split_once(']')?;
        let is_text = |c: char| is_visible(c) && !matches!(c, '[' | '\\');
        self.rest = rest;
        let is_machine = match text.strip_prefix("IPv6:") {
            // Go reads an address of version 4 there as well.
            Some(address) => address.parse::<Ipv6Addr>().is_ok() || is_ipv4(address),
            None => is_ipv4(text),
        };
        (text.chars().all(is_text) && is_machine).then_some(())
    }

    fn skip_comments(&mut self) -> Read<()> {
        self.skip_space();
        while self.takes('(') {
            self.comment()?;
            self.skip_space();
        }
        Some(())
    }

    /// Reads the rest of a comment, which may contain others.
    fn comment(&mut self) -> Read<()> {
        let mut depth = 1;
        let mut chars = self.rest.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => drop(chars.next()),
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.rest = &self.rest[at + 1..];
                return Some(());
            }
        }
        None
    }

    fn takes(&mut self, c: char) -> bool {
        let rest = self.rest.strip_prefix(c);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }
}

fn is_visible(c: char) -> bool {
    matches!(c, '!'..='~') || !c.is_ascii()
}

fn is_ipv4(text: &str) -> bool {
    let mapped = || text.parse::<Ipv6Addr>().ok()?.to_ipv4_mapped();
    text.parse::<Ipv4Addr>().is_ok() || mapped().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &[&str] = &[
        "a@b",
        "a@b.c",
        "\"a b\"@c",
        "a.b@c",
        "a@[1.2.3.4]",
        "A <a@b.c>",
        "<a@b.c>",
        " a@b ",
        "a@b (c)",
        "é@b",
        "a@é",
        "a@b-",
        "a@-b",
        "\"a\"@b",
        "\"a\\\"b\"@c",
        "=?utf-8?q?x?= <a@b>",
        "a+b@c",
        "a!#$%&*/=?^_`{|}~-@c",
        "a@b_c",
        "\"é\"@c",
        "\"A\" <a@b>",
        "A. B <a@b>",
        "A B<a@b>",
        "grp: a@b;",
        "\"A\"<a@b>",
        "a@ b",
        "Bob <a@b> (c)",
        "a@[IPv6:::1]",
        "a@[::ffff:1.2.3.4]",
        "a@[IPv6:1.2.3.4]",
        "g: <a@b> (x);",
        "A.B..<a@b>",
        "A (x) <a@b>",
        "A <\"x y\"@b>",
        "\"a\\\\\"@b",
        "\"a\\é\"@b",
        "a@b (x)(y)",
        "a@b(x)",
        "< a@b>",
        "a@[1.2.3.4] (x)",
    ];

    const BROKEN: &[&str] = &[
        "a",
        "@b",
        "a@",
        "a b@c",
        ".a@c",
        "a.@c",
        "a..b@c",
        "a@[x]",
        "a@b..c",
        "a@.b",
        "a@b.",
        "a@b,c@d",
        "(c) a@b",
        "\"a@b",
        "a@b\n",
        "a@b:1",
        "<a@b",
        "a@b>",
        "a@\"b\"",
        "a(x)@b",
        "a @b",
        "a\t@b",
        "a@b (c",
        "\\a@b",
        "a@[]",
        "a@[::1]",
        "a@[IPv6:]",
        "a@[01.2.3.4]",
        "\"\"@b",
        "a:b@c",
        "g:;",
        "g: a@b, c@d;",
        "(x) A <a@b>",
        "A (x <a@b>",
        "A <a@b> x",
        "A <a@b",
        "<a@b>(x",
        "<a@b >",
        "a@b;",
        "x:y:a@b;",
        "g:a@b,;",
        "a,b@c",
        "a@b c",
        "a@b\u{7f}",
        "a\u{7f}@b",
        "a@[1.2.3.4",
        "a@[1.2.3.4]x",
    ];

    #[test]
    fn addresses_are_those_of_a_genuine_server() {
        for text in VALID {
            assert!(is_address(text), "{text}");
        }
        for text in BROKEN {
            assert!(!is_address(text), "{text}");
        }
    }
}
