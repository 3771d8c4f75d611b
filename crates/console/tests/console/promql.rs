//! Reads the metrics, labels and values of labels of a Prometheus expression.

use std::collections::BTreeSet;

use crate::metrics_program::{Sample, Scrape};

/// Words that are neither metrics nor, with parentheses after them, functions.
const WORDS: [&str; 12] = [
    "and", "or", "unless", "bool", "offset", "sum", "max", "min", "avg", "count", "topk",
    "quantile",
];
/// Words before a list of labels.
const BEFORE_LABELS: [&str; 6] = [
    "by",
    "without",
    "on",
    "ignoring",
    "group_left",
    "group_right",
];
/// Labels that Prometheus adds.
const ADDED: [&str; 2] = ["job", "instance"];
/// Labels whose values are all exported, whether or not they have occurred.
const COMPLETE: [&str; 3] = ["result", "reason", "priority"];

/// The metrics and labels of an expression.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Uses {
    pub(crate) metrics: Vec<Metric>,
    /// The labels that series are grouped or matched by.
    pub(crate) grouped: BTreeSet<String>,
}

/// A metric, with its matchers as label and value.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Metric {
    pub(crate) name: String,
    pub(crate) matchers: Vec<(String, String)>,
}

#[derive(Debug, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Text(&'a str),
    Sign(char),
}

impl Uses {
    pub(crate) fn of(expression: &str) -> Self {
        let tokens = tokens(expression);
        let mut uses = Self::default();
        let mut at = 0;
        while at < tokens.len() {
            let next = tokens.get(at + 1);
            if let Token::Word(word) = tokens[at] {
                if BEFORE_LABELS.contains(&word) && next == Some(&Token::Sign('(')) {
                    at = uses.group(&tokens, at + 2);
                    continue;
                }
                let is_function = next == Some(&Token::Sign('('));
                let is_number = word.starts_with(|first: char| first.is_ascii_digit());
                if !is_function && !is_number && !WORDS.contains(&word) {
                    at = uses.metric(&tokens, at);
                    continue;
                }
            }
            at += 1;
        }
        uses
    }

    /// Reads a list of labels up to its end; returns what comes after it.
    fn group(&mut self, tokens: &[Token<'_>], mut at: usize) -> usize {
        while let Some(token) = tokens.get(at).filter(|token| **token != Token::Sign(')')) {
            if let Token::Word(label) = token {
                self.grouped.insert((*label).to_owned());
            }
            at += 1;
        }
        at + 1
    }

    /// Reads a metric with its matchers; returns what comes after it.
    fn metric(&mut self, tokens: &[Token<'_>], mut at: usize) -> usize {
        let mut metric = Metric::default();
        if let Token::Word(name) = tokens[at] {
            metric.name = name.to_owned();
        }
        at += 1;
        if tokens.get(at) == Some(&Token::Sign('{')) {
            let mut label = "";
            while let Some(token) = tokens.get(at).filter(|token| **token != Token::Sign('}')) {
                match token {
                    Token::Word(word) => label = word,
                    Token::Text(value) => metric.matchers.push((label.into(), (*value).into())),
                    Token::Sign(_) => {}
                }
                at += 1;
            }
        }
        self.metrics.push(metric);
        at
    }

    /// Returns metrics and labels of the expression that a scrape does not have.
    pub(crate) fn missing(&self, scrape: &Scrape) -> Vec<String> {
        let mut missing = Vec::new();
        for metric in &self.metrics {
            let samples = scrape.samples.iter();
            let samples: Vec<&Sample> = samples.filter(|it| it.name == metric.name).collect();
            if samples.is_empty() {
                missing.push(metric.name.clone());
                continue;
            }
            let has = |label: &str| {
                let exists = samples
                    .iter()
                    .any(|sample| sample.labels.contains_key(label));
                exists || ADDED.contains(&label)
            };
            let matched = metric.matchers.iter().map(|(label, _)| label);
            let unknown = matched.chain(&self.grouped).filter(|label| !has(label));
            missing.extend(unknown.map(|label| format!("{} has no label {label}", metric.name)));
            for (label, values) in &metric.matchers {
                let is_complete = COMPLETE.contains(&label.as_str());
                let unknown = values.split('|').filter(|value| {
                    is_complete && !samples.iter().any(|sample| sample.labels[label] == **value)
                });
                missing.extend(unknown.map(|value| format!("{label} is never {value}")));
            }
        }
        missing
    }
}

fn tokens(expression: &str) -> Vec<Token<'_>> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '.');
    let (mut tokens, mut rest) = (Vec::new(), expression.trim_start());
    while let Some(first) = rest.chars().next() {
        let length = if is_word(first) {
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            tokens.push(Token::Word(&rest[..end]));
            end
        } else if first == '"' {
            let end = 1 + rest[1..].find('"').expect("a text has an end");
            tokens.push(Token::Text(&rest[1..end]));
            end + 1
        } else {
            tokens.push(Token::Sign(first));
            first.len_utf8()
        };
        rest = rest[length..].trim_start();
    }
    tokens
}

#[test]
fn metrics_matchers_and_groups_are_found() {
    let uses = Uses::of(
        r#"histogram_quantile(0.99, sum by (kind, le) (rate(a_bucket{result=~"x|y", ctx="1"}[5m]))) / (max by(kind)(b) > 0)"#,
    );
    let names: Vec<&str> = uses.metrics.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["a_bucket", "b"]);
    let matchers = [("result", "x|y"), ("ctx", "1")];
    let matchers = matchers.map(|(label, value)| (label.to_owned(), value.to_owned()));
    assert_eq!(uses.metrics[0].matchers, matchers);
    assert_eq!(Vec::from_iter(&uses.grouped), ["kind", "le"]);
}
