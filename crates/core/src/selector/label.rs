//! Label selectors.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use super::SelectorError;
use super::lexer::{Lexer, Token};
use crate::Labels;

/// A label selector, all of whose requirements must match.
///
/// Parses and prints the form of URL queries: `app=web,tier in (front,back),!canary,weight>3`. The empty selector
/// matches everything.
///
/// ```
/// use lariat::core::{LabelSelector, Labels};
///
/// let selector: LabelSelector = "app in (web, api), !canary".parse()?;
/// let labels: Labels = [("app", "web")].into_iter().collect();
/// assert!(selector.matches(&labels));
/// # Ok::<(), lariat::core::SelectorError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector {
    /// The requirements, all of which must match.
    requirements: Vec<Requirement>,
}

/// A test of one label.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    /// The key of the label.
    key: String,
    /// The test of its value.
    test: Test,
}

/// A test of a label's value.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    /// The label exists.
    Exists,
    /// The label does not exist.
    DoesNotExist,
    /// The value is one of these; a missing label fails.
    In(Vec<String>),
    /// The value is none of these; a missing label passes.
    NotIn(Vec<String>),
    /// The value is a greater integer.
    GreaterThan(i64),
    /// The value is a smaller integer.
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

    /// Returns whether the selector is empty, so that it matches everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Adds the requirements of another selector; an object must match both.
    ///
    /// ```
    /// use lariat::core::LabelSelector;
    ///
    /// let selector: LabelSelector = "app=web".parse()?;
    /// let canaries = selector.and(&"canary".parse()?);
    /// assert_eq!(canaries.to_string(), "app=web,canary");
    /// # Ok::<(), lariat::core::SelectorError>(())
    /// ```
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        let requirements = other.requirements.iter().cloned();
        self.requirements.extend(requirements);
        self
    }

    /// Iterates over the labels that must have one of several values.
    ///
    /// Use it for index lookups; objects that are found this way must still match the selector.
    ///
    /// ```
    /// use lariat::core::LabelSelector;
    ///
    /// let selector: LabelSelector = "app in (api,web),!canary".parse()?;
    /// let required: Vec<_> = selector.required().collect();
    /// assert_eq!(required, [("app", &["api".to_owned(), "web".to_owned()][..])]);
    /// # Ok::<(), lariat::core::SelectorError>(())
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
    /// Returns whether a label's value passes the test.
    fn holds(&self, value: Option<&str>) -> bool {
        // As in apimachinery, a value that is no integer matches neither comparison.
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.test {
            Test::Exists => value.is_some(),
            Test::DoesNotExist => value.is_none(),
            Test::In(set) => value.is_some_and(|value| set.iter().any(|each| each == value)),
            // As in apimachinery, an object without the label matches.
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

/// A recursive-descent parser, modelled on apimachinery's.
struct Parser<'a> {
    /// The tokens that are left.
    lexer: Lexer<'a>,
}

impl Parser<'_> {
    /// Parses a whole selector.
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

    /// Parses one requirement.
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
        // A key alone tests for existence.
        let ends = matches!(self.lexer.peek().0, Token::End | Token::Comma);
        let test = match (negated, ends) {
            (true, _) => Test::DoesNotExist,
            (false, true) => Test::Exists,
            (false, false) => self.comparison(key)?,
        };
        let key = key.to_owned();
        Ok(Requirement { key, test })
    }

    /// Parses an operator and its operand.
    fn comparison(&mut self, key: &str) -> Result<Test, String> {
        match self.lexer.next() {
            // Operators only in this place: `in` and `notin` are also valid keys and values.
            (Token::Word, "in") => self.values(key).map(Test::In),
            (Token::Word, "notin") => self.values(key).map(Test::NotIn),
            (Token::Equals | Token::DoubleEquals, _) => {
                self.checked_value(key).map(|value| Test::In(vec![value]))
            }
            (Token::NotEquals, _) => self
                .checked_value(key)
                .map(|value| Test::NotIn(vec![value])),
            (Token::GreaterThan, _) => self.number(key).map(Test::GreaterThan),
            (Token::LessThan, _) => self.number(key).map(Test::LessThan),
            (_, found) => Err(format!(
                "found '{found}', expected: in, notin, =, ==, !=, gt, lt"
            )),
        }
    }

    /// Parses the single value of a comparison, which may be empty.
    fn value(&mut self) -> Result<String, String> {
        // As in apimachinery, `app=` requires the empty value.
        if matches!(self.lexer.peek().0, Token::End | Token::Comma) {
            return Ok(String::new());
        }
        match self.lexer.next() {
            (Token::Word, value) => Ok(value.to_owned()),
            (_, found) => Err(format!("found '{found}', expected: identifier")),
        }
    }

    fn checked_value(&mut self, key: &str) -> Result<String, String> {
        let value = self.value()?;
        check_values(key, std::slice::from_ref(&value), Vec::new())?;
        Ok(value)
    }

    /// Parses the integer of a comparison.
    fn number(&mut self, key: &str) -> Result<i64, String> {
        let value = self.value()?;
        let number = value.parse::<i64>();
        let mut broken = Vec::new();
        if number.is_err() {
            let rule = "for 'Gt', 'Lt' operators, the value must be an integer";
            broken.push(invalid("values[0]", &value, rule));
        }
        check_values(key, std::slice::from_ref(&value), broken)?;
        number.map_err(|error| error.to_string())
    }

    /// Parses a set in parentheses; nothing between two commas is the empty value.
    fn values(&mut self, key: &str) -> Result<Vec<String>, String> {
        match self.lexer.next() {
            (Token::OpenParenthesis, _) => {}
            (_, found) => return Err(format!("found '{found}' expected: '('")),
        }
        let mut values = Vec::new();
        loop {
            let value = match self.lexer.peek() {
                (Token::Word, value) => {
                    self.lexer.next();
                    value.to_owned()
                }
                (Token::Comma | Token::ClosedParenthesis, _) => String::new(),
                (_, found) => {
                    return Err(format!("found '{found}', expected: ',', ')' or identifier"));
                }
            };
            values.push(value);
            match self.lexer.next() {
                (Token::Comma, _) => {}
                (Token::ClosedParenthesis, _) => {
                    check_values(key, &values, Vec::new())?;
                    return Ok(values);
                }
                (_, found) => return Err(format!("found '{found}', expected: ',' or ')'")),
            }
        }
    }
}

/// Validates a key, with the API server's message.
fn check_key(key: &str) -> Result<(), String> {
    Labels::check_key(key).map_err(|rule| invalid("<nil>", key, &rule))
}

/// Validates the values of a requirement, with the API server's message.
///
/// Source: `NewRequirement`, which has them sorted, each once.
fn check_values(key: &str, values: &[String], mut broken: Vec<String>) -> Result<(), String> {
    let sorted: BTreeSet<&String> = values.iter().collect();
    for (at, value) in sorted.into_iter().enumerate() {
        if let Err(rule) = Labels::check_value(value) {
            broken.push(invalid(&format!("values[{at}][{key}]"), value, &rule));
        }
    }
    match &broken[..] {
        [] => Ok(()),
        [one] => Err(one.clone()),
        many => Err(format!("[{}]", many.join(", "))),
    }
}

/// Returns the API server's message for an invalid key or value.
fn invalid(path: &str, text: &str, rule: &str) -> String {
    format!("{path}: Invalid value: {text:?}: {rule}")
}
