//! Reading conditions, names and values from the value of a parameter.

use std::borrow::Cow;

use super::error::UrlError;
use crate::association::is_name;
use crate::query::filter::{AnyOf, Condition, Operator, Subject, associated};

/// The path below which labels are.
pub(super) const LABELS: &str = "metadata.labels";

const OPERATOR: &str = "a comma, its end or an operator: =, ==, !=, ~, !~, <, <=, >, >=, in (…), \
    notin (…), contains, notcontains (a field alone asks that it exists, and !field that it does not)";
const NAME: &str = "the name of a field or label; one with other signs is quoted, as in 'a b'";
const VALUE: &str = "a value; one that is empty, begins with an operator or has commas, spaces, quotes or \
    parentheses in it is quoted, as in 'a, b', and + is a space unless it is written as %2B";
const QUOTE: &str = "the closing quote; a quote in a text is written as \\' or \\\"";

/// Operators that are signs, longer ones first.
const SIGNS: [(&str, Operator); 9] = [
    ("==", Operator::Equal),
    ("!=", Operator::NotEqual),
    ("!~", Operator::NotLike),
    ("<=", Operator::AtMost),
    (">=", Operator::AtLeast),
    ("=", Operator::Equal),
    ("~", Operator::Like),
    ("<", Operator::Less),
    (">", Operator::Greater),
];

/// Operators that are words.
const WORDS: [(&str, Operator); 4] = [
    ("in", Operator::In),
    ("notin", Operator::NotIn),
    ("contains", Operator::Contains),
    ("notcontains", Operator::NotContains),
];

/// Reads the value of one parameter from left to right.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    parameter: &'static str,
    text: &'a str,
    /// The number of bytes read; always between two characters.
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(parameter: &'static str, text: &'a str) -> Self {
        Self {
            parameter,
            text,
            at: 0,
        }
    }

    /// Reads conditions of which at least one must hold.
    pub(super) fn any_of(mut self) -> Result<AnyOf, UrlError> {
        self.items(Self::condition).map(AnyOf)
    }

    /// Reads names of fields and labels to sort by; a minus sorts backwards.
    pub(super) fn orders(mut self) -> Result<Vec<(Subject, bool)>, UrlError> {
        self.items(|reader| {
            let is_descending = reader.take("-");
            Ok((reader.name()?, is_descending))
        })
    }

    /// Reads names of fields and labels.
    pub(super) fn names(mut self) -> Result<Vec<Subject>, UrlError> {
        self.items(Self::name)
    }

    /// Reads values, or the empty list: `()`.
    pub(super) fn values(mut self) -> Result<Vec<String>, UrlError> {
        if self.text.trim() == "()" {
            return Ok(Vec::new());
        }
        if self.text.trim().is_empty() {
            return Err(self.fault(
                "values, or () for the empty list (without the parameter it is about all)",
            ));
        }
        self.items(Self::value)
    }

    /// Reads exactly one name of a field or label.
    pub(super) fn only_name(mut self) -> Option<Subject> {
        let name = self.name().ok()?;
        self.rest().is_empty().then_some(name)
    }

    /// Reads a list up to the end: at least one item, separated by commas.
    fn items<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, UrlError>,
    ) -> Result<Vec<T>, UrlError> {
        let mut items = Vec::new();
        loop {
            self.skip_spaces();
            items.push(item(self)?);
            self.skip_spaces();
            if self.rest().is_empty() {
                return Ok(items);
            }
            if !self.take(",") {
                return Err(self.fault("a comma or its end"));
            }
        }
    }

    fn condition(&mut self) -> Result<Condition, UrlError> {
        if self.take("!") {
            self.skip_spaces();
            return Ok(self.name()?.is(Operator::Missing, [""; 0]));
        }
        let subject = self.name()?;
        self.skip_spaces();
        if self.rest().is_empty() || self.rest().starts_with(',') {
            return Ok(subject.exists());
        }
        let operator = self.operator()?;
        self.skip_spaces();
        if matches!(operator, Operator::In | Operator::NotIn) {
            return Ok(subject.is(operator, self.list()?));
        }
        // `field=` asks for the empty value, while `field<` is a mistake.
        let may_be_empty = matches!(operator, Operator::Equal | Operator::NotEqual);
        let value = match self.peek() {
            None | Some(',') if may_be_empty => String::new(),
            _ => self.value()?,
        };
        Ok(subject.is(operator, [value]))
    }

    fn operator(&mut self) -> Result<Operator, UrlError> {
        // Longer signs are first, or `<=` would be read as `<`.
        if let Some((_, operator)) = SIGNS.iter().find(|(sign, _)| self.take(sign)) {
            return Ok(*operator);
        }
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_alphabetic());
        let word = &rest[..end.unwrap_or(rest.len())];
        let known = WORDS
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(word));
        let Some((_, operator)) = known else {
            return Err(self.fault(OPERATOR));
        };
        self.at += word.len();
        match self.peek() {
            None | Some('(' | '\'' | '"') => Ok(*operator),
            // So that `in5` is an error, and not the operator `in`.
            Some(c) if c.is_whitespace() => Ok(*operator),
            Some(_) => Err(self.fault("a space behind the operator")),
        }
    }

    /// Reads `(a,b)`; it may be empty.
    fn list(&mut self) -> Result<Vec<String>, UrlError> {
        if !self.take("(") {
            return Err(self.fault("values in parentheses: (a,b)"));
        }
        let mut values = Vec::new();
        self.skip_spaces();
        if self.take(")") {
            return Ok(values);
        }
        loop {
            self.skip_spaces();
            values.push(self.value()?);
            self.skip_spaces();
            if self.take(")") {
                return Ok(values);
            }
            if !self.take(",") {
                return Err(self.fault("a comma or a closing parenthesis"));
            }
        }
    }

    /// Reads a value with or without quotes; one without is not empty.
    fn value(&mut self) -> Result<String, UrlError> {
        if let Some(quote) = self.quote() {
            return self.quoted(quote).map(Cow::into_owned);
        }
        let rest = self.rest();
        let is_end = |c: char| {
            c.is_whitespace() || c.is_control() || matches!(c, ',' | '(' | ')' | '\'' | '"')
        };
        let end = rest.find(is_end).unwrap_or(rest.len());
        if end == 0 || rest.starts_with(['=', '!', '<', '>', '~']) {
            return Err(self.fault(VALUE));
        }
        self.at += end;
        // The end of a value ends its item; any other sign should have been quoted.
        let next = self.rest().trim_start();
        // `a b` is an error rather than the value `a`.
        if !next.is_empty() && !next.starts_with([',', ')']) {
            return Err(self.fault(VALUE));
        }
        Ok(rest[..end].to_owned())
    }

    /// Reads the name of a field or label, and of an association if there is one.
    ///
    /// An association is followed by a colon. A name in quotes is that of a field.
    fn name(&mut self) -> Result<Subject, UrlError> {
        if let Some(association) = self.association() {
            // Associations of associations are not supported.
            if self.association().is_some() {
                return Err(self.fault(NAME));
            }
            return Ok(associated(association, self.own_name()?));
        }
        self.own_name()
    }

    /// Reads the name of an association and its colon.
    fn association(&mut self) -> Option<&'a str> {
        let (name, _) = self.rest().split_once(':')?;
        let name = Some(name).filter(|name| is_name(name))?;
        self.at += name.len() + 1;
        Some(name)
    }

    /// Reads the name of a field or label, without an association.
    fn own_name(&mut self) -> Result<Subject, UrlError> {
        if let Some(quote) = self.quote() {
            return Ok(Subject::Field(self.quoted(quote)?.into_owned()));
        }
        let start = self.at;
        if self.rest().starts_with('-') {
            return Err(self.fault(NAME));
        }
        let mut label = None;
        while let Some(c) = self.peek() {
            if c == '[' {
                let is_label = &self.text[start..self.at] == LABELS;
                let key = self.bracket()?.filter(|_| is_label);
                label = key.map(|key| (self.at, key));
                continue;
            }
            if c.is_whitespace() || c.is_control() || "]()=!<>~,'\"".contains(c) {
                break;
            }
            self.at += c.len_utf8();
        }
        let name = &self.text[start..self.at];
        if name.is_empty() || self.rest().starts_with([']', '\'', '"']) {
            return Err(self.fault(NAME));
        }
        let dotted = name
            .strip_prefix(LABELS)
            .and_then(|it| it.strip_prefix('.'));
        Ok(match (label, dotted) {
            (Some((end, key)), _) if end == self.at => Subject::Label(key.into_owned()),
            (None, Some(key)) if !key.is_empty() => Subject::Label(key.to_owned()),
            _ => Subject::Field(name.to_owned()),
        })
    }

    /// Reads the content of brackets; `None` for a condition on elements of an array.
    fn bracket(&mut self) -> Result<Option<Cow<'a, str>>, UrlError> {
        self.at += 1;
        let key = if self.take("?(") {
            // A parenthesis may be in a quoted text of the condition; only the one before the bracket ends it.
            self.up_to(")]")?;
            self.at += 1;
            None
        } else if let Some(quote) = self.quote() {
            Some(self.quoted(quote)?)
        } else {
            let start = self.at;
            self.up_to("]")?;
            Some(Cow::Borrowed(&self.text[start..self.at]))
        };
        if key.as_ref().is_some_and(|key| key.is_empty()) {
            return Err(self.fault("a key in the brackets"));
        }
        if !self.take("]") {
            return Err(self.fault("the closing bracket"));
        }
        match self.peek() {
            Some(c) if c.is_alphanumeric() => Err(self.fault("a dot or an operator")),
            _ => Ok(key),
        }
    }

    /// Reads up to a text that ends the content of a bracket.
    fn up_to(&mut self, end: &str) -> Result<(), UrlError> {
        let length = self.rest().find(end);
        self.at += length.unwrap_or(self.rest().len());
        match length {
            Some(_) => Ok(()),
            None => Err(self.fault("the closing bracket")),
        }
    }

    /// Reads the quote that begins a text.
    fn quote(&mut self) -> Option<char> {
        let quote = self.peek().filter(|c| matches!(c, '\'' | '"'))?;
        self.at += 1;
        Some(quote)
    }

    /// Reads a text after its opening quote.
    ///
    /// A character after a backslash is taken literally.
    fn quoted(&mut self, quote: char) -> Result<Cow<'a, str>, UrlError> {
        let text: &'a str = &self.text[self.at..];
        let mut unescaped: Option<String> = None;
        let mut characters = text.char_indices();
        while let Some((at, c)) = characters.next() {
            if c == quote {
                self.at += at + 1;
                return Ok(unescaped.map_or(Cow::Borrowed(&text[..at]), Cow::Owned));
            }
            let c = if c == '\\' {
                unescaped.get_or_insert_with(|| text[..at].to_owned());
                match characters.next() {
                    Some((_, escaped)) => escaped,
                    None => break,
                }
            } else {
                c
            };
            if let Some(unescaped) = &mut unescaped {
                unescaped.push(c);
            }
        }
        self.at = self.text.len();
        Err(self.fault(QUOTE))
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Reads a text if it is next.
    fn take(&mut self, text: &str) -> bool {
        let is_next = self.rest().starts_with(text);
        if is_next {
            self.at += text.len();
        }
        is_next
    }

    fn skip_spaces(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Creates an error about what was expected next.
    fn fault(&self, wanted: &'static str) -> UrlError {
        UrlError::syntax(self.parameter, self.text, self.at, wanted)
    }
}
