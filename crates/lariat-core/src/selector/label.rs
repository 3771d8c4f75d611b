//! Label selectors.

use std::fmt;
use std::str::FromStr;

use super::SelectorError;
use super::lexer::{Lexer, Token};
use crate::Labels;

/// A label selector: all of its requirements must match.
///
/// Parses the form of URL queries (`app=web,tier in (front,back),!canary,weight>3`), and prints it. The empty selector
/// matches everything.
///
/// ```
/// use lariat_core::{LabelSelector, Labels};
///
/// let selector: LabelSelector = "app in (web, api), !canary".parse()?;
/// let labels: Labels = [("app", "web")].into_iter().collect();
/// assert!(selector.matches(&labels));
/// # Ok::<(), lariat_core::SelectorError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    Exists,
    DoesNotExist,
    In(Vec<String>),
    NotIn(Vec<String>),
    GreaterThan(i64),
    LessThan(i64),
}

impl LabelSelector {
    /// Returns whether an object with these labels matches.
    #[must_use]
    pub fn matches(&self, labels: &Labels) -> bool {
        self.requirements
            .iter()
            .all(|requirement| requirement.holds(labels.get(&requirement.key)))
    }

    /// Returns whether the selector is empty and matches everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Adds the requirements of another selector: an object must match both.
    ///
    /// ```
    /// use lariat_core::LabelSelector;
    ///
    /// let selector: LabelSelector = "app=web".parse()?;
    /// let canaries = selector.and(&"canary".parse()?);
    /// assert_eq!(canaries.to_string(), "app=web,canary");
    /// # Ok::<(), lariat_core::SelectorError>(())
    /// ```
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        let requirements = other.requirements.iter().cloned();
        self.requirements.extend(requirements);
        self
    }

    /// Iterates over the labels that must have one of several values.
    ///
    /// For index lookups.
    ///
    /// ```
    /// use lariat_core::LabelSelector;
    ///
    /// let selector: LabelSelector = "app in (api,web),!canary".parse()?;
    /// let required: Vec<_> = selector.required().collect();
    /// assert_eq!(required, [("app", &["api".to_owned(), "web".to_owned()][..])]);
    /// # Ok::<(), lariat_core::SelectorError>(())
    /// ```
    pub fn required(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.requirements
            .iter()
            .filter_map(|requirement| match &requirement.test {
                Test::In(values) => Some((&*requirement.key, &**values)),
                _ => None,
            })
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, requirement) in self.requirements.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{requirement}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        match &self.test {
            Test::Exists => write!(f, "{key}"),
            Test::DoesNotExist => write!(f, "!{key}"),
            Test::In(values) => match &values[..] {
                [value] => write!(f, "{key}={value}"),
                values => write!(f, "{key} in ({})", values.join(",")),
            },
            Test::NotIn(values) => match &values[..] {
                [value] => write!(f, "{key}!={value}"),
                values => write!(f, "{key} notin ({})", values.join(",")),
            },
            Test::GreaterThan(bound) => write!(f, "{key}>{bound}"),
            Test::LessThan(bound) => write!(f, "{key}<{bound}"),
        }
    }
}

impl Requirement {
    fn holds(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.test {
            Test::Exists => value.is_some(),
            Test::DoesNotExist => value.is_none(),
            Test::In(set) => value.is_some_and(|value| set.iter().any(|each| each == value)),
            Test::NotIn(set) => value.is_none_or(|value| set.iter().all(|each| each != value)),
            Test::GreaterThan(bound) => number().is_some_and(|number| number > *bound),
            Test::LessThan(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

impl FromStr for LabelSelector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        let mut parser = Parser {
            lexer: Lexer::new(text),
        };
        let requirements = parser.selector().map_err(SelectorError)?;
        Ok(Self { requirements })
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
}

impl Parser<'_> {
    fn selector(&mut self) -> Result<Vec<Requirement>, String> {
        let mut requirements = Vec::new();
        match self.lexer.peek() {
            (Token::End, _) => return Ok(requirements),
            (Token::Word | Token::DoesNotExist, _) => {}
            (_, found) => {
                return Err(format!(
                    "found '{found}', expected: !, identifier, or 'end of string'"
                ));
            }
        }
        loop {
            let requirement = self
                .requirement()
                .map_err(|reason| format!("unable to parse requirement: {reason}"))?;
            requirements.push(requirement);
            match self.lexer.next() {
                (Token::End, _) => return Ok(requirements),
                (Token::Comma, _) => {}
                (_, found) => {
                    return Err(format!("found '{found}', expected: ',' or 'end of string'"));
                }
            }
            let (token, found) = self.lexer.peek();
            if !matches!(token, Token::Word | Token::DoesNotExist) {
                return Err(format!("found '{found}', expected: identifier after ','"));
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let (mut token, mut key) = self.lexer.next();
        let negated = token == Token::DoesNotExist;
        if negated {
            (token, key) = self.lexer.next();
        }
        if token != Token::Word {
            return Err(format!("found '{key}', expected: identifier"));
        }
        check_key(key)?;
        let ends = matches!(self.lexer.peek().0, Token::End | Token::Comma);
        let test = match (negated, ends) {
            (true, _) => Test::DoesNotExist,
            (false, true) => Test::Exists,
            (false, false) => self.comparison()?,
        };
        let key = key.to_owned();
        Ok(Requirement { key, test })
    }

    fn comparison(&mut self) -> Result<Test, String> {
        match self.lexer.next() {
            (Token::Word, "in") => Ok(Test::In(self.values()?)),
            (Token::Word, "notin") => Ok(Test::NotIn(self.values()?)),
            (Token::Equals | Token::DoubleEquals, _) => Ok(Test::In(vec![self.value()?])),
            (Token::NotEquals, _) => Ok(Test::NotIn(vec![self.value()?])),
            (Token::GreaterThan, _) => self.number().map(Test::GreaterThan),
            (Token::LessThan, _) => self.number().map(Test::LessThan),
            (_, found) => Err(format!(
                "found '{found}', expected: in, notin, =, ==, !=, gt, lt"
            )),
        }
    }

    /// Reads the single value of a comparison, which may be empty.
    fn value(&mut self) -> Result<String, String> {
        if matches!(self.lexer.peek().0, Token::End | Token::Comma) {
            return Ok(String::new());
        }
        match self.lexer.next() {
            (Token::Word, value) => check_value(value),
            (_, found) => Err(format!("found '{found}', expected: identifier")),
        }
    }

    fn number(&mut self) -> Result<i64, String> {
        let value = self.value()?;
        value.parse().map_err(|_| {
            let rule = "for 'Gt', 'Lt' operators, the value must be an integer";
            format!("values[0]: Invalid value: \"{value}\": {rule}")
        })
    }

    /// Reads a parenthesised set; nothing between two commas is the empty value.
    fn values(&mut self) -> Result<Vec<String>, String> {
        match self.lexer.next() {
            (Token::OpenParenthesis, _) => {}
            (_, found) => return Err(format!("found '{found}' expected: '('")),
        }
        let mut values = Vec::new();
        loop {
            let value = match self.lexer.peek() {
                (Token::Word, value) => {
                    self.lexer.next();
                    check_value(value)?
                }
                (Token::Comma | Token::ClosedParenthesis, _) => String::new(),
                (_, found) => {
                    return Err(format!("found '{found}', expected: ',', ')' or identifier"));
                }
            };
            values.push(value);
            match self.lexer.next() {
                (Token::Comma, _) => {}
                (Token::ClosedParenthesis, _) => return Ok(values),
                (_, found) => return Err(format!("found '{found}', expected: ',' or ')'")),
            }
        }
    }
}

fn check_key(key: &str) -> Result<(), String> {
    Labels::check_key(key).map_err(|rule| invalid(key, rule))
}

fn check_value(value: &str) -> Result<String, String> {
    match Labels::check_value(value) {
        Ok(()) => Ok(value.to_owned()),
        Err(rule) => Err(invalid(value, rule)),
    }
}

fn invalid(text: &str, rule: &str) -> String {
    format!("<nil>: Invalid value: \"{text}\": {rule}")
}
