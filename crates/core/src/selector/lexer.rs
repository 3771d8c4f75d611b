//! The tokens of a label selector.

/// A token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    /// The end of the selector.
    End,
    Comma,
    OpenParenthesis,
    ClosedParenthesis,
    DoesNotExist,
    Equals,
    DoubleEquals,
    NotEquals,
    GreaterThan,
    LessThan,
    /// A key, a value, `in` or `notin`.
    Word,
    /// Symbols that are not an operator.
    Unknown,
}

/// Splits a selector into tokens. A clone can look ahead.
#[derive(Debug, Clone)]
pub(super) struct Lexer<'a> {
    /// The text that has not been read yet.
    rest: &'a str,
}

/// Characters between tokens.
const WHITESPACE: [char; 4] = [' ', '\t', '\r', '\n'];
/// Characters of operators, which also end a word.
const SYMBOLS: [char; 7] = ['=', '!', '(', ')', ',', '>', '<'];

impl<'a> Lexer<'a> {
    /// Creates a lexer at the beginning of a text.
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text }
    }

    /// Returns the next token and its text, and moves past it.
    pub(super) fn next(&mut self) -> (Token, &'a str) {
        self.rest = self.rest.trim_start_matches(WHITESPACE);
        let Some(first) = self.rest.chars().next() else {
            return (Token::End, "");
        };
        if SYMBOLS.contains(&first) {
            return self.symbol();
        }
        let is_end = |c: char| SYMBOLS.contains(&c) || WHITESPACE.contains(&c);
        let end = self.rest.find(is_end).unwrap_or(self.rest.len());
        (Token::Word, self.advance(end))
    }

    /// Returns the next token without moving past it.
    pub(super) fn peek(&self) -> (Token, &'a str) {
        self.clone().next()
    }

    /// Returns the longest operator at the beginning of the rest.
    fn symbol(&mut self) -> (Token, &'a str) {
        // Longer operators first, because `=` is a prefix of `==`.
        let operators = [
            ("==", Token::DoubleEquals),
            ("!=", Token::NotEquals),
            ("=", Token::Equals),
            ("!", Token::DoesNotExist),
            ("(", Token::OpenParenthesis),
            (")", Token::ClosedParenthesis),
            (",", Token::Comma),
            (">", Token::GreaterThan),
            ("<", Token::LessThan),
        ];
        match operators
            .iter()
            .find(|(text, _)| self.rest.starts_with(text))
        {
            Some((text, token)) => (*token, self.advance(text.len())),
            None => (Token::Unknown, self.advance(1)),
        }
    }

    /// Moves past some bytes and returns them.
    fn advance(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        taken
    }
}
